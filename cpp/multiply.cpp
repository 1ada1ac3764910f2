// out = K(a, b) V, a block of rows at a time; K is seen as tiles that fit the second-level cache.
#include <algorithm>
#include <numeric>
#include <vector>

#include "items.hpp"
#include "pool.hpp"
#include "tile.hpp"

namespace maxmargin {
namespace {

struct TileShape {
    index rows, columns;
};
constexpr index piece = 512;  // of a sum over columns, whatever the tile: the same bits
constexpr TileShape native_tile{32, piece};
constexpr TileShape foreign_tile{256, 4 * piece};  // a call into Python is worth more work

// Rows of V that are not zero.
std::vector<index> rows_used(const double* V, index n, index k) {
    std::vector<index> used;
    for (index i = 0; i < n; ++i)
        if (std::any_of(V + i * k, V + (i + 1) * k, [](double v) { return v != 0.0; }))
            used.push_back(i);
    return used;
}

}  // namespace

void multiply(const Items& a, const Items& b, const double* V, index k, double* out, int n_threads,
              const std::function<void()>* poll) {
    std::vector<index> used = rows_used(V, b.size(), k);
    std::unique_ptr<Items> packed;
    if (static_cast<index>(used.size()) * 4 <= b.size() * 3) {
        packed = b.subset(used);
    } else {
        used.resize(static_cast<std::size_t>(b.size()));
        std::iota(used.begin(), used.end(), 0);
    }
    const Items& right = packed ? *packed : b;

    const index n = right.size();
    std::vector<double> columns(static_cast<std::size_t>(k * n));  // V column by column
    for (index c = 0; c < n; ++c)
        for (index j = 0; j < k; ++j) columns[j * n + c] = V[used[c] * k + j];

    const TileShape shape = a.concurrent() ? native_tile : foreign_tile;
    const auto rows_times_V = [&](index chunk) {
        const index first = chunk * shape.rows;
        std::vector<index> rows(static_cast<std::size_t>(std::min(shape.rows, a.size() - first)));
        std::iota(rows.begin(), rows.end(), first);
        std::fill_n(out + first * k, static_cast<index>(rows.size()) * k, 0.0);
        std::vector<double> tile(rows.size() * static_cast<std::size_t>(shape.columns));
        for (index begin = 0; begin < n; begin += shape.columns) {
            const index end = std::min(begin + shape.columns, n);
            a.tile(rows, right, begin, end, tile.data(), shape.columns);
            for (std::size_t r = 0; r < rows.size(); ++r)
                for (index j = 0; j < k; ++j)
                    for (index c = begin; c < end; c += piece)
                        out[rows[r] * k + j] +=
                            tiles().dot(tile.data() + r * shape.columns + (c - begin),
                                        columns.data() + j * n + c, std::min(piece, end - c));
        }
    };
    const index n_chunks = (a.size() + shape.rows - 1) / shape.rows;
    pool().run(n_chunks, a.concurrent() ? n_threads : 1, rows_times_V, poll);
}

}  // namespace maxmargin
