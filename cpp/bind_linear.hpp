// What the files bind_linear*.cpp share.
#pragma once

#include "bind.hpp"
#include "design.hpp"

namespace maxmargin {

using Vector = Borrowed<double, 1>;
using Matrix = Borrowed<double, 2>;

inline void check_length(std::size_t length, index n, const char* name) {
    if (static_cast<index>(length) != n)
        throw std::invalid_argument(std::string(name) + ": it has " + std::to_string(length) +
                                    " rows, not " + std::to_string(n));
}

// How to run: threads, and Ctrl-C some ten times a second.
struct Python {
    explicit Python(const nb::object& n_jobs)
        : poll(interruptible()), run{threads(n_jobs), &poll} {}
    std::function<void()> poll;
    Run run;
};

// An array that native code changes: a copy of the one given.
inline NewArray<double> copy_of(const Vector& given) {
    const auto fresh = new_array<double>({static_cast<index>(given.size())});
    std::copy_n(given.data(), given.size(), fresh.data);
    return fresh;
}

}  // namespace maxmargin
