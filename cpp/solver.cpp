#include "solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace maxmargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr index kShrinkEvery = 1000;
constexpr index kPollEvery = 16;

// What D' makes of a move: the change of each item's coefficient, nothing twice in a row.
void spread(const Part& part, const Move& move, std::vector<Change>& out) {
    out.clear();
    for (std::size_t k = 0; k < move.variables.size(); ++k) {
        const index v = move.variables[k];
        const double delta = move.values[k] - part.c[v];
        if (delta == 0) continue;
        out.push_back({part.item[v], part.channel[v], delta});
        if (!part.minus.empty()) out.push_back({part.minus[v], part.channel[v], -delta});
    }
}

// F <- F + K D'(change) as one product: the kernel rows of many items are not worth keeping.
void add_product(Part& part, const Items& items, const std::vector<Change>& changes, int threads,
                 const std::function<void()>& poll) {
    std::vector<double> beta(part.n * part.channels), product(part.n * part.channels);
    for (const Change& change : changes)
        beta[change.item * part.channels + change.channel] += change.delta;
    multiply(items, items, beta.data(), part.channels, product.data(), threads, &poll);
    for (index ch = 0; ch < part.channels; ++ch)
        for (index i = 0; i < part.n; ++i)
            part.scores[ch * part.n + i] += product[i * part.channels + ch];
}

// The largest number that enters a gradient: rounding makes violations of this times a few
// epsilons, whatever the point.
double magnitude(const Part& part) {
    double largest = 0;
    for (index v = 0; v < part.size(); ++v)
        largest = std::max(largest, std::abs(part.linear[v]) + std::abs(part.scores[part.slot(v)]));
    return largest;
}

}  // namespace

std::uint64_t RandomNumbers::next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

void RandomNumbers::shuffle(std::vector<index>& values) {
    for (auto n = static_cast<index>(values.size()); n > 1; --n)
        std::swap(values[n - 1], values[below(n)]);
}

double View::gradient(index i) const {
    double g =
        scores.at(part.item[i], part.channel[i]) + part.ridge[i] * part.c[i] + part.linear[i];
    return part.minus.empty() ? g : g - scores.at(part.minus[i], part.channel[i]);
}

double View::curvature(index i, index j) const {
    const index a = part.item[i], b = part.item[j];
    double q = rows.diagonal()[a] + rows.diagonal()[b];
    if (part.channel[i] == part.channel[j]) q -= 2 * rows.value(a, b);
    if (q < -1e-10 * std::abs(rows.diagonal()[a])) control.negative_curvature = true;
    return std::max(q + part.ridge[i] + part.ridge[j], kCurvatureFloor);
}

double View::curvature(index i) const {
    const index a = part.item[i];
    double q = rows.diagonal()[a];
    if (!part.minus.empty()) {
        const index b = part.minus[i];
        q += rows.diagonal()[b] - 2 * rows.value(a, b);
    }
    if (q < -1e-10 * std::abs(rows.diagonal()[a])) control.negative_curvature = true;
    return std::max(q + part.ridge[i], kCurvatureFloor);
}

Solver::Solver(const Items& items, Part part, const StrategySpec& spec, Options options,
               Control& control)
    : items_(items),
      whole_(std::move(part)),
      options_(options),
      control_(control),
      random_(options.seed),
      strategy_(make_strategy(spec)) {
    options_.shrinking = options_.shrinking && strategy_->shrinkable();
    countdown_ = std::min(whole_.size(), kShrinkEvery);
    lay_out(std::nullopt);
}

View Solver::view() { return {current(), items(), *rows_, *scores_, random_, control_, options_}; }

End Solver::run(double tol) {
    constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();
    Move move;
    double floor = std::max(tol, kRounding * magnitude(current()));
    End end = End::limit;
    while (control_.iterations < control_.limit) {
        if (--countdown_ <= 0) {
            countdown_ = std::min(whole_.size(), kShrinkEvery);
            if (options_.shrinking) shrink(tol);
            floor = std::max(tol, kRounding * magnitude(current()));
        }
        if (!strategy_->next(view(), floor, move)) {
            scores_->complete();
            if (!shrunk_) return floor > tol ? End::rounding : End::converged;
            unshrink();  // look at the variables that were left out
            countdown_ = kShrinkEvery;
            continue;
        }
        if (!apply(move)) {
            end = End::rounding;
            break;
        }
        if (!strategy_->solves_blocks()) ++control_.iterations;
        if (control_.iterations % kPollEvery == 0) control_.poll();
    }
    scores_->complete();
    unshrink();
    return end;
}

bool Solver::apply(const Move& move) {
    Part& part = current();
    std::vector<Change> changes;
    spread(part, move, changes);
    if (changes.empty()) return false;
    if (strategy_->solves_blocks())
        add_product(part, items(), changes, options_.threads, control_.poll);
    else
        scores_->add(changes);
    for (const Change& change : changes)
        travel_ += std::abs(change.delta * rows_->diagonal()[change.item]);
    for (std::size_t k = 0; k < move.variables.size(); ++k)
        part.c[move.variables[k]] = move.values[k];
    return true;
}

void Solver::shrink(double tol) {
    const Part& part = current();
    // [largest G that may shrink, smallest G that may grow] of each group; the last place is for
    // variables without a group, whose rho is zero.
    std::vector<double> high(part.groups + 1, -kInfinity), low(part.groups + 1, kInfinity);
    std::vector<double> gradient(part.size());
    auto place = [&](index v) { return part.group[v] < 0 ? part.groups : part.group[v]; };
    for (index v = 0; v < part.size(); ++v) {
        const double g = gradient[v] = part.gradient(v);
        if (part.down(v)) high[place(v)] = std::max(high[place(v)], g);
        if (part.up(v)) low[place(v)] = std::min(low[place(v)], g);
    }
    double worst = std::max({0.0, high[part.groups], -low[part.groups]});
    high[part.groups] = worst;
    low[part.groups] = -worst;
    for (index g = 0; g < part.groups; ++g) worst = std::max(worst, high[g] - low[g]);

    if (shrunk_ && !looked_back_ && worst <= 10 * tol) {
        // Early on, variables leave that are needed later: look at all once before the end.
        looked_back_ = true;
        unshrink();
        return;
    }
    std::vector<index> kept;
    for (index v = 0; v < part.size(); ++v) {
        const bool idle = part.up(v) ? !part.down(v) && gradient[v] > high[place(v)]
                                     : gradient[v] < low[place(v)];
        if (!idle) kept.push_back(v);
    }
    // A new layout costs a pass over the cache: worth it when a quarter goes.
    if (kept.empty() || 4 * static_cast<index>(kept.size()) > 3 * part.size()) return;
    if (shrunk_) {
        for (index& v : kept) v = shrunk_->variables[v];
        restore(*shrunk_, whole_);
    }
    lay_out(restrict(whole_, std::move(kept)));
}

void Solver::unshrink() {
    if (!shrunk_) return;
    // F of the items left behind = K(left behind, all) D'c.
    std::vector<bool> present(whole_.n);
    for (index i : shrunk_->items) present[i] = true;
    std::vector<index> absent;
    for (index i = 0; i < whole_.n; ++i)
        if (!present[i]) absent.push_back(i);
    const index k = whole_.channels;
    std::vector<double> product(absent.size() * k);
    if (!absent.empty()) {
        Part fresh = whole_;
        restore(*shrunk_, fresh);
        std::vector<double> beta(whole_.n * k);
        for (index v = 0; v < fresh.size(); ++v) {
            beta[fresh.item[v] * k + fresh.channel[v]] += fresh.c[v];
            if (!fresh.minus.empty()) beta[fresh.minus[v] * k + fresh.channel[v]] -= fresh.c[v];
        }
        const auto left = items_.subset(absent);
        multiply(*left, items_, beta.data(), k, product.data(), options_.threads, &control_.poll);
    }
    restore(*shrunk_, whole_);
    for (std::size_t i = 0; i < absent.size(); ++i)
        for (index ch = 0; ch < k; ++ch)
            whole_.scores[ch * whole_.n + absent[i]] = product[i * k + ch];
    lay_out(std::nullopt);
}

void Solver::lay_out(std::optional<Restriction> shrunk) {
    // Everything that may throw (memory; items written in Python) comes first and into locals: an
    // exception leaves the old layout as it is.
    const double objective_now = scores_ && shrunk ? objective() : whole_.objective();
    const index n = shrunk ? shrunk->part.n : whole_.n;
    const bool same_items = rows_ && n == rows_->size();
    std::unique_ptr<Items> packed;
    if (shrunk && n < whole_.n) packed = items_.subset(shrunk->items);
    std::unique_ptr<Rows> rows;
    if (!same_items) {
        rows = std::make_unique<Rows>(packed ? *packed : items_, options_.cache_bytes,
                                      options_.threads, &control_.poll);
        if (rows_ && shrunk) {
            // Where the items that stay stood in the layout before: both lists ascend.
            std::vector<index> kept = shrunk->items;
            if (shrunk_)
                for (index& i : kept)
                    i = std::lower_bound(shrunk_->items.begin(), shrunk_->items.end(), i) -
                        shrunk_->items.begin();
            rows->inherit(*rows_, kept);
        } else if (rows_) {
            hits_ += rows_->hits();
            misses_ += rows_->misses();
        }
    }

    shrunk_ = std::move(shrunk);
    packed_.swap(packed);  // the old items live until the rows have let go of them
    if (same_items)
        rows_->rebind(items());
    else
        rows_ = std::move(rows);
    if (strategy_->pointwise() && items_.is_linear())
        scores_ = linear_scores(current(), items());
    else
        scores_ = kernel_scores(current(), *rows_);

    const Part& part = current();
    c_base_ = part.c;
    g_base_.resize(part.size());
    for (index v = 0; v < part.size(); ++v) g_base_[v] = part.gradient(v);
    base_ = objective_now;
}

double Solver::objective() {
    // f(c) = f(b) + 1/2 (c - b)'(G(b) + G(c)) for a quadratic f: of the variables that moved since
    // the layout was made, and those are all here.
    scores_->complete();
    const Part& part = current();
    double sum = 0;
    for (index v = 0; v < part.size(); ++v)
        sum += (part.c[v] - c_base_[v]) * (g_base_[v] + part.gradient(v));
    return base_ + sum / 2;
}

void Solver::correct(std::vector<double> scores) {
    part();
    whole_.scores = std::move(scores);
    lay_out(std::nullopt);
}

const Part& Solver::part() {
    scores_->complete();
    if (shrunk_) restore(*shrunk_, whole_);
    return whole_;
}

}  // namespace maxmargin
