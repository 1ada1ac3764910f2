"""Polishing: a converged solution with few free variables is made exact.

At the optimum the free variables S satisfy linear equations: with the others where they are,

    G_S + H_SS d = rho of each variable's group,   sum of d over a group = target - sum of c

One solve of them takes an approximate solution to machine precision, provided that it knows which
variables are free.  The result is kept only when it is feasible and its violation is smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from maxmargin.certificate import largest_violation
from maxmargin.problem import Floats, Problem

FEW = 500
"""Free variables at most: the equations cost FEW^3 / 3."""

EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-15
"""A violation that is not worth another round."""


def polish(
    problem: Problem, items: Any, coefficients: Floats, scores: Floats, n_threads: int = 1
) -> tuple[Floats, Floats]:
    """Coefficients and scores, exact where that could be had and else as they came."""
    c, F = coefficients, scores
    free = np.flatnonzero((c > problem.lower) & (c < problem.upper))
    if not 0 < len(free) <= FEW:
        return c, F
    before = largest_violation(problem, c, problem.gradient(c, F))
    for _ in range(2):  # the second round removes what rounding left of the first
        if before < ROUNDING:
            break
        step = _step(problem, items, c, F, free, n_threads)
        moved = c.copy()
        moved[free] += step
        inside = (moved >= problem.lower) & (moved <= problem.upper)
        if not np.isfinite(step).all() or not inside.all():
            break
        change = problem.spread(moved - c)
        used = np.flatnonzero(change.any(axis=1))
        if len(used) == 0:
            break
        moved_scores = F + items.multiply(items.subset(used), change[used], n_threads)
        after = largest_violation(problem, moved, problem.gradient(moved, moved_scores))
        if not after < before:
            break
        c, F, before = moved, moved_scores, after
    return c, F


def _step(
    problem: Problem, items: Any, c: Floats, F: Floats, free: np.ndarray, n_threads: int
) -> Floats:
    part, used = problem.only(free)
    few = items.subset(used)
    H = part.hessian(few.multiply(few, np.eye(len(used)), n_threads))  # float64, whatever the data
    groups, group = np.unique(part.group[part.group >= 0], return_inverse=True)
    A = np.zeros((len(groups), len(free)))
    size = float(np.abs(H).max()) or 1.0  # of the same size as H, or least squares forget the sums
    A[group, np.flatnonzero(part.group >= 0)] = size
    grouped = problem.group >= 0
    sums = np.bincount(problem.group[grouped], c[grouped], len(problem.target))
    system = np.block([[H, A.T], [A, np.zeros((len(groups), len(groups)))]])
    right = np.concatenate([-problem.gradient(c, F)[free], size * (problem.target - sums)[groups]])
    (sysvx,) = get_lapack_funcs(("sysvx",), (system,))
    *_, step, rcond, _, _, _ = sysvx(system, right)
    if not rcond > EPSILON:
        step, *_ = np.linalg.lstsq(system, right)  # duplicates: the smallest of many steps
    return np.asarray(np.ravel(step)[: len(free)], dtype=np.float64)
