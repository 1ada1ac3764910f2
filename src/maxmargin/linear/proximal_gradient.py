"""The accelerated proximal gradient method, for every penalty with a proximal operator.

    minimise  P(w) = penalty(w) + F(w),    F(w) = sum_i price_i loss(y_i, x_i.w)

A step minimises the penalty and a parabola of curvature L that touches F at the point u,

    w+ = prox(u - grad F(u) / L, 1 / L),     u = w+ + (t - 1) / t+ (w+ - w),
    t+ = (1 + sqrt(1 + 4 t^2)) / 2

(Beck and Teboulle 2009, FISTA with backtracking: L grows until the parabola lies above F at w+, and
shrinks a little with each step).  The momentum starts again from rest when it points uphill
(O'Donoghue and Candes 2015).  After k steps P is within 2 L |w0 - w*|^2 / k^2 of the optimum; near
it restarts make the rate linear where P is strongly convex there.

The gradient is -X'c with c_i = -price_i loss'(y_i, z_i), the dual point of the certificate.  Losses
with kinks are smoothed, narrower and narrower.  Of the weights of many classes the penalty counts
the whole matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin.linear.losses import Loss, MulticlassHinge, PerceptronLoss
from maxmargin.linear.penalties import Group
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import Progress, Solver
from maxmargin.problem import Floats

NARROWEST = 1e-12
"""Of the widths of smooth stand-ins."""


class ProximalGradient(Solver):
    """Accelerated proximal gradient steps with backtracking and restarts.

    Parameters
    ----------
    every : int, default=10
        Steps between two looks at the gap, which costs as much as a step.
    """

    name = "proximal-gradient"

    def __init__(self, every: int = 10):
        self.every = every

    def refusal(self, problem: LinearProblem) -> str | None:
        if problem.n_scores > 1 and isinstance(problem.penalty, Group):
            return "the group penalty is for one score: its groups are of features, not of classes"
        if isinstance(problem.loss, (PerceptronLoss, MulticlassHinge)):  # not to be smoothed
            return f"proximal-gradient does not know the loss {problem.loss.name}"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        problem = progress.problem
        kinked = np.isinf(problem.loss.smoothness)
        width = 1.0
        w = np.zeros(problem.shape) if start is None else np.array(start)
        descent = Descent(problem, problem.loss.smoothed(width), w)
        steps, still = 0, False
        while True:
            w, z = descent.w, descent.z
            c = smooth_slopes(problem, descent.loss, z)
            if progress.ends(w, z, c, steps):
                return None
            if kinked and width > NARROWEST:
                there = replace(problem, loss=descent.loss).certificate(w, z, c)
                if still or there.gap < 0.2 * progress.dual_gap:
                    width /= 10
                    descent = Descent(problem, problem.loss.smoothed(width), w)
            elif still:
                return progress.stuck()
            for _ in range(max(min(self.every, progress.max_iter - steps), 1)):
                if progress.stopped():
                    return None
                steps += 1
                still = not descent.step()
                if still:
                    break


def smooth_slopes(problem: LinearProblem, loss: Loss, z: Floats) -> Floats:
    """C for a smooth loss in the place of the problem's."""
    return replace(problem, loss=loss).slopes(z)


class Descent:
    """The iterates for one smooth loss: w, the momentum's point u, and their scores."""

    def __init__(self, problem: LinearProblem, loss: Loss, w: Floats):
        self.problem = replace(problem, loss=loss)
        self.loss = loss
        self.w, self.z = w, problem.design.scores(w)
        self.u, self.zu = w, self.z
        self.t = 1.0
        # A first guess of the curvature, along the gradient; backtracking corrects it.
        g = -problem.design.combine(self.problem.slopes(self.z))
        q = problem.design.scores(g)
        square = float(np.vdot(g, g))
        price = problem.price if q.ndim == 1 else problem.price[:, None]
        steepest = loss.smoothness * float((price * q * q).sum())
        self.L = 0.1 * steepest / square if square > 0 else 1.0

    def step(self) -> bool:
        """One step; False when it leads nowhere."""
        problem, design = self.problem, self.problem.design
        gradient = -design.combine(problem.slopes(self.zu))
        losses = float(problem.price @ self.loss.value(problem.y, self.zu))
        while True:
            w = self._prox(self.u - gradient / self.L, 1 / self.L)
            d = w - self.u
            z = design.scores(w)
            above = losses + float(np.vdot(gradient, d)) + self.L / 2 * float(np.vdot(d, d))
            there = float(problem.price @ self.loss.value(problem.y, z))
            if there <= above + 1e-14 * abs(losses):
                break
            self.L *= 2
            if not np.isfinite(self.L):
                return False
        move = w - self.w
        if not move.any():
            if self.u is self.w:
                return False
            self._rest()
            return True
        if np.vdot(self.u - w, move) > 0:  # the momentum points uphill
            self.w, self.z = w, z
            self._rest()
            return True
        t = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
        ahead = (self.t - 1) / t
        self.u, self.zu = w + ahead * move, z + ahead * (z - self.z)
        self.w, self.z, self.t = w, z, t
        self.L *= 0.95
        return True

    def _prox(self, w: Floats, step: float) -> Floats:
        """The penalty's proximal operator; a free constant is left as it is."""
        problem = self.problem
        counted = problem.penalised(w)
        flat = counted if problem.penalty.name == "group" else counted.ravel()
        out = w.copy()
        problem.penalised(out)[...] = problem.penalty.prox(flat, step).reshape(counted.shape)
        return out

    def _rest(self) -> None:
        self.u, self.zu, self.t = self.w, self.z, 1.0
