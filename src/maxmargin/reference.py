"""The readable solver: NumPy, the whole matrix in memory, no tricks.

It has the interface of ``maxmargin.solve`` and is what the engine is tested against.  One loop owns
the point c and its gradient G; a strategy is a generator that looks at them and yields the next
move, a set of variables with their new values.  With H = Q + diag(ridge) every move costs one
update of the gradient:

    c_S <- c_S + d,    G <- G + H[:, S] d

A pair (i, j) of one group moves along c_i + t, c_j - t, a single variable without a group along
c_i + t.  The objective is a parabola in t whose vertex, cut to the box, is the step (Platt 1999).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import strategies
from maxmargin.certificate import certify, check_separable, is_indefinite, largest_violation
from maxmargin.feasible import feasible_start, project
from maxmargin.problem import Floats, Indices, Problem
from maxmargin.projected_gradient import arrive, direction, worst
from maxmargin.solution import Accuracy, Outcome, Solution, solution

Move = tuple[Any, Any]
"""Variables and their new values."""

CURVATURE_FLOOR = 1e-12
"""Stands in for a curvature that is zero (duplicates) or negative (an indefinite kernel)."""

REFRESH = 2000
"""Moves after which the gradient is computed afresh."""


class State:
    """The point and its gradient."""

    def __init__(self, problem: Problem, K: Floats, start: Floats):
        self.problem = problem
        self.H = problem.hessian(K)
        self.c = start.copy()
        self.refresh()

    @property
    def up(self) -> np.ndarray:
        return self.c < self.problem.upper

    @property
    def down(self) -> np.ndarray:
        return self.c > self.problem.lower

    def apply(self, variables: Any, values: Any) -> None:
        step = values - self.c[variables]
        self.c[variables] = values
        self.G += self.H[:, variables] @ step

    def refresh(self) -> None:
        """Compute the gradient afresh: the moves' rounding errors have added up in it."""
        self.G = self.H @ self.c + self.problem.linear

    def rounding(self) -> float:
        """What rounding alone may put into the gradient."""
        terms = np.abs(self.H) @ np.abs(self.c) + np.abs(self.problem.linear)
        return 16 * float(np.finfo(np.float64).eps * terms.max(initial=0.0))

    def violation(self) -> float:
        return largest_violation(self.problem, self.c, self.G)


# ------------------------------------------------------------------ one step


def pair_step(s: State, i: int, j: int) -> Move:
    """c_i grows and c_j shrinks by the same t >= 0."""
    curvature = max(s.H[i, i] + s.H[j, j] - 2 * s.H[i, j], CURVATURE_FLOOR)
    room_i, room_j = s.problem.upper[i] - s.c[i], s.c[j] - s.problem.lower[j]
    t = min((s.G[j] - s.G[i]) / curvature, room_i, room_j)
    return np.array([i, j]), np.array(
        [
            s.problem.upper[i] if t == room_i else s.c[i] + t,
            s.problem.lower[j] if t == room_j else s.c[j] - t,
        ]
    )


def single_step(s: State, i: int) -> Move:
    """The minimum along c_i alone: possible only where no sum ties it."""
    t = -s.G[i] / max(s.H[i, i], CURVATURE_FLOOR)
    return np.array([i]), np.array([np.clip(s.c[i] + t, s.problem.lower[i], s.problem.upper[i])])


def projected_gradient(s: State) -> Floats:
    """-G where a variable may follow it, else 0 (variables without a group only)."""
    free = np.where(s.G < 0, s.up, s.down) & (s.problem.group < 0)
    return np.where(free, -s.G, 0.0)


def last(values: Floats, best: float) -> int:
    """The last index with the best value: ties are broken as LIBSVM does."""
    return int(np.flatnonzero(values == best)[-1])


def worst_pair(s: State) -> tuple[int, int, float]:
    """(i, j) with the largest G_j - G_i, i may grow, j may shrink, both in one group."""
    best = (-1, -1, -np.inf)
    for members in s.problem.groups():
        low = np.where(s.up[members], s.G[members], np.inf)
        high = np.where(s.down[members], s.G[members], -np.inf)
        violation = high.max() - low.min()
        if violation >= best[2]:
            i, j = last(low, low.min()), last(high, high.max())
            best = (int(members[i]), int(members[j]), float(violation))
    return best


# ------------------------------------------------------------------ the strategies


def max_violating_pair(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Keerthi et al. 2001: G_i as small, G_j as large as they come."""
    while True:
        if len(s.problem.target) == 0:
            slope = np.abs(projected_gradient(s))
            if slope.max() < tol:
                return
            yield single_step(s, last(slope, slope.max()))
            continue
        i, j, violation = worst_pair(s)
        if violation < tol:
            return
        yield pair_step(s, i, j)


def second_order(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Fan, Chen and Lin 2005, WSS 3: i as above; j with the largest (G_j - G_i)^2 / curvature."""
    diagonal = np.diag(s.H)
    while True:
        if s.violation() < tol:
            return
        if len(s.problem.target) == 0:
            gain = projected_gradient(s) ** 2 / np.maximum(diagonal, CURVATURE_FLOOR)
            yield single_step(s, last(gain, gain.max()))
            continue
        best = (-1, -1, -np.inf)
        for members in s.problem.groups():
            low = np.where(s.up[members], s.G[members], np.inf)
            i = int(members[last(low, low.min())])
            if not s.up[i]:
                continue
            slope = s.G[members] - s.G[i]
            curvature = diagonal[i] + diagonal[members] - 2 * s.H[i, members]
            usable = s.down[members] & (slope > 0)
            gain = np.where(usable, slope**2 / np.maximum(curvature, CURVATURE_FLOOR), -np.inf)
            if gain.max() >= best[2] and gain.max() > 0:
                best = (i, int(members[last(gain, gain.max())]), float(gain.max()))
        if best[0] < 0:
            return
        yield pair_step(s, best[0], best[1])


def random_partner(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Simplified SMO: each violator in turn, with a random partner it can move with.

    A variable violates the conditions when some partner of its group lies more than ``tol`` on the
    wrong side of it.  Looking at all partners instead of a stored threshold means that a sweep
    without a move proves convergence.
    """
    while True:
        moved = False
        for i in rng.permutation(len(s.c)).tolist():
            if s.problem.group[i] < 0:
                if abs(projected_gradient(s)[i]) >= tol:
                    yield single_step(s, i)
                    moved = True
                continue
            peers = s.problem.group == s.problem.group[i]
            above = peers & s.down & (s.G - s.G[i] >= tol) & s.up[i]
            below = peers & s.up & (s.G[i] - s.G >= tol) & s.down[i]
            partners = np.flatnonzero(above | below)
            if len(partners):
                j = int(rng.choice(partners))
                yield pair_step(s, i, j) if above[j] else pair_step(s, j, i)
                moved = True
        if not moved:
            return


def platt(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Platt 1999, the two loops: all variables once, then the free ones until they are at rest,
    and so on until a pass over all finds nothing.

    The partner of a violator is the one that promises the largest step, |G_i - G_j|, among the
    free variables if one of them will do, else among all.
    """
    everything = True
    while True:
        moved = False
        free = s.up & s.down
        for i in range(len(s.c)) if everything else np.flatnonzero(free).tolist():
            if s.problem.group[i] < 0:
                if abs(projected_gradient(s)[i]) >= tol:
                    yield single_step(s, i)
                    moved = True
                continue
            peers = s.problem.group == s.problem.group[i]
            promise = np.zeros(len(s.c))
            promise[peers & s.down & s.up[i]] = s.G[peers & s.down & s.up[i]] - s.G[i]
            backward = s.G[i] - s.G
            both = peers & s.up & s.down[i] & (backward > promise)
            promise[both] = backward[both]
            for among in (s.up & s.down, np.ones(len(s.c), dtype=bool)):
                j = int(np.argmax(np.where(among, promise, 0.0)))
                if promise[j] >= tol:
                    yield pair_step(s, j, i) if both[j] else pair_step(s, i, j)
                    moved = True
                    break
        if everything and not moved:
            return
        everything = not everything if everything else not moved


def block(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Osuna et al. 1997, Joachims 1999: take the worst violators, solve for them alone, repeat."""
    size = strategy.size
    inner = STRATEGIES[type(strategies.named(strategy.inner))]
    kept = np.empty(0, dtype=np.int64)
    while (violation := s.violation()) >= tol:
        more = worst(s.problem, s.c, s.G, size if strategy.growing else size - len(kept))
        chosen = np.union1d(kept, more)
        yield from _solve_block(s, chosen, inner, strategy.inner, max(tol / 2, violation / 10), rng)
        busy = chosen[(s.c[chosen] != 0) if strategy.growing else (s.up & s.down)[chosen]]
        kept = busy if strategy.growing else busy[: size // 2]


def _solve_block(
    s: State, chosen: Indices, inner: Any, parameters: Any, tol: float, rng: Any
) -> Iterator[Move]:
    """The moves of ``inner`` on the chosen variables, seen from the whole problem."""
    part = SubState(s, chosen)
    for variables, values in inner(part, strategies.named(parameters), tol, rng):
        part.apply(variables, values)
        yield chosen[variables], values


class SubState(State):
    """The chosen variables of a state; what the fixed ones contribute enters the linear term."""

    def __init__(self, whole: State, chosen: Indices):
        self.H = whole.H[np.ix_(chosen, chosen)]
        self.c = whole.c[chosen]
        self.G = whole.G[chosen]
        part, _ = whole.problem.only(chosen)
        kept, group = np.unique(part.group, return_inverse=True)
        ungrouped = int(np.sum(kept < 0))
        group = group.astype(np.int64) - ungrouped
        sums = np.bincount(group[group >= 0], self.c[group >= 0], len(kept) - ungrouped)
        linear = self.G - self.H @ self.c
        self.problem = replace(part, linear=linear, group=group, target=sums)


def gradient(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Projected gradient: c + t d with d = project(c - step G) - c and an exact line search.

    The length of the step is the inverse of the curvature that the last move met (Birgin, Martinez
    and Raydan 2000).
    """
    step = 1 / max(float(np.diag(s.H).max()), CURVATURE_FLOOR)
    size = strategy.size or len(s.c)
    while s.violation() >= tol:
        chosen = np.arange(len(s.c)) if size >= len(s.c) else worst(s.problem, s.c, s.G, size)
        part = SubState(s, chosen)
        d = direction(part.problem, part.c, part.G, step)
        curve, slope = float(d @ part.H @ d), float(part.G @ d)
        if slope >= 0:
            return
        t = 1.0 if curve <= 0 else min(1.0, -slope / curve)
        yield chosen, arrive(part.problem, part.c + t * d)
        step = 1 / max(curve / float(d @ d), CURVATURE_FLOOR)


def coordinate(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Hsieh et al. 2008, algorithm 1 in the random order of section 3, until none violates."""
    while np.abs(projected_gradient(s)).max(initial=0.0) >= tol:
        for i in rng.permutation(len(s.c)).tolist():
            if projected_gradient(s)[i] != 0:
                yield single_step(s, i)


def group(s: State, strategy: Any, tol: float, rng: Any) -> Iterator[Move]:
    """Crammer and Singer 2001, algorithm 1: the worst example's coefficients, all at once.

    Within an example H is k(x, x) times the identity, so that its optimum is the projection of
    c - G / k(x, x) onto the box and the sum.
    """
    groups = s.problem.groups()
    while s.violation() >= tol:
        high = np.where(s.down, s.G, -np.inf)
        low = np.where(s.up, s.G, np.inf)
        g = int(np.argmax([high[members].max() - low[members].min() for members in groups]))
        members = groups[g]
        step = 1 / max(float(s.H[members[0], members[0]]), CURVATURE_FLOOR)
        part = SubState(s, members)
        d = direction(part.problem, part.c, part.G, step)
        yield members, arrive(part.problem, part.c + d)


STRATEGIES: dict[type, Callable[..., Iterator[Move]]] = {
    strategies.Random: random_partner,
    strategies.Platt: platt,
    strategies.MaxViolatingPair: max_violating_pair,
    strategies.SecondOrder: second_order,
    strategies.Block: block,
    strategies.Gradient: gradient,
    strategies.Coordinate: coordinate,
    strategies.Group: group,
}


# ------------------------------------------------------------------ the loop


def solve(
    problem: Problem,
    items: Any,
    strategy: Any = "auto",
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    start: ArrayLike | None = None,
    random_state: int = 0,
) -> Solution:
    """Solve ``problem`` on a Gram matrix or on prepared items; see ``maxmargin.solve.solve``.

    The arguments of the engine that concern memory, threads and progress have no meaning here.
    """
    K = _gram(items)
    asked = Accuracy(tol * problem.unit, gap_tol)
    if not problem.is_linear_system:
        chosen = strategies.choose(strategy, problem)
        c = feasible_start(problem) if start is None else project(problem, start)
        s = State(problem, K, c)
        rng = np.random.default_rng(random_state)
        iterations, outcome = _iterate(s, K, chosen, asked, max_iter, rng)
    else:
        s, iterations, outcome = _equations(problem, K), 1, Outcome.CONVERGED
    scores = K @ problem.spread(s.c)
    certificate = certify(problem, s.c, problem.gradient(s.c, scores), np.diag(K))
    if is_indefinite(problem, K, np.finfo(np.float64).eps):
        certificate = certificate.without_gap()
        outcome = Outcome.INDEFINITE if outcome is Outcome.CONVERGED else outcome
    return solution(problem, s.c, scores, certificate, iterations, outcome, asked)


def _iterate(
    s: State, K: Floats, chosen: strategies.Strategy, asked: Accuracy, max_iter: int, rng: Any
) -> tuple[int, Outcome]:
    limit = max_iter if max_iter >= 0 else 10**6
    tol = asked.tol
    iterations = 0
    while True:
        s.refresh()
        if s.problem.is_unbounded:
            check_separable(s.problem, s.c, K @ s.problem.spread(s.c), np.diag(K), K[0])
        if asked.met_by(certify(s.problem, s.c, s.G, np.diag(K))):
            return iterations, Outcome.CONVERGED
        floor = max(tol, s.rounding())
        if s.violation() <= floor:
            if floor > tol:
                return iterations, Outcome.ROUNDING
            tol /= 10  # a smaller violation is the only way to a smaller gap
            continue
        before = iterations
        for variables, values in islice(STRATEGIES[type(chosen)](s, chosen, floor, rng), REFRESH):
            if iterations == limit:
                return iterations, Outcome.MAX_ITER
            s.apply(variables, values)
            iterations += 1
        if iterations == before:
            return iterations, Outcome.ROUNDING


def _equations(problem: Problem, K: Floats) -> State:
    """No box: the optimality conditions are linear equations in c and rho."""
    m, n_groups = len(problem), len(problem.target)
    A = (problem.group == np.arange(n_groups)[:, None]).astype(np.float64)
    system = np.block([[problem.hessian(K), -A.T], [A, np.zeros((n_groups, n_groups))]])
    answer = np.linalg.solve(system, np.concatenate([-problem.linear, problem.target]))
    return State(problem, K, np.asarray(answer[:m], dtype=np.float64))


def _gram(items: Any) -> Floats:
    if isinstance(items, np.ndarray):
        return np.asarray(items, dtype=np.float64)
    return np.asarray(items.tile(None, items, None), dtype=np.float64)
