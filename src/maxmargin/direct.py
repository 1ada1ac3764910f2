"""Least-squares machines: linear equations instead of a box, solved for all outputs at once.

Problems without a box that share kernel and ridge differ in p and in the sum of c only.  With
A = K + diag(ridge), the optimality conditions of the one with intercept -rho are

    A c = rho 1 - p,     1'c = target

so that every problem is answered by the same A^-1, applied to all -p and to 1 at once: with
D = A^-1 (-p) and D_1 = A^-1 1 the sum gives rho = (target - 1'D) / 1'D_1, and c = D + rho D_1
(Suykens and Vandewalle 1999).

Two ways to apply A^-1:

- Cholesky, when the matrix fits the memory budget: n^3 / 3 operations;
- block conjugate gradients beyond: each step multiplies the kernel with all right-hand sides, tile
  by tile, so that memory stays O(n).

Both correct a point c: the right-hand sides are what it leaves of the equations, -G, and 1.  The
corrected point is checked with a fresh product in float64; one that falls short is corrected again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, solve_triangular
from threadpoolctl import threadpool_limits

from maxmargin.certificate import Certificate, certify
from maxmargin.kernels import native
from maxmargin.problem import Floats, Problem
from maxmargin.solution import Accuracy, Outcome, Solution, solution

MAX_STEPS = 10_000
"""Of conjugate gradients, unless ``max_iter`` says otherwise."""

TILE = 256
"""Rows of a panel of the Cholesky factor: a tile's work is short enough to be interrupted."""


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
    system = System(problems, items, n_threads)
    asked = Accuracy(tol, gap_tol)
    watch = _Watch(monitors, asked)
    limit = MAX_STEPS if max_iter < 0 else max_iter
    outcome = Outcome.CONVERGED
    state = system.start(starts)
    try:
        watch.check(state)
        inverse = _inverse(system, memory, n_threads, lambda: watch.check(state))
        while not state.meets(asked):
            checked = state
            for correction, residual in inverse.apply(checked.right_hand_sides()):
                state = checked.corrected(correction, residual, state.steps + 1)
                if state.meets(asked):
                    break
                if state.steps >= limit:
                    raise _Stop(Outcome.MAX_ITER)
                watch.check(state)
            state = state.checked()
            if not state.worst < checked.worst / 2 and not state.meets(asked):
                state = state if state.worst < checked.worst else checked
                outcome = Outcome.ROUNDING
                break
        if not inverse.convex:
            outcome = Outcome.INDEFINITE
    except _Stop as stop:
        outcome = stop.outcome
    except KeyboardInterrupt as error:
        outcome = watch.interrupted(error)
    return watch.finish(state, outcome)


class System:
    """The equations that the problems share, and products with their kernel."""

    def __init__(self, problems: Sequence[Problem], items: Any, n_threads: int):
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
        self.items: Any = native(items)
        self.n_threads = n_threads
        self.ridge = first.ridge[:, None]
        self.tied = len(first.target) > 0
        self.target: Floats = np.array([problem.target.sum() for problem in problems])
        self.linear = np.stack([problem.linear for problem in problems], axis=1)

    def __len__(self) -> int:
        return len(self.ridge)

    def kernel(self, V: Floats) -> Floats:
        """K V."""
        return self.items.multiply(self.items, np.ascontiguousarray(V), self.n_threads)

    def columns(self, begin: int, end: int) -> Floats:
        """The columns begin .. end of A from the diagonal down, as a new array."""
        rows, columns = np.arange(begin, len(self)), np.arange(begin, end)
        if self.items.dtype == np.float64:
            A = self.items.tile(rows, self.items, columns, self.n_threads)
        else:  # a tile would be rounded to float32
            left, right = self.items.subset(rows), self.items.subset(columns)
            A = left.multiply(right, np.eye(end - begin), self.n_threads)
        A[np.diag_indices(end - begin)] += self.ridge[begin:end, 0]
        return A

    def diagonal(self) -> Floats:
        """The diagonal of A."""
        return self.items.diagonal() + self.ridge[:, 0]

    def start(self, starts: Sequence[ArrayLike] | None) -> State:
        """The state at zero, or where the starts are, with the sums repaired."""
        C = (
            np.zeros_like(self.linear)
            if starts is None
            else np.stack(list(starts), axis=1, dtype=np.float64)
        )
        if self.tied:
            C = C + (self.target - C.sum(axis=0)) / len(self)
        state = State(self, C, self.linear, 0, exact=True)
        return state.checked() if C.any() else state


class State:
    """A point of every problem with its gradient: columns of C and G.

    ``exact`` says whether G comes from a fresh product or from the solver's running residual.
    """

    def __init__(self, system: System, C: Floats, G: Floats, steps: int, exact: bool = False):
        self.system, self.C, self.G, self.steps, self.exact = system, C, G, steps, exact

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
        G = system.kernel(self.C) + system.ridge * self.C + system.linear
        return State(system, self.C, G, self.steps, exact=True)

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
        return certify(self.system.problems[j], self.C[:, j], self.G[:, j])

    def meets(self, asked: Accuracy) -> bool:
        if asked.gap_tol is None:
            return self.worst <= asked.tol
        return all(asked.met_by(self.certificate(j)) for j in range(len(self.system.problems)))

    def solution(self, j: int, outcome: Outcome, asked: Accuracy) -> Solution:
        problem, c, G = self.system.problems[j], self.C[:, j].copy(), self.G[:, j]
        certificate = self.certificate(j)
        if outcome is Outcome.INDEFINITE:
            certificate = replace(certificate, gap=np.inf)
        if not self.exact:
            asked = replace(asked, checked="by the solver's running residual")
        scores = (G - problem.ridge * c - problem.linear)[:, None]
        return solution(problem, c, scores, certificate, max(self.steps, 1), outcome, asked)


# ------------------------------------------------------------------ the two inverses


class Inverse(Protocol):
    """A way to apply A^-1; ``convex`` says whether A was found to be positive definite."""

    convex: bool

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Ever better D, approximately A^-1 B, each with its residual B - A D."""
        ...


def _inverse(system: System, memory: float, n_threads: int, check: Callable[[], None]) -> Inverse:
    if 8.0 * len(system) ** 2 > memory:
        return ConjugateGradients(system)
    try:
        return Cholesky(system, n_threads, check)
    except np.linalg.LinAlgError:
        return Spectral(system)


class Cholesky:
    """A = L L', where L is kept in row panels, so that only half of the matrix is ever held.

    Left-looking: column of tiles by column of tiles, each from the panels to its left,

        L_ij = (A_ij - L_i,:j L_j,:j') L_jj'^-1

    The tiles of a column are independent, and each is computed by one thread with the same
    operations whichever that is.
    """

    convex = True

    def __init__(self, system: System, n_threads: int, check: Callable[[], None]):
        ends = [*range(0, len(system), TILE), len(system)]
        self.blocks = [slice(a, b) for a, b in pairwise(ends)]
        self.panels = [np.empty((b - a, b)) for a, b in pairwise(ends)]
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
            for j in range(len(self.blocks)):
                self._next_column(j, system, pool, check)

    def _next_column(
        self, j: int, system: System, pool: ThreadPoolExecutor, check: Callable[[], None]
    ) -> None:
        begin, end = self.blocks[j].start, self.blocks[j].stop
        A = system.columns(begin, end)
        left = self.panels[j][:, :begin]
        L_jj = np.linalg.cholesky(A[: end - begin] - left @ left.T)
        self.panels[j][:, begin:] = L_jj

        def below(i: int) -> None:
            rows = slice(self.blocks[i].start - begin, self.blocks[i].stop - begin)
            rest = A[rows] - self.panels[i][:, :begin] @ left.T
            self.panels[i][:, begin:end] = solve_triangular(L_jj, rest.T, lower=True).T

        for _ in pool.map(below, range(j + 1, len(self.blocks))):
            check()

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        D = np.array(B)
        with threadpool_limits(1, user_api="blas"):
            for block, panel in zip(self.blocks, self.panels, strict=True):  # L Z = B
                D[block] -= panel[:, : block.start] @ D[: block.start]
                D[block] = solve_triangular(panel[:, block], D[block], lower=True)
            for block, panel in zip(self.blocks[::-1], self.panels[::-1], strict=True):  # L'D = Z
                D[block] = solve_triangular(panel[:, block], D[block], lower=True, trans=1)
                D[: block.start] -= panel[:, : block.start].T @ D[block]
        yield D, np.zeros_like(D)


class Spectral:
    """A = V diag(values) V', for what Cholesky refuses.

    That is an indefinite kernel, or a ridge lost in rounding beside it (a huge C), where values
    that are nothing but rounding count as that much.
    """

    def __init__(self, system: System):
        values, self.vectors = eigh(system.columns(0, len(system)), overwrite_a=True)
        rounding = len(values) * np.finfo(float).eps * np.abs(values).max()
        self.convex = bool(values[0] > -rounding)
        self.values = np.where(np.abs(values) < rounding, rounding, values)

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        D = self.vectors @ ((self.vectors.T @ B) / self.values[:, None])
        yield D, np.zeros_like(D)


class ConjugateGradients:
    """Block conjugate gradients in the stable form of Dubrulle (2001), algorithm BCGrQ.

    All columns search the same space.  Instead of the residuals R = W delta an orthonormal basis W
    of them is kept, so that columns may become dependent, or be finished early, without harm.
    Both sides are scaled by the diagonal of A (Jacobi), which takes out unequal weights.
    """

    def __init__(self, system: System):
        self.system = system
        diagonal = np.abs(system.diagonal())
        self.scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))[:, None]
        self.convex = True

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        W, delta = np.linalg.qr(self.scale * B)
        S, X = W, np.zeros_like(B)
        while True:
            Z = self._multiply(S)
            curvature = S.T @ Z
            self.convex &= bool(np.linalg.eigvalsh(curvature)[0] > 0)
            try:
                xi = np.linalg.inv(curvature)
            except np.linalg.LinAlgError:
                return  # the space is exhausted
            X = X + S @ (xi @ delta)
            W, zeta = np.linalg.qr(W - Z @ xi)
            S = W + S @ zeta.T
            delta = zeta @ delta
            yield self.scale * X, (W @ delta) / self.scale

    def _multiply(self, V: Floats) -> Floats:
        V = self.scale * V
        return self.scale * (self.system.kernel(V) + self.system.ridge * V)


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
        return self.solution().objective

    @property
    def dual_gap(self) -> float:
        return self.solution().gap

    def solution(self) -> Solution:
        return self.state.solution(self.j, self.outcome, self.asked)


class _Watch:
    """Passes what happens on to the monitors, and their wish to stop back."""

    def __init__(self, monitors: Sequence[Any] | None, asked: Accuracy):
        self.monitors = monitors or ()
        self.asked = asked

    def check(self, state: State) -> None:
        """Report; raise _Stop when that is what a monitor wants."""
        for j, monitor in enumerate(self.monitors):
            if monitor.poll(_View(state, j, Outcome.CALLBACK, self.asked)):
                raise _Stop(Outcome[monitor.reason.name])

    def interrupted(self, error: KeyboardInterrupt) -> Outcome:
        if not self.monitors:
            raise error
        self.monitors[0].interrupt(error)
        return Outcome.INTERRUPTED

    def finish(self, state: State, outcome: Outcome) -> list[Solution]:
        problems = range(len(state.system.problems))
        solutions = [state.solution(j, outcome, self.asked) for j in problems]
        for j, monitor in enumerate(self.monitors):
            monitor.finish(_View(state, j, outcome, self.asked))
        return solutions
