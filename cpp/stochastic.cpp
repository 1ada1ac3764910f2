#include "stochastic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace maxmargin {
namespace {

constexpr index kBetweenPolls = 1024;  // steps
constexpr double kSmallFactor = 1e-6;  // of a scaled vector, before it is written out

class Polls {
  public:
    explicit Polls(const Run& run) : run_(run) {}
    void operator()() {
        if (--left_ > 0) return;
        left_ = kBetweenPolls;
        if (run_.poll != nullptr) (*run_.poll)();
    }

  private:
    const Run& run_;
    index left_ = kBetweenPolls;
};

void scale(double factor, double* v, index n) {
    for (index f = 0; f < n; ++f) v[f] *= factor;
}

}  // namespace

// ---- Pegasos ---------------------------------------------------------------------------------

index pegasos(const Design& design, const double* y, Order order, index batch, double lambda,
              bool project, double* w, index t, const Run& run) {
    const index d = design.columns();
    double factor = 1.0, square = 0.0;  // the weights are factor * w, of this squared length
    for (index f = 0; f < d; ++f) square += w[f] * w[f];
    const auto shrink = [&](double by) {
        factor *= by;
        square *= by * by;
        if (factor >= kSmallFactor) return;
        scale(factor, w, d);
        factor = 1.0;
    };
    std::vector<double> z(static_cast<std::size_t>(batch));
    Polls poll(run);
    for (index begin = 0; begin < order.n; begin += batch) {
        const index end = std::min(order.n, begin + batch);
        ++t;
        for (index k = begin; k < end; ++k) z[k - begin] = factor * design.dot(order.rows[k], w);
        shrink(1.0 - 1.0 / static_cast<double>(t));
        const double step = 1.0 / (lambda * static_cast<double>(t * (end - begin)));
        for (index k = begin; k < end; ++k) {
            const index i = order.rows[k];
            if (y[i] * z[k - begin] >= 1.0) continue;
            if (project)  // |w + s x|^2 = |w|^2 + 2 s w.x + s^2 |x|^2
                square +=
                    2.0 * step * y[i] * factor * design.dot(i, w) + step * step * design.norm(i);
            design.axpy(step * y[i] / factor, i, w);
        }
        if (project && square * lambda > 1.0) shrink(1.0 / std::sqrt(square * lambda));
        poll();
    }
    scale(factor, w, d);
    return t;
}

// ---- Averaged subgradients -------------------------------------------------------------------

namespace {

// w = factor u and average = portion (rest + part u), where a step changes u in a few places.
struct Averaged {
    double *u, *rest;
    index d;
    double factor = 1.0, portion = 1.0, part = 0.0;

    void write_out() {
        for (index f = 0; f < d; ++f) {
            rest[f] = portion * (rest[f] + part * u[f]);
            u[f] *= factor;
        }
        factor = portion = 1.0;
        part = 0.0;
    }
    // w counts for this share of the average from now on.
    void count(double share) {
        if (factor < kSmallFactor || portion < kSmallFactor) write_out();
        if (share == 1.0) {
            std::fill_n(rest, d, 0.0);
            portion = 1.0;
            part = factor;
            return;
        }
        portion *= 1.0 - share;
        part += share * factor / portion;
    }
};

}  // namespace

index averaged_sgd(const Design& design, const Loss& loss, const double* y, Order order,
                   const Averaging& how, double* w, double* average, index t, const Run& run) {
    const index d = design.columns();
    // A free constant's weight stays out of the scaled vectors, whose last place is then zero.
    double constant = 0.0, constants = 0.0;
    if (how.free) {
        constant = std::exchange(w[d - 1], 0.0);
        constants = std::exchange(average[d - 1], 0.0);
    }
    Averaged point{w, average, d};
    Polls poll(run);
    for (index k = 0; k < order.n; ++k) {
        const index i = order.rows[k];
        ++t;
        const double z = point.factor * design.dot(i, w) + design.bias() * constant;
        const double slope = at(loss, y[i], z).slope;
        const double step = 2.0 / (how.lambda * (static_cast<double>(t) + how.delay));
        point.factor *= 1.0 - step * how.lambda;
        if (slope != 0.0) {
            const double change = -step * slope / point.factor;
            design.axpy(change, i, w);
            if (point.part != 0.0) design.axpy(-point.part * change, i, average);
            if (how.free) {
                constant -= step * slope * design.bias();
                w[d - 1] = average[d - 1] = 0.0;
            }
        }
        const double share = 2.0 / static_cast<double>(t + 1);
        point.count(share);
        constants += share * (constant - constants);
        poll();
    }
    point.write_out();
    if (how.free) {
        w[d - 1] = constant;
        average[d - 1] = constants;
    }
    return t;
}

// ---- SAGA ------------------------------------------------------------------------------------

namespace {

// A proximal step: to w - drift, softly thresholded, and shrunk.
struct Step {
    double threshold, shrink;

    double once(double w, double drift) const {
        w -= drift;
        return shrink * (std::max(w - threshold, 0.0) + std::min(w + threshold, 0.0));
    }
    // Without a change of sign the step is linear: n of them are a power and a geometric sum.
    double linear(double w, double drift, index n) const {
        const auto steps = static_cast<double>(n);
        if (shrink == 1.0) return w - steps * drift;
        const double power = std::pow(shrink, steps);
        return power * w - drift * shrink * (1.0 - power) / (1.0 - shrink);
    }
    // n steps with the same drift. They go one way, so that a sign that is the same at both ends
    // was never another; where it changes, bisection finds the step.
    double many(double w, double drift, index n) const {
        while (n > 0) {
            if (n == 1) return once(w, drift);
            if (threshold == 0.0) return linear(w, drift, n);
            if (w == 0.0) {
                w = once(w, drift);
                if (w == 0.0) return w;
                --n;
                continue;
            }
            const double all = drift + (w > 0.0 ? threshold : -threshold);
            const auto keeps = [&](index m) { return linear(w, all, m) * w > 0.0; };
            if (keeps(n)) return linear(w, all, n);
            index low = 0, high = n;
            while (high - low > 1) {
                const index middle = low + (high - low) / 2;
                (keeps(middle) ? low : high) = middle;
            }
            if (low > 0) w = linear(w, all, low);
            w = once(w, drift);
            n -= high;
        }
        return w;
    }
};

}  // namespace

void saga(const Design& design, const Loss& loss, const double* y, const double* factor,
          Order order, const Proximal& how, double* w, double* mean, double* slopes,
          const Run& run) {
    const index d = design.columns();
    const auto n = static_cast<double>(design.rows());
    const Step penalised{how.step * how.l1, 1.0 / (1.0 + how.step * how.l2)};
    const Step unpenalised{0.0, 1.0};
    const auto step_of = [&](index f) -> const Step& {
        return how.free && f == d - 1 ? unpenalised : penalised;
    };
    std::vector<index> seen(static_cast<std::size_t>(d));  // steps that a coordinate has taken
    std::vector<index> features(static_cast<std::size_t>(d));
    std::vector<double> values(static_cast<std::size_t>(d));
    Polls poll(run);
    for (index k = 0; k < order.n; ++k) {
        const index i = order.rows[k];
        const index stored = design.entries(i, features.data(), values.data());
        double z = 0.0;
        for (index e = 0; e < stored; ++e) {
            const index f = features[e];
            w[f] = step_of(f).many(w[f], how.step * mean[f], k - seen[f]);
            seen[f] = k + 1;
            z += values[e] * w[f];
        }
        const double slope = at(loss, y[i], z).slope;
        const double change = factor[i] * (slope - slopes[i]);
        slopes[i] = slope;
        for (index e = 0; e < stored; ++e) {
            const index f = features[e];
            w[f] = step_of(f).once(w[f], how.step * (change * values[e] + mean[f]));
            mean[f] += change * values[e] / n;
        }
        poll();
    }
    for (index f = 0; f < d; ++f)
        w[f] = step_of(f).many(w[f], how.step * mean[f], order.n - seen[f]);
}

}  // namespace maxmargin
