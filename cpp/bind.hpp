// What the files of the Python module share: arrays that are borrowed, made and checked. Only
// files named bind* know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <functional>
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

// The number of threads that an n_jobs stands for; Python knows the rules (threads.py).
inline int threads(const nb::object& n_jobs) {
    return nb::cast<int>(
        nb::module_::import_("maxmargin.threads").attr("effective_threads")(n_jobs));
}

// Lets Python handle its signals (Ctrl-C) some ten times a second.
inline std::function<void()> interruptible() {
    using clock = std::chrono::steady_clock;
    return [last = clock::now()]() mutable {
        if (clock::now() - last < std::chrono::milliseconds(100)) return;
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        last = clock::now();
    };
}

// What would send native code astray: rows that do not follow each other, columns out of range.
template <class T, class I>
Csr<T, I> checked_csr(const Borrowed<T, 1>& values, const Borrowed<I, 1>& indices,
                      const Borrowed<I, 1>& starts, index n_features) {
    if (starts.size() == 0 || values.size() != indices.size() || n_features < 0)
        throw std::invalid_argument("X: the arrays of the CSR matrix do not fit together");
    const Csr<T, I> x{values.data(), indices.data(), starts.data(),
                      static_cast<index>(starts.size()) - 1, n_features};
    const auto nonzeros = static_cast<index>(values.size());
    const nb::gil_scoped_release unlocked;
    bool valid = x.starts[0] == 0 && x.starts[x.rows] == nonzeros;
    for (index i = 0; valid && i < x.rows; ++i)
        valid = x.starts[i] <= x.starts[i + 1] && x.starts[i + 1] <= nonzeros;
    for (index i = 0; valid && i < x.rows; ++i) {
        index last = -1;
        for (index k = x.starts[i]; valid && k < x.starts[i + 1]; last = x.indices[k++])
            valid = x.indices[k] > last && x.indices[k] < x.columns;
    }
    if (!valid)
        throw std::invalid_argument(
            "X: not a CSR matrix with sorted, unique column indices (see sum_duplicates)");
    return x;
}

// bind_solver.cpp
void bind_solver(nb::module_& m);
// bind_linear.cpp
void bind_linear(nb::module_& m);
// bind_svmlight.cpp
void bind_svmlight(nb::module_& m);
// bind_perceptron.cpp
void bind_perceptron(nb::module_& m);
// bind_stochastic.cpp
void bind_stochastic(nb::module_& m);
// bind_descents.cpp
void bind_descents(nb::module_& m);
// bind_coordinate_newton.cpp
void bind_coordinate_newton(nb::module_& m);

}  // namespace maxmargin
