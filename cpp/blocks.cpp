// The strategies that move many variables at once; reference.py has the same in readable NumPy.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "glance.hpp"
#include "solver.hpp"

namespace maxmargin {
namespace {

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
        if (part.channels > 1) return choose_groups(part);
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

    // Examples of a multi-class problem come as a whole, since their sums tie all classes: the
    // worst one first, those of the kept variables, then by violation.
    std::vector<index> choose_groups(const Part& part) const {
        std::vector<double> violation(part.groups);
        std::vector<std::vector<index>> members(part.groups);
        for (index v = 0; v < part.size(); ++v) members[part.group[v]].push_back(v);
        for (index of = 0; of < part.groups; ++of)
            violation[of] = glance_.high[of] - glance_.low[of];
        auto room = static_cast<std::size_t>(spec_.size);
        for (const index v : kept_) {
            const index of = part.group[v];
            if (spec_.growing && violation[of] < kInfinity) room += members[of].size();
            violation[of] = kInfinity;
        }
        std::vector<index> order(part.groups);
        std::iota(order.begin(), order.end(), index{0});
        std::stable_sort(order.begin(), order.end(), [&](index a, index b) {
            return a != b &&
                   (a == glance_.group || (b != glance_.group && violation[a] > violation[b]));
        });
        std::vector<index> chosen;
        for (const index of : order) {
            if (!chosen.empty() && chosen.size() + members[of].size() > room) break;
            chosen.insert(chosen.end(), members[of].begin(), members[of].end());
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

std::unique_ptr<Strategy> make_block(const StrategySpec& spec) {
    return std::make_unique<Block>(spec);
}

std::unique_ptr<Strategy> make_group() { return std::make_unique<Group>(); }

}  // namespace maxmargin
