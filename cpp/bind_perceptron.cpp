// Online learning in the module maxmargin._core: a pass over the rows for every machine, machines
// in parallel.
#include <cmath>

#include "bind.hpp"
#include "perceptron.hpp"
#include "pool.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

template <int dimensions>
using Written = nb::ndarray<double, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// The state of k machines, changed in place: weights (k, d), intercepts (k,), what the average
// needs, and the number of steps (k,).
struct State {
    Written<2> w;
    Written<1> b;
    std::optional<Written<2>> past_w;
    std::optional<Written<1>> past_b;
    Written<1> t;
};

template <class Array>
void check_shape(const Array& array, index k, index d, const char* name) {
    const bool fits = static_cast<index>(array.shape(0)) == k &&
                      (array.ndim() == 1 || static_cast<index>(array.shape(1)) == d);
    if (!fits) throw std::invalid_argument(std::string(name) + ": not one for each machine");
}

// Runs pass(stream, machine) for the machines named; returns their mistakes and losses.
template <class Pass>
nb::tuple run(const Items& items, const Indices& order, const Indices& labels,
              const Indices& machines, const Indices& positive, const Borrowed<double, 1>& weight,
              const State& state, bool intercept, int n_threads, Pass pass) {
    if (!items.is_linear()) throw std::invalid_argument("items: the kernel must be linear");
    const index d = items.dimension(), k = static_cast<index>(positive.size());
    if (static_cast<index>(labels.size()) != items.size())
        throw std::invalid_argument("labels: not one for each item");
    if (weight.size() == 0) throw std::invalid_argument("weight: none");
    for (const index label : std::span(labels.data(), labels.size()))
        if (label < 0 || label >= static_cast<index>(weight.size()))
            throw std::out_of_range("labels: a class without a weight");
    check_shape(state.w, k, d, "w");
    check_shape(state.b, k, d, "b");
    check_shape(state.t, k, d, "t");
    if (state.past_w.has_value() != state.past_b.has_value())
        throw std::invalid_argument("past_w, past_b: both or none");
    if (state.past_w) check_shape(*state.past_w, k, d, "past_w");
    if (state.past_b) check_shape(*state.past_b, k, d, "past_b");
    const std::vector<index> rows = checked(order, items.size(), "order");
    const std::vector<index> chosen = checked(machines, k, "machines");

    const auto n = static_cast<index>(chosen.size());
    const auto [mistakes, n_mistakes] = new_array<index>({n});
    const auto [losses, loss] = new_array<double>({n});
    {
        const nb::gil_scoped_release unlocked;
        std::vector<double> squares(static_cast<std::size_t>(items.size()));
        items.diagonal(squares.data());
        const Stream stream{
            items,         rows,
            labels.data(), squares.data(),
            weight.data(), *std::max_element(weight.data(), weight.data() + weight.size()),
            intercept};
        const auto poll = interruptible();
        pool().run(
            n, n_threads,
            [&, n_mistakes = n_mistakes, loss = loss](index c) {
                const index m = chosen[static_cast<std::size_t>(c)];
                Machine machine;
                machine.positive = positive.data()[m];
                machine.w = state.w.data() + m * d;
                machine.b = state.b.data() + m;
                if (state.past_w) {
                    machine.past_w = state.past_w->data() + m * d;
                    machine.past_b = state.past_b->data() + m;
                }
                machine.t = state.t.data()[m];
                const Tally tally = pass(stream, machine);
                state.t.data()[m] = machine.t;
                n_mistakes[c] = tally.mistakes;
                loss[c] = tally.loss;
            },
            &poll);
    }
    return nb::make_tuple(mistakes, losses);
}

Rule rule_named(const std::string& name) {
    constexpr std::pair<const char*, Rule> names[] = {
        {"perceptron", Rule::perceptron},
        {"hinge", Rule::passive_aggressive_1},
        {"squared_hinge", Rule::passive_aggressive_2}};
    for (const auto& [known, rule] : names)
        if (name == known) return rule;
    throw std::invalid_argument("rule: there is no " + name);
}

}  // namespace

void bind_perceptron(nb::module_& m) {
    m.def(
        "perceptron_pass",
        [](const Items& items, const Indices& order, const Indices& labels, const Indices& machines,
           const Indices& positive, const Borrowed<double, 1>& weight, const Written<2>& w,
           const Written<1>& b, const std::optional<Written<2>>& past_w,
           const std::optional<Written<1>>& past_b, const Written<1>& t, bool intercept,
           int n_threads, const std::string& rule, double C, double eta0) {
            const Rule which = rule_named(rule);
            if (!(C > 0.0)) throw std::invalid_argument("C: it must be positive");
            return run(items, order, labels, machines, positive, weight, {w, b, past_w, past_b, t},
                       intercept, n_threads, [=](const Stream& stream, Machine& machine) {
                           return perceptron_pass(stream, machine, which, C, eta0);
                       });
        },
        "items"_a, "order"_a, "labels"_a, "machines"_a, "positive"_a, "weight"_a, "w"_a.noconvert(),
        "b"_a.noconvert(), "past_w"_a.noconvert().none(), "past_b"_a.noconvert().none(),
        "t"_a.noconvert(), "intercept"_a, "n_threads"_a, "rule"_a, "C"_a, "eta0"_a,
        "A pass of the perceptron or of a passive-aggressive rule; returns mistakes and losses.");
    m.def(
        "pegasos_pass",
        [](const Items& items, const Indices& order, const Indices& labels, const Indices& machines,
           const Indices& positive, const Borrowed<double, 1>& weight, const Written<2>& w,
           const Written<1>& b, const Written<2>& past_w, const Written<1>& past_b,
           const Written<1>& t, bool intercept, int n_threads, double lambda, index batch) {
            if (!(lambda > 0.0)) throw std::invalid_argument("alpha: it must be positive");
            if (batch < 1) throw std::invalid_argument("batch_size: it must be positive");
            return run(items, order, labels, machines, positive, weight, {w, b, past_w, past_b, t},
                       intercept, n_threads, [=](const Stream& stream, Machine& machine) {
                           return pegasos_pass(stream, machine, lambda, batch);
                       });
        },
        "items"_a, "order"_a, "labels"_a, "machines"_a, "positive"_a, "weight"_a, "w"_a.noconvert(),
        "b"_a.noconvert(), "past_w"_a.noconvert(), "past_b"_a.noconvert(), "t"_a.noconvert(),
        "intercept"_a, "n_threads"_a, "alpha"_a, "batch_size"_a,
        "A pass of Pegasos; returns mistakes and hinge losses.");
}

}  // namespace maxmargin
