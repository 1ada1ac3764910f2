"""The kernel perceptron: the dual perceptron with any kernel, and no more Gram matrix than needed.

    on a mistake, y f(x) <= 0:    f += eta0 y k(x, .)

(Aizerman, Braverman and Rozonoer 1964; Freund and Schapire 1999, section 3.) The support vectors
are the examples that were mistakes. Rows are taken in blocks: see ``expansion``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from maxmargin.perceptron.bounds import MistakeBound
from maxmargin.perceptron.expansion import (
    BLOCK,
    KERNEL,
    Expansion,
    KernelPassClassifier,
    expanded,
    gram,
    mistakes,
)
from maxmargin.perceptron.passes import PASSES, STEP, Learner, Stream
from maxmargin.problem import Floats, Indices
from maxmargin.svm.base import blocks


class KernelLearner:
    """k kernel perceptrons over common rows, and their averages.

    Parameters
    ----------
    kernel : fitted kernel
    k : int
    intercept : bool
        Whether 1 is added to the kernel; the sum of the coefficients is then the intercept.
    average : bool
        Whether the average predicts, or the last function.
    block : int
        Rows that are scored together.
    """

    state: tuple[str, ...] = ("expansion", "b", "past_b", "t")

    def __init__(
        self,
        kernel: Any,
        k: int,
        *,
        intercept: bool,
        average: bool,
        n_jobs: int | None,
        block: int = BLOCK,
    ) -> None:
        self.expansion = Expansion(kernel, k)
        self.b, self.past_b, self.t = np.zeros(k), np.zeros(k), np.zeros(k)
        self.intercept, self.average, self.n_jobs, self.block = intercept, average, n_jobs, block

    def open(self, stream: Stream) -> None:
        self.expansion.open(stream, self.n_jobs)

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        n_mistakes, loss = np.zeros(len(machines), dtype=np.int64), np.zeros(len(machines))
        e = self.expansion
        for block in blocks(len(order), self.block):
            rows = order[block]
            part = e.items.subset(rows)
            F = (e.scores(part) + self.b)[:, machines]
            Y, weight = e.stream.signs(rows, machines)
            G = None
            for r, wrong in mistakes(F, Y, np.arange(len(rows))):
                if G is None:
                    G = gram(part) + self.intercept
                loss[wrong] -= (weight[r] * Y[r] * F[r])[wrong]
                n_mistakes += wrong
                step = np.where(wrong, e.stream.eta0 * weight[r] * Y[r], 0.0)
                self.add(rows[r], machines, step, self.t[machines] + r)
                F[r + 1 :] += np.outer(G[r + 1 :, r], step)
            self.t[machines] += len(rows)
        return n_mistakes, loss

    def add(self, row: int, machines: Indices, step: Floats, t: Floats) -> None:
        """Every machine adds its step times k(row, .), as its t-th row."""
        e = self.expansion
        e.new_C[row, machines] += step
        e.new_past[row, machines] += t * step
        if self.intercept:
            self.b[machines] += step
            self.past_b[machines] += t * step

    def close(self) -> None:
        self.expansion.close()

    def attributes(self) -> dict[str, Any]:
        e, seen = self.expansion, np.maximum(self.t, 1)
        mean, mean_b = e.C - e.past / seen, self.b - self.past_b / seen
        chosen = (mean, mean_b) if self.average else (e.C, self.b)
        return {
            **expanded(e, *chosen),
            "last_dual_coef_": np.ascontiguousarray(e.C.T),
            "last_intercept_": self.b.copy(),
            "average_dual_coef_": np.ascontiguousarray(mean.T),
            "average_intercept_": mean_b,
        }


class KernelPerceptron(MistakeBound, KernelPassClassifier):
    """The perceptron in the feature space of a kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", an object of
        ``maxmargin.kernels``, or a function of two data sets, which is called on blocks of rows.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernels with a name; "scale" is 1 / (n_features * X.var()) of the first call's rows.
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels.
    average : bool, default=False
        Predict by the mean of all functions there were, one for each row visited, instead of the
        last one.
    eta0 : float, default=1.0
        The step: the coefficient of a mistake.
    fit_intercept : bool, default=True
        Whether to learn b; the same as a kernel that is larger by 1.
    max_iter : int, default=1000
        The most passes over the data.
    tol : float or None, default=1e-3
        A fit ends when the mean of max(0, -y f(x)) over a pass was not less by tol than in the
        best pass so far, ``n_iter_no_change`` times in a row. With None only a pass without
        mistakes ends it before ``max_iter``.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
        Whether each pass of ``fit`` has an order of its own. ``partial_fit`` never shuffles.
    random_state : int, RandomState instance or None, default=0
        Draws the orders.
    class_weight : dict, "balanced" or None, default=None
        Scales the step on the rows of a class, in all machines.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last model.
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
    last_dual_coef_, last_intercept_ : arrays
    average_dual_coef_, average_intercept_ : arrays
        Both, whatever ``average`` says.
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
        The mistakes of all passes, one count for each machine.
    n_iter_ : int
        The passes of the last call.
    t_ : float
        One more than the rows visited so far.
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KERNEL,
        "average": ["boolean"],
        **STEP,
        **PASSES,
    }

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
        average: bool = False,
        eta0: float = 1.0,
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
        self.average = average
        self.eta0 = eta0
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
        return KernelLearner(
            self._kernel,
            len(stream.positive),
            intercept=self.fit_intercept,
            average=self.average,
            n_jobs=self.n_jobs,
        )
