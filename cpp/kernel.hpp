// Which vector kernel, as plain data.
//
//     linear       x.z
//     polynomial   (gamma x.z + coef0)^degree
//     rbf          exp(-gamma |x - z|^2)
//     sigmoid      tanh(gamma x.z + coef0)
//     laplacian    exp(-gamma |x - z|_1)
//
// How a kernel is computed stands in tile_impl.hpp.
#pragma once

#include <cstdint>

namespace maxmargin {

using index = std::int64_t;

struct Kernel {
    enum class Kind { linear, polynomial, rbf, sigmoid, laplacian };
    Kind kind = Kind::linear;
    double gamma = 1.0;
    double coef0 = 0.0;
    int degree = 3;
};

// Whether it is positive semi-definite by construction: on any data, none but the sigmoid's and
// polynomials with a negative part.
inline bool is_positive(const Kernel& kernel) {
    if (kernel.kind == Kernel::Kind::polynomial) return kernel.gamma >= 0 && kernel.coef0 >= 0;
    return kernel.kind != Kernel::Kind::sigmoid;
}

}  // namespace maxmargin
