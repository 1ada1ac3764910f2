// Dual coordinate descent for linear machines with the L2 penalty (Hsieh, Chang, Lin, Keerthi and
// Sundararajan 2008, algorithms 1 and 3; Ho and Lin 2012 for regression; Yu, Huang and Lin 2011,
// algorithm 5, for the logistic loss), for k problems on the same rows in lock-step.
//
//     minimise  1/2 |X'c|^2 + sum_i ridge_i c_i^2 / 2 + p_i c_i + epsilon |c_i|
//     over      lower_i <= c_i <= upper_i                                  for each problem
//
// W = X'c is kept up to date, so that a coordinate's gradient is one product with its row:
//
//     g = x_i.w + offset + ridge_i c_i + p_i,    c_i <- argmin over its box,  of curvature
//     |x_i|^2 + ridge_i
//
// The logistic loss has the entropy of c_i / size_i in the place of ridge and p, and its coordinate
// is found by Newton steps. The rows of a sweep come in random order, the same for all problems.
// A coordinate that has settled at a bound, or at the kink of |c|, is left out of the sweeps until
// `look` has seen all scores (shrinking). Cost of a visit: two passes over a row.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "design.hpp"

namespace maxmargin {

// Arrays are (n x k), row-major; ridge and linear may be empty (zero).
struct CoordinateProblem {
    index k = 1;
    std::vector<double> linear, lower, upper, ridge;
    double epsilon = 0.0;
    bool logistic = false;  // lower and upper are then 0 and y_i size_i, in their order
};

class CoordinateDescent {
  public:
    // From these coefficients; `weights` (columns x k) are X'c where they are empty, and otherwise
    // hold what rows elsewhere contribute as well.
    CoordinateDescent(const Design& design, CoordinateProblem problem, std::vector<double> start,
                      std::vector<double> weights, bool shrinking, std::uint64_t seed,
                      const Run& run);

    // Whole sweeps until `visits` rows have been looked at, or no coordinate that is not left out
    // has violated its condition by more than `tol`; returns whether the latter is so.
    bool run(index visits, double tol);

    // Takes back those coordinates that the scores Z = X W (n x k) say have more to do than `tol`,
    // and returns the largest violation of each problem.
    std::vector<double> look(const double* scores, double tol);

    // A constant that is added to the scores of problem j.
    void set_offset(index j, double offset) { offset_[j] = offset; }
    // Problem j is done: it does not move any more.
    void freeze(index j);

    const std::vector<double>& coefficients() const { return c_; }
    void weights(double* out) const;  // columns x k
    index sweeps() const { return sweeps_; }
    index active() const;

  private:
    struct Slopes {
        double right, left;  // one-sided derivatives by c_i
    };

    Slopes slopes(index at, double z) const;
    double violation(index at, Slopes slope) const;
    double room(index at, Slopes slope) const;
    double visit(index i, index j, double z);
    double logistic_visit(index at, double z, double norm);
    void sweep();

    const Design& design_;
    CoordinateProblem problem_;
    index n_, k_, width_;
    std::vector<double> c_, weights_, norms_, offset_;
    std::vector<std::uint8_t> active_;
    std::vector<index> rows_;      // with an active coordinate
    std::vector<double> bound_;    // what a settled coordinate's slope must exceed, per problem
    std::vector<double> largest_;  // violation of the sweep so far, per problem
    std::vector<std::uint8_t> frozen_;
    bool shrinking_;
    std::uint64_t random_;
    index sweeps_ = 0;
    Run how_;
};

}  // namespace maxmargin
