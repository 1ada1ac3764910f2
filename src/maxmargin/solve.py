"""The engine: solve a quadratic problem natively, and prove how well.

The native solver moves the coefficients and keeps the scores; everything it claims is computed here
from its answer, by the same few formulas as for the readable reference.  One kernel matrix in
float64 serves both, so that the gradient is exact but for the rounding of its sums; where that may
matter to what was asked, the scores are computed afresh before anything is claimed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import _core, strategies
from maxmargin.certificate import Certificate, certify, check_separable, is_indefinite
from maxmargin.direct import solve_least_squares
from maxmargin.feasible import feasible_start, project
from maxmargin.kernels import native
from maxmargin.polish import polish as polished
from maxmargin.problem import Floats, Problem
from maxmargin.projected_gradient import ProjectedGradient
from maxmargin.solution import Accuracy, Outcome, Solution, solution
from maxmargin.threads import effective_threads

EPSILON = float(np.finfo(np.float64).eps)
POLL_SECONDS = 0.1
SAMPLE = 100
"""Items whose kernel matrix is asked whether the kernel is positive semi-definite."""


class Engine(Protocol):
    """What a solver offers: the native one, and the projected gradient in NumPy."""

    @property
    def coefficients(self) -> Floats: ...
    @property
    def scores(self) -> Floats: ...
    @property
    def iterations(self) -> int: ...
    @property
    def violation(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def active(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def travel(self) -> float: ...
    @property
    def complete(self) -> bool: ...
    @property
    def negative_curvature(self) -> bool: ...

    def run(self, tol: float, limit: int, poll: Callable[[], bool]) -> str:
        """Go on; return 'converged', 'rounding', 'limit' or 'stopped'."""
        ...

    def look_back(self) -> None:
        """After a stop: make the scores complete, if that is quick."""
        ...

    def correct(self, scores: Floats) -> None:
        """Replace the scores by more exact ones."""
        ...


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
        Largest violation of the optimality conditions that is left.
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
        Whether a converged solution with few free variables is made exact, by one solve of its
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
    begin = feasible_start(problem) if start is None else project(problem, start)
    scores = _scores(problem, items, begin, n_threads)
    if isinstance(chosen, strategies.Gradient):
        engine: Engine = ProjectedGradient(problem, items, chosen, begin, scores, n_threads)
    else:
        engine = _native(
            problem, items, chosen, begin, scores, megabytes, shrinking, n_threads, random_state
        )
    run = _Run(problem, items, engine, Accuracy(tol, gap_tol), n_threads, monitor)
    limit = max_iter if max_iter >= 0 else iteration_limit(problem.n_items, [len(problem)])
    return run.to_the_end(limit, polish)


def cache_megabytes(n_items: int, cache_size: float | str) -> float:
    """Megabytes for kernel rows."""
    if cache_size != "auto":
        return float(cache_size)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(8.0 * n_items**2, memory / 4) / 2**20


def iteration_limit(n_items: int, sizes: Iterable[int]) -> int:
    """The limit on the updates of each of several problems, where none is given.

    An update costs a pass over the problem's variables, and as much again as 500 more. Together the
    problems may look at 5 * 10^9 variables, which takes some ten seconds: what up to 2000 items may
    cost, whatever the parameters. More items may cost more.
    """
    visits = sum(size + 500 for size in sizes)
    return int(5e9 * max(1.0, n_items / 2000) ** 2) // max(visits, 1)


def _scores(problem: Problem, items: Any, coefficients: Floats, n_threads: int) -> Floats:
    """F = K D'c from scratch."""
    spread = problem.spread(coefficients)
    used = np.flatnonzero(spread.any(axis=1))
    if len(used) == 0:
        return np.zeros_like(spread)
    return items.multiply(items.subset(used), spread[used], n_threads)


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


class _Run:
    """One run of an engine, from its start to a Solution."""

    def __init__(
        self,
        problem: Problem,
        items: Any,
        engine: Engine,
        asked: Accuracy,
        n_threads: int,
        monitor: Any,
    ):
        self.problem = problem
        self.items = items
        self.engine = engine
        self.asked = asked
        self.n_threads = n_threads
        self.monitor = monitor
        self.tol = asked.tol if asked.gap_tol is None else 0.1
        """What the engine is asked for: a gap is reached by smaller and smaller violations."""
        self.point: tuple[Floats, Floats] | None = None
        """Coefficients and scores, while the engine rests."""
        self.certificate: Certificate | None = None
        """What they prove, once somebody has asked."""

    # ---------------------------------------------------------------- the loop

    def to_the_end(self, limit: int, polish: bool) -> Solution:
        outcome = self._until_done(limit)
        if outcome is Outcome.CONVERGED and polish:
            self.point = polished(self.problem, self.items, *self._point(), self.n_threads)
            self.certificate = None
        answer = self._solution(outcome)
        if not np.isfinite(answer.gradient).all():
            if self.engine.negative_curvature:
                raise ValueError(
                    "The kernel is not positive semi-definite on these data, and without an upper "
                    "bound on the coefficients the objective has no minimum. Use another kernel, "
                    "other parameters of it, or a loss that bounds them (loss='hinge', a finite C)."
                )
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain "
                "large values and need to be preprocessed."
            )
        if self.monitor is not None:
            self.monitor.finish(_View(self, answer))
        return answer

    def _until_done(self, limit: int) -> Outcome:
        if self._poll():  # the fit is over before this problem began
            return _stop_reason(self.monitor)
        while True:
            end = self._go_on(limit)
            if end == "stopped":
                return _stop_reason(self.monitor)
            certificate = self._verified(end)
            if self._indefinite and end != "limit":
                if end == "rounding" or self.tol <= self.asked.tol:
                    return Outcome.INDEFINITE
                self.tol = self.asked.tol  # there is no gap to ask for
                continue
            if self.asked.met_by(certificate):
                return Outcome.CONVERGED
            if end == "limit":
                return Outcome.MAX_ITER
            if end == "rounding" or self.tol < 1e-14:
                return Outcome.ROUNDING
            self.tol *= self._shortfall(certificate)

    def _go_on(self, limit: int) -> str:
        """Let the engine work; a hard margin is asked from time to time whether there is one."""
        if not self.problem.is_unbounded:
            return self._engine_run(limit)
        while True:
            pause = self.engine.iterations + 10 * len(self.problem) + 1000
            end = self._engine_run(min(pause, limit))
            if end == "limit" and self.engine.iterations < limit:
                self._check_separable()
                continue
            if end != "stopped":
                self._check_separable()
            return end

    def _engine_run(self, limit: int) -> str:
        self.point = self.certificate = None
        try:
            end = self.engine.run(self.tol, limit, self._poll)
        except KeyboardInterrupt as error:
            if self.monitor is None:
                raise
            self.monitor.interrupt(error)
            end = "stopped"
        if end == "stopped":
            self.engine.look_back()
        return end

    def _poll(self) -> bool:
        return self.monitor is not None and self.monitor.poll(_View(self))

    def _shortfall(self, certificate: Certificate) -> float:
        """By how much less the violation must be."""
        if self.asked.gap_tol is None:
            return 0.5
        gap = self._solution(Outcome.CONVERGED).relative_gap
        return float(np.clip(self.asked.gap_tol / gap / 2, 1e-3, 0.5))

    # ---------------------------------------------------------------- what is claimed

    @property
    def _indefinite(self) -> bool:
        """Whether the kernel was seen not to be positive semi-definite, so that no gap holds."""
        return self.engine.negative_curvature or self._sample_indefinite

    @cached_property
    def _sample_indefinite(self) -> bool:
        n = len(self.items)
        rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
        K = self.items.tile(rows, self.items, rows)
        precision = float(np.finfo(self.items.dtype).eps)
        return is_indefinite(self.problem, K, precision)

    def _point(self) -> tuple[Floats, Floats]:
        return self.point or (self.engine.coefficients, self.engine.scores)

    def _certificate(self) -> Certificate:
        if self.certificate is not None:
            return self.certificate
        coefficients, scores = self._point()
        return certify(self.problem, coefficients, self.problem.gradient(coefficients, scores))

    def _verified(self, end: str) -> Certificate:
        """The certificate, from fresh scores where the sums' rounding errors may matter."""
        scores = self.engine.scores
        error = EPSILON * (self.engine.travel + self.engine.iterations * np.abs(scores).max())
        if error > 1e-2 * min(self.tol, self.asked.tol) and end != "stopped":
            fresh = _scores(self.problem, self.items, self.engine.coefficients, self.n_threads)
            self.engine.correct(fresh)
        self.point = self.engine.coefficients, self.engine.scores
        self.certificate = self._certificate()
        return self.certificate

    def _solution(self, outcome: Outcome) -> Solution:
        coefficients, scores = self._point()
        certificate = self._certificate()
        if self._indefinite or not self.engine.complete:
            certificate = certificate.without_gap()
        return solution(
            self.problem,
            coefficients,
            scores,
            certificate,
            self.engine.iterations,
            outcome,
            self.asked,
        )

    def _check_separable(self) -> None:
        c, scores = self.engine.coefficients, self.engine.scores
        first_row = self.items.tile(np.array([0]), self.items, None)[0]
        check_separable(self.problem, c, scores, self.items.diagonal(), first_row)


class _View:
    """What a monitor may look at while the engine pauses, or at the end."""

    def __init__(self, run: _Run, answer: Solution | None = None):
        self._run = run
        self._answer = answer

    @property
    def iteration(self) -> int:
        return self._run.engine.iterations

    @property
    def objective(self) -> float:
        return self._answer.objective if self._answer else self._run.engine.objective

    @property
    def violation(self) -> float:
        if self._answer is None and np.isfinite(self._run.engine.violation):
            return self._run.engine.violation
        return self.solution().violation

    @property
    def active(self) -> int:
        return self._run.engine.active

    @property
    def cache_hits(self) -> int:
        return self._run.engine.hits

    @property
    def tol(self) -> float:
        return self._run.tol

    @property
    def dual_gap(self) -> float:
        return self.solution().gap

    def solution(self) -> Solution:
        return self._answer or self._state

    @cached_property
    def _state(self) -> Solution:
        return self._run._solution(Outcome.MAX_ITER)


def _stop_reason(monitor: Any) -> Outcome:
    return Outcome.CALLBACK if monitor is None else Outcome[monitor.reason.name]
