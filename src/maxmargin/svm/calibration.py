"""``probability=True``: Platt's sigmoids for SVC and NuSVC, fitted to unseen decision values.

The mathematics are in probability.py.  Here every problem of a machine is solved again on four
fifths of its rows, five times, for the decision values of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.multiclass import Binary, Part, Scheme
from maxmargin.problem import Floats, Indices, Problem
from maxmargin.solution import Solution
from maxmargin.solve import solve
from maxmargin.svm.base import BLOCK, Attributes, blocks
from maxmargin.svm.classifier import KernelClassifier, Labels, Machine
from maxmargin.svm.inputs import Samples
from maxmargin.svm.probability import couple, platt, sigmoid, unseen_decisions
from maxmargin.svm.training import Task

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
    probA_: Floats
    probB_: Floats

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
            nothing = {"probA_": np.empty(0), "probB_": np.empty(0)}
            return {"then": lambda monitor: nothing}
        rng = check_random_state(self.random_state)
        options = self._solver_options()

        def calibrate(monitor: Any) -> Attributes:
            unused = iter(range(len(tasks), len(tasks) * (1 + N_FOLDS)))
            decisions = np.zeros((len(samples), rule.n_decisions))
            for column, (task, part) in enumerate(
                zip(tasks, rule.parts(labels.index), strict=True)
            ):
                items, weights = task.items, labels.weights[_rows(part)]

                def decide(
                    train: Indices,
                    test: Indices,
                    items: Any = items,
                    part: Part = part,
                    weights: Floats = weights,
                ) -> Floats:
                    part_monitor = monitor.subproblem(next(unused))
                    solution = solve(
                        problem(part.y[train], weights[train]),
                        items.subset(train),
                        **options,
                        monitor=part_monitor,
                    )
                    c, intercept = machine(solution)
                    return _values(items, test, train, c) + intercept

                values = unseen_decisions(part.y, decide, rng, N_FOLDS)
                decisions[_rows(part), column] = rule.sign * values
            fitted = [
                platt(values[among], labels.index[among] == i, samples.weights[among])
                for (i, j), values in zip(rule.pairs, rule.pair_values(decisions).T, strict=True)
                for among in [np.isin(labels.index, (i, j))]
            ]
            A, B = np.array(fitted).T
            return {"probA_": A, "probB_": B}

        return {"then": calibrate, "n_more": N_FOLDS * len(tasks)}

    @property
    def _predicts_by_probability(self) -> bool:
        return bool(self.probability and len(self.probA_) and isinstance(self._scheme, Binary))

    def _winners(self, decisions: Floats) -> Indices:
        """Two classes with probabilities: the more probable one, which need not be f's."""
        if self._predicts_by_probability:
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
            return np.hstack([first, 1 - first])
        return couple(first, len(self.classes_))


def _rows(part: Part) -> Any:
    return slice(None) if part.rows is None else part.rows


def _values(items: Any, test: Indices, train: Indices, c: Floats) -> Floats:
    """f of some items, where c are the coefficients of others."""
    used = c != 0
    support, c = train[used], c[used]
    parts = [items.tile(test[block], items, support) @ c for block in blocks(len(test), BLOCK)]
    return np.concatenate(parts)
