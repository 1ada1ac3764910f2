// Borrowed views of somebody else's arrays. Plain data: see tile.hpp for why nothing is included.
#pragma once

#include "kernel.hpp"

namespace maxmargin {

// Row-major; row i begins at values + i * stride, its elements are adjacent.
template <class T>
struct Dense {
    const T* values = nullptr;
    index rows = 0, columns = 0, stride = 0;
};

// Compressed sparse rows: row i has values[k] in column indices[k], starts[i] <= k < starts[i + 1],
// with indices strictly increasing within a row.
template <class T, class I>
struct Csr {
    const T* values = nullptr;
    const I* indices = nullptr;
    const I* starts = nullptr;
    index rows = 0, columns = 0;
};

}  // namespace maxmargin
