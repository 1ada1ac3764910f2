// The solver and its parts: restriction, the row cache, every strategy, shrinking, interruption.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "solver.hpp"

using namespace maxmargin;

namespace {

// Two noisy classes in the plane, and the C-SVC on them.
struct Machine {
    std::vector<double> x;
    std::unique_ptr<Items> items;
    Part part;

    Machine(index n, double C, Kernel kernel, bool intercept) {
        RandomNumbers random(7);
        auto uniform = [&] { return static_cast<double>(random.next() >> 11) * 0x1.0p-53 - 0.5; };
        for (index i = 0; i < n; ++i) {
            const double y = i % 2 == 0 ? 1.0 : -1.0;
            x.push_back(uniform() + 0.3 * y);
            x.push_back(uniform());
            part.linear.push_back(-y);
            part.lower.push_back(y > 0 ? 0 : -C);
            part.upper.push_back(y > 0 ? C : 0);
            part.item.push_back(i);
        }
        const auto size = static_cast<std::size_t>(n);
        part.c.assign(size, 0);
        part.ridge.assign(size, 0);
        part.channel.assign(size, 0);
        part.group.assign(size, intercept ? 0 : -1);
        part.groups = intercept ? 1 : 0;
        part.n = n;
        part.scores.assign(size, 0);
        items = dense_items<double>(kernel, {x.data(), n, 2, 2}, nullptr);
    }
};

StrategySpec spec(StrategySpec::Kind kind, index size = 0, bool growing = false) {
    StrategySpec out{kind, size, growing, nullptr};
    if (kind == StrategySpec::Kind::block)
        out.inner = std::make_shared<StrategySpec>(spec(StrategySpec::Kind::second_order));
    return out;
}

struct Answer {
    double objective;
    std::vector<double> c;
    index iterations, misses;
    index least_active;  // variables, on the way
};

Answer solve(const Machine& machine, const StrategySpec& how, Options options, double tol = 1e-6) {
    Control control;
    control.limit = 10'000'000;
    index least_active = machine.part.n;
    const Solver* running = nullptr;
    control.poll = [&] {
        if (running != nullptr) least_active = std::min(least_active, running->active());
    };
    Solver solver(*machine.items, machine.part, how, options, control);
    running = &solver;
    CHECK(solver.run(tol) == End::converged);
    CHECK(solver.complete());
    const Part& part = solver.part();
    CHECK_CLOSE(solver.objective(), part.objective(), 1e-9 * std::abs(part.objective()));
    if (part.groups > 0) CHECK_CLOSE(std::accumulate(part.c.begin(), part.c.end(), 0.0), 0.0, 1e-9);

    // The scores are K c.
    std::vector<double> fresh(part.c.size());
    multiply(*machine.items, *machine.items, part.c.data(), 1, fresh.data(), 1);
    for (std::size_t i = 0; i < fresh.size(); ++i) CHECK_CLOSE(part.scores[i], fresh[i], 1e-9);
    return {part.objective(), part.c, control.iterations, solver.misses(), least_active};
}

const Kernel kRbf{Kernel::Kind::rbf, 1.0, 0.0, 3};
const Kernel kLinear{Kernel::Kind::linear, 1.0, 0.0, 3};

}  // namespace

TEST("a restriction keeps values, numbers its items anew and is put back") {
    Machine machine(10, 1.0, kRbf, true);
    Part whole = machine.part;
    std::iota(whole.scores.begin(), whole.scores.end(), 0.0);
    Restriction some = restrict(whole, {7, 2, 4});
    CHECK(some.variables == (std::vector<index>{2, 4, 7}));
    CHECK(some.items == (std::vector<index>{2, 4, 7}));
    CHECK(some.part.item == (std::vector<index>{0, 1, 2}));
    CHECK(some.part.scores == (std::vector<double>{2, 4, 7}));
    some.part.c[1] = 0.5;
    some.part.scores[2] = -1;
    restore(some, whole);
    CHECK(whole.c[4] == 0.5);
    CHECK(whole.scores[7] == -1);
    CHECK(whole.scores[6] == 6);
}

TEST("rows are the same bits, whatever the budget, and the least recently used goes first") {
    const Machine machine(50, 1.0, kRbf, true);
    const std::function<void()> poll = [] {};
    Rows all(*machine.items, 1e6, 2, &poll), few(*machine.items, 0, 1, &poll);
    for (index i = 0; i < 50; ++i) {
        const double *a = all.row(i), *b = few.row(i);
        CHECK(std::equal(a, a + 50, b));
        CHECK(few.value(i, 3) == a[3]);
        CHECK(a[i] == all.diagonal()[static_cast<std::size_t>(i)]);
    }
    CHECK(all.misses() == 50);
    few.row(49);
    CHECK(few.hits() == 1);
    few.row(0);
    few.row(49);
    CHECK(few.hits() == 2);
    CHECK(few.misses() == 51);
}

TEST("a cache holds as many rows as its budget pays for, and no more") {
    const Machine machine(50, 1.0, kRbf, true);
    const std::function<void()> poll = [] {};
    for (const index fits : {4, 10, 37}) {
        Rows rows(*machine.items, static_cast<double>(fits * 50 * 8), 1, &poll);
        for (int round = 0; round < 2; ++round)
            for (index i = 0; i < fits; ++i) rows.row(i);
        CHECK(rows.misses() == fits);
        for (int round = 0; round < 2;
             ++round)  // one too many, in a circle: always the next is gone
            for (index i = 0; i <= fits; ++i) rows.row(i);
        CHECK(rows.misses() == fits + (fits + 1) + 1);
    }
}

TEST("a cache inherits the rows of the items that stay") {
    const Machine machine(50, 1.0, kRbf, true);
    const std::function<void()> poll = [] {};
    Rows larger(*machine.items, 1e6, 1, &poll);
    for (const index i : {3, 8, 20}) larger.row(i);
    const std::vector<index> kept{3, 4, 20, 41};
    const auto items = machine.items->subset(kept);
    Rows rows(*items, 1e6, 1, &poll);
    rows.inherit(larger, kept);
    const index misses = rows.misses();
    Rows fresh(*items, 1e6, 1, &poll);
    for (const index i : {0, 2}) CHECK(std::equal(rows.row(i), rows.row(i) + 4, fresh.row(i)));
    CHECK(rows.misses() == misses);
    rows.row(1);
    CHECK(rows.misses() == misses + 1);
}

TEST("all strategies reach the same optimum") {
    using Kind = StrategySpec::Kind;
    for (const Kernel& kernel : {kRbf, kLinear})
        for (const bool intercept : {true, false}) {
            const Machine machine(300, 2.0, kernel, intercept);
            const double best = solve(machine, spec(Kind::second_order), {}).objective;
            for (const StrategySpec& how :
                 {spec(Kind::max_violating_pair), spec(Kind::random), spec(Kind::platt),
                  spec(Kind::block, 40), spec(Kind::block, 20, true)})
                CHECK_CLOSE(solve(machine, how, {}).objective, best, 1e-6 * std::abs(best));
            if (!intercept)
                CHECK_CLOSE(solve(machine, spec(Kind::coordinate), {}).objective, best,
                            1e-6 * std::abs(best));
        }
}

TEST("a nested block solves its blocks by blocks") {
    const Machine machine(300, 2.0, kRbf, true);
    StrategySpec outer = spec(StrategySpec::Kind::block, 100);
    outer.inner = std::make_shared<StrategySpec>(spec(StrategySpec::Kind::block, 20));
    const double best = solve(machine, spec(StrategySpec::Kind::second_order), {}).objective;
    CHECK_CLOSE(solve(machine, outer, {}).objective, best, 1e-6 * std::abs(best));
}

TEST("shrinking, cache and threads: the first changes no optimum, the others no bit") {
    const Machine machine(3000, 50.0, kRbf, true);
    const StrategySpec how = spec(StrategySpec::Kind::second_order);
    const Answer plain = solve(machine, how, {2e8, false, 1, 0}, 1e-4);
    const Answer shrunk = solve(machine, how, {2e8, true, 1, 0}, 1e-4);
    CHECK(plain.least_active == 3000);
    CHECK(shrunk.least_active < 1500);
    CHECK_CLOSE(shrunk.objective, plain.objective, 1e-5 * std::abs(plain.objective));
    const Answer threads = solve(machine, how, {2e8, true, 2, 0}, 1e-4);
    const Answer no_cache = solve(machine, how, {0, true, 2, 0}, 1e-4);
    CHECK(threads.c == shrunk.c);
    CHECK(no_cache.c == shrunk.c);
    CHECK(no_cache.misses > shrunk.misses);
}

TEST("a run stops at its limit and goes on from there to the same bits") {
    const Machine machine(500, 10.0, kRbf, true);
    const Answer whole = solve(machine, spec(StrategySpec::Kind::second_order), {2e8, false, 1, 0});
    Control control;
    control.poll = [] {};
    Solver solver(*machine.items, machine.part, spec(StrategySpec::Kind::second_order),
                  {2e8, false, 1, 0}, control);
    End end = End::limit;
    for (control.limit = 10; end == End::limit; control.limit += 10) {
        end = solver.run(1e-6);
        CHECK(control.iterations <= control.limit);
    }
    CHECK(solver.part().c == whole.c);
}

TEST("a poll that throws leaves the state of the last whole move") {
    for (const auto kind : {StrategySpec::Kind::second_order, StrategySpec::Kind::block}) {
        const Machine machine(3000, 50.0, kRbf, true);
        Control control;
        control.limit = 1'000'000;
        int polls = 0;
        control.poll = [&] {
            if (++polls == 40) throw Stopped{};
        };
        Solver solver(*machine.items, machine.part, spec(kind, 64), {2e8, false, 2, 0}, control);
        bool stopped = false;
        try {
            solver.run(1e-6);
        } catch (const Stopped&) {
            stopped = true;
        }
        CHECK(stopped);
        const Part part = solver.part();
        std::vector<double> fresh(part.c.size());
        multiply(*machine.items, *machine.items, part.c.data(), 1, fresh.data(), 1);
        for (std::size_t i = 0; i < fresh.size(); ++i) CHECK_CLOSE(part.scores[i], fresh[i], 1e-9);
        control.poll = [] {};
        CHECK(solver.run(1e-3) == End::converged);
    }
}

TEST("a sweep that finds no move polls") {
    // At c = 0 all gradients are 0 but those of the last two variables, which only one partner
    // fits: a sweep of random partners misses it, and Platt's and a coordinate's come to it late.
    constexpr index n = 100'000;
    using Kind = StrategySpec::Kind;
    for (const auto kind : {Kind::random, Kind::platt, Kind::coordinate}) {
        Machine machine(n, 1.0, kLinear, kind != Kind::coordinate);
        Part& part = machine.part;
        std::fill(part.linear.begin(), part.linear.end(), 0.0);
        std::fill(part.lower.begin(), part.lower.end(), 0.0);
        std::fill(part.upper.begin(), part.upper.end(), 0.0);
        part.linear[n - 2] = 1.0;
        part.lower[n - 2] = -1.0;
        part.linear[n - 1] = -1.0;
        part.upper[n - 1] = 1.0;
        Control control;
        control.limit = 1;
        bool running = false;
        index polls = 0;
        control.poll = [&] {
            if (running && control.iterations == 0) ++polls;
        };
        Solver solver(*machine.items, part, spec(kind), {}, control);
        running = true;
        solver.run(1e-3);
        CHECK(control.iterations == 1);
        CHECK(polls >= 5);
    }
}

TEST("an indefinite kernel is noticed") {
    const Kernel sigmoid{Kernel::Kind::sigmoid, 3.0, 1.0, 3};
    const Machine machine(100, 10.0, sigmoid, true);
    Control control;
    control.limit = 100'000;
    control.poll = [] {};
    Solver solver(*machine.items, machine.part, spec(StrategySpec::Kind::second_order), {},
                  control);
    solver.run(1e-3);
    CHECK(control.negative_curvature);
}
