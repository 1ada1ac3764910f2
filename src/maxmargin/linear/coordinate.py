"""Dual coordinate descent: one coefficient after the other, w kept up to date.

For a loss whose conjugate is linear, quadratic and |.| on a box, which is every loss here but the
logistic one, the dual of a linear machine with the L2 penalty is

    minimise  |X'c|^2 / 2 + sum_i c_i^2 / (2 L price_i) - y_i c_i + epsilon |c_i|   over the box

with L the loss's smoothness (Hsieh et al. 2008 for the hinge and its square, Ho and Lin 2012 for
regression; Yu, Huang and Lin 2011 for the logistic loss).  Problems on the same rows, as one
against the rest makes them, are solved in lock-step: a row is read once for all of them.

A free intercept b is the multiplier of sum c = 0.  It is found by the method of multipliers: each
look at the dual adds bias^2 sum c to b, where the constant feature makes up for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.linear.blocks import BlockDesign
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    HuberisedInsensitive,
    Logistic,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from maxmargin.linear.penalties import L2
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import LinearSolution, Progress, Solver, interruptible
from maxmargin.problem import Floats

SWEEPS = 3
"""Over a block while it is in memory (Yu et al. find a few to be best)."""

PIECEWISE = (
    Hinge,
    SquaredHinge,
    HuberisedHinge,
    Squared,
    EpsilonInsensitive,
    SquaredEpsilonInsensitive,
    HuberisedInsensitive,
)


class DualCoordinate(Solver):
    """Dual coordinate descent in random order, with shrinking.

    Parameters
    ----------
    shrinking : bool, default=True
        Whether coefficients that have settled are left out of most sweeps.
    """

    name = "dual-coordinate"

    def __init__(self, shrinking: bool = True):
        self.shrinking = shrinking

    def refusal(self, problem: LinearProblem) -> str | None:
        if not isinstance(problem.penalty, L2):
            return "dual-coordinate needs the l2 penalty"
        if not isinstance(problem.loss, (*PIECEWISE, Logistic)):
            return f"dual-coordinate does not know the loss {problem.loss.name}"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        if isinstance(progress.problem.design, BlockDesign):
            self._descend_by_blocks(progress, seed)
        else:
            self._descend([progress], seed)

    def solve_all(
        self, each: Sequence[Progress], starts: Sequence[Floats | None], seed: int
    ) -> list[LinearSolution]:
        first = each[0].problem
        alike = all(p.problem.design is first.design and p.problem.loss == first.loss for p in each)
        if len(each) == 1 or not alike or isinstance(first.design, BlockDesign):
            return super().solve_all(each, starts, seed)
        interruptible(lambda *_: self._descend(each, seed), each[0], None, seed)
        return [progress.finish() for progress in each]

    def _descend(self, each: Sequence[Progress], seed: int) -> None:
        problems = [progress.problem for progress in each]
        design, n = problems[0].design, problems[0].design.n_rows
        descent = self._native(problems, seed)
        offset = np.zeros(len(each))
        tol = 0.1
        visits, looks = max(4 * n, 2_000_000 // (design.stored // n + 100)), 0
        running = list(range(len(each)))
        while True:
            settled = descent.run(visits, tol)
            visits = 2 * n if looks < 10 else 4 * n
            looks += 1
            W, C = descent.weights(), descent.coefficients()
            effective = W.copy()
            if problems[0].free:
                effective[-1] += offset / design.bias
            Z = design.scores(effective)
            for j in list(running):
                v = None if problems[j].free else W[:, j]
                c = np.ascontiguousarray(C[:, j])
                z = np.ascontiguousarray(Z[:, j])
                if each[j].ends(effective[:, j].copy(), z, c, descent.sweeps, v):
                    descent.freeze(j)
                    running.remove(j)
            if not running:
                return
            if problems[0].free:
                offset[running] += design.bias * W[-1, running]
                for j in running:
                    descent.set_offset(j, offset[j])
            worst = descent.look(Z - offset if problems[0].free else Z, tol)
            if settled:
                exact = not (problems[0].free or isinstance(problems[0].loss, Logistic))
                if exact and worst.max() <= 1e-15:
                    for j in running:
                        each[j].stuck()
                    return
                tol *= 0.1

    def _descend_by_blocks(self, progress: Progress, seed: int) -> None:
        """A few sweeps over each block while it is in memory; a look at all after some passes."""
        whole = progress.problem
        design, bias = whole.design, whole.design.bias
        c, w, offset = first_coefficients(whole), np.zeros(whole.design.n_columns), 0.0
        if c.any():
            w = design.combine(c)
        passes, next_look = 0, 1
        while True:
            for rows, block in design.mixed(seed + passes):
                part = replace(whole, design=block, y=whole.y[rows], price=whole.price[rows])
                descent = self._native([part], seed + passes, c[rows, None], w[:, None])
                descent.set_offset(0, offset)
                descent.run(SWEEPS * block.n_rows, 0.0)
                c[rows], w = descent.coefficients()[:, 0], descent.weights()[:, 0]
                if progress.stopped():
                    break
            passes += 1
            if passes < min(next_look, progress.max_iter) and not progress.stopped():
                continue
            next_look = passes + max(1, passes // 2)
            effective = w.copy()
            if whole.free:
                effective[-1] += offset / bias
            z = design.scores(effective)
            if progress.ends(effective, z, c.copy(), passes, None if whole.free else w.copy()):
                return
            if whole.free:
                offset += bias * w[-1]

    def _native(
        self,
        problems: Sequence[LinearProblem],
        seed: int,
        start: Floats | None = None,
        weights: Floats | None = None,
    ) -> Any:
        """The descent from coefficients, and weights if these do not follow from them."""
        first = problems[0]
        loss = first.loss
        linear = -np.stack([problem.y for problem in problems], axis=1).astype(np.float64)
        boxes = [problem.box() for problem in problems]
        lower, upper = (np.stack(side, axis=1) for side in zip(*boxes, strict=True))
        price = np.stack([problem.price for problem in problems], axis=1)
        if start is None:
            start = np.stack([first_coefficients(problem) for problem in problems], axis=1)
        ridge = np.zeros((0, 0))
        if not isinstance(loss, Logistic) and np.isfinite(loss.smoothness):
            ridge = 1 / (loss.smoothness * price)
        return _core.Descent(
            first.design.native,
            linear,
            np.ascontiguousarray(lower),
            np.ascontiguousarray(upper),
            ridge,
            getattr(loss, "epsilon", 0.0),
            isinstance(loss, Logistic),
            np.ascontiguousarray(start),
            np.zeros((0, 0)) if weights is None else np.ascontiguousarray(weights),
            self.shrinking,
            seed,
            first.design.n_jobs,
        )


def first_coefficients(problem: LinearProblem) -> Floats:
    """Zero, or for the logistic loss, whose dual has no slope there, a hair inside the box."""
    if isinstance(problem.loss, Logistic):
        return problem.y * np.minimum(1e-3 * problem.price, 1e-8)
    return np.zeros(problem.design.n_rows)
