"""What all online classifiers share: rows, labels, one machine for each class, predictions.

Several classes are as many machines, each of which tells its class from all others; two classes are
one machine, for ``classes_[1]``. A score of zero is the positive class.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from maxmargin._compat import num_samples
from maxmargin.pickles import Versioned
from maxmargin.problem import Floats, Indices
from maxmargin.svm import inputs


class OnlineClassifier(Versioned, ClassifierMixin, BaseEstimator):
    """Rows and labels of a classifier that can go on learning, and its predictions."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    classes_: Any
    n_features_in_: int

    def _validated(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """X as a C-ordered array or a canonical CSR matrix, float32 or float64; y only checked."""
        options: Any = {
            "accept_sparse": "csr",
            "accept_large_sparse": True,
            "dtype": [np.float64, np.float32],
            "order": "C",
            "reset": reset,
        }
        if y is None:
            X = validate_data(self, X, **options)
        else:
            X, _ = validate_data(self, X, y, **options)
        return inputs.canonical(X) if sp.issparse(X) else X

    def _labels(
        self, y: Any, classes: Any, *, first: bool, online: bool = False
    ) -> tuple[Any, Indices]:
        """The classes, and the number of the class of each row.

        A model that exists keeps its classes; a new one has those of y, or online the ones given.
        """
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if not first:
            if classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                    f"{self.classes_!r}"
                )
            classes = self.classes_
        elif not online:
            classes = np.unique(y)
        elif classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        else:
            classes = unique_labels(classes)
        if len(classes) < 2:
            raise ValueError("The number of classes has to be greater than one; got 1 class")
        index = np.searchsorted(classes, y).clip(0, len(classes) - 1)
        unknown = np.unique(y[classes[index] != y])
        if len(unknown):
            raise ValueError(f"y: the labels {unknown} are not among the classes {classes}.")
        return classes, index.astype(np.int64)

    def _decisions(self, X: Any) -> Floats:
        """f(X) for each machine, shape (n, k)."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> Floats:
        """The scores of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score, that of ``classes_[1]``; with more, one for each class.
        """
        check_is_fitted(self)
        scores = self._decisions(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row: of two, the positive one where the score is zero or more.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self.decision_function(X)
        chosen = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def linear_scores(estimator: OnlineClassifier, X: Any, coef: Floats, intercept: Floats) -> Floats:
    """X w + b for the rows of coef, shape (n, k)."""
    X = estimator._validated(X, reset=False)
    return np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + intercept)


def check_lengths(X: Any, y: Any) -> Any:
    """Rows that are no arrays, if there are any, and as many as labels."""
    check_consistent_length(X, y)
    if num_samples(X) == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return X.tocsr() if sp.issparse(X) else X  # whose rows can be taken
