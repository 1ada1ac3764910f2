// The module maxmargin._core. The only file that knows Python: it checks what comes in, borrows
// arrays, and lets go of the interpreter's lock while the core computes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "items.hpp"
#include "pool.hpp"
#include "solver.hpp"
#include "tile.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace maxmargin {
namespace {

// ---- Arrays ----------------------------------------------------------------------------------

template <class T, int dimensions>
using Borrowed = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Indices = Borrowed<index, 1>;

// Keeps a Python object alive for native code, which may let go of it on any thread.
template <class Object>
std::shared_ptr<Object> keep(Object object) {
    return {new Object(std::move(object)), [](Object* kept) {
                const nb::gil_scoped_acquire lock;
                delete kept;  // NOLINT(cppcoreguidelines-owning-memory)
            }};
}

// A new NumPy array, and where its numbers go.
template <class T>
struct NewArray {
    nb::object array;
    T* data;
};

template <class T>
NewArray<T> new_array(std::initializer_list<index> shape) {
    nb::list sizes;
    for (const index n : shape) sizes.append(n);
    const char* type = std::is_same_v<T, float>    ? "float32"
                       : std::is_same_v<T, double> ? "float64"
                                                   : "int64";
    nb::object array = nb::module_::import_("numpy").attr("empty")(nb::tuple(sizes), type);
    return {array, nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(array).data()};
}

nb::object index_array(std::span<const index> values) {
    const auto [array, data] = new_array<index>({static_cast<index>(values.size())});
    std::copy(values.begin(), values.end(), data);
    return array;
}

// The indices given, or all n of them; each in range.
std::vector<index> checked(const std::optional<Indices>& given, index n, const char* name) {
    if (!given) {
        std::vector<index> all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    const std::vector<index> indices(given->data(), given->data() + given->size());
    for (const index i : indices)
        if (i < 0 || i >= n)
            throw std::out_of_range(std::string(name) + ": " + std::to_string(i) +
                                    " is not the index of one of " + std::to_string(n) + " items");
    return indices;
}

// The number of threads that an n_jobs stands for; Python knows the rules (threads.py).
int threads(const nb::object& n_jobs) {
    return nb::cast<int>(
        nb::module_::import_("maxmargin.threads").attr("effective_threads")(n_jobs));
}

// Lets Python handle its signals (Ctrl-C) some ten times a second.
std::function<void()> interruptible() {
    using clock = std::chrono::steady_clock;
    return [last = clock::now()]() mutable {
        if (clock::now() - last < std::chrono::milliseconds(100)) return;
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        last = clock::now();
    };
}

// ---- Items written in Python -----------------------------------------------------------------

// Forwards to a Python object with the methods of maxmargin.kernels.Items. Never concurrent.
class PythonItems final : public Items {
  public:
    explicit PythonItems(nb::object items)
        : size_(static_cast<index>(nb::len(items))),
          single_(nb::cast<bool>(items.attr("dtype").attr("__eq__")("float32"))),
          items_(keep(std::move(items))) {}

    index size() const override { return size_; }
    bool single_precision() const override { return single_; }
    bool concurrent() const override { return false; }

    void tile(std::span<const index> rows, const Items& other, index begin, index end, float* out,
              index stride) const override {
        call(rows, other, begin, end, out, stride);
    }
    void tile(std::span<const index> rows, const Items& other, index begin, index end, double* out,
              index stride) const override {
        call(rows, other, begin, end, out, stride);
    }

    void diagonal(double* out) const override {
        const nb::gil_scoped_acquire lock;
        copy<double>(items_->attr("diagonal")(), {size_}, out, size_);
    }

    std::unique_ptr<Items> subset(std::span<const index> rows) const override {
        const nb::gil_scoped_acquire lock;
        return std::make_unique<PythonItems>(items_->attr("subset")(index_array(rows)));
    }

  private:
    template <class T>
    void call(std::span<const index> rows, const Items& other, index begin, index end, T* out,
              index stride) const {
        const auto* right = dynamic_cast<const PythonItems*>(&other);
        if (right == nullptr)
            throw std::invalid_argument("other: these items were made by another kernel");
        const nb::gil_scoped_acquire lock;
        std::vector<index> columns(static_cast<std::size_t>(end - begin));
        std::iota(columns.begin(), columns.end(), begin);
        copy<T>(items_->attr("tile")(index_array(rows), *right->items_, index_array(columns)),
                {static_cast<index>(rows.size()), end - begin}, out, stride);
    }

    // Copies what Python returned, row by row, if it is what was asked for.
    template <class T>
    static void copy(const nb::object& result, std::initializer_list<index> shape, T* out,
                     index stride) {
        const nb::object array = nb::module_::import_("numpy").attr("ascontiguousarray")(
            result, sizeof(T) == sizeof(float) ? "float32" : "float64");
        const auto values = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(array);
        bool fits = values.ndim() == shape.size();
        for (std::size_t i = 0; fits && i < shape.size(); ++i)
            fits = static_cast<index>(values.shape(i)) == shape.begin()[i];
        if (!fits)
            throw std::invalid_argument(
                "kernel: expected one value for each pair of items (or each item), got an array of "
                "shape " +
                std::string(nb::str(array.attr("shape")).c_str()));
        if (!std::all_of(values.data(), values.data() + values.size(),
                         [](T v) { return std::isfinite(v); }))
            throw std::invalid_argument("kernel: it returned NaN or infinity");
        const index columns = shape.begin()[shape.size() - 1];
        const index rows = shape.size() == 1 ? 1 : shape.begin()[0];
        for (index r = 0; r < rows; ++r)
            std::copy_n(values.data() + r * columns, columns, out + r * stride);
    }

    index size_;
    bool single_;
    std::shared_ptr<nb::object> items_;
};

// ---- Making items ----------------------------------------------------------------------------

Kernel make_kernel(const std::string& name, double gamma, double coef0, int degree) {
    using Kind = Kernel::Kind;
    constexpr std::pair<const char*, Kind> names[] = {{"linear", Kind::linear},
                                                      {"polynomial", Kind::polynomial},
                                                      {"rbf", Kind::rbf},
                                                      {"sigmoid", Kind::sigmoid},
                                                      {"laplacian", Kind::laplacian}};
    for (const auto& [known, kind] : names)
        if (name == known) {
            // The exponentials are for negative arguments only.
            const bool exponential = kind == Kind::rbf || kind == Kind::laplacian;
            if (exponential && !(gamma >= 0.0))
                throw std::invalid_argument("gamma: it must not be negative");
            if (degree < 0) throw std::invalid_argument("degree: it must not be negative");
            return {kind, gamma, coef0, degree};
        }
    throw std::invalid_argument("kernel: there is none called '" + name + "'");
}

template <class T>
Dense<T> view(const Borrowed<T, 2>& x) {
    const auto rows = static_cast<index>(x.shape(0)), columns = static_cast<index>(x.shape(1));
    return {x.data(), rows, columns, columns};
}

template <class T>
std::shared_ptr<Items> make_dense(const Kernel& kernel, const Borrowed<T, 2>& x) {
    const std::shared_ptr<const void> owner = keep(Borrowed<T, 2>(x));
    const nb::gil_scoped_release unlocked;
    return dense_items(kernel, view(x), owner);
}

// What would send native code astray: rows that do not follow each other, columns out of range.
template <class T, class I>
void check_csr(const Csr<T, I>& x, index nonzeros) {
    bool valid = x.starts[0] == 0 && x.starts[x.rows] == nonzeros;
    for (index i = 0; valid && i < x.rows; ++i)
        valid = x.starts[i] <= x.starts[i + 1] && x.starts[i + 1] <= nonzeros;
    for (index i = 0; valid && i < x.rows; ++i) {
        index last = -1;
        for (index k = x.starts[i]; valid && k < x.starts[i + 1]; last = x.indices[k++])
            valid = x.indices[k] > last && x.indices[k] < x.columns;
    }
    if (!valid)
        throw std::invalid_argument(
            "X: not a CSR matrix with sorted, unique column indices (see sum_duplicates)");
}

template <class T, class I>
std::shared_ptr<Items> make_csr(const Kernel& kernel, const Borrowed<T, 1>& values,
                                const Borrowed<I, 1>& indices, const Borrowed<I, 1>& starts,
                                index n_features) {
    if (starts.size() == 0 || values.size() != indices.size() || n_features < 0)
        throw std::invalid_argument("X: the arrays of the CSR matrix do not fit together");
    struct Arrays {
        Borrowed<T, 1> values;
        Borrowed<I, 1> indices, starts;
    };
    const std::shared_ptr<const void> owner = keep(Arrays{values, indices, starts});
    const Csr<T, I> x{values.data(), indices.data(), starts.data(),
                      static_cast<index>(starts.size()) - 1, n_features};
    const nb::gil_scoped_release unlocked;
    check_csr(x, static_cast<index>(values.size()));
    return csr_items(kernel, x, owner);
}

template <class T>
std::shared_ptr<Items> make_gram(const Borrowed<T, 2>& matrix, const std::optional<Indices>& ids) {
    const std::shared_ptr<const void> owner = keep(Borrowed<T, 2>(matrix));
    if (!ids) return gram_items(view(matrix), {}, owner);
    return gram_items(view(matrix), {ids->data(), ids->size()}, owner);
}

// ---- Using them ------------------------------------------------------------------------------

template <class T>
nb::object tile_as(const Items& items, const std::vector<index>& rows, const Items& right,
                   index begin, index end, int n_threads) {
    constexpr index rows_per_chunk = 32;
    const auto n = static_cast<index>(rows.size()), width = end - begin;
    const auto [array, data] = new_array<T>({n, width});
    const index per_chunk = items.concurrent() ? rows_per_chunk : std::max<index>(n, 1);
    const nb::gil_scoped_release unlocked;
    auto poll = interruptible();
    pool().run((n + per_chunk - 1) / per_chunk, n_threads,
               [&, out = data](index chunk) {
                   const index first = chunk * per_chunk;
                   const std::span some(rows.data() + first, std::min(per_chunk, n - first));
                   items.tile(some, right, begin, end, out + first * width, width);
               },
               &poll);
    return array;
}

nb::object tile(const Items& items, const std::optional<Indices>& rows, const Items& other,
                const std::optional<Indices>& cols, const nb::object& n_jobs, bool in_float64) {
    const std::vector<index> left = checked(rows, items.size(), "rows");
    std::unique_ptr<Items> packed;
    if (cols) packed = other.subset(checked(cols, other.size(), "cols"));
    const Items& right = packed ? *packed : other;
    const int n_threads = threads(n_jobs);
    if (items.single_precision() && !in_float64)
        return tile_as<float>(items, left, right, 0, right.size(), n_threads);
    return tile_as<double>(items, left, right, 0, right.size(), n_threads);
}

nb::object diagonal(const Items& items) {
    const auto [array, data] = new_array<double>({items.size()});
    double* out = data;
    const nb::gil_scoped_release unlocked;
    items.diagonal(out);
    return array;
}

nb::object multiply_items(const Items& items, const Items& other, const Borrowed<double, 2>& v,
                          const nb::object& n_jobs) {
    if (static_cast<index>(v.shape(0)) != other.size())
        throw std::invalid_argument("V: it has " + std::to_string(v.shape(0)) +
                                    " rows, and other has " + std::to_string(other.size()) +
                                    " items");
    const auto k = static_cast<index>(v.shape(1));
    const auto [array, data] = new_array<double>({items.size(), k});
    double* out = data;
    const int n_threads = threads(n_jobs);
    const nb::gil_scoped_release unlocked;
    const auto poll = interruptible();
    multiply(items, other, v.data(), k, out, n_threads, &poll);
    return array;
}

nb::object dtype(const Items& items) {
    return nb::module_::import_("numpy").attr("dtype")(items.single_precision() ? "float32"
                                                                                : "float64");
}

void bind_items(nb::module_& m) {
    nb::class_<Kernel>(m, "Kernel", "A vector kernel, as native code sees it.")
        .def(nb::new_(&make_kernel), "name"_a, "gamma"_a = 1.0, "coef0"_a = 0.0, "degree"_a = 3);

    nb::class_<Items>(m, "Items",
                      "A data set made ready for a kernel; see maxmargin.kernels.Items.")
        .def("__len__", &Items::size)
        .def_prop_ro("dtype", &dtype, nb::sig("def dtype(self) -> numpy.dtype"),
                     "The type of the data, and of tiles.")
        .def("tile", &tile, "rows"_a.none(), "other"_a, "cols"_a.none() = nb::none(),
             "n_jobs"_a.none() = nb::none(), "in_float64"_a = false,
             nb::sig("def tile(self, rows: numpy.ndarray | None, other: Items, "
                     "cols: numpy.ndarray | None = None, n_jobs: int | None = None, "
                     "in_float64: bool = False) -> numpy.ndarray"),
             "The kernel between these rows and those columns of `other`.")
        .def("diagonal", &diagonal, nb::sig("def diagonal(self) -> numpy.ndarray"),
             "The kernel between each item and itself.")
        .def("multiply", &multiply_items, "other"_a, "V"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def multiply(self, other: Items, V: numpy.ndarray, "
                     "n_jobs: int | None = None) -> numpy.ndarray"),
             "K(self, other) @ V, without holding K.")
        .def(
            "subset",
            [](const Items& items, const Indices& rows) {
                return std::shared_ptr<Items>(items.subset(checked(rows, items.size(), "rows")));
            },
            "rows"_a, nb::sig("def subset(self, rows: numpy.ndarray) -> Items"),
            "A packed copy of these rows.");

    m.def("dense_items", &make_dense<float>, "kernel"_a, "X"_a.noconvert());
    m.def("dense_items", &make_dense<double>, "kernel"_a, "X"_a.noconvert());
    const auto def_csr = [&m](auto make) {
        m.def("csr_items", make, "kernel"_a, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), "n_features"_a);
    };
    def_csr(&make_csr<float, std::int32_t>);
    def_csr(&make_csr<float, std::int64_t>);
    def_csr(&make_csr<double, std::int32_t>);
    def_csr(&make_csr<double, std::int64_t>);
    m.def("gram_items", &make_gram<float>, "matrix"_a.noconvert(), "ids"_a.none() = nb::none());
    m.def("gram_items", &make_gram<double>, "matrix"_a.noconvert(), "ids"_a.none() = nb::none());
    m.def(
        "python_items",
        [](nb::object items) -> std::shared_ptr<Items> {
            return std::make_shared<PythonItems>(std::move(items));
        },
        "items"_a, "Items that forward to a Python object with the same methods.");
}

// ---- The solver ------------------------------------------------------------------------------

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
        .def(
            "correct",
            [](SolverHandle& self, const Borrowed<double, 2>& scores) {
                const Part& part = self.solver().part();
                self.solver().correct(scores_of(scores, part.n, part.channels));
            },
            "scores"_a, "Replace the scores by more exact ones.")
        .def_prop_ro("coefficients",
                     [](SolverHandle& self) {
                         const Part& part = self.solver().part();
                         const auto [array, data] = new_array<double>({part.size()});
                         std::copy(part.c.begin(), part.c.end(), data);
                         return array;
                     })
        .def_prop_ro("scores",
                     [](SolverHandle& self) { return scores_array(self.solver().part()); })
        .def_prop_ro("complete", [](SolverHandle& self) { return self.solver().complete(); })
        .def_prop_ro("iterations", [](SolverHandle& self) { return self.control().iterations; })
        .def_prop_ro("violation", [](SolverHandle& self) { return self.solver().violation(); })
        .def_prop_ro("objective", [](SolverHandle& self) { return self.solver().objective(); })
        .def_prop_ro("active", [](SolverHandle& self) { return self.solver().active(); })
        .def_prop_ro("hits", [](SolverHandle& self) { return self.solver().hits(); })
        .def_prop_ro("travel", [](SolverHandle& self) { return self.solver().travel(); })
        .def_prop_ro("negative_curvature",
                     [](SolverHandle& self) { return self.control().negative_curvature; });
}

}  // namespace
}  // namespace maxmargin

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of maxmargin.";
    maxmargin::tiles();  // an instruction set that is not to be had fails the import, not a fit
    m.def("instruction_set", &maxmargin::instruction_set,
          "The instruction set that computes the kernels: generic, avx2 or avx512.");
    m.def(
        "thread_limit", [] { return maxmargin::pool().limit(); },
        "The most threads that any computation may use (set through threadpoolctl).");
    maxmargin::bind_items(m);
    maxmargin::bind_solver(m);
}
