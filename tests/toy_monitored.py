"""A toy estimator with a fake solver, for the tests of the monitor; workers import it."""

import time
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from maxmargin._compat import CallbackSupportMixin
from maxmargin.monitor import session

TOL = 1e-3
PAUSE = 0.01


@dataclass
class ToyView:
    """State of the fake solver; counts how often what costs is asked for."""

    violation: float
    iteration: int = 0
    tol: float = TOL
    objective: float = -1.0
    active: int = 10
    cache_hits: int = 3
    gaps: int = 0
    solutions: int = 0

    @property
    def dual_gap(self):
        self.gaps += 1
        return 10 * self.violation

    def solution(self):
        self.solutions += 1
        return self.iteration


def toy_solve(violations, monitor):
    """One step per violation, 10 ms each; returns the number of steps taken."""
    view = ToyView(violations[0])
    try:
        if not monitor.poll(view):
            for violation in violations[1:]:
                time.sleep(PAUSE)
                view.violation = violation
                view.iteration += 1
                if monitor.poll(view):
                    break
    except KeyboardInterrupt as error:
        monitor.interrupt(error)
    monitor.finish(view)
    return view.solution()


def steady(steps):
    """Violations that fall from 1 to tol, by the same factor at each step."""
    return list(np.geomspace(1.0, TOL, steps + 1))


def stalled(seconds):
    """Violations that stay where they are for so long."""
    return [1.0] * int(seconds / PAUSE)


class Toy(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Solves `paths`, one list of violations per subproblem; predicts class 1 when fitted."""

    def __init__(self, paths=((1.0, TOL),), time_limit=None, verbose=False, attributes=True):
        self.paths = paths
        self.time_limit = time_limit
        self.verbose = verbose
        self.attributes = attributes

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        with session(
            self,
            X,
            y,
            metadata=None if sample_weight is None else {"sample_weight": sample_weight},
            n_subproblems=len(self.paths),
            time_limit=self.time_limit,
            verbose=self.verbose,
            attributes=self._model if self.attributes else None,
        ) as monitor:
            solutions = [
                toy_solve(path, monitor.subproblem(i)) for i, path in enumerate(self.paths)
            ]
            vars(self).update(self._model(solutions))
            self.reason_ = monitor.reason
        return self

    def _model(self, solutions):
        return {"steps_": [steps or 0 for steps in solutions], "begun_": solutions}

    def predict(self, X):
        return np.full(len(X), self.classes_[-1 if self.steps_ else 0])


X = np.arange(24.0).reshape(12, 2)
y = np.array(["no", "yes"] * 6)
