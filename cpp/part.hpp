// A part of the quadratic problem: the variables that a solver moves, all others held fixed.
//
//     minimise 1/2 c'(Q + diag(ridge))c + p'c   over   lower <= c <= upper, group sums kept
//
// The letters are those of problem.py. What the fixed variables contribute is in the scores
// F = K D'c, so that a part needs nothing of the rest: the whole problem, what shrinking leaves of
// it and the blocks of a decomposition are parts alike. The gradient is not stored:
//
//     G_i = F[item_i] (- F[minus_i]) + ridge_i c_i + p_i
//
// Layout: scores[channel * n + item]; slot[i] is the place of variable i's score.
#pragma once

#include <span>
#include <vector>

#include "kernel.hpp"

namespace maxmargin {

struct Part {
    // Variables.
    std::vector<double> c, linear, lower, upper, ridge;
    std::vector<index> item, channel, group;
    std::vector<index> minus;  // empty but for ranking

    // Items.
    index n = 0, channels = 1, groups = 0;
    std::vector<double> scores;

    index size() const { return static_cast<index>(c.size()); }
    bool up(index i) const { return c[i] < upper[i]; }
    bool down(index i) const { return c[i] > lower[i]; }
    index slot(index i) const { return channel[i] * n + item[i]; }
    double gradient(index i) const {
        double g = scores[slot(i)] + ridge[i] * c[i] + linear[i];
        return minus.empty() ? g : g - scores[channel[i] * n + minus[i]];
    }
    double objective() const {
        double sum = 0;
        for (index i = 0; i < size(); ++i) sum += c[i] * (gradient(i) + linear[i]);
        return sum / 2;
    }
};

// A part of a part, and where its variables and items stand in the larger one (both ascending).
struct Restriction {
    std::vector<index> variables, items;
    Part part;
};

Restriction restrict(const Part& whole, std::vector<index> variables);

// Writes the values of the smaller part back. Scores of items outside it stay as they were.
void restore(const Restriction& from, Part& whole);

}  // namespace maxmargin
