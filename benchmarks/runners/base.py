"""What a runner is, and the one that serves every estimator with scikit-learn's interface.

A runner turns a problem into a :class:`Machine`; the harness times ``fit`` and ``predict`` and
nothing else. What a peer must convert its data into belongs into the machine's making where only
the training call is timed (LIBLINEAR), and into ``fit`` where the user would wait for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from benchmarks.data import Data
from benchmarks.problems import Linear, Weights

Setting = Mapping[str, Any]


class NotAvailable(Exception):
    """A peer that is not installed, or has not got what the problem needs: skipped, with why."""


class Machine(Protocol):
    """One fit of one peer."""

    def fit(self) -> None:
        """The timed section."""
        ...

    def answer(self) -> Weights:
        """What was learned, as the problem's objective takes it."""
        ...

    def predict(self, X: Any) -> np.ndarray:
        """Classes 0, 1, ... or values. Timed."""
        ...

    def facts(self) -> dict[str, float]:
        """What the peer itself says of its answer (``claimed_gap``, ``iterations``)."""
        ...


@dataclass(frozen=True)
class Runner:
    """A peer.

    ``settings``: its own knob from loose to tight; each is tried in a process of its own until the
    asked gaps are reached. ``solves``: whether it can solve a problem at all; ``machine`` makes the
    fit. ``folder``: packages that would overwrite another's files are installed in a folder of
    their own below the environment's ``peers``.
    """

    name: str
    package: str
    settings: Sequence[Setting]
    solves: Callable[[Linear], bool]
    make: Callable[[Linear, Data, Setting, int], Machine]
    folder: bool = False

    def version(self) -> str:
        """The installed version; NotAvailable says how to install it."""
        where = Path(sys.prefix) / "peers" / self.package
        if self.folder and where.is_dir() and str(where) not in sys.path:
            sys.path.insert(0, str(where))
        try:
            return version(self.package)
        except PackageNotFoundError as error:
            how = f"pip install --target '{where}' --no-deps" if self.folder else "pip install"
            raise NotAvailable(f"not installed: {how} {self.package}") from error

    def machine(self, problem: Linear, data: Data, setting: Setting, threads: int) -> Machine:
        self.version()
        return self.make(problem, data, setting, threads)


def grid(name: str, *exponents: float, **fixed: Any) -> list[dict[str, Any]]:
    """Settings of one knob at powers of ten."""
    return [{name: float(f"{10.0**exponent:.3g}"), **fixed} for exponent in exponents]


TOLERANCES = (-1, -1.5, -2, -2.5, -3, -3.5, -4, -5, -6, -7, -8)
"""Powers of ten: what a tolerance means differs from solver to solver, so they start loose."""


def with_constant(X: Any) -> Any:
    """X with a last feature of 1: the penalised intercept of who has none."""
    ones = np.ones((X.shape[0], 1))
    return sp.csr_array(sp.hstack([X, ones], format="csr")) if sp.issparse(X) else np.c_[X, ones]


@dataclass
class Estimator:
    """The machine of an estimator with ``fit``, ``predict``, ``coef_`` and ``intercept_``.

    ``constant``: the intercept is the weight of a constant feature, which is appended here.
    """

    estimator: Any
    data: Data
    constant: bool = False
    X: Any = field(init=False)

    def __post_init__(self) -> None:
        self.X = self.features(self.data.X)

    def features(self, X: Any) -> Any:
        return with_constant(X) if self.constant else X

    def fit(self) -> None:
        self.estimator.fit(self.X, self.data.y)

    def predict(self, X: Any) -> np.ndarray:
        return self.estimator.predict(self.features(X))

    def answer(self) -> Weights:
        w = np.atleast_2d(np.asarray(self.estimator.coef_))
        if self.constant:
            return Weights(w[:, :-1], w[:, -1])
        intercept = np.ravel(getattr(self.estimator, "intercept_", 0.0))
        return Weights(w, np.broadcast_to(intercept, len(w)))

    def facts(self) -> dict[str, float]:
        iterations = np.ravel(getattr(self.estimator, "n_iter_", []))
        facts = {"iterations": float(iterations.sum())} if iterations.size else {}
        if hasattr(self.estimator, "dual_gap_"):  # of several classes: as of their sum
            gap, objective = np.sum(self.estimator.dual_gap_), np.sum(self.estimator.objective_)
            facts["claimed_gap"] = float(gap / abs(objective))
        return facts


def estimators(
    name: str,
    package: str,
    build: Callable[[Linear, Data, int], Any],
    solves: Callable[[Linear], bool],
    settings: Sequence[Setting],
    constant: Callable[[Linear], bool] = lambda problem: False,
) -> Runner:
    """A runner of estimators: ``build`` makes one, and a setting is some of its parameters."""

    def make(problem: Linear, data: Data, setting: Setting, threads: int) -> Machine:
        estimator = build(problem, data, threads).set_params(**setting)
        return Estimator(estimator, data, constant(problem))

    return Runner(name, package, settings, solves, make)


def only(**allowed: set[str]) -> Callable[[Linear], bool]:
    """Problems whose loss, penalty and intercept are among those named."""
    return lambda problem: all(getattr(problem, key) in values for key, values in allowed.items())
