"""The linear multi-class machine of Crammer and Singer, by sequential dual descent.

    minimise  1/2 sum_m |w_m|^2 + sum_i price_i max_m ([m != y_i] + f_m(x_i) - f_(y_i)(x_i))

A row's k dual variables, which sum to zero, are found together for the others as they are (Keerthi,
Sundararajan, Chang, Hsieh and Lin 2008).  The scores of a row for all classes are one pass over it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.inverse import one_blas_thread
from maxmargin.linear.blocks import RANDOM_ACCESS, BlockDesign
from maxmargin.linear.losses import MulticlassHinge
from maxmargin.linear.penalties import L2
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import Progress, Solver
from maxmargin.problem import Floats

EXACT = 1e-15
"""A violation that is rounding."""


class SequentialDual(Solver):
    """Sequential dual descent in random order, with shrinking.

    Parameters
    ----------
    shrinking : bool, default=True
        Whether rows that have settled are left out of most sweeps.
    """

    name = "sequential-dual"

    def __init__(self, shrinking: bool = True):
        self.shrinking = shrinking

    def refusal(self, problem: LinearProblem) -> str | None:
        if not isinstance(problem.loss, MulticlassHinge):
            return "sequential-dual is for the multiclass hinge"
        if not isinstance(problem.penalty, L2):
            return "sequential-dual needs the l2 penalty"
        if isinstance(problem.design, BlockDesign):
            return f"sequential-dual {RANDOM_ACCESS}"
        if problem.free:
            return "sequential-dual has no free intercept: penalise it as a constant feature"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        """The dual has no use for weights to start from."""
        problem = progress.problem
        design = problem.design
        descent = _core.CrammerSinger(
            design.native,
            np.ascontiguousarray(problem.y, dtype=np.int64),
            problem.price,
            problem.n_scores,
            np.zeros((0, 0)),
            self.shrinking,
            seed,
            design.n_jobs,
        )
        with one_blas_thread():
            self._descend(progress, descent)

    def _descend(self, progress: Progress, descent: Any) -> None:
        design, n = progress.problem.design, progress.problem.design.n_rows
        tol = 0.1
        while True:
            settled = descent.run(4 * n, tol)
            w = descent.weights()
            z = design.scores(w)
            if progress.ends(w, z, descent.coefficients(), descent.sweeps, w):
                return None
            worst = descent.look(z, tol)
            if settled:
                if worst <= EXACT * max(1.0, float(np.abs(z).max())):
                    return progress.stuck()
                tol = max(0.1 * tol, EXACT / 10)
