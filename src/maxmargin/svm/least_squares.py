"""Least-squares machines: every row has its error squared, and training is a linear system.

All rows become support vectors; in exchange there is no quadratic programming: the equations are
solved by Cholesky where the kernel matrix fits ``cache_size``, by conjugate gradients beyond, for
all classes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin._compat import Interval, StrOptions, fit_context
from maxmargin.direct import solve_least_squares
from maxmargin.kernels import native
from maxmargin.multiclass import scheme
from maxmargin.problem import Floats, Problem, least_squares
from maxmargin.solution import Solution
from maxmargin.solve import cache_megabytes
from maxmargin.svm.base import Attributes, KernelMachine
from maxmargin.svm.classifier import KernelClassifier
from maxmargin.svm.margins import Machine
from maxmargin.svm.regression import KernelRegressor
from maxmargin.svm.training import Task
from maxmargin.threads import effective_threads

LEAST_SQUARES: dict[str, list[Any]] = {
    "C": [Interval(Real, 0.0, None, closed="neither")],
    "fit_intercept": ["boolean"],
    "working_set": [StrOptions({"auto"})],
}
"""Parameters of both machines; there is no choice of a working set."""

NONE_OF = {"shrinking", "decision_function_shape", "break_ties", "random_state"}
"""Parameters that mean nothing without pair steps or pairs of classes."""


class LeastSquaresMachine(KernelMachine):
    """A machine whose problems are linear systems with the same matrix."""

    C: float
    fit_intercept: bool

    _least_squares = True  # rows beyond their margin pay as well

    def _solve(
        self, tasks: Sequence[Task], monitor: Any, start: Sequence[Any]
    ) -> Sequence[Solution]:
        samples = tasks[0].samples
        items = native(samples.items)  # a function of the user's is called here, and Ctrl-C ends it
        return solve_least_squares(
            [task.problem for task in tasks],
            items,
            tol=self.tol,
            gap_tol=self.gap_tol,
            max_iter=self.max_iter,
            memory=cache_megabytes(len(samples), self.cache_size) * 2**20,
            n_threads=effective_threads(self.n_jobs),
            starts=None if start[0] is None else start,
            monitors=[monitor.subproblem(i) for i in range(len(tasks))],
        )


class LSSVC(LeastSquaresMachine, KernelClassifier):
    """Least-squares support vector classification.

    For two classes, labelled y = -1 and +1, and weights s_i, the machine solves

        minimise  1/2 |w|^2 + C / 2 sum_i s_i (1 - y_i f(x_i))^2,   f(x) = w.phi(x) + b

    which is a linear system (Suykens and Vandewalle 1999).  Of more classes each is told from the
    rest, all with one factorisation, and the largest f wins.

    Parameters
    ----------
    C : float, default=1.0
        The price of an error: the smaller, the smoother the model.
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
    cache_size : float or 'auto', default='auto'
        Megabytes for the kernel matrix; 'auto' is what it needs, at most a quarter of the machine's
        memory.  Where it does not fit, conjugate gradients solve the system.
    class_weight : dict or 'balanced', default=None
        Multiplies C for each class; 'balanced' makes all classes weigh the same.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=-1
        The most steps of conjugate gradients; -1 is a generous limit.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    working_set : 'auto', default='auto'
        There is nothing to choose: all variables are solved for at once.
    gap_tol : float or None, default=None
        When given, alone decides when the solver may end: the duality gap is at most this share of
        the objective.
    n_jobs : int or None, default=None
        Threads; None is what scikit-learn's threaded estimators would use.
    time_limit : float or None, default=None
        Seconds after which the fit ends with the model as it stands; conjugate gradients take at
        least one step.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last solution.
    dtype : {'float32', 'float64'}, type or None, default=None
        The type that the rows are converted to; None keeps these two and converts others to
        float64.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    class_weight_ : array of shape (n_classes,)
        The multipliers of C.
    support_ : array of shape (n_SV,)
        Which rows of the training data are support vectors (all of positive weight), class by
        class.
    support_vectors_ : {array, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel or a callable.
    n_support_ : array of shape (n_classes,)
        How many there are of each class.
    dual_coef_ : {array, sparse matrix} of shape (1, n_SV) or (n_classes, n_SV)
        Their signed coefficients, one row for each class (only one with two classes).
    intercept_ : array of shape (1,) or (n_classes,)
        The intercepts.
    coef_ : {array, sparse matrix} of shape (1, n_features) or (n_classes, n_features)
        The weights of the features, for a linear kernel.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].  The sum
        over the classes where there are more than two.
    dual_gap_ : float
        How far from the optimum the model is at most.
    status_ : str
        How the fit ended, in a sentence (the worst of the problems).
    subproblems_ : list of Subproblem
        Coefficients, objective, gap, status and iterations of each problem.
    n_iter_ : array of shape (n_problems,)
        Steps: 1 for Cholesky, or those of conjugate gradients.
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
    SVC : With the hinge loss, which leaves few support vectors.

    References
    ----------
    .. [1] J. Suykens and J. Vandewalle, "Least squares support vector machine classifiers", Neural
       Processing Letters 9, 1999.

    Examples
    --------
    >>> from maxmargin import LSSVC
    >>> X = [[-1, -1], [-2, -1], [1, 1], [2, 1]]
    >>> LSSVC(kernel="linear").fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: constraint
        for name, constraint in (KernelClassifier._parameter_constraints | LEAST_SQUARES).items()
        if name not in NONE_OF
    }

    decision_function_shape = "ovr"
    break_ties = False

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        fit_intercept: bool = True,
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
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.working_set = working_set
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVC:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The training rows; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LSSVC
            The machine itself.
        """
        samples = self._samples(X, y, sample_weight)
        labels = self._labels(samples, y)
        rule = scheme("ovr", len(labels.classes))

        def problem(signs: Floats, weights: Floats) -> Problem:
            return least_squares(signs, self.C, weights, self.fit_intercept)

        def machine(solution: Solution) -> Machine:
            return Machine(solution.coefficients, _intercept(solution))

        tasks = self._tasks(samples, labels, problem, rule)
        attributes = self._attributes(samples, labels, tasks, machine, rule)
        return self._train(samples, tasks, attributes)


class LSSVR(LeastSquaresMachine, KernelRegressor):
    """Least-squares support vector regression: kernel ridge regression with an intercept.

    For weights s_i the machine solves

        minimise  1/2 |w|^2 + C / 2 sum_i s_i (y_i - f(x_i))^2,   f(x) = w.phi(x) + b

    which is a linear system (Saunders, Gammerman and Vovk 1998, Suykens and Vandewalle 1999).

    Parameters
    ----------
    C : float, default=1.0
        The price of an error: the smaller, the smoother the model.
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
    cache_size : float or 'auto', default='auto'
        Megabytes for the kernel matrix; 'auto' is what it needs, at most a quarter of the machine's
        memory.  Where it does not fit, conjugate gradients solve the system.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=-1
        The most steps of conjugate gradients; -1 is a generous limit.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    working_set : 'auto', default='auto'
        There is nothing to choose: all variables are solved for at once.
    gap_tol : float or None, default=None
        When given, alone decides when the solver may end: the duality gap is at most this share of
        the objective.
    n_jobs : int or None, default=None
        Threads; None is what scikit-learn's threaded estimators would use.
    time_limit : float or None, default=None
        Seconds after which the fit ends with the model as it stands; conjugate gradients take at
        least one step.
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
    SVR : With a tube, inside of which errors cost nothing.
    sklearn.kernel_ridge.KernelRidge : The same without an intercept, for alpha = 1 / C.

    References
    ----------
    .. [1] C. Saunders, A. Gammerman and V. Vovk, "Ridge regression learning algorithm in dual
       variables", ICML 1998.
    .. [2] J. Suykens and J. Vandewalle, "Least squares support vector machine classifiers", Neural
       Processing Letters 9, 1999.

    Examples
    --------
    >>> from maxmargin import LSSVR
    >>> LSSVR(kernel="linear", C=1e6).fit([[0], [1], [2]], [1, 3, 5]).predict([[4]]).round(3)
    array([9.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: constraint
        for name, constraint in (KernelRegressor._parameter_constraints | LEAST_SQUARES).items()
        if name not in NONE_OF
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        fit_intercept: bool = True,
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
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.working_set = working_set
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVR:
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
        LSSVR
            The machine itself.
        """
        samples = self._samples(X, y, sample_weight)
        targets = self._targets(samples)

        def model(solution: Solution) -> Attributes:
            return {"intercept_": np.array([_intercept(solution)])}

        problem = least_squares(targets, self.C, samples.weights, self.fit_intercept)
        return self._fit_one(samples, problem, model)


def _intercept(solution: Solution) -> float:
    return -float(solution.rho[0]) if len(solution.rho) else 0.0
