// Crammer and Singer's machine, and sums over pairs for ranking, in the module maxmargin._core.
#include "bind_linear.hpp"
#include "crammer_singer.hpp"
#include "pairs.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

// The descent with what it refers to.
class ClassDescent {
  public:
    ClassDescent(std::shared_ptr<Design> design, const Indices& y, const Vector& price, index k,
                 const Matrix& start, bool shrinking, std::uint64_t seed, const nb::object& n_jobs)
        : design_(std::move(design)), python_(n_jobs), k_(k) {
        const index n = design_->rows();
        check_length(y.size(), n, "y");
        check_length(price.size(), n, "price");
        if (k < 2) throw std::invalid_argument("k: there must be at least two classes");
        if (start.size() != 0 &&
            (static_cast<index>(start.shape(0)) != n || static_cast<index>(start.shape(1)) != k))
            throw std::invalid_argument(
                "start must have a row for each row of the data and a "
                "column for each class");
        std::vector<index> classes = checked(y, k, "y");
        const nb::gil_scoped_release unlocked;
        if (auto packed = design_->compressed()) design_ = std::move(packed);
        descent_ = std::make_unique<CrammerSinger>(
            *design_, std::move(classes),
            std::vector<double>(price.data(), price.data() + price.size()), k,
            std::vector<double>(start.data(), start.data() + start.size()), shrinking, seed,
            python_.run);
    }
    ClassDescent(const ClassDescent&) = delete;
    ClassDescent& operator=(const ClassDescent&) = delete;

    bool run(index visits, double tol) {
        const nb::gil_scoped_release unlocked;
        return descent_->run(visits, tol);
    }
    double look(const Matrix& scores, double tol) {
        check_length(scores.shape(0), design_->rows(), "scores");
        check_length(scores.shape(1), k_, "a row of scores");
        const nb::gil_scoped_release unlocked;
        return descent_->look(scores.data(), tol);
    }
    nb::object coefficients() const {
        const auto [array, data] = new_array<double>({design_->rows(), k_});
        std::copy(descent_->coefficients().begin(), descent_->coefficients().end(), data);
        return array;
    }
    nb::object weights() const {
        const auto [array, data] = new_array<double>({design_->columns(), k_});
        descent_->weights(data);
        return array;
    }
    index sweeps() const { return descent_->sweeps(); }
    index active() const { return descent_->active(); }

  private:
    std::shared_ptr<Design> design_;
    Python python_;
    index k_;
    std::unique_ptr<CrammerSinger> descent_;
};

Queries make_queries(const Indices& items, const Indices& starts, const Indices& grade) {
    const auto n = static_cast<index>(items.size());
    check_length(grade.size(), n, "grade");
    Queries queries;
    queries.items = checked(items, n, "items");
    queries.starts = checked(starts, n + 1, "starts");
    queries.grade = checked(grade, std::max<index>(n, 1), "grade");
    if (queries.starts.empty() || queries.starts.front() != 0 || queries.starts.back() != n ||
        !std::is_sorted(queries.starts.begin(), queries.starts.end()))
        throw std::invalid_argument("starts must rise from 0 to the number of items");
    return queries;
}

nb::tuple pair_sums_of(const Queries& queries, const Vector& scores, const Matrix& values,
                       const nb::object& n_jobs) {
    const auto n = static_cast<index>(queries.items.size());
    check_length(scores.size(), n, "scores");
    check_length(values.shape(0), n, "values");
    const auto k = static_cast<index>(values.shape(1));
    const auto [below, below_data] = new_array<double>({n, k});
    const auto [above, above_data] = new_array<double>({n, k});
    const Python python(n_jobs);
    {
        const nb::gil_scoped_release unlocked;
        std::fill_n(below_data, n * k, 0.0);
        std::fill_n(above_data, n * k, 0.0);
        pair_sums(queries, scores.data(), values.data(), k, below_data, above_data, python.run);
    }
    return nb::make_tuple(below, above);
}

}  // namespace

void bind_descents(nb::module_& m) {
    nb::class_<ClassDescent>(m, "CrammerSinger", "Sequential dual descent for all classes at once.")
        .def(nb::init<std::shared_ptr<Design>, const Indices&, const Vector&, index, const Matrix&,
                      bool, std::uint64_t, const nb::object&>(),
             "design"_a, "y"_a, "price"_a, "k"_a, "start"_a, "shrinking"_a, "seed"_a,
             "n_jobs"_a.none() = nb::none())
        .def("run", &ClassDescent::run, "visits"_a, "tol"_a)
        .def("look", &ClassDescent::look, "scores"_a, "tol"_a)
        .def("coefficients", &ClassDescent::coefficients,
             nb::sig("def coefficients(self) -> numpy.ndarray"))
        .def("weights", &ClassDescent::weights, nb::sig("def weights(self) -> numpy.ndarray"))
        .def_prop_ro("sweeps", &ClassDescent::sweeps)
        .def_prop_ro("active", &ClassDescent::active);

    nb::class_<Queries>(m, "Queries", "Which items are compared, and their grades.")
        .def(nb::new_(&make_queries), "items"_a, "starts"_a, "grade"_a)
        .def("sums", &pair_sums_of, "scores"_a, "values"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def sums(self, scores: numpy.ndarray, values: numpy.ndarray, n_jobs: int | "
                     "None = None) -> tuple[numpy.ndarray, numpy.ndarray]"),
             "Sums of the values of lower items that come near, and of higher ones.");
}

}  // namespace maxmargin
