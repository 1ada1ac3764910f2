"""Projected gradient ascent in the dual, on the whole problem or on its worst coordinates.

    d = project(c - step G) - c,    c <- c + t d,    F <- F + t K D'd

with t from an exact line search, cut at 1.  The length of the step is the inverse of the curvature
that the last move met (Barzilai and Borwein 1988; Birgin, Martinez and Raydan 2000).  A move costs
a product with the kernel matrix, which is why this is for study; a matrix that
fits the memory is computed once (``solve``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.certificate import certify
from maxmargin.feasible import balance
from maxmargin.problem import Floats, Indices, Problem, dot
from maxmargin.strategies import Gradient


class ProjectedGradient:
    """A solver with the interface of the native one."""

    travel = 0.0
    hits = 0
    complete = True
    negative_curvature = False

    def __init__(
        self,
        problem: Problem,
        items: Any,
        strategy: Gradient,
        start: Floats,
        scores: Floats,
        n_threads: int,
    ):
        self.problem = problem
        self.items = items
        self.size = strategy.size
        self.n_threads = n_threads
        self.coefficients = start.copy()
        self.scores = scores.copy()
        self.iterations = 0
        self.active = len(problem)
        self.violation = np.inf
        largest = float(np.abs(items.diagonal()).max(initial=0.0) + problem.ridge.max(initial=0.0))
        self._step = 1 / max(largest, 1e-12)

    @property
    def objective(self) -> float:
        return self.problem.objective(self.coefficients, self._gradient())

    def look_back(self) -> None:
        """Nothing was left behind."""

    def correct(self, scores: Floats) -> None:
        self.scores = scores

    def run(self, tol: float, limit: int, poll: Callable[[], bool]) -> str:
        while self.iterations < limit:
            G = self._gradient()
            certificate = certify(self.problem, self.coefficients, G)
            self.violation = certificate.violation
            if self.violation < tol:
                return "converged"
            if poll():
                return "stopped"
            # Taking its multiplier off each G changes no slope, only the rounding of the sums.
            if not self._move(G - np.append(certificate.rho, 0.0)[self.problem.group]):
                return "rounding"
            self.iterations += 1
        return "limit"

    def _gradient(self) -> Floats:
        return self.problem.gradient(self.coefficients, self.scores)

    def _move(self, G: Floats) -> bool:
        c, problem = self.coefficients, self.problem
        chosen = self._chosen(G)
        d = np.zeros_like(c)
        d[chosen] = direction(problem.only(chosen)[0], c[chosen], G[chosen], self._step)
        slope = dot(G, d)
        if not slope < 0:
            return False
        change = problem.spread(d)
        used = np.flatnonzero(change.any(axis=1))
        product = self.items.multiply(self.items.subset(used), change[used], self.n_threads)
        curve = float(np.sum(change * product) + dot(problem.ridge, d**2))
        self.negative_curvature |= curve < -1e-10 * dot(d, d)
        t = 1.0 if curve <= 0 else min(1.0, -slope / curve)
        self.coefficients = arrive(problem, c + t * d)
        self.scores = self.scores + t * product
        self._step = 1 / max(curve / dot(d, d), 1e-12)
        return True

    def _chosen(self, G: Floats) -> Indices:
        c, problem = self.coefficients, self.problem
        if self.size is None or self.size >= len(c):
            return np.arange(len(c))
        return worst(problem, c, G, self.size)


def direction(part: Problem, c: Floats, G: Floats, step: float) -> Floats:
    """project(c - step G) - c, onto the box and the sums that c has.

    A step that leaves the box far behind, as where there is no curvature, would only lose digits.
    """
    far = 1e6 * float((part.upper - part.lower).max(initial=0.0))
    center = c - min(step, far / max(float(np.abs(G).max(initial=0.0)), 1e-300)) * G
    target = np.clip(center, part.lower, part.upper)
    for g in np.unique(part.group[part.group >= 0]):
        members = np.flatnonzero(part.group == g)
        ones = np.ones(len(members))
        lower, upper = part.lower[members], part.upper[members]
        target[members] = balance(center[members], ones, lower, upper, c[members].sum())[1]
    return target - c


def arrive(problem: Problem, c: Floats) -> Floats:
    """A fraction of a step approaches a bound without ever arriving: the last hair is cut off.

    A hair is what rounding of the largest coefficient hides: the sums do not notice.
    """
    hair = 1e-14 * np.minimum(problem.upper - problem.lower, np.abs(c).max(initial=0.0))
    c = np.where(c <= problem.lower + hair, problem.lower, c)
    return np.where(c >= problem.upper - hair, problem.upper, c)


def worst(problem: Problem, c: Floats, G: Floats, size: int) -> Indices:
    """The variables that lead the violation.

    These are, alternately, the smallest G that may grow and the largest that may shrink, of each
    group, the worst group first; without groups the steepest that may move.
    """
    up, down = c < problem.upper, c > problem.lower
    groups: list[tuple[float, list[Indices]]] = []
    for members in problem.groups():
        grow, shrink = members[up[members]], members[down[members]]
        violation = float(G[shrink].max(initial=-np.inf)) - float(G[grow].min(initial=np.inf))
        grow = grow[np.argsort(G[grow], kind="stable")]
        groups.append((violation, [grow, shrink[np.argsort(-G[shrink], kind="stable")]]))
    single = np.flatnonzero((problem.group < 0) & np.where(G < 0, up, down) & (G != 0))
    single = single[np.argsort(-np.abs(G[single]), kind="stable")]
    groups.append((float(np.abs(G[single]).max(initial=0.0)), [single]))
    ranks = [rank for _, both in sorted(groups, key=lambda pair: -pair[0]) for rank in both]
    places = range(max(map(len, ranks)))
    in_turn = (int(rank[place]) for place in places for rank in ranks if place < len(rank))
    chosen: dict[int, None] = {}
    for variable in in_turn:
        chosen.setdefault(variable)
        if len(chosen) >= max(size, 2):  # less than a pair cannot move
            break
    return np.array(sorted(chosen), dtype=np.int64)
