// What the files of the Python module share: arrays that are borrowed, made and checked. Only
// bind.hpp, bind.cpp and bind_solver.cpp know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "items.hpp"

namespace nb = nanobind;

namespace maxmargin {

template <class T, int dimensions>
using Borrowed = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Indices = Borrowed<index, 1>;

// Keeps a Python object alive for native code, which may let go of it on any thread.
template <class Object>
std::shared_ptr<Object> keep(Object object) {
    return {new Object(std::move(object)), [](Object* kept) {
                const nb::gil_scoped_acquire lock;
                delete kept;  // NOLINT(cppcoreguidelines-owning-memory)
            }};
}

// A new NumPy array, and where its numbers go.
template <class T>
struct NewArray {
    nb::object array;
    T* data;
};

template <class T>
NewArray<T> new_array(std::initializer_list<index> shape) {
    nb::list sizes;
    for (const index n : shape) sizes.append(n);
    const char* type = std::is_same_v<T, float>    ? "float32"
                       : std::is_same_v<T, double> ? "float64"
                                                   : "int64";
    nb::object array = nb::module_::import_("numpy").attr("empty")(nb::tuple(sizes), type);
    return {array, nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(array).data()};
}

inline nb::object index_array(std::span<const index> values) {
    const auto [array, data] = new_array<index>({static_cast<index>(values.size())});
    std::copy(values.begin(), values.end(), data);
    return array;
}

// The indices given, or all n of them; each in range.
inline std::vector<index> checked(const std::optional<Indices>& given, index n, const char* name) {
    if (!given) {
        std::vector<index> all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    const std::vector<index> indices(given->data(), given->data() + given->size());
    for (const index i : indices)
        if (i < 0 || i >= n)
            throw std::out_of_range(std::string(name) + ": " + std::to_string(i) +
                                    " is not the index of one of " + std::to_string(n) + " items");
    return indices;
}

// bind_solver.cpp
void bind_solver(nb::module_& m);

}  // namespace maxmargin
