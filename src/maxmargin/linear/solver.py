"""What a solver of linear machines is: it says what it can solve, and moves; here it is judged.

A solver goes from point to point and shows each to a ``Progress``, which computes what the point
proves, remembers the best, tells the monitor, and answers whether to end.  So every solver ends by
the same rule, the relative duality gap, whatever it does in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from maxmargin.inverse import one_blas_thread
from maxmargin.linear.problem import LinearCertificate, LinearProblem
from maxmargin.problem import Floats
from maxmargin.solution import Outcome

ROUNDING = 1e-14
"""A relative gap that is not worth another step."""

SMALL = 10**6
"""Rows times columns squared, the cost of a Newton step, below which a fit is polished."""


@dataclass(frozen=True)
class LinearSolution:
    """The answer to a linear problem.

    Attributes
    ----------
    weights : array of shape (n_columns,) or (n_columns, n_scores)
        w, the constant feature's weight last.
    coefficients : array of shape (n,) or (n, n_scores)
        c, the dual point of the certificate.
    certificate : LinearCertificate
    iterations : int
        Steps of the solver: passes over the data, or its own.
    outcome : Outcome
    gap_tol : float
        What was asked.
    """

    weights: Floats
    coefficients: Floats
    certificate: LinearCertificate
    iterations: int
    outcome: Outcome
    gap_tol: float

    @property
    def primal(self) -> float:
        return self.certificate.primal

    @property
    def objective(self) -> float:
        """Minus the dual objective, as of the kernel machines."""
        return -self.certificate.dual

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        return self.certificate.relative_gap

    @property
    def converged(self) -> bool:
        return self.outcome.finished

    @property
    def is_zero(self) -> bool:
        """Whether gap and objective are what rounding leaves of zero."""
        return self.gap <= 1e-12 * float(np.abs(self.coefficients).sum())

    @property
    def proves_little(self) -> bool:
        """Never more loosely than was asked."""
        return False

    @property
    def status(self) -> str:
        """A sentence that says how the solver ended and what it proves."""
        value = max(abs(self.primal), abs(self.certificate.dual))
        return (
            f"{self.outcome.value}: duality gap {self.relative_gap:.1e} of {value:.4g} "
            f"(asked: {self.gap_tol:g}; verified in float64)"
        )


class Progress:
    """Judges the points of a solver.

    Parameters
    ----------
    problem : LinearProblem
    gap_tol : float
        The relative duality gap at which to end.
    max_iter : int
        The most iterations.
    monitor : Subproblem or None
        Who is told, and may stop: see ``maxmargin.monitor``.
    polish : bool, default=False
        Go on after that as long as each step halves the gap: a small fit is exact whatever was
        asked, if its solver converges fast at the end.

    Attributes
    ----------
    outcome : Outcome
        How it ended; RUNNING before that.
    best : LinearSolution or None
        The point with the smallest primal, and the best dual point so far.
    """

    def __init__(
        self,
        problem: LinearProblem,
        gap_tol: float,
        max_iter: int,
        monitor: Any = None,
        polish: bool = False,
    ):
        self.problem = problem
        self.polish = polish
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.monitor = monitor
        self.outcome = Outcome.RUNNING
        self.best: LinearSolution | None = None

    def ends(
        self, w: Floats, z: Floats, c: Floats, iterations: int, v: Floats | None = None
    ) -> bool:
        """Take note of weights w with scores z, and coefficients c (v = X'c, where it is known);
        return whether to end.
        """
        certificate = self.problem.certificate(w, z, c, v)
        best, before = self.best, self.violation
        if best is None:
            best = LinearSolution(w, c, certificate, iterations, self.outcome, self.gap_tol)
        # Primal and dual points are independent: the best of each prove the most.
        if certificate.primal < best.certificate.primal:
            best = replace(
                best,
                weights=w,
                certificate=replace(best.certificate, primal=certificate.primal),
            )
        if certificate.dual > best.certificate.dual:
            best = replace(
                best,
                coefficients=c,
                certificate=replace(best.certificate, dual=certificate.dual),
            )
        self.best = replace(best, iterations=iterations)
        better = self.polish and ROUNDING < best.relative_gap < before / 2
        if best.relative_gap <= self.gap_tol:
            if not better or iterations >= self.max_iter:
                self.outcome = Outcome.CONVERGED
        elif best.relative_gap <= ROUNDING:
            self.outcome = Outcome.ROUNDING
        elif iterations >= self.max_iter:
            self.outcome = Outcome.MAX_ITER
        return self.outcome is not Outcome.RUNNING or self.stopped()

    def stopped(self) -> bool:
        """Whether somebody wants the fit to end; to be asked between two judgements too."""
        if self.monitor is None or not self.monitor.poll(self):
            return False
        self.outcome = Outcome[self.monitor.reason.name]
        return True

    def stuck(self) -> None:
        """The solver cannot move any more: what is left is rounding."""
        self.outcome = Outcome.ROUNDING

    def solution(self) -> LinearSolution:
        """The best point, and how it ended."""
        assert self.best is not None
        return replace(self.best, outcome=self.outcome)

    def finish(self) -> LinearSolution:
        """The solution, which the monitor is told of."""
        answer = self.solution()
        if self.monitor is not None:
            self.monitor.finish(self)
        return answer

    # What a monitor looks at.

    cache_hits = 0

    @property
    def iteration(self) -> int:
        return self.best.iterations if self.best else 0

    @property
    def objective(self) -> float:
        return self.best.objective if self.best else 0.0

    @property
    def dual_gap(self) -> float:
        return self.best.gap if self.best else np.inf

    @property
    def violation(self) -> float:
        """The relative gap, which is what a linear solver brings down."""
        return self.best.relative_gap if self.best else np.inf

    @property
    def tol(self) -> float:
        return self.gap_tol

    @property
    def active(self) -> int:
        return self.problem.design.n_rows


class Solver(BaseEstimator):
    """A way to solve linear problems; its parameters and nothing else.

    Attributes
    ----------
    name : str
        What ``solver=`` calls it.
    """

    name: ClassVar[str]
    fast_at_the_end: ClassVar[bool] = False
    """Whether a last few steps make the solution exact."""

    def refusal(self, problem: LinearProblem) -> str | None:
        """Why this solver cannot solve a problem; None when it can."""
        raise NotImplementedError

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        """Move from the weights ``start`` (None: zero) until ``progress`` ends."""
        raise NotImplementedError

    def solve_all(
        self, each: Sequence[Progress], starts: Sequence[Floats | None], seed: int
    ) -> list[LinearSolution]:
        """Solve problems on the same rows, one after the other unless there is a better way."""
        answers = []
        for progress, start in zip(each, starts, strict=True):
            interruptible(self.solve, progress, start, seed)
            answers.append(progress.finish())
        return answers


def is_small(problem: LinearProblem) -> bool:
    """Whether a few more steps cost nothing worth naming."""
    return problem.design.n_rows * problem.design.n_columns**2 <= SMALL


def blas_limit(n_columns: int) -> AbstractContextManager[None]:
    """Keeps BLAS to one thread, so that its own do not change the answer.

    It needs no telling where the matrices are small, and then telling it would take longest.
    """
    return one_blas_thread() if n_columns > 64 else nullcontext()


def interruptible(solve: Any, progress: Progress, start: Floats | None, seed: int) -> None:
    """Let a solver work; Ctrl-C leaves the best point so far, and is raised when it is stored."""
    try:
        solve(progress, start, seed)
    except KeyboardInterrupt as error:
        if progress.monitor is None:
            raise
        progress.monitor.interrupt(error)
        progress.outcome = Outcome.INTERRUPTED
    if progress.best is None:  # it ended before it began: the point zero, or the start
        problem = progress.problem
        w = np.zeros(problem.shape) if start is None else start
        z = problem.design.scores(w)
        outcome = progress.outcome
        progress.ends(w, z, problem.slopes(z), 0)
        if outcome is not Outcome.RUNNING:
            progress.outcome = outcome
