// The row functions, written once for every instruction set (see dots.hpp).
//
// Dense rows are summed by vectors along the features, compressed ones in four scalar chains, which
// hide the latency of the additions. Cost: one multiply-add per stored value (and problem).
#include "dots.hpp"
#include "vec.hpp"

namespace maxmargin {
namespace {

constexpr int chains = 4;

// ---- One problem -----------------------------------------------------------------------------

template <class T>
double dot(const RowView<T, Everything>& x, const double* w) {
    Vec sum[chains] = {};
    index f = 0;
    for (; f + chains * lanes <= x.n; f += chains * lanes)
        for (int c = 0; c < chains; ++c)
            sum[c] += load(x.values + f + c * lanes) * load(w + f + c * lanes);
    for (; f + lanes <= x.n; f += lanes) sum[0] += load(x.values + f) * load(w + f);
    const Vec all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    double total = 0.0;
    for (int lane = 0; lane < lanes; ++lane) total += all[lane];
    for (; f < x.n; ++f) total += static_cast<double>(x.values[f]) * w[f];
    return total;
}

template <class T, class I>
double dot(const RowView<T, I>& x, const double* w) {
    double sum[chains] = {};
    index k = 0;
    for (; k + chains <= x.n; k += chains)
        for (int c = 0; c < chains; ++c)
            sum[c] += static_cast<double>(x.values[k + c]) * w[x.indices[k + c]];
    for (; k < x.n; ++k) sum[0] += static_cast<double>(x.values[k]) * w[x.indices[k]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T>
void axpy(double a, const RowView<T, Everything>& x, double* w) {
    index f = 0;
    for (; f + lanes <= x.n; f += lanes) store(w + f, load(w + f) + a * load(x.values + f));
    for (; f < x.n; ++f) w[f] += a * static_cast<double>(x.values[f]);
}

template <class T, class I>
void axpy(double a, const RowView<T, I>& x, double* w) {
    for (index k = 0; k < x.n; ++k) w[x.indices[k]] += a * static_cast<double>(x.values[k]);
}

// ---- k problems ------------------------------------------------------------------------------

template <class T>
MAXMARGIN_INLINE index feature(const RowView<T, Everything>&, index k) {
    return k;
}

template <class T, class I>
MAXMARGIN_INLINE index feature(const RowView<T, I>& x, index k) {
    return x.indices[k];
}

template <class T, class I>
void dots(const RowView<T, I>& x, const double* W, index k, double* out) {
    constexpr int vectors = output_block / lanes;
    for (index j = 0; j < k; j += output_block) {
        Vec even[vectors] = {}, odd[vectors] = {};
        index e = 0;
        for (; e + 2 <= x.n; e += 2) {
            const double* const a = W + feature(x, e) * k + j;
            const double* const b = W + feature(x, e + 1) * k + j;
            for (int v = 0; v < vectors; ++v) {
                even[v] += static_cast<double>(x.values[e]) * load(a + v * lanes);
                odd[v] += static_cast<double>(x.values[e + 1]) * load(b + v * lanes);
            }
        }
        if (e < x.n)
            for (int v = 0; v < vectors; ++v)
                even[v] +=
                    static_cast<double>(x.values[e]) * load(W + feature(x, e) * k + j + v * lanes);
        for (int v = 0; v < vectors; ++v) store(out + j + v * lanes, even[v] + odd[v]);
    }
}

template <class T, class I>
void axpys(const double* a, const RowView<T, I>& x, double* W, index k) {
    for (index e = 0; e < x.n; ++e) {
        double* const w = W + feature(x, e) * k;
        const auto value = static_cast<double>(x.values[e]);
        for (index j = 0; j < k; j += lanes) store(w + j, load(w + j) + value * load(a + j));
    }
}

// ---- Second moments --------------------------------------------------------------------------

void outer(const double* x, const double* price, index d, double* H, index m) {
    const double *x0 = x, *x1 = x0 + d, *x2 = x1 + d, *x3 = x2 + d;
    for (index a = 0; a < d; ++a) {
        const double s0 = price[0] * x0[a], s1 = price[1] * x1[a];
        const double s2 = price[2] * x2[a], s3 = price[3] * x3[a];
        double* const out = H + a * m;
        index b = a;
        for (; b + lanes <= d; b += lanes)
            store(out + b, load(out + b) + ((s0 * load(x0 + b) + s1 * load(x1 + b)) +
                                            (s2 * load(x2 + b) + s3 * load(x3 + b))));
        for (; b < d; ++b) out[b] += (s0 * x0[b] + s1 * x1[b]) + (s2 * x2[b] + s3 * x3[b]);
    }
}

// ---- The table -------------------------------------------------------------------------------

template <class T, class I>
constexpr RowFunctions<T, I> functions_of() {
    return {dot, axpy, dots, axpys};
}

constexpr DotTable dot_table{functions_of<float, Everything>(),
                             functions_of<double, Everything>(),
                             functions_of<float, std::int32_t>(),
                             functions_of<float, std::int64_t>(),
                             functions_of<double, std::int32_t>(),
                             functions_of<double, std::int64_t>(),
                             outer};

}  // namespace
}  // namespace maxmargin
