#include "columns.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "dots.hpp"
#include "pool.hpp"

namespace maxmargin {
namespace {

constexpr index kColumns = 256;  // of a block, for one thread at a time
constexpr index kSide = 64;      // of a tile, when a dense matrix is turned

void check_rows(index n) {
    if (n > std::numeric_limits<std::int32_t>::max())
        throw std::length_error("X: a matrix by columns has fewer than 2^31 rows");
}

// Column j is values[starts[j]] .. values[starts[j + 1]], in the rows of `places`; where there are
// no places it is dense.
template <class T, class I>
class StoredColumns final : public Columns {
  public:
    StoredColumns(index n, std::vector<T> values, std::vector<std::int32_t> places,
                  std::vector<index> starts, double bias)
        : n_(n),
          bias_(bias),
          values_(std::move(values)),
          places_(std::move(places)),
          starts_(std::move(starts)),
          functions_(row_functions()) {}

    index rows() const override { return n_; }
    index columns() const override { return static_cast<index>(starts_.size()) - 1; }
    index stored() const override { return starts_.back(); }
    double dot(index j, const double* c) const override {
        return unit(j) * functions_.dot(view(j), c);
    }
    void axpy(double a, index j, double* z) const override {
        functions_.axpy(a * unit(j), view(j), z);
    }
    double norm(index j) const override {
        double sum = 0.0;
        for (index e = starts_[j]; e < starts_[j + 1]; ++e) {
            const auto value = static_cast<double>(values_[e]);
            sum += value * value;
        }
        return unit(j) * unit(j) * sum;
    }
    double weighted_norm(index j, const double* s) const override {
        double sum = 0.0;
        for (index e = starts_[j]; e < starts_[j + 1]; ++e) {
            const auto value = static_cast<double>(values_[e]);
            sum += s[row(j, e)] * value * value;
        }
        return unit(j) * unit(j) * sum;
    }

    std::unique_ptr<Columns> scaled(const std::vector<index>& chosen,
                                    const double* s) const override {
        std::vector<std::int32_t> place(static_cast<std::size_t>(n_), -1);
        std::int32_t m = 0;
        for (index i = 0; i < n_; ++i)
            if (s[i] != 0.0) place[i] = m++;
        index total = 0;
        for (const index j : chosen) total += starts_[j + 1] - starts_[j];
        std::vector<T> values;
        std::vector<std::int32_t> places;
        std::vector<index> starts{0};
        values.reserve(static_cast<std::size_t>(total));
        if constexpr (!kDense) places.reserve(static_cast<std::size_t>(total));
        for (const index j : chosen) {
            for (index e = starts_[j]; e < starts_[j + 1]; ++e) {
                const index i = row(j, e);
                if (place[i] < 0) continue;
                values.push_back(static_cast<T>(unit(j) * s[i] * static_cast<double>(values_[e])));
                if constexpr (!kDense) places.push_back(place[i]);
            }
            starts.push_back(static_cast<index>(values.size()));
        }
        return std::make_unique<StoredColumns>(m, std::move(values), std::move(places),
                                               std::move(starts), 0.0);
    }

  private:
    static constexpr bool kDense = std::is_same_v<I, Everything>;

    // The constant is kept as 1, which every type holds exactly.
    double unit(index j) const { return bias_ != 0.0 && j == columns() - 1 ? bias_ : 1.0; }
    index row(index j, index e) const {
        if constexpr (kDense)
            return e - starts_[j];
        else
            return places_[e];
    }
    RowView<T, I> view(index j) const {
        if constexpr (kDense)
            return {values_.data() + starts_[j], nullptr, n_};
        else
            return {values_.data() + starts_[j], places_.data() + starts_[j],
                    starts_[j + 1] - starts_[j]};
    }

    index n_;
    double bias_;
    std::vector<T> values_;
    std::vector<std::int32_t> places_;
    std::vector<index> starts_;
    const RowFunctions<T, I>& functions_;
};

}  // namespace

void Columns::combine(const double* c, double* v, const Run& run) const {
    const index d = columns();
    pool().run((d + kColumns - 1) / kColumns, run.threads,
               [&](index block) {
                   for (index j = block * kColumns; j < std::min(d, (block + 1) * kColumns); ++j)
                       v[j] = dot(j, c);
               },
               run.poll);
}

template <class T>
std::unique_ptr<Columns> columns_of(Dense<T> x, double bias) {
    check_rows(x.rows);
    const index n = x.rows, d = x.columns, all = d + (bias != 0.0 ? 1 : 0);
    std::vector<T> values(static_cast<std::size_t>(n * all));
    for (index first = 0; first < n; first += kSide)
        for (index j = 0; j < d; ++j)
            for (index i = first; i < std::min(n, first + kSide); ++i)
                values[j * n + i] = x.values[i * x.stride + j];
    if (bias != 0.0) std::fill_n(values.begin() + d * n, n, T{1});
    std::vector<index> starts;
    for (index j = 0; j <= all; ++j) starts.push_back(j * n);
    return std::make_unique<StoredColumns<T, Everything>>(
        n, std::move(values), std::vector<std::int32_t>{}, starts, bias);
}

template <class T, class I>
std::unique_ptr<Columns> columns_of(Csr<T, I> x, double bias) {
    check_rows(x.rows);
    const index n = x.rows, d = x.columns, constants = bias != 0.0 ? n : 0;
    const auto stored = static_cast<index>(x.starts[n]);
    std::vector<index> starts(static_cast<std::size_t>(d + 1));
    for (index e = 0; e < stored; ++e) ++starts[x.indices[e] + 1];
    for (index j = 0; j < d; ++j) starts[j + 1] += starts[j];
    std::vector<T> values(static_cast<std::size_t>(stored + constants));
    std::vector<std::int32_t> places(values.size());
    std::vector<index> next(starts.begin(), starts.end() - 1);
    for (index i = 0; i < n; ++i)
        for (index e = x.starts[i]; e < x.starts[i + 1]; ++e) {
            const index at = next[x.indices[e]]++;
            values[at] = x.values[e];
            places[at] = static_cast<std::int32_t>(i);
        }
    if (bias != 0.0) {
        for (index i = 0; i < n; ++i) {
            values[stored + i] = T{1};
            places[stored + i] = static_cast<std::int32_t>(i);
        }
        starts.push_back(stored + n);
    }
    return std::make_unique<StoredColumns<T, std::int32_t>>(n, std::move(values), std::move(places),
                                                            std::move(starts), bias);
}

template std::unique_ptr<Columns> columns_of(Dense<float>, double);
template std::unique_ptr<Columns> columns_of(Dense<double>, double);
template std::unique_ptr<Columns> columns_of(Csr<float, std::int32_t>, double);
template std::unique_ptr<Columns> columns_of(Csr<float, std::int64_t>, double);
template std::unique_ptr<Columns> columns_of(Csr<double, std::int32_t>, double);
template std::unique_ptr<Columns> columns_of(Csr<double, std::int64_t>, double);

}  // namespace maxmargin
