// The working-set strategies that move a pair or a variable; reference.py has the same in readable
// NumPy.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "glance.hpp"
#include "solver.hpp"

namespace maxmargin {
namespace {

// ------------------------------------------------------------------ pairs

// Takes the most violating pair (or variable): what is left when a heuristic finds nothing.
bool worst(const View& view, const Glance& glance, double tol, Move& move) {
    if (!(glance.violation >= tol)) return false;
    if (glance.single >= 0) {
        single_step(view, glance.single, glance.gradient[glance.single], move);
    } else {
        const index i = glance.grow[glance.group], j = glance.shrink[glance.group];
        // Both rows are needed for the update: fetched here, they serve the curvature as well.
        view.rows.row(view.part.item[i]);
        pair_step(view, i, j, glance.violation, view.curvature(i, j), move);
    }
    return true;
}

// Keerthi, Shevade, Bhattacharyya and Murthy 2001, modification 2 (WSS 1). O(m) a step.
class MaxViolatingPair final : public Strategy {
  public:
    bool next(const View& view, double tol, Move& move) override {
        glance_.look(view);
        violation_ = glance_.violation;
        return worst(view, glance_, tol, move);
    }
    bool shrinkable() const override { return true; }

  private:
    Glance glance_;
};

// Fan, Chen and Lin 2005, WSS 3: i as above, j with the largest decrease (G_j - G_i)^2 / curvature.
// O(m) a step.
class SecondOrder final : public Strategy {
  public:
    bool next(const View& view, double tol, Move& move) override {
        glance_.look(view);
        violation_ = glance_.violation;
        if (!(violation_ >= tol)) return false;
        if (glance_.single >= 0) {
            const index v = view.part.minus.empty() ? best_single(view) : glance_.single;
            single_step(view, v, glance_.gradient[v], move);
            return true;
        }
        best_ = {-1, -1, -kInfinity};
        // One kernel row for each group: with many groups only the worst is worth it.
        const bool few = view.part.groups <= 2;
        for (index of = few ? 0 : glance_.group; of <= (few ? view.part.groups - 1 : glance_.group);
             ++of)
            if (glance_.grow[of] >= 0) seek_partner(view, glance_.grow[of]);
        if (best_.j < 0) return false;
        const double slope = glance_.gradient[best_.j] - glance_.gradient[best_.i];
        pair_step(view, best_.i, best_.j, slope, view.curvature(best_.i, best_.j), move);
        return true;
    }
    bool shrinkable() const override { return true; }

  private:
    struct Best {
        index i, j;
        double gain;
    };

    void seek_partner(const View& view, index i) {
        const Part& part = view.part;
        const double* row = view.rows.row(part.item[i]);
        const double* diagonal = view.rows.diagonal().data();
        const double low = glance_.gradient[i], k_ii = diagonal[part.item[i]] + part.ridge[i];
        for (index v = 0; v < part.size(); ++v) {
            const double slope = glance_.gradient[v] - low;
            if (!(slope > 0) || part.group[v] != part.group[i] || !part.down(v)) continue;
            const index item = part.item[v];
            const double k_iv = part.channel[v] == part.channel[i] ? row[item] : 0.0;
            const double q = k_ii + diagonal[item] + part.ridge[v] - 2 * k_iv;
            const double gain = slope * slope / std::max(q, kCurvatureFloor);
            if (gain >= best_.gain) best_ = {i, v, gain};
        }
    }

    index best_single(const View& view) const {
        const Part& part = view.part;
        index best = -1;
        double most = -1;
        for (index v = 0; v < part.size(); ++v) {
            if (part.group[v] >= 0) continue;
            const double slope = pull(part, v, glance_.gradient[v]);
            const double q = view.rows.diagonal()[part.item[v]] + part.ridge[v];
            const double gain = slope * slope / std::max(q, kCurvatureFloor);
            if (gain >= most) {
                most = gain;
                best = v;
            }
        }
        return best;
    }

    Glance glance_;
    Best best_{};
};

// ------------------------------------------------------------------ sweeps

// What the strategies that go from variable to variable share. A sweep judges violators by the rho
// of the last glance; when one ends without a move, a fresh glance says whether that was the end,
// and names the most violating pair if it was not. So no sweep goes on for ever (the lectures' code
// does not say which threshold it uses, and can).
class Sweep : public Strategy {
  public:
    bool next(const View& view, double tol, Move& move) override {
        for (;;) {
            if (position_ == order_.size() && moved_ && narrow(view)) {
                position_ = 0;
                moved_ = false;
            }
            if (position_ == order_.size()) {
                glance_.look(view);
                violation_ = glance_.violation;
                if (!(violation_ >= tol)) return false;
                begin(view);
                position_ = 0;
                if (!std::exchange(moved_, false) && worst(view, glance_, tol, move))
                    return moved_ = true;
            }
            while (position_ < order_.size())
                if (visit(view, order_[position_++], tol, move)) return moved_ = true;
        }
    }
    bool pointwise() const override { return true; }

  protected:
    // Fill order_ for the next sweep.
    virtual void begin(const View& view) = 0;
    // Fill order_ for one more sweep without looking at everything first; false for none.
    virtual bool narrow(const View&) { return false; }
    // A move of variable i, if it violates the conditions and has one.
    virtual bool visit(const View& view, index i, double tol, Move& move) = 0;

    void all(const View& view) {
        order_.resize(view.part.size());
        std::iota(order_.begin(), order_.end(), index{0});
    }

    // The gradient of a variable; a sweep that finds no move still polls, every so many of them.
    double gradient(const View& view, index i) {
        if (++asked_ % kPollEvery == 0) view.control.poll();
        return view.gradient(i);
    }

    bool violates(const View& view, index i, double gradient, double tol) const {
        const double rho = glance_.rho(view.part.group[i]);
        return (gradient < rho - tol / 2 && view.part.up(i)) ||
               (gradient > rho + tol / 2 && view.part.down(i));
    }

    // The step of i and j in whichever direction goes down, if they violate by tol.
    static bool pair(const View& view, index i, index j, double slope, double tol, Move& move) {
        if (slope < 0) {
            std::swap(i, j);
            slope = -slope;
        }
        const Part& part = view.part;
        if (!(slope >= tol) || i == j || part.group[i] != part.group[j]) return false;
        if (!part.up(i) || !part.down(j)) return false;
        pair_step(view, i, j, slope, view.curvature(i, j), move);
        return true;
    }

    Glance glance_;
    std::vector<index> order_;
    std::size_t position_ = 0;
    bool moved_ = true;

  private:
    static constexpr index kPollEvery = 1024;
    index asked_ = 0;
};

// Simplified SMO: every violator in turn, with a random partner.
class Random final : public Sweep {
  protected:
    void begin(const View& view) override {
        all(view);
        view.random.shuffle(order_);
    }
    bool visit(const View& view, index i, double tol, Move& move) override {
        const double g = gradient(view, i);
        if (!violates(view, i, g, tol)) return false;
        if (view.part.group[i] < 0) return single_step(view, i, g, move), true;
        constexpr int kTries = 20;
        for (int k = 0; k < kTries; ++k) {
            const index j = view.random.below(view.part.size());
            if (pair(view, i, j, gradient(view, j) - g, tol, move)) return true;
        }
        return false;
    }
};

// Platt 1999: sweeps over all variables and over the free ones take turns; the partner promises the
// largest step among the free variables, or else is the first that makes any, from a random place.
class Platt final : public Sweep {
  protected:
    void begin(const View& view) override {
        everything_ = order_.empty() || (!everything_ && !moved_);
        all(view);
        if (everything_) return;
        std::erase_if(order_, [&](index v) { return !view.part.up(v) || !view.part.down(v); });
        free_ = order_;
    }
    bool visit(const View& view, index i, double tol, Move& move) override {
        const double g = gradient(view, i);
        if (!violates(view, i, g, tol)) return false;
        if (view.part.group[i] < 0) return single_step(view, i, g, move), true;
        index best = -1;
        double most = 0, slope = 0;
        for (index j : free_) {
            const double difference = gradient(view, j) - g;
            if (std::abs(difference) <= most) continue;
            most = std::abs(difference);
            slope = difference;
            best = j;
        }
        if (best >= 0 && pair(view, i, best, slope, tol, move)) return true;
        const index m = view.part.size(), start = view.random.below(m);
        for (index k = 0; k < m; ++k) {
            const index j = (start + k) % m;
            if (pair(view, i, j, gradient(view, j) - g, tol, move)) return true;
        }
        return false;
    }

  private:
    bool everything_ = false;
    std::vector<index> free_;
};

// Hsieh et al. 2008, algorithm 1 in the random order of their section 3: one coordinate at a time,
// without an intercept.
// After a sweep over all variables come some over those that the last one moved: where most are
// settled at a bound, most of the work is for the others. Not for ever, as rounding may keep two of
// them moving to and fro.
class Coordinate final : public Sweep {
  protected:
    void begin(const View& view) override {
        all(view);
        view.random.shuffle(order_);
        restless_.clear();
        narrow_sweeps_ = 0;
    }
    bool narrow(const View& view) override {
        if (restless_.empty() || ++narrow_sweeps_ > kNarrowSweeps) return false;
        order_ = std::exchange(restless_, {});
        view.random.shuffle(order_);
        return true;
    }
    bool visit(const View& view, index i, double tol, Move& move) override {
        const double g = gradient(view, i);
        if (std::abs(pull(view.part, i, g)) < tol / 2) return false;
        single_step(view, i, g, move);
        if (move.values[0] == view.part.c[i]) return false;
        restless_.push_back(i);
        return true;
    }

  private:
    static constexpr int kNarrowSweeps = 20;
    std::vector<index> restless_;
    int narrow_sweeps_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const StrategySpec& spec) {
    switch (spec.kind) {
        case StrategySpec::Kind::random:
            return std::make_unique<Random>();
        case StrategySpec::Kind::platt:
            return std::make_unique<Platt>();
        case StrategySpec::Kind::max_violating_pair:
            return std::make_unique<MaxViolatingPair>();
        case StrategySpec::Kind::second_order:
            return std::make_unique<SecondOrder>();
        case StrategySpec::Kind::block:
            return make_block(spec);
        case StrategySpec::Kind::coordinate:
            return std::make_unique<Coordinate>();
        case StrategySpec::Kind::group:
            return make_group();
    }
    throw std::invalid_argument("unknown strategy");
}

}  // namespace maxmargin
