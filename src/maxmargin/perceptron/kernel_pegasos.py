"""Pegasos in the feature space of a kernel.

    w = s v,   v = sum_i c_i k(x_i, .)

The steps are those of ``pegasos``. Shrinking and projecting w change only s; the rows of a batch
with too small a margin are added to v. Scores come in blocks: see ``expansion``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from maxmargin.perceptron.expansion import (
    BLOCK,
    KERNEL,
    Expansion,
    KernelPassClassifier,
    expanded,
    gram,
)
from maxmargin.perceptron.passes import Learner, Stream
from maxmargin.perceptron.pegasos import PEGASOS
from maxmargin.problem import Floats, Indices
from maxmargin.svm.base import blocks


class KernelPegasosLearner:
    """k functions w = s v; with P the sum of all s so far, the sum of the iterates is P v + q.

    The expansion's C are the coefficients of v and its ``past`` those of q. Between the calls s = 1
    and P = 0, so that v is w and q is the sum of the iterates.
    """

    state: tuple[str, ...] = ("expansion", "b", "past_b", "norm", "s", "P", "t")

    def __init__(
        self,
        kernel: Any,
        k: int,
        *,
        alpha: float,
        batch_size: int,
        intercept: bool,
        average: bool,
        n_jobs: int | None,
    ) -> None:
        self.expansion = Expansion(kernel, k)
        self.b, self.past_b = np.zeros(k), np.zeros(k)
        self.norm = np.zeros(k)  # |v|^2
        self.s, self.P, self.t = np.ones(k), np.zeros(k), np.zeros(k)
        self.alpha, self.batch_size = alpha, batch_size
        self.intercept, self.average, self.n_jobs = intercept, average, n_jobs

    def open(self, stream: Stream) -> None:
        self.expansion.open(stream, self.n_jobs)

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        n_mistakes, loss = np.zeros(len(machines), dtype=np.int64), np.zeros(len(machines))
        e, size = self.expansion, self.batch_size
        per_block = max(BLOCK // size, 1) * size  # whole batches
        for block in blocks(len(order), per_block):
            rows = order[block]
            part = e.items.subset(rows)
            F = (e.scores(part) + self.b)[:, machines]  # of v
            G = gram(part) + self.intercept
            Y, weight = e.stream.signs(rows, machines)
            for batch in blocks(len(rows), size):
                margins = Y[batch] * F[batch] * self.s[machines]
                n_mistakes += (margins <= 0).sum(axis=0)
                loss += (weight[batch] * np.maximum(0.0, 1 - margins)).sum(axis=0)
                y = np.where(margins <= 1, weight[batch] * Y[batch], 0.0)
                self.step(rows[batch], machines, y, F, G, batch)
        return n_mistakes, loss

    def step(
        self, rows: Indices, machines: Indices, y: Floats, F: Floats, G: Floats, batch: slice
    ) -> None:
        """One step; y is that of the rows whose margin is violated, and 0 elsewhere."""
        e = self.expansion
        self.t[machines] += 1
        t, s = self.t[machines], self.s[machines]
        s = np.where(t > 1, s * (1 - 1 / t), s)  # the first step begins at w = 0
        P = self.P[machines]
        if y.any():
            a = y / (self.alpha * t * len(rows) * s)
            e.new_C[np.ix_(rows, machines)] += a
            e.new_past[np.ix_(rows, machines)] -= P * a
            if self.intercept:
                self.b[machines] += a.sum(axis=0)
                self.past_b[machines] -= P * a.sum(axis=0)
            change = G[batch.start :, batch] @ a
            self.norm[machines] += (a * (2 * F[batch] + change[: len(rows)])).sum(axis=0)
            F[batch.start :] += change
        length = s * np.sqrt(np.maximum(self.norm[machines], 0.0))
        radius = np.sqrt(e.stream.weights.max() / self.alpha)
        s = np.where(length > radius, s * radius / np.where(length > 0, length, 1.0), s)
        self.s[machines], self.P[machines] = s, P + s
        small = s < 1e-6  # s v would lose digits, and in the end v overflow
        if small.any():
            F[:, small] *= s[small]
            self.fold(machines[small])

    def fold(self, machines: Indices) -> None:
        """Go to s = 1 and P = 0, where v is w and q the sum of the iterates."""
        e, s, P = self.expansion, self.s[machines], self.P[machines]
        for v, q in ((e.C, e.past), (e.new_C, e.new_past), (self.b, self.past_b)):
            q[..., machines] += P * v[..., machines]
            v[..., machines] *= s
        self.norm[machines] *= s**2
        self.s[machines], self.P[machines] = 1.0, 0.0

    def close(self) -> None:
        self.fold(np.arange(len(self.s)))
        self.expansion.close()

    def attributes(self) -> dict[str, Any]:
        e, steps = self.expansion, np.maximum(self.t, 1)
        mean, mean_b = e.past / steps, self.past_b / steps
        chosen = (mean, mean_b) if self.average else (e.C, self.b)
        return {
            **expanded(e, *chosen),
            "last_dual_coef_": np.ascontiguousarray(e.C.T),
            "last_intercept_": self.b.copy(),
            "average_dual_coef_": np.ascontiguousarray(mean.T),
            "average_intercept_": mean_b,
        }


class KernelPegasos(KernelPassClassifier):
    """Pegasos in the feature space of a kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See `KernelPerceptron`.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernels with a name; "scale" is 1 / (n_features * X.var()) of the first call's rows.
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels.
    alpha : float, default=1e-4
        The weight of the regularisation, the papers' lambda; 1 / (n C) for the C of `SVC`.
    batch_size : int, default=1
        Rows in a step, the papers' k.
    average : bool, default=False
        Predict by the mean of all iterates instead of the last one.
    fit_intercept : bool, default=True
        Whether to learn b; the same as a kernel that is larger by 1.
    max_iter : int, default=1000
        The most passes over the data.
    tol : float or None, default=1e-3
        A fit ends when the mean of max(0, 1 - y f(x)) over a pass was not less by tol than in the
        best pass so far, ``n_iter_no_change`` times in a row. With None only a pass without
        mistakes (y f(x) <= 0) ends it before ``max_iter``; ``partial_fit`` goes on after it.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
        Whether each pass of ``fit`` has an order, and so batches, of its own. ``partial_fit``
        never shuffles.
    random_state : int, RandomState instance or None, default=0
        Draws the orders.
    class_weight : dict, "balanced" or None, default=None
        Scales the rows of a class in the step, in all machines.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last model and its t.
    n_jobs : int or None, default=None
        Threads; the answer does not depend on it.
    verbose : int, default=0
        Whether to print a line for each pass.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        Numbers of the support vectors, counted over the rows of all calls.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
    dual_coef_ : array of shape (1, n_support) or (n_classes, n_support)
        The coefficients that predict: the last ones, or with ``average`` their mean.
    intercept_ : array of shape (1,) or (n_classes,)
    last_dual_coef_, last_intercept_, average_dual_coef_, average_intercept_ : arrays
        Both, whatever ``average`` says.
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
    n_iter_ : int
    t_ : float
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**KERNEL, **PEGASOS}

    average: bool
    last_dual_coef_: Floats
    last_intercept_: Floats
    average_dual_coef_: Floats
    average_intercept_: Floats

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        alpha: float = 1e-4,
        batch_size: int = 1,
        average: bool = False,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.alpha = alpha
        self.batch_size = batch_size
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _begin(self, stream: Stream) -> Learner:
        return KernelPegasosLearner(
            self._kernel,
            len(stream.positive),
            alpha=self.alpha,
            batch_size=self.batch_size,
            intercept=self.fit_intercept,
            average=self.average,
            n_jobs=self.n_jobs,
        )
