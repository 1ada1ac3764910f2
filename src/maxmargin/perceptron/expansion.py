"""Functions that are sums of kernels over support vectors, and how perceptrons grow them.

    f_j(x) = sum_i dual_coef_[j, i] k(x_i, x) + intercept_[j]

The kernel form needs the scores f(x) of every row at its turn, and they change with every mistake.
Row by row this is a kernel row at a time, which is slow. A block of rows is scored by one product
instead, with the support vectors that there are when it begins; what the mistakes inside of the
block change comes from the block's own Gram matrix. The mistakes are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from maxmargin._compat import num_samples, safe_indexing
from maxmargin.kernels import FromFunction, native
from maxmargin.perceptron.online import check_lengths
from maxmargin.perceptron.passes import PassClassifier, Stream
from maxmargin.problem import Floats, Indices
from maxmargin.svm import inputs
from maxmargin.svm.base import KERNEL_PARAMETERS, blocks

KERNEL: dict[str, list[Any]] = {
    name: KERNEL_PARAMETERS[name] for name in ("kernel", "degree", "gamma", "coef0")
}
BLOCK = 512
"""Rows that are scored together: more make the Gram matrix of a block dear, fewer the products."""


def gram(items: Any) -> Floats:
    """The Gram matrix, in float64."""
    return items.tile(None, items, in_float64=True)


def mistakes(F: Floats, Y: Floats, order: Indices) -> Iterator[tuple[int, Any]]:
    """The rows that are mistakes when their turn comes: (place in the order, by which machines).

    F is looked at anew after each of them: the caller changes it.
    """
    start = 0
    while start < len(order):
        late = order[start:]
        wrong = Y[late] * F[late] <= 0
        first = int(wrong.any(axis=1).argmax())
        if not wrong[first].any():
            return
        yield start + first, wrong[first]
        start += first + 1


class Expansion:
    """k functions over common support vectors, and room for those that the rows at hand become.

    Attributes
    ----------
    kernel : fitted kernel
    support : array of shape (n_support,)
        The numbers of the support vectors, among all rows ever seen.
    vectors : rows
        The support vectors; None while there are none, or where the kernel is precomputed.
    C, past : arrays of shape (n_support, k)
        Coefficients, and what the average needs beside them.
    new_C, new_past : arrays of shape (n, k)
        The same for the rows at hand.
    """

    def __init__(self, kernel: Any, k: int) -> None:
        self.kernel = kernel
        self.k = k
        self.seen = 0
        self.support = np.zeros(0, dtype=np.int64)
        self.vectors: Any = None
        self.C, self.past = np.zeros((0, k)), np.zeros((0, k))

    def open(self, stream: Stream, n_jobs: int | None) -> None:
        """Begin with the rows of a stream."""
        self.stream, self.n_jobs = stream, n_jobs
        self.items = stream.items
        self.old = self.prepared() if len(self.support) else None
        self.new_C, self.new_past = (np.zeros((len(stream), self.k)) for _ in range(2))

    def scores(self, part: Any) -> Floats:
        """The functions at these items, without intercept."""
        F = part.multiply(self.items, self.new_C, self.n_jobs)
        if self.old is not None:
            F += part.multiply(self.old, np.ascontiguousarray(self.C), self.n_jobs)
        return F

    def close(self) -> None:
        """Keep those of the rows that have become support vectors, and forget the others."""
        new = np.flatnonzero((self.new_C != 0).any(axis=1) | (self.new_past != 0).any(axis=1))
        self.keep(new, self.new_C[new], self.new_past[new])
        self.seen += len(self.stream)
        del self.stream, self.items, self.old, self.new_C, self.new_past

    def keep(self, rows: Indices, C: Floats, past: Floats) -> None:
        """Append rows of the stream to the support vectors."""
        if not inputs.is_precomputed(self.kernel.kernel):
            self.vectors = joined(self.vectors, safe_indexing(self.stream.X, rows))
        self.support = np.concatenate([self.support, self.seen + rows])
        self.C, self.past = np.concatenate([self.C, C]), np.concatenate([self.past, past])

    def prepared(self) -> Any:
        """The support vectors as items."""
        return prepared(self.kernel, self.support, self.vectors)


def prepared(kernel: Any, support: Indices, vectors: Any) -> Any:
    """Support vectors as items of a fitted kernel."""
    if inputs.is_precomputed(kernel.kernel):
        return kernel.select(support)
    return native(kernel.prepare(vectors))


def joined(first: Any, second: Any) -> Any:
    """Rows and more rows, in the form of the first."""
    if first is None:
        return second
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if isinstance(first, np.ndarray):
        second = second.toarray() if sp.issparse(second) else second
        return np.concatenate([first, second])
    return [*first, *second]


class KernelPassClassifier(PassClassifier):
    """Online classifiers that predict by support vectors: their rows, kernels and scores."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    kernel: Any
    degree: int
    gamma: Any
    coef0: float

    support_: Indices
    support_vectors_: Any
    dual_coef_: Floats
    intercept_: Floats
    _kernel: Any

    def _rows(self, X: Any, y: Any, *, first: bool) -> Any:
        if inputs.is_precomputed(self.kernel):
            if not first:
                raise ValueError(
                    "kernel='precomputed': the columns of X are the rows of one training set, and "
                    "the model has one already. Learn all rows in one call of fit, without "
                    "warm_start."
                )
            if sp.issparse(X):
                raise TypeError("Sparse precomputed kernels are not supported.")
            X = self._validated(X, y, reset=True)
            inputs.check_gram(X)
            return X
        if inputs.takes_arrays(self.kernel):
            return super()._rows(X, y, first=first)
        return check_lengths(X, y)

    def _items(self, X: Any, first: bool) -> Any:
        if first:
            gamma = 0.0
            if isinstance(self.kernel, str) and not inputs.is_precomputed(self.kernel):
                gamma = inputs.gamma_number(self.gamma, X, np.ones(num_samples(X)))
            kernel = inputs.as_kernel(self.kernel, gamma, self.coef0, self.degree)
            if isinstance(kernel, FromFunction):  # blocks are asked for, not the whole
                kernel = FromFunction(kernel.function, blockwise=True)
            self._kernel = kernel.fit(X)
        return native(self._kernel.prepare(X))

    def _bound_items(self, X: Any) -> tuple[Any, Any]:
        if inputs.takes_arrays(self.kernel):
            X = self._validated(X, reset=False)
        return self._kernel, X

    def _decisions(self, X: Any) -> Floats:
        V = np.ascontiguousarray(self.dual_coef_.T)
        return self._evaluated(X, len(V.T), lambda part, support: self._product(part, support, V))

    def _product(self, part: Any, support: Any, V: Floats) -> Floats:
        return part.multiply(support, V, self.n_jobs) + self.intercept_

    def _evaluated(self, X: Any, k: int, scores: Any) -> Floats:
        """``scores(items of a block of X, support vectors)``, block after block, shape (n, k)."""
        if inputs.takes_arrays(self.kernel):
            X = self._validated(X, reset=False)
        elif sp.issparse(X):
            X = X.tocsr()
        n, out = num_samples(X), []
        support = prepared(self._kernel, self.support_, self.support_vectors_) if n else None
        for block in blocks(n, BLOCK):
            part = native(self._kernel.prepare(safe_indexing(X, np.arange(n)[block])))
            out.append(scores(part, support))
        return np.concatenate([np.zeros((0, k)), *out])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not isinstance(self.kernel, str) or self.kernel in inputs.KERNELS:
            tags.input_tags = inputs.as_kernel(self.kernel).tags
        return tags


def expanded(e: Expansion, C: Floats, intercept: Floats) -> dict[str, Any]:
    """The attributes of a model with these coefficients."""
    vectors = e.vectors
    return {
        "support_": e.support.copy(),
        "support_vectors_": np.empty((0, 0)) if vectors is None else vectors,
        "dual_coef_": np.ascontiguousarray(C.T),
        "intercept_": intercept.copy(),
    }
