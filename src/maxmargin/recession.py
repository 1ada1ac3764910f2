"""The proof that there is no hard margin: a direction in which its dual falls for ever.

A hard margin asks f to be mu above a threshold where c >= 0 and mu below it where c <= 0, one
threshold for each group.  (Crammer and Singer ask for f_y - f_m >= 1, which is mu = 1/2 around the
middle of the two that lie nearest.)  Let c have these signs, sum to zero over every group, and make
the function w(c).  Then any f = <w_f, .> that does as asked has

    mu sum|c| <= sum_i c_i (f_i - threshold) = <w_f, w(c)> <= |w_f| |w(c)|,

so that its margin mu / |w_f| is at most |w(c)| / sum|c|, whatever c.  Where no f exists some c has
w(c) = 0 (Farkas).  The solver's c grows along it, and its own bound falls as slowly as 1 / step;
without the part of c that makes w, the bound is zero at once.  (A tube asks for G >= 0 and G <= 0
as well, and -p'c stands in the place of mu sum|c|.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import Floats, Indices, Problem

FEW = 500
"""Variables at most that the direction is made of: its equations cost some FEW^3 * 10."""

ROUNDS = 10
NULL = 1e-13
"""Singular values below this fraction of the largest count as zero."""


def recession(problem: Problem, items: Any, c: Floats, n_threads: int) -> Floats | None:
    """A point near c with w = 0 that has the signs of the box and keeps the sums, if one is found.

    It is the part of c in the null space of the kernel matrix and of the sums, among the variables
    that have grown most; those that would change their sign are left out.
    """
    weight = np.bincount(problem.group + 1, np.abs(c))[problem.group + 1] * (problem.group >= 0)
    order = np.lexsort((-np.abs(c), problem.group, -weight))  # whole groups: parts cannot balance
    grown = order[np.abs(c[order]) > 1e-3 * np.abs(c).max()]
    chosen = np.sort(grown[:FEW])
    for _ in range(ROUNDS):
        if len(chosen) == 0:
            break
        x = c[chosen]
        system = _system(problem, items, chosen, n_threads)
        right = system[:, : len(chosen)] @ x
        x = x - np.linalg.lstsq(system, right, rcond=NULL)[0][: len(chosen)]
        within = (x >= problem.lower[chosen]) & (x <= problem.upper[chosen])
        if within.all():
            out = np.zeros_like(c)
            out[chosen] = x
            return out if _is_proof(problem, out) else None
        chosen = chosen[within]
    return None


def _system(problem: Problem, items: Any, chosen: Indices, n_threads: int) -> Floats:
    """[[H, A'], [A, 0]]: the kernel among the variables, and the sums of their groups."""
    part, used = problem.only(chosen)
    few = items.subset(used)
    H = part.hessian(few.multiply(few, np.eye(len(used)), n_threads))
    groups, place = np.unique(part.group[part.group >= 0], return_inverse=True)
    A = np.zeros((len(groups), len(chosen)))
    A[place, np.flatnonzero(part.group >= 0)] = float(np.abs(H).max()) or 1.0
    return np.block([[H, A.T], [A, np.zeros((len(groups), len(groups)))]])


def _is_proof(problem: Problem, c: Floats) -> bool:
    """Whether every group sums to zero and the objective falls, by more than rounding."""
    grouped = problem.group >= 0
    sums = np.bincount(problem.group[grouped], c[grouped], minlength=len(problem.target))
    balanced = np.abs(sums).sum() <= 1e-9 * np.abs(c).sum()
    falls = -problem.linear @ c > 0.1 * np.abs(problem.linear) @ np.abs(c)
    return bool(balanced and falls)
