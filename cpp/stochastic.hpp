// Stochastic methods for linear machines: one pass over rows in an order that the caller draws.
//
//     minimise  lambda penalty(w) + average of factor_i loss(y_i, x_i.w)
//
//     pegasos       Shalev-Shwartz, Singer, Srebro and Cotter 2011, figure 1: subgradients of
//                   batches of the hinge loss, steps 1 / (lambda t), projection on the ball
//     averaged_sgd  subgradients of one row, steps 2 / (lambda (t + delay)); the average counts
//                   point t by t (Lacoste-Julien, Schmidt and Bach 2012)
//     saga          Defazio, Bach and Lacoste-Julien 2014, algorithm 1: gradients of one row less
//                   the one remembered of it, and a proximal step
//
// A step costs a few passes over its rows: vectors are scaled by factors kept beside them (Bottou
// 2010, Xu 2011), and coordinates that a row does not touch make up for the steps they have missed
// when one does.
#pragma once

#include "design.hpp"
#include "loss.hpp"

namespace maxmargin {

// Row numbers, one for each visit.
struct Order {
    const index* rows;
    index n;
};

// `t` counts the batches before this pass; returns the batches after it.
index pegasos(const Design& design, const double* y, Order order, index batch, double lambda,
              bool project, double* w, index t, const Run& run);

struct Averaging {
    double lambda;
    double delay;  // at least 1
    bool free;     // the constant's weight is not penalised
};

// w is the last point and `average` the average of all; `t` and the return value count steps.
index averaged_sgd(const Design& design, const Loss& loss, const double* y, Order order,
                   const Averaging& how, double* w, double* average, index t, const Run& run);

struct Proximal {
    double step;
    double l1, l2;  // lambda times the penalty's two parts
    bool free;
};

// `slopes` remembers loss' of each row, and `mean` the average of factor_i slope_i x_i.
void saga(const Design& design, const Loss& loss, const double* y, const double* factor,
          Order order, const Proximal& how, double* w, double* mean, double* slopes,
          const Run& run);

}  // namespace maxmargin
