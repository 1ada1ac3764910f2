"""Support vector regression: SVR with the tube's half-width epsilon, NuSVR with the fraction nu."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_array

from maxmargin._compat import Interval, StrOptions, fit_context
from maxmargin.problem import Floats, epsilon_svr, nu_svr, squared_epsilon_svr
from maxmargin.solution import Solution
from maxmargin.svm.base import Attributes
from maxmargin.svm.diagnosis import Diagnosable, Judgement
from maxmargin.svm.inputs import Samples
from maxmargin.svm.single import SingleMachine
from maxmargin.svm.training import Task

LOSSES = {
    "epsilon_insensitive": epsilon_svr,
    "squared_epsilon_insensitive": squared_epsilon_svr,
}
LARGEST_TARGET = 1e140


class KernelRegressor(Diagnosable, RegressorMixin, SingleMachine):
    """A kernel machine that predicts numbers."""

    @property
    def _half_width(self) -> float:
        """Of the tube in which an error costs nothing."""
        return 0.0

    def _targets(self, samples: Samples) -> Floats:
        """The targets as numbers."""
        options: Any = {"ensure_2d": False, "dtype": np.float64, "input_name": "y"}
        targets = check_array(samples.y, **options)
        if np.abs(targets).max() > LARGEST_TARGET:
            raise ValueError(
                f"y: targets reach {np.abs(targets).max():.2g}, and their squares are not finite "
                "any more. Scale them, for example with TransformedTargetRegressor."
            )
        return targets

    def _judge(self, index: int, task: Task, coefficients: Floats, scores: Floats) -> Judgement:
        error = self._targets(task.samples) - scores[:, 0] - self.intercept_
        alpha = task.problem.spread(coefficients)[:, 0]
        return Judgement(alpha, self._half_width - np.abs(error))

    def predict(self, X: Any) -> Floats:
        """The value at each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._decisions(X)[:, 0]


class SVR(KernelRegressor):
    """Support vector regression: a flat function with most targets in a tube around it.

    For weights s_i the machine solves

        minimise  1/2 |w|^2 + C sum_i s_i max(0, |y_i - f(x_i)| - epsilon),   f(x) = w.phi(x) + b

    through its dual (Vapnik 1995, Smola and Schoelkopf 2004).

    Parameters
    ----------
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
    C : float, default=1.0
        The price of leaving the tube: the smaller, the smoother the model.  ``inf`` asks for the
        flattest function that has all targets in its tube.
    epsilon : float, default=0.1
        Half the width of the tube, in units of y.
    shrinking : bool, default=True
        Whether variables that have settled at a bound are put aside for a while.
    cache_size : float or 'auto', default='auto'
        Megabytes for kernel rows; 'auto' is what the kernel matrix needs, at most a quarter of the
        machine's memory.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=-1
        The most iterations; -1 is a generous limit.
    loss : {'epsilon_insensitive', 'squared_epsilon_insensitive'}, default='epsilon_insensitive'
        What the distance from the tube costs: itself or its square.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    working_set : str or Strategy, default='auto'
        How the solver chooses the variables of a step; see ``maxmargin.strategies``.
    gap_tol : float or None, default=None
        When given, alone decides when the solver may end: the duality gap is at most this share of
        the objective.
    n_jobs : int or None, default=None
        Threads; None is what scikit-learn's threaded estimators would use.
    time_limit : float or None, default=None
        Seconds after which the fit ends with the model as it stands.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last solution.
    dtype : {'float32', 'float64'}, type or None, default=None
        The type that the rows are converted to; None keeps these two and converts others to
        float64.

    Attributes
    ----------
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

    See Also
    --------
    NuSVR : The same machine with a fraction nu in the place of epsilon.
    LSSVR : With squared errors and no tube: a linear system.

    References
    ----------
    .. [1] A. Smola and B. Schoelkopf, "A tutorial on support vector regression", Statistics and
       Computing 14, 2004.

    Examples
    --------
    >>> from maxmargin import SVR
    >>> svr = SVR(kernel="linear", C=10, epsilon=0.5).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> svr.predict([[1.5]]).round(6)
    array([1.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelRegressor._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions(set(LOSSES))],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        working_set: Any = "auto",
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.working_set = working_set
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The training rows; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        SVR
            The machine itself.
        """
        samples = self._samples(X, y, sample_weight)
        problem = LOSSES[self.loss](
            self._targets(samples), self.C, self.epsilon, samples.weights, self.fit_intercept
        )
        return self._fit_one(samples, problem, _intercept)

    @property
    def _half_width(self) -> float:
        return self.epsilon


class NuSVR(KernelRegressor):
    """Support vector regression with nu, a fraction, in the place of epsilon.

    The tube finds its own width: at most a fraction nu of the rows lies outside, and at least a
    fraction nu are support vectors (Schoelkopf, Smola, Williamson and Bartlett 2000):

        minimise  1/2 |w|^2 + C sum_i s_i (nu epsilon + max(0, |y_i - f(x_i)| - epsilon))

    Parameters
    ----------
    nu : float, default=0.5
        The fraction, above 0 and at most 1.
    C : float, default=1.0
        The price of leaving the tube: the smaller, the smoother the model.
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
    shrinking : bool, default=True
        Whether variables that have settled at a bound are put aside for a while.
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which the solver may end.
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
        Seconds after which the fit ends with the model as it stands.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last solution.
    dtype : {'float32', 'float64'}, type or None, default=None
        The type that the rows are converted to; None keeps these two and converts others to
        float64.

    Attributes
    ----------
    epsilon_ : float
        Half the width of the tube.
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

    See Also
    --------
    SVR : The same machine with epsilon in the place of nu.

    References
    ----------
    .. [1] B. Schoelkopf, A. Smola, R. Williamson and P. Bartlett, "New support vector algorithms",
       Neural Computation 12, 2000.

    Examples
    --------
    >>> from maxmargin import NuSVR
    >>> svr = NuSVR(kernel="linear", C=10).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> svr.predict([[1.5]]).round(6)
    array([1.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelRegressor._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    epsilon_: float

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
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
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NuSVR:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The training rows; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        NuSVR
            The machine itself.
        """
        samples = self._samples(X, y, sample_weight)
        problem = nu_svr(self._targets(samples), self.C, self.nu, samples.weights)
        return self._fit_one(samples, problem, _tube)

    @property
    def _half_width(self) -> float:
        return self.epsilon_


def _intercept(solution: Solution) -> Attributes:
    return {"intercept_": -solution.rho if len(solution.rho) else np.zeros(1)}


def _tube(solution: Solution) -> Attributes:
    """The tube's upper side is at f + epsilon = -rho_above, its lower side at -rho_below."""
    above, below = solution.rho
    return {
        "intercept_": np.array([-(above + below) / 2]),
        "epsilon_": max(float(below - above) / 2, 0.0),
    }
