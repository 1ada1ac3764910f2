// The smooth losses of linear machines, over all rows at once; losses.py has them readably.
//
//     slopes    c_i = -price_i loss'(y_i, z_i),  h_i = price_i loss''(y_i, z_i),  sum of the losses
//     along     value, slope and curvature of  t -> sum_i price_i loss(y_i, z_i + t q_i)
//
// Blocks of rows run in parallel and are added in order. Cost: O(n), a few operations a row (an
// exponential for the logistic loss).
#pragma once

#include "design.hpp"

namespace maxmargin {

struct Loss {
    enum class Kind {
        hinge,  // of the margin y z, its kink rounded over `width` (which may be 0)
        squared_hinge,
        logistic,
        squared,      // of the residual z - y
        insensitive,  // outside a tube of half-width `epsilon`, kinks rounded over `width`
        squared_insensitive,
    };
    Kind kind = Kind::hinge;
    double width = 0.0, epsilon = 0.0;
};

// A function of one variable at a point.
struct Local {
    double value = 0.0, slope = 0.0, curvature = 0.0;
};

// One row: the loss at the score z.
Local at(const Loss& loss, double y, double z);

double slopes(const Loss& loss, const double* y, const double* price, const double* z, index n,
              double* c, double* h, const Run& run);

Local along(const Loss& loss, const double* y, const double* price, const double* z,
            const double* q, double t, index n, const Run& run);

}  // namespace maxmargin
