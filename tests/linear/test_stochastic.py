"""Stochastic methods: each step against the formulas, each answer against a generic solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from linear_optima import optimum

from maxmargin import _core
from maxmargin.io import open_chunks
from maxmargin.linear.blocks import BlockDesign
from maxmargin.linear.cutting_plane import CuttingPlane
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    Logistic,
    Squared,
    SquaredHinge,
)
from maxmargin.linear.newton import native
from maxmargin.linear.penalties import L1, L2, ElasticNet, Group
from maxmargin.linear.problem import Design, LinearProblem
from maxmargin.linear.solver import Progress
from maxmargin.linear.stochastic import AveragedSGD, Pegasos, ProxSAGA
from maxmargin.solution import Outcome


def rows(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    t = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 0.3
    return X, t, rng.random(n) + 0.3


def posed(loss, free=False, C=0.2, penalty=None, sparse=False, weighted=True, bias=1.0):
    X, t, weights = rows()
    y = np.where(t > 0, 1.0, -1.0) if loss.task == "classification" else t
    price = C * (weights if weighted else np.ones(len(t)))
    design = Design(sp.csr_array(X) if sparse else X, bias)
    return LinearProblem(design, y, price, loss, penalty or L2(), free)


def solved(solver, problem, gap_tol=1e-6, max_iter=300, seed=0):
    assert solver.refusal(problem) is None
    progress = Progress(problem, gap_tol, max_iter)
    solver.solve(progress, None, seed)
    return progress.solution()


# ------------------------------------------------------------------ against the formulas


def with_constant(X, bias=1.0):
    return np.column_stack([X, np.full(len(X), bias)])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("batch", [1, 7])
def test_pegasos_is_the_lectures(batch, project, sparse):
    X, t, _ = rows()
    y, lambda_ = np.sign(t), 0.05
    order = np.random.default_rng(1).integers(len(y), size=200)
    A = with_constant(X)
    w = np.zeros(6)
    for step, begin in enumerate(range(0, 200, batch), start=1):
        chosen = order[begin : begin + batch]
        wrong = chosen[y[chosen] * (A[chosen] @ w) < 1]
        eta = 1 / (lambda_ * step)
        w = (1 - eta * lambda_) * w + eta / len(chosen) * (y[wrong] @ A[wrong])
        if project:
            w *= min(1.0, 1 / np.sqrt(lambda_) / np.linalg.norm(w))
    design = Design(sp.csr_array(X) if sparse else X, 1.0).native
    found, steps = _core.pegasos(design, y, order, batch, lambda_, project, np.zeros(6), 0)
    assert steps == -(-200 // batch)
    np.testing.assert_allclose(found, w, rtol=1e-10)
    # in two calls
    cut = 70
    half, steps = _core.pegasos(design, y, order[:cut], batch, lambda_, project, np.zeros(6), 0)
    again, _ = _core.pegasos(design, y, order[cut:], batch, lambda_, project, half, steps)
    np.testing.assert_allclose(again, w, rtol=1e-10)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Squared()], ids=lambda loss: loss.name)
def test_averaged_steps(loss, free):
    X, t, _ = rows()
    y = np.sign(t)
    lambda_, delay = 0.1, 30.0
    order = np.random.default_rng(1).integers(len(y), size=3000)
    A = with_constant(X, 2.0)
    counted = np.append(np.ones(5), 0.0 if free else 1.0)
    w, average = np.zeros(6), np.zeros(6)
    for step, i in enumerate(order, start=1):
        eta = 2 / (lambda_ * (step + delay))
        z = A[i : i + 1] @ w
        slope = loss.derivative(y[i : i + 1], z)[0]
        w = w - eta * (lambda_ * counted * w + slope * A[i])
        average += 2 / (step + 1) * (w - average)
    design = Design(X, 2.0).native
    last, mean, steps = _core.averaged_sgd(
        design, native(loss), y, order, lambda_, delay, free, np.zeros(6), np.zeros(6), 0
    )
    assert steps == 3000
    np.testing.assert_allclose(last, w, rtol=1e-8)
    np.testing.assert_allclose(mean, average, rtol=1e-8)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.03, 0.0), (0.03, 0.05)])
@pytest.mark.parametrize("sparse", [False, True])
def test_saga_catches_up_with_the_steps_it_has_put_off(sparse, l1, l2, free):
    X, t, weights = rows()
    y, factor = np.sign(t), weights / weights.mean()
    loss, step, n = Logistic(), 0.1, len(y)
    order = np.random.default_rng(1).integers(n, size=400)
    A = with_constant(X)
    w = np.random.default_rng(2).normal(size=6)
    slopes = loss.derivative(y, A @ w)
    mean = A.T @ (factor * slopes) / n
    start = (w.copy(), mean.copy(), slopes.copy())
    counted = np.append(np.ones(5), 0.0 if free else 1.0)
    for i in order:
        slope = loss.derivative(y[i : i + 1], A[i : i + 1] @ w)[0]
        change = factor[i] * (slope - slopes[i]) * A[i]
        w = w - step * (change + mean)
        w = np.sign(w) * np.maximum(np.abs(w) - step * l1 * counted, 0) / (1 + step * l2 * counted)
        mean = mean + change / n
        slopes[i] = slope
    design = Design(sp.csr_array(X) if sparse else X, 1.0).native
    found = _core.saga(design, native(loss), y, factor, order, step, l1, l2, free, *start)
    for x, expected in zip(found, (w, mean, slopes), strict=True):
        np.testing.assert_allclose(x, expected, atol=1e-11)


def test_coordinates_that_change_sign_while_they_wait():
    """One row is visited again and again; the other coordinate drifts, from far, through zero."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    y, order = np.ones(2), np.zeros(500, dtype=np.int64)
    for drift in (-0.3, 0.05, 0.3):
        for l2 in (0.0, 0.01):
            w = 2.0
            for _ in range(500):
                w -= 0.1 * drift
                w = np.sign(w) * max(abs(w) - 0.01, 0) / (1 + 0.1 * l2)
            found, _, _ = _core.saga(
                Design(X).native, native(Squared()), y, np.ones(2), order, 0.1, 0.1, l2, False,
                np.array([0.0, 2.0]), np.array([0.0, drift]), np.zeros(2),
            )  # fmt: skip
            assert found[1] == pytest.approx(w, abs=1e-9)


# ------------------------------------------------------------------ against generic solvers


@pytest.mark.parametrize("free", [False, True], ids=["penalised", "free"])
@pytest.mark.parametrize(
    "loss", [SquaredHinge(), HuberisedHinge(0.5), Logistic(), Squared()], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("penalty", [L2(), L1(), ElasticNet(0.3)], ids=lambda each: each.name)
def test_saga_reaches_the_optimum(loss, penalty, free):
    problem = posed(loss, free, penalty=penalty)
    solution = solved(ProxSAGA(), problem, max_iter=3000)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.primal == pytest.approx(optimum(problem), rel=1e-6)


@pytest.mark.parametrize("solver", [Pegasos(), Pegasos(5, False), AveragedSGD()], ids=str)
@pytest.mark.parametrize(
    "loss", [Hinge(), Logistic(), EpsilonInsensitive(0.1)], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("free", [False, True], ids=["penalised", "free"])
def test_subgradient_methods_come_within_a_hundredth(loss, free, solver):
    problem = posed(loss, free, C=0.05)
    if solver.refusal(problem) is not None:
        assert isinstance(solver, Pegasos)
        assert free or not isinstance(loss, Hinge)
        return
    solution = solved(solver, problem, 1e-12, 200)
    best = optimum(problem)
    assert best <= solution.primal * (1 + 1e-9)
    assert solution.primal <= best * 1.01
    assert solution.certificate.dual <= best * (1 + 1e-9)
    assert solution.outcome is Outcome.MAX_ITER  # no convergence is claimed that is not there
    assert not solution.converged


@pytest.mark.parametrize("solver", [Pegasos(3), AveragedSGD(), ProxSAGA()], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_seeds(solver, weighted):
    loss = Logistic() if isinstance(solver, ProxSAGA) else Hinge()
    problem = posed(loss, weighted=weighted)
    first, again, other = (solved(solver, problem, 1e-15, 5, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.weights, again.weights)
    assert not np.array_equal(first.weights, other.weights)


def test_heavy_rows_are_drawn_more_often():
    """A weight is a number of copies: the optimum of the weighted problem is approached."""
    X, t, _ = rows()
    price = np.where(np.arange(len(t)) % 3 == 0, 1.0, 1e-3)
    problem = LinearProblem(Design(X, 1.0), np.sign(t), price, Hinge(), L2(), False)
    assert solved(AveragedSGD(), problem, 1e-12).primal <= optimum(problem) * 1.01


def test_dense_is_sparse():
    for solver, loss in [(Pegasos(), Hinge()), (AveragedSGD(), Hinge()), (ProxSAGA(), Logistic())]:
        dense, sparse = (solved(solver, posed(loss, sparse=s), 1e-15, 5) for s in (False, True))
        np.testing.assert_allclose(dense.weights, sparse.weights, rtol=1e-6, atol=1e-9)


def test_what_they_do_not_solve():
    assert "hinge" in Pegasos().refusal(posed(Logistic()))
    assert "free" in Pegasos().refusal(posed(Hinge(), free=True))
    assert "l2" in Pegasos().refusal(posed(Hinge(), penalty=L1()))
    assert "l2" in AveragedSGD().refusal(posed(Hinge(), penalty=L1()))
    assert "smooth" in ProxSAGA().refusal(posed(Hinge()))
    assert "l1" in ProxSAGA().refusal(posed(Logistic(), penalty=Group([0, 0, 1, 1, 1])))


def test_bad_arguments_are_errors():
    design, y, w = Design(np.eye(3)).native, np.ones(3), np.zeros(3)
    some = np.arange(3)
    with pytest.raises(IndexError):
        _core.pegasos(design, y, some + 1, 1, 1.0, True, w, 0)
    with pytest.raises(ValueError, match="batch"):
        _core.pegasos(design, y, some, 0, 1.0, True, w, 0)
    with pytest.raises(ValueError, match="w"):
        _core.pegasos(design, y, some, 1, 1.0, True, np.zeros(2), 0)
    loss = native(Logistic())
    with pytest.raises(ValueError, match="delay"):
        _core.averaged_sgd(design, loss, y, some, 1.0, 0.5, False, w, w, 0)
    with pytest.raises(ValueError, match="free"):
        _core.averaged_sgd(design, loss, y, some, 1.0, 2.0, True, w, w, 0)
    with pytest.raises(ValueError, match="slopes"):
        _core.saga(design, loss, y, y, some, 0.1, 0.0, 1.0, False, w, w, np.zeros(2))


def test_rows_read_block_by_block_are_refused():
    """They cannot be visited in random order; cutting planes go through them as they come."""
    problem = posed(Hinge())
    X, y = problem.design.X, problem.y
    X, y = open_chunks([(X[:20], y[:20]), (X[20:], y[20:])])
    blocks = LinearProblem(
        BlockDesign(X, None, 1.0), problem.y, problem.price, Hinge(), L2(), False
    )
    for solver in (Pegasos(), AveragedSGD(), ProxSAGA()):
        assert "random order" in solver.refusal(blocks)
    assert CuttingPlane().refusal(blocks) is None
    solution = solved(CuttingPlane(), blocks, 1e-8)
    assert solution.primal == pytest.approx(solved(CuttingPlane(), problem, 1e-8).primal, rel=1e-7)
