"""What the linear classifiers share: labels, one against the rest, votes, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from maxmargin.linear.base import (
    Attributes,
    Data,
    LinearMachine,
    linear_problem,
    split,
)
from maxmargin.linear.losses import Logistic, Loss, Softmax
from maxmargin.linear.penalties import Penalty
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import LinearSolution
from maxmargin.problem import Floats, Indices


@dataclass(frozen=True)
class Labels:
    """The classes of the rows: their names, the number of each row's, and their weights."""

    classes: Any
    index: Indices
    class_weight: Floats

    def __len__(self) -> int:
        return len(self.classes)


class LinearClassifierBase(ClassifierMixin, LinearMachine):
    """A linear machine that tells classes apart, two or many (one against the rest)."""

    class_weight: Any
    classes_: Any

    def _labels(self, data: Data, given: Any) -> Labels:
        check_classification_targets(data.y)
        classes, index = np.unique(data.y, return_inverse=True)
        if len(classes) < 2:
            if len(np.unique(given)) > 1:
                raise ValueError(
                    "Invalid input - all samples with positive weights belong to the same class."
                )
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {classes[0]!r}"
            )
        class_weight = np.ones(len(classes))
        if self.class_weight is not None:
            class_weight = compute_class_weight(
                self.class_weight, classes=classes, y=data.y, sample_weight=data.weights
            )
        if not np.all(class_weight > 0):
            raise ValueError(
                f"class_weight must be positive; got {class_weight} for the classes {classes}. "
                "Leave the rows of a class out to be without it."
            )
        return Labels(classes, index, class_weight)

    def _against_the_rest(
        self,
        data: Data,
        labels: Labels,
        C: float,
        loss: Loss,
        penalty: Penalty,
        free: bool,
        rest: float | None = None,
    ) -> list[LinearProblem]:
        """One problem for two classes, else one for each class.

        A row's price counts the weight of its class, or of the rows of the rest ``rest`` where
        that is given.
        """
        problems = []
        own = labels.class_weight[labels.index]
        for k in [1] if len(labels) == 2 else range(len(labels)):
            mine = labels.index == k
            weight = own if rest is None or len(labels) == 2 else np.where(mine, own, rest)
            y = np.where(mine, 1.0, -1.0)
            price = C * data.weights * weight
            problems.append(linear_problem(data, y, price, loss, penalty, free))
        return problems

    def _fit_problems(self, data: Data, labels: Labels, problems: Sequence[LinearProblem]) -> Any:
        def attributes(solutions: Sequence[LinearSolution]) -> Attributes:
            W = np.column_stack([s.weights for s in solutions])
            if W.shape[1] == 2:  # one problem for two classes, with a score for each
                W = W[:, 1:] - W[:, :1]
            coef, intercept = split(W, data.design)
            return {
                "coef_": np.ascontiguousarray(coef.T),
                "intercept_": intercept,
                "classes_": labels.classes,
            }

        return self._train(data, problems, attributes, self._starts(data, labels, problems))

    def _starts(
        self, data: Data, labels: Labels, problems: Sequence[LinearProblem]
    ) -> list[Floats | None]:
        """Where ``warm_start`` begins: at the last weights, if they are of such problems."""
        alike = (
            self.warm_start
            and hasattr(self, "coef_")
            and np.array_equal(self.classes_, labels.classes)
            and self.coef_.shape[1] == data.design.n_features
        )
        if not alike:
            return [None] * len(problems)
        W = (self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_).T
        if data.design.bias:
            W = np.vstack([W, np.atleast_1d(self.intercept_) / data.design.bias])
        if problems[0].n_scores > 1:
            return [np.ascontiguousarray(W) if W.shape == problems[0].shape else None]
        return [np.ascontiguousarray(W[:, j]) for j in range(len(problems))]

    # -------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Floats:
        """The decision values of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With two classes w.x + b, positive for ``classes_[1]``; with more a value for each.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels: of the largest value, or for two classes of its sign.
        """
        scores = self.decision_function(X)
        winners = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_.take(winners)


def _is_probabilistic(machine: Any) -> bool:
    loss = machine._likelihood()
    if isinstance(loss, (Logistic, Softmax)):
        return True
    raise AttributeError(
        f"loss={loss.name!r} gives no probabilities: use loss='logistic' or 'softmax'."
    )


class Probabilistic:
    """A classifier whose loss is a likelihood: its scores give probabilities."""

    classes_: Any
    _scores: Any

    def _likelihood(self) -> Loss:
        """The loss, if it is one."""
        raise NotImplementedError

    @available_if(_is_probabilistic)
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        if isinstance(self._likelihood(), Softmax):
            return softmax(scores, axis=1)
        each = expit(scores)
        return each / np.maximum(each.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)

    @available_if(_is_probabilistic)
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of probabilities, in the order of ``classes_``.
        """
        return np.log(self.predict_proba(X))
