"""The one problem of all linear machines, and what a pair of points proves about it.

    minimise over w, b      P(w, b) = penalty(w) + sum_i price_i loss(y_i, x_i.w + b)
    maximise over c         D(c) = -penalty*(X'c) - sum_i price_i loss*(y_i, -c_i / price_i)
                            where sum_i c_i = 0, if b is free

with loss* and penalty* the conjugates (Fenchel and Rockafellar).  P(w, b) >= D(c) for any w, b
and c, so that their difference, the duality gap, bounds how far both are from the optimum:
whatever the solver, the loss and the penalty.  At the optimum

    c_i = -price_i loss'(y_i, x_i.w + b)        and, for the L2 penalty, w = X'c

in the signs of the kernel machines: f(x) = sum_i c_i x_i.x + b.

Glossary
--------
X       rows x_i and, where there is an intercept, a constant feature behind them; the last of the w
        is then its weight, so that b = bias * w[-1]
free    the constant feature's weight is not penalised (else it is one weight like the others)
z       scores, z = X w
price   C times the weight of each row
v       X'c
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.feasible import balance
from maxmargin.linear.losses import Loss
from maxmargin.linear.penalties import Penalty
from maxmargin.problem import Floats

ROUNDING = 1e-14
"""A sum of coefficients that is off by less, relative to their sizes, is off by rounding."""


class Design:
    """Rows of data with a constant feature, ready for products; dense or CSR, borrowed.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, n_features)
        float32 or float64, C-ordered or canonical.
    bias : float, default=0.0
        The value of the constant feature; 0 for none.
    n_jobs : int, optional
        Threads; the results do not depend on it.
    """

    def __init__(self, X: Any, bias: float = 0.0, n_jobs: int | None = None):
        self.X = X
        self.bias = float(bias)
        self.n_jobs = n_jobs
        if sp.issparse(X):
            self.native = _core.csr_design(X.data, X.indices, X.indptr, X.shape[1], self.bias)
        else:
            self.native = _core.dense_design(X, self.bias)

    @property
    def n_rows(self) -> int:
        return self.native.rows

    @property
    def n_features(self) -> int:
        """Without the constant."""
        return self.native.features

    @property
    def n_columns(self) -> int:
        """With it."""
        return self.native.columns

    @property
    def stored(self) -> int:
        """How many numbers are stored: the cost of a pass."""
        return self.native.stored

    def scores(self, w: Floats) -> Floats:
        """X w, for a vector or the columns of a matrix."""
        matrix = np.ascontiguousarray(w, dtype=np.float64).reshape(len(w), -1)
        Z = self.native.scores(matrix, self.n_jobs)
        return Z[:, 0] if np.ndim(w) == 1 else Z

    def combine(self, c: Floats) -> Floats:
        """X'c, for a vector or the columns of a matrix."""
        matrix = np.ascontiguousarray(c, dtype=np.float64).reshape(len(c), -1)
        W = self.native.combine(matrix, self.n_jobs)
        return W[:, 0] if np.ndim(c) == 1 else W

    def gram(self, h: Floats) -> Floats:
        """X' diag(h) X."""
        return self.native.gram(np.ascontiguousarray(h, dtype=np.float64), self.n_jobs)

    def norms(self) -> Floats:
        """|x_i|^2."""
        return self.native.norms(self.n_jobs)

    def take(self, rows: Any) -> Design:
        """Some of the rows."""
        return Design(self.X[rows], self.bias, self.n_jobs)


@dataclass(frozen=True)
class LinearCertificate:
    """What a primal and a dual point prove.

    Attributes
    ----------
    primal, dual : float
        P(w, b) and D(c): the optimum lies between them.
    """

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """How far both are from the optimum at most."""
        return max(self.primal - self.dual, 0.0) if np.isfinite(self.dual) else np.inf

    @property
    def relative_gap(self) -> float:
        """The gap over max(|primal|, |dual|), which ``gap_tol`` asks to be small."""
        scale = max(abs(self.primal), abs(self.dual))
        return self.gap / scale if 0 < self.gap < np.inf else self.gap


@dataclass(frozen=True)
class LinearProblem:
    """A loss, a penalty and the data.

    Parameters
    ----------
    design : Design or BlockDesign
    y : array of shape (n,)
        Signs, numbers, or classes 0 .. k-1 for a loss of many scores.
    price : array of shape (n,)
        Positive.
    loss : Loss
    penalty : Penalty
    free : bool
        Whether the constant feature's weight is not penalised.
    n_scores : int, default=1
        How many scores a row has; with several, w, z and c have a column for each.
    """

    design: Any
    y: Any
    price: Floats
    loss: Loss
    penalty: Penalty
    free: bool
    n_scores: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Of w."""
        d = self.design.n_columns
        return (d,) if self.n_scores == 1 else (d, self.n_scores)

    def sample(self, size: int, seed: int) -> LinearProblem:
        """The problem of some rows, drawn at random, whose prices make up for the others'."""
        n = self.design.n_rows
        rows = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
        design = self.design.take(rows)
        price = self.price[rows] * (self.price.sum() / self.price[rows].sum())
        return replace(self, design=design, y=self.y[rows], price=price)

    def penalised(self, w: Floats) -> Floats:
        """The weights that the penalty counts."""
        return w[:-1] if self.free else w

    # Sums here are NumPy's own: BLAS's threads would change their bits.

    def primal(self, w: Floats, z: Floats) -> float:
        """P at weights with the scores z = X w."""
        losses = float((self.price * self.loss.value(self.y, z)).sum())
        return self.penalty.value(self.penalised(w)) + losses

    def dual(self, c: Floats, v: Floats) -> float:
        """D at coefficients with v = X'c, which must be within the penalty's reach."""
        price = self.price if c.ndim == 1 else self.price[:, None]
        conjugate = float((self.price * self.loss.conjugate(self.y, -c / price)).sum())
        return -self.penalty.conjugate(self.penalised(v)) - conjugate

    def slopes(self, z: Floats) -> Floats:
        """c_i = -price_i loss'(y_i, z_i), the coefficients that scores call for."""
        price = self.price if z.ndim == 1 else self.price[:, None]
        return -price * self.loss.derivative(self.y, z)

    def box(self) -> tuple[Floats, Floats]:
        """The interval in which each coefficient has a finite dual objective."""
        low, high = self.loss.domain(self.y)
        return -self.price * high, -self.price * low

    def balanced(self, c: Floats) -> Floats:
        """The nearest coefficients that sum to zero, if b is free (of each column)."""
        if not self.free:
            return c
        if c.ndim == 2:  # softmax: a mixture with the classes' shares keeps each row in its simplex
            return _balanced_classes(self.y, c, self.price)
        if abs(c.sum()) <= ROUNDING * np.abs(c).sum():
            return c
        low, high = self.box()
        return balance(c, np.ones(len(c)), low, high, 0.0)[1]

    def certificate(self, w: Floats, z: Floats, c: Floats, v: Floats | None = None) -> Any:
        """What weights w with scores z and coefficients c (with v = X'c, if known) prove.

        Coefficients that do not sum to zero are balanced, and scaled into the penalty's reach.
        """
        feasible = self.balanced(c)
        if v is None or feasible is not c:
            v = self.design.combine(feasible)
        t = self.penalty.reach(self.penalised(np.asarray(v)))
        if t < 1:
            feasible, v = t * feasible, t * np.asarray(v)
        return LinearCertificate(self.primal(w, z), self.dual(feasible, np.asarray(v)))


def _balanced_classes(y: Any, c: Floats, price: Floats) -> Floats:
    """Softmax coefficients whose columns sum to zero, near c.

    Row i of c is price_i (e_y - p) with p a distribution.  The columns sum to zero when the mean of
    p, counted by price, is the share of each class; moving all p towards a common distribution q by
    the same fraction t moves their mean towards q, so that t and q can be chosen to meet it.
    """
    shares = np.bincount(y, weights=price, minlength=c.shape[1]) / price.sum()
    p = -c / price[:, None]
    p[np.arange(len(p)), y] += 1
    mean = (price @ p) / price.sum()
    # (1 - t) mean + t q = shares with q >= 0: the smallest t is the largest relative excess.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = float(np.max(np.where(mean > 0, 1 - shares / mean, 0.0), initial=0.0))
    if t <= 0:
        return c
    q = np.maximum(shares - (1 - t) * mean, 0.0) / t
    p = (1 - t) * p + t * q
    out = -price[:, None] * p
    out[np.arange(len(p)), y] += price
    return out
