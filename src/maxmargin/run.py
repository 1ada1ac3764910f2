"""One run of an engine, from its start to a solution that proves itself.

The engine moves the coefficients and keeps the scores; everything that is claimed is computed here
from them, by the same few formulas as for the readable reference.  Kernel values and sums are
float64, so that the gradient is exact but for the rounding of its sums; where that may matter to
what was asked, the scores are computed afresh before anything is claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from maxmargin.certificate import Certificate, certify, check_separable, is_indefinite
from maxmargin.inverse import one_blas_thread
from maxmargin.kernels import sample
from maxmargin.polish import WORTH_THREADS
from maxmargin.polish import polish as polished
from maxmargin.problem import Floats, Problem
from maxmargin.recession import recession
from maxmargin.solution import (
    Accuracy,
    Outcome,
    Solution,
    check_finite,
    solution,
)

EPSILON = float(np.finfo(np.float64).eps)

WHOLE = 2000
"""Items of an unknown kernel whose whole matrix is looked at: it takes a fraction of a second."""

UNLIKELY = 1e-3
"""A hard margin below this fraction of the radius is worth a search for the proof of none."""


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


@dataclass(frozen=True)
class Point:
    """Where an engine stands, and what that proves."""

    coefficients: Floats
    scores: Floats
    certificate: Certificate


def scores_of(problem: Problem, items: Any, coefficients: Floats, n_threads: int) -> Floats:
    """F = K D'c from scratch."""
    spread = problem.spread(coefficients)
    used = np.flatnonzero(spread.any(axis=1))
    if len(used) == 0:
        return np.zeros_like(spread)
    return items.multiply(items.subset(used), spread[used], n_threads)


class Run:
    """One run of an engine.

    Parameters
    ----------
    problem, items
        What is solved.
    engine : Engine
        What moves the coefficients.
    asked : Accuracy
        When to end.
    limit : int
        The most updates.
    n_threads : int
    monitor : Subproblem or None
        Who is told, and may stop.
    """

    def __init__(
        self,
        problem: Problem,
        items: Any,
        engine: Engine,
        asked: Accuracy,
        limit: int,
        n_threads: int,
        monitor: Any,
    ):
        self.problem = problem
        self.items = items
        self.engine = engine
        self.asked = asked
        self.limit = limit
        self.n_threads = n_threads
        self.monitor = monitor
        self.tol = asked.tol if asked.gap_tol is None else 0.1
        """What the engine is asked for: a gap is reached by smaller and smaller violations."""

    # ---------------------------------------------------------------- the loop

    def to_the_end(self, polish: bool) -> Solution:
        """Let the engine work until the answer proves what was asked, or something ends it."""
        outcome, point = self._until_done()
        if outcome is Outcome.CONVERGED and polish:
            point = self._polished(point)
        answer = self.describe(point, outcome)
        self._check_finite(answer)
        if self.monitor is not None:
            self.monitor.finish(View(self, answer))
        return answer

    def _until_done(self) -> tuple[Outcome, Point]:
        if self._poll():  # the fit is over before this problem began
            return self._stop_reason(), self.point()
        self._check_start()
        while True:
            end = self._let_work()
            if end == "stopped":
                return self._stop_reason(), self.point()
            point = self._verified()
            if self._indefinite and end != "limit":
                if end == "rounding" or self.tol <= self.asked.tol:
                    return Outcome.INDEFINITE, point
                self.tol = self.asked.tol  # there is no gap to ask for
            elif self.asked.met_by(point.certificate):
                return Outcome.CONVERGED, point
            elif end == "limit":
                return Outcome.MAX_ITER, point
            elif end == "rounding" or self.tol < 1e-14 * self.problem.unit:
                return Outcome.ROUNDING, point
            else:
                self.tol *= self.asked.shortfall(point.certificate)

    def _let_work(self) -> str:
        """The engine's own end; a hard margin is asked from time to time whether there is one."""
        if not self.problem.is_unbounded:
            return self._engine_run(self.limit)
        first_row = self.items.tile(np.array([0]), self.items, None)[0]
        ask = 0
        while True:
            pause = self.engine.iterations + 10 * len(self.problem) + 1000
            end = self._engine_run(min(pause, self.limit))
            if end == "stopped":
                return end
            c, scores = self.engine.coefficients, self.engine.scores
            share = check_separable(self.problem, c, scores, self._diagonal, first_row)
            if share < UNLIKELY and self.engine.iterations >= ask:
                ask = 2 * self.engine.iterations
                c = recession(self.problem, self.items, c, self.n_threads)
                if c is not None:
                    scores = scores_of(self.problem, self.items, c, self.n_threads)
                    check_separable(self.problem, c, scores, self._diagonal, first_row)
            if end != "limit" or self.engine.iterations >= self.limit:
                return end

    def _engine_run(self, limit: int) -> str:
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
        return self.monitor is not None and self.monitor.poll(View(self))

    def _stop_reason(self) -> Outcome:
        return Outcome[self.monitor.reason.name]

    # ---------------------------------------------------------------- what is claimed

    def point(self) -> Point:
        """Where the engine stands."""
        return self._certified(self.engine.coefficients, self.engine.scores)

    def _certified(self, coefficients: Floats, scores: Floats) -> Point:
        gradient = self.problem.gradient(coefficients, scores)
        certificate = certify(self.problem, coefficients, gradient, self._diagonal)
        return Point(coefficients, scores, certificate)

    @cached_property
    def _diagonal(self) -> Floats:
        return self.items.diagonal()

    def _verified(self) -> Point:
        """Where the engine stands, with fresh scores where their rounding errors may matter."""
        scores = self.engine.scores
        error = EPSILON * (self.engine.travel + self.engine.iterations * np.abs(scores).max())
        if error > 1e-2 * min(self.tol, self.asked.tol):
            coefficients = self.engine.coefficients
            fresh = scores_of(self.problem, self.items, coefficients, self.n_threads)
            self.engine.correct(fresh)
        return self.point()

    def _polished(self, point: Point) -> Point:
        """The point made exact, if it still is what was asked for."""
        c, scores = point.coefficients, point.scores
        moved, _ = polished(self.problem, self.items, c, scores, self.n_threads)
        if moved is c:
            return point
        fresh = scores_of(self.problem, self.items, moved, self.n_threads)
        better = self._certified(moved, fresh)
        return better if self.asked.met_by(better.certificate) else point

    def describe(self, point: Point, outcome: Outcome) -> Solution:
        """The Solution at a point."""
        certificate = point.certificate
        if self._indefinite or not self.engine.complete:
            certificate = certificate.without_gap()
        elif not self.items.positive and len(self.items) > WHOLE:
            certificate = certificate.if_positive()
        return solution(
            self.problem,
            point.coefficients,
            point.scores,
            certificate,
            self.engine.iterations,
            outcome,
            self.asked,
        )

    @property
    def _indefinite(self) -> bool:
        """Whether the kernel was seen not to be positive semi-definite, so that no gap holds."""
        return self.engine.negative_curvature or self._matrix_indefinite

    @cached_property
    def _matrix_indefinite(self) -> bool:
        """The same of the kernel matrix; of part of it where there are more than WHOLE items."""
        if self.items.positive:
            return False
        precision = float(np.finfo(self.items.dtype).eps)
        K = sample(self.items, self.n_threads, WHOLE)
        with one_blas_thread() if len(K) > WORTH_THREADS else nullcontext():
            return is_indefinite(self.problem, K, precision)

    def _check_start(self) -> None:
        """Refuse what no work can mend: a kernel that is not symmetric, numbers too large."""
        _ = self._matrix_indefinite
        self._check_finite(self.describe(self.point(), Outcome.RUNNING))

    def _check_finite(self, answer: Solution) -> None:
        try:
            check_finite(self.problem, answer)
        except ValueError as error:
            box = np.concatenate([self.problem.lower, self.problem.upper])
            if not (self._indefinite and np.isinf(box).any()):
                raise
            raise ValueError(
                "The kernel is not positive semi-definite on these data, and without an upper "
                "bound on the coefficients the objective has no minimum. Use another kernel, "
                "other parameters of it, or a loss that bounds them (loss='hinge', a finite C)."
            ) from error


class View:
    """What a monitor may look at while the engine pauses, or at the end."""

    def __init__(self, run: Run, answer: Solution | None = None):
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
        return self._answer or self._now

    @cached_property
    def _now(self) -> Solution:
        return self._run.describe(self._run.point(), Outcome.RUNNING)
