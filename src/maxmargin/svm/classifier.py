"""What all kernel classifiers share: labels, class weights, the layout of many classes, votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from maxmargin._compat import StrOptions
from maxmargin.multiclass import OneVsOne, Scheme
from maxmargin.problem import Floats, Indices, Problem
from maxmargin.solution import Solution
from maxmargin.svm.base import Attributes, KernelMachine, dense
from maxmargin.svm.inputs import Samples
from maxmargin.svm.margins import Machine, MarginClassifier, margins_of
from maxmargin.svm.training import Task, report


@dataclass(frozen=True)
class Labels:
    """The classes of the samples.

    Attributes
    ----------
    classes : array of shape (k,)
        The labels, in order.
    index : array of shape (n,)
        The class of each sample, from 0 on.
    class_weight : array of shape (k,)
    weights : array of shape (n,)
        The weight of each sample times that of its class.
    """

    classes: Any
    index: Indices
    class_weight: Floats
    weights: Floats


class KernelClassifier(MarginClassifier, ClassifierMixin, KernelMachine):
    """A kernel machine that tells classes apart, two or many."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    class_weight: Any
    decision_function_shape: str
    break_ties: bool
    classes_: Any
    _scheme: Scheme

    # -------------------------------------------------------------- training

    def _labels(self, samples: Samples, given: Any) -> Labels:
        """The classes and their weights; ``given`` are the labels before rows were dropped."""
        check_classification_targets(samples.y)
        classes, index = np.unique(samples.y, return_inverse=True)
        if len(classes) < 2:
            if len(np.unique(given)) > 1:
                raise ValueError(self._one_class_left)
            raise ValueError(
                "The number of classes has to be greater than one; got 1 class. y must hold two "
                "labels or more; of a single class, OneClassSVM and SVDD learn the border."
            )
        class_weight = compute_class_weight(
            self.class_weight, classes=classes, y=samples.y, sample_weight=samples.weights
        )
        if not np.all(class_weight > 0):
            raise ValueError(
                f"class_weight must be positive; got {class_weight} for the classes {classes}. "
                "Leave the rows of a class out to be without it."
            )
        return Labels(classes, index, class_weight, samples.weights * class_weight[index])

    _one_class_left = (
        "Invalid input - all samples with positive weights belong to the same class. sample_weight "
        "must be positive for rows of two classes or more."
    )

    def _tasks(
        self,
        samples: Samples,
        labels: Labels,
        problem: Callable[[Any, Floats], Problem],
        rule: Scheme,
    ) -> list[Task]:
        """One task for each part of the scheme; ``problem(y, weights)`` builds it."""
        return [
            Task(
                problem(part.y, labels.weights if part.rows is None else labels.weights[part.rows]),
                samples,
                part.rows,
                tuple(labels.classes[list(part.classes)].tolist()),
                rule.sign,
            )
            for part in rule.parts(labels.index)
        ]

    def _attributes(
        self,
        samples: Samples,
        labels: Labels,
        tasks: Sequence[Task],
        machine: Callable[[Solution], Machine],
        rule: Scheme,
    ) -> Callable[[Sequence[Solution | None]], Attributes]:
        """The fitted attributes as a function of the solutions, where ``machine`` reads one."""
        order = np.argsort(labels.index, kind="stable")

        def attributes(solutions: Sequence[Solution | None]) -> Attributes:
            machines = [
                machine(solution) if solution else Machine(np.zeros(len(task.problem)), 0.0)
                for task, solution in zip(tasks, solutions, strict=True)
            ]
            table = rule.layout(labels.index, [each.coefficients for each in machines])
            expansion = self._expansion(samples, table, order)
            kept = np.searchsorted(samples.rows, expansion["support_"])
            n_iter = [0 if s is None else s.iterations for s in solutions]
            n_support = np.bincount(labels.index[kept], minlength=len(labels.classes))
            return {
                **expansion,
                **report(tasks, solutions, [each.divisor for each in machines]),
                "n_support_": n_support.astype(np.int32),
                "intercept_": np.broadcast_to(
                    [rule.sign * each.intercept + 0.0 for each in machines], rule.n_decisions
                ).copy(),
                "margin_": margins_of(rule, tasks, machines, solutions),
                "classes_": labels.classes,
                "class_weight_": labels.class_weight,
                "n_iter_": np.array(n_iter, dtype=np.int32),
                "_scheme": rule,
            }

        return attributes

    # -------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Floats:
        """The decision values of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * \
                (n_classes - 1) / 2)
            With two classes f(x), positive for ``classes_[1]``; with more a score for each class,
            or for ``decision_function_shape="ovo"`` the value of each pair of classes, positive
            for the first.
        """
        decisions = self._decisions(X)
        if decisions.shape[1] == 1:
            return decisions[:, 0]
        if self.decision_function_shape == "ovo":
            return decisions
        return self._scheme.confidences(decisions)

    def predict(self, X: Any) -> Any:
        """The class of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels. Of classes with equally many votes the lowest wins, or with ``break_ties`` the
            one with the largest decision value.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self.classes_.take(self._of_decisions(X, self._winners))

    def _winners(self, decisions: Floats) -> Indices:
        rule = self._scheme
        if self.break_ties and isinstance(rule, OneVsOne):
            return np.argmax(rule.confidences(decisions), axis=1)
        return rule.winners(decisions)

    def _decisions(self, X: Any) -> Floats:
        """One value for each intercept."""
        return self._of_decisions(X, lambda decisions: decisions)

    def _of_decisions(self, X: Any, f: Callable[[Floats], Any]) -> Any:
        """``f(decisions)``, a block of rows at a time."""
        check_is_fitted(self)
        rule, dual_coef = self._scheme, dense(self.dual_coef_)
        return self._evaluate(
            X,
            lambda products: f(
                rule.decisions(products, dual_coef, self.n_support_) + self.intercept_
            ),
        )

    def _check_consistent(self) -> None:
        super()._check_consistent()
        if not self.classes_.shape == self.n_support_.shape == (self._scheme.n_classes,):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")

    def _shapes(self, n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (self._scheme.n_rows, n), (self._scheme.n_decisions,)

    def _weights(self) -> Any:
        A = self._scheme.weights(self.dual_coef_, self.n_support_)
        return A @ self.support_vectors_
