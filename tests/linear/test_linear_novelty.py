"""LinearOneClassSVM against OneClassSVM, a generic solver, and the closed form of its risk."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from textbook import Primal

from maxmargin import LinearOneClassSVM, OneClassSVM
from maxmargin.linear.novelty import OneClassProblem
from maxmargin.linear.problem import Design


def rows(n=60, d=4, seed=0, away=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8) + away * (rng.random(d) < 0.7)
    return X, rng.random(n) + 0.2


@pytest.mark.parametrize("nu", [0.05, 0.37, 1.0])
def test_the_risk_is_a_linear_program(nu):
    X, weights = rows()
    problem = OneClassProblem(Design(X), weights, nu)
    z = np.random.default_rng(1).normal(size=len(X)).round(1)
    answer = linprog(
        z, A_eq=np.ones((1, len(z))), b_eq=[nu * weights.sum()], bounds=np.c_[0 * weights, weights]
    )
    c = problem.slopes(z)
    assert c @ z == pytest.approx(answer.fun)
    assert c.sum() == pytest.approx(nu * weights.sum())
    rho = problem.border(z)
    losses = [
        weights @ np.maximum(0, r - z) - r * problem.total for r in (rho, rho - 1e-3, rho + 1e-3)
    ]
    assert losses[0] == pytest.approx(-answer.fun)
    assert losses[0] <= min(losses) + 1e-12


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_it_is_the_kernel_machine_with_a_linear_kernel(nu, weighted):
    X, weights = rows()
    weight = weights if weighted else None
    ours = LinearOneClassSVM(nu=nu, tol=1e-11).fit(X, sample_weight=weight)
    kernel = OneClassSVM(kernel="linear", nu=nu, gap_tol=1e-11).fit(X, sample_weight=weight)
    assert ours.objective_ == pytest.approx(kernel.objective_, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, kernel.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.offset_, kernel.offset_, rtol=1e-6)
    scale = np.abs(ours.offset_).max()
    np.testing.assert_allclose(
        ours.decision_function(X), kernel.decision_function(X), atol=1e-6 * scale
    )
    np.testing.assert_array_equal(ours.predict(X), kernel.predict(X))
    np.testing.assert_allclose(ours.score_samples(X), X @ ours.coef_[0], atol=1e-9 * scale)


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_it_reaches_the_optimum_of_a_generic_solver(nu):
    X, weights = rows(30)
    machine = LinearOneClassSVM(nu=nu, tol=1e-9).fit(X, sample_weight=weights)
    n = len(X)
    best = Primal(
        X,
        np.zeros(n),
        weights,
        np.arange(n),
        Z=-np.ones((n, 1)),
        price=np.array([-nu * weights.sum()]),
    ).optimum()
    assert machine.objective_ == pytest.approx(best, rel=1e-7)
    assert 0 <= machine.dual_gap_ <= 1e-9 * abs(best)


@pytest.mark.parametrize("nu", [0.1, 0.25, 0.6])
def test_nu_bounds_the_outliers_and_the_support_vectors(nu):
    X, _ = rows(200)
    machine = LinearOneClassSVM(nu=nu, tol=1e-10).fit(X)
    f = machine.decision_function(X)
    assert (machine.predict(X) < 0).mean() <= nu
    assert (f <= 1e-8 * np.abs(f).max()).mean() >= nu


def test_around_the_origin_the_answer_is_zero():
    """No half-space away from the origin holds enough: w = 0, found without a warning."""
    X, _ = rows(100, away=0.0)
    machine = LinearOneClassSVM(nu=0.9).fit(X)
    assert machine.fit_status_ == 0
    assert machine.objective_ == 0 == machine.dual_gap_
    assert not machine.coef_.any()
    assert machine.set_params(warm_start=True).fit(X).fit_status_ == 0


def test_weights_are_copies():
    X, _ = rows()
    times = np.random.default_rng(1).integers(0, 3, len(X))
    a = LinearOneClassSVM(nu=0.3, tol=1e-11).fit(X, sample_weight=times)
    b = LinearOneClassSVM(nu=0.3, tol=1e-11).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(a.offset_, b.offset_, rtol=1e-6)


def test_threads_storage_and_warm_start():
    X, _ = rows(300)
    one, two = (LinearOneClassSVM(nu=0.3, n_jobs=n).fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    exact = LinearOneClassSVM(nu=0.3, tol=1e-10).fit(X)
    sparse = LinearOneClassSVM(nu=0.3, tol=1e-10).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.coef_, exact.coef_, rtol=1e-6)
    with pytest.warns(match="max_iter=1"):
        machine = LinearOneClassSVM(nu=0.3, tol=1e-10, max_iter=1).fit(X)
    machine.set_params(max_iter=100, warm_start=True).fit(X)
    assert machine.objective_ == pytest.approx(exact.objective_, rel=1e-9)


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="nu"):
        LinearOneClassSVM(nu=0).fit(rows()[0])
