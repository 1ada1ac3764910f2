"""A suite for test_benchmarks.py: peers that do well, badly, and nothing at all."""

import os

from sklearn.svm import LinearSVC

from benchmarks.data import shipped
from benchmarks.problems import Ask, Case, Linear
from benchmarks.runners import ours, reference
from benchmarks.runners.base import Runner, estimators
from benchmarks.runners.scikit_learn import liblinear


class Crashing(LinearSVC):
    def fit(self, X, y):
        os._exit(3)


class Raising(LinearSVC):
    def fit(self, X, y):
        raise FloatingPointError("out of numbers")


def peer(name, build, settings, package="scikit-learn"):
    return estimators(name, package, build, lambda problem: True, settings)


def make(machine):
    return lambda problem, data, threads: machine()


CASES = [Case(shipped("breast_cancer"), Linear("hinge", intercept="none"), (Ask(1e-4, factor=50),))]
REFERENCE = reference.REFERENCE
RUNNERS: list[Runner] = [
    estimators(
        "maxmargin",
        "maxmargin",
        ours.kernel,
        lambda problem: True,
        [{"gap_tol": 1e-5}],
    ),
    peer("good", liblinear(True), [{"tol": 1.0}, {"tol": 1e-5}]),
    peer("never", liblinear(True), [{"max_iter": 1}]),
    peer("crashing", make(Crashing), [{"tol": 1e-3}]),
    peer("raising", make(Raising), [{"tol": 1e-3}]),
    peer("absent", liblinear(True), [{"tol": 1e-3}], package="no-such-package"),
]
