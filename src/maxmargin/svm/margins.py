"""The margins of classifiers: of rows, y f(x) / |w|, and of the machine itself, 1 / |w|."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length

from maxmargin.multiclass import CrammerSinger, OneVsRest, Scheme
from maxmargin.problem import Floats, Indices
from maxmargin.solution import Solution
from maxmargin.svm.diagnosis import Diagnosable, Judgement
from maxmargin.svm.training import Task


class Machine(NamedTuple):
    """What a classifier makes of a problem's solution.

    Attributes
    ----------
    coefficients : array
        Those of the solution over ``divisor``.
    intercept : float
    divisor : float
        What the solution was divided by, to put the margin at +1 and -1 (nu-SVC).
    """

    coefficients: Floats
    intercept: float
    divisor: float = 1.0


class MarginClassifier(Diagnosable):
    """A classifier that knows the margins of rows, and its own.

    Attributes
    ----------
    margin_ : float or array of shape (n_boundaries,)
        1 / |w| for each boundary between classes: one for each problem, and for Crammer-Singer one
        for each pair of classes, with the difference of their w.
    """

    margin_: Any
    classes_: Any
    intercept_: Floats
    _scheme: Scheme

    def _decisions(self, X: Any) -> Floats:
        raise NotImplementedError

    def margins(self, X: Any, y: Any, functional: bool = False) -> Floats:
        """The geometric margin of each row: y f(x) / |w|, its distance on the right side.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.
        y : array-like of shape (n_samples,)
            Their labels.
        functional : bool, default=False
            Leave out the division by |w|.

        Returns
        -------
        array of shape (n_samples,)
            Negative on the wrong side.  Of several boundaries the smallest margin to one in which
            the row's class takes part.
        """
        values = boundary_values(self._scheme, self._decisions(X))
        labels = column_or_1d(y)
        check_consistent_length(values, labels)
        index = np.searchsorted(self.classes_, labels).clip(0, len(self.classes_) - 1)
        if not np.array_equal(self.classes_[index], labels):
            raise ValueError(f"y: there are labels other than those of the fit, {self.classes_}.")
        return _least(
            self._scheme, index, values, np.ones(1) if functional else np.atleast_1d(self.margin_)
        )

    def _judge(self, index: int, task: Task, coefficients: Floats, scores: Floats) -> Judgement:
        labels = np.searchsorted(self.classes_, task.samples.y)
        labels = labels if task.part is None else labels[task.part]
        margin = np.atleast_1d(self.margin_)
        if isinstance(self._scheme, CrammerSinger):
            alpha = coefficients.reshape(scores.shape)[np.arange(len(labels)), labels]
            values = scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores
            values = boundary_values(self._scheme, values)
            functional = _least(self._scheme, labels, values, np.ones(1))
            distance = _least(self._scheme, labels, values, margin)
            return Judgement(alpha, functional - 1, functional, distance)
        y = np.where(self.classes_[labels] == task.classes[0], 1.0, -1.0)
        divisor = self.subproblems_[index].divisor
        intercept = task.sign * self.intercept_[index]
        functional = y * (scores[:, 0] / divisor + intercept)
        with np.errstate(invalid="ignore"):
            distance = functional * margin[index]
        return Judgement(y * coefficients / divisor, functional - 1, functional, distance, divisor)


def margins_of(
    rule: Scheme,
    tasks: Sequence[Task],
    machines: Sequence[Machine],
    solutions: Sequence[Solution | None],
) -> Any:
    """``margin_`` of a classifier that makes these machines of its tasks' solutions."""
    margins: list[float] = []
    for task, machine, solution in zip(tasks, machines, solutions, strict=True):
        if solution is None:
            margins.append(np.inf)
            continue
        c = task.problem.spread(machine.coefficients)
        W = c.T @ solution.scores / machine.divisor  # w_a . w_b of the model
        if isinstance(rule, CrammerSinger):
            squares = [W[i, i] + W[j, j] - W[i, j] - W[j, i] for i, j in rule.pairs]
        else:
            squares = [W[0, 0]]
        margins += [1 / np.sqrt(square) if square > 0 else np.inf for square in squares]
    return float(margins[0]) if len(margins) == 1 else np.array(margins)


def boundary_values(rule: Scheme, decisions: Floats) -> Floats:
    """A value for each boundary between classes, positive on the side of the first."""
    return decisions if isinstance(rule, OneVsRest) else rule.pair_values(decisions)


def _least(rule: Scheme, labels: Indices, values: Floats, margin: Floats) -> Floats:
    """The least of y f times ``margin`` over the boundaries in which a row's class takes part."""
    if isinstance(rule, OneVsRest):
        side = 2 * np.eye(rule.n_classes) - 1
    else:
        first, second = np.array(rule.pairs).T
        unit = np.eye(rule.n_classes)
        side = unit[:, first] - unit[:, second]
    with np.errstate(invalid="ignore"):
        signed = side[labels] * values * margin
    return np.where(side[labels] != 0, signed, np.inf).min(axis=1)
