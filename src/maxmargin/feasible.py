"""Feasible points: where a solver starts, and what a start that is not feasible becomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.problem import Floats, Indices, Problem


def balance(
    center: Floats, slope: Floats, lower: Floats, upper: Floats, total: float
) -> tuple[float, Floats]:
    """The rho for which x(rho) = clip((center - rho) * slope, lower, upper) sums to ``total``.

    The sum falls as rho grows; bisection, then one exact step on the linear piece that is left.
    """

    def x(rho: float) -> Floats:
        return np.clip((center - rho) * slope, lower, upper)

    with np.errstate(invalid="ignore", over="ignore"):
        ends = np.concatenate([center - lower / slope, center - upper / slope, center])
    ends = ends[np.isfinite(ends)]
    reach = 1.0 + abs(total) / float(slope.max(initial=1e-300))
    low, high = float(ends.min()) - reach, float(ends.max()) + reach
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if x(middle).sum() > total:
            low = middle
        else:
            high = middle
    rho = (low + high) / 2
    point = x(rho)
    free = (point > lower) & (point < upper)
    if free.any():
        step = (point.sum() - total) / slope[free].sum()
        rho, point = rho + float(step), x(rho + float(step))
    return rho, point


def project(problem: Problem, coefficients: ArrayLike) -> Floats:
    """The feasible point nearest to ``coefficients``."""
    c = np.clip(np.asarray(coefficients, dtype=np.float64), problem.lower, problem.upper)
    for g, members in enumerate(problem.groups()):
        target = problem.target[g]
        if c[members].sum() != target:
            lower, upper = problem.lower[members], problem.upper[members]
            _, c[members] = balance(c[members], np.ones(len(members)), lower, upper, target)
            _settle(c, members, problem, target)
    return c


def feasible_start(problem: Problem) -> Floats:
    """Zero where that is feasible; otherwise the first variables of a group are filled up.

    Few support vectors make a cheap start, which is why the sum is not spread over all.
    """
    c = np.clip(np.zeros(len(problem)), problem.lower, problem.upper)
    for g, members in enumerate(problem.groups()):
        target = problem.target[g]
        if target != 0:
            sign = np.sign(target)
            room = problem.upper[members] if sign > 0 else -problem.lower[members]
            before = np.cumsum(room) - room
            c[members] = sign * np.clip(abs(target) - before, 0, room)
            _settle(c, members, problem, target)
    return c


def _settle(c: Floats, members: Indices, problem: Problem, target: float) -> None:
    """Put the last rounding error of a sum on the coefficient that has the most room for it."""
    error = target - c[members].sum()
    room = np.minimum(c - problem.lower, problem.upper - c)[members]
    i = members[np.argmax(room)]
    c[i] = np.clip(c[i] + error, problem.lower[i], problem.upper[i])
