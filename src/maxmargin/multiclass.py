"""From two classes to many: which rows meet, with which signs, and who wins.

A scheme splits labels 0 .. k-1 into binary problems (``parts``), puts their coefficients into one
table (``layout``, the model's dual_coef_), and turns kernel products into decisions and winners.

    Binary         one problem; f > 0 means class 1
    OneVsOne       one problem for every pair i < j; f_ij > 0 is a vote for i
    OneVsRest      one problem for every class; the largest f_m wins
    CrammerSinger  one problem for all classes (Crammer and Singer 2001); the largest f_m wins

In a problem the class named first is positive, as in LIBSVM; only Binary turns its solution around,
so that positive means ``classes_[1]``, as everywhere in scikit-learn.

Ties are LIBSVM's: of classes with equally many votes, or equally large f_m, the lowest wins; a
two-class value of exactly 0 counts for the second class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.problem import Floats, Indices

Products = Callable[[Floats, slice], Floats]
"""(V, part) -> K(X, support vectors[part]) @ V."""


@dataclass(frozen=True)
class Part:
    """One problem of a scheme.

    Attributes
    ----------
    classes : tuple of int
        The classes in it, the positive one first.
    rows : array or None
        Its rows; None for all.
    y : array
        +1 for rows of the positive class and -1 for the others; for Crammer-Singer the labels.
    """

    classes: tuple[int, ...]
    rows: Indices | None
    y: NDArray[Any]


class Scheme:
    """A way to make one classifier of k classes from problems.

    Parameters
    ----------
    n_classes : int
    """

    sign: ClassVar[float] = 1.0

    def __init__(self, n_classes: int):
        self.n_classes = n_classes

    @property
    def n_decisions(self) -> int:
        """How many decision values a row has, and so how many intercepts there are."""
        return self.n_classes

    @property
    def n_rows(self) -> int:
        """How many rows the table of coefficients has."""
        return self.n_decisions

    def parts(self, labels: Indices) -> list[Part]:
        """The problems."""
        raise NotImplementedError

    def layout(self, labels: Indices, coefficients: Sequence[Floats]) -> Floats:
        """The table of all problems' coefficients, one column for each row of the data."""
        return np.vstack(list(coefficients))

    def decisions(self, products: Products, dual_coef: Floats, n_support: Indices) -> Floats:
        """The decision values without intercepts, one column for each intercept."""
        return products(np.ascontiguousarray(dual_coef.T), slice(None))

    def winners(self, decisions: Floats) -> Indices:
        """The predicted class."""
        return np.argmax(decisions, axis=1)

    def confidences(self, decisions: Floats) -> Floats:
        """One score for each class; the winner's is the largest, up to ties."""
        return decisions

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of classes (i, j), i < j."""
        return list(combinations(range(self.n_classes), 2))

    def pair_values(self, decisions: Floats) -> Floats:
        """A value for each pair (i, j), the larger the more it speaks for i against j."""
        first, second = np.array(self.pairs).T
        return decisions[:, first] - decisions[:, second]

    def weights(self, dual_coef: Any, n_support: Indices) -> Any:
        """The matrix A for which A @ support vectors holds the weights of the features."""
        return dual_coef


class Binary(Scheme):
    """Two classes, one problem."""

    sign = -1.0

    @property
    def n_decisions(self) -> int:
        return 1

    def parts(self, labels: Indices) -> list[Part]:
        return [Part((0, 1), None, np.where(labels == 0, 1.0, -1.0))]

    def layout(self, labels: Indices, coefficients: Sequence[Floats]) -> Floats:
        return self.sign * coefficients[0][None, :]

    def winners(self, decisions: Floats) -> Indices:
        return (decisions[:, 0] >= 0).astype(np.intp)

    def pair_values(self, decisions: Floats) -> Floats:
        return self.sign * decisions


class OneVsOne(Scheme):
    """Every pair of classes has its own problem, and every problem a vote.

    The table is LIBSVM's, with k - 1 rows: a row of the data that belongs to class i has its
    coefficient against class j in row j - 1 if i < j, else in row j.
    """

    @property
    def n_decisions(self) -> int:
        return len(self.pairs)

    @property
    def n_rows(self) -> int:
        return self.n_classes - 1

    def pair_values(self, decisions: Floats) -> Floats:
        return decisions

    def parts(self, labels: Indices) -> list[Part]:
        rows = [np.flatnonzero(labels == c) for c in range(self.n_classes)]
        return [
            Part(
                (i, j),
                np.concatenate([rows[i], rows[j]]),
                np.repeat([1.0, -1.0], [len(rows[i]), len(rows[j])]),
            )
            for i, j in self.pairs
        ]

    def layout(self, labels: Indices, coefficients: Sequence[Floats]) -> Floats:
        table = np.zeros((self.n_classes - 1, len(labels)))
        rows = [np.flatnonzero(labels == c) for c in range(self.n_classes)]
        for (i, j), c in zip(self.pairs, coefficients, strict=True):
            table[j - 1, rows[i]] = c[: len(rows[i])]
            table[i, rows[j]] = c[len(rows[i]) :]
        return table

    def decisions(self, products: Products, dual_coef: Floats, n_support: Indices) -> Floats:
        # A support vector has k - 1 coefficients: one product for each class's support vectors
        # costs n_SV (k - 1) per row, where the matrix of all pairs would cost n_SV k (k - 1) / 2.
        against = [
            products(np.ascontiguousarray(dual_coef[:, part].T), part)
            for part in _of_each_class(n_support)
        ]
        return np.stack([against[i][:, j - 1] + against[j][:, i] for i, j in self.pairs], axis=1)

    def winners(self, decisions: Floats) -> Indices:
        return np.argmax(self._votes(decisions > 0), axis=1)

    def confidences(self, decisions: Floats) -> Floats:
        """The votes, and less than half a vote for the sum of the decision values.

        That sum s enters as s / (3 (|s| + 1)), which orders equal votes and changes nothing else.
        As in scikit-learn, a value of exactly 0 is here a vote for the first class.
        """
        first, second = self._sides()
        s = decisions @ first - decisions @ second
        return self._votes(decisions >= 0) + s / (3 * (np.abs(s) + 1))

    def _votes(self, first_wins: NDArray[np.bool_]) -> Floats:
        """How many of its problems each class has won."""
        first, second = self._sides()
        return first_wins @ first + ~first_wins @ second

    def weights(self, dual_coef: Any, n_support: Indices) -> Any:
        dense = dual_coef.toarray() if sp.issparse(dual_coef) else dual_coef
        parts = _of_each_class(n_support)
        table = sp.lil_array((len(self.pairs), dense.shape[1]))
        for p, (i, j) in enumerate(self.pairs):
            table[p, parts[i]] = dense[j - 1, parts[i]]
            table[p, parts[j]] = dense[i, parts[j]]
        return table.tocsr()

    def _sides(self) -> tuple[Floats, Floats]:
        """Indicators (pairs x classes) of the first and of the second class of each pair."""
        first, second = np.array(self.pairs).T
        unit = np.eye(self.n_classes)
        return unit[first], unit[second]


class OneVsRest(Scheme):
    """Every class against all others; the table has a row for each class."""

    def parts(self, labels: Indices) -> list[Part]:
        return [Part((c,), None, np.where(labels == c, 1.0, -1.0)) for c in range(self.n_classes)]


class CrammerSinger(Scheme):
    """All classes in one problem, with a coefficient for each row and class.

    With two classes only f_1 - f_0 is kept, so that the model looks like any binary one.
    """

    @property
    def n_decisions(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def parts(self, labels: Indices) -> list[Part]:
        return [Part(tuple(range(self.n_classes)), None, labels)]

    def layout(self, labels: Indices, coefficients: Sequence[Floats]) -> Floats:
        table = coefficients[0].reshape(len(labels), self.n_classes).T
        return table[1:] - table[:1] if self.n_classes == 2 else table

    def pair_values(self, decisions: Floats) -> Floats:
        return -decisions if self.n_classes == 2 else super().pair_values(decisions)

    def winners(self, decisions: Floats) -> Indices:
        if self.n_classes == 2:
            return (decisions[:, 0] >= 0).astype(np.intp)
        return super().winners(decisions)


SCHEMES: dict[str, type[Scheme]] = {
    "ovo": OneVsOne,
    "ovr": OneVsRest,
    "crammer_singer": CrammerSinger,
}
"""What ``multi_class`` calls them."""


def scheme(name: str, n_classes: int) -> Scheme:
    """The scheme of that name; two classes are one problem in any but Crammer-Singer's."""
    if n_classes == 2 and name != "crammer_singer":
        return Binary(2)
    return SCHEMES[name](n_classes)


def _of_each_class(n_support: Indices) -> list[slice]:
    """Where each class's support vectors stand: they are stored class by class."""
    ends = np.concatenate([[0], np.cumsum(n_support)]).tolist()
    return [slice(begin, end) for begin, end in pairwise(ends)]
