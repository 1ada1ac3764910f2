"""LinearRankSVM: learning to rank any number of items by linear scores; see ``pairs``."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin._compat import Interval, StrOptions, fit_context, num_samples
from maxmargin.linear.base import DETERMINISTIC_PARAMETERS, Attributes, LinearMachine
from maxmargin.linear.pairs import PairNewton, PairPlanes, RankingProblem, paired
from maxmargin.linear.solver import LinearSolution, Solver
from maxmargin.problem import Floats
from maxmargin.svm import inputs
from maxmargin.svm.ranking import numbered, numbers


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
