"""Passive-aggressive learning: the smallest change that gives the row a margin.

    w <- argmin |w' - w|^2 / 2 + C xi       subject to  1 - y f'(x) <= xi,  xi >= 0     (PA-I)
    w <- argmin |w' - w|^2 / 2 + C xi^2     subject to  1 - y f'(x) <= xi               (PA-II)

Both have closed forms (Crammer et al. 2006, figure 1). With loss = max(0, 1 - y f(x)),

    w += tau y x,   tau = min(C, loss / |x|^2)   or   tau = loss / (|x|^2 + 1 / (2 C))

Passive where there is a margin, as aggressive as C allows where there is none. With an intercept x
has a feature that is always 1, so that |x|^2 is larger by 1.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from maxmargin._compat import Interval, StrOptions
from maxmargin.perceptron.linear import LinearLearner, LinearPassClassifier
from maxmargin.perceptron.passes import PASSES, Learner, Stream


class PassiveAggressive(LinearPassClassifier):
    """Passive-aggressive classifiers: PA-I and PA-II.

    Parameters
    ----------
    C : float, default=1.0
        The aggressiveness; infinite: every row gets its margin, whatever it takes.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        PA-I or PA-II.
    fit_intercept : bool, default=True
        Whether to learn b, the weight of a feature that is always 1.
    max_iter : int, default=1000
        The most passes over the data.
    tol : float or None, default=1e-3
        A fit ends when the mean of max(0, 1 - y f(x)) over a pass was not less by tol than in the
        best pass so far, ``n_iter_no_change`` times in a row. With None only a pass without
        mistakes (y f(x) <= 0) ends it before ``max_iter``.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
        Whether each pass of ``fit`` has an order of its own. ``partial_fit`` never shuffles.
    random_state : int, RandomState instance or None, default=0
        Draws the orders.
    class_weight : dict, "balanced" or None, default=None
        Scales tau on the rows of a class, in all machines.
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
        How often y f(x) was not positive; smaller margins move w too, but are no mistakes.
    n_iter_ : int
    t_ : float
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PASSES,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "hinge",
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
        self.C = C
        self.loss = loss
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
            rule=self.loss,
            C=self.C,
            n_jobs=self.n_jobs,
        )
