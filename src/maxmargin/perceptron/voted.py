"""The voted perceptron: every predictor there was votes, once for each row that it survived.

    f(x) = sum_m c_m sign(f_m(x)) / sum_m c_m

f_m is the perceptron after its m-th mistake and c_m the number of rows until the next one (Freund
and Schapire 1999, figure 1). f_m is f_{m-1} plus one kernel, so that the mistakes in their order
are all that needs to be kept, and the scores of all f_m are running sums.

For new data: of n + 1 rows drawn independently from one distribution let n be learned in one pass.
The probability that the vote errs on the last one is at most the mean, over such samples, of
2 / (n + 1) times the mistake bound of all n + 1 rows (their theorem 3).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from maxmargin._compat import num_samples
from maxmargin.perceptron.expansion import KERNEL
from maxmargin.perceptron.kernel import KernelLearner, KernelPerceptron
from maxmargin.perceptron.passes import PASSES, STEP, Learner, Stream
from maxmargin.problem import Floats, Indices


class VotedLearner(KernelLearner):
    """Kernel perceptrons that remember their mistakes in order.

    Attributes
    ----------
    history : list of lists of (row, step, t)
        Of each machine: which row (counted over all calls) it added, with which coefficient, as
        its t-th row.
    """

    state: tuple[str, ...] = (*KernelLearner.state, "history")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.history: list[list[tuple[int, float, float]]] = [[] for _ in self.b]

    def add(self, row: int, machines: Indices, step: Floats, t: Floats) -> None:
        super().add(row, machines, step, t)
        for j in np.flatnonzero(step):
            entry = int(self.expansion.seen + row), float(step[j]), float(t[j])
            self.history[machines[j]].append(entry)

    def attributes(self) -> dict[str, Any]:
        members, steps, votes = [], [], []
        for entries, seen in zip(self.history, self.t, strict=True):
            table = np.array(entries, dtype=np.float64).reshape(-1, 3)
            members.append(np.searchsorted(self.expansion.support, table[:, 0].astype(np.int64)))
            steps.append(table[:, 1])
            votes.append(np.diff(table[:, 2], append=seen).astype(np.int64))
        return {
            **super().attributes(),
            "sequence_": members,
            "steps_": steps,
            "votes_": votes,
            "_constant": float(self.intercept),
        }


class VotedPerceptron(KernelPerceptron):
    """The vote of all the predictors that a perceptron went through.

    The fit costs what `KernelPerceptron` costs; the prediction a running sum over all mistakes.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="linear"
        See `KernelPerceptron`.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernels with a name; "scale" is 1 / (n_features * X.var()) of the first call's rows.
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels.
    eta0 : float, default=1.0
        The step: the coefficient of a mistake.
    fit_intercept : bool, default=True
        Whether to learn b; the same as a kernel that is larger by 1.
    max_iter : int, default=1000
        The most passes over the data. The paper's best errors took ten or so.
    tol : float or None, default=1e-3
        A fit ends when the mean of max(0, -y f(x)) over a pass was not less by tol than in the
        best pass so far, ``n_iter_no_change`` times in a row; f is the last predictor. With None
        only a pass without mistakes ends it before ``max_iter``.
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
    votes_ : list of int arrays
        For each machine c_m, the rows for which its m-th predictor held.
    sequence_ : list of int arrays
        For each machine its mistakes in order, as places in ``support_``.
    steps_ : list of arrays
        For each machine the coefficients of these mistakes.
    support_, support_vectors_ : arrays
        The support vectors; see `KernelPerceptron`.
    dual_coef_, intercept_ : arrays
        The last predictor.
    last_dual_coef_, last_intercept_, average_dual_coef_, average_intercept_ : arrays
        See `KernelPerceptron`.
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
    n_iter_ : int
    t_ : float
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**KERNEL, **STEP, **PASSES}

    average = False  # the last predictor is shown beside the vote
    votes_: list[Indices]
    sequence_: list[Indices]
    steps_: list[Floats]
    _constant: float

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
        return VotedLearner(
            self._kernel,
            len(stream.positive),
            intercept=self.fit_intercept,
            average=False,
            n_jobs=self.n_jobs,
        )

    def _decisions(self, X: Any) -> Floats:
        """The votes for each machine's class, less those against it, as a share of all."""
        return self._evaluated(X, len(self.votes_), self._vote)

    def _vote(self, part: Any, support: Any) -> Floats:
        K = part.tile(None, support, in_float64=True) + self._constant
        out = np.zeros((len(K), len(self.votes_)))
        for j, votes in enumerate(self.votes_):
            scores = np.cumsum(K[:, self.sequence_[j]] * self.steps_[j], axis=1)
            out[:, j] = np.where(scores >= 0, 1.0, -1.0) @ votes / max(votes.sum(), 1)
        return out

    def error_bound(self, X: Any, y: Any) -> Any:
        """What bounds the probability of an error on new data: 2 / n times the mistake bound.

        Let the n rows be drawn independently. The vote of a perceptron that has learned n - 1 such
        rows, in one pass, errs on one more with a probability that is at most the mean of this
        number over all such samples; here is its value for one of them (Freund and Schapire 1999,
        theorem 3). It can exceed 1, and then says nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        float or array of shape (n_classes,)
            Of several classes one for each machine, class against rest.
        """
        bound = self.mistake_bound(X, y)
        if self.n_iter_ > 1:
            raise ValueError(
                f"error_bound: the theorem is about one pass over the data, and this model made "
                f"{self.n_iter_}; fit with max_iter=1"
            )
        return 2 * bound / num_samples(X)
