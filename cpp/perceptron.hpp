// Online learning of linear machines f(x) = w.x + b: a pass over the rows, one after the other.
//
//     perceptron     w += eta0 s y x                              where y f(x) <= 0
//     PA-I           w += s y x min(C, loss / |x|^2)              where loss = 1 - y f(x) > 0
//     PA-II          w += s y x loss / (|x|^2 + 1 / (2 C))        where loss = 1 - y f(x) > 0
//     Pegasos        w -= (lambda w - mean of s y x over the batch's rows with y f(x) <= 1)
//                         / (lambda t), then into the ball |w| <= sqrt(largest s / lambda)
//
// s is the weight of the row's class, and b that of a feature that is always 1, which counts in
// |x|^2 and |w| like any other. A step costs the nonzeros of its rows: what happens to all weights
// at once (an average, a shrinking) is kept as a factor. Rosenblatt (1958); Freund and Schapire
// (1999); Crammer et al. (2006), figure 1; Shalev-Shwartz et al. (2011), figure 2.
#pragma once

#include <span>

#include "items.hpp"

namespace maxmargin {

// The rows of a pass, in their order, and the class of every item.
struct Stream {
    const Items& items;  // of the linear kernel
    std::span<const index> order;
    const index* labels;
    const double* squares;  // |x_i|^2
    const double* weight;   // of each class
    double largest_weight;
    bool intercept;

    double weight_of(index i) const { return weight[labels[i]]; }
};

// One class against the others: w and b, and beside them what the average needs.
struct Machine {
    index positive = 0;  // its class
    double *w = nullptr, *b = nullptr;
    double *past_w = nullptr, *past_b = nullptr;  // null: nobody asks for the average
    double t = 0;                                 // steps before this pass

    double sign(const Stream& stream, index i) const {
        return stream.labels[i] == positive ? 1.0 : -1.0;
    }
};

struct Tally {
    index mistakes = 0;  // rows with y f(x) <= 0 when they came
    double loss = 0;     // max(0, -y f(x)) or max(0, 1 - y f(x)), weighted and summed
};

enum class Rule { perceptron, passive_aggressive_1, passive_aggressive_2 };

// With w_t the weights after row t: past = sum of t (w_{t+1} - w_t), so that the mean of w_1 ...
// w_T is w_T - past / T.
Tally perceptron_pass(const Stream& stream, Machine& machine, Rule rule, double C, double eta0);

// Here past is the sum of all iterates, one for each batch.
Tally pegasos_pass(const Stream& stream, Machine& machine, double lambda, index batch);

}  // namespace maxmargin
