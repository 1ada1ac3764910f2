"""Cutting planes for linear machines with the L2 penalty: a convex risk, seen through few planes.

    minimise   |w|^2 / 2 + R(w),      R(w) = sum_i price_i loss(y_i, x_i.w + b)

Where the scores are z, the slopes c_i = -price_i loss'(y_i, z_i) make a plane below the risk,

    R(w) >= beta - (X'c).w,           beta = -sum_i price_i loss*(y_i, -c_i / price_i)

and the minimum of |w|^2 / 2 + (the highest of the planes) has a dual of as many variables as there
are planes: the best mixture a of them,

    maximise   a.beta - |sum_j a_j v_j|^2 / 2,      v_j = X'c_j,      w = sum_j a_j v_j

which is also the dual point sum_j a_j c_j of the certificate.  A step costs two passes over the
data, whatever the loss.  This is SVM-perf in its one-slack form for the hinge (Joachims 2006,
algorithm 3; Joachims, Finley and Yu 2009) and the bundle method of regularised risk minimisation
for other losses (Teo, Vishwanathan, Smola and Le 2010).  The next plane is taken near the lowest
point of the way from the best point to the master's (Franc and Sonnenburg 2009: OCAS), without
which the first steps are wild.

A free b is no variable at all: the risk is that of the best b for the w at hand, where the slopes
sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from maxmargin.inverse import one_blas_thread
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    Loss,
    PerceptronLoss,
)
from maxmargin.linear.newton import NATIVE, native, root
from maxmargin.linear.penalties import L2
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.simplex import mix
from maxmargin.linear.solver import Progress, Solver
from maxmargin.problem import Floats

FORWARD = 0.1
"""The next plane is this far on the way from the best point to the master's."""

PATIENCE = 25
"""A plane that has not been needed for so many steps is dropped."""

MEMORY = 2**29
"""Bytes that the slopes of all planes may take; beyond, the least of them are mixed into one."""


class CuttingPlane(Solver):
    """The one-slack cutting plane method, with line search.

    Parameters
    ----------
    line_search : bool, default=True
        Whether planes are taken near the best point (OCAS); otherwise at the master's (SVM-perf).
    """

    name = "cutting-plane"

    def __init__(self, line_search: bool = True):
        self.line_search = line_search

    def refusal(self, problem: LinearProblem) -> str | None:
        if not isinstance(problem.penalty, L2):
            return "cutting-plane needs the l2 penalty"
        if problem.free and problem.n_scores > 1:
            return "cutting-plane has no free intercept for losses of many scores"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        descend(progress, LossRisk(progress.problem), start, self.line_search)


# ------------------------------------------------------------------ the risk


class Risk(Protocol):
    """What a bundle method has to know of a convex risk of the scores."""

    def look(self, z: Any) -> tuple[float, Any]:
        """What the best constant adds to the scores z, and the slopes c there."""
        ...

    def offset(self, z: Any, c: Any) -> float:
        """Beta of the plane with slopes c, found at the scores z."""
        ...

    def slope(self, z: Any, q: Any, t: float) -> float:
        """The slope of t -> risk(z + t q)."""
        ...

    def dual_point(self, c: Any, beta: float) -> Any:
        """What the certificate calls the mixture with slopes c."""
        ...


class LossRisk:
    """sum_i price_i loss(y_i, z_i), where a free constant is at its best."""

    def __init__(self, problem: LinearProblem):
        self.problem = problem
        known = type(problem.loss) in NATIVE and problem.n_scores == 1
        self.native = native(problem.loss) if known else None
        self.box = problem.box() if problem.n_scores == 1 else None

    def look(self, z: Floats) -> tuple[float, Floats]:
        problem = self.problem
        if not problem.free:
            return 0.0, problem.slopes(z)
        if isinstance(problem.loss, KINKED):
            return best_constant(problem.loss, problem.y, problem.price, z)
        one = np.ones(len(z))
        shift = root(lambda t: self._along(z, one, t), 0.0, both_ways=True, exact=True)
        return shift, problem.slopes(z + shift)

    def offset(self, z: Floats, c: Floats) -> float:
        problem = self.problem
        price = problem.price if c.ndim == 1 else problem.price[:, None]
        return -float(problem.price @ problem.loss.conjugate(problem.y, -c / price))

    def slope(self, z: Floats, q: Floats, t: float) -> float:
        if self.native is None:
            return -float(np.vdot(self.problem.slopes(z + t * q), q))
        return self._along(z, q, t)[0]

    def _along(self, z: Floats, q: Floats, t: float) -> tuple[float, float]:
        """Slope and curvature."""
        problem = self.problem
        return self.native.along(problem.y, problem.price, z, q, t, problem.design.n_jobs)[1:]  # type: ignore[union-attr]

    def dual_point(self, c: Floats, beta: float) -> Floats:
        """A mixture, which rounding may have put outside of the loss's domain."""
        return c if self.box is None else np.clip(c, *self.box)


KINKED = (Hinge, PerceptronLoss, EpsilonInsensitive)
"""Losses that consist of straight pieces."""


def best_constant(loss: Loss, y: Floats, price: Floats, z: Floats) -> tuple[float, Floats]:
    """The b that minimises sum_i price_i loss(y_i, z_i + b), and slopes c there that sum to zero.

    The slope of the sum grows from kink to kink, each by the price of its row.  The kink at which
    it passes zero is the answer, and takes the part of its price that makes it zero exactly.
    """
    if isinstance(loss, Hinge):
        kinks = (y - z)[:, None]
    elif isinstance(loss, PerceptronLoss):
        kinks = -z[:, None]
    else:
        e = loss.epsilon  # type: ignore[attr-defined]
        kinks = np.stack([y - z - e, y - z + e], axis=1)
    low, _ = loss.domain(y)
    jumps = np.repeat(price, kinks.shape[1])
    order = np.argsort(kinks, axis=None, kind="stable")
    passed = np.cumsum(jumps[order])
    rise = -float(price @ low)  # from the slope before all kinks to zero
    at = min(int(np.searchsorted(passed, rise)), len(order) - 1)
    taken = np.zeros(len(order))
    taken[order[:at]] = jumps[order[:at]]
    part = rise - (passed[at - 1] if at else 0.0)
    taken[order[at]] = np.clip(part, 0.0, jumps[order[at]])
    c = -(price * low + taken.reshape(kinks.shape).sum(axis=1))
    return float(kinks.ravel()[order[at]]), c


# ------------------------------------------------------------------ the method


@dataclass(frozen=True)
class Point:
    """Weights with the risk's best constant, their scores, and the slopes there."""

    w: Floats
    z: Floats
    c: Any
    primal: float


def descend(progress: Progress, risk: Risk, start: Floats | None, line_search: bool = True) -> None:
    """Minimise |w|^2 / 2 + risk(X w) until ``progress`` ends.

    The design is the problem's, and so is whether there is a free constant; its weight is the
    risk's shift over the design's bias.
    """
    with one_blas_thread():
        _descend(progress, risk, start, line_search)


def _descend(progress: Progress, risk: Risk, start: Floats | None, line_search: bool) -> None:
    problem = progress.problem
    design = problem.design

    def settled(w: Floats) -> Point:
        z = design.scores(w)
        shift, c = risk.look(z)
        if shift != 0:
            w = w.copy()
            w[-1] += shift / design.bias
            z = z + shift
        return Point(w, z, c, problem.primal(w, z))

    best = settled(np.zeros(problem.shape) if start is None else np.array(start))
    z, c = best.z, best.c
    planes = Planes(max(20, MEMORY // (8 * best.z.size)))
    near, iterations = False, 0
    while True:
        v = design.combine(c)
        if problem.free:
            v[-1] = 0.0  # rounding aside
        needed = planes.add(c, v, risk.offset(z, c))
        lower, mixed, beta = planes.mixture()
        if progress.ends(best.w, best.z, risk.dual_point(mixed, beta), iterations, lower):
            return
        if not needed and not near:  # the plane at the master's own point cuts nothing off
            progress.stuck()
            return
        iterations += 1
        aim = settled(lower)
        best = lowest(progress, risk, best, aim)
        near = line_search and needed
        z, c = aim.z, aim.c
        if near:
            z = best.z + FORWARD * (aim.z - best.z)
            c = risk.look(z)[1]


def lowest(progress: Progress, risk: Risk, best: Point, aim: Point) -> Point:
    """The lowest point of the way from one point to another."""
    problem = progress.problem
    d, q = aim.w - best.w, aim.z - best.z
    w, p = problem.penalised(best.w), problem.penalised(d)
    linear, square = float(np.vdot(w, p)), float(np.vdot(p, p))

    def slope(t: float) -> float:
        return risk.slope(best.z, q, t) + linear + t * square

    at_aim = linear + square - float(np.vdot(aim.c, q))
    t = crossing(slope, slope(0.0), at_aim)
    points = [aim, best]
    if 0 < t < 1:
        w, z = best.w + t * d, best.z + t * q
        points.append(Point(w, z, best.c, problem.primal(w, z)))
    return min(points, key=lambda point: point.primal)


def crossing(slope: Any, first: float, last: float) -> float:
    """Where a rising slope passes zero between 0 and 1, up to a tenth of the first.

    By secants, which where one end stays count its slope half (the Illinois method).
    """
    if not first < 0:
        return 0.0
    low, high, below, above = 0.0, 1.0, first, last
    if not above > 0:
        return 1.0
    t, side = 1.0, 0
    for _ in range(30):
        t = (low * above - high * below) / (above - below)
        g = slope(t)
        if abs(g) <= 0.1 * abs(first) or not low < t < high:
            break
        if g < 0:
            low, below = t, g
            above = above / 2 if side < 0 else above
        else:
            high, above = t, g
            below = below / 2 if side > 0 else below
        side = -1 if g < 0 else 1
    return t


class Planes:
    """The planes below the risk, and their best mixture.

    Parameters
    ----------
    most : int
        How many are kept; beyond that, the least of them are mixed into one, which is a plane too.
    """

    def __init__(self, most: int):
        self.most = most
        self.c: list[Floats] = []
        self.v: list[Floats] = []
        self.beta = np.empty(0)
        self.K = np.empty((0, 0))
        self.a = np.empty(0)
        self.idle = np.empty(0, dtype=np.int64)

    def add(self, c: Floats, v: Floats, beta: float) -> bool:
        """Take a plane in and weigh all of them anew; whether the new one has any weight."""
        if len(self.c) == self.most:
            self._condense()
        self._append(c, v, beta, 0.0 if self.c else 1.0)
        self.a = mix(self.K, self.beta, self.a)
        needed = bool(self.a[-1] > 0)
        self.idle = np.where(self.a > 0, 0, self.idle + 1)
        if (self.idle > PATIENCE).any():
            self._keep(self.idle <= PATIENCE)
        return needed

    def mixture(self) -> tuple[Floats, Floats, float]:
        """Sums of v, c and beta, by weight."""
        some = np.flatnonzero(self.a)
        v = sum(self.a[j] * self.v[j] for j in some)
        c = sum(self.a[j] * self.c[j] for j in some)
        return v, c, float(self.a @ self.beta)  # type: ignore[return-value]

    def _keep(self, kept: Any) -> None:
        rows = np.flatnonzero(kept)
        self.c, self.v = [self.c[j] for j in rows], [self.v[j] for j in rows]
        self.beta, self.a, self.idle = self.beta[rows], self.a[rows], self.idle[rows]
        self.K = self.K[np.ix_(rows, rows)]

    def _condense(self) -> None:
        """Mix the planes of least weight into one, which leaves half of them and that."""
        order = np.argsort(-self.a, kind="stable")
        kept, rest = order[: self.most // 2], order[self.most // 2 :]
        total = float(self.a[rest].sum())
        share = self.a[rest] / total if total > 0 else np.eye(len(rest))[0]
        c: Any = sum(t * self.c[j] for t, j in zip(share, rest, strict=True))
        v: Any = sum(t * self.v[j] for t, j in zip(share, rest, strict=True))
        beta = float(share @ self.beta[rest])
        self._keep(np.isin(np.arange(len(order)), kept))
        self._append(c, v, beta, total)

    def _append(self, c: Floats, v: Floats, beta: float, weight: float) -> None:
        products = [float(np.vdot(v, other)) for other in (*self.v, v)]
        self.c.append(c)
        self.v.append(v)
        self.K = np.pad(self.K, (0, 1))
        self.K[-1], self.K[:, -1] = products, products
        self.beta = np.append(self.beta, beta)
        self.a = np.append(self.a, weight)
        self.idle = np.append(self.idle, 0)
