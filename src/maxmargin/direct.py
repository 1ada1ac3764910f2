"""Least-squares machines: linear equations instead of a box, solved for all outputs at once.

Here are the equations, the loop that corrects a point until it meets what was asked, and what
monitors see of it; in ``inverse`` are the ways to apply A^-1: Cholesky where the matrix fits the
memory budget, elimination if it is not positive definite, conjugate gradients beyond the budget.

Problems without a box that share kernel and ridge differ in p and in the sum of c only.  With
A = K + diag(ridge), the optimality conditions of the one with intercept -rho are

    A c = rho 1 - p,     1'c = target

so that every problem is answered by the same A^-1, applied to all -p and to 1 at once: with
D = A^-1 (-p) and D_1 = A^-1 1 the sum gives rho = (target - 1'D) / 1'D_1, and c = D + rho D_1
(Suykens and Vandewalle 1999).

A^-1 serves to correct a point c: the right-hand sides are what the point leaves of the equations,
-G, and 1.  The corrected point is checked with a fresh product in float64; one that falls short is
corrected again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.certificate import Certificate, certify
from maxmargin.inverse import Check, Inverse, Matrix, inverse, is_affordable, one_blas_thread
from maxmargin.kernels import sample
from maxmargin.problem import Floats, Problem
from maxmargin.solution import Accuracy, Outcome, Solution, check_finite, solution

MAX_STEPS = 10_000
"""Of conjugate gradients, unless ``max_iter`` says otherwise."""


def solve_least_squares(
    problems: Sequence[Problem],
    items: Any,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    memory: float = np.inf,
    n_threads: int = 1,
    starts: Sequence[ArrayLike] | None = None,
    monitors: Sequence[Any] | None = None,
) -> list[Solution]:
    """Solve least-squares problems that share one kernel matrix and one ridge.

    Parameters
    ----------
    problems : sequence of Problem
        As ``maxmargin.problem.least_squares`` builds them; linear terms and targets may differ.
    items : Items or array of shape (n, n)
        The items, or their kernel matrix.
    tol, gap_tol
        What is asked of every problem, see ``maxmargin.solve.solve``.
    max_iter : int, default=-1
        Limit on the steps of conjugate gradients; -1 is a generous one.
    memory : float, default=inf
        Bytes that the kernel matrix may take; where it needs more, conjugate gradients answer.
    n_threads : int, default=1
        Threads to compute with; the answer does not depend on it.
    starts : sequence of array, optional
        Coefficients to begin from; they shorten conjugate gradients.
    monitors : sequence of Subproblem, optional
        One for each problem, see ``maxmargin.monitor``.

    Returns
    -------
    list of Solution
        One for each problem.  All count the same steps: those of conjugate gradients, at least 1.
    """
    asked = Accuracy(tol, gap_tol)
    watch = _Watch(monitors, asked)
    limit = MAX_STEPS if max_iter < 0 else max_iter

    system = System(problems, items, n_threads, lambda: None)
    patient = not is_affordable(system.matrix, memory)

    def check() -> None:
        watch.check(state, patient)

    state = system.zero()
    outcome = Outcome.CONVERGED
    try:
        with one_blas_thread():
            sample(system.matrix.items, n_threads)  # refused where it is not symmetric
            if starts is not None:  # whoever stops the fit before its start is known loses that
                state = system.begun(starts)
            system.matrix.check = check
            check()
            while outcome is Outcome.CONVERGED and not state.meets(asked):
                if system.way is None:
                    system.way = inverse(system.matrix, memory)
                before = state
                for correction, residual in system.way.apply(before.right_hand_sides()):
                    state = before.corrected(correction, residual, state.steps + 1)
                    if state.meets(asked):
                        break
                    if state.steps >= limit:
                        outcome = Outcome.MAX_ITER
                        break
                    check()
                state = state.checked()
                if state.meets(asked):
                    outcome = Outcome.CONVERGED
                elif outcome is Outcome.CONVERGED and not state.worst < before.worst / 2:
                    state = state if state.worst < before.worst else before
                    outcome = Outcome.ROUNDING
        if system.indefinite and outcome is not Outcome.MAX_ITER:
            outcome = Outcome.INDEFINITE
    except _Stop as stop:
        outcome = stop.outcome
    except KeyboardInterrupt as error:
        outcome = watch.interrupted(error)
    return watch.finish(state, outcome)


class System:
    """The equations of all problems, and the matrix that they share."""

    def __init__(self, problems: Sequence[Problem], items: Any, n_threads: int, check: Check):
        first = problems[0]
        for problem in problems:
            alike = np.array_equal(problem.ridge, first.ridge) and np.array_equal(
                problem.group, first.group
            )
            one_each = np.array_equal(problem.item, np.arange(problem.n_items))
            if not (alike and one_each and problem.is_linear_system and np.ptp(problem.group) == 0):
                raise ValueError(
                    "problems must be least-squares problems on the same items, with the same "
                    "ridge, all with or all without an intercept."
                )
        self.problems = problems
        self.matrix = Matrix(items, first.ridge, n_threads, check)
        self.tied = len(first.target) > 0
        self.target: Floats = np.array([problem.target.sum() for problem in problems])
        self.linear = np.stack([problem.linear for problem in problems], axis=1)
        self.way: Inverse | None = None
        """How A^-1 is applied, once it is needed."""

    @property
    def indefinite(self) -> bool:
        """Whether the matrix was seen not to be positive definite, so that no gap holds."""
        return self.way is not None and not self.way.convex

    def zero(self) -> State:
        """The point zero, whose gradient is p."""
        return State(self, np.zeros_like(self.linear), self.linear, 0)

    def begun(self, starts: Sequence[ArrayLike]) -> State:
        """The points given, with their sums repaired."""
        C: Floats = np.stack(list(starts), axis=1, dtype=np.float64)
        if self.tied:
            C = C + (self.target - C.sum(axis=0)) / len(C)
        return State(self, C, self.linear, 0).checked()


class State:
    """A point of every problem with its gradient: columns of C and G."""

    def __init__(self, system: System, C: Floats, G: Floats, steps: int):
        self.system, self.C, self.G, self.steps = system, C, G, steps

    def right_hand_sides(self) -> Floats:
        """What the point leaves of the equations, -G, and where they are tied by a sum, 1."""
        ones = np.ones((len(self.C), int(self.system.tied)))
        return np.hstack([-self.G, ones])

    def corrected(self, D: Floats, R: Floats, steps: int) -> State:
        """The point moved by D = A^-1 (right-hand sides - R), tied together by the sums."""
        k = len(self.system.problems)
        move, left = D[:, :k], R[:, :k]
        if self.system.tied:
            missing = self.system.target - self.C.sum(axis=0) - move.sum(axis=0)
            rho: Floats = missing / float(D[:, k].sum())
            move, left = move + np.outer(D[:, k], rho), left + np.outer(R[:, k], rho) - rho
        return State(self.system, self.C + move, -left, steps)

    def checked(self) -> State:
        """The same point with a fresh gradient."""
        system = self.system
        A = system.matrix
        G = A.kernel(self.C) + A.ridge * self.C + system.linear
        return State(system, self.C, G, self.steps)

    @cached_property
    def violations(self) -> Floats:
        """How far G is from a constant (tied by a sum) or from zero, in each problem."""
        if not self.system.tied:
            return np.abs(self.G).max(axis=0)
        return np.ptp(self.G, axis=0)

    @property
    def worst(self) -> float:
        return float(self.violations.max())

    def certificate(self, j: int) -> Certificate:
        problem, diagonal = self.system.problems[j], self.system.matrix.items.diagonal()
        return certify(problem, self.C[:, j], self.G[:, j], diagonal)

    def meets(self, asked: Accuracy) -> bool:
        if asked.gap_tol is None:
            return self.worst <= asked.tol
        return all(asked.met_by(self.certificate(j)) for j in range(len(self.system.problems)))

    def solution(self, j: int, outcome: Outcome, asked: Accuracy) -> Solution:
        problem, c, G = self.system.problems[j], self.C[:, j].copy(), self.G[:, j]
        certificate = self.certificate(j)
        if self.system.indefinite:
            certificate = certificate.without_gap()
        scores = (G - problem.ridge * c - problem.linear)[:, None]
        return solution(problem, c, scores, certificate, max(self.steps, 1), outcome, asked)


# ------------------------------------------------------------------ being watched


class _Stop(Exception):
    """Ends the iteration where it is."""

    def __init__(self, outcome: Outcome):
        self.outcome = outcome


class _View:
    """What a monitor sees of one problem."""

    cache_hits = 0

    def __init__(self, state: State, j: int, outcome: Outcome, asked: Accuracy):
        self.state, self.j, self.outcome, self.asked = state, j, outcome, asked
        self.iteration = state.steps
        self.active = len(state.C)
        self.violation = float(state.violations[j])
        self.tol = asked.tol

    @property
    def objective(self) -> float:
        return self._solution.objective

    @property
    def dual_gap(self) -> float:
        return self._solution.gap

    def solution(self) -> Solution:
        return self._solution

    @cached_property
    def _solution(self) -> Solution:
        return self.state.solution(self.j, self.outcome, self.asked)


class _Watch:
    """Passes what happens on to the monitors, and their wish to stop back."""

    def __init__(self, monitors: Sequence[Any] | None, asked: Accuracy):
        self.monitors = monitors or ()
        self.asked = asked

    def check(self, state: State, patient: bool) -> None:
        """Report; raise _Stop when that is what a monitor wants.

        Who is ``patient`` lets the time limit wait for a first step: fits with little time, each
        going on from the last one, would get nowhere else.
        """
        for j, monitor in enumerate(self.monitors):
            if monitor.poll(_View(state, j, Outcome.CALLBACK, self.asked)):
                outcome = Outcome[monitor.reason.name]
                if not (patient and outcome is Outcome.TIME_LIMIT and state.steps == 0):
                    raise _Stop(outcome)

    def interrupted(self, error: KeyboardInterrupt) -> Outcome:
        if not self.monitors:
            raise error
        self.monitors[0].interrupt(error)
        return Outcome.INTERRUPTED

    def finish(self, state: State, outcome: Outcome) -> list[Solution]:
        problems = range(len(state.system.problems))
        views = [_View(state, j, outcome, self.asked) for j in problems]
        answers = [view.solution() for view in views]
        for problem, answer in zip(state.system.problems, answers, strict=True):
            check_finite(problem, answer)
        for monitor, view in zip(self.monitors, views, strict=False):
            monitor.finish(view)
        return answers
