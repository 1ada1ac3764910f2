// A design matrix by columns: a copy of the rows, dense where they are and compressed where they
// are, in the type of the data. The constant feature is a column like the others.
//
//     dot     x_j.c                  axpy    z += a x_j
//     combine v = X'c                scaled  columns of diag(s) X, without the rows where s = 0
//
// Cost of a visit: one pass over the column. Each sum belongs to one column, so that the bits do
// not depend on the number of threads.
#pragma once

#include <memory>
#include <vector>

#include "data.hpp"
#include "design.hpp"

namespace maxmargin {

class Columns {
  public:
    virtual ~Columns() = default;

    virtual index rows() const = 0;
    virtual index columns() const = 0;
    virtual index stored() const = 0;
    virtual double dot(index j, const double* c) const = 0;
    virtual void axpy(double a, index j, double* z) const = 0;
    virtual double norm(index j) const = 0;                            // |x_j|^2
    virtual double weighted_norm(index j, const double* s) const = 0;  // sum_i s_i x_ij^2

    virtual std::unique_ptr<Columns> scaled(const std::vector<index>& chosen,
                                            const double* s) const = 0;

    void combine(const double* c, double* v, const Run& run) const;
};

// Fewer than 2^31 rows; `bias` is the value of the constant feature, 0 for none.
template <class T>
std::unique_ptr<Columns> columns_of(Dense<T> x, double bias);
template <class T, class I>
std::unique_ptr<Columns> columns_of(Csr<T, I> x, double bias);

}  // namespace maxmargin
