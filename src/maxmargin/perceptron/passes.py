"""Learning in passes: a learner visits the rows one after the other, again and again.

It scores each row, and changes when it does not like the score.

    mistake    y f(x) <= 0 when the row comes: a score of zero is one

A machine is done after a pass without mistakes, or when ``tol`` says so: see `Patience`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_class_weight

from maxmargin._compat import Interval, StrOptions, fit_context
from maxmargin.exceptions import NOT_FINITE
from maxmargin.kernels import Linear, native
from maxmargin.perceptron.online import OnlineClassifier
from maxmargin.problem import Floats, Indices
from maxmargin.svm import inputs

PASSES: dict[str, list[Any]] = {
    "fit_intercept": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left"), None],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "shuffle": ["boolean"],
    "random_state": ["random_state"],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
}
STEP: dict[str, list[Any]] = {"eta0": [Interval(Real, 0, None, closed="neither")]}


@dataclass(frozen=True)
class Stream:
    """The rows of a call, made ready.

    Attributes
    ----------
    X : array, sparse matrix or sequence
    items : Items
        The rows, prepared for the kernel.
    labels : array of shape (n,)
        The class of each row, as a number.
    positive : array of shape (k,)
        The class that each machine tells from the others.
    weights : array of shape (n_classes,)
        The weight of each class, which scales the steps of its rows, and their losses.
    eta0 : float
        The length of a step, where the learner has one.
    """

    X: Any
    items: Any
    labels: Indices
    positive: Indices
    weights: Floats
    eta0: float

    def __len__(self) -> int:
        return len(self.labels)

    def signs(self, rows: Indices, machines: Indices) -> tuple[Floats, Floats]:
        """The signs y, for each row and machine, and the weight of each row, as a column."""
        labels = self.labels[rows, None]
        y = np.where(labels == self.positive[machines], 1.0, -1.0)
        return y, self.weights[labels]


class Learner(Protocol):
    """The state of k machines between the calls; NumPy and Python only, and so it is pickled.

    While rows are learned from (between ``open`` and ``close``) it may hold prepared data too.
    ``state`` names what a learner with other parameters takes over, to go on.
    """

    state: tuple[str, ...]

    def open(self, stream: Stream) -> None:
        """Get ready for passes over these rows."""
        ...

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        """Visit the rows in this order; mistakes, and the sum of losses, of these machines."""
        ...

    def close(self) -> None:
        """Let go of the rows, but for those that the state needs."""
        ...

    def attributes(self) -> dict[str, Any]:
        """What the estimator shows."""
        ...


class Patience:
    """When a machine is done before ``max_iter``.

    After a pass without mistakes; and with a ``tol`` when for ``n_iter_no_change`` passes in a row
    the mean loss of a pass was not below the best one so far by tol.
    """

    def __init__(self, k: int, tol: float | None, n_iter_no_change: int) -> None:
        self.tol, self.limit = tol, n_iter_no_change
        self.best = np.full(k, np.inf)
        self.stalled = np.zeros(k, dtype=np.int64)

    def ended(self, machines: Indices, mistakes: Indices, loss: Floats) -> Any:
        """Which of these machines are done after a pass with these mistakes and mean losses."""
        if self.tol is None:
            return mistakes == 0
        better = loss <= self.best[machines] - self.tol
        self.stalled[machines] = np.where(better, 0, self.stalled[machines] + 1)
        self.best[machines] = np.minimum(self.best[machines], loss)
        return (mistakes == 0) | (self.stalled[machines] >= self.limit)


class PassClassifier(OnlineClassifier):
    """An online classifier whose ``fit`` is passes over the rows until nothing is wrong.

    Subclasses say how a learner begins (``_begin``).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PASSES

    fit_intercept: bool
    max_iter: int
    tol: float | None
    n_iter_no_change: int
    shuffle: bool
    random_state: Any
    class_weight: Any
    verbose: Any
    warm_start: bool
    n_jobs: int | None

    n_iter_: int
    n_mistakes_: Any
    t_: float
    _learner: Any

    def _begin(self, stream: Stream) -> Learner:
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Learn from the rows in ``max_iter`` passes at most.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, of two classes or more.

        Returns
        -------
        self
        """
        first = not (self.warm_start and hasattr(self, "_learner"))
        stream, classes = self._stream(X, y, None, first=first)
        learner = self._learner_for(stream, first)
        rng = check_random_state(self.random_state)
        running = np.arange(len(stream.positive))
        patience = Patience(len(running), self.tol, self.n_iter_no_change)
        count = _Count.of(self, len(running), first)
        with self._learning(learner, stream, classes, count):
            while len(running) and count.passes < self.max_iter:
                order = rng.permutation(len(stream)) if self.shuffle else np.arange(len(stream))
                mistakes, loss = learner.run(order, running)
                count.add(len(stream), running, mistakes)
                if self.verbose:
                    print(
                        f"pass {count.passes}: {mistakes.sum()} mistakes, "
                        f"mean loss {loss.mean() / len(stream):.3g}"
                    )
                running = running[~patience.ended(running, mistakes, loss / len(stream))]
        if len(running) and self.tol is not None:
            warnings.warn(
                f"{type(self).__name__} made mistakes to the end of {count.passes} passes "
                f"(max_iter), and still learned. Raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn from more rows: one pass, in the order in which they come.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed in the first call.

        Returns
        -------
        self
        """
        first = not hasattr(self, "_learner")
        stream, classes = self._stream(X, y, classes, first=first, online=True)
        learner = self._learner_for(stream, first)
        machines = np.arange(len(stream.positive))
        count = _Count.of(self, len(machines), first)
        with self._learning(learner, stream, classes, count):
            mistakes, _ = learner.run(np.arange(len(stream)), machines)
            count.add(len(stream), machines, mistakes)
        return self

    def _learner_for(self, stream: Stream, first: bool) -> Learner:
        """A learner with the parameters of now, and the state of the last one unless it is new."""
        learner = self._begin(stream)
        if not first:
            old = vars(self._learner)
            vars(learner).update({name: old[name] for name in learner.state})
        return learner

    @contextmanager
    def _learning(
        self, learner: Learner, stream: Stream, classes: Any, count: _Count
    ) -> Iterator[None]:
        """Store what was learned; Ctrl-C leaves a model of the rows up to it."""
        learner.open(stream)
        try:
            yield
        except KeyboardInterrupt:
            learner.close()
            self._store(learner, classes, count)
            raise
        except BaseException:
            learner.close()
            raise
        learner.close()
        self._store(learner, classes, count)

    def _stream(
        self, X: Any, y: Any, classes: Any, *, first: bool, online: bool = False
    ) -> tuple[Stream, Any]:
        """The rows made ready, and the classes of the model."""
        X = self._rows(X, y, first=first)
        classes, labels = self._labels(y, classes, first=first, online=online)
        positive = np.array([1]) if len(classes) == 2 else np.arange(len(classes))
        weights = self._weights(classes, labels, online)
        eta0 = getattr(self, "eta0", 1.0)
        return Stream(X, self._items(X, first), labels, positive, weights, eta0), classes

    def _rows(self, X: Any, y: Any, *, first: bool) -> Any:
        X = self._validated(X, y, reset=first)
        inputs.check_magnitude(X)
        return X

    def _items(self, X: Any, first: bool) -> Any:
        return native(Linear().fit(X).prepare(X))

    def _weights(self, classes: Any, labels: Indices, online: bool) -> Floats:
        """The weight of each class."""
        if online and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once, and partial_fit has only some: "
                "compute the weights with sklearn.utils.compute_class_weight and pass them as a "
                "dictionary"
            )
        if isinstance(self.class_weight, dict) and set(self.class_weight) - set(classes.tolist()):
            raise ValueError(
                f"class_weight: {self.class_weight} names classes other than {classes}."
            )
        weights = compute_class_weight(
            self.class_weight, classes=classes, y=classes if online else classes[labels]
        )
        if not np.all(weights > 0):
            raise ValueError(f"class_weight must be positive; got {weights} for {classes}.")
        return np.asarray(weights, dtype=np.float64)

    def _store(self, learner: Learner, classes: Any, count: _Count) -> None:
        attributes = learner.attributes()
        for name in ("coef_", "dual_coef_", "intercept_"):
            if not np.isfinite(attributes.get(name, 0.0)).all():
                raise ValueError(NOT_FINITE)
        self._learner, self.classes_, self._count = learner, classes, count
        self.n_iter_ = max(count.passes, 1)
        self.t_ = 1.0 + count.rows
        mistakes = count.mistakes
        self.n_mistakes_ = int(mistakes[0]) if len(mistakes) == 1 else mistakes
        vars(self).update(attributes)


@dataclass
class _Count:
    """What has happened to a model: passes of this call, rows and mistakes of all."""

    passes: int
    rows: int
    mistakes: Indices

    @classmethod
    def of(cls, estimator: Any, k: int, first: bool) -> _Count:
        if first:
            return cls(0, 0, np.zeros(k, dtype=np.int64))
        return cls(0, estimator._count.rows, estimator._count.mistakes.copy())

    def add(self, n: int, machines: Indices, mistakes: Indices) -> None:
        self.passes += 1
        self.rows += n
        self.mistakes[machines] += mistakes
