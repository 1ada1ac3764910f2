// The design matrix of a linear machine: rows x_i and, where `bias` is not zero, a constant feature
// of that value behind the others.
//
//     scores     Z = X W        (n x k)          combine    W = X' C        (columns x k)
//     gram       H = X' diag(h) X                norms      |x_i|^2
//
// Matrices are row-major doubles. Blocks of rows run in parallel; their sums are taken in the order
// of the blocks, whoever computed them, so that the bits do not depend on the number of threads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data.hpp"

namespace maxmargin {

struct Run {
    int threads = 1;
    const std::function<void()>* poll = nullptr;
};

class Design {
  public:
    virtual ~Design() = default;

    virtual index rows() const = 0;
    virtual index features() const = 0;  // without the constant
    index columns() const { return features() + (bias_ != 0.0 ? 1 : 0); }
    double bias() const { return bias_; }
    virtual index stored() const = 0;  // numbers kept

    void scores(const double* W, index k, double* Z, const Run& run) const;
    void combine(const double* C, index k, double* W, const Run& run) const;
    // Rows with h = 0 cost nothing. Both triangles are filled.
    void gram(const double* h, double* H, const Run& run) const;
    void norms(double* out, const Run& run) const;

    // One row: the functions of dots.hpp, the constant included. k > 1 is a multiple of
    // output_block.
    virtual double norm(index i) const = 0;  // |x_i|^2
    virtual double dot(index i, const double* w) const = 0;
    virtual void axpy(double a, index i, double* w) const = 0;
    virtual void dots(index i, const double* W, index k, double* out) const = 0;
    virtual void axpys(const double* a, index i, double* W, index k) const = 0;
    // Writes the features of what is stored, and the values; returns how many.
    virtual index entries(index i, index* features, double* values) const = 0;

    // The same rows compressed, where that is a better way to go through them one by one: dense
    // rows that are mostly zeros. Null where it is not.
    virtual std::unique_ptr<Design> compressed() const { return nullptr; }

  protected:
    explicit Design(double bias) : bias_(bias) {}

    // H += sum of h_i x_i x_i' over rows begin .. end, upper triangle, without the constant.
    virtual void add_gram(index begin, index end, const double* h, double* H) const = 0;

    double bias_;
};

template <class T>
std::unique_ptr<Design> dense_design(Dense<T> data, double bias, std::shared_ptr<const void> owner);
template <class T, class I>
std::unique_ptr<Design> csr_design(Csr<T, I> data, double bias, std::shared_ptr<const void> owner);

}  // namespace maxmargin
