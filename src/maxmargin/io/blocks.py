"""Rows that are read block by block, as often as a learner wants to go through them.

A learner out of core sees a matrix as blocks of consecutive rows, each small enough for memory,
and keeps only what has one number per row or per feature (H.-F. Yu, C.-J. Hsieh, K.-W. Chang,
C.-J. Lin, "Large linear classification when data cannot fit in memory", 2010). What is slow to
make, such as text to parse, is kept on disk in binary after the first pass, as that paper does.

Inside, blocks are tuples of arrays (pieces.py), and `RowBlocks.blocks` makes matrices of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.io.pieces import (
    Arrays,
    Column,
    Matrix,
    as_rows,
    boundaries,
    check_block_bytes,
    cut,
    float_type,
    gather,
    join,
    take,
)

BLOCK_BYTES = 32 * 2**20
"""The size of a block where nothing else is asked for."""

PARTS = 16
"""Of a block, when blocks are mixed: few enough to be read in one go each, and enough to mix."""

Passes = Callable[[], Iterator[Arrays]]


class RandomAccess(ABC):
    """Blocks whose rows can be read in any order; called, it goes through them in theirs.

    Attributes
    ----------
    starts : list of int
        The first row of each block, and the number of rows.
    """

    starts: list[int]

    @abstractmethod
    def take(self, begin: int, end: int) -> Arrays:
        """Rows of one block."""

    def __call__(self) -> Iterator[Arrays]:
        for begin, end in pairwise(self.starts):
            yield self.take(begin, end)


class InMemory(RandomAccess):
    """Views of a matrix that is in memory, or mapped into it."""

    def __init__(self, rows: Matrix, size: int) -> None:
        self.rows = rows
        self.starts = boundaries(rows, size)

    def take(self, begin: int, end: int) -> Arrays:
        return take(self.rows, begin, end)


class RowBlocks:
    """The rows of a matrix, in order, as blocks that are read when they are needed.

    Made by `open_svmlight`, `open_chunks` or `RowBlocks.from_array`.

    Parameters
    ----------
    passes : callable or RandomAccess
        Called without arguments for each pass: an iterator of blocks, each a tuple of arrays. One
        array is dense rows; three are the values, indices and starts of sparse ones.
    shape : tuple of int
        Number of rows and of features.
    dtype : dtype
        float32 or float64.
    first_feature : int
        The number that the first feature has among the indices.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and of features; ``len(X)`` is the number of rows.
    dtype : dtype
        float32 or float64.
    random_access : bool
        Whether rows can be read in another order than theirs, as `shuffled` does: those of a matrix
        in memory or mapped into it, and those that are kept on disk (``cache``).

    Notes
    -----
    Objects cannot be pickled: what they read (a file, a temporary directory, a function) belongs to
    this process. Different threads may go through the blocks at the same time.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.io import RowBlocks
    >>> X = RowBlocks.from_array(np.ones((5, 3)), block_bytes=48)
    >>> X
    RowBlocks(5 rows, 3 features, float64)
    >>> [(rows.start, rows.stop, block.shape) for rows, block in X.blocks()]
    [(0, 2, (2, 3)), (2, 4, (2, 3)), (4, 5, (1, 3))]
    """

    def __init__(
        self, passes: Passes, shape: tuple[int, int], dtype: Any, first_feature: int = 0
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._passes = passes
        self._first_feature = first_feature

    @classmethod
    def from_array(cls, X: Any, *, block_bytes: int = BLOCK_BYTES) -> RowBlocks:
        """See a matrix as blocks: views, without a copy where the type is right already.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            In memory, or mapped into it (``numpy.memmap``, ``numpy.load(..., mmap_mode="r")``): a
            mapped array is read when its blocks are. Types other than float32 and float64 become
            float64, a block at a time.
        block_bytes : int
            About how many bytes a block has.
        """
        rows = as_rows(X, "X")
        size = check_block_bytes(block_bytes)
        return cls(InMemory(rows, size), rows.shape, float_type(rows.dtype))

    @property
    def random_access(self) -> bool:
        return isinstance(self._passes, RandomAccess)

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Go through all rows, once.

        Yields
        ------
        rows : slice
            Where the block stands among the rows.
        block : array, or csr_array with sorted indices and no duplicates
            These rows. They may be a view of somebody's memory: read-only, and good until the next
            block is asked for.
        """
        n = len(self)
        begin = 0
        for arrays in self._passes():
            block = self._matrix(arrays)
            end = begin + block.shape[0]
            if end > n:
                raise self._changed(f"more than {n}")
            yield slice(begin, end), block
            begin = end
        if begin < n:
            raise self._changed(str(begin))

    def shuffled(self, seed: Any = None) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        """Go through all rows once, in blocks of parts that are drawn at random from everywhere.

        For learners whose answer to a block should not depend on which rows happen to be
        neighbours. It needs `random_access`, and as much memory as two blocks.

        Parameters
        ----------
        seed : int, Generator or None
            Of the order; see ``numpy.random.default_rng``.

        Yields
        ------
        rows : array
            Where the rows of the block stand.
        block : array, or csr_array with sorted indices and no duplicates
            These rows, read-only where they are a view.
        """
        if not isinstance(self._passes, RandomAccess):
            raise ValueError(
                f"{self!r} can be read in its own order only; open it with cache=True to have the "
                f"rows on disk, where any can be read."
            )
        source = self._passes
        parts = [
            part
            for begin, end in pairwise(source.starts)
            for part in pairwise(np.unique(np.linspace(begin, end, PARTS + 1).astype(np.int64)))
        ]
        order = np.random.default_rng(seed).permutation(len(parts))
        for drawn in np.array_split(order, max(len(source.starts) - 1, 1)) if parts else ():
            some = [parts[i] for i in drawn]
            block = self._matrix(join([source.take(int(begin), int(end)) for begin, end in some]))
            yield np.concatenate([np.arange(begin, end) for begin, end in some]), block

    def _changed(self, found: str) -> RuntimeError:
        return RuntimeError(
            f"this pass over the rows found {found}, and the first found {len(self)}. All must "
            f"read the same rows: leave the file as it is, and let a function that makes chunks "
            f"return a new iterator at each call."
        )

    def _matrix(self, arrays: Arrays) -> Matrix:
        values = np.asarray(arrays[0]).astype(self.dtype, copy=False)
        if len(arrays) == 1:
            return values
        _, indices, starts = arrays
        if self._first_feature:
            indices = indices - self._first_feature
        # Assigned, since the constructor copies what is a small part of a larger array.
        block: Any = sp.csr_array((len(starts) - 1, self.shape[1]), dtype=self.dtype)
        index = np.int64 if len(values) > np.iinfo(np.int32).max else indices.dtype
        block.data = values
        block.indices, block.indptr = (a.astype(index, copy=False) for a in (indices, starts))
        block.has_canonical_format = True
        return block

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"RowBlocks({n} rows, {d} features, {self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            f"{self!r} is read block by block and is no array. Give it to a learner that reads "
            f"blocks, or call partial_fit or predict on each block of blocks()."
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be pickled or copied: what it reads belongs to this process. Open "
            f"the data again in the other one."
        )


# ------------------------------------------------------------------ chunks from anywhere


def open_chunks(
    make_chunks: Callable[[], Iterable[tuple[Any, Any]]] | Iterable[tuple[Any, Any]],
    *,
    cache: bool | str | os.PathLike[str] = False,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[RowBlocks, NDArray[Any]]:
    """Open rows that come in chunks: from a database, a generator, many files.

    Goes through all chunks once, for the labels and the shape.

    Parameters
    ----------
    make_chunks : callable, or iterable
        Called without arguments for each pass: an iterator of pairs (X, y), where X is an array or
        a sparse matrix of any number of rows and y their labels. The same chunks every time. An
        iterable will do instead; one that can be read only once (a generator) needs `cache`.
    cache : bool or path
        Whether to keep the rows on disk in binary, so that they are made only once: in a temporary
        directory, which goes when X does; inside of this folder if one is given.
    block_bytes : int
        About how many bytes a block has, whatever the size of the chunks.

    Returns
    -------
    X : RowBlocks
    y : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.io import open_chunks
    >>> def chunks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(3):
    ...         X = rng.normal(size=(100, 2))
    ...         yield X, np.sign(X[:, 0])
    >>> X, y = open_chunks(chunks)
    >>> X, y.shape
    (RowBlocks(300 rows, 2 features, float64), (300,))
    """
    size = check_block_bytes(block_bytes)
    chunks = _Chunks(_repeatable(make_chunks, cache is not False))
    labels = Column()
    passes = keep(
        lambda: gather(chunks.cut(size), size), cache, gather(chunks.cut(size, labels), size)
    )
    if not labels.bytes:
        raise ValueError("make_chunks: there are no rows in its chunks; at least one is needed")
    y = labels.array()
    return RowBlocks(passes, (len(y), chunks.n_features), chunks.dtype), y


def _repeatable(make_chunks: Any, cached: bool) -> Callable[[], Any]:
    if callable(make_chunks):
        return make_chunks
    try:
        once = iter(make_chunks) is make_chunks
    except TypeError:
        raise TypeError(
            f"make_chunks: expected a function that returns an iterator of (X, y) pairs, or an "
            f"iterable of them, got {type(make_chunks).__name__}"
        ) from None
    if once and not cached:
        raise ValueError(
            "make_chunks: an iterator can be read only once, and counting its rows is a pass "
            "already. Give a function that returns a new iterator at each call, or cache=True."
        )
    return lambda: make_chunks


class _Chunks:
    """What all chunks have in common, checked in every pass."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.kind: bool | None = None  # sparse or dense; not known before the first chunk
        self.n_features = 0
        self.dtype: Any = np.float32

    def cut(self, size: int, labels: Column | None = None) -> Iterator[Arrays]:
        """One pass: the rows, in pieces that are not too large; appends to `labels`."""
        for number, chunk in enumerate(self.make()):
            name = f"make_chunks: chunk {number}"
            if not isinstance(chunk, tuple) or len(chunk) != 2:
                raise ValueError(f"{name}: expected a pair (X, y), got {type(chunk).__name__}")
            rows, y = as_rows(chunk[0], name), np.asarray(chunk[1])
            if y.dtype.hasobject:
                y = np.asarray(y.tolist())  # strings, as pandas has them
            if self.kind is None:
                self.kind, self.n_features = sp.issparse(rows), rows.shape[1]
            if (sp.issparse(rows), rows.shape[1]) != (self.kind, self.n_features):
                is_, was = _kind(sp.issparse(rows)), _kind(self.kind)
                raise ValueError(
                    f"{name}: it is {is_} with {rows.shape[1]} features, the first was {was} with "
                    f"{self.n_features}; all must be alike"
                )
            if y.shape != rows.shape[:1] or y.dtype.hasobject:
                raise ValueError(
                    f"{name}: {rows.shape[0]} rows need as many labels, numbers or strings; got "
                    f"shape {y.shape} and type {y.dtype}"
                )
            if labels is not None:
                labels.append(y)
                self.dtype = np.promote_types(self.dtype, float_type(rows.dtype))
            yield from cut(rows, size)


def _kind(sparse: bool) -> str:
    return "sparse" if sparse else "dense"


# ------------------------------------------------------------------ a copy on disk


def keep(passes: Passes, cache: bool | str | os.PathLike[str], first: Iterator[Arrays]) -> Passes:
    """Go through the `first` pass, and return the later ones: from disk if there is a `cache`."""
    if not isinstance(cache, bool | str | os.PathLike):
        raise ValueError(f"cache: expected True, False or the path of a folder, got {cache!r}")
    if cache is False:
        for _ in first:
            pass
        return passes
    store = Store(None if cache is True else cache)
    try:
        for arrays in first:
            store.append(arrays)
    except BaseException:
        store.close()
        raise
    return store


Place = tuple[int, np.dtype[Any], tuple[int, ...]]
"""Where an array begins in a file, its type, and the shape of its rows."""


class Store(RandomAccess):
    """Blocks in one binary file, in a temporary directory that goes when this object does.

    They are read rather than mapped: pages of a mapped file count as memory of this process.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.directory = tempfile.mkdtemp(prefix="maxmargin-rows-", dir=folder)
        self.path = os.path.join(self.directory, "blocks")
        self.starts = [0]
        self.blocks: list[list[Place]] = []
        self.close = weakref.finalize(self, _remove, self.directory, os.getpid())

    def append(self, arrays: Arrays) -> None:
        block = []
        with open(self.path, "ab") as file:
            for array in arrays:
                block.append((file.tell(), array.dtype, array.shape[1:]))
                np.ascontiguousarray(array).tofile(file)
        self.blocks.append(block)
        n = len(arrays[0]) if len(arrays) == 1 else len(arrays[2]) - 1
        self.starts.append(self.starts[-1] + n)

    def take(self, begin: int, end: int) -> Arrays:
        number = int(np.searchsorted(self.starts, begin, side="right")) - 1
        block, first = self.blocks[number], begin - self.starts[number]
        with open(self.path, "rb") as file:
            if len(block) == 1:
                return (self._read(file, block[0], first, end - begin),)
            starts = self._read(file, block[2], first, end - begin + 1)
            k, n = int(starts[0]), int(starts[-1] - starts[0])
            values, indices = (self._read(file, array, k, n) for array in block[:2])
            return values, indices, starts - starts[0]

    def _read(
        self,
        file: BufferedReader,
        array: tuple[int, np.dtype[Any], tuple[int, ...]],
        k: int,
        n: int,
    ) -> NDArray[Any]:
        """Rows k to k + n of an array."""
        at, dtype, row = array
        rows = np.empty((n, *row), dtype)
        if rows.size == 0:
            return rows
        file.seek(at + k * int(np.prod(row)) * dtype.itemsize)
        if file.readinto(rows.data.cast("B")) != rows.nbytes:
            raise OSError(f"{self.path}: the rows that were kept here are cut off")
        return rows


def _remove(directory: str, process: int) -> None:
    if os.getpid() == process:  # a forked child has the object too, but not the directory
        shutil.rmtree(directory, ignore_errors=True)
