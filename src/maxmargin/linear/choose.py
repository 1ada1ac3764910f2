"""Which solver: by name, or the one that suits a problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.linear.blocks import BlockDesign
from maxmargin.linear.coordinate import DualCoordinate
from maxmargin.linear.coordinate_newton import CoordinateNewton
from maxmargin.linear.crammer_singer import SequentialDual
from maxmargin.linear.cutting_plane import CuttingPlane
from maxmargin.linear.interior_point import InteriorPoint
from maxmargin.linear.losses import MulticlassHinge, PerceptronLoss, Squared
from maxmargin.linear.newton import Newton
from maxmargin.linear.penalties import L2
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.proximal_gradient import ProximalGradient
from maxmargin.linear.solver import Solver, is_small
from maxmargin.linear.stochastic import AveragedSGD, Pegasos, ProxSAGA

SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls
    for cls in (
        DualCoordinate,
        Newton,
        InteriorPoint,
        CoordinateNewton,
        SequentialDual,
        CuttingPlane,
        ProximalGradient,
        ProxSAGA,
        AveragedSGD,
        Pegasos,
    )
}
"""What ``solver=`` calls them."""

THIN = 80
"""Stored numbers of a row up to which second-order methods win: their matrix costs half the square
of that for each row, where a sweep of coordinate descent costs twice it."""


HUGE = 100_000
"""Rows from which on Newton's method, begun on a sample, needs fewer steps than the interior point
method to a gap of 1e-4 and looks at fewer rows in each."""


def choose(solver: Any, problem: LinearProblem) -> Solver:
    """The solver to use for a problem; ``"auto"`` takes the one that suits it."""
    if isinstance(problem.loss, PerceptronLoss):
        raise ValueError(
            "loss='perceptron' has the solution w = 0 under any penalty: use "
            "maxmargin.Perceptron, or loss='hinge'."
        )
    if isinstance(solver, str) and solver == "auto":
        chosen = automatic(problem)
    elif isinstance(solver, Solver):
        chosen = solver
    elif isinstance(solver, str) and solver in SOLVERS:
        chosen = SOLVERS[solver]()
    else:
        raise ValueError(
            f"solver must be 'auto', one of {sorted(SOLVERS)} or an object of maxmargin.linear; "
            f"got {solver!r}."
        )
    if (reason := chosen.refusal(problem)) is not None:
        raise ValueError(
            f"solver={chosen.name!r} cannot solve this problem: {reason}; {_instead(problem)}."
        )
    return chosen


def _instead(problem: LinearProblem) -> str:
    """What to do when a solver refuses a problem."""
    what = f"{problem.penalty.name} with the {problem.loss.name} loss"
    able = [name for name, cls in SOLVERS.items() if cls().refusal(problem) is None]
    if able:
        return f"for {what} use solver={' or '.join(map(repr, able))}"
    if problem.free:
        penalised = replace(problem, free=False)
        if any(cls().refusal(penalised) is None for cls in SOLVERS.values()):
            return f"{what} needs penalize_intercept=True, or fit_intercept=False"
    return f"no solver has {what}"


def automatic(problem: LinearProblem) -> Solver:
    """The fastest solver, by the size of the data alone."""
    design = problem.design
    thin = design.stored <= THIN * design.n_rows and design.n_columns <= 1000
    if isinstance(problem.penalty, L2):
        if isinstance(problem.loss, MulticlassHinge):
            small = is_small(problem) or isinstance(design, BlockDesign)
            return CuttingPlane() if small else SequentialDual()
        if problem.n_scores > 1:
            return Newton()
        if isinstance(problem.loss, Squared):
            return Newton()
        coordinate = DualCoordinate()
        if np.isinf(problem.loss.smoothness) and thin:
            return InteriorPoint() if design.n_rows < HUGE else Newton()
        if thin or coordinate.refusal(problem) is not None:
            return Newton()
        return coordinate
    for cls in SOLVERS.values():
        if cls().refusal(problem) is None:
            return cls()
    return Newton()
