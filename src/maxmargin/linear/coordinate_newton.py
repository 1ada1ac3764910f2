"""Coordinate-descent Newton for the L1 and elastic-net penalties.

    minimise  P(w) = l1 |w|_1 + l2 |w|^2 / 2 + sum_i price_i loss(y_i, x_i.w)

Most weights of the answer are zero, so that columns are worked on, not rows.  A working set holds
the nonzero weights and the columns that violate their optimality condition most; native code brings
their violation down by Newton steps whose quadratic models are minimised by coordinate descent
(newGLMNET: Yuan, Ho and Lin 2012; see coordinate_newton.hpp); then all columns are looked at again,
and the set grows (working sets: Massias, Gramfort and Salmon 2018).

A column can be left out for good when the dual optimum, which lies in a ball around any feasible c,

    sum_i (c_i - c*_i)^2 / (2 price_i smoothness) <= gap,

keeps |x_j.c*| below l1 (the gap-safe rule: Ndiaye, Fercoq, Gramfort and Salmon 2017).

A loss with kinks is replaced by its smooth stand-in of some width, whose minimum is a start for the
next, smaller width; the gap is always that of the true loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.linear.blocks import BlockDesign
from maxmargin.linear.newton import NATIVE, native
from maxmargin.linear.penalties import L1, ElasticNet
from maxmargin.linear.problem import Design, LinearProblem
from maxmargin.linear.solver import Progress, Solver
from maxmargin.problem import Floats

NARROWEST = 1e-12
"""Of the widths of smooth stand-ins."""


class CoordinateNewton(Solver):
    """Newton steps by coordinate descent, on working sets of columns.

    Parameters
    ----------
    first : int, default=4096
        The columns of the first working set.
    patience : int, default=5
        Looks at all columns without a smaller violation before rounding is blamed.
    """

    name = "coordinate-newton"
    fast_at_the_end = True

    def __init__(self, first: int = 4096, patience: int = 5):
        self.first = first
        self.patience = patience

    def refusal(self, problem: LinearProblem) -> str | None:
        if not isinstance(problem.penalty, (L1, ElasticNet)):
            return "coordinate-newton needs the l1 or the elasticnet penalty"
        if type(problem.loss) not in NATIVE:
            return f"coordinate-newton does not know the loss {problem.loss.name}"
        if isinstance(problem.design, BlockDesign):
            return "coordinate-newton works on columns, and these rows are read block by block"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        self.solve_on(columns(progress.problem.design), progress, start, seed)

    def solve_on(
        self, columns: _core.Columns, progress: Progress, start: Floats | None, seed: int
    ) -> None:
        """Solve a problem whose design is there by columns already."""
        problem = progress.problem
        l1, l2 = strengths(problem)
        descent = _core.CoordinateNewton(
            columns,
            problem.y,
            problem.price,
            l1,
            l2,
            problem.free,
            np.zeros(problem.shape) if start is None else np.ascontiguousarray(start),
            seed,
            problem.design.n_jobs,
        )
        kinked = np.isinf(problem.loss.smoothness)
        width = 1.0
        smooth = problem.loss.smoothed(width)
        descent.set_loss(native(smooth))
        screen = None if kinked else Screen(problem, columns, l1)
        size, steps, idle = self.first, 0, 0
        least = lowest = np.inf
        while True:
            w, z, c = descent.weights(), descent.scores(), descent.slopes()
            balanced = problem.balanced(c)
            v = columns.combine(balanced, problem.design.n_jobs)
            if progress.ends(w, z, balanced, steps, v):
                return None
            proof = replace(problem, loss=smooth).certificate(w, z, balanced, v)
            if balanced is not c:
                v = columns.combine(c, problem.design.n_jobs)
            worst = violations(problem, w, v, l1, l2)
            largest = float(worst.max())
            better = largest < least or proof.primal < lowest - 1e-12 * abs(lowest)
            idle = 0 if better else idle + 1
            least, lowest = min(least, largest), min(lowest, proof.primal)
            if kinked:
                narrower = proof.gap < 0.2 * progress.dual_gap or idle > self.patience
                if narrower and width > NARROWEST:
                    width /= 10
                    smooth = problem.loss.smoothed(width)
                    descent.set_loss(native(smooth))
                    idle, least, lowest = 0, np.inf, np.inf
                    continue
            if idle > self.patience or largest == 0:
                return progress.stuck()
            if screen is not None:
                screen.look(w, z, balanced, v)
                worst[screen.out & (w == 0)] = 0.0
            size = max(size, 2 * int(np.count_nonzero(w)))
            working = working_set(worst, w, size, problem.free)
            allowed = max(min(20, progress.max_iter - steps), 1)
            moved = descent.descend(working, 0.3 * largest, allowed)
            steps += moved
            if moved == 0:
                idle = self.patience + 1


class Screen:
    """Which columns have weight zero at every optimum, as far as a gap has shown it."""

    def __init__(self, problem: LinearProblem, columns: _core.Columns, l1: float):
        self.problem = problem
        self.l1 = l1
        self.lengths = np.sqrt(columns.weighted_norms(problem.price))
        self.out = np.zeros(problem.shape, dtype=bool)

    def look(self, w: Floats, z: Floats, c: Floats, v: Floats) -> None:
        """Exclude what weights w and coefficients c (that sum to zero, if b is free) exclude."""
        problem = self.problem
        gap = problem.certificate(w, z, c, v).gap
        radius = np.sqrt(2 * problem.loss.smoothness * gap)
        v = problem.penalty.reach(problem.penalised(v)) * v
        self.out |= np.abs(v) + radius * self.lengths < (1 - 1e-9) * self.l1
        if problem.free:
            self.out[-1] = False


def columns(design: Design) -> _core.Columns:
    """A copy of the data by columns."""
    X, bias = design.X, design.bias
    if sp.issparse(X):
        return _core.csr_columns(X.data, X.indices, X.indptr, X.shape[1], bias)
    return _core.dense_columns(X, bias)


def strengths(problem: LinearProblem) -> tuple[float, float]:
    """The factors of |w|_1 and |w|^2 / 2 in the penalty."""
    penalty: Any = problem.penalty
    ratio = penalty.l1_ratio if isinstance(penalty, ElasticNet) else 1.0
    return ratio, 1 - ratio


def violations(problem: LinearProblem, w: Floats, v: Floats, l1: float, l2: float) -> Floats:
    """How far each column's smallest subgradient is from zero, for v = X'c."""
    gradient = l2 * w - v
    worst = np.where(
        w == 0, np.maximum(np.abs(gradient) - l1, 0.0), np.abs(gradient + l1 * np.sign(w))
    )
    if problem.free:
        worst[-1] = abs(v[-1])
    return worst


def working_set(worst: Floats, w: Floats, size: int, free: bool) -> Any:
    """Columns with a weight, and those of the others that violate most; the constant if free."""
    score = np.where(w != 0, np.inf, worst)
    if free:
        score[-1] = np.inf
    working = np.flatnonzero(score)
    if len(working) > size:
        working = np.sort(working[np.argpartition(-score[working], size)[:size]])
    return working
