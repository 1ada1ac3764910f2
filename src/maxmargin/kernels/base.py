"""What a kernel is: ``fit`` learns what training data decides, ``prepare`` makes data ready, tiles.

    fitted = kernel.fit(X)                 immutable; knows the number of features, say
    items = fitted.prepare(Z)              once per data set; only reads
    items.tile(rows, other, cols)          k(items[r], other[c]) for r in rows, c in cols
    items.multiply(other, V)               K(items, other) @ V, never holding K

A kernel of your own needs one method, here on any data that can be indexed by rows::

    class Overlap(Kernel):
        def block(self, X, Z):
            return (X[:, None, :] == Z[None, :, :]).sum(axis=2)

Parameters are those of ``__init__``, kept under their names, as for any scikit-learn estimator.
Define ``diagonal(X)`` as well where k(x, x) is cheap, and ``__sklearn_tags__`` where the data are
not plain tables of numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from numbers import Number
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator

from maxmargin import _core
from maxmargin._compat import safe_indexing


@runtime_checkable
class Items(Protocol):
    """A data set made ready for a kernel; all that a solver or a predictor knows of its data."""

    @property
    def dtype(self) -> np.dtype:
        """The type of the data, and of tiles: float32 or float64."""
        ...

    def __len__(self) -> int: ...

    def tile(
        self, rows: np.ndarray | None, other: Any, cols: np.ndarray | None = None
    ) -> np.ndarray:
        """Return k(self[r], other[c]) for r in rows, c in cols (int64 arrays; None for all)."""
        ...

    def diagonal(self) -> np.ndarray:
        """Return k(self[i], self[i]) for all i, as float64."""
        ...

    def multiply(self, other: Any, V: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return K(self, other) @ V as float64, block by block."""
        ...

    def subset(self, rows: np.ndarray) -> Items:
        """Return a copy of these rows."""
        ...


class Kernel(BaseEstimator):
    """A symmetric similarity k(x, z); the base class of all kernels.

    Subclasses define `block`, or `fit` where they have a `FittedKernel` of their own.
    """

    def block(self, X: Any, Z: Any) -> ArrayLike:
        """Return the matrix of k(x, z) for all x in X (rows) and all z in Z (columns)."""
        raise NotImplementedError(f"{type(self).__name__} does not define block(X, Z)")

    def diagonal(self, X: Any) -> ArrayLike:
        """Return k(x, x) for all x in X."""
        each = [safe_indexing(X, np.array([i])) for i in range(n_rows(X))]
        return np.array([as_values(self.block(x, x), (1, 1)).item() for x in each])

    def fit(self, X: Any, y: None = None) -> FittedKernel:
        """Learn what training data decide; return it, and leave the kernel as it is."""
        return FittedKernel(self)

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the Gram matrix between X and Z (by default X itself), in their precision."""
        fitted = self.fit(X if Z is None else Z)
        items = fitted.prepare(X)
        if Z is None:
            return items.tile(None, items)
        other = fitted.prepare(Z)
        if items.dtype < other.dtype:
            items = fitted.prepare(X, other.dtype)
        return items.tile(None, other)

    @property
    def tags(self) -> Any:
        """The input that the kernel takes, as scikit-learn's InputTags (sparse, pairwise, ...)."""
        return self.__sklearn_tags__().input_tags

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        values = self.get_params(deep=False).values()
        return hash((type(self), *(v for v in values if isinstance(v, (Number, str, Kernel)))))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        values = self.get_params(deep=False)
        names = [name for name in inspect.signature(type(self)).parameters if name in values]
        return f"{type(self).__name__}({', '.join(f'{n}={values[n]!r}' for n in names)})"


class FittedKernel:
    """A kernel, and what it learned from training data. This one: nothing.

    Attributes
    ----------
    kernel : Kernel
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def prepare(self, X: Any, dtype: DTypeLike | None = None) -> Items:
        """Make data ready; `dtype` (float32, float64) is that of tiles, by default the data's."""
        return BlockItems(self.kernel, X, dtype)

    def __repr__(self) -> str:
        return f"{self.kernel!r}.fit(...)"


class BlockItems:
    """Items of a kernel written in Python: every tile is a call of ``kernel.block``."""

    def __init__(self, kernel: Kernel, X: Any, dtype: DTypeLike | None = None) -> None:
        self.kernel = kernel
        self.X = X
        single = getattr(X, "dtype", None) == np.float32
        self.dtype: np.dtype = np.dtype(dtype or (np.float32 if single else np.float64))

    def __len__(self) -> int:
        return n_rows(self.X)

    def tile(
        self, rows: np.ndarray | None, other: BlockItems, cols: np.ndarray | None = None
    ) -> np.ndarray:
        X = self.X if rows is None else safe_indexing(self.X, rows)
        Z = other.X if cols is None else safe_indexing(other.X, cols)
        shape = n_rows(X), n_rows(Z)
        if 0 in shape:
            return np.zeros(shape, self.dtype)
        return as_values(self.kernel.block(X, Z), shape).astype(self.dtype, copy=False)

    def diagonal(self) -> np.ndarray:
        return as_values(self.kernel.diagonal(self.X), (len(self),))

    def multiply(self, other: BlockItems, V: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        used = np.flatnonzero(V.any(axis=1))
        out = np.zeros((len(self), V.shape[1]))
        for first in range(0, len(self), ROWS_PER_CALL):
            rows = np.arange(first, min(first + ROWS_PER_CALL, len(self)))
            out[rows] = self.tile(rows, other, used) @ V[used]
        return out

    def subset(self, rows: np.ndarray) -> BlockItems:
        return BlockItems(self.kernel, safe_indexing(self.X, rows), self.dtype)

    def native(self) -> _core.Items:
        """Return these items as native code takes them."""
        return _core.python_items(self)


ROWS_PER_CALL = 1024  # of a kernel written in Python: fills the call, not the memory


def native(items: Any) -> _core.Items:
    """Return items as native code takes them.

    Parameters
    ----------
    items : Items or ndarray of shape (n, n)
        Native items come back as they are, a Gram matrix becomes items, and items written in
        Python are called through their own ``native()``, where they have one.
    """
    if isinstance(items, _core.Items):
        return items
    if isinstance(items, BlockItems):
        return items.native()
    if isinstance(items, np.ndarray):
        matrix = as_values(items, (len(items), len(items)))
        return _core.gram_items(matrix, np.arange(len(matrix)))
    return _core.python_items(items)


def on_matrix(items: _core.Items, n_threads: int | None = None) -> _core.Items:
    """Return the same items on their kernel matrix, which is computed now."""
    matrix = items.tile(None, items, None, n_threads, in_float64=True)
    return _core.gram_items(matrix, np.arange(len(matrix)), positive=items.positive)


def as_values(result: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return what a kernel computed as an array (float32 or float64), if it has this shape."""
    if sparse.issparse(result):
        result = result.toarray()
    values = np.asarray(result)
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    if values.shape != shape:
        raise ValueError(
            f"kernel: it returned values of shape {values.shape} where {shape} was expected, "
            f"one for each pair of rows"
        )
    if not np.isfinite(values).all():
        raise ValueError("kernel: it returned NaN or infinity; scale the data, or mend the kernel")
    return np.ascontiguousarray(values)


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a table or a sequence."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)
