#include "coordinate_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace maxmargin {
namespace {

constexpr int kSweeps = 1000;         // of a step, at most
constexpr int kBetweenConjugate = 5;  // sweeps that may do without
constexpr index kConjugate = 1000;    // iterations
constexpr int kHalvings = 20;         // of a step's length
constexpr double kEnough = 0.01;      // of the fall that the model promises (Armijo)
constexpr double kRounding = 1e-15;   // of a sum, relative to its terms
constexpr double kVisible = 1e-9;     // of a sum, in the difference of two
constexpr double kLift = 1e-12;       // of the largest curvature, added to all
constexpr double kDamping = 1e-6;     // the same after steps that fail
constexpr double kShort = 0.1;        // steps that make the next one careful

double soft_threshold(double v, double by) { return v > by ? v - by : v < -by ? v + by : 0.0; }

}  // namespace

struct CoordinateNewton::Model {
    std::vector<index> columns;                  // in the data
    std::unique_ptr<Columns> x;                  // sqrt(h) X
    std::vector<double> gradient, curvature, w;  // of the losses; diagonal, l2 included; w + d
    std::vector<double> before;                  // w
    std::vector<double> u;                       // sqrt(h) X d
    double lift = 0.0;
};

CoordinateNewton::CoordinateNewton(const Columns& columns, SparseProblem problem,
                                   std::vector<double> start, std::uint64_t seed, const Run& run)
    : columns_(columns),
      problem_(std::move(problem)),
      n_(columns.rows()),
      last_(columns.columns() - 1),
      w_(std::move(start)),
      z_(static_cast<std::size_t>(n_)),
      c_(static_cast<std::size_t>(n_)),
      h_(static_cast<std::size_t>(n_)),
      random_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du),
      how_(run) {
    for (index j = 0; j <= last_; ++j)
        if (w_[j] != 0.0) columns_.axpy(w_[j], j, z_.data());
}

void CoordinateNewton::set_loss(const Loss& loss) {
    loss_ = loss;
    lent_ = 1.0;
    damping_ = kLift;
    look();
}

void CoordinateNewton::look() {
    losses_ = maxmargin::slopes(loss_, problem_.y.data(), problem_.price.data(), z_.data(), n_,
                                c_.data(), h_.data(), how_);
}

// How far the smallest subgradient is from zero, for the gradient of everything but l1 |w|.
double CoordinateNewton::violation(index j, double w, double gradient) const {
    if (w > 0.0) return std::abs(gradient + l1(j));
    if (w < 0.0) return std::abs(gradient - l1(j));
    return std::max(std::abs(gradient) - l1(j), 0.0);
}

double CoordinateNewton::violation(const std::vector<index>& working) {
    double largest = 0.0;
    for (const index j : working)
        largest =
            std::max(largest, violation(j, w_[j], l2(j) * w_[j] - columns_.dot(j, c_.data())));
    return largest;
}

index CoordinateNewton::descend(const std::vector<index>& working, double target, index most) {
    index steps = 0;
    while (steps < most && step(working, target)) ++steps;
    return steps;
}

// The parabola  slope^2 / (4 value) (s - s0)^2 + ...  lies above a ramp that it touches at s0.
void CoordinateNewton::lend_curvature() {
    const bool hinge = loss_.kind == Loss::Kind::hinge;
    if (!hinge && loss_.kind != Loss::Kind::insensitive) return;
    for (index i = 0; i < n_; ++i) {
        if (h_[i] != 0.0 || c_[i] == 0.0) continue;
        const double y = problem_.y[i];
        const double s = hinge ? 1.0 - y * z_[i] : std::abs(z_[i] - y) - loss_.epsilon;
        h_[i] = lent_ * problem_.price[i] / std::max(2.0 * s - loss_.width, loss_.width);
    }
}

bool CoordinateNewton::step(const std::vector<index>& working, double target) {
    Model model;
    double largest = 0.0;
    for (const index j : working) {
        model.gradient.push_back(-columns_.dot(j, c_.data()));
        largest = std::max(largest, violation(j, w_[j], l2(j) * w_[j] + model.gradient.back()));
        model.w.push_back(w_[j]);
    }
    if (largest <= target) return false;
    lend_curvature();
    std::vector<double> root(h_.size());
    std::transform(h_.begin(), h_.end(), root.begin(), [](double h) { return std::sqrt(h); });
    model.columns = working;
    model.before = model.w;
    model.x = columns_.scaled(working, root.data());
    model.u.assign(static_cast<std::size_t>(model.x->rows()), 0.0);
    for (std::size_t k = 0; k < working.size(); ++k)
        model.curvature.push_back(model.x->norm(static_cast<index>(k)) + l2(working[k]));
    model.lift = damping_ * *std::max_element(model.curvature.begin(), model.curvature.end());
    model.lift = std::max(model.lift, std::numeric_limits<double>::min());
    for (double& curvature : model.curvature) curvature += model.lift;
    minimise(model, std::max(0.5 * target, 0.1 * largest));
    return search(model);
}

void CoordinateNewton::minimise(Model& model, double tol) {
    std::vector<index> everything(model.w.size());
    std::iota(everything.begin(), everything.end(), index{0});
    std::vector<index> active = everything;
    index iterations = 25;
    for (int sweeps = 1; sweeps <= kSweeps; ++sweeps) {
        const bool all = active.size() == everything.size();
        if (sweep(model, active) <= tol) {
            if (all) return;
            active = everything;
        } else if (sweeps % kBetweenConjugate == 0) {
            // Ill-conditioned models need them all at once: what sweeps come between forgets them.
            conjugate(model, iterations);
            iterations = std::min(2 * iterations, kConjugate);
        }
    }
}

// Visits the active coordinates in random order; leaves out those that rest at zero with room to
// spare. Returns the largest violation met.
double CoordinateNewton::sweep(Model& model, std::vector<index>& active) {
    if (how_.poll != nullptr) (*how_.poll)();
    for (std::size_t i = active.size(); i > 1; --i) {  // shuffle (Fisher and Yates)
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        std::swap(active[i - 1], active[random_ % i]);
    }
    double largest = 0.0;
    std::vector<std::pair<index, double>> resting;  // with their room
    for (const index k : active) {
        const index j = model.columns[k];
        const double w = model.w[k], d = w - model.before[k];
        const double g =
            model.gradient[k] + model.x->dot(k, model.u.data()) + l2(j) * w + model.lift * d;
        const double violated = violation(j, w, g);
        if (w == 0.0 && violated == 0.0) {
            resting.emplace_back(k, l1(j) - std::abs(g));
            continue;
        }
        largest = std::max(largest, violated);
        const double h = model.curvature[k];
        const double next = soft_threshold(w - g / h, l1(j) / h);
        if (next == w) continue;
        model.x->axpy(next - w, k, model.u.data());
        model.w[k] = next;
    }
    std::vector<std::uint8_t> out(model.w.size());
    for (const auto& [k, room] : resting) out[k] = room > largest ? 1 : 0;
    std::erase_if(active, [&](index k) { return out[k] != 0; });
    return largest;
}

// Minimises the model over the nonzero coordinates as if their signs stayed, by preconditioned
// conjugate gradients; those that would change sign become zero. Kept if the model falls.
void CoordinateNewton::conjugate(Model& model, index iterations) {
    std::vector<index> some;
    for (std::size_t k = 0; k < model.w.size(); ++k)
        if (model.w[k] != 0.0 || l1(model.columns[k]) == 0.0) some.push_back(static_cast<index>(k));
    const std::size_t m = some.size();
    if (m < 2) return;
    std::vector<double> r(m), y(m), p(m), d(m), Hp(m), image(model.u.size());
    const auto precondition = [&] {
        double rho = 0.0;
        for (std::size_t e = 0; e < m; ++e) {
            y[e] = r[e] / model.curvature[some[e]];
            rho += r[e] * y[e];
        }
        return rho;
    };
    for (std::size_t e = 0; e < m; ++e) {
        const index k = some[e], j = model.columns[k];
        const double w = model.w[k];
        r[e] = -(model.gradient[k] + model.x->dot(k, model.u.data()) + l2(j) * w +
                 model.lift * (w - model.before[k]) +
                 (w > 0.0   ? l1(j)
                  : w < 0.0 ? -l1(j)
                            : 0.0));
    }
    const std::vector<double> slope = r;
    double rho = precondition();
    const double enough = 1e-3 * rho;
    p = y;
    for (index iteration = 0; iteration < iterations && rho > enough; ++iteration) {
        if (how_.poll != nullptr) (*how_.poll)();
        std::fill(image.begin(), image.end(), 0.0);
        for (std::size_t e = 0; e < m; ++e) model.x->axpy(p[e], some[e], image.data());
        double pHp = 0.0;
        for (std::size_t e = 0; e < m; ++e) {
            const index k = some[e];
            Hp[e] = model.x->dot(k, image.data()) + (l2(model.columns[k]) + model.lift) * p[e];
            pHp += p[e] * Hp[e];
        }
        if (!(pHp > 0.0)) break;
        const double a = rho / pHp;
        for (std::size_t e = 0; e < m; ++e) {
            d[e] += a * p[e];
            r[e] -= a * Hp[e];
        }
        const double last = std::exchange(rho, precondition());
        for (std::size_t e = 0; e < m; ++e) p[e] = y[e] + rho / last * p[e];
    }
    // All the way, with those that would change sign at zero; or to where the first one is at zero,
    // up to where the model is sure to fall.
    double first = 1.0;
    for (std::size_t e = 0; e < m; ++e)
        if (l1(model.columns[some[e]]) > 0.0 && d[e] * model.w[some[e]] < 0.0)
            first = std::min(first, -model.w[some[e]] / d[e]);
    double t = 1.0;
    for (int halvings = 0; halvings < 10; ++halvings, t /= 2)
        if (t > first && move_together(model, some, d, slope, t)) return;
    move_together(model, some, d, slope, first);
}

// Moves the coordinates `some` of the model by t d, stopping at zero, if the model falls.
bool CoordinateNewton::move_together(Model& model, const std::vector<index>& some,
                                     const std::vector<double>& d, const std::vector<double>& slope,
                                     double t) const {
    std::vector<double> next(some.size()), q(model.u.size());
    double change = 0.0;
    for (std::size_t e = 0; e < some.size(); ++e) {
        const index k = some[e], j = model.columns[k];
        const double w = model.w[k];
        next[e] =
            l1(j) > 0.0 && d[e] * w < 0.0 && t * d[e] / -w >= 1.0 - kRounding ? 0.0 : w + t * d[e];
        const double step = next[e] - w;
        if (step == 0.0) continue;
        model.x->axpy(step, k, q.data());
        change += step * (-slope[e] + (l2(j) + model.lift) * step / 2);
    }
    change += std::inner_product(q.begin(), q.end(), q.begin(), 0.0) / 2;
    if (!(change < 0.0)) return false;
    for (std::size_t e = 0; e < some.size(); ++e) model.w[some[e]] = next[e];
    for (std::size_t i = 0; i < q.size(); ++i) model.u[i] += q[i];
    return true;
}

// Goes along w(t) = before + t (w - before) until F has fallen by enough of what was promised.
bool CoordinateNewton::search(const Model& model) {
    std::vector<double> q(static_cast<std::size_t>(n_));
    double promised = 0.0;
    // Of the penalty, without the rounding of a difference of squares.
    const auto penalty_change = [&](index j, double from, double to) {
        return l1(j) * (std::abs(to) - std::abs(from)) + l2(j) * (to - from) * (to + from) / 2;
    };
    for (std::size_t k = 0; k < model.w.size(); ++k) {
        const index j = model.columns[k];
        const double from = model.before[k], to = model.w[k];
        if (to == from) continue;
        columns_.axpy(to - from, j, q.data());
        promised += model.gradient[k] * (to - from) + penalty_change(j, from, to);
    }
    if (!(promised < 0.0)) return false;
    const std::vector<double> z = z_, c = c_;
    const double before = losses_;
    const auto at = [&](std::size_t k, double t) {
        const double from = model.before[k], to = model.w[k];
        return t == 1.0 ? to : from + t * (to - from);
    };
    double t = 1.0;
    for (int halvings = 0; halvings < kHalvings; ++halvings, t /= 2) {
        for (index i = 0; i < n_; ++i) z_[i] = z[i] + t * q[i];
        look();
        double change = 0.0;
        for (std::size_t k = 0; k < model.w.size(); ++k)
            if (model.w[k] != model.before[k])
                change += penalty_change(model.columns[k], model.before[k], at(k, t));
        if (-t * promised > kVisible * before) {
            change += losses_ - before;
        } else {  // by the trapezoidal rule, without the rounding of a difference
            for (index i = 0; i < n_; ++i) change -= t * q[i] * (c[i] + c_[i]) / 2;
        }
        if (!(change <= kEnough * t * promised)) continue;
        for (std::size_t k = 0; k < model.w.size(); ++k) w_[model.columns[k]] = at(k, t);
        lent_ = t == 1.0 ? std::max(lent_ / 10, 1e-8) : std::min(lent_ * 10, 1.0);
        if (t == 1.0) damping_ = std::max(damping_ / 10, kLift);
        if (t < kShort) damping_ = std::max(damping_ * 10, kDamping);
        return true;
    }
    z_ = z;
    look();
    // The model knew too little of what bends further away: a shorter step may know enough.
    lent_ = 1.0;
    damping_ = std::max(100 * damping_, kDamping);
    return damping_ < 1.0;
}

}  // namespace maxmargin
