"""What the lectures prove about support vector machines holds for ours."""

from itertools import product

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.exceptions import NotSeparableError
from maxmargin.kernels import RBF, Linear
from maxmargin.svm.diagnosis import enclosing_radius


def classes(n=60, d=3, shift=1.0, seed=0):
    """Two overlapping classes of the same size."""
    rng = np.random.default_rng(seed)
    y = np.repeat([-1, 1], n // 2)
    return rng.normal(size=(n, d)) + shift * y[:, None] / np.sqrt(d), y


KERNELS = [{"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.5}]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
@pytest.mark.parametrize("C", [1.0, 10.0, np.inf])
def test_dropping_every_other_vector_changes_nothing(kernel, C):
    X, y = classes(shift=6.0 if np.inf == C else 1.0)
    svc = SVC(C=C, tol=1e-10, **kernel).fit(X, y)
    kept = svc.support_
    assert len(kept) < len(X)
    again = SVC(C=C, tol=1e-10, **kernel).fit(X[kept], y[kept])
    np.testing.assert_allclose(again.decision_function(X), svc.decision_function(X), atol=1e-7)
    assert again.objective_ == pytest.approx(svc.objective_)
    assert again.margin_ == pytest.approx(svc.margin_)


def test_small_C_is_the_basic_linear_classifier():
    """On balanced classes the direction, and it alone, tends to the difference of the means."""
    X, y = classes()
    means = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    for C, angle in ((1e-3, 1e-2), (1e-6, 1e-12)):
        w = SVC(kernel="linear", C=C, tol=1e-12).fit(X, y).coef_[0]
        assert 1 - w @ means / np.linalg.norm(w) / np.linalg.norm(means) < angle
    # w itself vanishes with C: all alpha are at C
    np.testing.assert_allclose(w, 1e-6 * (len(y) / 2) * means)


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e4])
def test_scaling_all_points_changes_nothing_after_rescaling(scale):
    X, y = classes()
    svc = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X, y)
    scaled = SVC(kernel="linear", C=0.5 / scale**2, tol=1e-9).fit(scale * X, y)
    np.testing.assert_allclose(scaled.decision_function(scale * X), svc.decision_function(X))
    np.testing.assert_allclose(scaled.coef_ * scale, svc.coef_)
    np.testing.assert_allclose(scaled.margins(scale * X, y), scale * svc.margins(X, y))
    np.testing.assert_array_equal(scaled.support_, svc.support_)
    a, b = svc.diagnose(X, y), scaled.diagnose(scale * X, y)
    assert b.radius == pytest.approx(scale * a.radius, rel=2e-3)
    assert b.complexity == pytest.approx(a.complexity, rel=4e-3)
    np.testing.assert_array_equal(b.case, a.case)
    rbf = SVC(gamma=0.5, tol=1e-9).fit(X, y)
    again = SVC(gamma=0.5 / scale**2, tol=1e-9).fit(scale * X, y)
    np.testing.assert_allclose(again.decision_function(scale * X), rbf.decision_function(X))


def margin_through_the_origin(X, y):
    """The largest margin of a separator through the origin; 0 where there is none."""
    if len(set(y)) == 1:  # the same problem with one point and its label turned around
        turn = np.append(np.ones(len(y) - 1), -1)
        X, y = X * turn[:, None], y * turn
    try:
        return SVC(kernel="linear", C=np.inf, fit_intercept=False, tol=1e-8).fit(X, y).margin_
    except NotSeparableError:
        return 0.0


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("d", [2, 5])
def test_a_margin_shatters_few_points(n, d):
    """Separators with margin gamma shatter at most (R / gamma)^2 points in a ball of radius R."""
    X = np.random.default_rng(10 * n + d).normal(size=(n, d))
    radius = np.linalg.norm(X, axis=1).max()
    least = min(margin_through_the_origin(X, np.array(y)) for y in product([-1, 1], repeat=n))
    assert n <= (radius / max(least, 1e-9)) ** 2 + 1e-6


@pytest.mark.parametrize("n", [2, 4, 6])
def test_orthogonal_points_show_that_no_more_can_be_said(n):
    margins = [
        margin_through_the_origin(2 * np.eye(n), np.array(y)) for y in product([-1, 1], repeat=n)
    ]
    np.testing.assert_allclose((2 / np.array(margins)) ** 2, n)


def test_the_margin_is_half_the_distance_of_the_hulls():
    X = np.array([[0.0, 0], [0, 2], [-1, 1], [3, 1], [4, 0], [4, 5]])
    svc = SVC(kernel="linear", C=np.inf).fit(X, [0, 0, 0, 1, 1, 1])
    assert svc.margin_ == pytest.approx(1.5)
    np.testing.assert_allclose(svc.margins(X, svc.predict(X)).min(), 1.5)
    np.testing.assert_allclose(svc.coef_, [[1 / 1.5, 0]], atol=1e-6)


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.5)])
def test_the_intercept_comes_from_the_free_support_vectors(kernel):
    """Not from the two nearest scores, which an outlier carries away."""
    X, y = classes()
    X[0] += 20
    svc = SVC(kernel=kernel, tol=1e-10).fit(X, y)
    d = svc.diagnose(X, y)
    free = d.case == "on"
    f = svc.decision_function(X) - svc.intercept_[0]
    np.testing.assert_allclose((y - f)[free], svc.intercept_[0], atol=1e-8)
    low, high = d.intercept_interval
    assert low - 1e-8 <= svc.intercept_[0] <= high + 1e-8


def test_conditions_of_karush_kuhn_and_tucker():
    X, y = classes()
    C = 0.7
    d = SVC(C=C, tol=1e-10).fit(X, y).diagnose(X, y)
    assert np.all((d.alpha >= 0) & (d.alpha <= C) & (d.slack >= 0))
    assert abs(d.alpha @ y) < 1e-9
    functional = d.margin * d.norm
    np.testing.assert_allclose(d.alpha * (1 - d.slack - functional), 0, atol=1e-8)
    np.testing.assert_allclose((C - d.alpha) * d.slack, 0, atol=1e-8)
    assert d.primal == pytest.approx(d.norm**2 / 2 + C * d.slack.sum())
    assert d.dual == pytest.approx(d.alpha.sum() - d.norm**2 / 2)


def test_radius_of_the_data():
    points = Linear().fit(np.eye(4)).prepare(np.eye(4) + 7)
    assert enclosing_radius(points) == pytest.approx(np.sqrt(1 - 1 / 4), rel=1e-3)
