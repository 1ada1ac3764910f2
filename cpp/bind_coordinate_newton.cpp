// Coordinate-descent Newton in the module maxmargin._core.
#include "bind.hpp"
#include "coordinate_newton.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

using Vector = Borrowed<double, 1>;

template <class T>
std::shared_ptr<Columns> make_dense(const Borrowed<T, 2>& x, double bias) {
    const auto rows = static_cast<index>(x.shape(0)), columns = static_cast<index>(x.shape(1));
    const nb::gil_scoped_release unlocked;
    return columns_of(Dense<T>{x.data(), rows, columns, columns}, bias);
}

template <class T, class I>
std::shared_ptr<Columns> make_csr(const Borrowed<T, 1>& values, const Borrowed<I, 1>& indices,
                                  const Borrowed<I, 1>& starts, index n_features, double bias) {
    const Csr<T, I> x = checked_csr<T, I>(values, indices, starts, n_features);
    const nb::gil_scoped_release unlocked;
    return columns_of(x, bias);
}

nb::object vector_of(const std::vector<double>& values) {
    const auto [array, data] = new_array<double>({static_cast<index>(values.size())});
    std::copy(values.begin(), values.end(), data);
    return array;
}

void check_length(const Vector& values, index n, const char* name) {
    if (static_cast<index>(values.size()) != n)
        throw std::invalid_argument(std::string(name) + ": it has " +
                                    std::to_string(values.size()) + " numbers, not " +
                                    std::to_string(n));
}

std::vector<double> copied(const Vector& values, index n, const char* name) {
    check_length(values, n, name);
    return {values.data(), values.data() + values.size()};
}

nb::object combine(const Columns& columns, const Vector& c, const nb::object& n_jobs) {
    check_length(c, columns.rows(), "c");
    const auto [array, data] = new_array<double>({columns.columns()});
    const std::function<void()> poll = interruptible();
    const Run run{threads(n_jobs), &poll};
    {
        const nb::gil_scoped_release unlocked;
        columns.combine(c.data(), data, run);
    }
    return array;
}

nb::object weighted_norms(const Columns& columns, const Vector& s) {
    check_length(s, columns.rows(), "s");
    const auto [array, data] = new_array<double>({columns.columns()});
    {
        const nb::gil_scoped_release unlocked;
        for (index j = 0; j < columns.columns(); ++j) data[j] = columns.weighted_norm(j, s.data());
    }
    return array;
}

// The descent with what it refers to.
class Coordinates {
  public:
    Coordinates(std::shared_ptr<Columns> columns, const Vector& y, const Vector& price, double l1,
                double l2, bool free, const Vector& start, std::uint64_t seed,
                const nb::object& n_jobs)
        : columns_(std::move(columns)), poll_(interruptible()) {
        const index n = columns_->rows();
        SparseProblem problem{copied(y, n, "y"), copied(price, n, "price"), l1, l2, free};
        descent_ = std::make_unique<CoordinateNewton>(*columns_, std::move(problem),
                                                      copied(start, columns_->columns(), "start"),
                                                      seed, Run{threads(n_jobs), &poll_});
    }
    Coordinates(const Coordinates&) = delete;
    Coordinates& operator=(const Coordinates&) = delete;

    void set_loss(const Loss& loss) {
        const nb::gil_scoped_release unlocked;
        descent_->set_loss(loss);
    }
    index descend(const Indices& working, double target, index most) {
        const std::vector<index> chosen = checked(working, columns_->columns(), "working");
        const nb::gil_scoped_release unlocked;
        return descent_->descend(chosen, target, most);
    }
    nb::object weights() const { return vector_of(descent_->weights()); }
    nb::object scores() const { return vector_of(descent_->scores()); }
    nb::object slopes() const { return vector_of(descent_->slopes()); }

  private:
    std::shared_ptr<Columns> columns_;
    std::function<void()> poll_;
    std::unique_ptr<CoordinateNewton> descent_;
};

}  // namespace

void bind_coordinate_newton(nb::module_& m) {
    nb::class_<Columns>(m, "Columns", "A design matrix by columns.")
        .def_prop_ro("rows", &Columns::rows)
        .def_prop_ro("columns", &Columns::columns)
        .def("combine", &combine, "c"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def combine(self, c: numpy.ndarray, n_jobs: int | None = None) -> "
                     "numpy.ndarray"),
             "X'c.")
        .def("weighted_norms", &weighted_norms, "s"_a,
             nb::sig("def weighted_norms(self, s: numpy.ndarray) -> numpy.ndarray"),
             "sum_i s_i x_ij^2, for each column.");
    m.def("dense_columns", &make_dense<float>, "X"_a.noconvert(), "bias"_a);
    m.def("dense_columns", &make_dense<double>, "X"_a.noconvert(), "bias"_a);
    const auto def_csr = [&m](auto make) {
        m.def("csr_columns", make, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), "n_features"_a, "bias"_a);
    };
    def_csr(&make_csr<float, std::int32_t>);
    def_csr(&make_csr<float, std::int64_t>);
    def_csr(&make_csr<double, std::int32_t>);
    def_csr(&make_csr<double, std::int64_t>);

    nb::class_<Coordinates>(m, "CoordinateNewton", "Coordinate-descent Newton on working sets.")
        .def(nb::init<std::shared_ptr<Columns>, const Vector&, const Vector&, double, double, bool,
                      const Vector&, std::uint64_t, const nb::object&>(),
             "columns"_a, "y"_a, "price"_a, "l1"_a, "l2"_a, "free"_a, "start"_a, "seed"_a,
             "n_jobs"_a.none() = nb::none())
        .def("set_loss", &Coordinates::set_loss, "loss"_a)
        .def("descend", &Coordinates::descend, "working"_a, "target"_a, "most"_a,
             nb::sig("def descend(self, working: numpy.ndarray, target: float, most: int) -> int"))
        .def("weights", &Coordinates::weights, nb::sig("def weights(self) -> numpy.ndarray"))
        .def("scores", &Coordinates::scores, nb::sig("def scores(self) -> numpy.ndarray"))
        .def("slopes", &Coordinates::slopes, nb::sig("def slopes(self) -> numpy.ndarray"));
}

}  // namespace maxmargin
