"""coordinate-newton and proximal-gradient reach the optimum that generic solvers find."""

import numpy as np
import pytest
import scipy.sparse as sp
from linear_problems import LOSSES, PENALTIES, linear_problem
from scipy.optimize import linprog, minimize

from maxmargin.linear.coordinate_newton import CoordinateNewton, Screen, columns
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    Logistic,
    PerceptronLoss,
    Softmax,
    SquaredHinge,
)
from maxmargin.linear.penalties import L1, L2, ElasticNet, Group
from maxmargin.linear.problem import Design, LinearProblem
from maxmargin.linear.proximal_gradient import ProximalGradient
from maxmargin.linear.solver import Progress
from maxmargin.solution import Outcome

USED = [loss for loss in LOSSES if not isinstance(loss, PerceptronLoss)]
COMBINATIONS = [
    (solver, loss, penalty, free)
    for solver in (CoordinateNewton(), ProximalGradient())
    for loss in [*USED, Softmax()]
    for penalty in PENALTIES
    for free in (False, True)
    if solver.refusal(linear_problem(loss, penalty, free)) is None
]


def solve(problem, solver, gap_tol=1e-7, start=None, max_iter=10**5):
    progress = Progress(problem, gap_tol, max_iter)
    solver.solve(progress, start, 0)
    return progress.solution()


def matrix(problem):
    X = problem.design.X
    X = X.toarray() if sp.issparse(X) else X
    bias = problem.design.bias
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X


def linear_program(problem):
    """The optimum for L1 with the hinge or the epsilon-insensitive loss, by HiGHS.

    With w = p - q:  minimise counted'(p + q) + price'xi  where xi exceeds each side of the loss.
    """
    X, y = matrix(problem), problem.y
    n, d = X.shape
    counted = np.ones(d)
    if problem.free:
        counted[-1] = 0
    if isinstance(problem.loss, Hinge):
        sides = [(y[:, None] * X, np.ones(n))]
    else:
        epsilon = problem.loss.epsilon
        sides = [(X, y - epsilon), (-X, -y - epsilon)]
    A = np.vstack([np.hstack([-S, S, -np.eye(n)]) for S, _ in sides])
    b = np.concatenate([-offset for _, offset in sides])
    costs = np.concatenate([counted, counted, problem.price])
    return linprog(costs, A, b, method="highs").fun


def smooth_minimum(problem):
    """The optimum by L-BFGS-B: with w = p - q for p, q >= 0 the L1 part is linear.

    The group penalty, and losses with kinks, come as cones: see `conic`.
    """
    X = matrix(problem)
    d = X.shape[1]
    k = problem.n_scores
    ratio = {L2: 0.0, L1: 1.0}.get(type(problem.penalty), getattr(problem.penalty, "l1_ratio", 0))
    counted = np.ones((d, k))
    if problem.free:
        counted[-1] = 0

    def f(pq):
        p, q = pq.reshape(2, d, k)
        w = p - q
        z = X @ w if k > 1 else (X @ w)[:, 0]
        price = problem.price if k == 1 else problem.price[:, None]
        slope = (price * problem.loss.derivative(problem.y, z)).reshape(len(z), k)
        g = X.T @ slope + (1 - ratio) * counted * w
        value = problem.price @ problem.loss.value(problem.y, z)
        value += ratio * (counted * (p + q)).sum() + (1 - ratio) * (counted * w**2).sum() / 2
        return value, np.concatenate(
            [(g + ratio * counted).ravel(), (-g + ratio * counted).ravel()]
        )

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    x, best = np.zeros(2 * d * k), np.inf
    for _ in range(3):
        found = minimize(
            f, x, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(x), options=options
        )
        x, best = found.x, min(best, found.fun)
    return best


def conic(problem):
    """The optimum by clarabel, for piecewise linear and quadratic losses of a residual or margin.

    A side of the loss is phi(s) for s = offset - sign x.w; with xi >= s, xi >= 0 in the square or
    linearly, and for a ramp xi = a + b with a^2 / (2 width) and b as costs.
    """
    import clarabel

    X, y, loss = matrix(problem), problem.y, problem.loss
    n, d = X.shape
    if loss.task == "classification":
        sides = [(y[:, None] * X, np.ones(n))]
    elif loss.name == "squared":
        sides = []
    else:
        sides = [(X, y - loss.epsilon), (-X, -y - loss.epsilon)]
    penalty = problem.penalty
    m = len(sides) * n
    # w, t (norms or absolute values), a (squared part), b (linear part), r (residuals)
    members = [np.array([j]) for j in range(d - problem.free)]
    if isinstance(penalty, Group):
        index, _ = penalty.members(d - problem.free)
        members = [np.flatnonzero(index == g) for g in np.unique(index)]
    ratio = {L2: 0.0, L1: 1.0, Group: 1.0}.get(type(penalty), getattr(penalty, "l1_ratio", 0))
    t = len(members)
    r = n if loss.name == "squared" else 0
    width = {"hinge": 0.0, "epsilon_insensitive": 0.0}.get(loss.name, getattr(loss, "width", None))
    squared, linear = width is None or width > 0, width is not None
    total = d + t + m + m + r
    P, q = np.zeros(total), np.zeros(total)
    P[: d - problem.free] = 1 - ratio
    q[d : d + t] = ratio * np.sqrt([len(g) for g in members])
    price = np.tile(problem.price, len(sides))
    at_a, at_b, at_r = d + t, d + t + m, d + t + 2 * m
    if squared and m:
        P[at_a : at_a + m] = 2 * price if width is None else price / width
    q[at_b : at_b + m] = price
    P[at_r:] = problem.price[:r]
    rows, right, cones = [], [], []

    def at_least(A, b):  # A x <= b
        rows.append(A)
        right.append(b)
        cones.append(clarabel.NonnegativeConeT(len(b)))

    if m:
        A = np.zeros((m, total))
        A[:, :d] = -np.vstack([S for S, _ in sides])
        A[:, at_a : at_a + m] = -np.eye(m) * squared
        A[:, at_b : at_b + m] = -np.eye(m) * linear
        at_least(A, np.concatenate([-offset for _, offset in sides]))
        A = np.zeros((2 * m, total))
        A[:, at_a : at_a + 2 * m] = -np.eye(2 * m)
        at_least(A, np.zeros(2 * m))
        if not squared or not linear:
            A = np.zeros((m, total))
            where = at_b if squared else at_a
            A[:, where : where + m] = np.eye(m)
            at_least(A, np.zeros(m))
        if squared and linear:  # a ramp: b takes over beyond the width
            A = np.zeros((m, total))
            A[:, at_a : at_a + m] = np.eye(m)
            at_least(A, np.full(m, width))
    if r:
        A = np.zeros((n, total))
        A[:, :d], A[:, at_r:] = X, -np.eye(n)
        rows.append(A)
        right.append(y)
        cones.append(clarabel.ZeroConeT(n))
    for g, group in enumerate(members):
        A = np.zeros((1 + len(group), total))
        A[0, d + g] = -1
        A[np.arange(1, 1 + len(group)), group] = -1
        rows.append(A)
        right.append(np.zeros(1 + len(group)))
        cones.append(clarabel.SecondOrderConeT(1 + len(group)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    found = clarabel.DefaultSolver(
        sp.diags(P, format="csc"),
        q,
        sp.csc_matrix(np.vstack(rows)),
        np.concatenate(right),
        cones,
        settings,
    ).solve()
    return found.obj_val


def reference(problem):
    if isinstance(problem.loss, (Logistic, Softmax)):
        if isinstance(problem.penalty, Group):
            return None
        return smooth_minimum(problem)
    if isinstance(problem.penalty, L1) and np.isinf(problem.loss.smoothness):
        return linear_program(problem)
    return conic(problem)


@pytest.mark.parametrize(("solver", "loss", "penalty", "free"), COMBINATIONS, ids=str)
def test_reaches_the_optimum(solver, loss, penalty, free):
    problem = linear_problem(loss, penalty, free)
    rough = isinstance(solver, ProximalGradient) or np.isinf(loss.smoothness)
    solution = solve(problem, solver, gap_tol=1e-6 if rough else 1e-9, max_iter=30000)
    assert solution.outcome is Outcome.CONVERGED
    best = reference(problem)
    if best is None:  # what generic solver knows exponentials and groups? the certificate's word
        assert solution.relative_gap <= 1e-6
        return
    assert solution.primal == pytest.approx(best, rel=1e-6)
    assert solution.primal - solution.gap <= best * (1 + 1e-9)


@pytest.mark.parametrize("solver", [CoordinateNewton(), ProximalGradient()], ids=str)
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Hinge()], ids=str)
def test_sparse_rows_are_dense_rows_and_threads_change_nothing(solver, loss):
    dense = linear_problem(loss, L1())
    X = dense.design.X
    X[np.abs(X) < 0.5] = 0
    there = [
        solve(LinearProblem(Design(A, 1.0, jobs), dense.y, dense.price, loss, L1(), True), solver)
        for A, jobs in ((X, 1), (sp.csr_matrix(X), 1), (X, 2))
    ]
    assert there[1].primal == pytest.approx(there[0].primal, rel=1e-6)
    assert np.array_equal(there[0].weights, there[2].weights)
    assert np.array_equal(there[0].coefficients, there[2].coefficients)


def test_float32_and_a_constant_that_it_cannot_hold():
    problem = linear_problem(Logistic(), L1(), free=False)
    X = problem.design.X.astype(np.float32)
    single, double = (
        solve(
            LinearProblem(Design(A, 0.3), problem.y, problem.price, Logistic(), L1(), False),
            CoordinateNewton(),
            gap_tol=1e-10,
        )
        for A in (X, X.astype(np.float64))
    )
    assert single.converged
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-8)
    # The certificate speaks of the weights, not of scores that drifted.
    z = double.weights @ np.hstack([X.astype(np.float64), np.full((40, 1), 0.3)]).T
    assert problem.primal(double.weights, z) == pytest.approx(double.primal, rel=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), HuberisedHinge(0.5)], ids=str)
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.7)], ids=str)
@pytest.mark.parametrize("C", [1e-3, 0.1, 100.0])
def test_many_columns_few_rows(loss, penalty, C):
    """Working sets that grow, columns alike, and columns without anything."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 400))
    X[:, 10], X[:, 20], X[:, 30] = X[:, 11], -X[:, 21], 0
    X[:, 40] = X[:, 41] * (1 + 1e-7)
    y = np.sign(X[:, :5].sum(axis=1) + rng.normal(size=60))
    problem = LinearProblem(Design(X, 1.0), y, np.full(60, C), loss, penalty, True)
    solution = solve(problem, CoordinateNewton(first=20), gap_tol=1e-7, max_iter=2000)
    assert solution.relative_gap <= 1e-7
    everything = solve(problem, CoordinateNewton(first=1000), gap_tol=1e-7, max_iter=2000)
    assert everything.relative_gap <= 1e-7
    assert everything.primal == pytest.approx(solution.primal, rel=1e-6)
    assert solution.weights[30] == 0
    # The gap once more, from the weights alone.
    z = matrix(problem) @ solution.weights
    proof = problem.certificate(solution.weights, z, solution.coefficients)
    assert proof.relative_gap <= 1e-7 + 1e-12


def test_screened_columns_are_zero_at_the_optimum():
    problem = linear_problem(Logistic(), L1(), seed=5, n=80, C=0.05)
    exact = solve(problem, CoordinateNewton(), gap_tol=1e-12)
    out = []
    for gap_tol in (1.0, 1e-1, 1e-2, 1e-3, 1e-6):
        rough = solve(problem, CoordinateNewton(), gap_tol=gap_tol)
        screen = Screen(problem, columns(problem.design), 1.0)
        c = problem.balanced(rough.coefficients)
        z = problem.design.scores(rough.weights)
        screen.look(rough.weights, z, c, problem.design.combine(c))
        assert (exact.weights[screen.out] == 0).all()
        assert not screen.out[-1]
        out.append(screen.out.sum())
    assert out == sorted(out)
    assert out[-1] == (exact.weights[:-1] == 0).sum() > 0


def test_warm_start_is_where_it_begins():
    problem = linear_problem(EpsilonInsensitive(0.1), ElasticNet(0.5))
    for solver in (CoordinateNewton(), ProximalGradient()):
        first = solve(problem, solver, gap_tol=1e-6)
        again = solve(problem, solver, gap_tol=1e-2, start=first.weights)
        assert again.primal <= first.primal * (1 + 1e-2)
    smooth = linear_problem(Logistic(), L1())
    done = solve(smooth, CoordinateNewton(), gap_tol=1e-10)
    assert solve(smooth, CoordinateNewton(), gap_tol=1e-8, start=done.weights).iterations == 0


def test_ends_at_the_iteration_limit_and_at_rounding():
    problem = linear_problem(Logistic(), L1(), C=10.0)
    assert solve(problem, CoordinateNewton(), max_iter=1).outcome is Outcome.MAX_ITER
    assert solve(problem, ProximalGradient(), max_iter=3).outcome is Outcome.MAX_ITER
    exact = solve(problem, CoordinateNewton(), gap_tol=0.0, max_iter=1000)
    assert exact.outcome.finished and exact.relative_gap < 1e-12
    assert exact.relative_gap < 1e-12


def test_impossible_problems_are_refused():
    softmax, l2 = linear_problem(Softmax(), L1()), linear_problem(Logistic(), L2())
    assert "softmax" in CoordinateNewton().refusal(softmax)
    assert "needs the l1" in CoordinateNewton().refusal(l2)
    group = linear_problem(Softmax(), Group([0] * 6))
    assert "group penalty is for one score" in ProximalGradient().refusal(group)
