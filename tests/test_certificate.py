"""What is claimed must hold: rounding included, and only where it can be known."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from textbook import gradient
from threadpoolctl import threadpool_limits

from maxmargin import SVR
from maxmargin import problem as formulations
from maxmargin.certificate import certify
from maxmargin.kernels import RBF, Kernel, Polynomial
from maxmargin.solution import Outcome
from maxmargin.solve import solve

ROWS = np.array([[0, 0], [1, 0], [1, 1e-5], [0.5, 0]])
TARGETS = np.array([0, 1, 1.0008, 0.5])


# ------------------------------------------------------------------ a tube without a price


def test_no_gap_is_claimed_while_a_hard_tube_is_violated():
    """The last row, nearly a twin of the second, is ignored at the start: all it takes is 8e-4."""
    X = np.array([[0, 0], [1, 0], [0.5, 0], [1, 1e-3]])
    t = np.array([0, 1, 0.5, 1.0008])
    K = X @ X.T
    problem = formulations.epsilon_svr(t, np.inf, 1e-5)
    best = solve(problem, K, tol=1e-10)
    others = solve(formulations.epsilon_svr(t[:3], np.inf, 1e-5), K[:3, :3], tol=1e-10)
    start = np.insert(others.coefficients, [3, 6], 0.0)
    rough = solve(problem, K, start=start, polish=False)
    assert rough.converged
    assert rough.objective - best.objective > 0.3
    assert rough.gap == np.inf
    assert "no duality gap is known" in rough.status
    exact = solve(problem, K, start=start)
    assert exact.objective - best.objective <= exact.gap <= 1e-7


@pytest.mark.parametrize("seed", [4, 31])
@pytest.mark.filterwarnings("ignore:The fit met tol")
def test_the_optimum_of_a_hard_tube_lies_within_the_gap(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(4, 40)), 2))
    X[:, 1] *= 10.0 ** rng.uniform(-5, -2)
    t = X[:, 0] + X[:, 1] / np.abs(X[:, 1]).max() * rng.uniform(2e-4, 2e-3)
    tol = 10.0 ** rng.uniform(-3, -2)
    rough = SVR(kernel="linear", C=np.inf, epsilon=1e-4, tol=tol).fit(X, t)
    best = SVR(kernel="linear", C=np.inf, epsilon=1e-4, tol=1e-9).fit(X, t)
    assert best.objective_ - best.dual_gap_ <= rough.objective_ or rough.dual_gap_ == np.inf


def test_targets_that_are_constant_fit_into_a_hard_tube():
    X = np.random.default_rng(0).normal(size=(20, 3))
    flat = SVR(C=np.inf).fit(X, np.full(20, 3.0))
    assert flat.dual_gap_ == flat.objective_ == 0
    np.testing.assert_array_equal(flat.predict(X), 3.0)


# ------------------------------------------------------------------ rounding


@pytest.mark.parametrize("C", [1e5, 1e6, np.inf])
@pytest.mark.parametrize("gap_tol", [None, 1e-9])
@pytest.mark.filterwarnings("ignore:Rounding ended the fit")
def test_rounding_is_part_of_the_gap(C, gap_tol):
    """Rows so close that coefficients are 10^6: the dual in rational numbers says what holds."""
    machine = SVR(kernel="linear", C=C, epsilon=1e-5, gap_tol=gap_tol).fit(ROWS, TARGETS)
    c = [Fraction(value) for value in machine.subproblems_[0].coefficients.tolist()]
    net = [above + below for above, below in zip(c[:4], c[4:], strict=True)]
    w = [sum(b * Fraction(x) for b, x in zip(net, X, strict=True)) for X in ROWS.T.tolist()]
    dual = sum(b * Fraction(t) for b, t in zip(net, TARGETS.tolist(), strict=True))
    dual -= sum(w_f**2 for w_f in w) / 2 + Fraction(1e-5) * sum(map(abs, c))
    assert machine.objective_ - machine.dual_gap_ <= dual <= machine.objective_
    assert machine.dual_gap_ <= 1e-3 * machine.objective_


def test_room_for_rounding_is_nothing_on_ordinary_problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, 1.0, -1.0)
    K = RBF(gamma=0.5)(X)
    problem = formulations.c_svc(y, 10.0)
    s = solve(problem, K, tol=1e-9)
    exact = certify(problem, s.coefficients, gradient(problem, K, s.coefficients))
    assert exact.gap <= s.gap <= exact.gap + 1e-9 * abs(s.objective)
    assert solve(problem, K, gap_tol=1e-10).outcome is Outcome.CONVERGED


def test_the_objective_does_not_depend_on_the_threads_of_blas():
    rng = np.random.default_rng(0)
    m = 60_000
    problem = formulations.c_svc(np.where(rng.random(m) > 0.5, 1, -1))
    c = problem.linear * -rng.uniform(size=m)
    G = rng.normal(size=m)
    values = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads, user_api="blas"):
            certificate = certify(problem, c, G, np.ones(m))
            values.append((certificate.objective, certificate.gap))
    assert len(set(values)) == 1


def test_a_ridge_on_some_variables_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    K = X @ X.T
    problem = formulations.c_svc(np.where(np.arange(10) % 2, 1.0, -1.0))
    problem.ridge[::3] = 0.5
    solution = solve(problem, K, tol=1e-8)
    assert 0 <= solution.gap <= 1e-6
    away = np.where(problem.linear < 0, 0.5, -0.5)
    rough = certify(problem, away, gradient(problem, K, away))
    assert solution.objective - rough.objective >= -rough.gap - 1e-9


# ------------------------------------------------------------------ kernels that may be none


def needle(n):
    """The identity but for three items that are unlike each other: no pair of them shows it."""
    K = np.eye(n)
    few = np.ix_([1, 2, 3], [1, 2, 3])
    K[few] = 1.6 * np.eye(3) - 0.6
    return K


def test_a_small_matrix_is_looked_at_whole():
    K = needle(400)
    for intercept in (False, True):
        solution = solve(formulations.c_svc(np.ones(400), 10.0, intercept=intercept), K)
        # With an intercept and one class, all coefficients are zero; the kernel is what it is.
        assert solution.outcome is Outcome.INDEFINITE
        assert solution.gap == np.inf
    assert solve(formulations.c_svc(np.ones(400)), np.eye(400)).outcome is Outcome.CONVERGED


class Product(Kernel):
    def block(self, X, Z):
        return X @ Z.T


@pytest.mark.parametrize("kernel", [RBF(), Polynomial(), Product(), "matrix"], ids=str)
def test_what_is_not_known_of_a_large_kernel_is_said(kernel):
    n = 2001
    X = np.linspace(0, 1, n)[:, None]
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    items = X * X.T if kernel == "matrix" else kernel.fit(X).prepare(X)
    status = solve(formulations.c_svc(y), items).status
    known = isinstance(kernel, (RBF, Polynomial))
    assert ("if the kernel is positive semi-definite" in status) is not known


def test_polynomials_with_a_negative_part_are_looked_at():
    X = np.array([[0.1], [0.2], [0.3], [1.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    for coef0, outcome in ((-0.5, Outcome.INDEFINITE), (0.5, Outcome.CONVERGED)):
        items = Polynomial(degree=3, coef0=coef0).fit(X).prepare(X)
        assert solve(formulations.c_svc(y), items).outcome is outcome


def test_an_objective_of_zero_is_no_cause_to_warn(recwarn):
    SVR(C=np.inf, gap_tol=1e-6).fit(ROWS, np.zeros(4))
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]
