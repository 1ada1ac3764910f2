"""Linear machines: time to a relative gap, where the targets are those of the design."""

from __future__ import annotations

from benchmarks.data import archive, gaussian, shipped
from benchmarks.problems import Ask, Case, Linear
from benchmarks.runners import liblinear, ours, reference, scikit_learn, skglm

REFERENCE = reference.REFERENCE
RUNNERS = [*ours.RUNNERS, *scikit_learn.RUNNERS, *liblinear.RUNNERS, *skglm.RUNNERS]

A9A = archive("a9a", positive=lambda y: y > 0)
NEWS20 = archive("news20_tfidf", positive=lambda y: y < 10)  # the first ten topics
MNIST = archive("mnist", scaling=255.0)
COVTYPE = archive("covtype", scaling="standard", positive=lambda y: y == 2, third=False)
MADELON = archive("madelon", scaling="standard", positive=lambda y: y > 0)
CALIFORNIA = archive("cadata_california_housing", scaling="standard", regression=True)
CPUSMALL = archive("cpusmall", scaling="standard", regression=True)
CANCER = shipped("breast_cancer")
DIGITS = shipped("digits")
DIABETES = shipped("diabetes", regression=True)
SMALL = gaussian(100, 4)

HINGE, SQUARED = Linear("hinge"), Linear("squared_hinge")
# Not every peer can leave an intercept unpenalised, or penalise it: these have none.
L1_LOGISTIC = Linear("logistic", penalty="l1", intercept="none")
LOGISTIC = Linear("logistic", intercept="none")
TUBE, SQUARED_TUBE = Linear("epsilon_insensitive"), Linear("squared_epsilon_insensitive")


def asks(gap: float, factor: float | None = None, seconds: float | None = None) -> tuple[Ask, ...]:
    """A loose gap, a tight one, and the one with a target."""
    target = Ask(gap, factor, seconds)
    return tuple({1e-3: Ask(1e-3), 1e-6: Ask(1e-6), gap: target}.values())


CASES = [
    Case(A9A, HINGE, asks(1e-5, factor=3), short=True),
    Case(A9A, SQUARED, asks(5e-5, factor=2), short=True),
    Case(NEWS20, SQUARED, asks(2e-5, factor=2), short=True),
    Case(NEWS20, HINGE, asks(3e-5, factor=3)),
    Case(MNIST, HINGE, asks(2e-4, factor=2)),
    Case(MNIST, SQUARED, asks(1e-3, factor=3)),
    Case(COVTYPE, HINGE, asks(1e-3, seconds=1.0)),
    Case(COVTYPE, SQUARED, asks(1e-4, seconds=0.6)),
    Case(NEWS20, L1_LOGISTIC, asks(1e-3, factor=2)),
    Case(MADELON, L1_LOGISTIC, asks(1e-3, factor=2)),
    Case(A9A, LOGISTIC),
    Case(CALIFORNIA, TUBE),
    Case(CPUSMALL, SQUARED_TUBE, short=True),
    Case(CANCER, HINGE, short=True),
    Case(DIGITS, SQUARED),
    Case(DIABETES, TUBE),
    Case(SMALL, SQUARED, (Ask(1e-3, factor=2),), loops=200, predict_rows=1, short=True),
]
