"""What is asked of every peer, and its objective recomputed in float64 from what a peer returns.

    minimise over w, b:  penalty(w) + C sum_i loss(y_i, w.x_i + b)

penalty is |w|^2 / 2 or |w|_1; of several classes there is one such problem for each against the
rest, and the objective is their sum. The intercept b is ``"penalised"`` like a weight (a constant
feature of 1, as LIBLINEAR's -B 1), ``"free"``, or ``"none"``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.data import Data, Source

BLOCK = 8192
"""Rows converted to float64 at a time."""


# ---- Losses: of the target (+-1 for classes) and the score ------------------------------------


def hinge(y: np.ndarray, f: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    return np.maximum(0, 1 - y * f)


def squared_hinge(y: np.ndarray, f: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    return hinge(y, f) ** 2


def logistic(y: np.ndarray, f: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    return np.logaddexp(0, -y * f)


def epsilon_insensitive(y: np.ndarray, f: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    return np.maximum(0, np.abs(y - f) - epsilon)


def squared_epsilon_insensitive(y: np.ndarray, f: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    return epsilon_insensitive(y, f, epsilon) ** 2


LOSSES = {
    loss.__name__: loss
    for loss in (hinge, squared_hinge, logistic, epsilon_insensitive, squared_epsilon_insensitive)
}
REGRESSION = {"epsilon_insensitive", "squared_epsilon_insensitive"}

PENALTIES = {
    "l2": lambda w: (w**2).sum() / 2,
    "l1": lambda w: np.abs(w).sum(),
}


@dataclass(frozen=True)
class Weights:
    """A fitted linear machine: one row of ``w`` and one ``b`` for each class against the rest."""

    w: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class Linear:
    """One problem of the module's formula."""

    loss: str
    penalty: str = "l2"
    C: float = 1.0
    intercept: str = "penalised"
    epsilon: float = 0.1

    @property
    def regression(self) -> bool:
        return self.loss in REGRESSION

    def targets(self, y: np.ndarray) -> np.ndarray:
        """A column for each problem: the target itself, or +-1 for each class against the rest."""
        if self.regression:
            return y[:, np.newaxis]
        classes = int(y.max()) + 1
        positive = [1] if classes == 2 else range(classes)
        return np.where(y[:, np.newaxis] == np.asarray(positive), 1.0, -1.0)

    def objective(self, data: Data, answer: Weights) -> float:
        """The primal objective of an answer, summed over the classes."""
        w, b = np.atleast_2d(answer.w).astype(np.float64), np.ravel(answer.b).astype(np.float64)
        targets = self.targets(data.y)
        if w.shape != (targets.shape[1], data.X.shape[1]) or len(b) != len(w):
            raise ValueError(
                f"the answer has weights of shape {w.shape} and {len(b)} intercepts, the problem "
                f"{targets.shape[1]} times {data.X.shape[1]} weights"
            )
        if self.intercept == "none" and np.any(b != 0):
            raise ValueError("the answer has an intercept, the problem has none")
        loss = LOSSES[self.loss]
        total = 0.0
        for first in range(0, len(data.y), BLOCK):
            rows = slice(first, first + BLOCK)
            scores = data.X[rows].astype(np.float64) @ w.T + b
            total += loss(targets[rows], scores, self.epsilon).sum()
        penalised = np.column_stack([w, b]) if self.intercept == "penalised" else w
        return float(PENALTIES[self.penalty](penalised) + self.C * total)

    def facts(self, data: Data, answer: Weights) -> dict[str, float]:
        """What else a table tells of an answer."""
        return {"nonzeros": int(np.count_nonzero(answer.w))}

    def score(self, y: np.ndarray, predicted: np.ndarray) -> float:
        """Accuracy, or the mean squared error of a regression."""
        if self.regression:
            return float(np.mean((y - predicted) ** 2))
        return float(np.mean(y == predicted))


@dataclass(frozen=True)
class Ask:
    """A relative gap to be reached, and what is wanted there: so many times the best peer's speed,
    or so many seconds.
    """

    gap: float
    factor: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Case:
    """One line of a suite's table.

    ``loops``: fits in one process, whose median counts, for times that a single fit cannot show.
    ``predict_rows``: how many rows are predicted at once (None: all of the test).
    ``short``: part of the short version.
    """

    source: Source
    problem: Linear
    asks: tuple[Ask, ...] = field(default=(Ask(1e-3), Ask(1e-6)))
    loops: int = 1
    predict_rows: int | None = None
    short: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            penalty = "" if self.problem.penalty == "l2" else f"{self.problem.penalty}-"
            name = f"{self.source.name}-{penalty}{self.problem.loss}".replace("_", "-")
            object.__setattr__(self, "name", name)
