"""``probability=True``: Platt's sigmoids for SVC and NuSVC, fitted to unseen decision values.

The mathematics are in probability.py.  Here every problem of a machine is solved again on four
fifths of its rows, five times, for the decision values of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.kernels import native
from maxmargin.multiclass import CrammerSinger, Scheme
from maxmargin.problem import Floats, Indices, Problem
from maxmargin.solution import Solution
from maxmargin.solve import solve
from maxmargin.svm.base import Attributes
from maxmargin.svm.classifier import KernelClassifier, Labels
from maxmargin.svm.inputs import Samples
from maxmargin.svm.margins import Machine
from maxmargin.svm.probability import CERTAIN, couple, folds, platt, sigmoid, unseen_decisions
from maxmargin.svm.training import Task, limited, run, step_costs

N_FOLDS = 5


def _has_probabilities(machine: CalibratedClassifier) -> bool:
    if not machine.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class CalibratedClassifier(KernelClassifier):
    """A kernel classifier with probabilities, when ``probability`` asks for them.

    Attributes
    ----------
    probA_, probB_ : array of shape (n_classes * (n_classes - 1) / 2,)
        P(class i given i or j) = 1 / (1 + exp(probA_ f + probB_)) for the pairs i < j, where f is
        positive for i; empty without probabilities.
    """

    probability: bool
    random_state: Any
    probA_: Floats
    probB_: Floats

    def _attributes(self, *args: Any) -> Callable[[Sequence[Solution | None]], Attributes]:
        """As for any classifier, and no probabilities yet."""
        attributes = super()._attributes(*args)
        none = {"probA_": np.empty(0), "probB_": np.empty(0)}
        return lambda solutions: attributes(solutions) | none

    def _calibration(
        self,
        samples: Samples,
        labels: Labels,
        tasks: Sequence[Task],
        problem: Callable[[Any, Floats], Problem],
        machine: Callable[[Solution], Machine],
        rule: Scheme,
    ) -> dict[str, Any]:
        """What ``_train`` is to do after the fit."""
        if not self.probability:
            return {}

        def calibrate(monitor: Any) -> tuple[Attributes, list[Solution]]:
            rng = check_random_state(self.random_state)
            options = self._limited(tasks)
            monitors = (monitor.subproblem(len(tasks) + i) for i in count())
            solved: list[Solution] = []
            decisions = np.zeros((len(samples), rule.n_decisions))
            for column, (task, part) in enumerate(
                zip(tasks, rule.parts(labels.index), strict=True)
            ):
                rows = slice(None) if part.rows is None else part.rows
                decide = _decider(
                    task.items,
                    part.y,
                    labels.weights[rows],
                    problem,
                    machine,
                    options,
                    monitors,
                    solved,
                )
                if isinstance(rule, CrammerSinger):
                    decisions = _unseen_of_all(rule, part.y, decide, rng)
                else:
                    values = unseen_decisions(part.y, decide, rng, N_FOLDS)
                    decisions[rows, column] = rule.sign * values
            fitted = [
                platt(values[among], labels.index[among] == i, samples.weights[among])
                for (i, j), values in zip(rule.pairs, rule.pair_values(decisions).T, strict=True)
                for among in [np.isin(labels.index, (i, j))]
            ]
            A, B = np.array(fitted).T
            return {"probA_": A, "probB_": B}, solved

        return {"then": calibrate, "n_more": N_FOLDS * len(tasks)}

    def _solve(
        self, tasks: Sequence[Task], monitor: Any, start: Sequence[Any]
    ) -> Sequence[Solution]:
        return run(tasks, self._limited(tasks), monitor, start)

    def _limited(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """The solver's options, with one default limit for the tasks and their folds together."""
        options = self._solver_options()
        folded = [cost * (N_FOLDS - 1) // N_FOLDS for cost in step_costs(options, tasks)]
        return limited(options, tasks, folded * N_FOLDS * self.probability)

    def _winners(self, decisions: Floats) -> Indices:
        """Two classes with probabilities: the more probable one, which need not be f's."""
        if self.probability and len(self.probA_) == 1:
            return np.argmax(self._probabilities(decisions), axis=1)
        return super()._winners(decisions)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        if len(self.probA_) == 0:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return self._of_decisions(X, self._probabilities)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of probabilities, in the order of ``classes_``.
        """
        return np.log(self.predict_proba(X))

    def _probabilities(self, decisions: Floats) -> Floats:
        first = sigmoid(self._scheme.pair_values(decisions), self.probA_, self.probB_)
        if first.shape[1] == 1:
            first = np.clip(first, CERTAIN, 1 - CERTAIN)
            return np.hstack([first, 1 - first])
        return couple(first, len(self.classes_))


def _decider(
    items: Any,
    y: Any,
    weights: Floats,
    problem: Callable[[Any, Floats], Problem],
    machine: Callable[[Solution], Machine],
    options: dict[str, Any],
    monitors: Iterator[Any],
    solved: list[Solution],
) -> Callable[[Indices, Indices], Floats]:
    """A function that trains on some rows, which adds to ``solved``, and returns f of others."""
    items, n_jobs = native(items), options["n_jobs"]

    def decide(train: Indices, test: Indices) -> Floats:
        of_train = problem(y[train], weights[train])
        solution = solve(of_train, items.subset(train), **options, monitor=next(monitors))
        solved.append(solution)
        c, intercept, _ = machine(solution)
        c = c.reshape(len(train), -1)  # a column for each class, where they are trained as one
        used = c.any(axis=1)
        others = items.subset(train[used])
        values = items.subset(test).multiply(others, c[used], n_jobs) + intercept
        return np.squeeze(values, axis=1 if c.shape[1] == 1 else ())

    return decide


def _unseen_of_all(
    rule: CrammerSinger,
    labels: Indices,
    decide: Callable[[Indices, Indices], Floats],
    rng: np.random.RandomState,
) -> Floats:
    """Unseen decision values of a problem that has a column of them for each class."""
    fold = folds(labels, N_FOLDS, rng)
    scores = np.zeros((len(labels), rule.n_classes))
    for k in range(min(N_FOLDS, len(labels))):
        test = np.flatnonzero(fold == k)
        scores[test] = decide(np.flatnonzero(fold != k), test)
    return scores[:, 1:] - scores[:, :1] if rule.n_classes == 2 else scores
