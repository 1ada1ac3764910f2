// Vectors of doubles, as wide as the instruction set that a file is compiled for.
//
// Included by files that are compiled once per instruction set: see tile.hpp for why everything
// here has internal linkage and nothing is included from the standard library.
#pragma once

#include <cstdint>

#include "data.hpp"

#define MAXMARGIN_INLINE inline __attribute__((always_inline))

namespace maxmargin {
namespace {

#if defined(__AVX512F__)
constexpr int lanes = 8;
#elif defined(__AVX2__)
constexpr int lanes = 4;
#else
constexpr int lanes = 2;
#endif

using Vec = double __attribute__((vector_size(8 * lanes)));
using Floats = float __attribute__((vector_size(4 * lanes)));

MAXMARGIN_INLINE Vec load(const double* p) {
    Vec v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

MAXMARGIN_INLINE Vec load(const float* p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Vec);
}

MAXMARGIN_INLINE void store(double* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }

MAXMARGIN_INLINE void store(float* p, Vec v) {
    const Floats narrow = __builtin_convertvector(v, Floats);
    __builtin_memcpy(p, &narrow, sizeof narrow);
}

}  // namespace
}  // namespace maxmargin
