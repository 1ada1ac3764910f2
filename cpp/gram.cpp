// Items of a kernel that comes as a matrix. A tile is a copy: one pass over what it covers.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "items.hpp"

namespace maxmargin {
namespace {

// What the right side of a tile needs: its columns in the left side's matrix.
class MatrixItems : public Items {
  public:
    explicit MatrixItems(std::vector<index> columns) : ids(std::move(columns)) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            largest = std::max(largest, ids[i]);
            adjacent &= ids[i] == ids[0] + static_cast<index>(i);
        }
    }

    const std::vector<index> ids;  // one per item, or none where items stand on the left only
    index largest = -1;
    bool adjacent = true;  // ids[j] = ids[0] + j
};

// Item i has row rows_[i] of the matrix, where there is a matrix, and column ids[i].
template <class T>
class GramItems final : public MatrixItems {
  public:
    GramItems(Dense<T> matrix, std::vector<index> rows, std::vector<index> columns,
              std::shared_ptr<const void> owner, bool positive)
        : MatrixItems(std::move(columns)),
          matrix_(matrix),
          rows_(std::move(rows)),
          owner_(std::move(owner)),
          positive_(positive) {}

    index size() const override { return static_cast<index>(std::max(rows_.size(), ids.size())); }
    bool positive() const override { return positive_; }
    bool single_precision() const override { return sizeof(T) == sizeof(float); }

    void tile(std::span<const index> rows, const Items& other, index begin, index end, float* out,
              index stride) const override {
        copy(rows, other, begin, end, out, stride);
    }
    void tile(std::span<const index> rows, const Items& other, index begin, index end, double* out,
              index stride) const override {
        copy(rows, other, begin, end, out, stride);
    }

    void diagonal(double* out) const override {
        check(*this);
        for (index i = 0; i < size(); ++i) out[i] = row(i)[ids[i]];
    }

    std::unique_ptr<Items> subset(std::span<const index> which) const override {
        const auto taken = [&](const std::vector<index>& all) {
            std::vector<index> some;
            if (!all.empty())
                for (const index i : which) some.push_back(all[i]);
            return some;
        };
        return std::make_unique<GramItems>(matrix_, taken(rows_), taken(ids), owner_, positive_);
    }

  private:
    const T* row(index i) const { return matrix_.values + rows_[i] * matrix_.stride; }

    void check(const MatrixItems& right) const {
        if (size() > 0 && rows_.empty())
            throw std::invalid_argument(
                "items: these name columns of a kernel matrix and have no rows of their own");
        if (right.size() > 0 && right.ids.empty())
            throw std::invalid_argument(
                "other: these are rows of a kernel matrix that is not square, with no columns of "
                "their own");
        if (right.largest >= matrix_.columns)
            throw std::invalid_argument("X: the kernel matrix has " +
                                        std::to_string(matrix_.columns) +
                                        " columns, too few for the training items");
    }

    template <class Out>
    void copy(std::span<const index> rows, const Items& other, index begin, index end, Out* out,
              index stride) const {
        const auto* right = dynamic_cast<const MatrixItems*>(&other);
        if (right == nullptr)
            throw std::invalid_argument(
                "other: these are no items of the same kernel matrix; prepare both with the same "
                "fitted kernel");
        check(*right);
        if (begin == end) return;
        const index* columns = right->ids.data();
        for (const index i : rows) {
            const T* x = row(i);
            if (right->adjacent)
                std::copy(x + columns[begin], x + columns[begin] + (end - begin), out);
            else
                std::transform(columns + begin, columns + end, out,
                               [x](index j) { return static_cast<Out>(x[j]); });
            out += stride;
        }
    }

    Dense<T> matrix_;
    std::vector<index> rows_;
    std::shared_ptr<const void> owner_;
    bool positive_;
};

}  // namespace

template <class T>
std::unique_ptr<Items> gram_items(Dense<T> matrix, std::span<const index> ids,
                                  std::shared_ptr<const void> owner, bool positive) {
    std::vector<index> rows(static_cast<std::size_t>(matrix.rows));
    for (index i = 0; i < matrix.rows; ++i) rows[i] = i;
    if (!ids.empty() && !rows.empty() && ids.size() != rows.size())
        throw std::invalid_argument("ids: one for each row of the matrix, or none");
    if (std::any_of(ids.begin(), ids.end(), [](index id) { return id < 0; }))
        throw std::invalid_argument("ids: columns are counted from 0");
    return std::make_unique<GramItems<T>>(matrix, std::move(rows),
                                          std::vector<index>(ids.begin(), ids.end()),
                                          std::move(owner), positive);
}

template std::unique_ptr<Items> gram_items(Dense<float>, std::span<const index>,
                                           std::shared_ptr<const void>, bool);
template std::unique_ptr<Items> gram_items(Dense<double>, std::span<const index>,
                                           std::shared_ptr<const void>, bool);

}  // namespace maxmargin
