// The stochastic methods in the module maxmargin._core.
#include "stochastic.hpp"

#include "bind_linear.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

// Rows to visit, each in range.
std::vector<index> checked_rows(const Indices& rows, const Design& design, const Vector& y) {
    check_length(y.size(), design.rows(), "y");
    return checked(rows, design.rows(), "rows");
}

nb::tuple pegasos_pass(const Design& design, const Vector& y, const Indices& rows, index batch,
                       double lambda, bool project, const Vector& w, index t) {
    const std::vector<index> order = checked_rows(rows, design, y);
    check_length(w.size(), design.columns(), "w");
    if (batch < 1 || t < 0 || !(lambda > 0.0))
        throw std::invalid_argument("batch and lambda must be positive, and t not negative");
    const auto [array, data] = copy_of(w);
    const Python python{nb::none()};
    {
        const nb::gil_scoped_release unlocked;
        t = pegasos(design, y.data(), {order.data(), static_cast<index>(order.size())}, batch,
                    lambda, project, data, t, python.run);
    }
    return nb::make_tuple(array, t);
}

nb::tuple averaged_pass(const Design& design, const Loss& loss, const Vector& y,
                        const Indices& rows, double lambda, double delay, bool free,
                        const Vector& w, const Vector& average, index t) {
    const std::vector<index> order = checked_rows(rows, design, y);
    check_length(w.size(), design.columns(), "w");
    check_length(average.size(), design.columns(), "average");
    if (t < 0 || !(lambda > 0.0) || !(delay >= 1.0))
        throw std::invalid_argument("lambda must be positive, delay at least 1, t not negative");
    if (free && design.bias() == 0.0)
        throw std::invalid_argument("free: there is no constant feature");
    const auto [last, last_data] = copy_of(w);
    const auto [mean, mean_data] = copy_of(average);
    const Python python{nb::none()};
    {
        const nb::gil_scoped_release unlocked;
        t = averaged_sgd(design, loss, y.data(), {order.data(), static_cast<index>(order.size())},
                         {lambda, delay, free}, last_data, mean_data, t, python.run);
    }
    return nb::make_tuple(last, mean, t);
}

nb::tuple saga_pass(const Design& design, const Loss& loss, const Vector& y, const Vector& factor,
                    const Indices& rows, double step, double l1, double l2, bool free,
                    const Vector& w, const Vector& mean, const Vector& slopes_of_rows) {
    const std::vector<index> order = checked_rows(rows, design, y);
    check_length(factor.size(), design.rows(), "factor");
    check_length(w.size(), design.columns(), "w");
    check_length(mean.size(), design.columns(), "mean");
    check_length(slopes_of_rows.size(), design.rows(), "slopes");
    if (free && design.bias() == 0.0)
        throw std::invalid_argument("free: there is no constant feature");
    const auto [weights, weights_data] = copy_of(w);
    const auto [average, average_data] = copy_of(mean);
    const auto [remembered, remembered_data] = copy_of(slopes_of_rows);
    const Python python{nb::none()};
    {
        const nb::gil_scoped_release unlocked;
        saga(design, loss, y.data(), factor.data(),
             {order.data(), static_cast<index>(order.size())}, {step, l1, l2, free}, weights_data,
             average_data, remembered_data, python.run);
    }
    return nb::make_tuple(weights, average, remembered);
}

}  // namespace

void bind_stochastic(nb::module_& m) {
    m.def("pegasos", &pegasos_pass, "design"_a, "y"_a, "rows"_a, "batch"_a, "lambda_"_a,
          "project"_a, "w"_a, "t"_a,
          nb::sig("def pegasos(design: Design, y: numpy.ndarray, rows: numpy.ndarray, batch: int, "
                  "lambda_: float, project: bool, w: numpy.ndarray, t: int) -> "
                  "tuple[numpy.ndarray, int]"),
          "One pass of Pegasos over rows: the weights, and the steps made by now.");
    m.def("averaged_sgd", &averaged_pass, "design"_a, "loss"_a, "y"_a, "rows"_a, "lambda_"_a,
          "delay"_a, "free"_a, "w"_a, "average"_a, "t"_a,
          nb::sig("def averaged_sgd(design: Design, loss: Loss, y: numpy.ndarray, rows: "
                  "numpy.ndarray, lambda_: float, delay: float, free: bool, w: numpy.ndarray, "
                  "average: numpy.ndarray, t: int) -> tuple[numpy.ndarray, numpy.ndarray, int]"),
          "One pass of subgradient steps: the last point, the average, the steps made by now.");
    m.def("saga", &saga_pass, "design"_a, "loss"_a, "y"_a, "factor"_a, "rows"_a, "step"_a, "l1"_a,
          "l2"_a, "free"_a, "w"_a, "mean"_a, "slopes"_a,
          nb::sig("def saga(design: Design, loss: Loss, y: numpy.ndarray, factor: numpy.ndarray, "
                  "rows: numpy.ndarray, step: float, l1: float, l2: float, free: bool, w: "
                  "numpy.ndarray, mean: numpy.ndarray, slopes: numpy.ndarray) -> "
                  "tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]"),
          "One pass of SAGA: the weights, the mean gradient, the slopes remembered of the rows.");
}

}  // namespace maxmargin
