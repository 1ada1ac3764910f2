"""Kernels that are matrices, and kernels that are functions of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from sklearn.utils import check_array

from maxmargin import _core
from maxmargin._compat import safe_indexing
from maxmargin.kernels.base import BlockItems, FittedKernel, Kernel, as_values
from maxmargin.kernels.symmetry import asymmetry, check_symmetric, without_rounding


class Precomputed(Kernel):
    """The data are the kernel: X holds k(x, z) for each row x and each training item z.

    For training X is the square Gram matrix, for prediction it has the same columns.
    """

    def fit(self, X: Any, y: None = None) -> FittedPrecomputed:
        """Learn the number of training items from their Gram matrix, which must be symmetric."""
        X = _as_matrix(X)
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X should be a square kernel matrix, got {X.shape}: the kernel between all pairs "
                f"of training samples"
            )
        if asymmetry(X) > 1:
            raise ValueError(
                "X: the precomputed kernel matrix is not symmetric; pass the Gram matrix of the "
                "training samples, or (X + X.T) / 2 where the difference is noise"
            )
        return FittedPrecomputed(self, X.shape[1])

    def __call__(self, X: Any, Z: None = None) -> np.ndarray:
        """Return the matrix itself."""
        if Z is not None:
            raise ValueError("Z: a precomputed kernel has one matrix, given as X")
        return _as_matrix(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


class FittedPrecomputed(FittedKernel):
    """A precomputed kernel of `n_items` training items."""

    def __init__(self, kernel: Kernel, n_items: int) -> None:
        super().__init__(kernel)
        self.n_items = n_items

    def prepare(self, X: Any, dtype: DTypeLike | None = None) -> _core.Items:
        """Make rows of kernel values ready; a square matrix is that of the training items."""
        X = self._checked(X, dtype)
        if X.shape[0] != X.shape[1]:
            return _core.gram_items(X)
        return _core.gram_items(without_rounding(X), np.arange(self.n_items))

    def rows(self, X: Any) -> _core.Items:
        """Make new items ready, to stand on the left: their rows, whatever other rows there are."""
        return _core.gram_items(self._checked(X))

    def _checked(self, X: Any, dtype: DTypeLike | None = None) -> np.ndarray:
        X = _as_matrix(X, dtype)
        if X.shape[1] != self.n_items:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.n_items}, the number of "
                f"training samples: the kernel between each sample and each of them"
            )
        return X

    def select(self, ids: np.ndarray) -> _core.Items:
        """Return training items by their numbers, to stand on the right of tiles and products."""
        ids = np.ascontiguousarray(ids, dtype=np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.n_items:
            raise ValueError(f"ids: training items are numbered 0 to {self.n_items - 1}")
        return _core.gram_items(np.empty((0, self.n_items)), ids)


class FromFunction(Kernel):
    """A function of two data sets, f(X, Z) -> matrix of k(x, z).

    Parameters
    ----------
    function : callable
        Called once as f(X, X) for training, and once as f(X_new, support vectors) for prediction.
    blockwise : bool, default=False
        Call the function on blocks of rows as they are needed instead: slower when all is needed,
        but never holding a whole Gram matrix.
    """

    def __init__(self, function: Callable[[Any, Any], ArrayLike], blockwise: bool = False) -> None:
        self.function = function
        self.blockwise = blockwise

    def block(self, X: Any, Z: Any) -> ArrayLike:
        return self.function(X, Z)

    def fit(self, X: Any, y: None = None) -> FittedKernel:
        """Learn nothing; what the function needs to know it knows."""
        return FittedKernel(self) if self.blockwise else FittedFunction(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FittedFunction(FittedKernel):
    """A function that is called on whole data sets."""

    def prepare(self, X: Any, dtype: DTypeLike | None = None) -> WholeItems:
        """Keep the data; the function is called when the first values are asked for."""
        return WholeItems(self.kernel, X, dtype)


class WholeItems(BlockItems):
    """Items whose Gram matrix is computed at once, when it is first needed, and then kept."""

    _gram: _core.Items | None = None

    def native(self) -> _core.Items:
        """Return the items of the Gram matrix."""
        gram = self._gram
        if gram is None:
            n = len(self)
            matrix = as_values(self.kernel.block(self.X, self.X), (n, n))
            check_symmetric(matrix, self.dtype)
            matrix = without_rounding(matrix, self.dtype)
            gram = _core.gram_items(matrix.astype(self.dtype, copy=False), np.arange(n))
            self._gram = gram
        return gram

    def tile(
        self, rows: np.ndarray | None, other: BlockItems, cols: np.ndarray | None = None
    ) -> np.ndarray:
        if other is not self:
            return super().tile(rows, other, cols)
        return self.native().tile(rows, self.native(), cols)

    def diagonal(self) -> np.ndarray:
        return self.native().diagonal()

    def multiply(self, other: BlockItems, V: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        if other is self:
            return self.native().multiply(self.native(), np.ascontiguousarray(V), n_jobs)
        used = np.flatnonzero(V.any(axis=1))
        return self.tile(None, other, used) @ V[used]

    def subset(self, rows: np.ndarray) -> WholeItems:
        some = WholeItems(self.kernel, safe_indexing(self.X, rows), self.dtype)
        if self._gram is not None:
            some._gram = self._gram.subset(rows)
        return some


def _as_matrix(X: Any, dtype: DTypeLike | None = None) -> np.ndarray:
    if sparse.issparse(X):
        raise TypeError("X: sparse precomputed kernels are not supported; use X.toarray()")
    options: dict[str, Any] = {
        "dtype": [np.float64, np.float32] if dtype is None else dtype,
        "order": "C",
        "ensure_min_samples": 0,
        "ensure_min_features": 0,
        "input_name": "X",
    }
    return check_array(X, **options)
