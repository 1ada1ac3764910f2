"""OneClassSVM and SVDD against scikit-learn, each other, and balls known in closed form."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from scipy.optimize import minimize

from maxmargin import SVDD, OneClassSVM, reference
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problem import one_class


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(71, 3)) + 2, rng.integers(0, 4, 71)


# ------------------------------------------------------------------ the half-space


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.9])
def test_one_class_as_scikit_learn(data, kernel, nu):
    X, _ = data
    ours = OneClassSVM(kernel=kernel, nu=nu, tol=1e-8).fit(X)
    theirs = sklearn.svm.OneClassSVM(kernel=kernel, nu=nu, tol=1e-8).fit(X)
    scale = np.abs(theirs.score_samples(X)).max()
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=1e-6 * scale
    )
    clear = np.abs(theirs.decision_function(X)) > 1e-6 * scale
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)
    for name in ("support_", "dual_coef_", "intercept_", "offset_", "n_support_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype), name
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-6)
    assert ours.predict(X).dtype == theirs.predict(X).dtype


def test_one_class_as_the_readable_solver(data):
    X, w = data
    machine = OneClassSVM(gamma=0.3, nu=0.3, tol=1e-8).fit(X, sample_weight=w)
    kept = w > 0
    solution = reference.solve(one_class(w[kept], 0.3), RBF(gamma=0.3)(X[kept]), tol=1e-8)
    assert machine.objective_ == pytest.approx(solution.primal, rel=1e-9)
    np.testing.assert_allclose(machine.offset_, solution.rho, rtol=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.75])
def test_nu_bounds_the_outliers(data, nu):
    X, w = data
    machine = OneClassSVM(nu=nu, tol=1e-8).fit(X, sample_weight=w)
    outliers, support = machine.predict(X) < 0, np.isin(np.arange(len(X)), machine.support_)
    assert w[outliers].sum() <= nu * w.sum() <= w[support].sum()


def test_nu_of_one_works(data):
    X, w = data
    machine = OneClassSVM(nu=1.0).fit(X, sample_weight=w)
    np.testing.assert_allclose(machine.dual_coef_[0], w[w > 0])
    assert np.all(machine.decision_function(X[w > 0]) <= 1e-8)


# ------------------------------------------------------------------ the ball


def enclosed(X, w, C, a, R2):
    return R2 + C * w @ np.maximum(((X - a) ** 2).sum(axis=1) - R2, 0)


@pytest.mark.parametrize("C", [0.02, 0.05, 0.3, 1.0, 1e12, np.inf])
def test_the_ball_is_the_one_that_is_written_down(data, C):
    X, w = data
    machine = SVDD(kernel="linear", C=C, gap_tol=1e-10).fit(X, sample_weight=w)
    a, R2 = machine.coef_[0], machine.radius_**2
    np.testing.assert_allclose(
        machine.decision_function(X), R2 - ((X - a) ** 2).sum(axis=1), atol=1e-9
    )
    np.testing.assert_allclose(machine.score_samples(X), -((X - a) ** 2).sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(machine.dual_coef_.sum(), 1)
    value = enclosed(X, w, min(C, 1.0), a, R2)
    assert value == pytest.approx(machine.objective_, rel=1e-8)
    assert 0 <= machine.dual_gap_ <= 1e-10 * machine.objective_
    if C >= 1:
        assert np.all(machine.predict(X[w > 0]) == 1)
    rng = np.random.default_rng(0)
    for _ in range(20):  # it is the minimum
        moved = enclosed(
            X, w, min(C, 1.0), a + 1e-3 * rng.normal(size=3), R2 + 1e-3 * abs(rng.normal())
        )
        assert moved > machine.objective_


def test_balls_in_closed_form():
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0.5, 0]]) + 3
    ball = SVDD(kernel="linear", C=1.0, tol=1e-9).fit(square)
    np.testing.assert_allclose(ball.coef_, [[3, 3]], atol=1e-9)
    assert ball.radius_ == pytest.approx(np.sqrt(2))
    assert ball.objective_ == pytest.approx(2)
    # on the unit sphere of the Gaussian kernel, far points are a simplex: R^2 = 1 - 1/n
    far = SVDD(gamma=1.0, C=1.0).fit(100 * np.eye(5))
    assert far.radius_ == pytest.approx(np.sqrt(1 - 1 / 5))


def test_as_a_generic_minimiser(data):
    X, w = data
    machine = SVDD(kernel="linear", C=0.05, tol=1e-8).fit(X, sample_weight=w)
    best = minimize(
        lambda v: enclosed(X, w, 0.05, v[:3], v[3] ** 2),
        [*X.mean(axis=0), 1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 10000, "adaptive": True},
    )
    assert machine.objective_ == pytest.approx(best.fun, rel=1e-4)
    assert machine.objective_ <= best.fun + 1e-9


def test_a_constant_diagonal_makes_the_half_space(data):
    X, _ = data
    nu = 0.22
    ball = SVDD(gamma=0.3, C=1 / (nu * len(X)), tol=1e-9).fit(X)
    half = OneClassSVM(gamma=0.3, nu=nu, tol=1e-9).fit(X)
    np.testing.assert_allclose(ball.dual_coef_ * nu * len(X), half.dual_coef_, atol=1e-6)
    assert np.corrcoef(ball.decision_function(X), half.decision_function(X))[0, 1] > 1 - 1e-9


def test_a_price_too_small_for_any_ball(data):
    X, w = data
    with pytest.warns(UserWarning, match=r"C=0.001 is so small that C \* sum\(sample_weight\)"):
        machine = SVDD(kernel="linear", C=1e-3).fit(X, sample_weight=w)
    mean = np.average(X, axis=0, weights=w)
    assert machine.radius_ == 0
    np.testing.assert_allclose(machine.coef_[0], mean)
    np.testing.assert_allclose(machine.dual_coef_[0], w[w > 0] / w.sum(), rtol=1e-9)
    assert machine.objective_ == pytest.approx(enclosed(X, w, 1e-3, mean, 0.0))
    assert machine.dual_gap_ == pytest.approx(0, abs=1e-12)
    np.testing.assert_array_equal(machine.predict(X), -1)


def test_the_smallest_price_that_has_a_ball():
    X = np.arange(10.0)[:, None]
    machine = SVDD(kernel="linear", C=0.1).fit(X)  # C sum(s) is 1, up to rounding
    np.testing.assert_allclose(machine.dual_coef_, 0.1)
    assert 0 <= machine.radius_ <= 0.5 + 1e-9


def test_one_row_is_a_point():
    machine = SVDD(C=0.01).fit([[1.0, 2.0]])
    assert machine.radius_ == 0
    np.testing.assert_array_equal(machine.predict([[1.0, 2.0], [1.1, 2.0]]), [1, -1])


def test_identical_rows_are_a_point():
    for machine in (SVDD(C=1.0, kernel="linear"), OneClassSVM(), OneClassSVM(nu=1.0)):
        np.testing.assert_array_equal(machine.fit(np.ones((9, 2))).predict(np.ones((2, 2))), 1)


# ------------------------------------------------------------------ both


@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.3), SVDD(C=0.05)], ids=["half", "ball"])
class TestBoth:
    def test_a_weight_counts_as_repetitions(self, data, machine):
        X, w = data
        again = X[np.repeat(np.arange(len(X)), w)]
        machine.set_params(tol=1e-10)
        weighted = machine.fit(X, sample_weight=w).decision_function(X)
        np.testing.assert_allclose(weighted, machine.fit(again).decision_function(X), atol=1e-7)

    def test_the_border_is_inside(self, data, machine):
        X, _ = data
        machine.set_params(tol=1e-3).fit(X)
        free = machine.dual_coef_[0] < 0.999 * machine.dual_coef_.max()
        assert free.sum() >= 3 and machine.subproblems_[0].violation < 1e-12  # it was polished
        np.testing.assert_array_equal(machine.predict(X[machine.support_[free]]), 1)

    def test_sparse_rows(self, data, machine):
        X, _ = data
        dense = machine.fit(X).decision_function(X)
        sparse = machine.fit(sp.csr_array(X)).decision_function(sp.csr_array(X))
        np.testing.assert_allclose(sparse, dense, atol=1e-10)

    @pytest.mark.parametrize("kernel", [RBF(gamma=0.2), Linear(), Polynomial(degree=2)])
    def test_every_way_to_give_a_kernel(self, data, machine, kernel):
        X, _ = data
        K = kernel(X)
        machine.set_params(tol=1e-9)
        whole = machine.set_params(kernel=kernel).fit(X).decision_function(X)
        function = machine.set_params(kernel=lambda A, B: kernel(A, B)).fit(X)
        np.testing.assert_allclose(function.decision_function(X), whole, atol=1e-8)
        matrix = machine.set_params(kernel="precomputed").fit(K)
        np.testing.assert_allclose(matrix.decision_function(K), whole, atol=1e-8)
        machine.set_params(kernel="rbf", tol=1e-3)

    def test_predict_one_row_or_none(self, data, machine):
        X, _ = data
        assert machine.fit(X).decision_function(X[:1]).shape == (1,)
        with pytest.raises(ValueError, match="0 sample"):
            machine.predict(X[:0])


def test_a_matrix_does_not_say_how_long_new_rows_are(data):
    X, w = data
    constant = SVDD(kernel="precomputed").fit(RBF(gamma=0.2)(X))
    new = RBF(gamma=0.2)(X[:3] + 0.1, X)
    assert constant.predict(new).shape == (3,)
    machine = SVDD(kernel="precomputed").fit(X @ X.T, sample_weight=w)
    assert machine.predict(X @ X.T).shape == (71,)
    with pytest.raises(ValueError, match="does not say what k"):
        machine.predict((X[:3] + 0.1) @ X.T)


def test_a_function_is_not_called_for_each_row(data):
    X, _ = data
    calls = []

    def f(A, B):
        calls.append((len(A), len(B)))
        return Polynomial(degree=2)(A, B)

    machine = SVDD(kernel=f).fit(X)
    calls.clear()
    new = np.vstack([X, X + 0.1])
    values = machine.decision_function(new)
    assert len(calls) == 4 and max(n for _, n in calls) <= 64  # support vectors, three blocks
    named = SVDD(kernel=Polynomial(degree=2)).fit(X)
    np.testing.assert_allclose(values, named.decision_function(new), atol=1e-9)


def test_no_warning_without_reason(data):
    X, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVDD().fit(X)
        OneClassSVM().fit(X)
