#include "coordinate_descent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "dots.hpp"

namespace maxmargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr index kBetweenPolls = 1024;  // rows

}  // namespace

CoordinateDescent::CoordinateDescent(const Design& design, CoordinateProblem problem,
                                     std::vector<double> start, std::vector<double> weights,
                                     bool shrinking, std::uint64_t seed, const Run& run)
    : design_(design),
      problem_(std::move(problem)),
      n_(design.rows()),
      k_(problem_.k),
      width_(k_ == 1 ? 1 : (k_ + output_block - 1) / output_block * output_block),
      c_(std::move(start)),
      weights_(static_cast<std::size_t>(design.columns() * width_)),
      norms_(static_cast<std::size_t>(n_)),
      offset_(static_cast<std::size_t>(k_)),
      active_(static_cast<std::size_t>(n_ * k_), 1),
      rows_(static_cast<std::size_t>(n_)),
      bound_(static_cast<std::size_t>(k_), kInfinity),
      largest_(static_cast<std::size_t>(k_)),
      frozen_(static_cast<std::size_t>(k_)),
      shrinking_(shrinking),
      random_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du),
      how_(run) {
    std::iota(rows_.begin(), rows_.end(), index{0});
    design.norms(norms_.data(), run);
    if (weights.empty() && std::any_of(c_.begin(), c_.end(), [](double c) { return c != 0.0; })) {
        weights.resize(static_cast<std::size_t>(design.columns() * k_));
        design.combine(c_.data(), k_, weights.data(), run);
    }
    if (weights.empty()) return;
    for (index f = 0; f < design.columns(); ++f)
        std::copy_n(weights.data() + f * k_, k_, weights_.data() + f * width_);
}

bool CoordinateDescent::run(index visits, double tol) {
    for (index seen = 0; seen < visits;) {
        seen += static_cast<index>(rows_.size());
        sweep();
        if (std::all_of(largest_.begin(), largest_.end(), [&](double v) { return v <= tol; }))
            return true;
    }
    return false;
}

void CoordinateDescent::sweep() {
    std::fill(largest_.begin(), largest_.end(), 0.0);
    for (std::size_t i = rows_.size(); i > 1; --i) {  // shuffle (Fisher and Yates)
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        std::swap(rows_[i - 1], rows_[random_ % i]);
    }
    std::vector<double> z(static_cast<std::size_t>(width_)), step(static_cast<std::size_t>(width_));
    index until_poll = kBetweenPolls;
    for (const index i : rows_) {
        if (--until_poll == 0) {
            until_poll = kBetweenPolls;
            if (how_.poll != nullptr) (*how_.poll)();
        }
        if (k_ == 1) {
            const double delta = visit(i, 0, design_.dot(i, weights_.data()));
            if (delta != 0.0) design_.axpy(delta, i, weights_.data());
            continue;
        }
        design_.dots(i, weights_.data(), width_, z.data());
        bool moved = false;
        for (index j = 0; j < k_; ++j) {
            step[j] = active_[i * k_ + j] != 0 ? visit(i, j, z[j]) : 0.0;
            moved |= step[j] != 0.0;
        }
        if (moved) design_.axpys(step.data(), i, weights_.data(), width_);
    }
    ++sweeps_;
    if (!shrinking_ || problem_.logistic) return;
    for (index j = 0; j < k_; ++j) bound_[j] = largest_[j] > 0.0 ? largest_[j] : kInfinity;
    std::erase_if(rows_, [&](index i) {
        const auto* const active = active_.data() + i * k_;
        return std::all_of(active, active + k_, [](std::uint8_t a) { return a == 0; });
    });
}

// g, and what the kink of epsilon |c| makes of it on either side.
CoordinateDescent::Slopes CoordinateDescent::slopes(index at, double z) const {
    const double c = c_[at];
    double g = z;
    if (!problem_.linear.empty()) g += problem_.linear[at];
    if (!problem_.ridge.empty()) g += problem_.ridge[at] * c;
    const double e = problem_.epsilon;
    return {c >= 0.0 ? g + e : g - e, c > 0.0 ? g + e : g - e};
}

double CoordinateDescent::violation(index at, Slopes slope) const {
    if (slope.right < 0.0 && c_[at] < problem_.upper[at]) return -slope.right;
    if (slope.left > 0.0 && c_[at] > problem_.lower[at]) return slope.left;
    return 0.0;
}

// How far the slopes are from letting a settled coordinate move.
double CoordinateDescent::room(index at, Slopes slope) const {
    const double right = c_[at] < problem_.upper[at] ? slope.right : kInfinity;
    const double left = c_[at] > problem_.lower[at] ? -slope.left : kInfinity;
    return std::min(right, left);
}

// Moves coordinate (i, j), and returns by how much.
double CoordinateDescent::visit(index i, index j, double z) {
    const index at = i * k_ + j;
    z += offset_[j];
    if (problem_.logistic) return logistic_visit(at, z, norms_[i]);
    const Slopes slope = slopes(at, z);
    const double violated = violation(at, slope);
    if (violated == 0.0) {
        if (room(at, slope) > bound_[j]) active_[at] = 0;
        return 0.0;
    }
    largest_[j] = std::max(largest_[j], violated);
    const double before = c_[at];
    double curvature = norms_[i];
    if (!problem_.ridge.empty()) curvature += problem_.ridge[at];
    curvature = std::max(curvature, 1e-12);
    // Downhill to the end of the box, or to the kink at zero and, where that is still downhill,
    // beyond it.
    const double g = slope.right < 0.0 ? slope.right : slope.left;
    double c = before - g / curvature;
    if (problem_.epsilon > 0.0 && before != 0.0 && (c > 0.0) != (before > 0.0)) {
        const double beyond = c + (before > 0.0 ? 2.0 : -2.0) * problem_.epsilon / curvature;
        c = (beyond > 0.0) != (before > 0.0) ? beyond : 0.0;
    }
    c = std::clamp(c, problem_.lower[at], problem_.upper[at]);
    c_[at] = c;
    return c - before;
}

// minimise  |x|^2 (a - a0)^2 / 2 + y z (a - a0) + a log a + (s - a) log(s - a)  over 0 < a < s, for
// a = y c. Newton's method in the variable that is nearer to its end (Yu et al. 2011, algorithm 4).
double CoordinateDescent::logistic_visit(index at, double z, double norm) {
    const double y = problem_.upper[at] > 0.0 ? 1.0 : -1.0;
    const double s = y > 0.0 ? problem_.upper[at] : -problem_.lower[at];
    const double before = y * c_[at];
    const auto slope_at = [&](double a) {
        return norm * (a - before) + y * z + std::log(a / (s - a));
    };
    const double first = slope_at(before);
    const index j = at % k_;
    largest_[j] = std::max(largest_[j], std::abs(first) * std::min(1.0, before * (s - before) / s));
    // With the nearer end as the origin, t > 0 is small; the sign turns the slope with it.
    const bool from_zero = norm * (s / 2 - before) + y * z >= 0.0;  // the minimum is below s / 2
    double t = from_zero ? before : s - before;
    if (t > s / 2) t = 0.1 * t;
    for (int newton = 0; newton < 100; ++newton) {
        const double a = from_zero ? t : s - t;
        const double g = from_zero ? slope_at(a) : -slope_at(a);
        if (std::abs(g) < 1e-12 * (1.0 + std::abs(first))) break;
        const double h = norm + s / (t * (s - t));
        const double next = t - g / h;
        const double kept = next > 0.0 ? std::min(next, 0.5 * (t + s)) : 0.1 * t;
        if (kept == t) break;
        t = kept;
    }
    const double least = 1e-300 + s * 1e-16;
    t = std::clamp(t, least, s - least);
    const double a = from_zero ? t : s - t;
    c_[at] = y * a;
    return y * (a - before);
}

std::vector<double> CoordinateDescent::look(const double* scores, double tol) {
    std::vector<double> worst(static_cast<std::size_t>(k_));
    rows_.clear();
    for (index i = 0; i < n_; ++i) {
        bool any = false;
        for (index j = 0; j < k_; ++j) {
            const index at = i * k_ + j;
            bool live = frozen_[j] == 0;
            if (live && !problem_.logistic) {
                const Slopes slope = slopes(at, scores[at] + offset_[j]);
                const double violated = violation(at, slope);
                worst[j] = std::max(worst[j], violated);
                if (shrinking_ && violated == 0.0)
                    live = room(at, slope) <= std::max(tol, std::min(bound_[j], 1.0));
            }
            active_[at] = live ? 1 : 0;
            any |= live;
        }
        if (any) rows_.push_back(i);
    }
    return worst;
}

void CoordinateDescent::freeze(index j) {
    frozen_[j] = 1;
    largest_[j] = 0.0;
    for (index i = 0; i < n_; ++i) active_[i * k_ + j] = 0;
}

void CoordinateDescent::weights(double* out) const {
    for (index f = 0; f < design_.columns(); ++f)
        std::copy_n(weights_.data() + f * width_, k_, out + f * k_);
}

index CoordinateDescent::active() const {
    return std::count(active_.begin(), active_.end(), std::uint8_t{1});
}

}  // namespace maxmargin
