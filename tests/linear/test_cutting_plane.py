"""Cutting planes against generic solvers; the mixture's quadratic problem against enumeration."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from linear_optima import optimum

from maxmargin.linear import cutting_plane
from maxmargin.linear.cutting_plane import CuttingPlane, LossRisk, Planes, crossing
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    HuberisedInsensitive,
    Logistic,
    MulticlassHinge,
    PerceptronLoss,
    Softmax,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from maxmargin.linear.penalties import L1, L2
from maxmargin.linear.problem import Design, LinearProblem
from maxmargin.linear.simplex import mix
from maxmargin.linear.solver import Progress
from maxmargin.solution import Outcome

LOSSES = [
    Hinge(),
    SquaredHinge(),
    HuberisedHinge(0.5),
    Logistic(),
    EpsilonInsensitive(0.2),
    SquaredEpsilonInsensitive(0.2),
    HuberisedInsensitive(0.1, 0.5),
    Squared(),
]


def rows(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    t = X @ rng.normal(size=d) + 0.7 * rng.normal(size=n) + 0.5
    return X, t, rng.random(n) + 0.2


def posed(loss, free, C=1.0, sparse=False, n_jobs=1, seed=0):
    X, t, weights = rows(seed=seed)
    y = np.where(t > 0, 1.0, -1.0) if loss.task == "classification" else t
    design = Design(sp.csr_array(X) if sparse else X, 1.0, n_jobs)
    return LinearProblem(design, y, C * weights, loss, L2(), free)


def solved(problem, gap_tol=1e-8, max_iter=2000, start=None, **options):
    progress = Progress(problem, gap_tol, max_iter)
    CuttingPlane(**options).solve(progress, start, 0)
    return progress.solution()


@pytest.mark.parametrize("C", [0.01, 10.0])
@pytest.mark.parametrize("free", [False, True], ids=["penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_it_reaches_the_optimum_of_a_generic_solver(loss, free, C):
    problem = posed(loss, free, C)
    solution = solved(problem)
    assert solution.outcome is Outcome.CONVERGED
    best = optimum(problem)
    assert solution.primal == pytest.approx(best, rel=1e-6)
    assert solution.certificate.dual <= best * (1 + 1e-7)
    z = problem.design.scores(solution.weights)
    assert problem.primal(solution.weights, z) == pytest.approx(solution.primal, rel=1e-12)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("free", [False, True], ids=["penalised", "free"])
def test_planes_at_the_master_s_own_point_are_svm_perf(loss, free):
    problem = posed(loss, free)
    solution = solved(problem, line_search=False)
    assert solution.primal == pytest.approx(optimum(problem), rel=1e-6)
    assert solution.iterations > solved(problem).iterations


@pytest.mark.parametrize("loss", [MulticlassHinge(), Softmax()], ids=lambda loss: loss.name)
def test_losses_of_many_scores(loss):
    X, t, weights = rows()
    y = np.digitize(t, [-0.5, 0.8])
    problem = LinearProblem(Design(X, 1.0), y, weights, loss, L2(), False, 3)
    solution = solved(problem, 1e-7)
    if isinstance(loss, MulticlassHinge):
        assert solution.primal == pytest.approx(optimum(problem), rel=1e-6)
    assert solution.relative_gap <= 1e-7
    refused = LinearProblem(Design(X, 1.0), y, weights, loss, L2(), True, 3)
    assert "free intercept" in CuttingPlane().refusal(refused)


def test_what_it_does_not_solve():
    problem = posed(Hinge(), True)
    assert CuttingPlane().refusal(problem) is None
    other = LinearProblem(problem.design, problem.y, problem.price, Hinge(), L1(), True)
    assert "l2" in CuttingPlane().refusal(other)


@pytest.mark.parametrize(
    "loss", [Hinge(), EpsilonInsensitive(0.2), PerceptronLoss()], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_constant_is_the_best(loss, seed):
    problem = posed(loss, True, seed=seed)
    z = np.random.default_rng(seed).normal(size=len(problem.y)).round(1)  # with ties
    shift, c = LossRisk(problem).look(z)
    losses = [problem.price @ loss.value(problem.y, z + shift + t) for t in (0, -1e-3, 1e-3, -1, 1)]
    assert losses[0] <= min(losses) + 1e-12
    assert abs(c.sum()) < 1e-12 * np.abs(c).sum() + 1e-15
    # c are slopes there: Fenchel's equality holds row by row
    v = -c / problem.price
    fenchel = loss.value(problem.y, z + shift) + loss.conjugate(
        problem.y, np.clip(v, *loss.domain(problem.y))
    )
    np.testing.assert_allclose(fenchel, v * (z + shift), atol=1e-10)


@pytest.mark.parametrize("free", [False, True], ids=["penalised", "free"])
def test_the_answer_does_not_depend_on_threads_or_storage(free):
    one, two = (solved(posed(Hinge(), free, n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    sparse = solved(posed(Hinge(), free, sparse=True))
    np.testing.assert_allclose(sparse.weights, one.weights, atol=1e-6)


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=lambda loss: loss.name)
def test_a_weight_of_two_is_a_row_given_twice(loss):
    X, t, _ = rows()
    y, times = np.sign(t), np.random.default_rng(1).integers(1, 4, len(t))
    weighted = LinearProblem(Design(X, 1.0), y, times.astype(float), loss, L2(), True)
    again = np.repeat(np.arange(len(t)), times)
    repeated = LinearProblem(Design(X[again], 1.0), y[again], np.ones(len(again)), loss, L2(), True)
    a, b = solved(weighted, 1e-10), solved(repeated, 1e-10)
    assert a.primal == pytest.approx(b.primal, rel=1e-9)
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-4)


def test_a_good_start_saves_steps():
    problem = posed(Logistic(), True)
    first = solved(problem)
    assert solved(problem, start=first.weights).iterations < first.iterations / 2


def test_few_planes_are_enough(monkeypatch):
    """Planes that are mixed into one still make the gap fall."""
    monkeypatch.setattr(cutting_plane, "MEMORY", 0)
    problem = posed(Squared(), False, 10.0)
    solution = solved(problem, 1e-6, 5000)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.primal == pytest.approx(optimum(problem), rel=2e-6)


def test_planes_that_are_mixed_into_one_keep_the_mixture():
    rng = np.random.default_rng(0)
    planes = Planes(6)
    for _ in range(6):
        planes.add(rng.normal(size=9), rng.normal(size=3), rng.normal())
    planes.a = rng.dirichlet(np.ones(6))
    before = planes.mixture()
    planes._condense()
    assert len(planes.c) == 4
    for x, y in zip(before, planes.mixture(), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_mixtures_against_enumeration(seed):
    """Dependent planes, and planes of very different sizes."""
    rng = np.random.default_rng(seed)
    m, d = 6, 3
    V = rng.normal(size=(m, d)) * 10.0 ** rng.integers(-2, 3, size=(m, 1))
    V[-1] = V[0]
    b, K = rng.normal(size=m) * np.abs(V).max(axis=1), V @ V.T

    def value(a):
        return a @ K @ a / 2 - b @ a

    start = np.zeros(m)
    start[0] = 1.0
    found = mix(K, b, start)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    best = np.inf
    for size in range(1, m + 1):
        for S in map(list, combinations(range(m), size)):
            A = np.block([[K[np.ix_(S, S)], np.ones((size, 1))], [np.ones((1, size)), 0]])
            x = np.linalg.lstsq(A, np.append(b[S], 1.0), rcond=None)[0][:size]
            if (x >= -1e-12).all() and abs(x.sum() - 1) < 1e-9:
                a = np.zeros(m)
                a[S] = x
                best = min(best, value(a))
    scale = np.abs(K).max() * 1e-12 + abs(best) * 1e-9
    assert value(found) <= best + scale


@pytest.mark.parametrize("root", [0.001, 0.3, 0.999])
def test_a_crossing_is_found(root):
    def slope(t):
        return np.cbrt(t - root)

    t = crossing(slope, slope(0.0), slope(1.0))
    assert abs(slope(t)) <= 0.1 * abs(slope(0.0)) or abs(t - root) < 1e-6
    assert crossing(slope, 1.0, 2.0) == 0.0
    assert crossing(slope, -2.0, -1.0) == 1.0
