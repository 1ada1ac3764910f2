"""Pegasos: subgradient steps on the support vector machine itself.

    minimise   alpha / 2 |w|^2 + mean of max(0, 1 - y w.x)

In step t = 1, 2, ... take a batch A of k rows, and those of them with y w.x <= 1:

    w <- w - (alpha w - sum of y x over these / k) / (alpha t)
    w <- w min(1, 1 / (sqrt(alpha) |w|))

(Shalev-Shwartz, Singer, Srebro and Cotter 2011, figure 2; lambda is called alpha here.) The first
step forgets w, the last projects on the ball in which the optimum lies. Rows are taken in batches,
pass after pass; the last batch of a pass may be smaller. Class weights multiply the losses, and
the ball is larger by the root of the largest. An intercept is the weight of a feature
that is always 1, and so it is regularised. The mean of all iterates is kept beside the last one.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._compat import Interval
from maxmargin.perceptron.linear import LinearLearner, LinearPassClassifier
from maxmargin.perceptron.passes import PASSES, Learner, Stream
from maxmargin.problem import Floats, Indices

PEGASOS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="neither")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "average": ["boolean"],
    **PASSES,
}


class PegasosLearner(LinearLearner):
    """k machines w.x + b; ``past`` is the sum of all iterates. The loop is native."""

    def __init__(
        self,
        k: int,
        d: int,
        *,
        alpha: float,
        batch_size: int,
        intercept: bool,
        average: bool,
        n_jobs: int | None,
    ) -> None:
        super().__init__(k, d, intercept=intercept, average=True, n_jobs=n_jobs)
        self.alpha, self.batch_size, self.average = alpha, batch_size, average

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        return _core.pegasos_pass(
            **self.arguments(order, machines), alpha=self.alpha, batch_size=self.batch_size
        )

    def attributes(self) -> dict[str, Any]:
        assert self.past_w is not None and self.past_b is not None
        steps = np.maximum(self.t, 1)
        last = self.w.copy(), self.b.copy()
        mean = self.past_w / steps[:, None], self.past_b / steps
        coef, intercept = mean if self.average else last
        return {
            "coef_": coef.copy(),
            "intercept_": intercept.copy(),
            "last_coef_": last[0],
            "last_intercept_": last[1],
            "average_coef_": mean[0],
            "average_intercept_": mean[1],
        }


class Pegasos(LinearPassClassifier):
    """The linear support vector machine by stochastic subgradient steps.

    Parameters
    ----------
    alpha : float, default=1e-4
        The weight of the regularisation, the papers' lambda; 1 / (n C) for the C of `SVC`.
    batch_size : int, default=1
        Rows in a step, the papers' k.
    average : bool, default=False
        Predict by the mean of all iterates instead of the last one.
    fit_intercept : bool, default=True
        Whether to learn b, the (regularised) weight of a feature that is always 1.
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
        Threads: several classes are learned at once. The answer does not depend on it.
    verbose : int, default=0
        Whether to print a line for each pass.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights that predict: the last ones, or with ``average`` their mean.
    intercept_ : array of shape (1,) or (n_classes,)
    last_coef_, last_intercept_ : arrays
    average_coef_, average_intercept_ : arrays
        Both, whatever ``average`` says.
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
        How often y f(x) was not positive.
    n_iter_ : int
    t_ : float
        One more than the rows visited so far.
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PEGASOS

    average_coef_: Floats
    average_intercept_: Floats
    last_coef_: Floats
    last_intercept_: Floats

    def __init__(
        self,
        *,
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
        return PegasosLearner(
            len(stream.positive),
            stream.X.shape[1],
            alpha=self.alpha,
            batch_size=self.batch_size,
            intercept=self.fit_intercept,
            average=self.average,
            n_jobs=self.n_jobs,
        )

    def __sklearn_tags__(self) -> Any:
        # A step of a row with weight s is s |x| / (alpha t) long. For the weight 1000 and the long
        # rows of a check of scikit-learn's, some 10^6 steps are too few.
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
