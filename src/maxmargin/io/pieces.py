"""Matrices as tuples of arrays, and what is done with them: cut, join, grow.

A block of rows is one dense array, or the values, indices and starts of compressed sparse rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], ...]
Matrix = Any  # an ndarray or a csr_array


def check_block_bytes(block_bytes: Any) -> int:
    """Return the size of a block if it is one."""
    whole = isinstance(block_bytes, int | np.integer) and not isinstance(block_bytes, bool)
    if not (whole and block_bytes > 0):
        raise ValueError(f"block_bytes: expected a whole number of bytes > 0, got {block_bytes!r}")
    return int(block_bytes)


def float_type(dtype: Any) -> np.dtype[Any]:
    """float32 and float64 stay what they are, other numbers become float64."""
    return np.dtype(dtype if dtype in (np.float32, np.float64) else np.float64)


def as_rows(X: Any, name: str) -> Matrix:
    """A numeric matrix as it is, in rows; sparse ones with sorted indices and no duplicates."""
    if sp.issparse(X):
        rows = sp.csr_array(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    else:
        rows = np.asarray(X)
    if rows.ndim != 2 or rows.dtype.kind not in "buif":
        raise ValueError(
            f"{name}: expected a matrix of real numbers, rows by features; got shape {rows.shape} "
            f"and type {rows.dtype}"
        )
    return rows


def boundaries(X: Matrix, size: int) -> list[int]:
    """Where to cut rows into blocks of at most `size` bytes, or of one row; 0 and n included."""
    n, d = X.shape
    item = float_type(X.dtype).itemsize
    if isinstance(X, np.ndarray):
        return [*range(0, n, max(size // max(d * item, 1), 1)), n]
    # Bytes of all rows before each: those of the nonzeros, and a start for every row.
    index = X.indices.dtype.itemsize
    before = X.indptr.astype(np.int64) * (item + index) + np.arange(n + 1) * index
    starts = [0]
    while starts[-1] < n:
        end = int(np.searchsorted(before, before[starts[-1]] + size, side="right")) - 1
        starts.append(max(end, starts[-1] + 1))
    return starts


def take(X: Matrix, begin: int, end: int) -> Arrays:
    """Views of consecutive rows."""
    if isinstance(X, np.ndarray):
        return (X[begin:end],)
    starts = X.indptr[begin : end + 1]
    k = slice(starts[0], starts[-1])
    return X.data[k], X.indices[k], starts - starts[0]


def cut(X: Matrix, size: int) -> Iterator[Arrays]:
    """The rows in views of at most `size` bytes, or of one row."""
    for begin, end in pairwise(boundaries(X, size)):
        yield take(X, begin, end)


def gather(pieces: Iterable[Arrays], size: int) -> Iterator[Arrays]:
    """Join small neighbours as long as they have at most `size` bytes together.

    What waits for its neighbour is copied: who made it may use the same memory for the next.
    """
    pending: list[Arrays] = []
    total = 0
    for arrays in pieces:
        n_bytes = sum(array.nbytes for array in arrays)
        if pending and total + n_bytes > size:
            block = join(pending)
            pending, total = [], 0  # not two copies while the block is in use
            yield block
            del block
        if not pending and n_bytes > size // 2:
            yield arrays
            continue
        pending.append(tuple(array.copy() for array in arrays))
        total += n_bytes
    if pending:
        yield join(pending)


def join(pieces: list[Arrays]) -> Arrays:
    """Stack blocks; a single one stays what it is."""
    if len(pieces) == 1:
        return pieces[0]
    columns = list(zip(*pieces, strict=True))
    joined = [np.concatenate(column) for column in columns[:2]]
    if len(columns) == 1:
        return tuple(joined)
    offsets = np.cumsum([0, *(len(values) for values in columns[0])])
    shifted = [starts[1:] + offset for starts, offset in zip(columns[2], offsets, strict=False)]
    return *joined, np.concatenate([[0], *shifted])


class Column:
    """An array that grows at its end. It has no second copy: large memory is moved, not copied."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.dtype: np.dtype[Any] | None = None

    def append(self, values: NDArray[Any]) -> None:
        """Append values; the type becomes one that holds all of them."""
        dtype = values.dtype if self.dtype is None else np.promote_types(self.dtype, values.dtype)
        if self.dtype is not None and dtype != self.dtype:
            self.bytes = bytearray(self.array().astype(dtype).tobytes())
        self.dtype = dtype
        self.bytes += values.astype(dtype).tobytes()

    def array(self) -> NDArray[Any]:
        """All values. Nothing can be appended while this array is there."""
        return np.frombuffer(self.bytes, self.dtype)
