"""Linear classifiers: LinearSVC, LogisticRegression and the general LinearClassifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from maxmargin._compat import Interval, Options, StrOptions, fit_context
from maxmargin.linear import losses, penalties
from maxmargin.linear.base import (
    FOREIGN,
    SHARED_PARAMETERS,
    Data,
    check_solver_name,
    linear_problem,
)
from maxmargin.linear.classifier import Labels, LinearClassifierBase, Probabilistic
from maxmargin.linear.losses import Hinge, Logistic, Loss, MulticlassHinge, Softmax, SquaredHinge
from maxmargin.linear.penalties import L1, L2, ElasticNet, Penalty
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import Solver


class LinearSVC(LinearClassifierBase):
    """Linear support vector classification, scikit-learn's ``LinearSVC`` with a certificate.

    For each class against the rest (two classes: once), with weights s_i, it solves

        minimise  1/2 |w|^2 + C sum_i s_i loss(y_i, w.x_i + b)

    where the intercept is the weight of a constant feature, ``intercept_scaling``, and is penalised
    like the others, as in LIBLINEAR.  ``LinearClassifier`` has it free.

    Parameters
    ----------
    penalty : {'l2', 'l1'}, default='l2'
        With 'l1', |w|_1 in the place of |w|^2 / 2, most weights are zero.
    loss : {'hinge', 'squared_hinge'}, default='squared_hinge'
        What a row costs that violates its margin.  Crammer and Singer's machine has the hinge.
    dual : 'auto' or bool, default='auto'
        With True or False what LIBLINEAR cannot solve so is refused; every fit solves both
        problems, and ``solver`` says how.
    tol : float, default=1e-4
        The relative duality gap at which a fit ends.
    C : float, default=1.0
        The price of violated margins.
    multi_class : {'ovr', 'crammer_singer'}, default='ovr'
        Many classes: each against the rest, or all in one problem.
    fit_intercept : bool, default=True
        Whether there is a constant feature.
    intercept_scaling : float, default=1.0
        Its value: the larger, the less the intercept is penalised.
    class_weight : dict or 'balanced', default=None
        Multiplies C for the rows of each class (with more than two classes, as in LIBLINEAR, in
        that class's own problem only).
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
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights.
    intercept_ : array of shape (1,) or (n_classes,)
        The intercepts.
    classes_ : array of shape (n_classes,)
        The labels.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].  The sum
        over the problems where there are several.
    dual_gap_ : float
        How far from the optimum the solution is at most.
    status_ : str
        How the fit ended, in a sentence (the worst of the problems).
    fit_status_ : int
        0 if the fit ended by itself, 1 if it was stopped.
    n_iter_ : int
        The most iterations of a problem.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Their names, where the training data had any.

    See Also
    --------
    LinearClassifier : Any loss and penalty, and a free intercept.
    SVC : The same machine with kernels.

    References
    ----------
    .. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual
       coordinate descent method for large-scale linear SVM", ICML 2008.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> X = [[-1, -1], [-2, -1], [1, 1], [2, 1]]
    >>> LinearSVC().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_PARAMETERS,
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
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
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LinearSVC
            The machine itself.
        """
        self._check_dual()
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        data = self._data(X, y, sample_weight, bias)
        labels = self._labels(data, y)
        if self.multi_class == "crammer_singer":
            price = self.C * data.weights * labels.class_weight[labels.index]
            y, k = labels.index, len(labels)
            together = linear_problem(data, y, price, MulticlassHinge(), L2(), False, k)
            return self._fit_problems(data, labels, [together])
        loss = Hinge() if self.loss == "hinge" else SquaredHinge()
        penalty = L2() if self.penalty == "l2" else L1()
        problems = self._against_the_rest(data, labels, self.C, loss, penalty, False, rest=1.0)
        return self._fit_problems(data, labels, problems)

    def _check_dual(self) -> None:
        """Refuse what LIBLINEAR refuses, where ``dual`` is said in so many words."""
        if self.multi_class == "crammer_singer":
            if self.penalty == "l1":
                raise ValueError(
                    "Unsupported set of arguments: multi_class='crammer_singer' has the l2 penalty "
                    "only; use penalty='l2', or multi_class='ovr'."
                )
            return
        impossible = (self.dual is True and self.penalty == "l1") or (
            self.dual is False and self.loss == "hinge"
        )
        if impossible:
            raise ValueError(
                f"Unsupported set of arguments: penalty={self.penalty!r}, loss={self.loss!r} and "
                f"dual={self.dual}: use dual='auto', which solves any of them."
            )


class LinearClassifier(Probabilistic, LinearClassifierBase):
    """Linear classification with any loss and penalty.

    It minimises  penalty(w) + C sum_i s_i loss(y_i, w.x_i + b),  where the intercept is free unless
    ``penalize_intercept``; many classes are solved each against the rest, but for the loss
    'softmax', which takes all together.

    Parameters
    ----------
    loss : {'hinge', 'squared_hinge', 'huberised_hinge', 'logistic', 'softmax'} or Loss, \
            default='hinge'
        What a row costs; see ``maxmargin.linear.losses``.
    penalty : {'l2', 'l1', 'elasticnet'} or Penalty, default='l2'
        |w|^2 / 2, |w|_1, a mixture of both, or ``Group(groups)``.
    C : float, default=1.0
        The price of the losses.
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
    class_weight : dict or 'balanced', default=None
        Multiplies C for the rows of each class.
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
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights.
    intercept_ : array of shape (1,) or (n_classes,)
        The intercepts.
    classes_ : array of shape (n_classes,)
        The labels.
    objective_ : float
        The primal objective; the optimum lies in [objective_ - dual_gap_, objective_].  The sum
        over the problems where there are several.
    dual_gap_ : float
        How far from the optimum the solution is at most.
    status_ : str
        How the fit ended, in a sentence (the worst of the problems).
    fit_status_ : int
        0 if the fit ended by itself, 1 if it was stopped.
    n_iter_ : int
        The most iterations of a problem.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Their names, where the training data had any.

    See Also
    --------
    LinearSVC : scikit-learn's parameters, the intercept penalised.
    LinearRegressor : The same for numbers.

    Examples
    --------
    >>> from maxmargin import LinearClassifier
    >>> X = [[-1, -1], [-2, -1], [1, 1], [2, 1]]
    >>> LinearClassifier(loss="logistic").fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
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
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        loss: Any = "hinge",
        penalty: Any = "l2",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.5,
        solver: Any = "auto",
        tol: float = 1e-4,
        gap_tol: float | None = None,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: Any = None,
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
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearClassifier:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LinearClassifier
            The machine itself.
        """
        loss = losses.named(self.loss)
        if loss.task == "regression":
            raise ValueError(
                f"loss={loss.name!r} is for numbers: use LinearRegressor, or a loss for classes."
            )
        penalty = penalties.named(self.penalty, l1_ratio=self.l1_ratio)
        data = self._data(X, y, sample_weight, 1.0 if self.fit_intercept else 0.0)
        labels = self._labels(data, y)
        return self._fit_loss(data, labels, loss, penalty, not self.penalize_intercept)

    def _fit_loss(
        self, data: Data, labels: Labels, loss: Loss, penalty: Penalty, free: bool
    ) -> LinearClassifier:
        if loss.task == "multiclass":
            price = self.C * data.weights * labels.class_weight[labels.index]
            y, k = labels.index, len(labels)
            problems = [linear_problem(data, y, price, loss, penalty, free, k)]
        else:
            problems = self._against_the_rest(data, labels, self.C, loss, penalty, free)
        return self._fit_problems(data, labels, problems)

    def _likelihood(self) -> Loss:
        return losses.named(self.loss)


class LogisticRegression(Probabilistic, LinearClassifierBase):
    """Logistic regression, binary or multinomial, with scikit-learn's parameters.

    It minimises  penalty(w) + C sum_i s_i loss(y_i, w.x_i + b)  with the logistic loss for two
    classes and the softmax loss for more; the intercept is free.

    Parameters
    ----------
    C : float, default=1.0
        The price of the losses: the inverse of the strength of the penalty.
    l1_ratio : float, default=0.0
        The share of |w|_1 in the penalty l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2.
    tol : float, default=1e-4
        The relative duality gap at which a fit ends.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    class_weight : dict or 'balanced', default=None
        Multiplies C for the rows of each class.
    random_state : int, RandomState instance or None, default=None
        Seed of solvers that draw lots.
    solver : str or Solver, default='auto'
        How the problem is solved; see ``maxmargin.linear``.  scikit-learn's names ('lbfgs',
        'saga', ...) are refused.
    max_iter : int, default=1000
        The most iterations of the solver.
    verbose : bool, default=False
        Whether to show the progress of the fit.
    warm_start : bool, default=False
        Whether ``fit`` begins at the last solution.
    n_jobs : int or None, default=None
        Threads; None is what scikit-learn's threaded estimators would use.
    gap_tol : float or None, default=None
        The same as ``tol``, under the name that it has everywhere; it wins when both are given.
    time_limit : float or None, default=None
        Seconds after which the fit ends with the model as it stands.
    dtype : {'float32', 'float64'}, type or None, default=None
        The type that the rows are converted to; None keeps these two and converts others to
        float64.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights.
    intercept_ : array of shape (1,) or (n_classes,)
        The intercepts.
    classes_ : array of shape (n_classes,)
        The labels.
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
    LinearClassifier : Any loss and penalty.

    Examples
    --------
    >>> from maxmargin import LogisticRegression
    >>> X = [[-1, -1], [-2, -1], [1, 1], [2, 1]]
    >>> LogisticRegression().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_PARAMETERS,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions({*FOREIGN, *SHARED_PARAMETERS["solver"][0].options}), Solver],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        solver: Any = "auto",
        max_iter: int = 1000,
        verbose: Any = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        gap_tol: float | None = None,
        time_limit: float | None = None,
        dtype: Any = None,
    ):
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.gap_tol = gap_tol
        self.time_limit = time_limit
        self.dtype = dtype

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each row: a weight of 2 is a row given twice, a weight of 0 or less a
            row left out.

        Returns
        -------
        LogisticRegression
            The machine itself.
        """
        check_solver_name(self.solver)
        penalty = L2() if self.l1_ratio == 0 else ElasticNet(self.l1_ratio)
        penalty = L1() if self.l1_ratio == 1 else penalty
        data = self._data(X, y, sample_weight, 1.0 if self.fit_intercept else 0.0)
        labels = self._labels(data, y)
        return self._fit_problems(
            data, labels, self._all_together(data, labels, self.C, penalty, len(labels) > 2)
        )

    def _all_together(
        self, data: Data, labels: Labels, C: float, penalty: Penalty, many: bool
    ) -> list[LinearProblem]:
        if not many:
            return self._against_the_rest(data, labels, C, Logistic(), penalty, True)
        price = C * data.weights * labels.class_weight[labels.index]
        k = len(labels)
        return [linear_problem(data, labels.index, price, Softmax(), penalty, True, k)]

    def _likelihood(self) -> Loss:
        return Logistic() if len(getattr(self, "classes_", ())) <= 2 else Softmax()
