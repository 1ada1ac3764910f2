"""Support vector classification: SVC with the parameter C, NuSVC with the parameter nu."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

from maxmargin._compat import Interval, StrOptions, fit_context
from maxmargin.exceptions import warn
from maxmargin.multiclass import SCHEMES, scheme
from maxmargin.problem import (
    Floats,
    Problem,
    c_svc,
    crammer_singer,
    nu_svc,
    squared_hinge_svc,
)
from maxmargin.solution import Solution
from maxmargin.svm.calibration import CalibratedClassifier
from maxmargin.svm.margins import Machine

LOSSES = {"hinge": c_svc, "squared_hinge": squared_hinge_svc}


class SVC(CalibratedClassifier):
    """Support vector classification with a soft margin.

    For two classes, labelled y = -1 and +1, and weights s_i, the machine solves

        minimise  1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i f(x_i)),   f(x) = w.phi(x) + b

    through its dual (Cortes and Vapnik 1995), and proves with ``dual_gap_`` how near to the optimum
    it came.  More classes are made of two-class problems, or one problem (``multi_class``).

    Parameters
    ----------
    C : float, default=1.0
        The price of a margin violation: the smaller, the smoother the model.  ``inf`` asks for the
        hard margin, and for data that can be separated.
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
    probability : bool, default=False
        Whether to calibrate probabilities, at the price of a cross-validation with five folds.
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which the solver may end.
    cache_size : float or 'auto', default='auto'
        Megabytes for kernel rows; 'auto' is what the kernel matrix needs, at most a quarter of the
        machine's memory.
    class_weight : dict or 'balanced', default=None
        Multiplies C for each class; 'balanced' makes all classes weigh the same.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=-1
        The most iterations of each problem; -1 is a generous limit.
    decision_function_shape : {'ovo', 'ovr'}, default='ovr'
        Whether ``decision_function`` gives a value for each pair of classes or for each class,
        when classes meet in pairs and are more than two.
    break_ties : bool, default=False
        Whether ``predict`` settles equal votes by the decision values.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability`` and of the random working sets.
    loss : {'hinge', 'squared_hinge'}, default='hinge'
        What a margin violation costs.
    multi_class : {'ovo', 'ovr', 'crammer_singer'}, default='ovo'
        How more than two classes are told apart: every pair, each against the rest, or all in one
        problem (which has no intercept).
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    working_set : str or Strategy, default='auto'
        How the solver chooses the variables of a step; see ``maxmargin.strategies``.
    gap_tol : float or None, default=None
        When given, alone decides when the solver may end: the duality gap of every problem is at
        most this share of its objective.
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
    classes_ : array of shape (n_classes,)
        The labels.
    class_weight_ : array of shape (n_classes,)
        The multipliers of C.
    support_ : array of shape (n_SV,)
        Which rows of the training data are support vectors, class by class.
    support_vectors_ : {array, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel or a callable.
    n_support_ : array of shape (n_classes,)
        How many there are of each class.
    dual_coef_ : {array, sparse matrix} of shape (n_classes - 1, n_SV) or (n_classes, n_SV)
        Their signed coefficients: for pairs of classes in scikit-learn's layout (a support vector
        of class i has its coefficient against class j in row j - 1 if i < j, else in row j),
        otherwise one row for each class (only one with two classes).
    intercept_ : array of shape (n_classes * (n_classes - 1) / 2,) or (n_classes,)
        The intercepts.
    coef_ : {array, sparse matrix} of shape (n_intercepts, n_features)
        The weights of the features, for a linear kernel.
    margin_ : float or array of shape (n_boundaries,)
        1 / |w| in feature space: the margin of each boundary between classes.
    probA_, probB_ : array of shape (n_classes * (n_classes - 1) / 2,)
        Platt's sigmoids for the pairs of classes, P(first) = 1 / (1 + exp(probA_ f + probB_)) with
        f positive for the first; empty unless ``probability`` asked for them.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].  The sum
        over the problems where there are several.
    dual_gap_ : float
        How far from the optimum the model is at most.
    status_ : str
        How the fit ended, in a sentence (the worst of the problems).
    subproblems_ : list of Subproblem
        Coefficients, objective, gap, status and iterations of each problem.
    n_iter_ : array of shape (n_problems,)
        Iterations of each problem.
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
    NuSVC : The same machine with nu in the place of C.

    References
    ----------
    .. [1] C. Cortes and V. Vapnik, "Support-vector networks", Machine Learning 20, 1995.
    .. [2] K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based
       vector machines", JMLR 2, 2001.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> X = [[-1, -1], [-2, -1], [1, 1], [2, 1]]
    >>> svc = SVC(kernel="linear").fit(X, ["left", "left", "right", "right"])
    >>> svc.predict([[-0.8, -1]])
    array(['left'], dtype='<U5')
    >>> svc.coef_
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CalibratedClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "probability": ["boolean"],
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions(set(SCHEMES))],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        loss: str = "hinge",
        multi_class: str = "ovo",
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
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.loss = loss
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.working_set = working_set
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
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
        SVC
            The machine itself.
        """
        if self.multi_class == "crammer_singer" and self.loss != "hinge":
            raise ValueError(
                f"loss={self.loss!r} does not go with multi_class='crammer_singer', which has the "
                "hinge loss only: use loss='hinge', or multi_class='ovo' or 'ovr'."
            )
        samples = self._samples(X, y, sample_weight)
        labels = self._labels(samples, y)
        rule = scheme(self.multi_class, len(labels.classes))

        def problem(signs: Any, weights: Floats) -> Problem:
            if self.multi_class == "crammer_singer":
                return crammer_singer(signs, len(labels.classes), self.C, weights)
            return LOSSES[self.loss](signs, self.C, weights, self.fit_intercept)

        def machine(solution: Solution) -> Machine:
            has_intercept = self.fit_intercept and self.multi_class != "crammer_singer"
            intercept = -float(solution.rho[0]) if has_intercept else 0.0
            return Machine(solution.coefficients, intercept)

        tasks = self._tasks(samples, labels, problem, rule)
        attributes = self._attributes(samples, labels, tasks, machine, rule)
        calibration = self._calibration(samples, labels, tasks, problem, machine, rule)
        return self._train(samples, tasks, attributes, **calibration)


class NuSVC(CalibratedClassifier):
    """Support vector classification with nu, a fraction, in the place of C.

    At most a fraction nu of the rows violates the margin, and at least a fraction nu are support
    vectors (Schoelkopf, Smola, Williamson and Bartlett 2000).  The model is that of ``SVC`` for
    some C, which the machine finds by itself.

    Parameters
    ----------
    nu : float, default=0.5
        The fraction, above 0 and at most 1.  Classes of very different weight allow less, and a
        nu that is too large for a pair of classes is lowered with a warning.
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
    probability : bool, default=False
        Whether to calibrate probabilities, at the price of a cross-validation with five folds.
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which the solver may end.
    cache_size : float or 'auto', default='auto'
        Megabytes for kernel rows; 'auto' is what the kernel matrix needs, at most a quarter of the
        machine's memory.
    class_weight : dict or 'balanced', default=None
        Weights of the classes, which multiply those of their rows.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    max_iter : int, default=-1
        The most iterations of each problem; -1 is a generous limit.
    decision_function_shape : {'ovo', 'ovr'}, default='ovr'
        Whether ``decision_function`` gives a value for each pair of classes or for each class,
        when they are more than two.
    break_ties : bool, default=False
        Whether ``predict`` settles equal votes by the decision values.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability`` and of the random working sets.
    working_set : str or Strategy, default='auto'
        How the solver chooses the variables of a step; see ``maxmargin.strategies``.
    gap_tol : float or None, default=None
        When given, alone decides when the solver may end: the duality gap of every problem is at
        most this share of its objective.
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
    classes_ : array of shape (n_classes,)
        The labels.
    class_weight_ : array of shape (n_classes,)
        The weights of the classes.
    support_ : array of shape (n_SV,)
        Which rows of the training data are support vectors, class by class.
    support_vectors_ : {array, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel or a callable.
    n_support_ : array of shape (n_classes,)
        How many there are of each class.
    dual_coef_ : {array, sparse matrix} of shape (n_classes - 1, n_SV)
        Their signed coefficients in scikit-learn's layout; see ``SVC``.
    intercept_ : array of shape (n_classes * (n_classes - 1) / 2,)
        The intercepts.
    coef_ : {array, sparse matrix} of shape (n_intercepts, n_features)
        The weights of the features, for a linear kernel.
    margin_ : float or array of shape (n_boundaries,)
        1 / |w| in feature space: the margin of each boundary between classes.
    probA_, probB_ : array of shape (n_classes * (n_classes - 1) / 2,)
        Platt's sigmoids for the pairs of classes, P(first) = 1 / (1 + exp(probA_ f + probB_)) with
        f positive for the first; empty unless ``probability`` asked for them.
    objective_ : float
        The primal objective of the problem before its solution is scaled; the optimum lies in
        [objective_ - dual_gap_, objective_].  The sum over the problems where there are several.
    dual_gap_ : float
        How far from the optimum the solution is at most.
    status_ : str
        How the fit ended, in a sentence (the worst of the problems).
    subproblems_ : list of Subproblem
        Coefficients, objective, gap, status and iterations of each problem.
    n_iter_ : array of shape (n_problems,)
        Iterations of each problem.
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
    SVC : The same machine with C in the place of nu.

    References
    ----------
    .. [1] B. Schoelkopf, A. Smola, R. Williamson and P. Bartlett, "New support vector algorithms",
       Neural Computation 12, 2000.

    Examples
    --------
    >>> from maxmargin import NuSVC
    >>> X = [[-1, -1], [-2, -1], [1, 1], [2, 1]]
    >>> NuSVC(kernel="linear").fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CalibratedClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "probability": ["boolean"],
    }
    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class. "
        "sample_weight must be positive for rows of two classes or more."
    )

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        working_set: Any = "auto",
        gap_tol: float | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.working_set = working_set
        self.gap_tol = gap_tol
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NuSVC:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The training rows; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        NuSVC
            The machine itself.
        """
        samples = self._samples(X, y, sample_weight)
        labels = self._labels(samples, y)
        rule = scheme("ovo", len(labels.classes))

        def problem(signs: Floats, weights: Floats) -> Problem:
            as_asked = nu_svc(signs, self.nu, weights)
            largest = _largest_nu(as_asked)
            return as_asked if self.nu <= largest else nu_svc(signs, largest, weights)

        tasks = self._tasks(samples, labels, problem, rule)
        largest = min(_largest_nu(task.problem) for task in tasks)
        if self.nu > largest * (1 + 1e-12):
            warn(
                f"nu={self.nu} is infeasible: a class has too little weight for it. The largest nu "
                f"that it allows, {largest:.3g}, is used; lower nu or balance the class weights.",
            )
        attributes = self._attributes(samples, labels, tasks, _scaled, rule)
        calibration = self._calibration(samples, labels, tasks, problem, _scaled, rule)
        return self._train(samples, tasks, attributes, check=self._check_margins, **calibration)

    def _check_margins(self, solutions: Sequence[Solution]) -> None:
        """Refuse solutions none of which has a margin; warn where some have."""
        without = [s for s in solutions if s.converged and _half_distance(s) is None]
        if not without:
            return
        if min(s.objective + s.violation for s in without) < 0:
            reason = (
                f"kernel={self.kernel!r} is not positive semi-definite on these data, and has no "
                "margin for nu to choose. Use another kernel or other parameters of it."
            )
        else:
            reason = (
                f"nu={self.nu} is too small for these data: the hulls of the classes, reduced by "
                "it, still meet, so that there is no margin. Use a larger nu."
            )
        if len(without) == len(solutions):
            raise ValueError(reason)
        warn(
            f"{len(without)} of {len(solutions)} pairs of classes have no margin, and votes worth "
            f"nothing: {reason}",
        )


def _largest_nu(problem: Problem) -> float:
    """Each class sums to nu sum(w) / 2, which a light class may not have."""
    positive, negative = problem.upper.sum(), -problem.lower.sum()
    return float(2 * min(positive, negative) / (positive + negative))


def _half_distance(solution: Solution) -> float | None:
    """R = (rho_+ - rho_-) / 2, half the margin's width in values of f; None where there is none.

    The hulls certainly keep apart when the objective, half their squared distance, exceeds its gap.
    """
    widths = [float(rho[0] - rho[1]) / 2 for rho in (solution.rho, solution.certificate_rho)]
    r = next((each for each in widths if each > 0), 0.0)
    uncertain = solution.objective <= solution.gap and r <= solution.violation
    return None if r <= 0 or uncertain else r


def _scaled(solution: Solution) -> Machine:
    """The solution divided by r, which puts the margin at +1 and -1."""
    r = _half_distance(solution) or 1.0
    return Machine(solution.coefficients / r, -float(solution.rho.mean()) / r, divisor=r)
