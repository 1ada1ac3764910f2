"""Probabilities from decision values: Platt's sigmoid, pairwise coupling, honest decision values.

    P(y = 1 | f) = 1 / (1 + exp(A f + B))

A and B are fitted to decision values of rows that the machine has not seen (``unseen_decisions``);
those it was trained on stand at the margin and would make it too sure.  Of several classes every
pair has its sigmoid, and ``couple`` finds the probabilities that fit the pairs best.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from maxmargin.problem import Floats, Indices

CERTAIN = 1e-7
"""No class is less probable than this, as in LIBSVM, before probabilities are coupled."""


def platt(
    decisions: ArrayLike, positive: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    """Fit Platt's sigmoid by Newton's method (Lin, Lin and Weng 2007, algorithm 1).

    Minimises the cross entropy -sum_i w_i (t_i log p_i + (1 - t_i) log(1 - p_i)) over A and B, with
    targets a little inside of 0 and 1: (N_+ + 1) / (N_+ + 2) and 1 / (N_- + 2).  The function is
    convex, and a step is halved until it descends.

    Parameters
    ----------
    decisions : array of shape (n,)
        Decision values f.
    positive : array of shape (n,)
        Whether a row belongs to the positive class.
    sample_weight : array of shape (n,), optional
        How often a row counts.

    Returns
    -------
    A, B : float
    """
    f = np.asarray(decisions, dtype=np.float64)
    positive = np.asarray(positive, dtype=bool)
    w = np.ones(len(f)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    n_positive, n_negative = float(w[positive].sum()), float(w[~positive].sum())
    t = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    scale = float(np.abs(f).max(initial=0.0)) or 1.0  # makes the tolerance one of probabilities
    f = f / scale

    def entropy(A: float, B: float) -> float:
        z = A * f + B  # -log p = log(1 + e^z), -log(1 - p) = log(1 + e^z) - z
        return float(w @ (np.logaddexp(0.0, z) - (1 - t) * z))

    A, B = 0.0, float(np.log((n_negative + 1) / (n_positive + 1)))
    value = entropy(A, B)
    for _ in range(100):
        p = expit(-(A * f + B))
        slope, curve = w * (t - p), w * p * (1 - p)
        gradient = np.array([slope @ f, slope.sum()])
        if np.abs(gradient).max() <= 1e-10 * w.sum():
            break
        hessian = np.array([[curve @ f**2, curve @ f], [curve @ f, curve.sum()]])
        step = np.linalg.solve(hessian + 1e-12 * np.eye(2), -gradient)
        length, descent = 1.0, float(gradient @ step)
        while length >= 1e-10:
            new = entropy(A + length * step[0], B + length * step[1])
            if new < value + 1e-4 * length * descent:
                break
            length /= 2
        else:
            break  # as far as rounding lets it go
        A, B, value = A + length * float(step[0]), B + length * float(step[1]), new
    return A / scale, B


def sigmoid(decisions: ArrayLike, A: ArrayLike, B: ArrayLike) -> Floats:
    """P(y = 1 | f) of decision values, a column of them for each A and B."""
    return expit(-(np.asarray(A) * np.asarray(decisions, dtype=np.float64) + np.asarray(B)))


def couple(pairwise: ArrayLike, n_classes: int) -> Floats:
    """Class probabilities from those of pairs (Wu, Lin and Weng 2004, second method).

    Minimises sum_{i != j} (r_ji p_i - r_ij p_j)^2 over p with sum 1, where r_ij is the probability
    of class i given that it is i or j.  With Q_ii = sum_{j != i} r_ji^2 and Q_ij = -r_ji r_ij the
    optimum solves Q p = b 1, 1'p = 1 and is never negative.  The paper's algorithm 2 sweeps
    towards it; here the k + 1 equations of every row are solved at once, which is exact.

    Parameters
    ----------
    pairwise : array of shape (n, n_classes * (n_classes - 1) / 2)
        r_ij for all i < j, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Returns
    -------
    array of shape (n, n_classes)
    """
    given = np.clip(np.asarray(pairwise, dtype=np.float64), CERTAIN, 1 - CERTAIN)
    n, k = len(given), n_classes
    first, second = np.array(list(combinations(range(k), 2))).T
    r = np.zeros((n, k, k))
    r[:, first, second], r[:, second, first] = given, 1 - given
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    system[:, np.arange(k), np.arange(k)] = (r**2).sum(axis=1)
    system[:, :k, k] = -1.0
    system[:, k, :k] = 1.0
    sums = np.zeros((n, k + 1, 1))
    sums[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, sums)[:, :k, 0], np.finfo(float).tiny)
    return p / p.sum(axis=1, keepdims=True)


def folds(labels: ArrayLike, n_folds: int, rng: np.random.RandomState) -> Indices:
    """The fold of each row: random, of equal size, with each class spread over all of them."""
    labels = np.asarray(labels)
    shuffled = rng.permutation(len(labels))
    dealt = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = np.empty(len(labels), dtype=np.int64)
    fold[dealt] = np.arange(len(labels)) % n_folds
    return fold


def unseen_decisions(
    y: ArrayLike,
    decide: Callable[[Indices, Indices], NDArray[np.float64]],
    rng: np.random.RandomState,
    n_folds: int = 5,
) -> Floats:
    """Decision values of a two-class problem's rows, each from a machine that has not seen them.

    Parameters
    ----------
    y : array of shape (n,)
        -1 and +1.
    decide : callable
        ``decide(train, test)`` trains on the rows ``train`` and returns f of the rows ``test``.
    rng : RandomState
        Deals the rows to the folds.
    n_folds : int, default=5

    Returns
    -------
    array of shape (n,)
        Where the other folds hold one class only, that class's sign.
    """
    y = np.asarray(y, dtype=np.float64)
    fold = folds(y, n_folds, rng)
    values = np.zeros(len(y))
    for k in range(min(n_folds, len(y))):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if len(np.unique(y[train])) == 2:
            values[test] = decide(train, test)
        elif len(train):
            values[test] = y[train[0]]
    return values
