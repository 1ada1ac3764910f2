"""What all linear machines share: parameters, input, solving, what a fit says of itself.

A machine's ``fit`` reads: take the data, write down the problems, solve them, keep the weights::

    data = self._data(X, y, sample_weight)
    problems = [self._problem(data, ...)]
    return self._train(data, problems, lambda solutions: ...the fitted attributes...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from maxmargin._compat import CallbackSupportMixin, Interval, Options, StrOptions, align_sparse
from maxmargin.io import RowBlocks
from maxmargin.linear.blocks import BlockDesign
from maxmargin.linear.choose import SOLVERS, choose
from maxmargin.linear.losses import Loss
from maxmargin.linear.penalties import Penalty
from maxmargin.linear.problem import Design, LinearProblem
from maxmargin.linear.solver import LinearSolution, Progress, Solver, is_small
from maxmargin.monitor import session
from maxmargin.pickles import Versioned
from maxmargin.problem import Floats
from maxmargin.svm import inputs
from maxmargin.svm.training import SEVERITY, warn_of_early_end

Attributes = dict[str, Any]

FOREIGN = (
    "cholesky",
    "lbfgs",
    "liblinear",
    "lsqr",
    "newton-cg",
    "newton-cholesky",
    "sag",
    "saga",
    "sparse_cg",
    "svd",
)
"""scikit-learn's solvers, where ``solver`` names ours."""

SHARED_PARAMETERS: dict[str, list[Any]] = {
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "solver": [StrOptions({"auto", *SOLVERS}), Solver],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "time_limit": [Interval(Real, 0.0, None, closed="left"), None],
    "warm_start": ["boolean"],
    "dtype": [StrOptions({"float32", "float64"}), Options(type, {np.float32, np.float64}), None],
}

DETERMINISTIC_PARAMETERS = {
    name: SHARED_PARAMETERS[name]
    for name in SHARED_PARAMETERS
    if name not in ("solver", "random_state")
}
"""Those of machines with one solver, which draws no lots."""


@dataclass(frozen=True)
class Data:
    """The training data as the solvers see them: only rows of positive weight.

    Attributes
    ----------
    design : Design or BlockDesign
    y : array
        Their targets as given.
    weights : array of shape (n,)
    given : dict
        X, y and metadata as the user gave them, for callbacks.
    """

    design: Any
    y: Any
    weights: Floats
    given: dict[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return self.design.n_rows


class LinearMachine(Versioned, CallbackSupportMixin, BaseEstimator):
    """A model f(x) = w.x + b, trained by a loss and a penalty; its subclasses say which."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARED_PARAMETERS

    tol: float
    gap_tol: float | None
    max_iter: int
    solver: Any
    verbose: Any
    random_state: Any = None
    n_jobs: int | None
    time_limit: float | None
    warm_start: bool
    dtype: Any

    coef_: Any
    intercept_: Any
    n_features_in_: int

    # -------------------------------------------------------------- training

    def _data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        bias: float,
        multi_output: bool = False,
    ) -> Data:
        """Validate, drop rows without weight, and make the rows ready, with a constant feature."""
        given = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        if isinstance(X, RowBlocks):
            return self._data_in_blocks(X, y, sample_weight, bias, given)
        X, y = self._validated(X, y, multi_output)
        weights, rows = inputs.positive_weights(sample_weight, X.shape[0])
        if len(rows) < X.shape[0]:
            X, y = X[rows], None if y is None else y[rows]
        return Data(Design(X, bias, self.n_jobs), y, weights, given)

    def _data_in_blocks(
        self, X: RowBlocks, y: Any, sample_weight: Any, bias: float, given: dict[str, Any]
    ) -> Data:
        """The same for rows that are read as they are needed."""
        if y is None:
            raise ValueError("y: the targets of the rows are needed, as open_svmlight gives them.")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        weights, rows = inputs.positive_weights(sample_weight, len(X))
        self.n_features_in_ = X.shape[1]
        vars(self).pop("feature_names_in_", None)
        if len(rows) < len(X):
            design = BlockDesign(X, rows, bias, self.n_jobs)
            return Data(design, y[rows], weights, given)
        return Data(BlockDesign(X, None, bias, self.n_jobs), y, weights, given)

    def _validated(self, X: Any, y: Any, multi_output: bool) -> tuple[Any, Any]:
        """X as a C-ordered array or a canonical CSR matrix, float32 or float64."""
        dtype: Any = [np.float64, np.float32] if self.dtype is None else np.dtype(self.dtype)
        options: dict[str, Any] = {
            "accept_sparse": "csr",
            "accept_large_sparse": True,
            "dtype": dtype,
            "order": "C",
        }
        if y is None and not get_tags(self).target_tags.required:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, **options | {"y": y, "multi_output": multi_output})
            if not multi_output:
                y = column_or_1d(y, warn=True)
        inputs.check_magnitude(X)
        return (inputs.canonical(align_sparse(X)) if sp.issparse(X) else X), y

    def _train(
        self,
        data: Data,
        problems: Sequence[LinearProblem],
        attributes: Callable[[Sequence[LinearSolution]], Attributes],
        starts: Sequence[Floats | None] | None = None,
    ) -> Any:
        """Solve the problems, store the model and warn of an early end."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        solver = self._solver(problems[0])
        polish = solver.fast_at_the_end and is_small(problems[0])
        gap_tol = self.tol if self.gap_tol is None else self.gap_tol
        starts = starts if starts is not None else [None] * len(problems)

        def everything(solutions: Sequence[Any]) -> Attributes:
            known = [
                unsolved(problem, gap_tol) if solution is None else solution
                for problem, solution in zip(problems, solutions, strict=True)
            ]
            return attributes(known) | report(known)

        with session(
            self,
            **data.given,
            n_subproblems=len(problems),
            time_limit=self.time_limit,
            verbose=self.verbose,
            attributes=everything,
        ) as monitor:
            each = [
                Progress(problem, gap_tol, self.max_iter, monitor.subproblem(i), polish)
                for i, problem in enumerate(problems)
            ]
            with np.errstate(over="ignore", invalid="ignore"):
                solutions = solver.solve_all(each, starts, seed)
            vars(self).update(everything(solutions))
        warn_of_early_end(self, solutions)  # type: ignore[arg-type]
        return self

    def _solver(self, problem: LinearProblem) -> Solver:
        """The solver to use for a problem."""
        return choose(self.solver, problem)

    def _start(self, data: Data) -> Floats | None:
        """Where ``warm_start`` begins, for machines of one problem without an intercept."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        last = np.asarray(self.coef_, dtype=np.float64)
        return last[0].copy() if last.shape == (1, data.design.n_features) else None

    # -------------------------------------------------------------- prediction

    def _scores(self, X: Any) -> Floats:
        """X w + b, of shape (n, n_scores) or (n,) as coef_ says."""
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            return np.concatenate([self._scores(block) for _, block in X.blocks()])
        if not self._is_plain(X):
            X = validate_data(
                self,
                X,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=[np.float64, np.float32],
                reset=False,
            )
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_

    def _is_plain(self, X: Any) -> bool:
        """Whether X is all that validation could make of it: then a row is predicted at once."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and isfinite(X.sum())
        )

    def densify(self) -> Any:
        """Make ``coef_`` an ordinary array."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def sparsify(self) -> Any:
        """Make ``coef_`` a sparse matrix, which pays where most weights are zero."""
        check_is_fitted(self)
        self.coef_ = align_sparse(sp.csr_array(self.coef_))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_solver_name(solver: Any) -> None:
    """Refuse scikit-learn's names for its solvers."""
    if isinstance(solver, str) and solver in FOREIGN:
        raise ValueError(
            f"solver={solver!r} is one of scikit-learn's; here solver is 'auto' (the "
            f"default) or one of {sorted(SOLVERS)}."
        )


def unsolved(problem: LinearProblem, gap_tol: float) -> LinearSolution:
    """What is known of a problem that no solver has begun: the point zero."""
    progress = Progress(problem, gap_tol, 0)
    w = np.zeros(problem.shape)
    z = problem.design.scores(w)
    progress.ends(w, z, problem.slopes(z), 0)
    return progress.solution()


def report(solutions: Sequence[LinearSolution]) -> Attributes:
    """The fitted attributes that say how well the problems were solved."""
    worst = max(solutions, key=lambda s: (SEVERITY.index(s.outcome), s.relative_gap))
    return {
        "objective_": float(sum(s.primal for s in solutions)),
        "dual_gap_": float(sum(s.gap for s in solutions)),
        "status_": worst.status,
        "fit_status_": int(any(not s.converged for s in solutions)),
        "n_iter_": max(max(s.iterations for s in solutions), 1),
    }


def split(weights: Floats, design: Any) -> tuple[Floats, Floats]:
    """The weights of the features, and the intercept that the constant feature makes."""
    if design.bias == 0:
        return weights, np.zeros(weights.shape[1:])
    return weights[:-1], design.bias * weights[-1]


def linear_problem(
    data: Data, y: Any, price: Floats, loss: Loss, penalty: Penalty, free: bool, n_scores: int = 1
) -> LinearProblem:
    """A problem on these data; a free constant needs one."""
    return LinearProblem(
        data.design, y, price, loss, penalty, free and data.design.bias != 0, n_scores
    )
