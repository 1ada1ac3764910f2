"""Newton's method in the primal, for smooth losses and, by smoothing, for losses with kinks.

    minimise  f(w) = |w|^2 / 2 + sum_i price_i loss(y_i, x_i.w)

The gradient is w - X'c with c_i = -price_i loss'(y_i, z_i), and the Hessian I + X' diag(h) X with
h_i = price_i loss''(y_i, z_i).  A step solves H d = -gradient, directly where the features are few
and by conjugate gradients otherwise (Keerthi and DeCoste 2005; Lin, Weng and Keerthi 2008), and
goes to the minimum along d, which costs O(n) a look since z is linear in the step.  The slopes c
are the dual point of the certificate.

A loss with kinks is replaced by its smooth stand-in of some width, whose minimum is a start for the
next, smaller width.  Rows outside the rounded kinks have h = 0, so that the Hessian is cheaper the
smaller the width, and since no more rows lie in a kink at the optimum than there are features, the
gap falls in proportion to it.

Of many rows a sample comes first: its optimum costs a fraction, and is a start from which a few
steps are left.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin import _core
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    HuberisedInsensitive,
    Logistic,
    Loss,
    Softmax,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from maxmargin.linear.penalties import L2
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import Progress, Solver, blas_limit
from maxmargin.problem import Floats

NATIVE = {
    Hinge: "hinge",
    HuberisedHinge: "hinge",
    SquaredHinge: "squared_hinge",
    Logistic: "logistic",
    Squared: "squared",
    EpsilonInsensitive: "insensitive",
    HuberisedInsensitive: "insensitive",
    SquaredEpsilonInsensitive: "squared_insensitive",
}
"""Losses of one score, and what native code calls them."""


def native(loss: Loss) -> Any:
    """A loss as native code sees it."""
    width, epsilon = getattr(loss, "width", 0.0), getattr(loss, "epsilon", 0.0)
    return _core.Loss(NATIVE[type(loss)], width, epsilon)


FEW = 300
"""Weights of a softmax up to which its Hessian is formed."""

MANY = 20_000
"""Rows from which on a sample comes first,"""
FRACTION = 10
"""this fraction of them,"""
SAMPLE_GAP = 1e-3
"""solved to this relative gap."""


class Newton(Solver):
    """Newton's method, with the Hessian of few features or conjugate gradients for many.

    Parameters
    ----------
    direct : int, default=1500
        With up to this many columns the Hessian is formed and factored.
    """

    name = "newton"
    fast_at_the_end = True

    def __init__(self, direct: int = 1500):
        self.direct = direct

    def refusal(self, problem: LinearProblem) -> str | None:
        if not isinstance(problem.penalty, L2):
            return "newton needs the l2 penalty"
        if type(problem.loss) not in NATIVE and not isinstance(problem.loss, Softmax):
            return f"newton does not know the loss {problem.loss.name}"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        with blas_limit(progress.problem.design.n_columns):
            self._iterate(progress, start, seed)

    def _iterate(self, progress: Progress, start: Floats | None, seed: int) -> None:
        problem = progress.problem
        width = 1.0
        if start is None and problem.design.n_rows >= MANY:
            size = problem.design.n_rows // FRACTION
            of_some = Progress(problem.sample(size, seed), SAMPLE_GAP, 100, progress.monitor)
            self._iterate(of_some, None, seed)
            if progress.stopped():
                return
            start, width = of_some.solution().weights, 0.1
        w = np.zeros(problem.shape) if start is None else np.array(start)
        point = (Point if problem.n_scores == 1 else SoftmaxPoint)(problem, w)
        width = width if np.isinf(problem.loss.smoothness) else 0.0
        iterations = 0
        while True:
            loss = problem.loss.smoothed(width) if width else problem.loss
            point.look(loss)
            if progress.ends(point.w, point.z, point.c, iterations, point.v):
                return
            if width and point.smooth_gap(loss) < 0.5 * progress.dual_gap:
                width *= 0.3
                continue
            if not point.step(loss, self.direct):
                if width < 1e-12:
                    progress.stuck()
                    return
                width /= 10
            iterations += 1


class Point:
    """Weights, their scores, and what the loss says there."""

    def __init__(self, problem: LinearProblem, w: Floats):
        self.problem = problem
        self.w = w
        self.z = problem.design.scores(w)
        # What the penalty counts: not the weight of a free constant.
        self.counted = np.ones(len(w))
        if problem.free:
            self.counted[-1] = 0.0

    def look(self, loss: Loss) -> None:
        """Values, slopes and curvatures of a smooth loss, and v = X'c."""
        problem = self.problem
        self.native = native(loss)
        if problem.free:
            self._settle_constant()
        self.losses, self.c, self.h = self.native.slopes(
            problem.y, problem.price, self.z, problem.design.n_jobs
        )
        self.v = problem.design.combine(self.c)

    def smooth_gap(self, loss: Loss) -> float:
        """The duality gap of the smooth problem."""
        w, v = self.problem.penalised(self.w), self.problem.penalised(self.v)
        dual = -v @ v / 2 - self.problem.price @ loss.conjugate(
            self.problem.y, -self.c / self.problem.price
        )
        return float(w @ w / 2 + self.losses - dual)

    def step(self, loss: Loss, direct: int) -> bool:
        """One Newton step; False when it leads nowhere."""
        gradient = self.counted * self.w - self.v
        d = self._direct(gradient) if self.w.size <= direct else self._conjugate(gradient)
        self._settle(d)
        q = self.problem.design.scores(d)
        t = self._minimum_along(d, q)
        if not t > 0:
            return False
        w = self.w + t * d
        if np.array_equal(w, self.w):
            return False
        self.w, self.z = w, self.z + t * q
        return True

    def _settle(self, d: Floats) -> None:
        """Take out of a direction what changes nothing."""

    def _direct(self, gradient: Floats) -> Floats:
        H = self._hessian()
        diagonal = np.einsum("ii->i", H)
        lift = 0.0
        while True:
            try:
                step = cho_solve(cho_factor(H, check_finite=False), -gradient.ravel())
                return step.reshape(gradient.shape)
            except LinAlgError:  # a free constant that no row in a kink pins down
                lift = max(100 * lift, 1e-10 * float(diagonal.max()))
                diagonal += lift

    def _hessian(self) -> Floats:
        H = self.problem.design.gram(self.h)
        np.einsum("ii->i", H)[:] += self.counted
        return H

    def _conjugate(self, gradient: Floats) -> Floats:
        """H d = -gradient, to a tenth of the gradient's length (Dembo and Steihaug 1983)."""
        scale = self.counted + 1e-10
        d, r = np.zeros_like(gradient), -gradient
        y = r / scale
        p = y.copy()
        rho = float(np.vdot(r, y))
        target = 0.01 * rho
        for _ in range(200):
            if rho <= target:
                break
            Hp = self.counted * p + self._curved(p)
            a = rho / float(np.vdot(p, Hp))
            d += a * p
            r -= a * Hp
            y = r / scale
            rho, before = float(np.vdot(r, y)), rho
            p = y + rho / before * p
        return d

    def _curved(self, p: Floats) -> Floats:
        """X' diag(h) X p."""
        design = self.problem.design
        return design.combine(self.h * design.scores(p))

    def _minimum_along(self, d: Floats, q: Floats) -> float:
        """The t at which f(w + t d) is smallest, by safeguarded Newton steps on its slope."""
        problem = self.problem
        w, p = problem.penalised(self.w), problem.penalised(d)
        linear, square = float(np.vdot(w, p)), float(np.vdot(p, p))

        def slope(t: float) -> tuple[float, float]:
            s, k = self._along(q, t)
            return s + linear + t * square, k + square

        return root(slope, 1.0)

    def _along(self, q: Floats, t: float) -> tuple[float, float]:
        """Slope and curvature of the losses at z + t q."""
        problem = self.problem
        return self.native.along(problem.y, problem.price, self.z, q, t, problem.design.n_jobs)[1:]

    def _settle_constant(self) -> None:
        """The free constant's best weight for the others as they are: then the c sum to zero."""
        problem = self.problem
        bias = problem.design.bias
        q = np.full(len(self.z), bias)

        t = root(lambda t: self._along(q, t), 0.0, both_ways=True, exact=True)
        if t != 0:
            self.w = self.w.copy()
            self.w[-1] += t
            self.z = self.z + t * bias


class SoftmaxPoint(Point):
    """The same with a score for each class, where the curvature of a row is diag(p) - p p'."""

    def __init__(self, problem: LinearProblem, w: Floats):
        super().__init__(problem, w)
        self.counted = self.counted[:, None]

    def look(self, loss: Loss) -> None:
        problem = self.problem
        self.p = loss.probabilities(self.z)  # type: ignore[attr-defined]
        self.c = -problem.price[:, None] * self.p
        self.c[np.arange(len(self.c)), problem.y] += problem.price
        self.v = problem.design.combine(self.c)

    def step(self, loss: Loss, direct: int) -> bool:
        return super().step(loss, min(direct, FEW))  # k^2 / 2 matrices X' diag(h) X are not cheap

    def _settle(self, d: Floats) -> None:
        if self.problem.free:  # the same added to the constants of all classes
            d[-1] -= d[-1].mean()

    def _hessian(self) -> Floats:
        """With blocks X' diag(price p_a ([a = b] - p_b)) X, in the order of w's numbers."""
        d, k = self.w.shape
        H = np.empty((d, k, d, k))
        for a, b in combinations_with_replacement(range(k), 2):
            h = self.problem.price * self.p[:, a] * (float(a == b) - self.p[:, b])
            H[:, a, :, b] = H[:, b, :, a] = self.problem.design.gram(h)
        H = H.reshape(d * k, d * k)
        # The same added to all classes' free constants changes nothing: a hair makes H definite.
        hair = 1e-10 * float(np.abs(H).max())
        np.einsum("ii->i", H)[:] += np.broadcast_to(self.counted + hair, (d, k)).ravel()
        return H

    def _curved(self, p: Floats) -> Floats:
        q = self.problem.design.scores(p)
        return self.problem.design.combine(self._bend(self.p, q))

    def _bend(self, p: Floats, q: Floats) -> Floats:
        """The curvature of each row, price (diag(p) - p p'), times its q."""
        pq = p * q
        return self.problem.price[:, None] * (pq - p * pq.sum(axis=1, keepdims=True))

    def _along(self, q: Floats, t: float) -> tuple[float, float]:
        problem = self.problem
        p = problem.loss.probabilities(self.z + t * q)  # type: ignore[attr-defined]
        right = q[np.arange(len(q)), problem.y]
        slope = float(problem.price @ ((p * q).sum(axis=1) - right))
        return slope, float(np.vdot(q, self._bend(p, q)))


def root(slope: Any, guess: float, both_ways: bool = False, exact: bool = False) -> float:
    """Where a convex function of t is smallest, by Newton steps on its slope kept in a bracket.

    ``slope(t)`` gives first and second derivative.  The search is among t >= 0 unless it goes both
    ways, and ends when the slope has fallen to a tenth of that at 0, or to rounding if exact.
    """
    low, high = (-np.inf, np.inf) if both_ways else (0.0, np.inf)
    first, _ = slope(0.0)
    if not both_ways and not first < 0:
        return 0.0
    good = abs(first) * (1e-14 if exact else 0.1)
    t = guess
    for _ in range(100):
        g, h = slope(t)
        if abs(g) <= good:
            return t
        low, high = (t, high) if g < 0 else (low, t)
        if h > 0:
            t = t - g / h
        elif np.isfinite(low) and np.isfinite(high):
            t = (low + high) / 2
        else:
            t = t - np.sign(g) * max(1.0, 2 * abs(t))
        if not low < t < high:
            if np.isinf(low) or np.isinf(high):
                t = (low if np.isinf(high) else high) - np.sign(g) * max(1.0, abs(t))
            else:
                t = (low + high) / 2
        if t in (low, high):
            break
    return t
