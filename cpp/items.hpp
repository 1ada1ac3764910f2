// Items: a data set made ready for a kernel. All that a solver or a predictor knows of its data.
//
//     tile       out[r * stride + (c - begin)] = k(this[rows[r]], other[c])   begin <= c < end
//     diagonal   out[i] = k(this[i], this[i])
//     multiply   out = K(a, b) V, without ever holding K
//
// A pair of items has one bit pattern, whatever tile, side, edge or thread it comes from: k(x, z)
// and k(z, x) are equal, sparse rows give what the same rows give as a dense array, and a float
// tile is the double tile rounded. Of rbf this holds among dense rows and among sparse rows;
// between the two forms it agrees to rounding (tile_impl.hpp says why). Arguments in range are the
// caller's duty here (bind.cpp checks what Python hands in); that the two sides fit together is
// checked (std::invalid_argument).
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "data.hpp"
#include "kernel.hpp"

namespace maxmargin {

class Items {
  public:
    virtual ~Items() = default;

    virtual index size() const = 0;
    virtual void tile(std::span<const index> rows, const Items& other, index begin, index end,
                      float* out, index stride) const = 0;
    virtual void tile(std::span<const index> rows, const Items& other, index begin, index end,
                      double* out, index stride) const = 0;
    virtual void diagonal(double* out) const = 0;

    // A copy of these rows, in this order, packed; repetitions are allowed.
    virtual std::unique_ptr<Items> subset(std::span<const index> rows) const = 0;

    // The type of the data, and so of cached kernel rows, is float.
    virtual bool single_precision() const = 0;

    // tile may be called from the pool's threads (not when it enters Python).
    virtual bool concurrent() const { return true; }

    // The kernel is positive semi-definite by construction, whatever the data.
    virtual bool positive() const { return false; }

    // The linear kernel has its feature space at hand, and these; other kernels throw
    // std::logic_error.
    virtual bool is_linear() const { return false; }
    virtual index dimension() const { return 0; }
    virtual void scatter(index i, double a, double* w) const;  // w += a x_i
    virtual double project(index i, const double* w) const;    // x_i . w

    // What such a product takes, in numbers read one after the other; 0 for other kernels.
    virtual index product_cost() const { return 0; }
};

// Items of a vector kernel. The arrays are borrowed: `owner` keeps them alive, and a packed copy is
// made once. Throws std::invalid_argument when the squared norm of a row is not finite.
template <class T>
std::unique_ptr<Items> dense_items(const Kernel& kernel, Dense<T> data,
                                   std::shared_ptr<const void> owner);
template <class T, class I>
std::unique_ptr<Items> csr_items(const Kernel& kernel, Csr<T, I> data,
                                 std::shared_ptr<const void> owner);

// Items of a kernel that is a matrix. Item i is its row i and, as the other side of a tile, the
// column ids[i]: k(a[i], b[j]) = a.matrix(i, ids_b[j]). Training items have a square matrix and
// ids 0, 1, ...; new items have no ids (empty) and stand on the left only. `positive`: it is the
// matrix of a kernel that is.
template <class T>
std::unique_ptr<Items> gram_items(Dense<T> matrix, std::span<const index> ids,
                                  std::shared_ptr<const void> owner, bool positive = false);

// out (a.size() x k) = K(a, b) V, V (b.size() x k), both row-major. Kernel values and sums are
// double; the order of the sums over b depends on b and V alone, not on threads, and rows of V that
// are zero cost nothing when they are many. Blocks of rows run in parallel, where a.concurrent().
void multiply(const Items& a, const Items& b, const double* V, index k, double* out, int n_threads,
              const std::function<void()>* poll = nullptr);

}  // namespace maxmargin
