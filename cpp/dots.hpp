// What the linear solvers do with a row x of the data, dense or compressed:
//
//     dot     x.w                              axpy     w += a x
//     dots    out[j] = sum_f x_f W[f, j]       axpys    W[f, j] += x_f a[j]
//
// The last two serve k problems at once, W row-major with k a multiple of `output_block`. Sums are
// double, whatever the data. Compiled once per instruction set, as tiles are (see tile.hpp).
#pragma once

#include "data.hpp"

namespace maxmargin {

inline constexpr index output_block = 8;

// A row: n values, of the features indices[k], or of 0 .. n-1 where there are no indices.
template <class T, class I>
struct RowView {
    const T* values;
    const I* indices;
    index n;
};

template <class T, class I>
struct RowFunctions {
    double (*dot)(const RowView<T, I>&, const double* w);
    void (*axpy)(double a, const RowView<T, I>&, double* w);
    void (*dots)(const RowView<T, I>&, const double* W, index k, double* out);
    void (*axpys)(const double* a, const RowView<T, I>&, double* W, index k);
};

struct Everything {};  // in the place of an index type: dense rows

struct DotTable : RowFunctions<float, Everything>,
                  RowFunctions<double, Everything>,
                  RowFunctions<float, std::int32_t>,
                  RowFunctions<float, std::int64_t>,
                  RowFunctions<double, std::int32_t>,
                  RowFunctions<double, std::int64_t> {
    // H[a, b] += sum_r price[r] x_r[a] x_r[b] for b >= a, over outer_rows rows of d doubles, one
    // behind the other; H has rows of m doubles.
    void (*outer)(const double* x, const double* price, index d, double* H, index m);
};

inline constexpr index outer_rows = 4;

// The table for the instruction set that tiles() has chosen.
const DotTable& row_functions();

}  // namespace maxmargin
