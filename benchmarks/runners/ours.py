"""maxmargin: the linear machines, and the kernel machine with the linear kernel beside them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.data import Data
from benchmarks.problems import Linear
from benchmarks.runners.base import NotAvailable, Runner, estimators, grid, only


def ours(name: str) -> Any:
    """A public name of the package, or why there is none."""
    try:
        return getattr(import_module("maxmargin"), name)
    except (ImportError, AttributeError) as error:
        raise NotAvailable(f"this maxmargin has no {name}") from error


def linear(problem: Linear, data: Data, threads: int) -> Any:
    """What a user would write for this problem."""
    common = {"C": problem.C, "fit_intercept": problem.intercept != "none", "n_jobs": threads}
    drop_in = problem.penalty == "l2" and problem.intercept != "free"
    if drop_in and problem.loss in ("hinge", "squared_hinge"):
        return ours("LinearSVC")(loss=problem.loss, max_iter=100_000, **common)
    if drop_in and problem.regression:
        return ours("LinearSVR")(
            loss=problem.loss, epsilon=problem.epsilon, max_iter=100_000, **common
        )
    common |= {
        "loss": problem.loss,
        "penalty": problem.penalty,
        "penalize_intercept": problem.intercept == "penalised",
    }
    if problem.regression:
        return ours("LinearRegressor")(epsilon=problem.epsilon, **common)
    return ours("LinearClassifier")(**common)


def kernel(problem: Linear, data: Data, threads: int) -> Any:
    """The dual problem: the intercept is free, or a weight of an appended feature."""
    return ours("SVC")(
        kernel="linear",
        loss=problem.loss,
        C=problem.C,
        multi_class="ovr",
        n_jobs=threads,
        fit_intercept=problem.intercept == "free",
    )


GAPS = (-1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -7)

RUNNERS: list[Runner] = [
    estimators("maxmargin", "maxmargin", linear, lambda problem: True, grid("gap_tol", *GAPS)),
    estimators(
        "maxmargin:svc",
        "maxmargin",
        kernel,
        only(loss={"hinge", "squared_hinge"}, penalty={"l2"}),
        grid("gap_tol", *GAPS),
        constant=lambda problem: problem.intercept == "penalised",
    ),
]
