"""scikit-learn: LIBLINEAR's solvers, stochastic average gradients, and stochastic descent."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC, LinearSVR

from benchmarks.data import Data
from benchmarks.problems import Linear
from benchmarks.runners.base import TOLERANCES, Runner, estimators, grid

MOST = 1_000_000
"""Iterations: the tolerance decides, not the default limit."""


def liblinear(dual: bool) -> Any:
    """LinearSVC, LinearSVR or LogisticRegression, all of which call LIBLINEAR."""

    def build(problem: Linear, data: Data, threads: int) -> Any:
        common = {
            "C": problem.C,
            "dual": dual,
            "fit_intercept": problem.intercept != "none",
            "max_iter": MOST,
            "random_state": 0,
        }
        if problem.regression:
            return LinearSVR(loss=problem.loss, epsilon=problem.epsilon, **common)
        if problem.loss == "logistic":
            l1_ratio = float(problem.penalty == "l1")
            return LogisticRegression(solver="liblinear", l1_ratio=l1_ratio, **common)
        return LinearSVC(loss=problem.loss, penalty=problem.penalty, **common)

    return build


def dual(problem: Linear) -> bool:
    return problem.penalty == "l2" and problem.intercept != "free"


def primal(problem: Linear) -> bool:
    smooth = problem.loss in ("squared_hinge", "logistic", "squared_epsilon_insensitive")
    no_l1 = problem.penalty == "l1" and problem.regression
    return smooth and not no_l1 and problem.intercept != "free"


def logistic(solver: str) -> Any:
    def build(problem: Linear, data: Data, threads: int) -> Any:
        return LogisticRegression(
            solver=solver,
            C=problem.C,
            l1_ratio=float(problem.penalty == "l1"),
            fit_intercept=problem.intercept == "free",
            max_iter=MOST,
            random_state=0,
        )

    return build


def smooth_logistic(problem: Linear) -> bool:
    unpenalised = problem.intercept != "penalised"
    return problem.loss == "logistic" and problem.penalty == "l2" and unpenalised


def any_logistic(problem: Linear) -> bool:
    return problem.loss == "logistic" and problem.intercept != "penalised"


def sgd(problem: Linear, data: Data, threads: int) -> Any:
    """Its objective is divided by C n, and its intercept is free."""
    return SGDClassifier(
        loss={"logistic": "log_loss"}.get(problem.loss, problem.loss),
        penalty=problem.penalty,
        alpha=1 / (problem.C * len(data.y)),
        fit_intercept=problem.intercept == "free",
        tol=None,  # type: ignore[arg-type]
        n_jobs=threads,
        random_state=0,
    )


EPOCHS = [{"max_iter": passes, "average": mean} for passes in (5, 20, 80) for mean in (False, True)]

RUNNERS: list[Runner] = [
    estimators("sklearn:dual", "scikit-learn", liblinear(True), dual, grid("tol", 0, *TOLERANCES)),
    estimators(
        "sklearn:primal", "scikit-learn", liblinear(False), primal, grid("tol", *TOLERANCES)
    ),
    estimators(
        "sklearn:saga", "scikit-learn", logistic("saga"), any_logistic, grid("tol", *TOLERANCES)
    ),
    estimators(
        "sklearn:lbfgs",
        "scikit-learn",
        logistic("lbfgs"),
        smooth_logistic,
        grid("tol", *TOLERANCES),
    ),
    estimators(
        "sklearn:sgd",
        "scikit-learn",
        sgd,
        lambda problem: not problem.regression,
        EPOCHS,
        constant=lambda problem: problem.intercept == "penalised",
    ),
]
