"""Linear regression machines: LinearSVR, Ridge and the general LinearRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._compat import Interval, Options, StrOptions, fit_context
from maxmargin.linear import losses, penalties
from maxmargin.linear.base import (
    FOREIGN,
    SHARED_PARAMETERS,
    Attributes,
    Data,
    LinearMachine,
    check_solver_name,
    linear_problem,
    split,
)
from maxmargin.linear.losses import Loss, Squared
from maxmargin.linear.penalties import L2, Penalty
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import LinearSolution, Solver
from maxmargin.problem import Floats


class LinearRegressorBase(RegressorMixin, LinearMachine):
    """A linear machine for numbers, one target or several at once."""

    def _fit_targets(self, data: Data, C: float, loss: Loss, penalty: Penalty, free: bool) -> Any:
        """One problem for each target."""
        targets = np.asarray(data.y, dtype=np.float64).reshape(len(data), -1)
        problems: list[LinearProblem] = [
            linear_problem(data, np.ascontiguousarray(t), C * data.weights, loss, penalty, free)
            for t in targets.T
        ]
        one = np.ndim(data.y) == 1

        def attributes(solutions: Sequence[LinearSolution]) -> Attributes:
            W = np.column_stack([s.weights for s in solutions])
            coef, intercept = split(W, data.design)
            return {
                "coef_": coef[:, 0].copy() if one else np.ascontiguousarray(coef.T),
                "intercept_": intercept[0] if one else intercept,
            }

        return self._train(data, problems, attributes, self._starts(data, problems))

    def _starts(self, data: Data, problems: Sequence[LinearProblem]) -> list[Floats | None]:
        """Where ``warm_start`` begins: at the last weights, if they are of such problems."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return [None] * len(problems)
        W = np.atleast_2d(self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_)
        if W.shape != (len(problems), data.design.n_features):
            return [None] * len(problems)
        W = W.T
        if data.design.bias:
            W = np.vstack([W, np.atleast_1d(self.intercept_) / data.design.bias])
        return [np.ascontiguousarray(W[:, j]) for j in range(len(problems))]

    def predict(self, X: Any) -> Floats:
        """The predicted number of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            w.x + b.
        """
        check_is_fitted(self)
        return self._scores(X)


class LinearSVR(LinearRegressorBase):
    """Linear support vector regression, scikit-learn's ``LinearSVR`` with a certificate.

    With weights s_i it solves

        minimise  1/2 |w|^2 + C sum_i s_i loss(t_i, w.x_i + b)

    where the intercept is the weight of a constant feature, ``intercept_scaling``, and is penalised
    like the others, as in LIBLINEAR.  ``LinearRegressor`` has it free.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube inside which errors cost nothing.
    tol : float, default=1e-4
        The relative duality gap at which a fit ends.
    C : float, default=1.0
        The price of errors.
    loss : {'epsilon_insensitive', 'squared_epsilon_insensitive'}, default='epsilon_insensitive'
        What a row outside the tube costs.
    fit_intercept : bool, default=True
        Whether there is a constant feature.
    intercept_scaling : float, default=1.0
        Its value: the larger, the less the intercept is penalised.
    dual : 'auto' or bool, default='auto'
        With True or False what LIBLINEAR cannot solve so is refused; every fit solves both
        problems, and ``solver`` says how.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which coordinate descent visits the rows.
    max_iter : int, default=1000
        The most iterations of the solver.
    solver : str or Solver, default='auto'
        How the problem is solved; see ``maxmargin.linear``.
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
    coef_ : array of shape (n_features,)
        The weights.
    intercept_ : array of shape (1,)
        The intercept.
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
    LinearRegressor : Any loss and penalty, and a free intercept.
    SVR : The same machine with kernels.

    References
    ----------
    .. [1] C.-H. Ho and C.-J. Lin, "Large-scale linear support vector regression", JMLR 13, 2012.

    Examples
    --------
    >>> from maxmargin import LinearSVR
    >>> LinearSVR(C=100).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(2)
    array([7.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_PARAMETERS,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "dual": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: Any = "auto",
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LinearSVR
            The machine itself.
        """
        if self.dual is False and self.loss == "epsilon_insensitive":
            raise ValueError(
                f"Unsupported set of arguments: penalty='l2', loss={self.loss!r} and dual=False: "
                "use dual='auto', which solves any of them."
            )
        data = self._data(X, y, sample_weight, self.intercept_scaling * self.fit_intercept)
        loss = losses.named(self.loss, epsilon=self.epsilon)
        self._fit_targets(data, self.C, loss, L2(), free=False)
        self.intercept_ = np.atleast_1d(self.intercept_)
        return self


class LinearRegressor(LinearRegressorBase):
    """Linear regression with any loss and penalty.

    It minimises  penalty(w) + C sum_i s_i loss(t_i, w.x_i + b),  where the intercept is free unless
    ``penalize_intercept``.

    Parameters
    ----------
    loss : {'squared', 'epsilon_insensitive', 'squared_epsilon_insensitive', \
            'huberised_epsilon_insensitive'} or Loss, default='squared'
        What an error costs; see ``maxmargin.linear.losses``.
    penalty : {'l2', 'l1', 'elasticnet'} or Penalty, default='l2'
        |w|^2 / 2, |w|_1, a mixture of both, or ``Group(groups)``.
    C : float, default=1.0
        The price of the losses.
    epsilon : float, default=0.1
        Half the width of the tube of the insensitive losses.
    l1_ratio : float, default=0.5
        The share of |w|_1 in penalty='elasticnet'.
    solver : str or Solver, default='auto'
        How the problem is solved; see ``maxmargin.linear``.
    tol : float, default=1e-4
        The relative duality gap at which a fit ends.
    gap_tol : float or None, default=None
        The same as ``tol``, under the name that it has everywhere; it wins when both are given.
    max_iter : int, default=1000
        The most iterations of the solver.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    penalize_intercept : bool, default=False
        Whether the intercept is a weight like the others, that of a constant feature 1.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of solvers that draw lots.
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
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        The weights.
    intercept_ : float or array of shape (n_targets,)
        The intercept.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].  The sum
        over the targets where there are several.
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
    LinearSVR : scikit-learn's parameters, the intercept penalised.
    LinearClassifier : The same for classes.

    Examples
    --------
    >>> from maxmargin import LinearRegressor
    >>> LinearRegressor(C=100).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(2)
    array([6.98])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_PARAMETERS,
        "loss": [StrOptions(set(losses.LOSSES)), Loss, Options(type, set(losses.LOSSES.values()))],
        "penalty": [
            StrOptions({*penalties.PENALTIES, "group"}),
            Penalty,
            Options(type, {*penalties.PENALTIES.values(), penalties.Group}),
        ],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
    }

    def __init__(
        self,
        loss: Any = "squared",
        penalty: Any = "l2",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        l1_ratio: float = 0.5,
        solver: Any = "auto",
        tol: float = 1e-4,
        gap_tol: float | None = None,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        verbose: Any = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.loss = loss
        self.penalty = penalty
        self.C = C
        self.epsilon = epsilon
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegressor:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LinearRegressor
            The machine itself.
        """
        loss = losses.named(self.loss, epsilon=self.epsilon)
        if loss.task != "regression":
            raise ValueError(
                f"loss={loss.name!r} is for classes: use LinearClassifier, or a loss for numbers."
            )
        penalty = penalties.named(self.penalty, l1_ratio=self.l1_ratio)
        data = self._data(X, y, sample_weight, 1.0 * self.fit_intercept, multi_output=True)
        return self._fit_targets(data, self.C, loss, penalty, not self.penalize_intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class Ridge(LinearRegressorBase):
    """Least squares with a squared penalty: scikit-learn's ``Ridge`` with a certificate.

    It minimises  sum_i s_i (t_i - w.x_i - b)^2 + alpha |w|^2  with a free intercept.  (In
    ``objective_`` this is divided by 2 alpha, as for all machines here: |w|^2 / 2 plus losses.)

    Parameters
    ----------
    alpha : float, default=1.0
        The strength of the penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    max_iter : int, default=1000
        The most iterations of the solver.
    tol : float, default=1e-4
        The relative duality gap at which a fit ends.
    solver : str or Solver, default='auto'
        How the problem is solved; see ``maxmargin.linear``.  scikit-learn's names are refused.
    random_state : int, RandomState instance or None, default=None
        Seed of solvers that draw lots.
    verbose : bool, default=False
        Whether to show the progress of the fit.
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
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        The weights.
    intercept_ : float or array of shape (n_targets,)
        The intercept.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].  The sum
        over the targets where there are several.
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
    LinearRegressor : Any loss and penalty.
    LSSVR : The same machine with kernels.

    Examples
    --------
    >>> from maxmargin import Ridge
    >>> Ridge(alpha=0.01).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(2)
    array([6.98])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_PARAMETERS,
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({*FOREIGN, *SHARED_PARAMETERS["solver"][0].options}), Solver],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        solver: Any = "auto",
        random_state: Any = None,
        verbose: Any = 0,
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the cost of each row: a weight of 2 is a row given twice, a weight of 0 or
            less a row left out.

        Returns
        -------
        Ridge
            The machine itself.
        """
        check_solver_name(self.solver)
        data = self._data(X, y, sample_weight, 1.0 * self.fit_intercept, multi_output=True)
        return self._fit_targets(data, 1 / self.alpha, Squared(), L2(), free=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
