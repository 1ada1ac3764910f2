#include "pairs.hpp"

#include <algorithm>

#include "pool.hpp"

namespace maxmargin {
namespace {

// Sums of k values of the places 0 .. n-1, over the places before one.
class Tree {
  public:
    Tree(index n, index k) : k_(k), sums_(static_cast<std::size_t>((n + 1) * k)) {}
    void add(index place, const double* values) {
        const auto end = static_cast<index>(sums_.size()) / k_;
        for (index node = place + 1; node < end; node += node & -node)
            for (index j = 0; j < k_; ++j) sums_[node * k_ + j] += values[j];
    }
    void before(index place, double* out) const {
        std::fill_n(out, k_, 0.0);
        for (index node = place; node > 0; node -= node & -node)
            for (index j = 0; j < k_; ++j) out[j] += sums_[node * k_ + j];
    }

  private:
    index k_;
    std::vector<double> sums_;
};

}  // namespace

void pair_sums(const Queries& queries, const double* scores, const double* values, index k,
               double* below, double* above, const Run& run) {
    const auto query = [&](index g) {
        std::vector<index> order(queries.items.begin() + queries.starts[g],
                                 queries.items.begin() + queries.starts[g + 1]);
        std::sort(order.begin(), order.end(), [&](index a, index b) {
            return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
        });
        const auto n = static_cast<index>(order.size());
        index grades = 0;
        for (const index i : order) grades = std::max(grades, queries.grade[i] + 1);
        // The same expression both ways, so that rounding counts a pair for both items or neither.
        const auto near = [&](index a, index b) { return (1.0 - scores[a]) + scores[b] > 0.0; };

        Tree lower(grades, k);
        index next = n - 1;  // from the highest score down
        for (index at = n - 1; at >= 0; --at) {
            const index a = order[at];
            for (; next >= 0 && near(a, order[next]); --next)
                lower.add(queries.grade[order[next]], values + order[next] * k);
            lower.before(queries.grade[a], below + a * k);
        }
        Tree higher(grades, k);  // places count from the highest grade
        next = 0;
        for (index at = 0; at < n; ++at) {
            const index b = order[at];
            for (; next < n && near(order[next], b); ++next)
                higher.add(grades - 1 - queries.grade[order[next]], values + order[next] * k);
            higher.before(grades - 1 - queries.grade[b], above + b * k);
        }
    };
    pool().run(queries.count(), run.threads, query, run.poll);
}

}  // namespace maxmargin
