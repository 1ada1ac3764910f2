"""The perceptron and its average.

    on a mistake, y (w.x + b) <= 0:    w += eta0 y x,   b += eta0 y

(Rosenblatt 1958.) If the data are separable, the mistakes end: see ``bounds``. The average of all
the w there were, one for each row seen, is less at the mercy of the last rows (Freund and Schapire
1999, section 5). It costs a second vector, touched only at mistakes: with t the number of the row,

    u += t (change of w),   average = w - u / (number of rows)

b is the weight of a feature that is always 1. The loop over the rows is native.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin.kernels import Linear
from maxmargin.perceptron.bounds import MistakeBound
from maxmargin.perceptron.online import linear_scores
from maxmargin.perceptron.passes import PASSES, STEP, Learner, PassClassifier, Stream
from maxmargin.problem import Floats, Indices
from maxmargin.threads import effective_threads


class LinearLearner:
    """k machines w.x + b under one of the rules of cpp/perceptron.hpp.

    Parameters
    ----------
    k, d : int
        Machines and features.
    intercept, average : bool
        Whether b may differ from 0, and whether the average is kept.
    rule : {"perceptron", "hinge", "squared_hinge"}
        The perceptron, PA-I or PA-II.
    C : float
        The aggressiveness of the latter.
    """

    state: tuple[str, ...] = ("w", "b", "past_w", "past_b", "t")

    def __init__(
        self,
        k: int,
        d: int,
        *,
        intercept: bool,
        average: bool = False,
        rule: str = "perceptron",
        C: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.w, self.b, self.t = np.zeros((k, d)), np.zeros(k), np.zeros(k)
        self.past_w = np.zeros((k, d)) if average else None
        self.past_b = np.zeros(k) if average else None
        self.intercept, self.rule, self.C, self.n_jobs = intercept, rule, C, n_jobs
        self._stream: Any = None

    def open(self, stream: Stream) -> None:
        self._stream = stream

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        return _core.perceptron_pass(
            **self.arguments(order, machines), rule=self.rule, C=self.C, eta0=self._stream.eta0
        )

    def arguments(self, order: Indices, machines: Indices) -> dict[str, Any]:
        """The arguments that all native passes have."""
        stream = self._stream
        return {
            "items": stream.items,
            "order": order,
            "labels": stream.labels,
            "machines": machines,
            "positive": stream.positive,
            "weight": stream.weights,
            "w": self.w,
            "b": self.b,
            "past_w": self.past_w,
            "past_b": self.past_b,
            "t": self.t,
            "intercept": self.intercept,
            "n_threads": effective_threads(self.n_jobs),
        }

    def close(self) -> None:
        self._stream = None

    def attributes(self) -> dict[str, Any]:
        last = {"coef_": self.w.copy(), "intercept_": self.b.copy()}
        if self.past_w is None or self.past_b is None:
            return last
        seen = np.maximum(self.t, 1)
        coef, intercept = self.w - self.past_w / seen[:, None], self.b - self.past_b / seen
        return {
            "coef_": coef,
            "intercept_": intercept,
            "last_coef_": last["coef_"],
            "last_intercept_": last["intercept_"],
        }


class LinearPassClassifier(PassClassifier):
    """Online classifiers that predict by coef_ and intercept_."""

    coef_: Floats
    intercept_: Floats

    def _decisions(self, X: Any) -> Floats:
        return linear_scores(self, X, self.coef_, self.intercept_)


class Perceptron(MistakeBound, LinearPassClassifier):
    """The perceptron: every mistake adds or subtracts its example.

    Parameters
    ----------
    eta0 : float, default=1.0
        The step: what of the example is added. From w = 0 it scales w and changes no prediction.
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
        Threads: several classes are learned at once. The answer does not depend on it.
    verbose : int, default=0
        Whether to print a line for each pass.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
        The mistakes of all passes, one count for each machine.
    n_iter_ : int
        The passes of the last call.
    t_ : float
        One more than the rows visited so far.
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> X, y = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, 0]
    >>> p = Perceptron(shuffle=False).fit(X, y)
    >>> p.n_mistakes_, p.coef_
    (1, array([[1., 2.]]))
    >>> p.n_mistakes_ <= p.mistake_bound(X, y)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**PASSES, **STEP}
    _keeps_average = False

    def __init__(
        self,
        *,
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
        return LinearLearner(
            len(stream.positive),
            stream.X.shape[1],
            intercept=self.fit_intercept,
            average=self._keeps_average,
            n_jobs=self.n_jobs,
        )

    def _bound_items(self, X: Any) -> tuple[Any, Any]:
        return Linear().fit(X), self._validated(X, reset=False)


class AveragedPerceptron(Perceptron):
    """The perceptron that predicts with the mean of all its weight vectors.

    The vector after each row visited counts once, so that one that made no mistake for long counts
    much. Freund and Schapire (1999) proved of the voted form that few mistakes online mean a small
    error on new data (``VotedPerceptron.error_bound``), and found that the average does as well;
    it is the practical conversion of the one into the other.

    Parameters
    ----------
    eta0 : float, default=1.0
        The step: what of the example is added. From w = 0 it scales w and changes no prediction.
    fit_intercept : bool, default=True
        Whether to learn b, the weight of a feature that is always 1.
    max_iter : int, default=1000
        The most passes over the data.
    tol : float or None, default=1e-3
        A fit ends when the mean of max(0, -y f(x)) over a pass was not less by tol than in the
        best pass so far, ``n_iter_no_change`` times in a row; f is the last predictor, not the
        average. With None only a pass without mistakes ends it before ``max_iter``.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
        Whether each pass of ``fit`` has an order of its own. ``partial_fit`` never shuffles.
    random_state : int, RandomState instance or None, default=0
        Draws the orders.
    class_weight : dict, "balanced" or None, default=None
        Scales the step on the rows of a class, in all machines.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last model, average included.
    n_jobs : int or None, default=None
        Threads: several classes are learned at once. The answer does not depend on it.
    verbose : int, default=0
        Whether to print a line for each pass.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The average.
    intercept_ : array of shape (1,) or (n_classes,)
    last_coef_, last_intercept_ : arrays
        The last weights, which are those of `Perceptron`.
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
        The mistakes of the last predictor, in all passes.
    n_iter_ : int
    t_ : float
    n_features_in_ : int
    """

    _keeps_average = True

    def __sklearn_tags__(self) -> Any:
        # With class weights 10^7 apart, a check of scikit-learn's asks for the heavy class almost
        # everywhere. The last predictor obeys; the average remembers the ones before it too well.
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    last_coef_: Floats
    last_intercept_: Floats
