#include "loss.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pool.hpp"

namespace maxmargin {
namespace {

constexpr index kRows = 8192;  // of a block

// A function that is 0 up to 0, then s^2 / (2 width) up to `width`, then s - width / 2.
struct Ramp {
    double width;
    Local operator()(double s) const {
        if (s <= 0.0) return {};
        if (s >= width) return {s - width / 2, 1.0, 0.0};
        const double a = s / width;
        return {a * s / 2, a, 1.0 / width};
    }
};

// Each takes the target and the score, and gives the loss as a function of the score.
struct Hinge {
    Ramp ramp;
    Local operator()(double y, double z) const {
        const Local at = ramp(1.0 - y * z);
        return {at.value, -y * at.slope, at.curvature};
    }
};

struct SquaredHinge {
    Local operator()(double y, double z) const {
        const double s = 1.0 - y * z;
        return s > 0.0 ? Local{s * s, -2.0 * y * s, 2.0} : Local{};
    }
};

struct Logistic {
    Local operator()(double y, double z) const {
        const double m = y * z, e = std::exp(-std::abs(m));
        const double wrong = (m > 0.0 ? e : 1.0) / (1.0 + e);  // probability of the other class
        return {std::log1p(e) + std::max(-m, 0.0), -y * wrong, wrong * (1.0 - wrong)};
    }
};

struct Squared {
    Local operator()(double y, double z) const {
        const double r = z - y;
        return {r * r / 2, r, 1.0};
    }
};

struct Insensitive {
    Ramp ramp;
    double epsilon;
    Local operator()(double y, double z) const {
        const double r = z - y;
        const Local at = ramp(std::abs(r) - epsilon);
        return {at.value, r > 0.0 ? at.slope : -at.slope, at.curvature};
    }
};

struct SquaredInsensitive {
    double epsilon;
    Local operator()(double y, double z) const {
        const double r = z - y, s = std::abs(r) - epsilon;
        return s > 0.0 ? Local{s * s, r > 0.0 ? 2.0 * s : -2.0 * s, 2.0} : Local{};
    }
};

template <class F>
auto visit(const Loss& loss, const F& f) {
    switch (loss.kind) {
        case Loss::Kind::hinge:
            return f(Hinge{{loss.width}});
        case Loss::Kind::squared_hinge:
            return f(SquaredHinge{});
        case Loss::Kind::logistic:
            return f(Logistic{});
        case Loss::Kind::squared:
            return f(Squared{});
        case Loss::Kind::insensitive:
            return f(Insensitive{{loss.width}, loss.epsilon});
        case Loss::Kind::squared_insensitive:
            break;
    }
    return f(SquaredInsensitive{loss.epsilon});
}

// The sum over blocks of what `part(begin, end)` says of each.
template <class F>
Local sum_of_blocks(index n, const Run& run, const F& part) {
    std::vector<Local> parts(static_cast<std::size_t>((n + kRows - 1) / kRows));
    pool().run(
        static_cast<index>(parts.size()), run.threads,
        [&](index block) { parts[block] = part(block * kRows, std::min(n, (block + 1) * kRows)); },
        run.poll);
    Local sum;
    for (const Local& each : parts) {
        sum.value += each.value;
        sum.slope += each.slope;
        sum.curvature += each.curvature;
    }
    return sum;
}

}  // namespace

Local at(const Loss& loss, double y, double z) {
    return visit(loss, [&](const auto& f) { return f(y, z); });
}

double slopes(const Loss& loss, const double* y, const double* price, const double* z, index n,
              double* c, double* h, const Run& run) {
    return visit(loss, [&](const auto& f) {
        return sum_of_blocks(n, run,
                             [&](index begin, index end) {
                                 Local sum;
                                 for (index i = begin; i < end; ++i) {
                                     const Local at = f(y[i], z[i]);
                                     c[i] = -price[i] * at.slope;
                                     h[i] = price[i] * at.curvature;
                                     sum.value += price[i] * at.value;
                                 }
                                 return sum;
                             })
            .value;
    });
}

Local along(const Loss& loss, const double* y, const double* price, const double* z,
            const double* q, double t, index n, const Run& run) {
    return visit(loss, [&](const auto& f) {
        return sum_of_blocks(n, run, [&](index begin, index end) {
            Local sum;
            for (index i = begin; i < end; ++i) {
                const Local at = f(y[i], z[i] + t * q[i]);
                sum.value += price[i] * at.value;
                sum.slope += price[i] * at.slope * q[i];
                sum.curvature += price[i] * at.curvature * q[i] * q[i];
            }
            return sum;
        });
    });
}

}  // namespace maxmargin
