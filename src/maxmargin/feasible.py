"""Feasible points: where a solver starts, and what a start that is not feasible becomes."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.problem import Floats, Indices, Problem

ROUNDING = 1e-12
"""A sum that is off by less, relative to its terms, is off by rounding only."""


def balance(
    center: Floats, slope: Floats, lower: Floats, upper: Floats, total: float
) -> tuple[float, Floats]:
    """The rho for which x(rho) = clip((center - rho) * slope, lower, upper) sums to ``total``.

    The sum is piecewise linear in rho and falls: bisection over its kinks finds the piece, and
    between two kinks x(rho) is linear too.  Variable i leaves its upper end at ``leave[i]`` and
    arrives at its lower end at ``arrive[i]``.
    """
    with np.errstate(over="ignore"):
        leave, arrive = center - upper / slope, center - lower / slope

    def x(rho: float) -> Floats:
        inside = np.clip((center - rho) * slope, lower, upper)
        return np.where(rho <= leave, upper, np.where(rho >= arrive, lower, inside))

    kinks = np.unique(np.concatenate([leave, arrive]))
    kinks = kinks[np.isfinite(kinks)]
    piece = bisect_right(kinks, -total, key=lambda rho: -x(rho).sum())
    if piece == 0 or (piece == len(kinks) and np.isinf(lower).any()):
        # Beyond the outermost kink, whatever still moves has no bound on that side.
        rho = kinks[-1 if piece else 0] if len(kinks) else 0.0
        free = slope[np.isinf(lower if piece else upper)].sum()
        if free > 0:
            rho += (x(rho).sum() - total) / free
        return float(rho), x(rho)
    left = kinks[piece - 1]
    right = kinks[piece] if piece < len(kinks) else left
    high, low = x(left), x(right) if piece < len(kinks) else lower
    fall = high.sum() - low.sum()
    part = (total - low.sum()) / fall if fall > 0 else 1.0
    return float(right - part * (right - left)), np.clip(low + part * (high - low), lower, upper)


def project(problem: Problem, coefficients: ArrayLike) -> Floats:
    """The feasible point nearest to ``coefficients``.

    A sum that is off by no more than rounding stays as it is: mending it would lift a variable from
    its bound by a hair, and free variables decide on the intercept.
    """
    wish = np.asarray(coefficients, dtype=np.float64)
    if wish.shape != problem.linear.shape or not np.all(np.isfinite(wish)):
        raise ValueError(f"start must hold {len(problem)} finite numbers, one for each variable.")
    c = np.clip(wish, problem.lower, problem.upper)
    for g, members in enumerate(problem.groups()):
        target = problem.target[g]
        if _misses(c[members], target):
            lower, upper = _sides(problem, members, target)
            _, c[members] = balance(wish[members], np.ones(len(members)), lower, upper, target)
    return c


def feasible_start(problem: Problem) -> Floats:
    """Zero where that is feasible; otherwise the first variables of a group are filled up.

    Few support vectors make a cheap start, which is why the sum is not spread over all.
    """
    c = np.clip(np.zeros(len(problem)), problem.lower, problem.upper)
    for g, members in enumerate(problem.groups()):
        missing = problem.target[g] - c[members].sum()
        if missing != 0:
            lower, upper = _sides(problem, members, problem.target[g])
            room = upper - c[members] if missing > 0 else c[members] - lower
            left = abs(missing) - np.concatenate([[0.0], np.cumsum(room)[:-1]])
            hair = ROUNDING * abs(missing)  # of a variable is not worth leaving a bound for
            fill = np.where(left < hair, 0.0, np.where(left > room - hair, room, left))
            c[members] += np.sign(missing) * fill
    return c


def _sides(problem: Problem, members: Indices, target: float) -> tuple[Floats, Floats]:
    """The box of a group, which must be able to meet the group's target."""
    lower, upper = problem.lower[members], problem.upper[members]
    least, most = float(lower.sum()), float(upper.sum())
    slack = ROUNDING * len(members) * abs(target)
    if not least - slack <= target <= most + slack:
        raise ValueError(
            f"No point is feasible: the sum of a group must be {target:g}, "
            f"and its bounds allow {least:g} to {most:g}."
        )
    return lower, upper


def _misses(x: Floats, target: float) -> bool:
    """Whether x sums to something else than the target, by more than rounding explains."""
    return bool(abs(x.sum() - target) > ROUNDING * (np.abs(x).sum() + abs(target)))
