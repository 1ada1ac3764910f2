"""The basic linear classifier: each class is its mean, and the nearest mean wins.

    f(x) = w.x - t,   w = mean_+ - mean_-,   t = w.(mean_+ + mean_-) / 2

The plane f = 0 is half way between the means. For several classes |x - mean_c|^2 is compared, in
which |x|^2 is the same for all: f_c(x) = mean_c.x - |mean_c|^2 / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.perceptron.online import OnlineClassifier, linear_scores
from maxmargin.problem import Floats


class BasicLinearClassifier(OnlineClassifier):
    """The classifier of the class means.

    With two classes, the hyperplane half way between the means and at right angles to their
    difference; with more, the class of the nearest mean. A fit is one pass, and depends on the
    order of the rows no more than a mean does.

    Attributes
    ----------
    means_ : array of shape (n_classes, n_features)
        The mean of each class; of a class without rows so far, zero.
    class_count_ : array of shape (n_classes,)
        The rows of each class.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import BasicLinearClassifier
    >>> basic = BasicLinearClassifier().fit([[0, 0], [0, 2], [4, 0], [4, 2]], [0, 0, 1, 1])
    >>> basic.coef_, basic.intercept_
    (array([[4., 0.]]), array([-8.]))
    """

    means_: Floats
    class_count_: Floats
    coef_: Floats
    intercept_: Floats

    def fit(self, X: Any, y: Any) -> BasicLinearClassifier:
        """Learn the means of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, of two classes or more.

        Returns
        -------
        self
        """
        X = self._validated(X, y, reset=True)
        classes, labels = self._labels(y, None, first=True)
        self.classes_ = classes
        return self._add(X, labels, np.zeros((len(classes), X.shape[1])), np.zeros(len(classes)))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> BasicLinearClassifier:
        """Go on with more rows; the result is that of one fit on all of them.

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
        first = not hasattr(self, "means_")
        X = self._validated(X, y, reset=first)
        self.classes_, labels = self._labels(y, classes, first=first, online=True)
        if first:
            shape = len(self.classes_), X.shape[1]
            return self._add(X, labels, np.zeros(shape), np.zeros(len(self.classes_)))
        return self._add(X, labels, self.means_, self.class_count_)

    def _add(self, X: Any, labels: Any, means: Floats, count: Floats) -> BasicLinearClassifier:
        member = np.eye(len(count))[labels]
        total = count + member.sum(axis=0)
        sums = count[:, None] * means + (X.T @ member).T.astype(np.float64)
        self.class_count_ = total
        self.means_ = means = sums / np.maximum(total, 1)[:, None]
        coef, intercept = means, -0.5 * np.einsum("ij,ij->i", means, means)
        if len(count) == 2:
            coef, intercept = np.diff(coef, axis=0), np.diff(intercept)
        self.coef_, self.intercept_ = coef, intercept
        return self

    def _decisions(self, X: Any) -> Floats:
        return linear_scores(self, X, self.coef_, self.intercept_)
