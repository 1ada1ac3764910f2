"""What is normal, from normal examples alone, by a half-space: the linear machine for many rows.

    minimise  1/2 |w|^2 + R(X w)
    R(z) = min over rho of  sum_i s_i max(0, rho - z_i) - rho nu sum(s)

The best rho for given scores is their nu-quantile, so that the risk has a closed form: minus the
sum of the nu sum(s) lowest scores (a weighted mean of a tail: Rockafellar and Uryasev 2000),

    R(z) = -min over 0 <= c <= s, sum c = nu sum(s)  of  c.z

and the lowest rows make a plane below it.  The dual is the shortest X'c over all those c, which is
Schoelkopf's (2001).  Cutting planes solve both (see ``cutting_plane``): beta is zero, and the
master problem is that of the point of a polytope that is nearest to the origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin

from maxmargin._compat import Interval, fit_context
from maxmargin.linear.base import DETERMINISTIC_PARAMETERS, Attributes, LinearMachine
from maxmargin.linear.cutting_plane import descend
from maxmargin.linear.problem import Design, LinearCertificate
from maxmargin.linear.solver import LinearSolution, Progress, Solver
from maxmargin.problem import Floats, Indices
from maxmargin.svm.novelty import BORDER

EXACT = 1e-12
"""The tail ends between two rows when its weight differs from theirs by no more, relatively."""

ROUNDING = 1e-13
"""Of the longest that X'c could be."""


@dataclass(frozen=True)
class OneClassProblem:
    """Rows, their weights, and how much of them lies outside.

    Parameters
    ----------
    design : Design
    weights : array of shape (n,)
    nu : float
    """

    design: Design
    weights: Floats
    nu: float
    longest: float = field(init=False)

    free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        longest = float(np.sqrt(self.design.norms().max()))
        object.__setattr__(self, "longest", longest)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.design.n_columns,)

    @property
    def total(self) -> float:
        """Nu sum(s): what the coefficients sum to."""
        return self.nu * float(self.weights.sum())

    def penalised(self, w: Floats) -> Floats:
        return w

    def slopes(self, z: Floats) -> Floats:
        """The coefficients that lie on the lowest scores."""
        order = np.argsort(z, kind="stable")
        s = self.weights[order]
        before = np.cumsum(s) - s
        c = np.empty_like(s)
        c[order] = np.clip(self.total - before, 0.0, s)
        return c

    def border(self, z: Floats) -> float:
        """The best rho for scores z; the middle, where an interval of them is."""
        order = np.argsort(z, kind="stable")
        passed = np.cumsum(self.weights[order])
        first = int(np.searchsorted(passed, self.total * (1 - EXACT)))
        last = int(np.searchsorted(passed, self.total * (1 + EXACT), side="right"))
        ends = z[order[np.clip([first, last], 0, len(z) - 1)]]
        return float(ends.mean())

    def primal(self, w: Floats, z: Floats) -> float:
        return float(w @ w) / 2 - float(self.slopes(z) @ z)

    def certificate(self, w: Floats, z: Floats, c: Floats, v: Floats | None = None) -> Any:
        """What weights and coefficients prove.

        Where the origin is among the points X'c, the optimum is w = 0, and so is an X'c that is
        nothing but rounding.
        """
        if v is None:
            v = self.design.combine(c)
        length = float(np.linalg.norm(v))
        if length <= ROUNDING * self.total * self.longest:
            length = 0.0
        return LinearCertificate(self.primal(w, z), -(length**2) / 2)

    # As a risk for cutting planes.

    def look(self, z: Floats) -> tuple[float, Floats]:
        return 0.0, self.slopes(z)

    def offset(self, z: Floats, c: Floats) -> float:
        return 0.0

    def slope(self, z: Floats, q: Floats, t: float) -> float:
        return -float(self.slopes(z + t * q) @ q)

    def dual_point(self, c: Floats, beta: float) -> Floats:
        return c


class Tails(Solver):
    """Cutting planes, each from the rows with the lowest scores."""

    name = "cutting-plane"

    def refusal(self, problem: Any) -> str | None:
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        problem: Any = progress.problem
        zero = np.zeros(problem.shape)
        z = np.zeros(problem.design.n_rows)
        if start is not None and progress.ends(zero, z, problem.slopes(z), 0):
            return
        descend(progress, problem, start)


class LinearOneClassSVM(OutlierMixin, LinearMachine):
    """The half-space that holds most of the data, for many rows: ``OneClassSVM``'s, linear kernel.

    For weights s_i the machine solves

        minimise  1/2 |w|^2 - rho nu sum_i s_i + sum_i s_i max(0, rho - w.x_i)

    by cutting planes, at the cost of two passes over the data and a sort for each (Schoelkopf,
    Platt, Shawe-Taylor, Smola and Williamson 2001).  At most a fraction nu of the rows lies
    outside, and at least a fraction nu are support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        The fraction, above 0 and at most 1.
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
        -rho.
    offset_ : array of shape (1,)
        rho: decision_function = score_samples - offset_.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].
    dual_gap_ : float
        How far from the optimum the solution is at most.
    status_ : str
        How the fit ended, in a sentence.
    fit_status_ : int
        0 if the fit ended by itself, 1 if it was stopped.
    n_iter_ : int
        Planes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Their names, where the training data had any.

    See Also
    --------
    OneClassSVM : The same machine with kernels.

    References
    ----------
    .. [1] B. Schoelkopf, J. Platt, J. Shawe-Taylor, A. Smola and R. Williamson, "Estimating the
       support of a high-dimensional distribution", Neural Computation 13, 2001.

    Examples
    --------
    >>> from maxmargin import LinearOneClassSVM
    >>> X = [[1, 2], [2, 1], [2, 2], [3, 2], [0, 0]]
    >>> LinearOneClassSVM(nu=0.4).fit(X).predict([[2, 3], [-1, 0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DETERMINISTIC_PARAMETERS,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    offset_: Floats

    def __init__(
        self,
        *,
        nu: float = 0.5,
        tol: float = 1e-4,
        verbose: Any = False,
        max_iter: int = 1000,
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.nu = nu
        self.tol = tol
        self.verbose = verbose
        self.max_iter = max_iter
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearOneClassSVM:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : ignored
            There for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LinearOneClassSVM
            The machine itself.
        """
        data = self._data(X, None, sample_weight, bias=0.0)
        problem = OneClassProblem(data.design, data.weights, self.nu)
        rounding = BORDER * problem.total * problem.longest**2

        def attributes(solutions: Sequence[LinearSolution]) -> Attributes:
            w = solutions[0].weights
            offset = np.array([problem.border(data.design.scores(w)) - rounding])
            return {"coef_": w[None, :], "intercept_": -offset, "offset_": offset}

        return self._train(data, [problem], attributes, [self._start(data)])  # type: ignore[list-item]

    def _solver(self, problem: Any) -> Solver:
        return Tails()

    def decision_function(self, X: Any) -> Floats:
        """The signed distance from the half-space's border, times |w|.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
            Positive for inliers, negative for outliers.
        """
        return self._scores(X)[:, 0]

    def score_samples(self, X: Any) -> Floats:
        """How normal each row of X is: ``decision_function(X) + offset_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Indices:
        """Whether each row of X is an inlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
            1 for inliers, on the border too, and -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
