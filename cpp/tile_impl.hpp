// The tiles, written once for every instruction set (see tile.hpp for what comes in).
//
// Vectors run across rows of the right side (panels) or of the left side (compressed rows), never
// across features, so that each element is summed feature by feature in one order. With
// -ffp-contract=fast a product and a sum become one fused operation wherever the processor has it,
// in all functions here alike. That holds for arithmetic on Vec; add_square says it in so many
// words.
//
// Cost: a dense tile does one multiply-add per element and feature, with R x N vectors of sums in
// registers; a sparse one does one per nonzero of the right side and vector of rows. Then comes
// the kernel's function, about 20 operations for an exponential.
#include "tile.hpp"
#include "vec.hpp"

namespace maxmargin {
namespace {

#if defined(__AVX512F__)
constexpr int register_rows = 8;
#else
constexpr int register_rows = 4;
#endif
constexpr int register_columns = 2;  // vectors

using Mask = std::int64_t __attribute__((vector_size(8 * lanes)));  // what comparisons give
using Bits = std::uint64_t __attribute__((vector_size(8 * lanes)));

// The compiler takes a scalar loop apart into products and sums before it looks for what to fuse.
MAXMARGIN_INLINE double add_square(double sum, double x) {
#if defined(__FMA__) || defined(__FP_FAST_FMA)
    return __builtin_fma(x, x, sum);
#else
    return x * x + sum;
#endif
}

// ---- Functions of a vector -------------------------------------------------------------------

template <class To, class From>
MAXMARGIN_INLINE To as(From v) {
    return __builtin_bit_cast(To, v);
}

MAXMARGIN_INLINE Vec where(Mask mask, Vec v) { return as<Vec>(as<Mask>(v) & mask); }

constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

MAXMARGIN_INLINE Vec absolute(Vec v) { return as<Vec>(as<Bits>(v) & ~sign_bit); }

// e^x = scale (1 + p) for -708 <= x <= 0: scale = 2^n with n = round(x / ln 2), and p = e^r - 1
// with r = x - n ln 2 in [-ln 2 / 2, ln 2 / 2], by the Taylor polynomial (remainder 4e-18).
struct Exponential {
    Vec scale, p;
};

MAXMARGIN_INLINE Exponential exponential(Vec x) {
    // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
    constexpr double round = 6755399441055744.0, log2_e = 1.4426950408889634;
    constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const Vec shifted = x * log2_e + round;
    const Vec n = shifted - round;
    const Vec r = (x - n * ln2_high) - n * ln2_low;

    Vec q = r * (1.0 / 6227020800.0) + (1.0 / 479001600.0);  // 1/13!, 1/12!, ...
    q = q * r + (1.0 / 39916800.0);
    q = q * r + (1.0 / 3628800.0);
    q = q * r + (1.0 / 362880.0);
    q = q * r + (1.0 / 40320.0);
    q = q * r + (1.0 / 5040.0);
    q = q * r + (1.0 / 720.0);
    q = q * r + (1.0 / 120.0);
    q = q * r + (1.0 / 24.0);
    q = q * r + (1.0 / 6.0);
    q = q * r + (1.0 / 2.0);
    const Bits exponent = (as<Bits>(shifted) << 52) + (std::uint64_t{1023} << 52);
    return {as<Vec>(exponent), (r * r) * q + r};
}

// e^x for x <= 0; 0 below -708, where the numbers lose their precision.
MAXMARGIN_INLINE Vec exp_negative(Vec x) {
    const Exponential e = exponential(x);
    return where(x >= -708.0, e.scale * e.p + e.scale);
}

// tanh|x| = -m / (m + 2) with m = e^(-2|x|) - 1, which loses nothing near 0; it is 1 from 20 on.
MAXMARGIN_INLINE Vec tanh(Vec x) {
    const Vec size = absolute(x);
    const Mask small = size < 20.0;
    const Exponential e = exponential(-2.0 * (where(small, size) + where(~small, Vec{} + 20.0)));
    const Vec m = e.scale * e.p + (e.scale - 1.0);
    return as<Vec>(as<Bits>(-m / (m + 2.0)) | (as<Bits>(x) & sign_bit));
}

// ---- The kernels: a sum over the features, then a function of it -----------------------------

struct Products {
    static constexpr bool skips_zeros = true;
    template <class Sum, class X, class Z>
    static MAXMARGIN_INLINE Sum step(Sum sum, X x, Z z) {
        return x * z + sum;
    }
};

struct Distances {
    static constexpr bool skips_zeros = false;
    template <class X>
    static MAXMARGIN_INLINE Vec step(Vec sum, X x, Vec z) {
        return sum + absolute(x - z);
    }
};

struct SquaredDistances {
    static constexpr bool skips_zeros = false;
    template <class X>
    static MAXMARGIN_INLINE Vec step(Vec sum, X x, Vec z) {
        const Vec difference = x - z;
        return difference * difference + sum;
    }
};

struct Linear : Products {
    explicit Linear(const Kernel&) {}
    // + 0.0: a sum that underflowed to -0 is 0, as it is when zeros are added to it.
    MAXMARGIN_INLINE Vec operator()(Vec xz) const { return xz + 0.0; }
};

struct Polynomial : Products {
    explicit Polynomial(const Kernel& k) : gamma(k.gamma), coef0(k.coef0), degree(k.degree) {}
    MAXMARGIN_INLINE Vec operator()(Vec xz) const {
        Vec square = gamma * xz + coef0, power = Vec{} + 1.0;
        for (int d = degree; d > 0; d /= 2) {
            if (d % 2 == 1) power *= square;
            square *= square;
        }
        return power;
    }
    double gamma, coef0;
    int degree;
};

struct Rbf : SquaredDistances {
    explicit Rbf(const Kernel& k) : gamma(k.gamma) {}
    MAXMARGIN_INLINE Vec operator()(Vec distance) const { return exp_negative(-gamma * distance); }
    double gamma;
};

// Against compressed rows: |x|^2 + |z|^2 - 2 x.z costs nothing for a feature that z has not. It
// loses digits where |x - z| is small beside |x|, so it is not for rows far from the origin; rows
// that are mostly zeros are near it.
struct SparseRbf : Products {
    explicit SparseRbf(const Kernel& k) : gamma(k.gamma) {}
    MAXMARGIN_INLINE Vec operator()(Vec xz, Vec xx, Vec zz) const {
        const Vec distance = (xx + zz) - 2.0 * xz;
        return exp_negative(-gamma * where(distance > 0.0, distance));
    }
    double gamma;
};

struct Sigmoid : Products {
    explicit Sigmoid(const Kernel& k) : gamma(k.gamma), coef0(k.coef0) {}
    MAXMARGIN_INLINE Vec operator()(Vec xz) const { return tanh(gamma * xz + coef0); }
    double gamma, coef0;
};

struct Laplacian : Distances {
    explicit Laplacian(const Kernel& k) : gamma(k.gamma) {}
    MAXMARGIN_INLINE Vec operator()(Vec distance) const { return exp_negative(-gamma * distance); }
    double gamma;
};

// The kernel's function of a sum and, where it takes them, of the squared norms.
template <class K>
MAXMARGIN_INLINE Vec value(const K& k, Vec sum, Vec xx, Vec zz) {
    if constexpr (requires { k(sum, xx, zz); })
        return k(sum, xx, zz);
    else
        return k(sum);
}

enum class Right { dense, sparse };

template <Right right, class F>
void visit(const Kernel& kernel, const F& f) {
    switch (kernel.kind) {
        case Kernel::Kind::linear:
            return f(Linear(kernel));
        case Kernel::Kind::polynomial:
            return f(Polynomial(kernel));
        case Kernel::Kind::rbf:
            if constexpr (right == Right::sparse)
                return f(SparseRbf(kernel));
            else
                return f(Rbf(kernel));
        case Kernel::Kind::sigmoid:
            return f(Sigmoid(kernel));
        case Kernel::Kind::laplacian:
            return f(Laplacian(kernel));
    }
}

// ---- Dense right side ------------------------------------------------------------------------

// R rows against N vectors of columns of one panel. Of the results those of columns from <= c < to
// are kept (out is where column 0 would go).
template <int R, int N, class K, class T, class Out>
MAXMARGIN_INLINE void micro_tile(const K& k, const double* x, const T* z, index dimension, Out* out,
                                 index stride, index from, index to) {
    Vec sum[R][N] = {};
    for (index f = 0; f < dimension; ++f, x += row_block, z += panel_width) {
        Vec column[N];
        for (int v = 0; v < N; ++v) column[v] = load(z + v * lanes);
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < N; ++v) sum[r][v] = K::step(sum[r][v], x[r], column[v]);
    }
    const bool whole = from <= 0 && to >= N * lanes;
    for (int r = 0; r < R; ++r) {
        Out edge[N * lanes];
        Out* const row = whole ? out + r * stride : edge;
        for (int v = 0; v < N; ++v) store(row + v * lanes, k(sum[r][v]));
        if (!whole)
            for (index c = from > 0 ? from : 0; c < to && c < N * lanes; ++c)
                out[r * stride + c] = edge[c];
    }
}

template <class K, class T, class Out>
void panel_tile(const K& k, const RowBlock& x, const Panels<T>& z, const Target<Out>& target) {
    constexpr int width = register_columns * lanes;
    for (index first = target.begin / panel_width * panel_width; first < target.end;
         first += panel_width) {
        const T* panel = z.values + first * z.dimension;
        const index from = target.begin - first, to = target.end - first;
        index r = 0;
        for (; r + register_rows <= x.n_rows; r += register_rows)
            for (index c = 0; c < panel_width; c += width)
                if (c < to && c + width > from)
                    micro_tile<register_rows, register_columns>(
                        k, x.values + r, panel + c, z.dimension,
                        target.out + r * target.stride + (first + c - target.begin), target.stride,
                        from - c, to - c);
        for (; r < x.n_rows; ++r)
            micro_tile<1, panel_width / lanes>(
                k, x.values + r, panel, z.dimension,
                target.out + r * target.stride + (first - target.begin), target.stride, from, to);
    }
}

template <class T>
void side_norms(const Panels<T>& z, double* out) {
    for (index first = 0; first < z.size; first += panel_width)
        for (int v = 0; v < panel_width; v += lanes) {
            const T* column = z.values + first * z.dimension + v;
            Vec sum = {};
            for (index f = 0; f < z.dimension; ++f, column += panel_width)
                sum = Products::step(sum, load(column), load(column));
            store(out + first + v, sum);
        }
}

// ---- Sparse right side -----------------------------------------------------------------------

// The sums of N vectors of rows against one compressed row. Where zeros matter, the features of
// both are merged; adding the zeros of the other rows of the block changes nothing.
template <class K, int N, class T, class I>
MAXMARGIN_INLINE void sparse_sums(Vec (&sum)[N], const RowBlock& x, const Csr<T, I>& z, index c) {
    const auto add = [&](index entry, double value) {
        for (int v = 0; v < N; ++v)
            sum[v] = K::step(sum[v], value, load(x.values + entry * row_block + v * lanes));
    };
    index entry = 1;
    for (index k = z.starts[c]; k < z.starts[c + 1]; ++k) {
        const index feature = z.indices[k];
        if constexpr (!K::skips_zeros)
            while (x.feature[entry] < feature) add(entry++, 0.0);
        add(x.slot[feature], z.values[k]);
        if constexpr (!K::skips_zeros) entry += x.feature[entry] == feature;
    }
    if constexpr (!K::skips_zeros)
        while (entry <= x.n_entries) add(entry++, 0.0);
}

template <int N, class K, class T, class I, class Out>
void csr_tile_of(const K& k, const RowBlock& x, const Csr<T, I>& z, const double* norms,
                 const Target<Out>& target) {
    for (index c = target.begin; c < target.end; ++c) {
        Vec sum[N] = {};
        sparse_sums<K>(sum, x, z, c);
        Out column[N * lanes];
        for (int v = 0; v < N; ++v)
            store(column + v * lanes,
                  value(k, sum[v], load(x.norms + v * lanes), Vec{} + norms[c]));
        for (index r = 0; r < x.n_rows; ++r)
            target.out[r * target.stride + (c - target.begin)] = column[r];
    }
}

template <class K, class T, class I, class Out>
void csr_tile(const K& k, const RowBlock& x, const Csr<T, I>& z, const double* norms,
              const Target<Out>& target) {
    if (x.n_rows <= lanes)
        csr_tile_of<1>(k, x, z, norms, target);
    else
        csr_tile_of<row_block / lanes>(k, x, z, norms, target);
}

template <class T, class I>
void side_norms(const Csr<T, I>& z, double* out) {
    for (index c = 0; c < z.rows; ++c) {
        double sum = 0.0;
        for (index k = z.starts[c]; k < z.starts[c + 1]; ++k) sum = add_square(sum, z.values[k]);
        out[c] = sum;
    }
}

// ---- The table -------------------------------------------------------------------------------

template <class Out, class T>
void side_tile(const Kernel& kernel, const RowBlock& x, const Panels<T>& z, const double*,
               const Target<Out>& target) {
    visit<Right::dense>(kernel, [&](const auto& k) { panel_tile(k, x, z, target); });
}

template <class Out, class T, class I>
void side_tile(const Kernel& kernel, const RowBlock& x, const Csr<T, I>& z, const double* norms,
               const Target<Out>& target) {
    visit<Right::sparse>(kernel, [&](const auto& k) { csr_tile(k, x, z, norms, target); });
}

void diagonal(const Kernel& kernel, const double* norms, index n, double* out) {
    visit<Right::dense>(kernel, [&](const auto& k) {
        for (index i = 0; i < n; i += lanes)
            store(out + i, k(k.skips_zeros ? load(norms + i) : Vec{}));
    });
}

// 32 partial sums, at every instruction set, then these in order, then what is left over.
double dot(const double* a, const double* b, index n) {
    constexpr int chains = 32 / lanes;
    Vec sum[chains] = {};
    index i = 0;
    for (; i + 32 <= n; i += 32)
        for (int v = 0; v < chains; ++v)
            sum[v] = Products::step(sum[v], load(a + i + v * lanes), load(b + i + v * lanes));
    double total = 0.0;
    for (const Vec chain : sum)
        for (int lane = 0; lane < lanes; ++lane) total += chain[lane];
    for (; i < n; ++i) total = Products::step(total, a[i], b[i]);
    return total;
}

template <class Side>
constexpr TileFunctions<Side> functions() {
    return {side_norms, side_tile<float>, side_tile<double>};
}

// Constant, so that nothing of this file runs before the processor was asked.
constexpr TileTable table{functions<Panels<float>>(),
                          functions<Panels<double>>(),
                          functions<Csr<float, std::int32_t>>(),
                          functions<Csr<float, std::int64_t>>(),
                          functions<Csr<double, std::int32_t>>(),
                          functions<Csr<double, std::int64_t>>(),
                          diagonal,
                          dot};

}  // namespace
}  // namespace maxmargin
