"""LIBLINEAR itself, from its authors' packages, and its multi-core edition.

Only ``train`` is timed: its problem is laid out before the clock starts. Both packages are called
``liblinear`` when imported, so that the multi-core one lives in a folder of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data import Data
from benchmarks.problems import Linear, Weights
from benchmarks.runners.base import TOLERANCES, Machine, Runner, Setting, grid

SOLVERS = {
    ("logistic", "l2", "primal"): 0,
    ("squared_hinge", "l2", "dual"): 1,
    ("squared_hinge", "l2", "primal"): 2,
    ("hinge", "l2", "dual"): 3,
    ("squared_hinge", "l1", "primal"): 5,
    ("logistic", "l1", "primal"): 6,
    ("logistic", "l2", "dual"): 7,
    ("squared_epsilon_insensitive", "l2", "primal"): 11,
    ("squared_epsilon_insensitive", "l2", "dual"): 12,
    ("epsilon_insensitive", "l2", "dual"): 13,
}
"""LIBLINEAR's -s."""
PARALLEL = {0, 1, 2, 3, 5, 6, 11}
"""Those that the multi-core edition solves with several threads."""
FREE_INTERCEPT = {0, 2, 5, 6, 11}
"""Those that know -R."""


def solver(problem: Linear, form: str) -> int | None:
    return SOLVERS.get((problem.loss, problem.penalty, form))


@dataclass
class Liblinear:
    """One call of ``train``."""

    problem: Linear
    data: Data
    options: str
    bias: float
    module: Any = field(init=False)
    rows: Any = field(init=False)
    model: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        from liblinear import liblinearutil  # which of the two: the search path says

        self.module = liblinearutil
        X = sp.csr_matrix(self.data.X)
        # The array of nodes is addressed with 64-bit numbers, its rows with 32-bit ones.
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        self.rows = liblinearutil.problem(self.data.y.astype(np.float64), X, self.bias)

    def fit(self) -> None:
        self.model = self.module.train(self.rows, self.options)

    def weights(self) -> np.ndarray:
        """A row of weights for each class in the order of our labels, the intercept at its end."""
        model, features = self.model, self.rows.n
        count = 1 if self.problem.regression or model.nr_class == 2 else model.nr_class
        w = np.ctypeslib.as_array(model.w, (features * count,)).reshape(features, count).T.copy()
        if self.problem.regression:
            return w
        labels = np.array([model.label[i] for i in range(model.nr_class)])
        # Two classes: the positive side is the first label. More: one row each.
        return w * (1 if labels[0] == 1 else -1) if count == 1 else w[np.argsort(labels)]

    def answer(self) -> Weights:
        w = self.weights()
        d = self.data.X.shape[1]
        return Weights(w[:, :d], w[:, d] if self.bias > 0 else np.zeros(len(w)))

    def predict(self, X: Any) -> np.ndarray:
        given = sp.csr_matrix(X)
        labels, _, _ = self.module.predict([], given, self.model, "-q")
        return np.asarray(labels)

    def facts(self) -> dict[str, float]:
        return {}


def liblinear(form: str, multicore: bool) -> Runner:
    def solves(problem: Linear) -> bool:
        number = solver(problem, form)
        free = problem.intercept == "free"
        return (
            number is not None
            and (not free or number in FREE_INTERCEPT)
            and (not multicore or number in PARALLEL)
        )

    def make(problem: Linear, data: Data, setting: Setting, threads: int) -> Machine:
        bias = -1.0 if problem.intercept == "none" else 1.0
        options = f"-s {solver(problem, form)} -c {problem.C} -e {setting['tol']} -B {bias} -q"
        if problem.regression:
            options += f" -p {problem.epsilon}"
        if problem.intercept == "free":
            options += " -R"
        if multicore:
            options += f" -m {threads}"
        return Liblinear(problem, data, options, bias)

    package = "liblinear-multicore" if multicore else "liblinear-official"
    settings = grid("tol", *((0,) if form == "dual" else ()), *TOLERANCES)
    return Runner(f"{package}:{form}", package, settings, solves, make, folder=multicore)


RUNNERS: list[Runner] = [
    liblinear(form, multicore) for multicore in (False, True) for form in ("dual", "primal")
]
