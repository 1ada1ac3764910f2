// The linear machines in the module maxmargin._core.
#include <cmath>

#include "bind_linear.hpp"
#include "coordinate_descent.hpp"
#include "loss.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

template <class T>
std::shared_ptr<Design> make_dense(const Borrowed<T, 2>& x, double bias) {
    const auto rows = static_cast<index>(x.shape(0)), columns = static_cast<index>(x.shape(1));
    return dense_design(Dense<T>{x.data(), rows, columns, columns}, bias, keep(Borrowed<T, 2>(x)));
}

template <class T, class I>
std::shared_ptr<Design> make_csr(const Borrowed<T, 1>& values, const Borrowed<I, 1>& indices,
                                 const Borrowed<I, 1>& starts, index n_features, double bias) {
    struct Arrays {
        Borrowed<T, 1> values;
        Borrowed<I, 1> indices, starts;
    };
    const Csr<T, I> x = checked_csr<T, I>(values, indices, starts, n_features);
    return csr_design(x, bias, keep(Arrays{values, indices, starts}));
}

nb::object scores(const Design& design, const Matrix& W, const nb::object& n_jobs) {
    check_length(W.shape(0), design.columns(), "W");
    const auto k = static_cast<index>(W.shape(1));
    const auto [array, data] = new_array<double>({design.rows(), k});
    const Python python(n_jobs);
    {
        const nb::gil_scoped_release unlocked;
        design.scores(W.data(), k, data, python.run);
    }
    return array;
}

nb::object combine(const Design& design, const Matrix& C, const nb::object& n_jobs) {
    check_length(C.shape(0), design.rows(), "C");
    const auto k = static_cast<index>(C.shape(1));
    const auto [array, data] = new_array<double>({design.columns(), k});
    const Python python(n_jobs);
    {
        const nb::gil_scoped_release unlocked;
        design.combine(C.data(), k, data, python.run);
    }
    return array;
}

nb::object gram(const Design& design, const Vector& h, const nb::object& n_jobs) {
    check_length(h.size(), design.rows(), "h");
    const auto [array, data] = new_array<double>({design.columns(), design.columns()});
    const Python python(n_jobs);
    {
        const nb::gil_scoped_release unlocked;
        design.gram(h.data(), data, python.run);
    }
    return array;
}

nb::object norms(const Design& design, const nb::object& n_jobs) {
    const auto [array, data] = new_array<double>({design.rows()});
    const Python python(n_jobs);
    {
        const nb::gil_scoped_release unlocked;
        design.norms(data, python.run);
    }
    return array;
}

// ---- Losses ----------------------------------------------------------------------------------

Loss make_loss(const std::string& name, double width, double epsilon) {
    using Kind = Loss::Kind;
    constexpr std::pair<const char*, Kind> names[] = {
        {"hinge", Kind::hinge},
        {"squared_hinge", Kind::squared_hinge},
        {"logistic", Kind::logistic},
        {"squared", Kind::squared},
        {"insensitive", Kind::insensitive},
        {"squared_insensitive", Kind::squared_insensitive}};
    for (const auto& [known, kind] : names)
        if (name == known) return {kind, width, epsilon};
    throw std::invalid_argument("loss: there is none called '" + name + "'");
}

nb::tuple slopes_of(const Loss& loss, const Vector& y, const Vector& price, const Vector& z,
                    const nb::object& n_jobs) {
    const auto n = static_cast<index>(z.size());
    check_length(y.size(), n, "y");
    check_length(price.size(), n, "price");
    const auto [c, c_data] = new_array<double>({n});
    const auto [h, h_data] = new_array<double>({n});
    const Python python(n_jobs);
    double value = 0.0;
    {
        const nb::gil_scoped_release unlocked;
        value = slopes(loss, y.data(), price.data(), z.data(), n, c_data, h_data, python.run);
    }
    return nb::make_tuple(value, c, h);
}

nb::tuple along_line(const Loss& loss, const Vector& y, const Vector& price, const Vector& z,
                     const Vector& q, double t, const nb::object& n_jobs) {
    const auto n = static_cast<index>(z.size());
    check_length(y.size(), n, "y");
    check_length(price.size(), n, "price");
    check_length(q.size(), n, "q");
    const Python python(n_jobs);
    Local at;
    {
        const nb::gil_scoped_release unlocked;
        at = along(loss, y.data(), price.data(), z.data(), q.data(), t, n, python.run);
    }
    return nb::make_tuple(at.value, at.slope, at.curvature);
}

// ---- Dual coordinate descent -----------------------------------------------------------------

std::vector<double> copied(const Matrix& values, index n, index k, const char* name) {
    if (values.size() == 0) return {};
    if (static_cast<index>(values.shape(0)) != n || static_cast<index>(values.shape(1)) != k)
        throw std::invalid_argument(std::string(name) +
                                    ": it must have a row for each row of the "
                                    "data and a column for each problem");
    return {values.data(), values.data() + values.size()};
}

// The descent with what it refers to.
class Descent {
  public:
    Descent(std::shared_ptr<Design> design, const Matrix& linear, const Matrix& lower,
            const Matrix& upper, const Matrix& ridge, double epsilon, bool logistic,
            const Matrix& start, const Matrix& weights, bool shrinking, std::uint64_t seed,
            const nb::object& n_jobs)
        : design_(std::move(design)), python_(n_jobs) {
        const index n = design_->rows();
        CoordinateProblem problem;
        problem.k = static_cast<index>(lower.shape(1));
        problem.linear = copied(linear, n, problem.k, "linear");
        problem.lower = copied(lower, n, problem.k, "lower");
        problem.upper = copied(upper, n, problem.k, "upper");
        problem.ridge = copied(ridge, n, problem.k, "ridge");
        problem.epsilon = epsilon;
        problem.logistic = logistic;
        std::vector<double> c = copied(start, n, problem.k, "start");
        std::vector<double> w = copied(weights, design_->columns(), problem.k, "weights");
        if (problem.lower.empty() || problem.upper.empty() || c.empty())
            throw std::invalid_argument("lower, upper and start must not be empty");
        const nb::gil_scoped_release unlocked;
        if (auto packed = design_->compressed()) design_ = std::move(packed);
        descent_ = std::make_unique<CoordinateDescent>(*design_, std::move(problem), std::move(c),
                                                       std::move(w), shrinking, seed, python_.run);
    }
    Descent(const Descent&) = delete;
    Descent& operator=(const Descent&) = delete;

    bool run(index visits, double tol) {
        const nb::gil_scoped_release unlocked;
        return descent_->run(visits, tol);
    }
    nb::object look(const Matrix& scores_of_all, double tol) {
        check_length(scores_of_all.shape(0), design_->rows(), "scores");
        std::vector<double> worst;
        {
            const nb::gil_scoped_release unlocked;
            worst = descent_->look(scores_of_all.data(), tol);
        }
        const auto [array, data] = new_array<double>({static_cast<index>(worst.size())});
        std::copy(worst.begin(), worst.end(), data);
        return array;
    }
    nb::object coefficients() const {
        const std::vector<double>& c = descent_->coefficients();
        const index n = design_->rows();
        const auto [array, data] = new_array<double>({n, static_cast<index>(c.size()) / n});
        std::copy(c.begin(), c.end(), data);
        return array;
    }
    nb::object weights() const {
        const auto k = static_cast<index>(descent_->coefficients().size()) / design_->rows();
        const auto [array, data] = new_array<double>({design_->columns(), k});
        descent_->weights(data);
        return array;
    }
    void set_offset(index j, double offset) { descent_->set_offset(j, offset); }
    void freeze(index j) { descent_->freeze(j); }
    index sweeps() const { return descent_->sweeps(); }
    index active() const { return descent_->active(); }

  private:
    std::shared_ptr<Design> design_;
    Python python_;
    std::unique_ptr<CoordinateDescent> descent_;
};

}  // namespace

void bind_linear(nb::module_& m) {
    nb::class_<Design>(m, "Design", "The rows of a linear machine, with a constant feature.")
        .def_prop_ro("rows", &Design::rows)
        .def_prop_ro("features", &Design::features)
        .def_prop_ro("columns", &Design::columns)
        .def_prop_ro("bias", &Design::bias)
        .def_prop_ro("stored", &Design::stored)
        .def("scores", &scores, "W"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def scores(self, W: numpy.ndarray, n_jobs: int | None = None) -> "
                     "numpy.ndarray"),
             "X W.")
        .def("combine", &combine, "C"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def combine(self, C: numpy.ndarray, n_jobs: int | None = None) -> "
                     "numpy.ndarray"),
             "X' C.")
        .def("gram", &gram, "h"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def gram(self, h: numpy.ndarray, n_jobs: int | None = None) -> "
                     "numpy.ndarray"),
             "X' diag(h) X.")
        .def("norms", &norms, "n_jobs"_a.none() = nb::none(),
             nb::sig("def norms(self, n_jobs: int | None = None) -> numpy.ndarray"),
             "The squared length of each row.");
    m.def("dense_design", &make_dense<float>, "X"_a.noconvert(), "bias"_a);
    m.def("dense_design", &make_dense<double>, "X"_a.noconvert(), "bias"_a);
    const auto def_csr = [&m](auto make) {
        m.def("csr_design", make, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), "n_features"_a, "bias"_a);
    };
    def_csr(&make_csr<float, std::int32_t>);
    def_csr(&make_csr<float, std::int64_t>);
    def_csr(&make_csr<double, std::int32_t>);
    def_csr(&make_csr<double, std::int64_t>);

    nb::class_<Loss>(m, "Loss", "A loss, as native code sees it.")
        .def(nb::new_(&make_loss), "name"_a, "width"_a = 0.0, "epsilon"_a = 0.0)
        .def("slopes", &slopes_of, "y"_a, "price"_a, "z"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def slopes(self, y: numpy.ndarray, price: numpy.ndarray, z: numpy.ndarray, "
                     "n_jobs: int | None = None) -> tuple[float, numpy.ndarray, numpy.ndarray]"),
             "The sum of the losses, minus their derivatives, their curvatures.")
        .def("along", &along_line, "y"_a, "price"_a, "z"_a, "q"_a, "t"_a,
             "n_jobs"_a.none() = nb::none(),
             nb::sig("def along(self, y: numpy.ndarray, price: numpy.ndarray, z: numpy.ndarray, "
                     "q: numpy.ndarray, t: float, n_jobs: int | None = None) -> "
                     "tuple[float, float, float]"),
             "Value, slope and curvature of t -> sum of losses at z + t q.");

    nb::class_<Descent>(m, "Descent", "Dual coordinate descent.")
        .def(nb::init<std::shared_ptr<Design>, const Matrix&, const Matrix&, const Matrix&,
                      const Matrix&, double, bool, const Matrix&, const Matrix&, bool,
                      std::uint64_t, const nb::object&>(),
             "design"_a, "linear"_a, "lower"_a, "upper"_a, "ridge"_a, "epsilon"_a, "logistic"_a,
             "start"_a, "weights"_a, "shrinking"_a, "seed"_a, "n_jobs"_a.none() = nb::none())
        .def("run", &Descent::run, "visits"_a, "tol"_a)
        .def("look", &Descent::look, "scores"_a, "tol"_a,
             nb::sig("def look(self, scores: numpy.ndarray, tol: float) -> numpy.ndarray"))
        .def("coefficients", &Descent::coefficients,
             nb::sig("def coefficients(self) -> numpy.ndarray"))
        .def("weights", &Descent::weights, nb::sig("def weights(self) -> numpy.ndarray"))
        .def("set_offset", &Descent::set_offset, "j"_a, "offset"_a)
        .def("freeze", &Descent::freeze, "j"_a)
        .def_prop_ro("sweeps", &Descent::sweeps)
        .def_prop_ro("active", &Descent::active);
}

}  // namespace maxmargin
