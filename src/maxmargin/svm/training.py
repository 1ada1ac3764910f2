"""From quadratic problems to what a fitted machine says of its training.

A machine is a list of `Task`, one quadratic problem each, solved one after the other under one
monitor; what came out of each is kept as a `Subproblem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin.exceptions import warn
from maxmargin.kernels import Linear, native, on_matrix
from maxmargin.problem import Floats, Indices, Problem
from maxmargin.solution import Outcome, Solution
from maxmargin.solve import SPARE, cache_megabytes, iteration_limit, solve, step_cost
from maxmargin.strategies import choose
from maxmargin.svm.inputs import Samples, is_precomputed, spread_of_scales, takes_arrays

SEVERITY = list(Outcome)
"""Outcomes from the best to the worst."""


@dataclass(frozen=True)
class Task:
    """A quadratic problem to be solved, and what it is about.

    Attributes
    ----------
    problem : Problem
    samples : Samples
    part : array or None
        The samples that are the problem's items, None for all.
    classes : tuple
        The labels that it separates, the positive one first; empty where there are none.
    sign : float
        -1 where the model turns the problem's solution around (two classes: the problem's positive
        class is the first, as in LIBSVM, the model's is the second, as in scikit-learn).
    scale : float
        The objective that the machine is known by is ``scale`` times the problem's.
    """

    problem: Problem
    samples: Samples
    part: Indices | None = None
    classes: tuple[Any, ...] = ()
    sign: float = 1.0
    scale: float = 1.0

    @property
    def rows(self) -> Indices:
        """Where the items stand in the data that ``fit`` was given."""
        return self.samples.rows if self.part is None else self.samples.rows[self.part]

    @property
    def items(self) -> Any:
        """The items: a packed copy of a part is made when it is asked for, and not kept."""
        items = self.samples.items
        return items if self.part is None else items.subset(self.part)


@dataclass(frozen=True)
class Subproblem:
    """What became of one quadratic problem.

    Attributes
    ----------
    coefficients : array
        The problem's variables, as the solver left them.
    objective : float
        The primal objective: the optimum lies in [objective - gap, objective].
    gap, violation : float
    status : str
        A sentence that says how the solver ended.
    iterations : int
    rows : array
        Where the problem's items stand in the data that ``fit`` was given.
    classes : tuple
        The labels that it separates, the positive one first; empty where there are none.
    sign, divisor : float
        The model uses sign * coefficients / divisor.
    rho, rho_interval, certificate_rho : array
        The multipliers of the problem's sums: those of the model, the interval that the optimality
        conditions allow, and those at which the gap is smallest.
    """

    coefficients: Floats = field(repr=False)
    objective: float
    gap: float
    violation: float
    status: str
    iterations: int
    rows: Indices = field(repr=False)
    classes: tuple[Any, ...]
    sign: float
    rho: Floats = field(repr=False)
    rho_interval: Floats = field(repr=False)
    certificate_rho: Floats = field(repr=False)
    divisor: float = 1.0


def subproblem(task: Task, solution: Solution, divisor: float = 1.0) -> Subproblem:
    """What to keep of a solution."""
    return Subproblem(
        coefficients=solution.coefficients,
        objective=task.scale * solution.primal,
        gap=task.scale * solution.gap,
        violation=solution.violation,
        status=solution.status,
        iterations=solution.iterations,
        rows=task.rows,
        classes=task.classes,
        sign=task.sign,
        rho=solution.rho,
        rho_interval=solution.rho_interval,
        certificate_rho=solution.certificate_rho,
        divisor=divisor,
    )


def report(
    tasks: Sequence[Task],
    solutions: Sequence[Solution | None],
    divisors: Sequence[float] | None = None,
) -> dict[str, Any]:
    """The fitted attributes that say how well the problems were solved.

    The model uses the solutions divided by ``divisors``, where these are given.
    """
    each = zip(tasks, solutions, divisors or [1.0] * len(tasks), strict=True)
    done = [(task, s, divisor) for task, s, divisor in each if s is not None]
    worst = max((s for _, s, _ in done), key=lambda s: (SEVERITY.index(s.outcome), s.gap))
    subproblems = [subproblem(*each) for each in done]
    return {
        "objective_": float(sum(each.objective for each in subproblems)),
        "dual_gap_": float(sum(each.gap for each in subproblems)),
        "status_": worst.status,
        "fit_status_": int(any(not s.converged for _, s, _ in done)),
        "subproblems_": subproblems,
    }


def starts(estimator: Any, tasks: Sequence[Task]) -> list[Floats | None]:
    """Where ``warm_start`` begins: at the last solution, if it is one of problems like these."""
    old = getattr(estimator, "subproblems_", None) if estimator.warm_start else None
    if old is None:
        return [None] * len(tasks)
    alike = len(old) == len(tasks) and all(
        len(before.coefficients) == len(task.problem)
        and np.array_equal(before.classes, task.classes)
        for before, task in zip(old, tasks, strict=True)
    )
    if not alike:
        warn(
            "warm_start=True, but the last fit had another number of rows or other classes: "
            "this one begins from zero.",
            UserWarning,
        )
        return [None] * len(tasks)
    return [before.coefficients for before in old]


def run(
    tasks: Sequence[Task], options: dict[str, Any], monitor: Any, start: Sequence[Any]
) -> list[Solution]:
    """Solve the problems, one after the other; they share the default limit on iterations."""
    options = limited(options, tasks)
    tasks, options = sharing_rows(tasks, options)  # Ctrl-C ends this at once: there is no model yet
    with np.errstate(over="ignore", invalid="ignore"):  # the solver refuses what is not finite
        return [
            solve(
                task.problem, task.items, **options, start=start[i], monitor=monitor.subproblem(i)
            )
            for i, task in enumerate(tasks)
        ]


def limited(
    options: dict[str, Any], tasks: Sequence[Task], more: Sequence[int] = ()
) -> dict[str, Any]:
    """The options with a limit on iterations.

    The default limit is shared by the tasks and by further problems, whose updates cost ``more``.
    """
    if options["max_iter"] >= 0:
        return options
    n_items = max(len(task.samples.rows) for task in tasks)
    costs = step_costs(options, tasks)
    return options | {"max_iter": iteration_limit(n_items, [*costs, *more])}


def step_costs(options: dict[str, Any], tasks: Sequence[Task]) -> list[int]:
    """What an update of each problem costs with the strategy that the options name."""
    return [
        step_cost(choose(options["strategy"], each.problem), each.problem, each.samples.items)
        for each in tasks
    ]


def sharing_rows(
    tasks: Sequence[Task], options: dict[str, Any]
) -> tuple[Sequence[Task], dict[str, Any]]:
    """The same tasks on one kernel matrix, where that saves work and fits the cache.

    A row of the matrix knows neither labels nor bounds, so that all problems on the same samples
    may read it.  Alone, each computes at most the square of its own items: together that is twice
    the whole matrix for one against one, and as often as there are classes for one against the
    rest.  A matrix that is large has to be shared by more than two, or filling memory costs more.
    """
    samples = tasks[0].samples
    n = len(samples.items)
    megabytes, whole = cache_megabytes(n, options["cache_size"]), 8.0 * n**2 / 2**20
    work = sum(len(task.rows) ** 2 for task in tasks) / max(n, 1) ** 2
    pays = (work > 3 and n <= 8192) or (work > 1.2 and n <= 4096)
    keeps_weights = isinstance(samples.kernel.kernel, Linear) and options["strategy"] != "auto"
    items = native(samples.items)  # a function of the user's is called here, once
    if is_precomputed(samples.kernel.kernel) or not takes_arrays(samples.kernel.kernel):
        shared = replace(samples, items=items)
        return [replace(task, samples=shared) for task in tasks], options
    if not pays or whole + SPARE > megabytes or keeps_weights:
        return tasks, options
    shared = replace(samples, items=on_matrix(items, options["n_jobs"]))
    rest = {"cache_size": megabytes - whole}
    return [replace(task, samples=shared) for task in tasks], options | rest


# ------------------------------------------------------------------ what the user has to know


def warn_of_early_end(
    estimator: Any, solutions: Sequence[Solution], further: Sequence[Solution] = ()
) -> None:
    """Say that a fit ended early, how good its model is, and what to do.

    The ``further`` problems are those that its probabilities were calibrated with.
    """
    worst = max((s.outcome for s in solutions), key=SEVERITY.index)
    far = [s.relative_gap for s in solutions if s.outcome is Outcome.ROUNDING and not s.is_zero]
    if max(far, default=0.0) > NEAR:
        warn(
            f"Rounding ended the fit at a duality gap of {max(far):.1e} of the objective: the "
            "coefficients are too large for float64. Use a smaller C, scale the features, or "
            "remove duplicates with different targets.",
            ConvergenceWarning,
        )
    loose = [s.relative_gap for s in solutions if s.proves_little]
    if loose:
        known = f"its duality gap may still be {max(loose):.1g} of the objective"
        warn(
            f"The fit met tol, but {known if np.isfinite(max(loose)) else 'no gap is known'}: "
            "with these parameters (a very large C, a very small nu) tol says little. Set gap_tol "
            "(1e-3, say), which then decides, or scale the features.",
            ConvergenceWarning,
        )
    if worst.finished:
        stopped = [s.outcome.value for s in further if not s.outcome.verified]
        if stopped:
            warn(
                f"The fit was {stopped[0]} while its probabilities were calibrated: they are not "
                "to be relied on, the model is.",
                ConvergenceWarning,
            )
        return
    gap = sum(s.gap for s in solutions)
    value = sum(s.primal for s in solutions)
    so_far = "No duality gap is known."
    if np.isfinite(gap):
        so_far = f"The duality gap is {gap:.3g}, the objective {value:.6g}."
    go_on = "Fit again to go on from here"
    if not estimator.warm_start:
        go_on = "Set warm_start=True before and fit again to go on"
    if worst is Outcome.MAX_ITER:
        limit = estimator.max_iter
        limit = limit if limit >= 0 else max(s.iterations for s in solutions)
        advice = (
            f"Solver terminated early (max_iter={limit}).  Consider pre-processing your data with "
            f"StandardScaler or MinMaxScaler. {so_far} {go_on}, or raise max_iter."
        )
    elif worst is Outcome.TIME_LIMIT:
        advice = (
            f"Solver stopped after {estimator.time_limit} s (time_limit). {so_far} {go_on}, or "
            "raise time_limit."
        )
    else:
        advice = f"Solver {worst.value}. {so_far} {go_on}."
    warn(advice, ConvergenceWarning)


NEAR = 1e-6
"""A relative gap at which nobody minds that rounding ended the fit before `tol`."""

SLOW = 2e8
"""Iterations times variables of a fit that makes its user wait, about half a second."""


def warn_of_scales(samples: Samples, tasks: Sequence[Task], solutions: Sequence[Solution]) -> None:
    """Name the usual reason of a slow fit: features on very different scales."""
    work = sum(s.iterations * len(t.problem) for t, s in zip(tasks, solutions, strict=True))
    most = max(s.iterations / len(t.problem) for t, s in zip(tasks, solutions, strict=True))
    if work < SLOW or most < 50 or not takes_arrays(samples.kernel.kernel):
        return
    if is_precomputed(samples.kernel.kernel):
        return
    low, high = spread_of_scales(samples.X)
    if high > 30 * low or high > 300:
        warn(
            f"The fit took {max(s.iterations for s in solutions)} iterations: the features' scales "
            f"reach from {low:.2g} to {high:.2g}. Scale them first, for example with "
            "make_pipeline(StandardScaler(), ...).",
            ConvergenceWarning,
        )
