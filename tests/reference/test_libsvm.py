"""Against LIBSVM, as scikit-learn ships it: the same optimum on real data.

LIBSVM's own objective is computed here from its coefficients in float64.
"""

from functools import cache

import numpy as np
import pytest
from sklearn import datasets, svm
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from textbook import gradient, objective

from maxmargin import problem as formulations
from maxmargin.feasible import project

TOL = 1e-6


@cache
def classes(name):
    """Two classes, standardised, at most 150 rows: (X, y)."""
    X, target = {
        "breast cancer": datasets.load_breast_cancer,
        "iris": datasets.load_iris,
        "digits": datasets.load_digits,
    }[name](return_X_y=True)
    chosen = {"breast cancer": target >= 0, "iris": target >= 1, "digits": target % 5 == 3}[name]
    X, target = X[chosen], target[chosen]
    rows = np.random.default_rng(0).permutation(len(X))[:150]
    y = np.where(target[rows] == target.max(), 1.0, -1.0)
    return StandardScaler().fit_transform(X[rows]), y


@cache
def numbers():
    X, t = datasets.load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:100], t[:100] / 50


def kernel(X, kind):
    return X @ X.T if kind == "linear" else rbf_kernel(X, gamma=1 / X.shape[1])


def compare(solve, problem, K, theirs, c):
    """Our optimum is theirs: objective, scores (which are unique) and intercept."""
    ours = solve(problem, K, tol=TOL)
    assert ours.converged, ours.status
    c = project(problem, c)  # which repairs rounding only: their coefficients are feasible
    value = objective(problem, K, c)
    assert ours.objective == pytest.approx(value, rel=1e-6)
    # Their point is certified by our certificate, ours by itself.
    assert ours.objective - ours.gap <= value + 1e-9 * abs(value)
    assert ours.gap <= 1e-4 * max(1.0, abs(value))
    F = (K @ problem.spread(c)).ravel()
    scale = max(1.0, np.abs(F).max())
    np.testing.assert_allclose(ours.scores.ravel(), F, atol=2e-4 * scale)
    # Both know their own intercept to within the violation, which is as far as it is determined.
    low, high = ours.rho_interval.T
    width = max(0.0, float((high - low).max())) + 2e-4 * scale
    assert abs(-ours.rho.mean() - theirs) <= width
    assert np.abs(gradient(problem, K, ours.coefficients) - ours.gradient).max() <= 1e-8 * scale
    return ours


def spread(model, n):
    c = np.zeros(n)
    c[model.support_] = model.dual_coef_[0]
    return c


def twice(c):
    """Regression: what lies above the tube, then what lies below it."""
    return np.concatenate([np.maximum(c, 0), np.minimum(c, 0)])


CLASSIFICATION = pytest.mark.parametrize("name", ["breast cancer", "iris", "digits"])
KINDS = pytest.mark.parametrize("kind", ["linear", "rbf"])


@CLASSIFICATION
@KINDS
@pytest.mark.parametrize("C, weighted", [(1.0, False), (0.05, False), (10.0, True)])
def test_svc(solve, name, kind, C, weighted):
    X, y = classes(name)
    K = kernel(X, kind)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    theirs = svm.SVC(kernel="precomputed", C=C, tol=TOL).fit(K, y, w)
    problem = formulations.c_svc(y, C, w)
    compare(solve, problem, K, theirs.intercept_[0], spread(theirs, len(y)))


@CLASSIFICATION
@KINDS
def test_nu_svc(solve, name, kind):
    """Theirs is divided by (rho_+ - rho_-) / 2, ours is not yet."""
    X, y = classes(name)
    K = kernel(X, kind)
    theirs = svm.NuSVC(kernel="precomputed", nu=0.3, tol=TOL).fit(K, y)
    problem = formulations.nu_svc(y, 0.3)
    ours = solve(problem, K, tol=TOL)
    assert ours.converged, ours.status
    margin = (ours.rho[0] - ours.rho[1]) / 2
    decision = (ours.scores.ravel() - ours.rho.mean()) / margin
    np.testing.assert_allclose(decision, theirs.decision_function(K), atol=1e-3)
    c = project(problem, spread(theirs, len(y)) * margin)
    assert ours.objective == pytest.approx(objective(problem, K, c), rel=1e-4)


@KINDS
@pytest.mark.parametrize("C, epsilon", [(1.0, 0.1), (0.05, 0.5)])
def test_svr(solve, kind, C, epsilon):
    X, t = numbers()
    K = kernel(X, kind)
    theirs = svm.SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=TOL).fit(K, t)
    problem = formulations.epsilon_svr(t, C, epsilon)
    compare(solve, problem, K, theirs.intercept_[0], twice(spread(theirs, len(t))))


@KINDS
@pytest.mark.parametrize("nu", [0.2, 0.7])
def test_nu_svr(solve, kind, nu):
    X, t = numbers()
    K = kernel(X, kind)
    theirs = svm.NuSVR(kernel="precomputed", C=1.0, nu=nu, tol=TOL).fit(K, t)
    problem = formulations.nu_svr(t, 1.0, nu)
    ours = compare(solve, problem, K, theirs.intercept_[0], twice(spread(theirs, len(t))))
    rho_above, rho_below = ours.rho
    assert rho_below >= rho_above  # the tube has a width


@CLASSIFICATION
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class(solve, name, nu):
    X, y = classes(name)
    K = kernel(X, "rbf")
    theirs = svm.OneClassSVM(kernel="precomputed", nu=nu, tol=TOL).fit(K)
    problem = formulations.one_class(np.ones(len(y)), nu)
    compare(solve, problem, K, theirs.intercept_[0], spread(theirs, len(y)))
