"""Learning to rank: RankSVM orders items by a score, from pairs of which one is to come first."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from maxmargin._compat import Interval, fit_context, num_samples
from maxmargin.problem import Floats, Indices, ranking
from maxmargin.solution import Solution
from maxmargin.svm.base import Attributes
from maxmargin.svm.diagnosis import Diagnosable, Diagnoses, Diagnosis, Judgement
from maxmargin.svm.single import SingleMachine
from maxmargin.svm.training import Task


class RankSVM(Diagnosable, SingleMachine):
    """Support vector ranking: of each pair, the first item is to score above the second.

    For pairs (a, b) with weights s_ab the machine solves

        minimise  1/2 |w|^2 + C sum_(a,b) s_ab max(0, 1 - f(x_a) + f(x_b)),   f(x) = w.phi(x)

    through its dual (Herbrich, Graepel and Obermayer 2000, Joachims 2002).  The model is a sum of
    kernels at the items, and no kernel of pairs is ever evaluated.

    Parameters
    ----------
    C : float, default=1.0
        The price of a pair in the wrong order, or in the right order by less than the margin.
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, callable or Kernel, \
            default='rbf'
        The kernel.  A callable is given two lists of rows and returns the matrix of their kernel
        values; at prediction the second list are the support vectors.
    degree : int, default=3
        Degree of the kernel 'poly'.
    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the kernels 'rbf', 'poly', 'sigmoid' and 'laplacian'.  'scale' is
        1 / (n_features * X.var()), where rows count by their weights; 'auto' is 1 / n_features.
    coef0 : float, default=0.0
        The constant in the kernels 'poly' and 'sigmoid'.
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which the solver may end.
    shrinking : bool, default=True
        Whether variables that have settled at a bound are put aside for a while.
    cache_size : float or 'auto', default='auto'
        Megabytes for kernel rows; 'auto' is what the kernel matrix needs, at most a quarter of the
        machine's memory.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=-1
        The most iterations; -1 is a generous limit.
    working_set : str or Strategy, default='auto'
        How the solver chooses the variables of a step; see ``maxmargin.strategies``.
    gap_tol : float or None, default=None
        When given, alone decides when the solver may end: the duality gap is at most this share of
        the objective.
    n_jobs : int or None, default=None
        Threads; None is what scikit-learn's threaded estimators would use.
    time_limit : float or None, default=None
        Seconds after which the fit ends with the model as it stands.  They count from when the
        pairs are formed; forming them, and the last look at all of them, come on top.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last solution.
    dtype : {'float32', 'float64'}, type or None, default=None
        The type that the rows are converted to; None keeps these two and converts others to
        float64.

    Attributes
    ----------
    n_pairs_ : int
        How many pairs the model was fitted to.
    support_ : array of shape (n_SV,)
        Which rows of the training data are support vectors.
    support_vectors_ : {array, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel or a callable.
    n_support_ : array of shape (1,)
        How many there are.
    dual_coef_ : {array, sparse matrix} of shape (1, n_SV)
        Their coefficients.
    intercept_ : array of shape (1,)
        The intercept.
    coef_ : {array, sparse matrix} of shape (1, n_features)
        The weights of the features, for a linear kernel.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].
    dual_gap_ : float
        How far from the optimum the model is at most.
    status_ : str
        How the fit ended, in a sentence.
    subproblems_ : list of Subproblem
        Coefficients, objective, gap, status and iterations of the problem.
    n_iter_ : int
        Iterations.
    fit_status_ : int
        0 if the fit ended by itself, 1 if it was stopped.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Their names, where the training data had any.

    Notes
    -----
    Grades make up to n (n - 1) / 2 pairs in a query of n items, and every pair is a variable.

    References
    ----------
    .. [1] R. Herbrich, T. Graepel and K. Obermayer, "Large margin rank boundaries for ordinal
       regression", Advances in Large Margin Classifiers, 2000.
    .. [2] T. Joachims, "Optimizing search engines using clickthrough data", KDD 2002.

    Examples
    --------
    >>> from maxmargin import RankSVM
    >>> X = [[1, 0], [2, 1], [3, 0], [4, 1]]
    >>> rank = RankSVM(kernel="linear").fit(X, y=[0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> rank.predict([[0, 0], [0, 1]]).round(6)
    array([0. , 0.5])
    >>> RankSVM(kernel="linear").fit(X, pairs=[(1, 0), (3, 2)]).score(X, [0, 1, 2, 3])
    0.9166666666666666
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SingleMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    n_pairs_: int

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        working_set: Any = "auto",
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.working_set = working_set
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, qid: Any = None, pairs: Any = None, sample_weight: Any = None
    ) -> RankSVM:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The items; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,), default=None
            Their grades: of two items of a query, the one with the higher grade comes first.
            Needed unless there are ``pairs``.
        qid : array-like of shape (n_samples,), default=None
            The query that each item belongs to; items of different queries are not compared.  None:
            all belong to one.
        pairs : array-like of shape (n_pairs, 2), default=None
            Rows (a, b) of indices of items: a is to score above b.  They take the place of the
            grades.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each item counts.  A pair counts by the product of its items' weights: a weight
            of 2 is an item given twice, one of 0 or less an item left out.

        Returns
        -------
        RankSVM
            The machine itself.
        """
        if y is None and pairs is None:
            raise ValueError(
                "This RankSVM estimator requires y to be passed, but the target y is None.  "
                "Pass grades y, or pairs of indices."
            )
        samples = self._samples(X, y, sample_weight, qid=qid, pairs=pairs)
        if pairs is None:
            grades = numbers(samples.y, "y")
            query = None if qid is None else numbered(qid, num_samples(X))[samples.rows]
            chosen = graded_pairs(grades, query)
        else:
            chosen = given_pairs(pairs, num_samples(X), samples.rows)
        with np.errstate(over="ignore"):  # the problem refuses what is not finite
            weights = samples.weights[chosen].prod(axis=1)
        chosen, weights = chosen[weights > 0], weights[weights > 0]  # products may underflow
        if len(chosen) == 0:
            raise ValueError(
                "pairs: there is nothing to order.  Grades y make a pair of two items of one query "
                "(qid) that differ in their grade; one sample makes none.  Items whose "
                "sample_weight is 0 are left out."
            )

        def model(solution: Solution) -> Attributes:
            return {"intercept_": np.zeros(1), "n_pairs_": len(chosen)}

        return self._fit_one(samples, ranking(chosen, len(samples), self.C, weights), model)

    def predict(self, X: Any) -> Floats:
        """The score of each item; the higher, the earlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The items; for ``kernel="precomputed"`` their kernel with the training items.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._decisions(X)[:, 0]

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """The fraction of pairs in the right order; equal scores are half right.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
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
        weights = (
            np.ones(len(grades))
            if sample_weight is None
            else numbers(sample_weight, "sample_weight")
        )
        check_consistent_length(scores, grades, weights)
        right = total = 0.0
        for members in _members(None if qid is None else numbered(qid, len(grades)), len(grades)):
            g, s, w = grades[members], scores[members], weights[members]
            for i in range(len(members)):  # by rows, as all pairs at once may not fit the memory
                below = g < g[i]
                right += w[i] * float(w[below] @ ((s[i] > s[below]) + 0.5 * (s[i] == s[below])))
                total += w[i] * float(w[below].sum())
        return float(right / total) if total else float("nan")

    def diagnose(
        self, X: Any, y: Any = None, qid: Any = None, pairs: Any = None, sample_weight: Any = None
    ) -> Diagnosis | Diagnoses:
        """What the fit proves, and what became of each pair; see ``Diagnosis``.

        Its arrays have one entry for each pair, in the order of ``Diagnosis.pairs``: alpha is the
        pair's coefficient, slack is max(0, 1 - f(x_a) + f(x_b)) and the margin is
        (f(x_a) - f(x_b)) / |w|.  The radius is that of the ball around the items.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The training items.
        y, qid, pairs, sample_weight : array-like, default=None
            As they were given to ``fit``.

        Returns
        -------
        Diagnosis

        Raises
        ------
        ValueError
            When these are not the data, or the parameters, that the machine was fitted with.
        """
        return self._diagnoses(X, y, qid=qid, pairs=pairs, sample_weight=sample_weight)

    def _judge(self, index: int, task: Task, coefficients: Floats, scores: Floats) -> Judgement:
        problem, f = task.problem, scores[:, 0]
        ahead = f[problem.item] - f[problem.minus]
        square = float(problem.spread(coefficients)[:, 0] @ f)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = ahead / np.sqrt(max(square, 0.0))
        return Judgement(coefficients, ahead - 1, ahead, margin)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.one_d_labels = True
        return tags


# ------------------------------------------------------------------ pairs


def graded_pairs(grades: Floats, query: Indices | None = None) -> Indices:
    """All (a, b) of one query for which a has the higher grade, shape (n_pairs, 2)."""
    pairs = [
        members[np.argwhere(grades[members][:, None] > grades[members])]
        for members in _members(query, len(grades))
    ]
    return np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)


def given_pairs(pairs: ArrayLike, n_items: int, kept: Indices) -> Indices:
    """Explicit pairs, renumbered for the ``kept`` items; those with a dropped item are dropped."""
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(
            "pairs must hold integers in the shape (n_pairs, 2), got "
            f"{given.dtype} in the shape {given.shape}: rows (a, b) of items, a to score above b."
        )
    if len(given) and not 0 <= given.min() <= given.max() < n_items:
        raise ValueError(
            f"pairs must number the {n_items} rows of X, from 0 to {n_items - 1}; got "
            f"{given.min()} to {given.max()}."
        )
    if np.any(given[:, 0] == given[:, 1]):
        raise ValueError("pairs must be of two different items; got an item paired with itself.")
    number = np.full(n_items, -1)
    number[kept] = np.arange(len(kept))
    renumbered = number[given]
    return renumbered[(renumbered >= 0).all(axis=1)]


def numbers(values: Any, name: str) -> Floats:
    """A column of finite numbers."""
    options: Any = {"ensure_2d": False, "dtype": np.float64, "input_name": name}
    return check_array(column_or_1d(values, warn=True), **options)


def numbered(qid: Any, n: int) -> Indices:
    """The queries, numbered from 0 on."""
    qid = column_or_1d(qid)
    if len(qid) != n:
        raise ValueError(f"qid must name the query of each of the {n} items, got {len(qid)}.")
    return np.unique(qid, return_inverse=True)[1]


def _members(query: Indices | None, n: int) -> Iterator[Indices]:
    """The items of each query."""
    if query is None:
        yield np.arange(n)
        return
    order = np.argsort(query, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(query[order])) + 1)
