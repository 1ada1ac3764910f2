// Sums over pairs of items of which one is to score above the other, without the pairs: what losses
// of ranking, their slopes and their curvatures consist of.
//
//     of item a     below[a] = sum of values[b] over b with grade_b < grade_a and 1 - f_a + f_b > 0
//     of item b     above[b] = sum of values[a] over a with grade_a > grade_b and 1 - f_a + f_b > 0
//
// where both items belong to one query. A walk through the items of a query by their scores meets
// those that count for the next item one after the other; a tree of sums by grade takes them in
// and answers (Fenwick 1994; order statistics for ranking: Airola, Pahikkala and Salakoski 2011,
// Lee and Lin 2014). Cost: O(n (log n + k log grades)) for k values of each item.
#pragma once

#include <vector>

#include "design.hpp"

namespace maxmargin {

// The items of query g are items[starts[g]], ..., items[starts[g + 1] - 1]; each item has a grade
// from 0 on, below the number of items of its query.
struct Queries {
    std::vector<index> items, starts, grade;
    index count() const { return static_cast<index>(starts.size()) - 1; }
};

// values, below and above are (n x k), row-major.
void pair_sums(const Queries& queries, const double* scores, const double* values, index k,
               double* below, double* above, const Run& run);

}  // namespace maxmargin
