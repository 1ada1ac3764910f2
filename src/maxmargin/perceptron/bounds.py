"""How many mistakes a perceptron can make.

Let |x_i| <= R. If a unit vector u separates the data with margin gamma, y_i u.x_i >= gamma, then

    mistakes <= (R / gamma)^2                                          (Block, Novikoff 1962)

in any number of passes. For any u at all, and L the sum of its hinge losses max(0, 1 - y u.x) over
the rows visited,

    mistakes M satisfy  M <= L + R |u| sqrt(M),  so that
    M <= ( (R |u| + sqrt(R^2 |u|^2 + 4 L)) / 2 )^2            (Shalev-Shwartz 2012, section 3.3)

of which the first is the case L = 0, |u| = 1 / gamma. Let w be the perceptron's vector after M
steps of length 1. |w|^2 <= M R^2, since a mistake adds at most R^2 to it; and u.w >= M - L, since
one adds y u.x >= 1 - loss. With steps s_i from 1 to r (class weights) and S = sum of s_i >= M, the
same says S <= r L + R |u| sqrt(r S): R^2 and L are multiplied by r.

The best u is near a support vector machine without intercept: a hard margin where there is one,
else the best of several soft ones and of u = 0. Whatever was solved, and how well, the bound is
evaluated at the u that was found, and so it holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from maxmargin.exceptions import NotSeparableError
from maxmargin.kernels import Linear, native
from maxmargin.problem import Floats, c_svc
from maxmargin.solve import solve

SOFT = (1e-2, 1e-1, 1.0, 1e1, 1e2)
"""The C tried where there is no hard margin, in units of 1 / R^2."""


class MistakeBound:
    """The mistake bound of an estimator that learns by the perceptron's rule."""

    fit_intercept: bool

    def mistake_bound(self, X: Any, y: Any, n_passes: int = 1) -> Any:
        """The number of mistakes that a fit from scratch on these rows cannot exceed.

        Where the maximum margin gamma of a separator through the origin is positive, this is
        (R / gamma)^2, with R the length of the longest row; it holds for any number of passes.
        With an intercept both are those of the rows with a feature 1 added, and for a kernel those
        in its feature space. Where no separator exists it is the bound by hinge losses, for
        ``n_passes`` passes: see ``maxmargin.perceptron.bounds``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Their labels.
        n_passes : int, default=1
            How often the rows are visited; of no consequence for separable rows.

        Returns
        -------
        float or array of shape (n_classes,)
            One bound for each count in ``n_mistakes_``.
        """
        check_is_fitted(self)
        estimator: Any = self
        kernel, X = estimator._bound_items(X)
        classes, labels = estimator._labels(y, None, first=False)
        positive = [1] if len(classes) == 2 else range(len(classes))
        lengths = estimator._weights(classes, labels, False)[np.unique(labels)]
        ratio = lengths.max() / lengths.min()
        items = _with_constant(kernel, X) if self.fit_intercept else native(kernel.prepare(X))
        bounds = []
        for own in positive:
            signs = np.where(labels == own, 1.0, -1.0)
            bounds.append(bound(items, signs, n_passes, ratio, estimator.n_jobs))
        return bounds[0] if len(bounds) == 1 else np.array(bounds)


def bound(
    items: Any, y: Floats, n_passes: int = 1, ratio: float = 1.0, n_jobs: int | None = None
) -> float:
    """The bound for labels +1 and -1; ``ratio`` is that of the longest step to the shortest."""
    R2 = float(np.max(items.diagonal()))
    u = _separator(items, y, n_jobs)
    if u is not None:
        norm2, margin = u
        return float(ratio * R2 * norm2 / margin**2)
    best = float(len(y) * n_passes)  # u = 0
    if R2 == 0:
        return best
    for C in SOFT:
        problem = c_svc(y, C=C / R2, intercept=False)
        solution = solve(problem, items, tol=1e-2, n_jobs=n_jobs)
        norm2, scores = _evaluated(items, problem.spread(solution.coefficients), n_jobs)
        loss = float(np.maximum(0.0, 1 - y * scores).sum()) * n_passes
        b = np.sqrt(ratio * R2 * norm2)
        best = min(best, float((b + np.sqrt(b * b + 4 * ratio * loss)) / 2) ** 2)
    return best


def _separator(items: Any, y: Floats, n_jobs: int | None) -> tuple[float, float] | None:
    """|u|^2 and the least y u.x of the separator of largest margin, if there is one."""
    problem = c_svc(y, C=np.inf, intercept=False)
    try:
        solution = solve(problem, items, tol=1e-6, n_jobs=n_jobs)
    except NotSeparableError:
        return None
    norm2, scores = _evaluated(items, problem.spread(solution.coefficients), n_jobs)
    margin = float((y * scores).min())
    return (norm2, margin) if margin > 0 and norm2 > 0 else None


def _evaluated(items: Any, c: Floats, n_jobs: int | None) -> tuple[float, Floats]:
    """|u|^2 and the scores u.x of u = sum of c_i x_i, in float64."""
    scores = items.multiply(items, np.ascontiguousarray(c), n_jobs)[:, 0]
    return float(c[:, 0] @ scores), scores


def _with_constant(kernel: Any, X: Any) -> Any:
    """The items of k + 1: the rows with a feature that is always 1."""
    if isinstance(kernel.kernel, Linear):
        one = np.ones((X.shape[0], 1), dtype=X.dtype)
        X = (
            sp.hstack([X, sp.csr_array(one)], format="csr")
            if sp.issparse(X)
            else np.hstack([X, one])
        )
        return native(Linear().fit(X).prepare(X))
    return native(PlusOne(native(kernel.prepare(X))))


class PlusOne:
    """The items of the kernel k + 1."""

    def __init__(self, items: Any) -> None:
        self.items, self.dtype = items, np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.items)

    def tile(self, rows: Any, other: PlusOne, cols: Any = None) -> Floats:
        return self.items.tile(rows, other.items, cols, in_float64=True) + 1

    def diagonal(self) -> Floats:
        return self.items.diagonal() + 1

    def multiply(self, other: PlusOne, V: Floats, n_jobs: int | None = None) -> Floats:
        return self.items.multiply(other.items, V, n_jobs) + V.sum(axis=0)

    def subset(self, rows: Any) -> PlusOne:
        return PlusOne(self.items.subset(rows))
