// Rows of a kernel matrix, computed when first asked for and kept while the budget lasts.
//
// The cache knows neither labels nor solver. The least recently used row goes first; whatever the
// budget, a row has the same bits, so that it decides about time alone. Cost of a miss: n kernel
// values, spread over the pool's threads when they are many.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "items.hpp"

namespace maxmargin {

class Rows {
  public:
    // At least four rows are kept, so that a step may hold the rows of two variables with two
    // items each.
    Rows(const Items& items, double bytes, int threads, const std::function<void()>* poll);

    index size() const { return n_; }

    // The same items, kept somewhere else from now on.
    void rebind(const Items& items) { items_ = &items; }

    // K[i, all]; valid until three other rows have been asked for.
    const double* row(index i);

    // K[i, j]: from a row that is there, or by itself.
    double value(index i, index j);

    const std::vector<double>& diagonal() const { return diagonal_; }

    // Take over the rows of the items `kept` from the cache of a larger set, which gives up each
    // as it goes, so that the two together never hold more than the budget.
    void inherit(Rows& larger, std::span<const index> kept);

    index hits() const { return hits_; }
    index misses() const { return misses_; }

  private:
    struct Row {
        std::unique_ptr<double[]> values;
        std::list<index>::iterator place;
    };

    double* admit(index i);

    const Items* items_;
    index n_, capacity_;
    int threads_;
    const std::function<void()>* poll_;
    std::vector<double> diagonal_;
    std::vector<Row> rows_;
    std::list<index> used_;  // most recent first
    index hits_ = 0, misses_ = 0;
};

}  // namespace maxmargin
