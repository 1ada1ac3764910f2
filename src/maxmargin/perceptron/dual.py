"""The perceptron in dual form: how often was each example misclassified?

    w = eta0 sum_i alpha_i y_i x_i
    on a mistake, y_i sum_j alpha_j y_j k(x_j, x_i) <= 0:    alpha_i += 1

The data enter only by their products k(x_i, x_j) = x_i.x_j, the Gram matrix, which is computed
once. The predictor is the primal one's; with another kernel it is that of the feature space.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.kernels import Linear
from maxmargin.perceptron.bounds import MistakeBound
from maxmargin.perceptron.expansion import (
    KERNEL,
    Expansion,
    KernelPassClassifier,
    expanded,
    gram,
    mistakes,
)
from maxmargin.perceptron.passes import PASSES, STEP, Learner, Stream
from maxmargin.problem import Floats, Indices


class DualLearner:
    """k dual perceptrons: alpha, the Gram matrix G, and the scores F = G'(alpha y) of all rows."""

    state: tuple[str, ...] = ("expansion", "alpha", "b")

    def __init__(self, kernel: Any, k: int, *, intercept: bool, n_jobs: int | None) -> None:
        self.expansion = Expansion(kernel, k)
        self.alpha = np.zeros((0, k), dtype=np.int64)
        self.b = np.zeros(k)
        self.intercept, self.n_jobs = intercept, n_jobs

    def open(self, stream: Stream) -> None:
        e = self.expansion
        e.open(stream, self.n_jobs)
        self.G = gram(e.items) + self.intercept
        self.F = self.b + e.scores(e.items)
        self.new_alpha = np.zeros(e.new_C.shape, dtype=np.int64)

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        n_mistakes, loss = np.zeros(len(machines), dtype=np.int64), np.zeros(len(machines))
        e = self.expansion
        Y, weight = e.stream.signs(np.arange(len(e.stream)), machines)
        F = self.F[:, machines]
        for place, wrong in mistakes(F, Y, order):
            i = order[place]
            loss[wrong] -= (weight[i] * Y[i] * F[i])[wrong]
            n_mistakes += wrong
            step = np.where(wrong, e.stream.eta0 * weight[i] * Y[i], 0.0)
            self.new_alpha[i, machines] += wrong
            e.new_C[i, machines] += step
            self.b[machines] += self.intercept * step
            F += np.outer(self.G[:, i], step)
        self.F[:, machines] = F
        return n_mistakes, loss

    def close(self) -> None:
        self.alpha = np.concatenate([self.alpha, self.new_alpha])
        self.expansion.close()
        del self.G, self.F, self.new_alpha

    def attributes(self) -> dict[str, Any]:
        alpha = self.alpha[:, 0] if self.alpha.shape[1] == 1 else self.alpha.T
        return {**expanded(self.expansion, self.expansion.C, self.b), "alpha_": alpha.copy()}


class DualPerceptron(MistakeBound, KernelPassClassifier):
    """The perceptron in dual form, on a Gram matrix that is computed once for each call.

    For more than some ten thousand rows use `KernelPerceptron`, which never holds the matrix.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="linear"
        The product of the Gram matrix; see `KernelPerceptron`.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernels with a name; "scale" is 1 / (n_features * X.var()) of the first call's rows.
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels.
    eta0 : float, default=1.0
        The step: what alpha = 1 contributes.
    fit_intercept : bool, default=True
        Whether to learn b, the weight of a feature that is always 1.
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
    alpha_ : int array of shape (n_seen,) or (n_classes, n_seen)
        How often each example was misclassified. The rows of later calls follow those of earlier
        ones.
    support_ : array of shape (n_support,)
        Numbers of the examples with alpha > 0.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
    dual_coef_ : array of shape (1, n_support) or (n_classes, n_support)
        eta0 alpha y of the support vectors.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        w, for the linear kernel.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
        The sum of alpha.
    n_iter_ : int
    t_ : float
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import DualPerceptron
    >>> X, y = [[2.0, 1.0], [1.0, 2.0], [-1.0, 1.0], [-2.0, -1.0]], [1, 1, 0, 0]
    >>> DualPerceptron(shuffle=False).fit(X, y).alpha_
    array([1, 0, 1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**KERNEL, **STEP, **PASSES}

    alpha_: Indices

    def __init__(
        self,
        *,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
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
        return DualLearner(
            self._kernel,
            len(stream.positive),
            intercept=self.fit_intercept,
            n_jobs=self.n_jobs,
        )

    @property
    def coef_(self) -> Floats:
        """The weights of the features: the sum of ``dual_coef_`` times support vectors."""
        check_is_fitted(self)
        if not isinstance(self._kernel.kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return np.asarray(self.dual_coef_ @ self.support_vectors_)
