"""The optimum to compare with, from solvers that share no code with any peer: NumPy, for few
features, in the primal or by an interior point; elsewhere LIBLINEAR at its tightest.

Both losses of a support vector machine are sums of max(0, m_i)^p with m = c - A w: for classes
A = y x and c = 1, for the epsilon tube two rows each, x and -x, with c = +-y - epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from benchmarks.data import Data
from benchmarks.problems import Linear, Weights
from benchmarks.runners.base import Estimator, Machine, Runner, Setting, with_constant
from benchmarks.runners.scikit_learn import dual, liblinear, primal

MOST_FEATURES = 1000
BLOCK = 16384


def gram(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A' diag(weights) A, without a second A."""
    total = np.zeros((A.shape[1], A.shape[1]))
    for first in range(0, len(A), BLOCK):
        rows = slice(first, first + BLOCK)
        total += A[rows].T @ (A[rows] * weights[rows, np.newaxis])
    return total


def factor(H: np.ndarray) -> Any:
    """Of 1 + H, with as much more on the diagonal as rounding may have taken."""
    return cho_factor(H + (1 + 1e-14 * np.trace(H)) * np.eye(len(H)))


def newton(A: np.ndarray, c: np.ndarray, C: float, loss: str, tol: float = 1e-12) -> np.ndarray:
    """Newton's method with a line search for |w|^2/2 + C sum loss(c - A w), a smooth loss.

    For the squared hinge it ends after finitely many steps (Mangasarian 2002).
    """

    def pieces(m: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if loss == "logistic":
            p = expit(m)
            return np.logaddexp(0, m), p, p * (1 - p)
        positive = np.maximum(m, 0)
        return positive**2, 2 * positive, 2.0 * (m > 0)

    w = np.zeros(A.shape[1])
    value, slope, curvature = pieces(c - A @ w)
    objective = w @ w / 2 + C * value.sum()
    for _ in range(200):
        gradient = w - C * (A.T @ slope)
        step = -cho_solve(factor(C * gram(A, curvature)), gradient)
        decrease = -(gradient @ step)
        if decrease <= tol * abs(objective):
            break
        length = 1.0
        while length > 1e-10:
            trial = w + length * step
            value, slope, curvature = pieces(c - A @ trial)
            new = trial @ trial / 2 + C * value.sum()
            if new <= objective - 1e-4 * length * decrease:
                break
            length /= 2
        else:
            break
        w, objective = trial, new
    return w


Point = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""The variables a, their distance t to the upper bound, and the multipliers z and s of both."""


def longest(point: Point, step: Point) -> float:
    """The longest part of a step, at most all, that keeps everything positive."""
    rates = [np.max(-change / x) for x, change in zip(point, step, strict=True)]
    return min(1.0, 1 / max(1e-300, *rates))


def direction(
    A: np.ndarray, core: Any, point: Point, residual: np.ndarray, target: tuple[Any, Any]
) -> Point:
    """Newton's step towards a z = target[0] and t s = target[1].

    (D + A A')^-1 by Woodbury's formula, with the factor of 1 + A' D^-1 A.
    """
    a, t, z, s = point
    D = z / a + s / t
    right = (-residual + (target[0] / a - z) - (target[1] / t - s)) / D
    da = right - (A @ cho_solve(core, A.T @ right)) / D
    return da, -da, (target[0] - z * da) / a - z, (target[1] + s * da) / t - s


def interior_point(A: np.ndarray, c: np.ndarray, C: float, tol: float = 1e-9) -> np.ndarray:
    """Minimise |w|^2/2 + C sum max(0, c - A w) by its dual (Ferris and Munson 2002).

        min |A'a|^2/2 - c'a,   0 <= a <= C

    Mehrotra's predictor and corrector; a step costs n d^2. Every a inside the box bounds the
    optimum from below: the gap that ends it is certain.
    """
    n, d = A.shape
    point: Point = np.full(n, C / 2), np.full(n, C / 2), np.ones(n), np.ones(n)
    best, best_gap = np.zeros(d), np.inf
    for _ in range(100):
        a, t, z, s = point
        w = A.T @ a
        margins = A @ w - c
        primal = w @ w / 2 + C * np.maximum(0, -margins).sum()
        gap = (primal - (c @ a - w @ w / 2)) / abs(primal)
        if gap < best_gap:
            best, best_gap = w, gap
        if gap < tol:
            break
        residual = margins - z + s
        core = factor(gram(A, 1 / (z / a + s / t)))
        step = direction(A, core, point, residual, (0.0, 0.0))
        length = longest(point, step)
        ahead = [x + length * change for x, change in zip(point, step, strict=True)]
        mu = (a @ z + t @ s) / (2 * n)
        centre = mu * ((ahead[0] @ ahead[2] + ahead[1] @ ahead[3]) / (2 * n) / mu) ** 3
        target = centre - step[0] * step[2], centre - step[1] * step[3]
        step = direction(A, core, point, residual, target)
        length = 0.995 * longest(point, step)
        point = tuple(x + length * change for x, change in zip(point, step, strict=True))  # type: ignore[assignment]
        if length < 1e-8:
            break
    return best


@dataclass
class Reference:
    """One problem after the other, each by what suits it."""

    problem: Linear
    data: Data
    w: list[np.ndarray] = field(default_factory=list)
    X: Any = field(init=False)

    def __post_init__(self) -> None:
        X = self.data.X
        X = X if self.problem.intercept == "none" else with_constant(X)
        self.X = X.toarray() if sp.issparse(X) else X

    def fit(self) -> None:
        problem = self.problem
        self.w = []
        for target in problem.targets(self.data.y).T:
            if problem.regression:
                A = np.concatenate([self.X, -self.X])
                c = np.concatenate([target, -target]) - problem.epsilon
            else:
                A = self.X * target[:, np.newaxis]
                c = np.full(len(A), 0.0 if problem.loss == "logistic" else 1.0)
            if problem.loss in ("hinge", "epsilon_insensitive"):
                self.w.append(interior_point(A, c, problem.C))
            else:
                self.w.append(newton(A, c, problem.C, problem.loss))

    def answer(self) -> Weights:
        w = np.array(self.w)
        d = self.data.X.shape[1]
        return Weights(w[:, :d], w[:, d] if self.problem.intercept != "none" else np.zeros(len(w)))

    def predict(self, X: Any) -> np.ndarray:
        answer = self.answer()
        scores = X @ answer.w.T + answer.b
        if self.problem.regression:
            return scores[:, 0]
        return scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)

    def facts(self) -> dict[str, float]:
        return {}


def make(problem: Linear, data: Data, setting: Setting, threads: int) -> Machine:
    if problem.penalty == "l2" and data.X.shape[1] <= MOST_FEATURES:
        return Reference(problem, data)
    estimator = liblinear(dual(problem))(problem, data, threads).set_params(**setting)
    return Estimator(estimator, data)


def solves(problem: Linear) -> bool:
    return dual(problem) or primal(problem)


REFERENCE = Runner("reference", "scikit-learn", [{"tol": 1e-9}], solves, make)
