"""The engine: solve a quadratic problem natively, and prove how well.

Here the arguments become an engine; ``run`` lets it work until its answer proves what was asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import _core, strategies
from maxmargin.direct import solve_least_squares
from maxmargin.feasible import feasible_start, project
from maxmargin.kernels import native, on_matrix
from maxmargin.problem import Floats, Problem
from maxmargin.projected_gradient import ProjectedGradient
from maxmargin.run import EPSILON, Engine, Run, scores_of
from maxmargin.solution import Accuracy, Solution
from maxmargin.threads import effective_threads


def solve(
    problem: Problem,
    items: Any,
    strategy: Any = "auto",
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    cache_size: float | str = "auto",
    shrinking: bool = True,
    n_jobs: int | None = None,
    start: ArrayLike | None = None,
    random_state: int = 0,
    monitor: Any = None,
    polish: bool = True,
) -> Solution:
    """Solve a quadratic problem.

    Parameters
    ----------
    problem : Problem
        What to solve: see ``maxmargin.problem``.
    items : Items or array of shape (n, n)
        Prepared data (``RBF(gamma=1).fit(X).prepare(X)``) or a Gram matrix.
    strategy : str or Strategy, default="auto"
        The working set: see ``maxmargin.strategies``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left, in the problem's ``unit``.
    gap_tol : float, optional
        Alone decides when given: duality gap <= gap_tol * max(|primal|, |dual|).
    max_iter : int, default=-1
        Limit on the updates; -1 is a generous one.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel rows; "auto" is what all of them need, at most a quarter of the memory.
    shrinking : bool, default=True
        Whether variables that have settled at a bound may be left out for a while.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    start : array of shape (m,), optional
        Coefficients to begin from, projected when they are not feasible.
    random_state : int, default=0
        Seed of the strategies that draw lots.
    monitor : Subproblem, optional
        Who is told, and may stop: see ``maxmargin.monitor``.
    polish : bool, default=True
        Whether a converged solution with few free variables is made exact, by solving its
        equations.

    Returns
    -------
    Solution

    Raises
    ------
    NotSeparableError
        When a hard margin is asked of data that have none.
    ValueError
        When the strategy does not suit the problem, or kernel values are not finite.
    """
    items = native(items)
    if len(items) != problem.n_items:
        raise ValueError(f"the problem has {problem.n_items} items, the data have {len(items)}.")
    n_threads = effective_threads(n_jobs)
    megabytes = cache_megabytes(problem.n_items, cache_size)
    if problem.is_linear_system:
        if strategy != "auto":
            raise ValueError(
                "least squares is solved as a system of equations: working_set must be 'auto'."
            )
        return solve_least_squares(
            [problem],
            items,
            tol=tol,
            gap_tol=gap_tol,
            max_iter=max_iter,
            memory=megabytes * 2**20,
            n_threads=n_threads,
            starts=None if start is None else [start],
            monitors=None if monitor is None else [monitor],
        )[0]
    chosen = strategies.choose(strategy, problem)
    whole = 8.0 * problem.n_items**2 / 2**20
    if chosen.computes_anew and whole + SPARE <= megabytes and problem.n_items <= 8192:
        items = on_matrix(items, n_threads)
        megabytes -= whole
    begin = feasible_start(problem) if start is None else project(problem, start)
    scores = scores_of(problem, items, begin, n_threads)
    if isinstance(chosen, strategies.Gradient):
        engine: Engine = ProjectedGradient(problem, items, chosen, begin, scores, n_threads)
    else:
        engine = _native(
            problem, items, chosen, begin, scores, megabytes, shrinking, n_threads, random_state
        )
    limit = max_iter
    if max_iter < 0:
        limit = iteration_limit(problem.n_items, [step_cost(chosen, problem, items)])
    asked = Accuracy(tol * problem.unit, gap_tol, _zero(problem, items))
    run = Run(problem, items, engine, asked, limit, n_threads, monitor)
    return run.to_the_end(polish)


def _zero(problem: Problem, items: Any) -> float | None:
    """What rounding makes of a squared distance of zero; None where the objective is none.

    The products that the objective adds up, c_i c_j K_ij, come to (sum |c|)^2 max K at most.
    """
    if not problem.is_distance:
        return None
    with np.errstate(over="ignore"):
        products = np.abs(problem.target).sum() ** 2 * items.diagonal().max(initial=0.0)
    return 64 * EPSILON * float(products)


def cache_megabytes(n_items: int, cache_size: float | str) -> float:
    """Megabytes for kernel rows."""
    if cache_size != "auto":
        return float(cache_size)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(8.0 * n_items**2 / 2**20 + SPARE, memory / 4 / 2**20)


SPARE = 1.0
"""Megabytes beside a whole kernel matrix, for the rows of it that are in use."""


def step_cost(strategy: strategies.Strategy, problem: Problem, items: Any) -> int:
    """What an update costs: see ``Strategy.step_cost``."""
    product = items.product_cost if isinstance(items, _core.Items) else 0
    return strategy.step_cost(problem, len(problem), product)


def iteration_limit(n_items: int, costs: Iterable[int]) -> int:
    """The limit on the updates of each of several problems, where none is given.

    An update looks at so many numbers (``Strategy.step_cost``), and takes as long again as 500
    more.  Together the problems may look at 5 * 10^9, which takes some ten seconds: what up to 2000
    items may cost, whatever the parameters. More items may cost more.
    """
    visits = sum(cost + 500 for cost in costs)
    return int(5e9 * max(1.0, n_items / 2000) ** 2) // max(visits, 1)


def _native(
    problem: Problem,
    items: Any,
    strategy: strategies.Strategy,
    start: Floats,
    scores: Floats,
    megabytes: float,
    shrinking: bool,
    n_threads: int,
    seed: int,
) -> Engine:
    solver = _core.Solver(
        items=items,
        linear=problem.linear,
        lower=problem.lower,
        upper=problem.upper,
        ridge=problem.ridge,
        item=problem.item,
        channel=problem.channel,
        group=problem.group,
        minus=problem.minus,
        n_groups=len(problem.target),
        coefficients=start,
        scores=scores,
        strategy=_specification(strategy),
        cache_bytes=megabytes * 2**20,
        shrinking=shrinking,
        n_threads=n_threads,
        seed=seed,
    )
    return cast(Engine, solver)  # its stub does not know what arrays hold


def _specification(strategy: strategies.Strategy) -> tuple[str, int, bool, Any]:
    if isinstance(strategy, strategies.Block):
        inner = _specification(strategies.named(strategy.inner))
        return strategy.name, strategy.size, strategy.growing, inner
    return strategy.name, 0, False, None
