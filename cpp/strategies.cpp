// The working-set strategies; reference.py has the same in readable NumPy.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "solver.hpp"

namespace maxmargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// ------------------------------------------------------------------ steps (Platt 1999)

// c_i grows and c_j shrinks by the same t >= 0: the vertex of a parabola, cut to the box.
void pair_step(const View& view, index i, index j, double slope, double curvature, Move& move) {
    const Part& part = view.part;
    const double room_i = part.upper[i] - part.c[i], room_j = part.c[j] - part.lower[j];
    const double t = std::min({slope / curvature, room_i, room_j});
    move.variables = {i, j};
    move.values = {t == room_i ? part.upper[i] : part.c[i] + t,
                   t == room_j ? part.lower[j] : part.c[j] - t};
}

void single_step(const View& view, index i, double gradient, Move& move) {
    const Part& part = view.part;
    const double c = part.c[i] - gradient / view.curvature(i);
    move.variables = {i};
    move.values = {std::clamp(c, part.lower[i], part.upper[i])};
}

// How much a variable without a group may gain: -G where it can follow, else 0.
double pull(const Part& part, index i, double gradient) {
    return (gradient < 0 ? part.up(i) : part.down(i)) ? -gradient : 0.0;
}

// ------------------------------------------------------------------ all gradients at a glance

// The gradient of every variable, and of each group the smallest that may grow and the largest that
// may shrink. Ties go to the last index, as in LIBSVM.
struct Glance {
    std::vector<double> gradient, low, high;
    std::vector<index> grow, shrink;
    double violation = 0;
    index group = -1;   // the worst one, or
    index single = -1;  // the worst variable without a group

    void look(const View& view) {
        const Part& part = view.part;
        view.scores.complete();
        gradient.resize(part.size());
        low.assign(part.groups, kInfinity);
        high.assign(part.groups, -kInfinity);
        grow.assign(part.groups, -1);
        shrink.assign(part.groups, -1);
        violation = 0;
        group = single = -1;
        for (index v = 0; v < part.size(); ++v) {
            const double g = gradient[v] = part.gradient(v);
            const index of = part.group[v];
            if (of < 0) {
                if (const double size = std::abs(pull(part, v, g)); size >= violation) {
                    violation = size;
                    single = v;
                }
                continue;
            }
            if (g <= low[of] && part.up(v)) {
                low[of] = g;
                grow[of] = v;
            }
            if (g >= high[of] && part.down(v)) {
                high[of] = g;
                shrink[of] = v;
            }
        }
        for (index of = 0; of < part.groups; ++of) {
            if (grow[of] < 0 || shrink[of] < 0 || high[of] - low[of] < violation) continue;
            violation = high[of] - low[of];
            group = of;
            single = -1;
        }
    }

    // The middle of what the conditions allow, which no violator is on the right side of.
    double rho(index of) const { return of < 0 ? 0.0 : (low[of] + high[of]) / 2; }
};

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
    // A move of variable i, if it violates the conditions and has one.
    virtual bool visit(const View& view, index i, double tol, Move& move) = 0;

    void all(const View& view) {
        order_.resize(view.part.size());
        std::iota(order_.begin(), order_.end(), index{0});
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
};

// Simplified SMO: every violator in turn, with a random partner.
class Random final : public Sweep {
  protected:
    void begin(const View& view) override {
        all(view);
        view.random.shuffle(order_);
    }
    bool visit(const View& view, index i, double tol, Move& move) override {
        const double g = view.gradient(i);
        if (!violates(view, i, g, tol)) return false;
        if (view.part.group[i] < 0) return single_step(view, i, g, move), true;
        constexpr int kTries = 20;
        for (int k = 0; k < kTries; ++k) {
            const index j = view.random.below(view.part.size());
            if (pair(view, i, j, view.gradient(j) - g, tol, move)) return true;
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
        const double g = view.gradient(i);
        if (!violates(view, i, g, tol)) return false;
        if (view.part.group[i] < 0) return single_step(view, i, g, move), true;
        index best = -1;
        double most = 0, slope = 0;
        for (index j : free_) {
            const double difference = view.gradient(j) - g;
            if (std::abs(difference) <= most) continue;
            most = std::abs(difference);
            slope = difference;
            best = j;
        }
        if (best >= 0 && pair(view, i, best, slope, tol, move)) return true;
        const index m = view.part.size(), start = view.random.below(m);
        for (index k = 0; k < m; ++k) {
            const index j = (start + k) % m;
            if (pair(view, i, j, view.gradient(j) - g, tol, move)) return true;
        }
        return false;
    }

  private:
    bool everything_ = false;
    std::vector<index> free_;
};

// Hsieh et al. 2008, algorithm 1: one coordinate at a time, in random order; without an intercept.
class Coordinate final : public Sweep {
  protected:
    void begin(const View& view) override {
        all(view);
        view.random.shuffle(order_);
    }
    bool visit(const View& view, index i, double, Move& move) override {
        const double g = view.gradient(i);
        if (pull(view.part, i, g) == 0) return false;
        single_step(view, i, g, move);
        return move.values[0] != view.part.c[i];
    }
};

// ------------------------------------------------------------------ blocks and groups

// Decomposition (Osuna, Freund and Girosi 1997; Joachims 1999). The block's variables are a part of
// their own, solved by another strategy. A growing block (chunking) keeps all support vectors.
class Block final : public Strategy {
  public:
    explicit Block(StrategySpec spec) : spec_(std::move(spec)) {}

    bool next(const View& view, double tol, Move& move) override {
        const Part& part = view.part;
        glance_.look(view);
        violation_ = glance_.violation;
        if (!(violation_ >= tol)) return false;

        Restriction block = restrict(part, choose(part));
        const auto items = view.items.subset(block.items);
        Options options = view.options;
        options.shrinking = false;
        options.seed = view.random.next();
        Solver solver(*items, std::move(block.part), *spec_.inner, options, view.control);
        solver.run(std::max(tol / 2, violation_ / 10));

        move.variables = block.variables;
        move.values = solver.part().c;
        kept_.clear();
        const auto room =
            spec_.growing ? move.variables.size() : static_cast<std::size_t>(spec_.size / 2);
        for (std::size_t k = 0; k < move.variables.size() && kept_.size() < room; ++k) {
            const index v = move.variables[k];
            const double c = move.values[k];
            if (spec_.growing ? c != 0 : c < part.upper[v] && c > part.lower[v]) kept_.push_back(v);
        }
        return true;
    }
    bool solves_blocks() const override { return true; }

  private:
    // The variables kept from the last block, then alternately the smallest gradient that may grow
    // and the largest that may shrink of each group.
    std::vector<index> choose(const Part& part) const {
        const auto room = static_cast<std::size_t>(spec_.size) + (spec_.growing ? kept_.size() : 0);
        const std::vector<double>& g = glance_.gradient;
        std::vector<std::vector<index>> ranks;
        auto rank = [&](auto&& belongs, auto&& before) {
            std::vector<index> list;
            for (index v = 0; v < part.size(); ++v)
                if (belongs(v)) list.push_back(v);
            const auto end = list.begin() + std::min(list.size(), room);
            std::partial_sort(list.begin(), end, list.end(), [&](index a, index b) {
                return before(a, b) || (!before(b, a) && a < b);
            });
            list.erase(end, list.end());
            ranks.push_back(std::move(list));
        };
        for (index of = 0; of < part.groups; ++of) {
            rank([&](index v) { return part.group[v] == of && part.up(v); },
                 [&](index a, index b) { return g[a] < g[b]; });
            rank([&](index v) { return part.group[v] == of && part.down(v); },
                 [&](index a, index b) { return g[a] > g[b]; });
        }
        rank([&](index v) { return part.group[v] < 0 && pull(part, v, g[v]) != 0; },
             [&](index a, index b) { return std::abs(g[a]) > std::abs(g[b]); });

        std::vector<index> chosen = kept_;
        std::vector<bool> taken(part.size());
        for (index v : kept_) taken[v] = true;
        for (std::size_t place = 0; place < room && chosen.size() < room; ++place)
            for (const auto& list : ranks) {
                if (place >= list.size() || taken[list[place]]) continue;
                taken[list[place]] = true;
                chosen.push_back(list[place]);
            }
        return chosen;
    }

    StrategySpec spec_;
    Glance glance_;
    std::vector<index> kept_;
};

// Crammer and Singer 2001: the worst example's coefficients at once. Within an example Q is
// k(x, x) times the identity, so that the optimum is the projection of c - G / k(x, x) onto the box
// and the sum: c_m = clip(center_m - rho, lower_m, upper_m). Cost O(m) to choose, O(k log k) to
// solve, one kernel row to apply.
class Group final : public Strategy {
  public:
    bool next(const View& view, double tol, Move& move) override {
        const Part& part = view.part;
        glance_.look(view);
        violation_ = glance_.violation;
        if (!(violation_ >= tol)) return false;
        if (members_.empty()) {
            members_.resize(part.groups);
            for (index v = 0; v < part.size(); ++v) members_[part.group[v]].push_back(v);
        }
        move.variables = members_[glance_.group];
        project(part, view.curvature(move.variables[0]), move);
        return true;
    }

  private:
    void project(const Part& part, double curvature, Move& move) {
        const auto size = move.variables.size();
        std::vector<double> center(size), ends;
        double total = 0;
        for (std::size_t k = 0; k < size; ++k) {
            const index v = move.variables[k];
            total += part.c[v];
            center[k] = part.c[v] - glance_.gradient[v] / curvature;
            ends.push_back(center[k] - part.lower[v]);
            ends.push_back(center[k] - part.upper[v]);
        }
        auto value = [&](std::size_t k, double rho) {
            const index v = move.variables[k];
            const double c = center[k] - rho;
            // A bound is a bound, not a hair beside it: what is free decides the multipliers.
            const double hair = 4 * kEpsilon * (std::abs(center[k]) + std::abs(rho));
            if (c <= part.lower[v] + hair) return part.lower[v];
            return c >= part.upper[v] - hair ? part.upper[v] : c;
        };
        auto sum = [&](double rho) {
            double s = 0;
            for (std::size_t k = 0; k < size; ++k) s += value(k, rho);
            return s;
        };
        // The sum is piecewise linear and falls with rho: find the piece, then the place on it.
        std::sort(ends.begin(), ends.end());
        const auto right = std::partition_point(ends.begin(), ends.end(),
                                                [&](double end) { return sum(end) > total; });
        double rho = right == ends.end() ? ends.back() : *right;
        if (right != ends.begin() && right != ends.end()) {
            const double left = *(right - 1), top = sum(left), bottom = sum(rho);
            if (top > bottom) rho = left + (rho - left) * (top - total) / (top - bottom);
        }
        move.values.resize(size);
        for (std::size_t k = 0; k < size; ++k) move.values[k] = value(k, rho);
    }

    Glance glance_;
    std::vector<std::vector<index>> members_;
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
            return std::make_unique<Block>(spec);
        case StrategySpec::Kind::coordinate:
            return std::make_unique<Coordinate>();
        case StrategySpec::Kind::group:
            return std::make_unique<Group>();
    }
    throw std::invalid_argument("unknown strategy");
}

}  // namespace maxmargin
