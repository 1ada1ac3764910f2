"""skglm: working sets and accelerated coordinate descent, compiled by numba at the first call
(which is not on the clock).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.data import Data
from benchmarks.problems import Linear
from benchmarks.runners.base import TOLERANCES, Runner, estimators, grid


def build(problem: Linear, data: Data, threads: int) -> Any:
    skglm = import_module("skglm")
    if problem.loss == "hinge":  # without an intercept: the constant feature is appended
        return skglm.LinearSVC(C=problem.C, max_iter=1000)
    return skglm.SparseLogisticRegression(
        alpha=1 / (problem.C * len(data.y)),
        fit_intercept=problem.intercept == "free",
        max_iter=1000,
    )


def solves(problem: Linear) -> bool:
    hinge = problem.loss == "hinge" and problem.penalty == "l2" and problem.intercept != "free"
    sparse = problem.loss == "logistic" and problem.penalty == "l1"
    return hinge or (sparse and problem.intercept != "penalised")


RUNNERS: list[Runner] = [
    estimators(
        "skglm",
        "skglm",
        build,
        solves,
        grid("tol", *TOLERANCES),
        constant=lambda problem: problem.intercept == "penalised",
    )
]
