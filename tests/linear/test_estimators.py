"""The linear estimators: the machines that they claim to be, by independent answers."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sklearn_linear
import sklearn.svm as sklearn_svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    LSSVR,
    SVC,
    SVR,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Ridge,
)
from maxmargin.linear import L1, L2, Hinge, Logistic

scale = StandardScaler().fit_transform
X2, y2 = load_breast_cancer(return_X_y=True)
X2 = scale(X2)
X3, y3 = load_wine(return_X_y=True)
X3 = scale(X3)
XR, yR = load_diabetes(return_X_y=True)
XR, yR = scale(XR), (yR - yR.mean()) / yR.std()
SOLVERS = ["auto", "dual-coordinate", "newton", "interior-point"]


def primal(machine, X, y, loss, C, penalise_intercept):
    """The textbook's objective, from the attributes that scikit-learn has too."""
    w, b = np.ravel(machine.coef_), float(np.ravel(machine.intercept_)[0])
    losses = {
        "hinge": lambda z: np.maximum(0, 1 - y * z),
        "squared_hinge": lambda z: np.maximum(0, 1 - y * z) ** 2,
        "logistic": lambda z: np.logaddexp(0, -y * z),
        "epsilon_insensitive": lambda z: np.maximum(0, np.abs(z - y) - 0.1),
        "squared_epsilon_insensitive": lambda z: np.maximum(0, np.abs(z - y) - 0.1) ** 2,
    }
    size = w @ w + (b * b if penalise_intercept else 0.0)
    return size / 2 + C * losses[loss](X @ w + b).sum()


# ------------------------------------------------------------------ against other programs


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_svc_is_liblinears(loss, C, fit_intercept):
    options = {"loss": loss, "C": C, "fit_intercept": fit_intercept}
    ours = LinearSVC(**options, gap_tol=1e-10).fit(X2, y2)
    theirs = sklearn_svm.LinearSVC(**options, tol=1e-9, max_iter=1_000_000, random_state=0)
    theirs.fit(X2, y2)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-3 * np.abs(theirs.coef_).max())
    assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    signs = 2.0 * y2 - 1
    least = primal(theirs, X2, signs, loss, C, fit_intercept)
    assert_allclose(ours.objective_, primal(ours, X2, signs, loss, C, fit_intercept), rtol=1e-9)
    assert ours.objective_ - ours.dual_gap_ <= least * (1 + 1e-12)
    assert ours.objective_ <= least * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_many_classes_and_their_weights_are_liblinears(loss):
    weights = {0: 2.0, 1: 0.5, 2: 1.0}
    options = {"loss": loss, "C": 0.1, "class_weight": weights}
    ours = LinearSVC(**options, gap_tol=1e-10).fit(X3, y3)
    theirs = sklearn_svm.LinearSVC(**options, tol=1e-9, max_iter=1_000_000, random_state=0)
    assert_allclose(ours.coef_, theirs.fit(X3, y3).coef_, atol=1e-3)
    assert_array_equal(ours.predict(X3), theirs.predict(X3))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_svr_is_liblinears(loss):
    options = {"loss": loss, "C": 0.1, "epsilon": 0.1}
    ours = LinearSVR(**options, gap_tol=1e-10).fit(XR, yR)
    theirs = sklearn_svm.LinearSVR(**options, tol=1e-10, max_iter=1_000_000, random_state=0)
    theirs.fit(XR, yR)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert_allclose(ours.objective_, primal(ours, XR, yR, loss, 0.1, True), rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_a_free_intercept_is_that_of_the_kernel_machine(solver, C):
    linear = LinearClassifier("hinge", C=C, gap_tol=1e-5, solver=solver, max_iter=20_000)
    kernel = SVC(kernel="linear", C=C, gap_tol=1e-8).fit(X2, y2)
    linear.fit(X2, y2)
    assert_allclose(linear.objective_, kernel.objective_, rtol=1e-5)
    assert linear.objective_ - linear.dual_gap_ <= kernel.objective_
    assert_allclose(linear.decision_function(X2), kernel.decision_function(X2), atol=0.05)


def test_a_free_intercept_of_regression():
    linear = LinearRegressor("epsilon_insensitive", C=0.1, epsilon=0.1, gap_tol=1e-8)
    kernel = SVR(kernel="linear", C=0.1, epsilon=0.1, gap_tol=1e-8).fit(XR, yR)
    assert_allclose(linear.fit(XR, yR).objective_, kernel.objective_, rtol=1e-7)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("X, y", [(X2, y2), (X3, y3)])
def test_logistic_regression_is_scikit_learns(X, y, C):
    ours = LogisticRegression(C=C, gap_tol=1e-11).fit(X, y)
    theirs = sklearn_linear.LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X))
    assert ours.coef_.shape == theirs.coef_.shape


@pytest.mark.parametrize("many", [False, True])
def test_ridge_is_scikit_learns(many):
    t = np.column_stack([yR, yR**2]) if many else yR
    ours = Ridge(alpha=2.0).fit(XR, t)
    theirs = sklearn_linear.Ridge(alpha=2.0).fit(XR, t)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-12)
    assert_allclose(ours.predict(XR), theirs.predict(XR), rtol=1e-9, atol=1e-9)


def test_ridge_is_the_kernel_machine():
    kernel = LSSVR(kernel="linear", C=0.5).fit(XR, yR)
    assert_allclose(Ridge(alpha=2.0).fit(XR, yR).predict(XR), kernel.predict(XR), atol=1e-8)


# ------------------------------------------------------------------ what does not matter


@pytest.mark.parametrize(
    "machine",
    [LinearSVC(), LinearSVC(loss="hinge"), LinearClassifier(), LogisticRegression()],
    ids=str,
)
@pytest.mark.parametrize("X, y", [(X2, y2), (X3, y3)])
def test_sparse_rows_and_threads_change_nothing(machine, X, y):
    sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    dense = sparse.toarray()
    one = machine.set_params(random_state=0, n_jobs=1).fit(dense, y)
    first = one.coef_.copy()
    assert_array_equal(machine.set_params(n_jobs=2).fit(dense, y).coef_, first)
    machine.fit(sparse, y)
    assert_allclose(machine.coef_, first, atol=1e-3 * np.abs(first).max())
    assert_allclose(machine.decision_function(dense), machine.decision_function(sparse), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_weight_of_two_is_a_row_given_twice(solver, loss):
    if solver == "interior-point" and loss == "squared_hinge":
        pytest.skip("for losses with a kink")
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(y2))
    machine = LinearSVC(loss=loss, C=0.1, solver=solver, gap_tol=1e-9, max_iter=100_000)
    weighted = machine.fit(X2, y2, weights).coef_.copy()
    repeated = machine.fit(np.repeat(X2, weights, axis=0), np.repeat(y2, weights)).coef_
    assert_allclose(weighted, repeated, atol=1e-4 * np.abs(repeated).max())


def test_float32_stays_and_agrees():
    single = LinearSVC(C=0.1).fit(X2.astype(np.float32), y2)
    assert_allclose(single.coef_, LinearSVC(C=0.1).fit(X2, y2).coef_, rtol=1e-3, atol=1e-5)
    assert single.coef_.dtype == np.float64


# ------------------------------------------------------------------ watching, stopping, going on


def test_a_fit_that_ends_early_says_so_and_goes_on():
    machine = LinearSVC(loss="hinge", solver="dual-coordinate", max_iter=1, gap_tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        machine.fit(X2, y2)
    assert machine.fit_status_ == 1 and machine.status_.startswith("stopped at the iteration limit")
    best = LinearSVC(loss="hinge", gap_tol=1e-9).fit(X2, y2)
    assert machine.objective_ - machine.dual_gap_ <= best.objective_ <= machine.objective_
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        LinearSVC(time_limit=0.0).fit(X2, y2)


@pytest.mark.parametrize("machine", [LinearClassifier("squared_hinge"), LogisticRegression()])
def test_warm_start_goes_on_from_the_last_solution(machine):
    X, y = load_iris(return_X_y=True)
    machine.set_params(warm_start=True, gap_tol=1e-8).fit(X, y)
    cold, coef = machine.n_iter_, machine.coef_.copy()
    machine.fit(X, y)
    assert machine.n_iter_ < cold
    assert_allclose(machine.coef_, coef, atol=1e-3 * np.abs(coef).max())


# ------------------------------------------------------------------ names, objects, refusals


def test_losses_and_penalties_are_names_or_objects():
    by_name = LinearClassifier(loss="logistic", penalty="l2").fit(X2, y2)
    by_object = LinearClassifier(loss=Logistic(), penalty=L2()).fit(X2, y2)
    assert_array_equal(by_name.coef_, by_object.coef_)
    with pytest.raises(ValueError, match=r"write Hinge\(\)"):
        LinearClassifier(loss=Hinge).fit(X2, y2)
    with pytest.raises(ValueError, match=r"write L1\(\)"):
        LinearClassifier(penalty=L1).fit(X2, y2)
    with pytest.raises(ValueError, match=r"penalty=Group\(groups\)"):
        LinearClassifier(penalty="group").fit(X2, y2)


@pytest.mark.parametrize(
    "machine, message",
    [
        (LinearClassifier(loss="squared"), "use LinearRegressor"),
        (LinearRegressor(loss="hinge"), "use LinearClassifier"),
        (LinearClassifier(loss="perceptron"), "maxmargin.Perceptron"),
        (LinearClassifier(penalty="l1", solver="dual-coordinate"), "needs the l2 penalty"),
        (LinearClassifier(loss="logistic", solver="interior-point"), "'newton'"),
        (LinearClassifier(loss="multiclass_hinge"), "penalize_intercept=True"),
        (LogisticRegression(solver="lbfgs"), "scikit-learn's"),
        (Ridge(solver="svd"), "scikit-learn's"),
        (LinearSVC(penalty="l1", dual=True), "Unsupported set of arguments"),
        (LinearSVC(loss="hinge", dual=False), "Unsupported set of arguments"),
        (LinearClassifier(solver="nothing"), "solver"),
    ],
    ids=str,
)
def test_what_is_impossible_is_refused_with_what_would_work(machine, message):
    with pytest.raises(ValueError, match=message):
        machine.fit(X2, y2)


def test_probabilities_need_a_likelihood():
    assert not hasattr(LinearClassifier("hinge").fit(X2, y2), "predict_proba")
    each = LinearClassifier("logistic").fit(X3, y3).predict_proba(X3)
    together = LinearClassifier("softmax").fit(X3, y3).predict_proba(X3)
    for p in (each, together):
        assert_allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_extreme_prices_end(loss, C):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = LinearClassifier(loss, C=C, time_limit=5.0).fit(X2, y2)
    assert np.isfinite(machine.coef_).all()
    assert np.isfinite(machine.objective_)
    assert machine.dual_gap_ >= 0
