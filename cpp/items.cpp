// Items of the vector kernels: they keep the data, unpack rows for the left side of a tile, and
// hand the right side to the functions of tile.hpp.
#include "items.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tile.hpp"

namespace maxmargin {

void Items::scatter(index, double, double*) const {
    throw std::logic_error("scatter is for the linear kernel");
}
double Items::project(index, const double*) const {
    throw std::logic_error("project is for the linear kernel");
}

namespace {

index round_up(index n, index multiple) { return (n + multiple - 1) / multiple * multiple; }

// Begins at a cache line, so that no vector is torn between two.
template <class T>
struct LineAllocator {
    using value_type = T;
    LineAllocator() = default;
    template <class U>
    explicit LineAllocator(const LineAllocator<U>&) {}
    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(const LineAllocator&) const = default;
};
template <class T>
using Lines = std::vector<T, LineAllocator<T>>;

// The left side of a tile, row_block rows of it at a time; the layout is RowBlock's.
class Block {
  public:
    Block(index dimension, bool against_sparse)
        : dimension_(dimension), against_sparse_(against_sparse) {
        if (against_sparse) slot_.resize(static_cast<std::size_t>(dimension));
    }

    template <class T>
    void gather(const Dense<T>& data, std::span<const index> rows) {
        if (against_sparse_ && feature_.empty()) {
            feature_.resize(static_cast<std::size_t>(dimension_ + 2));
            std::iota(feature_.begin(), feature_.end(), -1);
            std::iota(slot_.begin(), slot_.end(), 1);
            n_entries_ = dimension_;
        }
        const index first = against_sparse_ ? 1 : 0;
        clear(first + dimension_);
        std::array<const T*, row_block> x{};
        for (std::size_t r = 0; r < rows.size(); ++r) x[r] = data.values + rows[r] * data.stride;
        double* value = values_.data() + first * row_block;
        for (index f = 0; f < dimension_; ++f, value += row_block)
            for (std::size_t r = 0; r < rows.size(); ++r) value[r] = x[r][f];
    }

    template <class T, class I>
    void gather(const Csr<T, I>& data, std::span<const index> rows) {
        if (against_sparse_) number_features(data, rows);
        clear(against_sparse_ ? n_entries_ + 1 : dimension_);
        for (std::size_t r = 0; r < rows.size(); ++r)
            for (index k = data.starts[rows[r]]; k < data.starts[rows[r] + 1]; ++k) {
                const index feature = data.indices[k];
                const index entry = against_sparse_ ? slot_[feature] : feature;
                values_[entry * row_block + r] = data.values[k];
            }
    }

    RowBlock view(const double* norms, std::span<const index> rows) {
        for (std::size_t r = 0; r < rows.size(); ++r) norms_[r] = norms[rows[r]];
        return {values_.data(), norms_.data(),   static_cast<index>(rows.size()),
                slot_.data(),   feature_.data(), n_entries_};
    }

  private:
    void clear(index entries) {
        values_.assign(static_cast<std::size_t>(entries * row_block), 0.0);
    }

    // Entries 1, 2, ... for the features that occur in these rows, in ascending order.
    template <class T, class I>
    void number_features(const Csr<T, I>& data, std::span<const index> rows) {
        for (index e = 1; e <= n_entries_; ++e) slot_[feature_[e]] = 0;
        feature_.assign(1, -1);
        for (const index row : rows)
            feature_.insert(feature_.end(), data.indices + data.starts[row],
                            data.indices + data.starts[row + 1]);
        std::sort(feature_.begin(), feature_.end());
        feature_.erase(std::unique(feature_.begin(), feature_.end()), feature_.end());
        n_entries_ = static_cast<index>(feature_.size()) - 1;
        for (index e = 1; e <= n_entries_; ++e) slot_[feature_[e]] = static_cast<std::int32_t>(e);
        feature_.push_back(std::numeric_limits<index>::max());
    }

    index dimension_;
    bool against_sparse_;
    Lines<double> values_;
    std::array<double, row_block> norms_{};
    std::vector<std::int32_t> slot_;
    std::vector<index> feature_;
    index n_entries_ = 0;
};

class VectorItems : public Items {
  public:
    VectorItems(const Kernel& kernel, index size, index dimension)
        : kernel_(kernel), size_(size), dimension_(dimension) {}

    index size() const final { return size_; }
    bool positive() const final { return is_positive(kernel_); }
    bool is_linear() const final { return kernel_.kind == Kernel::Kind::linear; }
    index dimension() const final { return dimension_; }

    void tile(std::span<const index> rows, const Items& other, index begin, index end, float* out,
              index stride) const final {
        tile_rows(rows, other, begin, end, out, stride);
    }
    void tile(std::span<const index> rows, const Items& other, index begin, index end, double* out,
              index stride) const final {
        tile_rows(rows, other, begin, end, out, stride);
    }

    void diagonal(double* out) const final {
        std::vector<double> padded(norms_.size());
        tiles().diagonal(kernel_, norms_.data(), size_, padded.data());
        std::copy_n(padded.begin(), size_, out);
    }

  protected:
    // Finishes the construction, once the derived class has its data (of type T) in place.
    template <class T, class Side>
    void set_norms(const Side& side) {
        norms_.assign(static_cast<std::size_t>(round_up(size_, panel_width)), 0.0);
        const TileFunctions<Side>& functions = tiles();
        functions.norms(side, norms_.data());

        // Tiles of type T hold k(x, x), and sums of two norms stay finite.
        std::vector<double> k(norms_.size());
        tiles().diagonal(kernel_, norms_.data(), size_, k.data());
        const double largest = std::numeric_limits<T>::max();
        for (index i = 0; i < size_; ++i) {
            const bool fits = norms_[i] <= 1e307 && std::abs(k[i]) <= largest;  // false for NaN
            if (!fits)
                throw std::invalid_argument(
                    "X: row " + std::to_string(i) +
                    " is too long for this kernel, or holds NaN or infinity: its product with "
                    "itself overflows. Scale the features, for instance with StandardScaler");
        }
    }

    const Kernel& kernel() const { return kernel_; }
    const double* norms() const { return norms_.data(); }

  private:
    virtual bool sparse() const = 0;
    virtual void gather(std::span<const index> rows, Block& block) const = 0;
    virtual void columns(const RowBlock& rows, const Target<float>& target) const = 0;
    virtual void columns(const RowBlock& rows, const Target<double>& target) const = 0;

    template <class Out>
    void tile_rows(std::span<const index> rows, const Items& other, index begin, index end,
                   Out* out, index stride) const {
        const auto* right = dynamic_cast<const VectorItems*>(&other);
        if (right == nullptr || right->dimension_ != dimension_)
            throw std::invalid_argument(
                "other: these items have no kernel in common with vectors of " +
                std::to_string(dimension_) + " features; prepare both with the same fitted kernel");
        Block block(dimension_, right->sparse());
        for (std::size_t r = 0; r < rows.size(); r += row_block) {
            const auto some = rows.subspan(r, std::min<std::size_t>(row_block, rows.size() - r));
            gather(some, block);
            right->columns(block.view(norms(), some),
                           Target<Out>{out + static_cast<index>(r) * stride, stride, begin, end});
        }
    }

    Kernel kernel_;
    index size_, dimension_;
    std::vector<double> norms_;  // padded to a multiple of panel_width
};

// Memory: the borrowed rows, and the same again in panels. Cost of construction: one pass.
template <class T>
class DenseItems final : public VectorItems {
  public:
    DenseItems(const Kernel& kernel, Dense<T> data, std::shared_ptr<const void> owner)
        : VectorItems(kernel, data.rows, data.columns),
          data_(data),
          owner_(std::move(owner)),
          packed_(static_cast<std::size_t>(round_up(data.rows, panel_width) * data.columns)) {
        const index d = data.columns;
        for (index i = 0; i < data.rows; ++i) {
            const T* row = data.values + i * data.stride;
            T* lane = packed_.data() + i / panel_width * panel_width * d + i % panel_width;
            for (index f = 0; f < d; ++f) lane[f * panel_width] = row[f];
        }
        set_norms<T>(panels());
    }

    std::unique_ptr<Items> subset(std::span<const index> rows) const override {
        const index n = static_cast<index>(rows.size()), d = data_.columns;
        auto own = std::make_shared<std::vector<T>>(static_cast<std::size_t>(n * d));
        for (index i = 0; i < n; ++i)
            std::copy_n(row(rows[static_cast<std::size_t>(i)]), d, own->data() + i * d);
        return std::make_unique<DenseItems>(kernel(), Dense<T>{own->data(), n, d, d}, own);
    }

    bool single_precision() const override { return sizeof(T) == sizeof(float); }

    void scatter(index i, double a, double* w) const override {
        const T* x = row(i);
        for (index f = 0; f < data_.columns; ++f) w[f] += a * x[f];
    }
    double project(index i, const double* w) const override {
        const T* x = row(i);
        double sum = 0.0;
        for (index f = 0; f < data_.columns; ++f) sum += w[f] * x[f];
        return sum;
    }
    index product_cost() const override { return is_linear() ? data_.columns : 0; }

  private:
    const T* row(index i) const { return data_.values + i * data_.stride; }
    Panels<T> panels() const { return {packed_.data(), data_.rows, data_.columns}; }

    bool sparse() const override { return false; }
    void gather(std::span<const index> rows, Block& block) const override {
        block.gather(data_, rows);
    }
    void columns(const RowBlock& rows, const Target<float>& target) const override {
        static_cast<const TileFunctions<Panels<T>>&>(tiles()).tile_float(kernel(), rows, panels(),
                                                                         norms(), target);
    }
    void columns(const RowBlock& rows, const Target<double>& target) const override {
        static_cast<const TileFunctions<Panels<T>>&>(tiles()).tile_double(kernel(), rows, panels(),
                                                                          norms(), target);
    }

    Dense<T> data_;
    std::shared_ptr<const void> owner_;
    Lines<T> packed_;
};

// Memory: nothing but the borrowed arrays. A tile needs a table of the features (4 bytes each).
template <class T, class I>
class CsrItems final : public VectorItems {
  public:
    CsrItems(const Kernel& kernel, Csr<T, I> data, std::shared_ptr<const void> owner)
        : VectorItems(kernel, data.rows, data.columns), data_(data), owner_(std::move(owner)) {
        set_norms<T>(data_);
    }

    std::unique_ptr<Items> subset(std::span<const index> rows) const override {
        struct Arrays {
            std::vector<T> values;
            std::vector<I> indices, starts;
        };
        auto own = std::make_shared<Arrays>();
        own->starts.push_back(0);
        for (const index row : rows) {
            const index begin = data_.starts[row], end = data_.starts[row + 1];
            own->values.insert(own->values.end(), data_.values + begin, data_.values + end);
            own->indices.insert(own->indices.end(), data_.indices + begin, data_.indices + end);
            // Repeated rows may be more than the index type can count.
            if (own->values.size() > static_cast<std::size_t>(std::numeric_limits<I>::max()))
                throw std::length_error("subset: too many nonzeros for the type of the indices");
            own->starts.push_back(static_cast<I>(own->values.size()));
        }
        const Csr<T, I> view{own->values.data(), own->indices.data(), own->starts.data(),
                             static_cast<index>(rows.size()), data_.columns};
        return std::make_unique<CsrItems>(kernel(), view, own);
    }

    bool single_precision() const override { return sizeof(T) == sizeof(float); }

    void scatter(index i, double a, double* w) const override {
        for (index k = data_.starts[i]; k < data_.starts[i + 1]; ++k)
            w[data_.indices[k]] += a * data_.values[k];
    }
    double project(index i, const double* w) const override {
        double sum = 0.0;
        for (index k = data_.starts[i]; k < data_.starts[i + 1]; ++k)
            sum += w[data_.indices[k]] * data_.values[k];
        return sum;
    }
    index product_cost() const override {
        constexpr index kScattered = 4;  // for each, as they are not next to each other
        const index stored = data_.starts[data_.rows] - data_.starts[0];
        return is_linear() ? kScattered * stored / std::max<index>(data_.rows, 1) : 0;
    }

  private:
    bool sparse() const override { return true; }
    void gather(std::span<const index> rows, Block& block) const override {
        block.gather(data_, rows);
    }
    void columns(const RowBlock& rows, const Target<float>& target) const override {
        static_cast<const TileFunctions<Csr<T, I>>&>(tiles()).tile_float(kernel(), rows, data_,
                                                                         norms(), target);
    }
    void columns(const RowBlock& rows, const Target<double>& target) const override {
        static_cast<const TileFunctions<Csr<T, I>>&>(tiles()).tile_double(kernel(), rows, data_,
                                                                          norms(), target);
    }

    Csr<T, I> data_;
    std::shared_ptr<const void> owner_;
};

}  // namespace

template <class T>
std::unique_ptr<Items> dense_items(const Kernel& kernel, Dense<T> data,
                                   std::shared_ptr<const void> owner) {
    return std::make_unique<DenseItems<T>>(kernel, data, std::move(owner));
}

template <class T, class I>
std::unique_ptr<Items> csr_items(const Kernel& kernel, Csr<T, I> data,
                                 std::shared_ptr<const void> owner) {
    return std::make_unique<CsrItems<T, I>>(kernel, data, std::move(owner));
}

using Owner = std::shared_ptr<const void>;
template std::unique_ptr<Items> dense_items(const Kernel&, Dense<float>, Owner);
template std::unique_ptr<Items> dense_items(const Kernel&, Dense<double>, Owner);
template std::unique_ptr<Items> csr_items(const Kernel&, Csr<float, std::int32_t>, Owner);
template std::unique_ptr<Items> csr_items(const Kernel&, Csr<float, std::int64_t>, Owner);
template std::unique_ptr<Items> csr_items(const Kernel&, Csr<double, std::int32_t>, Owner);
template std::unique_ptr<Items> csr_items(const Kernel&, Csr<double, std::int64_t>, Owner);

}  // namespace maxmargin
