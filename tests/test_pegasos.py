"""Pegasos, linear and with kernels, against the loop of the lecture and the machine it tends to."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC, KernelPegasos, Pegasos
from maxmargin.kernels import RBF, Linear


def overlapping(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def lecture(X, y, lam, k, passes):
    """Pegasos as in the lecture, on batches in the order of the rows: all iterates."""
    w, n, iterates = np.zeros(X.shape[1]), 0, []
    for _ in range(passes):
        for first in range(0, len(y), k):
            n += 1
            A = slice(first, min(first + k, len(y)))
            active = y[A] * (X[A] @ w) <= 1
            gradient = lam * w - (y[A] * active) @ X[A] / len(y[A])
            w = w - gradient / (lam * n)
            norm = np.linalg.norm(w)
            w = min(1, 1 / np.sqrt(lam) / norm) * w if norm > 0 else w
            iterates.append(w)
    return np.array(iterates)


@pytest.mark.parametrize("batch_size", [1, 7, 80, 500])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_iterates_are_those_of_the_lecture(make, batch_size, alpha, fit_intercept):
    X, y = overlapping()
    rows = np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X
    iterates = lecture(rows, 2 * y - 1, alpha, batch_size, 3)
    options = {"alpha": alpha, "batch_size": batch_size, "fit_intercept": fit_intercept}
    p = Pegasos(max_iter=3, tol=None, shuffle=False, **options).fit(make(X), y)

    def weights(coef, intercept):
        return np.append(coef, intercept) if fit_intercept else coef[0]

    np.testing.assert_allclose(weights(p.coef_, p.intercept_), iterates[-1], atol=1e-9)
    mean = weights(p.average_coef_, p.average_intercept_)
    np.testing.assert_allclose(mean, iterates.mean(axis=0), atol=1e-9)
    average = Pegasos(average=True, max_iter=3, tol=None, shuffle=False, **options)
    np.testing.assert_array_equal(average.fit(make(X), y).coef_, p.average_coef_)
    np.testing.assert_array_equal(average.last_coef_, p.coef_)

    k = KernelPegasos(kernel="linear", max_iter=3, tol=None, shuffle=False, **options).fit(X, y)
    np.testing.assert_allclose(k.decision_function(X), p.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(
        k.average_dual_coef_ @ k.support_vectors_, p.average_coef_, atol=1e-9
    )
    assert k.n_mistakes_ == p.n_mistakes_


@pytest.mark.parametrize("make", [Pegasos, KernelPegasos])
def test_weights_stay_in_the_ball(make):
    X, y = overlapping()
    X *= 100
    model = make(alpha=0.01, **({"kernel": "linear"} if make is KernelPegasos else {}))
    norms = []
    for x, label in zip(X, y, strict=True):
        model.partial_fit([x], [label], classes=[0, 1])
        w = model.coef_ if make is Pegasos else model.dual_coef_ @ model.support_vectors_
        norms.append(np.linalg.norm(np.append(w, model.intercept_)))
    assert max(norms) <= 10 * (1 + 1e-9)
    assert norms[0] == pytest.approx(10)  # the first step is 100 times too long


def test_rows_of_zeros_leave_w_at_zero():
    for make in (Pegasos, KernelPegasos):
        options = {"kernel": "linear"} if make is KernelPegasos else {}
        model = make(fit_intercept=False, max_iter=2, tol=None, **options)
        assert not model.fit(np.zeros((4, 2)), [0, 1, 0, 1]).decision_function(np.eye(2)).any()


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.5)])
def test_the_average_tends_to_the_support_vector_machine(kernel):
    X, y = overlapping(n=60)
    alpha = 0.1
    best = SVC(kernel=kernel, C=1 / (alpha * 60), fit_intercept=False, tol=1e-8).fit(X, y)
    model = KernelPegasos(
        kernel=kernel, alpha=alpha, average=True, fit_intercept=False, max_iter=300, tol=None
    ).fit(X, y)
    K, signs = kernel(X), 2 * y - 1

    def objective(support, c):
        scores = K[:, support] @ c
        return alpha / 2 * (c @ scores[support]) + np.maximum(0, 1 - signs * scores).mean()

    least = objective(best.support_, best.dual_coef_[0])
    reached = objective(model.support_, model.dual_coef_[0])
    assert least <= reached + 1e-9
    assert reached <= least * 1.01


def test_long_steps_and_many_projections_keep_their_digits():
    """Every projection shrinks w = s v by its s, which must not end at 0."""
    X, y = overlapping()
    X = 1e4 * np.round(X, 1)
    iterates = lecture(X, 2 * y - 1, 1e-4, 1, 5)
    options = {"alpha": 1e-4, "fit_intercept": False, "max_iter": 5, "tol": None}
    p = Pegasos(shuffle=False, **options).fit(X, y)
    k = KernelPegasos(kernel="linear", shuffle=False, **options).fit(X, y)
    np.testing.assert_allclose(p.coef_[0], iterates[-1], rtol=1e-6)
    np.testing.assert_allclose(k.decision_function(X), X @ iterates[-1], rtol=1e-6)
