// The solver in the module maxmargin._core: checks what comes in and lets go of the interpreter's
// lock while the solver works.
#include <chrono>

#include "bind.hpp"
#include "solver.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

// (name, size, growing, inner), as solve.py makes it of a strategy.
StrategySpec make_spec(const nb::tuple& given) {
    using Kind = StrategySpec::Kind;
    constexpr std::pair<const char*, Kind> names[] = {
        {"random", Kind::random},
        {"platt", Kind::platt},
        {"max-violating-pair", Kind::max_violating_pair},
        {"second-order", Kind::second_order},
        {"block", Kind::block},
        {"coordinate", Kind::coordinate},
        {"group", Kind::group}};
    StrategySpec spec;
    const auto name = nb::cast<std::string>(given[0]);
    const auto* const known = std::find_if(std::begin(names), std::end(names),
                                           [&](const auto& entry) { return name == entry.first; });
    if (known == std::end(names)) throw std::invalid_argument("strategy: there is no " + name);
    spec.kind = known->second;
    spec.size = nb::cast<index>(given[1]);
    spec.growing = nb::cast<bool>(given[2]);
    if (spec.kind == Kind::block)
        spec.inner = std::make_shared<StrategySpec>(make_spec(nb::cast<nb::tuple>(given[3])));
    return spec;
}

template <class T>
std::vector<T> copied(const Borrowed<T, 1>& values, index n, const char* name) {
    if (static_cast<index>(values.size()) != n)
        throw std::invalid_argument(std::string(name) + ": it has " +
                                    std::to_string(values.size()) + " elements, not " +
                                    std::to_string(n));
    return {values.data(), values.data() + values.size()};
}

// A Solver with what it refers to, and the interpreter's lock held only to poll.
class SolverHandle {
  public:
    SolverHandle(std::shared_ptr<Items> items, Part part, const StrategySpec& spec,
                 const Options& options)
        : items_(std::move(items)) {
        control_.poll = [this] { poll(); };
        const nb::gil_scoped_release unlocked;
        solver_ = std::make_unique<Solver>(*items_, std::move(part), spec, options, control_);
    }
    SolverHandle(const SolverHandle&) = delete;
    SolverHandle& operator=(const SolverHandle&) = delete;

    // `poll` is called with no arguments every `interval` seconds or so; True ends the run.
    const char* run(double tol, index limit, const nb::callable& poll, double interval) {
        callback_ = &poll;
        interval_ = interval;
        next_ = Clock::now();
        control_.limit = limit;
        control_.poll = [this] { this->poll(); };
        const nb::gil_scoped_release unlocked;
        try {
            switch (solver_->run(tol)) {
                case End::converged:
                    return "converged";
                case End::rounding:
                    return "rounding";
                case End::limit:
                    return "limit";
            }
        } catch (const Stopped&) {
            return "stopped";  // the state is that of the last whole move
        }
        return "limit";
    }

    // After a stop: the scores that shrinking left behind, if they can be had in no time, so that
    // the answer has a gap.
    void look_back() {
        const nb::gil_scoped_release unlocked;
        const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(250);
        control_.poll = [deadline] {
            if (Clock::now() > deadline) throw Stopped{};
        };
        try {
            solver_->unshrink();
        } catch (const Stopped&) {
            return;  // Solver::complete() says so
        }
    }

    // What takes a pass over the data, or a new layout of it, holds no lock either.
    const Part& part() {
        const nb::gil_scoped_release unlocked;
        return solver_->part();
    }
    double objective() {
        const nb::gil_scoped_release unlocked;
        return solver_->objective();
    }
    void correct(std::vector<double> scores) {
        const nb::gil_scoped_release unlocked;
        solver_->correct(std::move(scores));
    }

    Solver& solver() { return *solver_; }
    const Control& control() const { return control_; }

  private:
    using Clock = std::chrono::steady_clock;

    void poll() {
        if (Clock::now() < next_) return;
        const nb::gil_scoped_acquire lock;
        if (nb::cast<bool>((*callback_)())) throw Stopped{};
        next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(interval_));
    }

    std::shared_ptr<Items> items_;
    Control control_;
    std::unique_ptr<Solver> solver_;
    const nb::callable* callback_ = nullptr;
    double interval_ = 0;
    Clock::time_point next_;
};

nb::object scores_array(const Part& part) {
    const auto [array, data] = new_array<double>({part.n, part.channels});
    for (index i = 0; i < part.n; ++i)
        for (index ch = 0; ch < part.channels; ++ch)
            data[i * part.channels + ch] = part.scores[ch * part.n + i];
    return array;
}

std::vector<double> scores_of(const Borrowed<double, 2>& given, index n, index channels) {
    if (static_cast<index>(given.shape(0)) != n || static_cast<index>(given.shape(1)) != channels)
        throw std::invalid_argument("scores: not one for each item and channel");
    std::vector<double> scores(given.size());
    for (index i = 0; i < n; ++i)
        for (index ch = 0; ch < channels; ++ch)
            scores[ch * n + i] = given.data()[i * channels + ch];
    return scores;
}

}  // namespace

void bind_solver(nb::module_& m) {
    using Floats = Borrowed<double, 1>;
    nb::class_<SolverHandle>(m, "Solver",
                             "The native solver; see maxmargin.solve, which says what it claims.")
        .def(
            "__init__",
            [](SolverHandle* self, std::shared_ptr<Items> items, const Floats& linear,
               const Floats& lower, const Floats& upper, const Floats& ridge, const Indices& item,
               const Indices& channel, const Indices& group, const std::optional<Indices>& minus,
               index n_groups, const Floats& coefficients, const Borrowed<double, 2>& scores,
               const nb::tuple& strategy, double cache_bytes, bool shrinking, int n_threads,
               std::uint64_t seed) {
                Part part;
                const auto m_ = static_cast<index>(linear.size());
                part.n = items->size();
                part.channels = static_cast<index>(scores.shape(1));
                part.groups = n_groups;
                part.linear = copied(linear, m_, "linear");
                part.lower = copied(lower, m_, "lower");
                part.upper = copied(upper, m_, "upper");
                part.ridge = copied(ridge, m_, "ridge");
                part.c = copied(coefficients, m_, "coefficients");
                part.item = checked(item, part.n, "item");
                part.channel = checked(channel, part.channels, "channel");
                part.group = copied(group, m_, "group");
                if (minus) part.minus = checked(minus, part.n, "minus");
                for (const index g : part.group)
                    if (g < -1 || g >= n_groups) throw std::out_of_range("group: there is none");
                const auto size = static_cast<std::size_t>(m_);
                if (part.item.size() != size || part.channel.size() != size ||
                    (minus && part.minus.size() != size))
                    throw std::invalid_argument("item, channel, minus: one for each variable");
                part.scores = scores_of(scores, part.n, part.channels);
                new (self) SolverHandle(std::move(items), std::move(part), make_spec(strategy),
                                        {cache_bytes, shrinking, n_threads, seed});
            },
            "items"_a, "linear"_a, "lower"_a, "upper"_a, "ridge"_a, "item"_a, "channel"_a,
            "group"_a, "minus"_a.none(), "n_groups"_a, "coefficients"_a, "scores"_a, "strategy"_a,
            "cache_bytes"_a, "shrinking"_a, "n_threads"_a, "seed"_a)
        .def("run", &SolverHandle::run, "tol"_a, "limit"_a, "poll"_a, "interval"_a = 0.1,
             "Go on; returns 'converged', 'rounding', 'limit' or 'stopped'.")
        .def("look_back", &SolverHandle::look_back,
             "After a stop: recompute the scores that shrinking left behind, if that is quick.")
        .def(
            "correct",
            [](SolverHandle& self, const Borrowed<double, 2>& scores) {
                const Part& part = self.part();
                self.correct(scores_of(scores, part.n, part.channels));
            },
            "scores"_a, "Replace the scores by more exact ones.")
        .def_prop_ro("coefficients",
                     [](SolverHandle& self) {
                         const Part& part = self.part();
                         const auto [array, data] = new_array<double>({part.size()});
                         std::copy(part.c.begin(), part.c.end(), data);
                         return array;
                     })
        .def_prop_ro("scores", [](SolverHandle& self) { return scores_array(self.part()); })
        .def_prop_ro("complete", [](SolverHandle& self) { return self.solver().complete(); })
        .def_prop_ro("iterations", [](SolverHandle& self) { return self.control().iterations; })
        .def_prop_ro("violation", [](SolverHandle& self) { return self.solver().violation(); })
        .def_prop_ro("objective", &SolverHandle::objective)
        .def_prop_ro("active", [](SolverHandle& self) { return self.solver().active(); })
        .def_prop_ro("hits", [](SolverHandle& self) { return self.solver().hits(); })
        .def_prop_ro("travel", [](SolverHandle& self) { return self.solver().travel(); })
        .def_prop_ro("negative_curvature",
                     [](SolverHandle& self) { return self.control().negative_curvature; });
}

}  // namespace maxmargin
