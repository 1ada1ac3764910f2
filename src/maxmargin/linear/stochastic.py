"""Stochastic methods: many cheap steps, each by a few rows.

    Pegasos       subgradients of batches of the hinge loss, the lectures' method
    AveragedSGD   subgradients of one row for any loss, and an average of the points that counts
                  later ones more
    ProxSAGA      gradients of one row, less what is remembered of it, for smooth losses: the error
                  falls geometrically

With lambda = 1 / sum of the prices, all of them see the problem as

    minimise  lambda penalty(w) + average of loss(y_i, x_i.w)

where rows count, or are drawn, in proportion to their price: for equal prices C, lambda is
1 / (C n).  An iteration is n visits.  After each, the points at hand are judged by what they prove;
none of these methods has an end of its own, and a gap that is not small is reported as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.inverse import one_blas_thread
from maxmargin.linear.blocks import RANDOM_ACCESS, BlockDesign
from maxmargin.linear.cutting_plane import LossRisk, Planes
from maxmargin.linear.losses import Hinge
from maxmargin.linear.newton import NATIVE, native
from maxmargin.linear.penalties import L1, L2, ElasticNet
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import Progress, Solver
from maxmargin.problem import Floats, Indices

REMEMBERED = 20
"""Points of which the slopes are kept, to bound the optimum."""


class Stochastic(Solver):
    """What stochastic methods share: rows are drawn, points are judged after n visits."""

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        problem = progress.problem
        judge = Judge(progress)
        w = np.zeros(problem.shape) if start is None else np.array(start)
        passes = self.passes(problem, w, Draws(problem.price, seed))
        with one_blas_thread():
            if judge.ends(w, 0):
                return
            for iteration, points in enumerate(passes, start=1):
                verdicts = [judge.ends(point, iteration) for point in points]
                if any(verdicts):
                    return

    def passes(self, problem: LinearProblem, w: Floats, draws: Draws) -> Any:
        """The points after each n visits, one tuple of them after the other."""
        raise NotImplementedError


class Draws:
    """Rows drawn with replacement, in proportion to their price."""

    def __init__(self, price: Floats, seed: int):
        self.n = len(price)
        self.random = np.random.default_rng(seed)
        self.share = None if np.ptp(price) == 0 else np.cumsum(price) / price.sum()

    def __call__(self, count: int) -> Indices:
        if self.share is None:
            return self.random.integers(self.n, size=count)
        drawn = np.searchsorted(self.share, self.random.random(count), side="right")
        return np.minimum(drawn, self.n - 1)

    def uniform(self, count: int) -> Indices:
        return self.random.integers(self.n, size=count)


class Judge:
    """Shows points to a ``Progress``, with the best free constant.

    The slopes at points that jump about prove little.  With the L2 penalty those of the last few
    are planes below the risk, whose best mixture proves what can be (see ``cutting_plane``).
    """

    def __init__(self, progress: Progress):
        self.progress = progress
        self.risk = LossRisk(progress.problem)
        self.planes = Planes(REMEMBERED)

    def ends(self, w: Floats, iteration: int) -> bool:
        problem = self.progress.problem
        z = problem.design.scores(w)
        shift, c = self.risk.look(z)
        if shift != 0:
            w = w.copy()
            w[-1] += shift / problem.design.bias
            z = z + shift
        if not isinstance(problem.penalty, L2):
            return self.progress.ends(w, z, c, iteration)
        v = problem.design.combine(c)
        if problem.free:
            v[-1] = 0.0  # rounding aside
        self.planes.add(c, v, self.risk.offset(z, c))
        lower, mixed, beta = self.planes.mixture()
        return self.progress.ends(w, z, self.risk.dual_point(mixed, beta), iteration, lower)


class Pegasos(Stochastic):
    """Pegasos: primal estimated subgradients (Shalev-Shwartz, Singer, Srebro and Cotter 2011).

    Step t takes ``batch`` rows, moves by 1 / (lambda t) along the subgradient of theirs, and comes
    back to the ball of radius 1 / sqrt(lambda), in which the optimum lies.  It begins at zero,
    whatever the start: its first step forgets it.

    Parameters
    ----------
    batch : int, default=1
        The rows of a step.
    project : bool, default=True
        Whether steps end on the ball.
    """

    name = "pegasos"

    def __init__(self, batch: int = 1, project: bool = True):
        self.batch = batch
        self.project = project

    def refusal(self, problem: LinearProblem) -> str | None:
        if isinstance(problem.design, BlockDesign):
            return f"pegasos {RANDOM_ACCESS}"
        if not isinstance(problem.loss, Hinge):
            return "pegasos is for the hinge"
        if not isinstance(problem.penalty, L2):
            return "pegasos needs the l2 penalty"
        if problem.free:
            return "pegasos has no free intercept: penalise it as a constant feature"
        return None

    def passes(self, problem: LinearProblem, w: Floats, draws: Draws) -> Any:
        design, lambda_, t = problem.design, 1 / float(problem.price.sum()), 0
        while True:
            rows = draws(design.n_rows)
            w, t = _core.pegasos(
                design.native, problem.y, rows, self.batch, lambda_, self.project, w, t
            )
            yield (w,)


class AveragedSGD(Stochastic):
    """Subgradient steps, and the average of their points by polynomial decay.

    Step t is 2 / (lambda (t + delay)) long, where the delay makes the first ones as short as the
    rows' lengths ask for, and the average counts point t by t (Lacoste-Julien, Schmidt and Bach
    2012; Shamir and Zhang 2013): its error is O(1 / (lambda t)).
    """

    name = "averaged-sgd"

    def refusal(self, problem: LinearProblem) -> str | None:
        if isinstance(problem.design, BlockDesign):
            return f"averaged-sgd {RANDOM_ACCESS}"
        if not isinstance(problem.penalty, L2):
            return "averaged-sgd needs the l2 penalty"
        if type(problem.loss) not in NATIVE:
            return f"averaged-sgd does not know the loss {problem.loss.name}"
        return None

    def passes(self, problem: LinearProblem, w: Floats, draws: Draws) -> Any:
        design = problem.design
        lambda_ = 1 / float(problem.price.sum())
        steepest = problem.loss.smoothness if np.isfinite(problem.loss.smoothness) else 1.0
        longest = max(float(design.norms().max(initial=0.0)), 1e-300)
        delay = max(1.0, 2 * steepest * longest / lambda_)
        loss, average, t = native(problem.loss), w, 0
        while True:
            w, average, t = _core.averaged_sgd(
                design.native,
                loss,
                problem.y,
                draws(design.n_rows),
                lambda_,
                delay,
                problem.free,
                w,
                average,
                t,
            )
            yield w, average


class ProxSAGA(Stochastic):
    """Variance-reduced gradients with a table of slopes (Defazio, Bach and Lacoste-Julien 2014)."""

    name = "prox-saga"

    def refusal(self, problem: LinearProblem) -> str | None:
        if isinstance(problem.design, BlockDesign):
            return f"prox-saga {RANDOM_ACCESS}"
        if not isinstance(problem.penalty, (L2, L1, ElasticNet)):
            return "prox-saga needs the l2, l1 or elasticnet penalty"
        if np.isinf(problem.loss.smoothness):
            return "prox-saga needs a smooth loss"
        if type(problem.loss) not in NATIVE:
            return f"prox-saga does not know the loss {problem.loss.name}"
        return None

    def passes(self, problem: LinearProblem, w: Floats, draws: Draws) -> Any:
        design, price = problem.design, problem.price
        lambda_ = 1 / float(price.sum())
        factor = design.n_rows * lambda_ * price  # 1 on average
        steepest = problem.loss.smoothness * float((factor * design.norms()).max(initial=0.0))
        step = 1 / (3 * max(steepest, 1e-300))
        ratio = getattr(problem.penalty, "l1_ratio", float(isinstance(problem.penalty, L1)))
        slopes = problem.loss.derivative(problem.y, design.scores(w))
        mean = lambda_ * design.combine(price * slopes)
        loss = native(problem.loss)
        while True:
            w, mean, slopes = _core.saga(
                design.native,
                loss,
                problem.y,
                factor,
                draws.uniform(design.n_rows),
                step,
                lambda_ * ratio,
                lambda_ * (1 - ratio),
                problem.free,
                w,
                mean,
                slopes,
            )
            yield (w,)
