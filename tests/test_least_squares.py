"""Least-squares machines: the direct solver against closed forms."""

import numpy as np
import pytest

from maxmargin import direct, reference
from maxmargin.direct import solve_least_squares
from maxmargin.kernels import RBF
from maxmargin.monitor import Monitor
from maxmargin.problem import c_svc, least_squares
from maxmargin.solution import Outcome

N = 120


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    return K, rng.normal(size=(N, 4)), rng.uniform(0.5, 3, N)


def exact(K, y, ridge, intercept):
    n = len(K)
    A, ones = K + np.diag(ridge), np.ones((n, 1))
    if not intercept:
        return np.linalg.solve(A, y), 0.0
    system = np.block([[A, ones], [ones.T, np.zeros((1, 1))]])
    answer = np.linalg.solve(system, np.append(y, 0.0))
    return answer[:n], answer[n]


ROUTES = {"cholesky": np.inf, "conjugate gradients": 0.0}


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_both_routes_solve_the_equations(data, memory, intercept, C, monkeypatch):
    monkeypatch.setattr(direct, "TILE", 50)
    K, Y, w = data
    problems = [least_squares(y, C, w, intercept) for y in Y.T]
    for y, problem, s in zip(
        Y.T, problems, solve_least_squares(problems, K, tol=1e-9, memory=memory), strict=True
    ):
        c, b = exact(K, y, 1 / (C * w), intercept)
        np.testing.assert_allclose(s.coefficients, c, atol=1e-6 * np.abs(c).max())
        other = reference.solve(problem, K)
        np.testing.assert_allclose(s.objective, other.objective, rtol=1e-9)
        np.testing.assert_allclose(s.scores, other.scores, atol=1e-7)
        if intercept:
            np.testing.assert_allclose(-s.rho, b, atol=1e-8)
        assert s.converged and s.violation <= 1e-9
        assert 0 <= s.gap <= 1e-9 * max(1, C)
        assert "verified in float64" in s.status


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_dependent_and_zero_outputs(data, memory):
    K, Y, _ = data
    targets = [Y[:, 0], 2 * Y[:, 0], np.zeros(N), np.ones(N)]
    a, b, zero, one = solve_least_squares(
        [least_squares(y) for y in targets], K, tol=1e-10, memory=memory
    )
    np.testing.assert_allclose(2 * a.coefficients, b.coefficients, atol=1e-8)
    np.testing.assert_allclose(zero.coefficients, 0, atol=1e-12)
    np.testing.assert_allclose(one.coefficients, 0, atol=1e-8)
    np.testing.assert_allclose(one.rho, -1)


def test_threads_do_not_change_a_bit(data, monkeypatch):
    monkeypatch.setattr(direct, "TILE", 16)
    K, Y, _ = data
    problems = [least_squares(y) for y in Y.T]
    one, two = (solve_least_squares(problems, K, n_threads=t) for t in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.coefficients, b.coefficients)


def test_conjugate_gradients_go_on_from_a_start(data):
    K, Y, _ = data
    problems = [least_squares(y, C=100) for y in Y.T]
    cold = solve_least_squares(problems, K, tol=1e-6, memory=0)
    warm = solve_least_squares(
        problems, K, tol=1e-6, memory=0, starts=[s.coefficients for s in cold]
    )
    assert cold[0].iterations > 5
    assert warm[0].iterations == 1


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_single_precision_data_have_exact_kernels(memory):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)).astype(np.float32), rng.normal(size=N)
    single, double = (RBF(gamma=0.3).fit(X).prepare(X, dtype) for dtype in ("f4", "f8"))
    a, b = (
        solve_least_squares([least_squares(y, C=1e4)], items, tol=1e-9, memory=memory)[0]
        for items in (single, double)
    )
    assert a.iterations == b.iterations
    np.testing.assert_array_equal(a.coefficients, b.coefficients)


def test_a_gap_can_be_asked_for(data):
    K, Y, _ = data
    for memory in ROUTES.values():
        (s,) = solve_least_squares(
            [least_squares(Y[:, 0], C=1e3)], K, tol=1.0, gap_tol=1e-10, memory=memory
        )
        assert s.relative_gap <= 1e-10


def test_the_iteration_limit(data):
    K, Y, _ = data
    (s,) = solve_least_squares([least_squares(Y[:, 0], C=1e4)], K, memory=0, max_iter=3)
    assert s.outcome is Outcome.MAX_ITER and s.iterations == 3
    best = reference.solve(least_squares(Y[:, 0], C=1e4), K)
    assert s.gap >= s.objective - best.objective > 0
    assert "running residual" in s.status


class Told:
    """A listener that has seen enough."""

    def update(self, event, percent, attributes):
        return True


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_a_listener_can_stop_it(data, memory):
    K, Y, _ = data
    monitor = Monitor(2)
    monitor.listeners.append(Told())
    problems = [least_squares(y) for y in Y.T[:2]]
    monitors = [monitor.subproblem(0), monitor.subproblem(1)]
    for s in solve_least_squares(problems, K, memory=memory, monitors=monitors):
        assert s.outcome is Outcome.CALLBACK and not s.converged
        assert np.isfinite(s.gap) and s.gap > 0


class Impatient:
    """A Gram matrix whose user presses Ctrl-C at the third product."""

    dtype = np.dtype(np.float64)

    def __init__(self, K):
        self.K, self.products = K, 0

    def __len__(self):
        return len(self.K)

    def diagonal(self):
        return np.diag(self.K).copy()

    def tile(self, rows, other, cols):
        self.products += rows[0] == 0
        if self.products == 3:
            raise KeyboardInterrupt
        return self.K[np.ix_(rows, cols)]


def test_an_interrupt_leaves_the_model_as_it_stands(data):
    K, Y, _ = data
    problem = least_squares(Y[:, 0], C=1e4)
    monitor = Monitor()
    (s,) = solve_least_squares(
        [problem], Impatient(K), memory=0, monitors=[monitor.subproblem()], tol=1e-14
    )
    assert monitor.interrupted is not None
    assert s.outcome is Outcome.INTERRUPTED and s.iterations == 2
    assert s.objective < 0 < s.gap
    with pytest.raises(KeyboardInterrupt):
        solve_least_squares([problem], Impatient(K), memory=0, tol=1e-14)


def test_an_indefinite_kernel_is_said_to_be_one(data):
    K, Y, _ = data
    K = K - 3 * np.eye(N)
    for memory in ROUTES.values():
        (s,) = solve_least_squares([least_squares(Y[:, 0])], K, memory=memory)
        assert s.outcome is Outcome.INDEFINITE and np.isinf(s.gap)
        c, _ = exact(K, Y[:, 0], np.ones(N), True)
        np.testing.assert_allclose(s.coefficients, c, atol=1e-2)


@pytest.mark.parametrize("C", [1e12, 1e20])
def test_a_huge_C_with_duplicates_is_honest(data, C):
    K, Y, _ = data
    twice = np.tile(K, (2, 2))
    for memory in ROUTES.values():
        (s,) = solve_least_squares(
            [least_squares(np.concatenate([Y[:, 0], Y[:, 1]]), C=C)],
            twice,
            memory=memory,
            max_iter=500,
        )
        assert np.isfinite(s.coefficients).all()
        assert s.converged or s.outcome is Outcome.MAX_ITER


def test_only_alike_problems(data):
    K, Y, w = data
    y = Y[:, 0]
    for other in (
        least_squares(y, 2.0),
        least_squares(y, intercept=False),
        least_squares(y, sample_weight=w),
        c_svc(np.sign(y)),
    ):
        with pytest.raises(ValueError, match="least-squares problems"):
            solve_least_squares([least_squares(y), other], K)
