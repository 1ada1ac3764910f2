"""Learning to rank with linear scores and any number of pairs, which are never formed.

    minimise  1/2 |w|^2 + C sum_(a,b) s_a s_b loss(1 - f_a + f_b),     f = X w

over all pairs of a query in which a has the higher grade.  With the sums over pairs that order
statistics give in O(n log n) (see ``cpp/pairs.hpp``), value, slopes and curvature of the risk cost
no more than sorting the scores (Joachims 2006 for the hinge; Airola, Pahikkala and Salakoski 2011;
Lee and Lin 2014 for the squared hinge and Newton's method).

The dual point of the certificate has a number alpha_ab for each pair: its slope, or a mixture of
the slopes at several w.  What the bound needs of them are two sums,

    c = sum of alpha_ab (e_a - e_b)        beta = sum of alpha_ab - C s_a s_b loss*(...)

so that the optimum is at least beta - |X'c|^2 / 2; at the slopes of a single w, Fenchel's equality
gives beta = risk + c.f without another look at the pairs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin.inverse import one_blas_thread
from maxmargin.linear.cutting_plane import descend
from maxmargin.linear.newton import root
from maxmargin.linear.problem import Design, LinearCertificate
from maxmargin.linear.solver import Progress, Solver
from maxmargin.problem import Floats, Indices


@dataclass(frozen=True)
class Mixture:
    """A dual point: the coefficient of each item, and the bound's constant."""

    c: Floats
    beta: float


def paired(grades: Floats, query: Indices) -> Any:
    """The items by query, and the grades in each numbered from 0 on, for sums over pairs."""
    order = np.lexsort((grades, query))
    first = np.flatnonzero(np.diff(query[order], prepend=-1))
    starts = np.append(first, len(order))
    rises = np.diff(grades[order], prepend=-np.inf) > 0
    rises[first] = True
    level = np.cumsum(rises)
    grade = np.empty(len(order), dtype=np.int64)
    grade[order] = level - np.repeat(level[first], np.diff(starts))
    return _core.Queries(order.astype(np.int64), starts.astype(np.int64), grade)


@dataclass(frozen=True)
class RankingProblem:
    """Items, their grades and queries, and the loss of a pair; what solvers of it share.

    Parameters
    ----------
    design : Design
    grades : array of shape (n,)
    query : array of shape (n,)
        Numbers from 0 on.
    weights : array of shape (n,)
    C : float
    squared : bool
        Whether the hinge is squared.
    """

    design: Design
    grades: Floats
    query: Indices
    weights: Floats
    C: float
    squared: bool
    pairs: Any = field(init=False, repr=False)
    recent: Any = field(default_factory=lambda: deque(maxlen=4), init=False, repr=False)

    free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", paired(self.grades, self.query))

    def count(self) -> int:
        """How many pairs there are."""
        zero = np.zeros(len(self.grades))
        return round(float(self.pairs.sums(zero, np.ones((len(zero), 1)))[0].sum()))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.design.n_columns,)

    def penalised(self, w: Floats) -> Floats:
        return w

    def sums(self, z: Floats, *values: Floats) -> tuple[Floats, Floats]:
        """Weighted sums of values over the partners that count, lower and higher ones; the first
        column are the weights themselves.
        """
        columns = [self.weights, *(self.weights * v for v in values)]
        return self.pairs.sums(z, np.stack(columns, axis=1), self.design.n_jobs)

    def evaluate(self, z: Floats) -> tuple[float, Floats]:
        """The risk at scores z, and the slopes c; solvers ask for both, one after the other."""
        for known, answer in self.recent:
            if known is z:
                return answer
        answer = self._evaluate(z)
        self.recent.append((z, answer))
        return answer

    def _evaluate(self, z: Floats) -> tuple[float, Floats]:
        s, price = self.weights, self.C * self.weights
        if not self.squared:
            below, above = self.sums(z, z)
            risk = price @ ((1 - z) * below[:, 0] + below[:, 1])
            return float(risk), price * (below[:, 0] - above[:, 0])
        below, above = self.sums(z, z, z**2)
        reach = 1 - z
        risk = price @ (reach**2 * below[:, 0] + 2 * reach * below[:, 1] + below[:, 2])
        c = reach * below[:, 0] + below[:, 1] - ((1 + z) * above[:, 0] - above[:, 1])
        return float(risk), 2 * self.C * s * c

    def primal(self, w: Floats, z: Floats) -> float:
        return float(w @ w) / 2 + self.evaluate(z)[0]

    def certificate(self, w: Floats, z: Floats, c: Any, v: Floats | None = None) -> Any:
        """What weights and a dual point prove."""
        if v is None:
            v = self.design.combine(c.c)
        return LinearCertificate(self.primal(w, z), c.beta - float(v @ v) / 2)

    def slopes(self, z: Floats) -> Mixture:
        """The dual point that scores call for."""
        risk, c = self.evaluate(z)
        return Mixture(c, risk + float(c @ z))

    # As a risk for cutting planes.

    def look(self, z: Floats) -> tuple[float, Floats]:
        return 0.0, self.evaluate(z)[1]

    def offset(self, z: Floats, c: Floats) -> float:
        return self.evaluate(z)[0] + float(c @ z)

    def slope(self, z: Floats, q: Floats, t: float) -> float:
        return -float(self.evaluate(z + t * q)[1] @ q)

    def curve(self, z: Floats, u: Floats) -> Floats:
        """The risk's second derivative times a change u of the scores."""
        below, above = self.sums(z, u)
        both = u * (below[:, 0] + above[:, 0]) - below[:, 1] - above[:, 1]
        return 2 * self.C * self.weights * both

    def dual_point(self, c: Floats, beta: float) -> Mixture:
        return Mixture(c, beta)


# ------------------------------------------------------------------ solvers


class PairPlanes(Solver):
    """Cutting planes for the hinge of pairs."""

    name = "cutting-plane"

    def refusal(self, problem: Any) -> str | None:
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        descend(progress, progress.problem, start)  # type: ignore[arg-type]


class PairNewton(Solver):
    """Newton's method with conjugate gradients for the squared hinge of pairs."""

    name = "newton"
    fast_at_the_end = True

    def refusal(self, problem: Any) -> str | None:
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        with one_blas_thread():
            self._descend(progress, start)

    def _descend(self, progress: Progress, start: Floats | None) -> None:
        problem: Any = progress.problem
        design = problem.design
        w = np.zeros(problem.shape) if start is None else np.array(start)
        z, iterations = design.scores(w), 0
        while True:
            dual = problem.slopes(z)
            v = design.combine(dual.c)
            if progress.ends(w, z, dual, iterations, v):
                return
            d = self._direction(problem, z, v - w)
            q = design.scores(d)
            t = self._length(problem, w, z, d, q)
            if not t > 0 or np.array_equal(w + t * d, w):
                progress.stuck()
                return
            w, z = w + t * d, z + t * q
            iterations += 1

    def _length(self, problem: Any, w: Floats, z: Floats, d: Floats, q: Floats) -> float:
        """How far to go along d, which changes the scores by q."""
        linear, square = float(w @ d), float(d @ d)

        def slope(t: float) -> tuple[float, float]:
            second = float(q @ problem.curve(z + t * q, q))
            return problem.slope(z, q, t) + linear + t * square, second + square

        return root(slope, 1.0)

    def _direction(self, problem: Any, z: Floats, r: Floats) -> Floats:
        """(I + X'HX) d = r up to a hundredth of r."""
        design = problem.design
        d, r = np.zeros_like(r), r.copy()
        p, square = r.copy(), float(r @ r)
        target = 1e-4 * square
        for _ in range(250):
            if square <= target:
                break
            Hp = p + design.combine(problem.curve(z, design.scores(p)))
            step = square / float(p @ Hp)
            d += step * p
            r -= step * Hp
            square, before = float(r @ r), square
            p = r + square / before * p
        return d
