// Borrowed views of somebody else's arrays, and the one kind of array that is our own.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

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

// An uninitialised array at the start of a cache line.
struct Release {
    void operator()(void* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Release>;

template <class T>
Buffer<T> make_buffer(index n) {
    static_assert(std::is_trivial_v<T>);
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    return Buffer<T>(static_cast<T*>(::operator new[](bytes, std::align_val_t{64})));
}

}  // namespace maxmargin
