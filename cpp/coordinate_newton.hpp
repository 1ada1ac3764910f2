// Coordinate-descent Newton for the L1 and elastic-net penalties and smooth losses (newGLMNET:
// Yuan, Ho and Lin 2012, algorithm 3), on a working set of columns.
//
//     minimise  F(w) = sum_j l1_j |w_j| + l2_j w_j^2 / 2 + sum_i price_i loss(y_i, x_i.w)
//
// A step minimises the quadratic model at w over the columns of the working set,
//
//     g'd + 1/2 d' X' diag(h) X d + penalty(w + d),
//
// by coordinate descent on a copy sqrt(h) X of these columns, no further than the step deserves;
// coordinates that rest at zero are left out of the sweeps, until the others are done. Where sweeps
// alone are slow, conjugate gradients move all nonzero coordinates together, with their signs kept.
// Then w goes along d until F has fallen enough. All entries of l1 and l2 are the same, but for the
// last one, the constant's, which are zero if it is free.
//
// Huber's losses have rows without curvature but with a slope: these lend the curvature of a
// parabola that touches the loss from above, times a factor that falls as full steps succeed. After
// steps that fail all coordinates get a curvature (Levenberg and Marquardt), less as steps succeed.
//
// Cost: a step copies the working set, a sweep passes twice over what is active of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "columns.hpp"
#include "loss.hpp"

namespace maxmargin {

struct SparseProblem {
    std::vector<double> y, price;
    double l1 = 1.0, l2 = 0.0;
    bool free = false;  // the last column is not penalised
};

class CoordinateNewton {
  public:
    CoordinateNewton(const Columns& columns, SparseProblem problem, std::vector<double> start,
                     std::uint64_t seed, const Run& run);

    void set_loss(const Loss& loss);

    // Steps on the columns of `working` (in ascending order) until none violates its condition by
    // more than `target`, a step leads nowhere, or `most` were made; returns how many.
    index descend(const std::vector<index>& working, double target, index most);

    // The largest violation of the columns of `working`.
    double violation(const std::vector<index>& working);

    const std::vector<double>& weights() const { return w_; }
    const std::vector<double>& scores() const { return z_; }
    const std::vector<double>& slopes() const { return c_; }  // -price_i loss'(y_i, z_i)

  private:
    struct Model;  // quadratic, at w

    double l1(index j) const { return problem_.free && j == last_ ? 0.0 : problem_.l1; }
    double l2(index j) const { return problem_.free && j == last_ ? 0.0 : problem_.l2; }
    double violation(index j, double w, double gradient) const;
    void look();
    void lend_curvature();
    bool step(const std::vector<index>& working, double target);
    void minimise(Model& model, double tol);
    double sweep(Model& model, std::vector<index>& active);
    void conjugate(Model& model, index iterations);
    bool move_together(Model& model, const std::vector<index>& some, const std::vector<double>& d,
                       const std::vector<double>& slope, double t) const;
    bool search(const Model& model);

    const Columns& columns_;
    SparseProblem problem_;
    index n_, last_;
    Loss loss_;
    std::vector<double> w_, z_, c_, h_;
    double losses_ = 0.0, lent_ = 1.0, damping_ = 0.0;
    std::uint64_t random_;
    Run how_;
};

}  // namespace maxmargin
