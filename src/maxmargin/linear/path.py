"""Regularisation paths: the solutions of a linear machine for many C.

They are solved from the smallest C upwards, each from the solution before.  For penalties with a
kink at zero the path begins at the largest C for which all weights are zero: with c = C c1 the
coefficients of w = 0 and the best intercept, w = 0 is optimal as long as X'c is within the reach of
the penalty, which the dual norm of X'c1 decides in closed form.  The coordinate solver shares one
copy of the columns, and leaves out what the gap of the last solution excludes (the sequential
gap-safe rule: Ndiaye, Fercoq, Gramfort and Salmon 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from maxmargin.linear import coordinate_newton
from maxmargin.linear.base import Attributes, Data, LinearMachine
from maxmargin.linear.choose import choose
from maxmargin.linear.coordinate_newton import CoordinateNewton
from maxmargin.linear.newton import root
from maxmargin.linear.penalties import L2, ElasticNet
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import LinearSolution, Progress, Solver, interruptible
from maxmargin.monitor import session
from maxmargin.problem import Floats
from maxmargin.svm.training import warn_of_early_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NARROW = 1e-3
"""The width over which kinks of a loss are rounded to find the best intercept."""


@dataclass(frozen=True)
class RegularizationPath:
    """The solutions for a sequence of C.

    Attributes
    ----------
    Cs : array of shape (n_C,)
        Ascending.  Fewer than were asked for where the fit was stopped.
    coefs : array of shape (n_C, ...)
        ``coef_`` of each fit.
    intercepts : array of shape (n_C, ...)
        ``intercept_`` of each fit.
    objectives, dual_gaps : array of shape (n_C,)
        ``objective_`` and ``dual_gap_`` of each fit: its optimum lies in
        [objective - dual gap, objective].
    n_nonzero : array of shape (n_C,)
        How many weights are not zero.
    train_scores : array of shape (n_C,) or None
        The estimator's score on the training data, if it was asked for.
    """

    Cs: Floats
    coefs: Floats
    intercepts: Floats
    objectives: Floats
    dual_gaps: Floats
    n_nonzero: Any
    train_scores: Floats | None = None

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each weight against C.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            ax = _new_axes()
        weights = self.coefs.reshape(len(self.Cs), -1)
        ever = (weights != 0).any(axis=0)
        ax.plot(self.Cs, weights[:, ever], linewidth=1)
        ax.set_xscale("log")
        ax.set_xlabel("C")
        ax.set_ylabel("weights")
        ax.set_title(f"{np.count_nonzero(ever)} of {weights.shape[1]} weights are ever nonzero")
        return ax


def regularization_path(
    estimator: LinearMachine,
    X: Any,
    y: Any,
    Cs: int | Sequence[float] = 50,
    *,
    ratio: float | None = None,
    sample_weight: Any = None,
    score: bool = False,
) -> RegularizationPath:
    """The solutions of a linear machine for many C, each the start of the next.

    Parameters
    ----------
    estimator : linear estimator with a parameter ``C``
        It is cloned; its own C does not matter.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training rows.
    y : array-like of shape (n_samples,)
        Their targets.
    Cs : int or sequence of positive numbers, default=50
        How many values of C, or which.  A number makes a geometric sequence.  For 'l1',
        'elasticnet' and groups it begins where the first weight is about to leave zero (for losses
        with a kink: not after that); for 'l2' at the inverse of the largest possible curvature of
        the losses, the sum of |x_i|^2 times their smoothness.
    ratio : float, default=None
        The largest C over the smallest, for a number of Cs; None is 1000, for 'l2' a million.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, as in ``fit``.
    score : bool, default=False
        Whether to compute the score on the training data for each C.

    Returns
    -------
    RegularizationPath
        Weights, intercepts, objectives and gaps for each C.

    Examples
    --------
    >>> from maxmargin import LinearRegressor, regularization_path
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 3.0]], [0.0, 1.0, 2.1, 2.9]
    >>> path = regularization_path(LinearRegressor(penalty="l1"), X, y, Cs=5)
    >>> path.n_nonzero[[0, -1]]
    array([0, 2])
    """
    if not isinstance(estimator, LinearMachine) or "C" not in estimator.get_params():
        raise ValueError(
            f"estimator must be a linear machine with a parameter C, such as LinearClassifier or "
            f"LinearRegressor; got {estimator!r}."
        )
    machine, data, problems, attributes = _unsolved(estimator, X, y, sample_weight)
    grid = _grid(problems, Cs, ratio)
    solver = choose(machine.solver, problems[0])
    seed = int(check_random_state(machine.random_state).randint(2**31 - 1))
    gap_tol = machine.tol if machine.gap_tol is None else machine.gap_tol
    with session(
        machine,
        **data.given,
        n_subproblems=len(grid) * len(problems),
        time_limit=machine.time_limit,
        verbose=machine.verbose,
    ) as monitor:

        def progress(at: int, problem: LinearProblem) -> Progress:
            return Progress(problem, gap_tol, machine.max_iter, monitor.subproblem(at))

        solved = []
        for solutions in path_of_problems(
            lambda C: [replace(p, price=C * p.price) for p in problems],
            grid,
            solver,
            progress,
            seed,
            [nothing(p)[0] for p in problems],
        ):
            solved.append(solutions)
            if monitor.reason is not None:
                break
    warn_of_early_end(machine, [s for each in solved for s in each])  # type: ignore[arg-type]
    models = [attributes(solutions) for solutions in solved]
    coefs = np.stack([model["coef_"] for model in models])
    scores = None
    if score:
        scores = np.empty(len(models))
        for i, model in enumerate(models):
            vars(machine).update(model)
            scores[i] = machine.score(X, y, sample_weight)  # type: ignore[attr-defined]
    return RegularizationPath(
        Cs=grid[: len(models)],
        coefs=coefs,
        intercepts=np.stack([np.asarray(model["intercept_"]) for model in models]),
        objectives=np.array([sum(s.primal for s in each) for each in solved]),
        dual_gaps=np.array([sum(s.gap for s in each) for each in solved]),
        n_nonzero=np.count_nonzero(coefs.reshape(len(coefs), -1), axis=1),
        train_scores=scores,
    )


def path_of_problems(
    problems_at: Callable[[float], Sequence[LinearProblem]],
    Cs: Floats,
    solver: Solver,
    progress: Callable[[int, LinearProblem], Progress],
    seed: int,
    starts: Sequence[Floats | None],
) -> Iterator[list[LinearSolution]]:
    """Solve the problems of each C, from the solutions of the C before.

    Parameters
    ----------
    problems_at : callable
        Gives the problems of a C; all on the same design.
    Cs : array
        Ascending.
    solver : Solver
    progress : callable
        Makes the Progress of a problem from its number and itself.
    seed : int
    starts : sequence of arrays or None
        Where the problems of the first C begin.

    Yields
    ------
    list of LinearSolution
        For each C.
    """
    columns = None
    for at, C in enumerate(Cs):
        problems = problems_at(float(C))
        each = [progress(at * len(problems) + i, p) for i, p in enumerate(problems)]
        if isinstance(solver, CoordinateNewton):
            if columns is None:
                columns = coordinate_newton.columns(problems[0].design)
            solve = _on(solver, columns)
            answers = []
            for one, start in zip(each, starts, strict=True):
                interruptible(solve, one, start, seed)
                answers.append(one.finish())
        else:
            answers = solver.solve_all(each, starts, seed)
        starts = [answer.weights for answer in answers]
        yield answers


def _on(solver: CoordinateNewton, columns: Any) -> Callable[..., None]:
    def solve(progress: Progress, start: Floats | None, seed: int) -> None:
        solver.solve_on(columns, progress, start, seed)

    return solve


def smallest_C(problem: LinearProblem) -> float:
    """Up to which factor of its prices all weights of a problem are zero (0 for 'l2').

    For a loss with a kink: a factor up to which they are.
    """
    penalty = problem.penalty
    if penalty == L2() or (isinstance(penalty, ElasticNet) and penalty.l1_ratio == 0):
        return 0.0
    v = problem.penalised(problem.design.combine(problem.balanced(nothing(problem)[1])))
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0:
        return np.inf
    if isinstance(penalty, ElasticNet):
        return penalty.l1_ratio / largest
    # Within reach for v itself or a multiple of it that is not.
    far = 1e3 * np.sqrt(v.size) / largest
    return penalty.reach(far * v) * far


def nothing(problem: LinearProblem) -> tuple[Floats, Floats]:
    """No weights but the best intercept, and the coefficients c that it calls for.

    (For a loss with a kink, of its smooth stand-in.)
    """
    n = problem.design.n_rows
    w = np.zeros(problem.shape)
    smooth = replace(problem, loss=problem.loss.smoothed(NARROW))
    if not problem.free:
        return w, smooth.slopes(np.zeros((n, *problem.shape[1:])))
    if problem.n_scores > 1:
        shares = np.bincount(problem.y, weights=problem.price, minlength=problem.n_scores)
        w[-1] = np.log(shares / shares.sum()) / problem.design.bias
        return w, problem.slopes(problem.design.scores(w))

    def slope(b: float) -> tuple[float, float]:
        z = np.full(n, b)
        curved = problem.price @ smooth.loss.curvature(problem.y, z)
        return -float(smooth.slopes(z).sum()), float(curved)

    start = 0.0 if problem.loss.task == "classification" else float(np.median(problem.y))
    b = start + root(lambda t: slope(start + t), 0.0, both_ways=True, exact=True)
    w[-1] = b / problem.design.bias
    return w, smooth.slopes(np.full(n, b))


def _grid(problems: Sequence[LinearProblem], Cs: Any, ratio: float | None) -> Floats:
    """The values of C: as given, in ascending order, or from the smallest that is of interest."""
    if isinstance(Cs, Integral):
        if Cs < 1:
            raise ValueError(f"Cs must be at least 1, or the values of C; got {Cs!r}.")
        if ratio is not None and not ratio > 1:
            raise ValueError(f"ratio must be greater than 1; got {ratio!r}.")
        low = min(smallest_C(problem) for problem in problems)
        if low == 0:
            low, ratio = _without_curvature(problems), ratio or 1e6
        elif np.isinf(low):  # no feature says anything: any C has the same weights
            low = 1.0
        return low * np.geomspace(1.0, ratio or 1e3, int(Cs))
    if ratio is not None:
        raise ValueError("ratio is for a number of Cs; here Cs are given.")
    grid = np.sort(np.asarray(Cs, dtype=np.float64))
    if grid.ndim != 1 or len(grid) == 0 or not (np.isfinite(grid).all() and (grid > 0).all()):
        raise ValueError(f"Cs must be a number of values, or positive values of C; got {Cs!r}.")
    return grid


def _without_curvature(problems: Sequence[LinearProblem]) -> float:
    """1 over the sum of |x_i|^2, of the problem with the highest prices."""
    lengths = problems[0].design.norms()
    steepest = max(float(problem.price @ lengths) for problem in problems)
    smoothness = problems[0].loss.smoothness
    return 1 / (max(steepest, 1e-300) * (smoothness if np.isfinite(smoothness) else 1.0))


def _unsolved(
    estimator: LinearMachine, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Data, Sequence[LinearProblem], Callable[[Sequence[LinearSolution]], Attributes]]:
    """A clone, the data and the problems of its fit with C = 1, and what solutions make of it."""
    machine: Any = clone(estimator)
    machine.set_params(C=1.0)
    taken: list[Any] = []

    def take(data: Data, problems: Any, attributes: Any, starts: Any = None) -> None:
        taken.extend((data, problems, attributes))

    machine._train = take  # everything that a fit does up to where it would solve
    machine.fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    del machine._train
    return machine, *taken


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "RegularizationPath.plot draws with matplotlib, which is not installed: "
            "pip install matplotlib"
        ) from error
    return plt.subplots()[1]
