// The solver: one loop that owns the coefficients and the scores, and a strategy that only looks at
// them and names the next move.
//
//     until the strategy finds no violation of tol or more:
//         move = strategy.next(view)          new values of a few variables, or of a block
//         c <- values,  F <- F + K D'(change)
//
// Shrinking (Joachims 1999): variables at a bound that no violating pair can contain leave the
// part that the loop works on, and items without variables leave the kernel rows with them. Before
// it ends, the solver recomputes the scores it left behind and looks at all variables again.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "items.hpp"
#include "part.hpp"
#include "rows.hpp"
#include "scores.hpp"

namespace maxmargin {

// Stands in for a curvature that is zero (duplicates) or negative (an indefinite kernel).
constexpr double kCurvatureFloor = 1e-12;

// Which strategy, as plain data (see strategies.py).
struct StrategySpec {
    enum class Kind { random, platt, max_violating_pair, second_order, block, coordinate, group };
    Kind kind = Kind::second_order;
    index size = 0;        // block
    bool growing = false;  // block
    std::shared_ptr<const StrategySpec> inner;
};

struct Options {
    double cache_bytes = 2e8;
    bool shrinking = true;
    int threads = 1;
    std::uint64_t seed = 0;
};

// Thrown out of `Control::poll` to end a run.
struct Stopped final : std::exception {};

// What a solver and the solvers of its blocks share: the count of updates and the way out.
struct Control {
    index iterations = 0, limit = 0;
    bool negative_curvature = false;
    std::function<void()> poll;  // may throw
};

// SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every platform.
class RandomNumbers {
  public:
    explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    index below(index n) { return static_cast<index>(next() % static_cast<std::uint64_t>(n)); }
    void shuffle(std::vector<index>& values);

  private:
    std::uint64_t state_;
};

// All that a strategy sees.
struct View {
    const Part& part;
    const Items& items;
    Rows& rows;
    Scores& scores;
    RandomNumbers& random;
    Control& control;
    const Options& options;

    // The gradient now, also where part.scores is not kept up to date.
    double gradient(index i) const;
    // Of the objective along c_i + t, c_j - t, and along c_i + t alone.
    double curvature(index i, index j) const;
    double curvature(index i) const;
};

struct Move {
    std::vector<index> variables;
    std::vector<double> values;
};

class Strategy {
  public:
    virtual ~Strategy() = default;

    // Names the next move; false when it finds nothing that violates the conditions by `tol`.
    virtual bool next(const View& view, double tol, Move& move) = 0;

    // Asks for single gradients only, so that the linear kernel need not keep them all.
    virtual bool pointwise() const { return false; }
    // Can go on when variables are taken away (or come back) between two moves.
    virtual bool shrinkable() const { return false; }
    // Its moves are whole blocks, whose updates the block's own solver has counted.
    virtual bool solves_blocks() const { return false; }

    // The violation when it last looked at all variables.
    double violation() const { return violation_; }

  protected:
    double violation_ = std::numeric_limits<double>::infinity();
};

std::unique_ptr<Strategy> make_strategy(const StrategySpec& spec);

enum class End { converged, rounding, limit };

class Solver {
  public:
    Solver(const Items& items, Part part, const StrategySpec& spec, Options options,
           Control& control);

    // Goes on until the violation is below tol, the values stop changing, or control.iterations
    // reaches control.limit. When poll throws, the state is that of the last whole move.
    End run(double tol);

    // The whole part. Its scores are exact for all items when `complete`; coefficients always are.
    const Part& part();
    bool complete() const { return !shrunk_ || shrunk_->part.n == whole_.n; }

    // Recomputes the scores that shrinking left behind.
    void unshrink();

    // Replaces the scores by more exact ones.
    void correct(std::vector<double> scores);

    double violation() const { return strategy_->violation(); }
    double objective();
    index active() const { return current().size(); }
    index hits() const { return hits_ + rows_->hits(); }
    index misses() const { return misses_ + rows_->misses(); }
    // Sum of |change of a coefficient| * k(x, x): what rounding errors of the scores grow with.
    double travel() const { return travel_; }

  private:
    Part& current() { return shrunk_ ? shrunk_->part : whole_; }
    const Part& current() const { return shrunk_ ? shrunk_->part : whole_; }
    const Items& items() const { return packed_ ? *packed_ : items_; }
    View view();

    bool apply(const Move& move);
    void shrink(double tol);
    void lay_out(std::optional<Restriction> shrunk);

    const Items& items_;
    Part whole_;
    Options options_;
    Control& control_;
    RandomNumbers random_;
    std::unique_ptr<Strategy> strategy_;

    std::optional<Restriction> shrunk_;  // what the loop works on when it is not the whole
    std::unique_ptr<Items> packed_;
    std::unique_ptr<Rows> rows_;
    std::unique_ptr<Scores> scores_;
    index countdown_ = 0;  // moves until the next look at shrinking
    bool looked_back_ = false;

    double base_ = 0;             // the objective when the layout was made,
    std::vector<double> c_base_;  // and there the coefficients
    std::vector<double> g_base_;  // and gradient of its variables
    double travel_ = 0;
    index hits_ = 0, misses_ = 0;
};

}  // namespace maxmargin
