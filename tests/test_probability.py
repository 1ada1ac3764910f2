"""Probabilities against brute-force minimisation and scikit-learn's calibration."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

from maxmargin.svm.probability import couple, folds, platt, sigmoid, unseen_decisions


def entropy(parameters, f, positive, w):
    A, B = parameters
    more, less = w[positive].sum(), w[~positive].sum()
    t = np.where(positive, (more + 1) / (more + 2), 1 / (less + 2))
    z = A * f + B
    return w @ (np.logaddexp(0, z) - (1 - t) * z)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_platt_is_the_minimum(seed, scale):
    rng = np.random.default_rng(seed)
    positive = rng.random(80) < 0.3
    f = np.where(positive, 1.0, -1.0) + rng.normal(size=80) * 1.5
    w = rng.integers(1, 4, 80).astype(float)
    best = minimize(entropy, (0, 0), (f, positive, w), method="BFGS", options={"gtol": 1e-9})
    A, B = platt(f * scale, positive, w)
    np.testing.assert_allclose((A * scale, B), best.x, rtol=1e-5, atol=1e-6)


def test_a_weight_counts_as_repetitions():
    rng = np.random.default_rng(0)
    f, positive = rng.normal(size=40), rng.random(40) < 0.5
    w = rng.integers(0, 3, 40)
    repeated = np.repeat(np.arange(40), w)
    np.testing.assert_allclose(platt(f, positive, w), platt(f[repeated], positive[repeated]))


@pytest.mark.parametrize("f", [np.zeros(6), np.full(6, 1e300), np.arange(6) - 2.5])
def test_separable_and_constant_decisions(f):
    positive = np.arange(6) > 2
    A, B = platt(f, positive)
    p = sigmoid(f, A, B)
    assert np.isfinite((A, B)).all()
    assert A <= 0
    assert np.all((p > 0) & (p < 1))
    if np.ptp(f) > 0:
        assert np.all(p[positive] > 0.5) and np.all(p[~positive] < 0.5)
    np.testing.assert_allclose(p.mean(), 0.5)


def test_one_class_only_is_not_an_error():
    A, B = platt([1.0, 2.0, 3.0], [True, True, True])
    assert np.all(sigmoid([1.0, 2.0, 3.0], A, B) > 0.5)


def test_as_scikit_learn_calibrates():
    X, y = make_classification(200, random_state=0)
    calibrated = CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=4).fit(X, y)
    theirs = calibrated.calibrated_classifiers_[0]
    fold = np.empty(len(y), dtype=int)
    f = np.empty(len(y))
    from sklearn.model_selection import StratifiedKFold

    for k, (train, test) in enumerate(StratifiedKFold(4).split(X, y)):
        fold[test] = k
        f[test] = LinearSVC().fit(X[train], y[train]).decision_function(X[test])
    A, B = platt(f, y == 1)
    np.testing.assert_allclose(
        (A, B), (theirs.calibrators[0].a_, theirs.calibrators[0].b_), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("k", [2, 3, 7])
def test_coupling_is_the_minimum(k):
    rng = np.random.default_rng(k)
    first, second = np.triu_indices(k, 1)
    given = rng.uniform(0.01, 0.99, size=(5, len(first)))

    def misfit(p, r):
        return 2 * ((1 - r) * p[first] - r * p[second]) ** 2 @ np.ones(len(r))

    for p, r in zip(couple(given, k), given, strict=True):
        best = minimize(
            misfit,
            np.full(k, 1 / k),
            (r,),
            method="SLSQP",
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-15},
        )
        np.testing.assert_allclose(p, best.x, atol=1e-5)
        assert misfit(p, r) <= best.fun + 1e-12


def test_coupling_recovers_consistent_pairs():
    p = np.random.default_rng(0).dirichlet(np.ones(6), size=50)
    first, second = np.triu_indices(6, 1)
    pairs = p[:, first] / (p[:, first] + p[:, second])
    np.testing.assert_allclose(couple(pairs, 6), p, atol=1e-6)


def test_coupling_of_certainties():
    p = couple([[1.0, 1.0, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]], 3)
    assert np.all(p > 0) and np.all(np.isfinite(p))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p[:2].argmax(axis=1), [0, 2])
    np.testing.assert_allclose(p[2], 1 / 3)  # each beats one other: a circle
    assert couple(np.empty((0, 3)), 3).shape == (0, 3)


def test_folds_are_seeded_and_stratified():
    y = np.repeat([0, 1, 2], [50, 7, 3])
    fold = folds(y, 5, np.random.RandomState(0))
    np.testing.assert_array_equal(fold, folds(y, 5, np.random.RandomState(0)))
    assert np.ptp(np.bincount(fold)) == 0
    for c in range(3):
        assert np.ptp(np.bincount(fold[y == c], minlength=5)) <= 1
    assert not np.array_equal(fold, folds(y, 5, np.random.RandomState(1)))


def test_decisions_are_of_unseen_rows():
    y = np.repeat([1.0, -1.0], [8, 1])
    seen = []

    def decide(train, test):
        assert not set(train) & set(test)
        seen.extend(test)
        return np.full(len(test), 7.0)

    values = unseen_decisions(y, decide, np.random.RandomState(0))
    assert values[8] == 1.0  # without it there is one class
    assert set(values) == {1.0, 7.0}
    assert len(seen) == len(set(seen)) == (values == 7).sum()
