"""Regularisation paths: the grid, each solution, and how they are shown."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from linear_problems import linear_problem
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import LinearClassifier, LinearRegressor, regularization_path
from maxmargin.linear.coordinate_newton import CoordinateNewton
from maxmargin.linear.losses import EpsilonInsensitive, Hinge, Logistic, Softmax, Squared
from maxmargin.linear.path import path_of_problems, smallest_C
from maxmargin.linear.penalties import L1, L2, ElasticNet, Group
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.proximal_gradient import ProximalGradient
from maxmargin.linear.solver import Progress


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    signal = X @ ([2.0, -1.5, 1.0] + [0.0] * 9) + 0.4
    return X, np.where(signal + rng.normal(size=80) > 0, "yes", "no"), signal


def solved(problem, solver, gap_tol=1e-10):
    progress = Progress(problem, gap_tol, 10**5)
    solver.solve(progress, None, 0)
    return progress.solution()


def scaled(problem, factor):
    return LinearProblem(
        problem.design,
        problem.y,
        factor * problem.price,
        problem.loss,
        problem.penalty,
        problem.free,
        problem.n_scores,
    )


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Softmax()], ids=str)
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5), Group([0, 0, 1, 1, 2, -1])], ids=str)
@pytest.mark.parametrize("free", [False, True])
def test_first_weight_leaves_zero_at_the_smallest_C(loss, penalty, free):
    if isinstance(loss, Softmax) and isinstance(penalty, Group):
        return
    problem = linear_problem(loss, penalty, free)
    C = smallest_C(problem)
    for factor, any_weight in ((0.99, False), (1.01, True)):
        at = scaled(problem, factor * C)
        nothing = np.zeros(problem.shape)
        # w = 0 and the best intercept, found by a solver that may move nothing else.
        solution = solved(at, ProximalGradient(every=50), gap_tol=1e-9)
        size = np.abs(problem.penalised(solution.weights)).max()
        assert (size > 1e-5) == any_weight
        assert solution.primal <= at.primal(nothing, at.design.scores(nothing))


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.2)], ids=str)
@pytest.mark.parametrize("free", [False, True])
def test_losses_with_kinks_have_no_weight_at_the_smallest_C(loss, free):
    problem = linear_problem(loss, L1(), free)
    at = scaled(problem, 0.99 * smallest_C(problem))
    solution = solved(at, CoordinateNewton(), gap_tol=1e-7)
    assert problem.penalised(solution.weights) == pytest.approx(0, abs=1e-6)


def test_l2_never_has_a_zero_weight():
    assert smallest_C(linear_problem(Logistic(), L2())) == 0
    assert smallest_C(linear_problem(Logistic(), ElasticNet(0.0))) == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "logistic", "penalty": "l1"},
        {"loss": "logistic", "penalty": "elasticnet", "penalize_intercept": True},
        {"loss": "squared_hinge", "penalty": "l1", "fit_intercept": False},
        {"loss": "hinge", "penalty": "l2"},
        {"loss": "squared_hinge", "penalty": Group(np.arange(12) // 3)},
        {"loss": "softmax", "penalty": "l2"},
    ],
    ids=str,
)
def test_each_solution_is_that_of_a_fit(data, parameters):
    X, y, _ = data
    machine = LinearClassifier(**parameters, gap_tol=1e-7, max_iter=10**5)
    path = regularization_path(machine, X, y, Cs=[1.0, 0.1, 0.3], score=True)
    assert path.Cs.tolist() == [0.1, 0.3, 1.0]
    assert path.train_scores is not None
    for i, C in enumerate(path.Cs):
        alone = LinearClassifier(**parameters, C=C, gap_tol=1e-7, max_iter=10**5).fit(X, y)
        assert path.objectives[i] == pytest.approx(alone.objective_, rel=2e-7)
        assert path.dual_gaps[i] <= 1e-7 * path.objectives[i]
        np.testing.assert_allclose(path.coefs[i], alone.coef_, atol=2e-2)
        apart = path.intercepts[i] - alone.intercept_
        if parameters["loss"] == "softmax":  # says nothing of what all intercepts have in common
            apart = apart - apart.mean()
        np.testing.assert_allclose(apart, 0.0, atol=2e-2)
        assert path.train_scores[i] == pytest.approx(alone.score(X, y), abs=0.03)
    assert machine.C == 1.0 and not hasattr(machine, "coef_")


def test_grid_begins_where_the_first_weight_does(data):
    X, y, _ = data
    machine = LinearClassifier("logistic", "l1", gap_tol=1e-8)
    path = regularization_path(machine, sp.csr_array(X), y, Cs=10, ratio=100)
    assert path.n_nonzero[0] == 0 < path.n_nonzero[1]
    assert path.Cs[-1] == pytest.approx(100 * path.Cs[0])
    assert np.allclose(np.diff(np.log(path.Cs)), np.log(100) / 9)
    assert np.array_equal(path.n_nonzero, np.count_nonzero(path.coefs, axis=(1, 2)))


def test_many_classes_and_weights(data):
    X, _, t = data
    y = np.digitize(t, [-1, 1])
    weights = np.arange(80) % 3
    machine = LinearClassifier("logistic", "l1", gap_tol=1e-8)
    weighted = regularization_path(machine, X, y, Cs=4, sample_weight=weights)
    repeated = regularization_path(machine, X.repeat(weights, axis=0), y.repeat(weights), Cs=4)
    assert weighted.coefs.shape == (4, 3, 12)
    np.testing.assert_allclose(weighted.Cs, repeated.Cs, rtol=1e-9)
    np.testing.assert_allclose(weighted.objectives, repeated.objectives, rtol=1e-7)


def test_regression_and_nothing_to_learn(data):
    X, _, t = data
    path = regularization_path(LinearRegressor(penalty="l1", gap_tol=1e-8), X, t, Cs=5)
    assert path.coefs.shape == (5, 12) and path.intercepts.shape == (5,)
    assert path.n_nonzero[0] == 0
    flat = regularization_path(LinearRegressor(penalty="l1"), X, np.ones(80), Cs=3)
    assert flat.n_nonzero.tolist() == [0, 0, 0]
    np.testing.assert_allclose(flat.intercepts, 1.0, atol=1e-6)


def test_one_solution_starts_the_next(data):
    problem = linear_problem(Logistic(), L1())
    starts = []

    class Watched(ProximalGradient):
        def solve(self, progress, start, seed):
            starts.append(start)
            super().solve(progress, start, seed)

    answers = list(
        path_of_problems(
            lambda C: [scaled(problem, C)],
            np.array([0.1, 0.2, 0.4]),
            Watched(),
            lambda at, p: Progress(p, 1e-6, 1000),
            0,
            [None],
        )
    )
    assert starts[0] is None
    assert np.array_equal(starts[1], answers[0][0].weights)
    assert np.array_equal(starts[2], answers[1][0].weights)


def test_a_stopped_path_has_what_was_solved(data):
    X, y, _ = data
    machine = LinearClassifier("logistic", "l1", time_limit=0.0)
    with pytest.warns(ConvergenceWarning):
        path = regularization_path(machine, X, y, Cs=5)
    assert 1 <= len(path.Cs) == len(path.coefs) == len(path.dual_gaps) < 5


def test_plot(data, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, y, _ = data
    path = regularization_path(LinearClassifier("logistic", "l1"), X, y, Cs=5)
    ax = path.plot()
    assert len(ax.lines) == np.count_nonzero(path.coefs.any(axis=(0, 1)))
    assert ax.get_xscale() == "log"
    assert path.plot(ax) is ax
    matplotlib.pyplot.close(ax.figure)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        path.plot()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"Cs": 0}, "at least 1"),
        ({"Cs": [1.0, -1.0]}, "positive values"),
        ({"Cs": []}, "positive values"),
        ({"Cs": [1.0], "ratio": 10.0}, "ratio is for a number"),
        ({"ratio": 0.5}, "greater than 1"),
    ],
)
def test_wrong_arguments(data, wrong, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        regularization_path(LinearClassifier(), X, y, **wrong)


def test_other_estimators_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="estimator must be a linear machine"):
        regularization_path(maxmargin.SVC(), X, y)  # type: ignore[arg-type]
