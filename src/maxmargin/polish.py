"""Polishing: a converged solution with few free variables is made exact.

At the optimum the free variables S satisfy linear equations: with the others where they are,

    G_S + H_SS d = rho of each variable's group,   sum of d over a group = target - sum of c

One solve of them takes an approximate solution to machine precision, provided that it knows which
variables are free.  Where it does not, the primal active-set method finds out (Nocedal and Wright
2006, algorithm 16.3): a step that would leave the box ends at its border, where the variable that
met it stays; after a whole step the variables at a bound that could leave it downhill join S.  No
step raises the objective.  A point is kept only when its violation is smaller.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from maxmargin.certificate import largest_violation, violators
from maxmargin.inverse import one_blas_thread
from maxmargin.problem import Floats, Indices, Problem

FEW = 500
"""Free variables at most: the equations cost FEW^3 / 3."""

ROUNDS = (2, 10)
"""Solves at most: the second removes what rounding left of the first, and more look for S."""

VALUES = 2 * 10**7
"""Kernel values that all solves together may ask for, when they are more than two."""

WORTH_THREADS = 100
"""Equations from which BLAS starts threads.  They wait for each other wherever processors are
shared, a hundred times longer than they work, and so are kept out."""

EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-15
"""A violation that is not worth another round."""


def polish(
    problem: Problem, items: Any, coefficients: Floats, scores: Floats, n_threads: int = 1
) -> tuple[Floats, Floats]:
    """Coefficients and scores, exact where that could be had and else as they came."""
    free = np.flatnonzero((coefficients > problem.lower) & (coefficients < problem.upper))
    with one_blas_thread() if len(free) > WORTH_THREADS else nullcontext():
        return _active_set(problem, items, coefficients, scores, free, n_threads)


def _active_set(
    problem: Problem, items: Any, c: Floats, F: Floats, free: Indices, n_threads: int
) -> tuple[Floats, Floats]:
    best, least = (c, F), largest_violation(problem, c, problem.gradient(c, F))
    few, many = ROUNDS
    affordable = VALUES // max(problem.n_items * len(free), 1)
    for _ in range(min(max(affordable, few), many)):
        if least < ROUNDING * problem.unit or not 0 < len(free) <= FEW:
            break
        step = _step(problem, items, c, F, free, n_threads)
        if not np.isfinite(step).all():
            break
        end = np.where(step > 0, problem.upper[free], problem.lower[free])
        share = np.divide(end - c[free], step, out=np.full(len(free), np.inf), where=step != 0)
        part = min(float(share.min()), 1.0)
        moved = c.copy()
        moved[free] = np.where(share <= part, end, c[free] + part * step)
        change = problem.spread(moved - c)
        used = np.flatnonzero(change.any(axis=1))
        if len(used):
            F = F + items.multiply(items.subset(used), change[used], n_threads)
        c = moved
        if part < 1:
            free = free[share > part]
            continue
        G = problem.gradient(c, F)
        violation, before = largest_violation(problem, c, G), free
        free = np.union1d(free, violators(problem, c, G))
        if violation < least:
            best, least = (c, F), violation
        elif np.array_equal(free, before):
            break
    return best


def _step(
    problem: Problem, items: Any, c: Floats, F: Floats, free: Indices, n_threads: int
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
