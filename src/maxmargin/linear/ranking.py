"""Learning to rank with linear scores and any number of pairs, which are never formed.

    minimise  1/2 |w|^2 + C sum_(a,b) s_a s_b loss(1 - f_a + f_b),     f = X w

over all pairs of a query in which a has the higher grade.  With the sums over pairs that order
statistics give in O(n log n) (see ``cpp/pairs.hpp``), value, slopes and curvature of the risk cost
no more than sorting the scores (Joachims 2006 for the hinge; Airola, Pahikkala and Salakoski 2011;
Lee and Lin 2014 for the squared hinge and Newton's method).

The dual point of the certificate has a number alpha_ab for each pair: its slope, or a mixture of
the slopes at several w.  What the bound needs of them are two sums,

    c = sum of alpha_ab (e_a - e_b)        beta = sum of alpha_ab - C s_a s_b loss*(...)

so that the optimum is at least beta - |X'c|^2 / 2; at the slopes of a single w, Fenchel's equality
gives beta = risk + c.f without another look at the pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin import _core
from maxmargin._compat import Interval, StrOptions, fit_context, num_samples
from maxmargin.inverse import one_blas_thread
from maxmargin.linear.base import DETERMINISTIC_PARAMETERS, Attributes, LinearMachine
from maxmargin.linear.cutting_plane import descend
from maxmargin.linear.newton import root
from maxmargin.linear.problem import Design, LinearCertificate
from maxmargin.linear.solver import LinearSolution, Progress, Solver
from maxmargin.problem import Floats, Indices
from maxmargin.svm import inputs
from maxmargin.svm.ranking import numbered, numbers


@dataclass(frozen=True)
class Mixture:
    """A dual point: the coefficient of each item, and the bound's constant."""

    c: Floats
    beta: float


def paired(grades: Floats, query: Indices) -> Any:
    """The items by query, and the grades in each numbered from 0 on, for sums over pairs."""
    order = np.lexsort((grades, query))
    first = np.flatnonzero(np.diff(query[order], prepend=-1))
    starts = np.append(first, len(order))
    rises = np.diff(grades[order], prepend=-np.inf) > 0
    rises[first] = True
    level = np.cumsum(rises)
    grade = np.empty(len(order), dtype=np.int64)
    grade[order] = level - np.repeat(level[first], np.diff(starts))
    return _core.Queries(order.astype(np.int64), starts.astype(np.int64), grade)


@dataclass(frozen=True)
class RankingProblem:
    """Items, their grades and queries, and the loss of a pair; what solvers of it share.

    Parameters
    ----------
    design : Design
    grades : array of shape (n,)
    query : array of shape (n,)
        Numbers from 0 on.
    weights : array of shape (n,)
    C : float
    squared : bool
        Whether the hinge is squared.
    """

    design: Design
    grades: Floats
    query: Indices
    weights: Floats
    C: float
    squared: bool
    pairs: Any = field(init=False, repr=False)
    recent: Any = field(default_factory=lambda: deque(maxlen=4), init=False, repr=False)

    free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", paired(self.grades, self.query))

    def count(self) -> int:
        """How many pairs there are."""
        zero = np.zeros(len(self.grades))
        return round(float(self.pairs.sums(zero, np.ones((len(zero), 1)))[0].sum()))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.design.n_columns,)

    def penalised(self, w: Floats) -> Floats:
        return w

    def sums(self, z: Floats, *values: Floats) -> tuple[Floats, Floats]:
        """Weighted sums of values over the partners that count, lower and higher ones; the first
        column are the weights themselves.
        """
        columns = [self.weights, *(self.weights * v for v in values)]
        return self.pairs.sums(z, np.stack(columns, axis=1), self.design.n_jobs)

    def evaluate(self, z: Floats) -> tuple[float, Floats]:
        """The risk at scores z, and the slopes c; solvers ask for both, one after the other."""
        for known, answer in self.recent:
            if known is z:
                return answer
        answer = self._evaluate(z)
        self.recent.append((z, answer))
        return answer

    def _evaluate(self, z: Floats) -> tuple[float, Floats]:
        s, price = self.weights, self.C * self.weights
        if not self.squared:
            below, above = self.sums(z, z)
            risk = price @ ((1 - z) * below[:, 0] + below[:, 1])
            return float(risk), price * (below[:, 0] - above[:, 0])
        below, above = self.sums(z, z, z**2)
        reach = 1 - z
        risk = price @ (reach**2 * below[:, 0] + 2 * reach * below[:, 1] + below[:, 2])
        c = reach * below[:, 0] + below[:, 1] - ((1 + z) * above[:, 0] - above[:, 1])
        return float(risk), 2 * self.C * s * c

    def primal(self, w: Floats, z: Floats) -> float:
        return float(w @ w) / 2 + self.evaluate(z)[0]

    def certificate(self, w: Floats, z: Floats, c: Any, v: Floats | None = None) -> Any:
        """What weights and a dual point prove."""
        if v is None:
            v = self.design.combine(c.c)
        return LinearCertificate(self.primal(w, z), c.beta - float(v @ v) / 2)

    def slopes(self, z: Floats) -> Mixture:
        """The dual point that scores call for."""
        risk, c = self.evaluate(z)
        return Mixture(c, risk + float(c @ z))

    # As a risk for cutting planes.

    def look(self, z: Floats) -> tuple[float, Floats]:
        return 0.0, self.evaluate(z)[1]

    def offset(self, z: Floats, c: Floats) -> float:
        return self.evaluate(z)[0] + float(c @ z)

    def slope(self, z: Floats, q: Floats, t: float) -> float:
        return -float(self.evaluate(z + t * q)[1] @ q)

    def curve(self, z: Floats, u: Floats) -> Floats:
        """The risk's second derivative times a change u of the scores."""
        below, above = self.sums(z, u)
        both = u * (below[:, 0] + above[:, 0]) - below[:, 1] - above[:, 1]
        return 2 * self.C * self.weights * both

    def dual_point(self, c: Floats, beta: float) -> Mixture:
        return Mixture(c, beta)


# ------------------------------------------------------------------ solvers


class PairPlanes(Solver):
    """Cutting planes for the hinge of pairs."""

    name = "cutting-plane"

    def refusal(self, problem: Any) -> str | None:
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        descend(progress, progress.problem, start)  # type: ignore[arg-type]


class PairNewton(Solver):
    """Newton's method with conjugate gradients for the squared hinge of pairs."""

    name = "newton"
    fast_at_the_end = True

    def refusal(self, problem: Any) -> str | None:
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        with one_blas_thread():
            self._descend(progress, start)

    def _descend(self, progress: Progress, start: Floats | None) -> None:
        problem: Any = progress.problem
        design = problem.design
        w = np.zeros(problem.shape) if start is None else np.array(start)
        z, iterations = design.scores(w), 0
        while True:
            dual = problem.slopes(z)
            v = design.combine(dual.c)
            if progress.ends(w, z, dual, iterations, v):
                return
            d = self._direction(problem, z, v - w)
            q = design.scores(d)
            t = self._length(problem, w, z, d, q)
            if not t > 0 or np.array_equal(w + t * d, w):
                progress.stuck()
                return
            w, z = w + t * d, z + t * q
            iterations += 1

    def _length(self, problem: Any, w: Floats, z: Floats, d: Floats, q: Floats) -> float:
        """How far to go along d, which changes the scores by q."""
        linear, square = float(w @ d), float(d @ d)

        def slope(t: float) -> tuple[float, float]:
            second = float(q @ problem.curve(z + t * q, q))
            return problem.slope(z, q, t) + linear + t * square, second + square

        return root(slope, 1.0)

    def _direction(self, problem: Any, z: Floats, r: Floats) -> Floats:
        """(I + X'HX) d = r up to a hundredth of r."""
        design = problem.design
        d, r = np.zeros_like(r), r.copy()
        p, square = r.copy(), float(r @ r)
        target = 1e-4 * square
        for _ in range(250):
            if square <= target:
                break
            Hp = p + design.combine(problem.curve(z, design.scores(p)))
            step = square / float(p @ Hp)
            d += step * p
            r -= step * Hp
            square, before = float(r @ r), square
            p = r + square / before * p
        return d


# ------------------------------------------------------------------ the estimator


class LinearRankSVM(LinearMachine):
    """Linear support vector ranking for any number of items: ``RankSVM`` with a linear kernel.

    For all pairs (a, b) of a query in which a has the higher grade, and weights s_i of the items,
    it solves

        minimise  1/2 |w|^2 + C sum_(a,b) s_a s_b loss(1 - w.x_a + w.x_b)

    without forming the pairs: an evaluation costs O(n log n).

    Parameters
    ----------
    C : float, default=1.0
        The price of a pair in the wrong order, or in the right order by less than the margin.
    loss : {'hinge', 'squared_hinge'}, default='hinge'
        What such a pair costs.  The hinge, which is ``RankSVM``'s, is minimised by cutting planes,
        its square by Newton's method.
    tol : float, default=1e-4
        The relative duality gap at which a fit ends.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=1000
        The most iterations.
    gap_tol : float or None, default=None
        The same as ``tol``, under the name that it has everywhere; it wins when both are given.
    n_jobs : int or None, default=None
        Threads; None is what scikit-learn's threaded estimators would use.
    time_limit : float or None, default=None
        Seconds after which the fit ends with the model as it stands.
    warm_start : bool, default=False
        Whether ``fit`` begins at the last solution.
    dtype : {'float32', 'float64'}, type or None, default=None
        The type that the rows are converted to; None keeps these two and converts others to
        float64.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
        The weights.
    intercept_ : array of shape (1,)
        Zero: an intercept does not order.
    n_pairs_ : int
        How many pairs there are.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].
    dual_gap_ : float
        How far from the optimum the solution is at most.
    status_ : str
        How the fit ended, in a sentence.
    fit_status_ : int
        0 if the fit ended by itself, 1 if it was stopped.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Their names, where the training data had any.

    See Also
    --------
    RankSVM : The same machine with kernels, and for explicit pairs.

    References
    ----------
    .. [1] C.-P. Lee and C.-J. Lin, "Large-scale linear RankSVM", Neural Computation 26, 2014.
    .. [2] A. Airola, T. Pahikkala and T. Salakoski, "Training linear ranking SVMs in linearithmic
       time using red-black trees", Pattern Recognition Letters 32, 2011.
    .. [3] T. Joachims, "Training linear SVMs in linear time", KDD 2006.

    Examples
    --------
    >>> from maxmargin import LinearRankSVM
    >>> X = [[1, 0], [2, 1], [3, 0], [4, 1]]
    >>> rank = LinearRankSVM().fit(X, y=[0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> rank.predict([[0, 0], [0, 1]]).round(6)
    array([0. , 0.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DETERMINISTIC_PARAMETERS,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    n_pairs_: int

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "hinge",
        tol: float = 1e-4,
        verbose: Any = False,
        max_iter: int = 1000,
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.C = C
        self.loss = loss
        self.tol = tol
        self.verbose = verbose
        self.max_iter = max_iter
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> LinearRankSVM:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples,)
            Their grades: of two items of a query, the one with the higher grade comes first.
        qid : array-like of shape (n_samples,), default=None
            The query that each item belongs to; items of different queries are not compared.  None:
            all belong to one.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each item counts.  A pair counts by the product of its items' weights: a weight
            of 2 is an item given twice, one of 0 or less an item left out.

        Returns
        -------
        LinearRankSVM
            The machine itself.
        """
        data = self._data(X, y, sample_weight, bias=0.0)
        query = np.zeros(len(data), dtype=np.int64)
        if qid is not None:
            _, kept = inputs.positive_weights(sample_weight, num_samples(X))
            query = numbered(qid, num_samples(X))[kept]
        problem = RankingProblem(
            data.design,
            numbers(data.y, "y"),
            query,
            data.weights,
            self.C,
            self.loss == "squared_hinge",
        )
        n_pairs = problem.count()
        if n_pairs == 0:
            raise ValueError(
                "y: there is nothing to order.  Grades y make a pair of two items of one query "
                "(qid) that differ in their grade; one sample makes none."
            )

        def attributes(solutions: Sequence[LinearSolution]) -> Attributes:
            coef = solutions[0].weights[None, :]
            return {"coef_": coef, "intercept_": np.zeros(1), "n_pairs_": n_pairs}

        return self._train(data, [problem], attributes, [self._start(data)])  # type: ignore[list-item]

    def _solver(self, problem: Any) -> Solver:
        return PairNewton() if self.loss == "squared_hinge" else PairPlanes()

    def predict(self, X: Any) -> Floats:
        """The score of each item; the higher, the earlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The items.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._scores(X)[:, 0]

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """The fraction of pairs in the right order; equal scores are half right.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples,)
            Their grades.
        qid : array-like of shape (n_samples,), default=None
            Their queries; None: all belong to one.
        sample_weight : array-like of shape (n_samples,), default=None
            A pair counts by the product of its items' weights.

        Returns
        -------
        float
            NaN where there are no pairs.
        """
        scores, grades = self.predict(X), numbers(y, "y")
        n = len(scores)
        weights = np.ones(n) if sample_weight is None else numbers(sample_weight, "sample_weight")
        check_consistent_length(scores, grades, weights)
        query = np.zeros(n, dtype=np.int64) if qid is None else numbered(qid, n)
        queries = paired(grades, query)
        rank = np.unique(scores, return_inverse=True)[1].astype(np.float64)

        def near(z: Floats) -> float:
            """The weight of the pairs (a, b) with 1 - z_a + z_b > 0."""
            return float(weights @ queries.sums(z, weights[:, None], self.n_jobs)[0][:, 0])

        # Of whole numbers these are z_b >= z_a: the wrong pairs and the equal ones; with the signs
        # changed, the right ones and the equal ones.
        total = near(np.zeros(n))
        return (total - near(rank) + near(-rank)) / (2 * total) if total else float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags
