#include "design.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "dots.hpp"
#include "pool.hpp"

namespace maxmargin {
namespace {

constexpr index kRows = 2048;    // of a block, for one thread at a time
constexpr index kParts = 16;     // sums that are kept apart, and added in order
constexpr double kSparse = 0.3;  // of the numbers: dense rows with fewer are better compressed

index padded(index k) { return k == 1 ? 1 : (k + output_block - 1) / output_block * output_block; }

// Row-major (m x k) with its rows padded to `width` numbers.
std::vector<double> widened(const double* from, index m, index k, index width) {
    std::vector<double> to(static_cast<std::size_t>(m * width));
    for (index i = 0; i < m; ++i) std::copy_n(from + i * k, k, to.data() + i * width);
    return to;
}

template <class T, class I>
struct Storage;

template <class T>
struct Storage<T, Everything> {
    Dense<T> data;
    RowView<T, Everything> row(index i) const {
        return {data.values + i * data.stride, nullptr, data.columns};
    }
    index stored() const { return data.rows * data.columns; }
};

template <class T, class I>
struct Storage {
    Csr<T, I> data;
    RowView<T, I> row(index i) const {
        const index begin = data.starts[i];
        return {data.values + begin, data.indices + begin,
                static_cast<index>(data.starts[i + 1]) - begin};
    }
    index stored() const { return data.starts[data.rows]; }
};

template <class T, class I>
class StoredDesign final : public Design {
  public:
    StoredDesign(Storage<T, I> storage, double bias, std::shared_ptr<const void> owner)
        : Design(bias), storage_(storage), owner_(std::move(owner)), functions_(row_functions()) {}

    index rows() const override { return storage_.data.rows; }
    index features() const override { return storage_.data.columns; }
    index stored() const override { return storage_.stored(); }

    double norm(index i) const override {
        const RowView<T, I> row = storage_.row(i);
        double sum = bias_ * bias_;
        for (index e = 0; e < row.n; ++e) {
            const auto value = static_cast<double>(row.values[e]);
            sum += value * value;
        }
        return sum;
    }
    double dot(index i, const double* w) const override {
        const double sum = functions_.dot(storage_.row(i), w);
        return bias_ == 0.0 ? sum : sum + bias_ * w[features()];
    }
    void axpy(double a, index i, double* w) const override {
        functions_.axpy(a, storage_.row(i), w);
        if (bias_ != 0.0) w[features()] += a * bias_;
    }
    void dots(index i, const double* W, index k, double* out) const override {
        functions_.dots(storage_.row(i), W, k, out);
        if (bias_ != 0.0)
            for (index j = 0; j < k; ++j) out[j] += bias_ * W[features() * k + j];
    }
    void axpys(const double* a, index i, double* W, index k) const override {
        functions_.axpys(a, storage_.row(i), W, k);
        if (bias_ != 0.0)
            for (index j = 0; j < k; ++j) W[features() * k + j] += bias_ * a[j];
    }
    index entries(index i, index* features, double* values) const override {
        const RowView<T, I> row = storage_.row(i);
        for (index e = 0; e < row.n; ++e) {
            if constexpr (std::is_same_v<I, Everything>)
                features[e] = e;
            else
                features[e] = row.indices[e];
            values[e] = static_cast<double>(row.values[e]);
        }
        if (bias_ == 0.0) return row.n;
        features[row.n] = this->features();
        values[row.n] = bias_;
        return row.n + 1;
    }

    std::unique_ptr<Design> compressed() const override;

  protected:
    void add_gram(index begin, index end, const double* h, double* H) const override;

  private:
    Storage<T, I> storage_;
    std::shared_ptr<const void> owner_;
    const RowFunctions<T, I>& functions_;
};

template <class T, class I>
void StoredDesign<T, I>::add_gram(index begin, index end, const double* h, double* H) const {
    const index m = columns();
    if constexpr (std::is_same_v<I, Everything>) {
        const index d = features();
        std::vector<double> x(static_cast<std::size_t>(outer_rows * d));
        double price[outer_rows] = {};
        index held = 0;
        const auto flush = [&] {
            std::fill(price + held, price + outer_rows, 0.0);
            if (held > 0) row_functions().outer(x.data(), price, d, H, m);
            held = 0;
        };
        for (index i = begin; i < end; ++i) {
            if (h[i] == 0.0) continue;
            const RowView<T, I> row = storage_.row(i);
            std::copy_n(row.values, d, x.begin() + held * d);
            price[held++] = h[i];
            if (held == outer_rows) flush();
        }
        flush();
    } else {
        for (index i = begin; i < end; ++i) {
            if (h[i] == 0.0) continue;
            const RowView<T, I> row = storage_.row(i);
            for (index a = 0; a < row.n; ++a) {
                const double s = h[i] * static_cast<double>(row.values[a]);
                double* const out = H + row.indices[a] * m;
                for (index b = a; b < row.n; ++b)
                    out[row.indices[b]] += s * static_cast<double>(row.values[b]);
            }
        }
    }
}

// Rows compressed into arrays of their own.
template <class T>
struct Packed {
    std::vector<T> values;
    std::vector<std::int32_t> indices, starts;
};

template <class T, class I>
std::unique_ptr<Design> StoredDesign<T, I>::compressed() const {
    if constexpr (std::is_same_v<I, Everything>) {
        const index n = rows(), d = features();
        const auto used = [&](index i) {
            const RowView<T, I> row = storage_.row(i);
            return d - static_cast<index>(std::count(row.values, row.values + d, T{0}));
        };
        index sample = 0, sampled = 0;
        for (index i = 0; i < n; i += n / 64 + 1, ++sampled) sample += used(i);
        if (static_cast<double>(sample) > kSparse * static_cast<double>(sampled * d)) return {};
        index total = 0;
        for (index i = 0; i < n; ++i) total += used(i);
        if (total > std::numeric_limits<std::int32_t>::max()) return {};

        const auto packed = std::make_shared<Packed<T>>();
        packed->values.reserve(static_cast<std::size_t>(total));
        packed->indices.reserve(static_cast<std::size_t>(total));
        packed->starts.push_back(0);
        for (index i = 0; i < n; ++i) {
            const RowView<T, I> row = storage_.row(i);
            for (index f = 0; f < d; ++f) {
                if (row.values[f] == T{0}) continue;
                packed->values.push_back(row.values[f]);
                packed->indices.push_back(static_cast<std::int32_t>(f));
            }
            packed->starts.push_back(static_cast<std::int32_t>(packed->values.size()));
        }
        return csr_design(Csr<T, std::int32_t>{packed->values.data(), packed->indices.data(),
                                               packed->starts.data(), n, d},
                          bias_, packed);
    } else {
        return {};
    }
}

// Calls `add(begin, end, part)` for blocks of rows, each with a zeroed array of `size` numbers that
// a fixed set of consecutive blocks shares, and adds these up in order.
template <class F>
void sum_of_parts(index n, index size, double* out, const Run& run, const F& add) {
    const index parts = std::clamp<index>((n + kRows - 1) / kRows, 1, kParts);
    const index step = (n + parts - 1) / parts;
    std::fill_n(out, size, 0.0);
    if (parts == 1) {
        add(0, n, out);
        return;
    }
    // As many sums at a time as there are threads, so that large ones need not all be held.
    const index together = std::max<index>(1, std::min<index>(parts, run.threads));
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(together));
    for (index first = 0; first < parts; first += together) {
        const index some = std::min(together, parts - first);
        pool().run(
            some, run.threads,
            [&](index p) {
                sums[p].assign(static_cast<std::size_t>(size), 0.0);
                const index begin = (first + p) * step, end = std::min(n, begin + step);
                if (begin < end) add(begin, end, sums[p].data());
            },
            run.poll);
        for (index p = 0; p < some; ++p)
            for (index e = 0; e < size; ++e) out[e] += sums[p][e];
    }
}

}  // namespace

void Design::scores(const double* W, index k, double* Z, const Run& run) const {
    const index n = rows(), width = padded(k);
    std::vector<double> wide;
    if (width != k) wide = widened(W, columns(), k, width);
    const double* const weights = width == k ? W : wide.data();
    pool().run((n + kRows - 1) / kRows, run.threads,
               [&](index block) {
                   std::vector<double> z(static_cast<std::size_t>(width));
                   for (index i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i) {
                       if (k == 1) {
                           Z[i] = dot(i, weights);
                           continue;
                       }
                       dots(i, weights, width, z.data());
                       std::copy_n(z.data(), k, Z + i * k);
                   }
               },
               run.poll);
}

void Design::combine(const double* C, index k, double* W, const Run& run) const {
    const index width = padded(k), size = columns() * width;
    std::vector<double> wide(width == k ? 0 : static_cast<std::size_t>(size));
    sum_of_parts(rows(), size, width == k ? W : wide.data(), run,
                 [&](index begin, index end, double* sum) {
                     std::vector<double> c(static_cast<std::size_t>(width));
                     for (index i = begin; i < end; ++i) {
                         const double* const row = C + i * k;
                         if (std::all_of(row, row + k, [](double v) { return v == 0.0; })) continue;
                         if (k == 1) {
                             axpy(*row, i, sum);
                             continue;
                         }
                         std::copy_n(row, k, c.data());
                         axpys(c.data(), i, sum, width);
                     }
                 });
    if (width != k)
        for (index f = 0; f < columns(); ++f) std::copy_n(wide.data() + f * width, k, W + f * k);
}

void Design::gram(const double* h, double* H, const Run& run) const {
    const index n = rows(), m = columns();
    sum_of_parts(n, m * m, H, run,
                 [&](index begin, index end, double* sum) { add_gram(begin, end, h, sum); });
    if (bias_ != 0.0) {  // the last row and column are bias times X'h
        std::vector<double> last(static_cast<std::size_t>(m));
        combine(h, 1, last.data(), run);
        for (index f = 0; f < m; ++f) H[f * m + m - 1] = bias_ * last[f];
    }
    for (index a = 0; a < m; ++a)
        for (index b = 0; b < a; ++b) H[a * m + b] = H[b * m + a];
}

void Design::norms(double* out, const Run& run) const {
    const index n = rows();
    pool().run((n + kRows - 1) / kRows, run.threads,
               [&](index block) {
                   for (index i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i)
                       out[i] = norm(i);
               },
               run.poll);
}

template <class T>
std::unique_ptr<Design> dense_design(Dense<T> data, double bias,
                                     std::shared_ptr<const void> owner) {
    return std::make_unique<StoredDesign<T, Everything>>(Storage<T, Everything>{data}, bias,
                                                         std::move(owner));
}

template <class T, class I>
std::unique_ptr<Design> csr_design(Csr<T, I> data, double bias, std::shared_ptr<const void> owner) {
    return std::make_unique<StoredDesign<T, I>>(Storage<T, I>{data}, bias, std::move(owner));
}

template std::unique_ptr<Design> dense_design(Dense<float>, double, std::shared_ptr<const void>);
template std::unique_ptr<Design> dense_design(Dense<double>, double, std::shared_ptr<const void>);
template std::unique_ptr<Design> csr_design(Csr<float, std::int32_t>, double,
                                            std::shared_ptr<const void>);
template std::unique_ptr<Design> csr_design(Csr<float, std::int64_t>, double,
                                            std::shared_ptr<const void>);
template std::unique_ptr<Design> csr_design(Csr<double, std::int32_t>, double,
                                            std::shared_ptr<const void>);
template std::unique_ptr<Design> csr_design(Csr<double, std::int64_t>, double,
                                            std::shared_ptr<const void>);

}  // namespace maxmargin
