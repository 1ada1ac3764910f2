"""The linear machine of Crammer and Singer against a generic solver, SVC and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from linear_optima import optimum
from scipy.optimize import linprog
from sklearn.svm import LinearSVC as ScikitLinearSVC

from maxmargin import SVC
from maxmargin.linear.crammer_singer import SequentialDual
from maxmargin.linear.losses import Hinge, MulticlassHinge
from maxmargin.linear.penalties import L1, L2
from maxmargin.linear.problem import Design, LinearProblem
from maxmargin.linear.solver import Progress
from maxmargin.solution import Outcome


def rows(n=90, d=5, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    y = (X @ rng.normal(size=(d, k)) + 0.7 * rng.normal(size=(n, k))).argmax(axis=1)
    return X, y, rng.random(n) + 0.2


def posed(C=1.0, sparse=False, n_jobs=1, k=4, bias=1.0):
    X, y, weights = rows(k=k)
    design = Design(sp.csr_array(X) if sparse else X, bias, n_jobs)
    return LinearProblem(design, y, C * weights, MulticlassHinge(), L2(), False, k)


def solved(problem, gap_tol=1e-8, max_iter=100_000, seed=0, **options):
    progress = Progress(problem, gap_tol, max_iter)
    SequentialDual(**options).solve(progress, None, seed)
    return progress.solution()


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_it_reaches_the_optimum_of_a_generic_solver(C, shrinking):
    problem = posed(C)
    solution = solved(problem, shrinking=shrinking)
    best = optimum(problem)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.primal == pytest.approx(best, rel=1e-6)
    assert solution.certificate.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("k", [2, 3, 9])
def test_it_agrees_with_the_kernel_machine_and_with_liblinear(k):
    X, y, weights = rows(k=k)
    problem = LinearProblem(Design(X, 1.0), y, weights, MulticlassHinge(), L2(), False, k)
    solution = solved(problem, 1e-11)
    kernel = SVC(kernel="linear", multi_class="crammer_singer", gap_tol=1e-10)
    if k > 2:
        kernel.fit(np.column_stack([X, np.ones(len(X))]), y, sample_weight=weights)
        assert solution.primal == pytest.approx(kernel.objective_, rel=1e-8)
    peer = ScikitLinearSVC(multi_class="crammer_singer", tol=1e-10, max_iter=10**6)
    peer.fit(X, y, sample_weight=weights)
    if k > 2:
        np.testing.assert_allclose(peer.coef_.T, solution.weights[:-1], atol=1e-4)
        np.testing.assert_allclose(peer.intercept_, solution.weights[-1], atol=1e-4)
    else:
        np.testing.assert_allclose(
            peer.coef_[0], solution.weights[:-1, 1] - solution.weights[:-1, 0], atol=1e-4
        )


def test_threads_storage_and_seeds():
    one, two = (solved(posed(n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    sparse = solved(posed(sparse=True), 1e-11)
    np.testing.assert_allclose(sparse.weights, solved(posed(), 1e-11).weights, atol=1e-4)
    other = solved(posed(), seed=1)
    assert not np.array_equal(other.weights, one.weights)
    assert other.primal == pytest.approx(one.primal, rel=1e-7)


def test_a_weight_of_two_is_a_row_given_twice():
    X, y, _ = rows()
    times = np.random.default_rng(1).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), times)
    loss, penalty = MulticlassHinge(), L2()
    weighted = LinearProblem(Design(X), y, times.astype(float), loss, penalty, False, 4)
    repeated = LinearProblem(
        Design(X[again]), y[again], np.ones(len(again)), loss, penalty, False, 4
    )
    a, b = solved(weighted, 1e-11), solved(repeated, 1e-11)
    assert a.primal == pytest.approx(b.primal, rel=1e-10)
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-4)


def test_coefficients_are_feasible_and_make_the_weights():
    problem = posed()
    solution = solved(problem)
    c = solution.coefficients
    np.testing.assert_allclose(c.sum(axis=1), 0, atol=1e-14)
    right = c[np.arange(len(c)), problem.y]
    assert (right >= 0).all() and (right <= problem.price).all()
    c[np.arange(len(c)), problem.y] = 0
    assert (c <= 0).all()


def test_what_it_does_not_solve():
    problem = posed()
    args = (problem.design, problem.y, problem.price)
    refusal = SequentialDual().refusal
    assert refusal(problem) is None
    assert "free" in refusal(LinearProblem(*args, MulticlassHinge(), L2(), True, 4))
    assert "l2" in refusal(LinearProblem(*args, MulticlassHinge(), L1(), False, 4))
    assert "multiclass" in refusal(LinearProblem(*args, Hinge(), L2(), False, 1))


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_and_its_conjugate(seed):
    rng = np.random.default_rng(seed)
    n, k = 20, 4
    loss, z, y = MulticlassHinge(), rng.normal(size=(n, k)), rng.integers(0, k, n)
    slow = [max((m != y[i]) + z[i, m] - z[i, y[i]] for m in range(k)) for i in range(n)]
    np.testing.assert_allclose(loss.value(y, z), slow)
    v = loss.derivative(y, z)
    step = rng.normal(size=(n, k)) * 1e-7
    change = loss.value(y, z + step) - loss.value(y, z)
    np.testing.assert_allclose(change, (v * step).sum(axis=1), atol=1e-12)
    # Fenchel: equality at slopes, and the conjugate is the supremum, here a linear program
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, v), (v * z).sum(axis=1))
    p = rng.dirichlet(np.ones(k))
    v = p - np.eye(k)[y[0]]
    A = np.column_stack([np.eye(k) - np.eye(k)[y[0]], -np.ones(k)])
    answer = linprog(np.append(-v, 1), A, np.eye(k)[y[0]] - 1, bounds=[(None, None)] * (k + 1))
    assert loss.conjugate(y[:1], v[None])[0] == pytest.approx(-answer.fun, abs=1e-9)
    assert loss.conjugate(y[:1], v[None] + 0.1)[0] == np.inf
