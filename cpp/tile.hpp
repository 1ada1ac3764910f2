// The contract between the items, who own the data, and the tiles, who compute.
//
// A tile has a left side, at most `row_block` rows at a time, unpacked to doubles, and a right
// side, the columns, in the form in which its items keep it: dense panels or compressed rows.
// Whatever the blocking, an element is computed by the same operations: the products x_f z_f, or
// the distances of x_f and z_f, are added in the order of the features f, in double, then the
// kernel's function is applied. The form changes nothing either, since absent features add exact
// zeros; only rbf, which sums (x_f - z_f)^2 against panels, goes by products against compressed
// rows.
//
// This header and tile_impl.hpp are compiled once per instruction set. So that no function
// compiled for one processor is ever linked into code for another, they hold plain data, function
// pointers and functions of internal linkage only: nothing from the standard library.
#pragma once

#include <cstdint>

#include "data.hpp"
#include "kernel.hpp"

namespace maxmargin {

inline constexpr index row_block = 8;
inline constexpr index panel_width = 16;

// Left side: element (entry e, row r) is values[e * row_block + r].
// Against panels, entry f is feature f. Against compressed rows, feature f has entry slot[f];
// entry 0 is all zeros and stands for absent features; entries 1 .. n_entries are for the features
// feature[1] < feature[2] < ..., and feature[n_entries + 1] is larger than any feature.
// Rows beyond n_rows are zero against compressed rows, and anything at all against panels.
struct RowBlock {
    const double* values;
    const double* norms;  // |x_r|^2, row_block of them; read against compressed rows only
    index n_rows;
    const std::int32_t* slot;
    const index* feature;
    index n_entries;
};

// Right side, dense: row i, feature f is values[(i / W * dimension + f) * W + i % W] with
// W = panel_width; the last panel is filled with zeros.
template <class T>
struct Panels {
    const T* values;
    index size, dimension;
};

template <class Out>
struct Target {
    Out* out;  // row r, column c of the right side: out[r * stride + (c - begin)]
    index stride;
    index begin, end;
};

// Norms are |z_c|^2, as `norms` computes them, padded to a multiple of panel_width. Tiles read them
// for compressed rows only; for panels they serve the diagonal.
template <class Side>
struct TileFunctions {
    void (*norms)(const Side&, double* out);
    void (*tile_float)(const Kernel&, const RowBlock&, const Side&, const double* norms,
                       const Target<float>&);
    void (*tile_double)(const Kernel&, const RowBlock&, const Side&, const double* norms,
                        const Target<double>&);
};

// Everything that is compiled per instruction set; the functions for a side are the base class
// TileFunctions<Side>.
struct TileTable : TileFunctions<Panels<float>>,
                   TileFunctions<Panels<double>>,
                   TileFunctions<Csr<float, std::int32_t>>,
                   TileFunctions<Csr<float, std::int64_t>>,
                   TileFunctions<Csr<double, std::int32_t>>,
                   TileFunctions<Csr<double, std::int64_t>> {
    // k(x, x) from |x|^2, for n elements; both arrays padded to a multiple of panel_width.
    void (*diagonal)(const Kernel&, const double* norms, index n, double* out);
    double (*dot)(const double* a, const double* b, index n);
};

// The table for this processor, or for the instruction set named by the environment variable
// MAXMARGIN_ISA; chosen once. Throws std::runtime_error when that one is not to be had.
const TileTable& tiles();
const char* instruction_set();

}  // namespace maxmargin
