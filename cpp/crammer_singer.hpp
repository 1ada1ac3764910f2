// Sequential dual descent for the linear multi-class machine of Crammer and Singer (Keerthi,
// Sundararajan, Chang, Hsieh and Lin 2008, algorithm 3.1).
//
//     minimise  1/2 |X'c|^2 - sum_i c[i, y_i],     c_i = price_i e_(y_i) - q_i
//     over      q_i >= 0,  sum_m q_im = price_i                         for each row
//
// W = X'c is kept up to date. With G_m = x_i.w_m + [m != y_i], the best q_i for the other rows as
// they are is the nearest point of its simplex to q_i + G / |x_i|^2. Rows come in random order. A
// row all of whose price lies on one class, that leads by more than the last sweep's largest
// violation, is left out of the sweeps until `look` has seen all scores (shrinking). Cost of a
// visit: two passes over a row, for all k classes at once, and a sort of k numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "design.hpp"

namespace maxmargin {

class CrammerSinger {
  public:
    // y are classes 0 .. k-1; `start` are coefficients c (n x k), or empty for zero.
    CrammerSinger(const Design& design, std::vector<index> y, std::vector<double> price, index k,
                  std::vector<double> start, bool shrinking, std::uint64_t seed, const Run& run);

    // Whole sweeps until `visits` rows have been looked at, or no row that is not left out has
    // violated its condition by more than `tol`; returns whether the latter is so.
    bool run(index visits, double tol);
    // Takes back the rows that the scores Z = X W (n x k) say have more to do than `tol`; returns
    // the largest violation.
    double look(const double* scores, double tol);

    const std::vector<double>& coefficients() const { return c_; }
    void weights(double* out) const;  // columns x k
    index sweeps() const { return sweeps_; }
    index active() const { return static_cast<index>(rows_.size()); }

  private:
    struct State {
        double violation;
        double lead;  // of the only class that has a share, or -infinity
    };
    State state(index i, const double* z) const;
    bool visit(index i, const double* z, double* step);
    void sweep();

    const Design& design_;
    std::vector<index> y_;
    std::vector<double> price_;
    index n_, k_, width_;
    std::vector<double> c_, weights_, norms_;
    std::vector<double> point_, sorted_;  // of a visit
    std::vector<index> rows_;             // that are not left out
    double bound_, largest_ = 0.0;
    bool shrinking_;
    std::uint64_t random_;
    index sweeps_ = 0;
    Run how_;
};

}  // namespace maxmargin
