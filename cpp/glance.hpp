// What the strategies share: the steps, and all gradients at a glance.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "solver.hpp"

namespace maxmargin {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// ------------------------------------------------------------------ steps (Platt 1999)

// c_i grows and c_j shrinks by the same t >= 0: the vertex of a parabola, cut to the box.
inline void pair_step(const View& view, index i, index j, double slope, double curvature,
                      Move& move) {
    const Part& part = view.part;
    const double room_i = part.upper[i] - part.c[i], room_j = part.c[j] - part.lower[j];
    const double t = std::min({slope / curvature, room_i, room_j});
    move.variables = {i, j};
    move.values = {t == room_i ? part.upper[i] : part.c[i] + t,
                   t == room_j ? part.lower[j] : part.c[j] - t};
}

inline void single_step(const View& view, index i, double gradient, Move& move) {
    const Part& part = view.part;
    const double c = part.c[i] - gradient / view.curvature(i);
    move.variables = {i};
    move.values = {std::clamp(c, part.lower[i], part.upper[i])};
}

// How much a variable without a group may gain: -G where it can follow, else 0.
inline double pull(const Part& part, index i, double gradient) {
    return (gradient < 0 ? part.up(i) : part.down(i)) ? -gradient : 0.0;
}

// ------------------------------------------------------------------ all gradients at a glance

// The gradient of every variable, and of each group the smallest that may grow and the largest that
// may shrink. Ties go to the last index, as in LIBSVM.
struct Glance {
    std::vector<double> gradient, low, high;
    std::vector<index> grow, shrink;
    double violation = 0;
    index group = -1;   // the worst one, or
    index single = -1;  // the worst variable without a group

    void look(const View& view) {
        const Part& part = view.part;
        view.scores.complete();
        gradient.resize(part.size());
        low.assign(part.groups, kInfinity);
        high.assign(part.groups, -kInfinity);
        grow.assign(part.groups, -1);
        shrink.assign(part.groups, -1);
        violation = 0;
        group = single = -1;
        for (index v = 0; v < part.size(); ++v) {
            const double g = gradient[v] = part.gradient(v);
            const index of = part.group[v];
            if (of < 0) {
                if (const double size = std::abs(pull(part, v, g)); size >= violation) {
                    violation = size;
                    single = v;
                }
                continue;
            }
            if (g <= low[of] && part.up(v)) {
                low[of] = g;
                grow[of] = v;
            }
            if (g >= high[of] && part.down(v)) {
                high[of] = g;
                shrink[of] = v;
            }
        }
        for (index of = 0; of < part.groups; ++of) {
            if (grow[of] < 0 || shrink[of] < 0 || high[of] - low[of] < violation) continue;
            violation = high[of] - low[of];
            group = of;
            single = -1;
        }
    }

    // The middle of what the conditions allow, which no violator is on the right side of.
    double rho(index of) const { return of < 0 ? 0.0 : (low[of] + high[of]) / 2; }
};

// ------------------------------------------------------------------ the strategies of blocks.cpp

std::unique_ptr<Strategy> make_block(const StrategySpec& spec);
std::unique_ptr<Strategy> make_group();

}  // namespace maxmargin
