// How the scores F = K D'c follow the coefficients.
//
//     KernelScores   every change of an item's coefficient adds a multiple of its kernel row: O(n)
//                    a change, and all scores at hand for nothing
//     LinearScores   the linear kernel: only w = sum of beta_i x_i follows, O(d) a change, and a
//                    score is x_i . w when somebody asks (Platt 1999; Hsieh et al. 2008)
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "part.hpp"
#include "rows.hpp"

namespace maxmargin {

// The coefficient of an item in a channel grows by delta.
struct Change {
    index item, channel;
    double delta;
};

class Scores {
  public:
    virtual ~Scores() = default;

    virtual double at(index item, index channel) const = 0;
    virtual void add(std::span<const Change> changes) = 0;

    // Brings part.scores up to date for all items.
    virtual void complete() = 0;
};

std::unique_ptr<Scores> kernel_scores(Part& part, Rows& rows);

// Holds w for each channel (channels x d).
std::unique_ptr<Scores> linear_scores(Part& part, const Items& items);

}  // namespace maxmargin
