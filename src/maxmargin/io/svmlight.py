"""The text format of SVMlight and LIBSVM: one row a line, ``label [qid:query] feature:value ...``.

The text is parsed in pieces by native code, so that no more than a block of it is ever in memory.
Files may be compressed (.gz, .bz2, .xz).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import time
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.io.blocks import BLOCK_BYTES, RowBlocks, keep
from maxmargin.io.pieces import Arrays, Column, check_block_bytes
from maxmargin.listeners import Line

Path = str | os.PathLike[str]
ZeroBased = bool | Literal["auto"]

_PIECE = 2**20
"""Bytes of text parsed at a time; between two pieces Ctrl-C is heard."""

_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""What reads and writes a file with this ending."""

_PARSERS = {
    np.dtype(np.float32): _core.SvmlightParser32,
    np.dtype(np.float64): _core.SvmlightParser64,
}


# ------------------------------------------------------------------ reading


def open_svmlight(
    path: Path,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: Any = np.float64,
    query_id: bool = False,
    cache: bool | Path = True,
    block_bytes: int = BLOCK_BYTES,
    verbose: bool = False,
) -> tuple[Any, ...]:
    """Open a file in SVMlight's format that need not fit into memory.

    Goes through the text once, for the labels and the shape. Its rows are read as they are needed.

    Parameters
    ----------
    path : path
        The file; .gz, .bz2 and .xz are uncompressed on the way.
    n_features : int or None
        The number of features; None: up to the largest in the file, and one at least.
    zero_based : bool or "auto"
        Whether features are numbered from 0 or from 1; "auto": from 1 if there is no feature 0. A
        file without the first feature is best read with the number said.
    dtype : float32 or float64
        The type of the values.
    query_id : bool
        Whether to return the queries (``qid:...``) as well; then every row must have one.
    cache : bool or path
        Whether to keep the rows on disk in binary, so that the text is parsed only once: in a
        temporary directory (see `tempfile.gettempdir`), which goes when X does; inside of this
        folder if one is given. False: every pass parses the text again.
    block_bytes : int
        About how many bytes of rows are in memory at a time.
    verbose : bool
        Whether to show how far the first pass is.

    Returns
    -------
    X : RowBlocks
    y : array of shape (n,)
        The labels, in float64.
    query : array of shape (n,)
        Only with `query_id`.

    Notes
    -----
    Numbers must be finite, and a feature come once in a row, in any order; rows may be empty, and
    ``#`` begins a comment. Anything else is an error that names the line.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from maxmargin.io import open_svmlight, write_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.svm.gz")
    ...     write_svmlight(np.eye(3), [1, -1, 1], path)
    ...     X, y = open_svmlight(path)
    >>> X, y
    (RowBlocks(3 rows, 3 features, float64), array([ 1., -1.,  1.]))
    """
    text = _Text(path, n_features, zero_based, dtype)
    size = check_block_bytes(block_bytes)
    columns = _Columns(query_id)
    line = Line(os.path.basename(path)) if verbose else None
    passes = keep(lambda: text.passes(size), cache, text.passes(size, columns, line))
    y = columns.arrays(text)
    X = RowBlocks(passes, (len(y[0]), text.n_features), text.dtype, text.first)
    return (X, *y)


def read_svmlight(
    path: Path,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: Any = np.float64,
    query_id: bool = False,
) -> tuple[Any, ...]:
    """Read a file in SVMlight's format into memory.

    Parameters
    ----------
    path, n_features, zero_based, dtype, query_id
        As in `open_svmlight`.

    Returns
    -------
    X : csr_array of shape (n, d)
    y : array of shape (n,)
    query : array of shape (n,)
        Only with `query_id`.
    """
    text = _Text(path, n_features, zero_based, dtype)
    columns = _Columns(query_id)
    everything = list(text.passes(None, columns))
    y = columns.arrays(text)
    X = RowBlocks(lambda: iter(everything), (len(y[0]), text.n_features), text.dtype, text.first)
    ((_, rows),) = X.blocks()
    assert isinstance(rows, sp.csr_array)
    return (rows, *y)


class _Columns:
    """What has one number per row: labels, and queries if asked for."""

    def __init__(self, queries: bool) -> None:
        self.columns = [Column(), Column()] if queries else [Column()]

    def append(self, *columns: NDArray[Any]) -> None:
        for column, values in zip(self.columns, columns, strict=False):
            column.append(values)

    def arrays(self, text: _Text) -> Arrays:
        if not self.columns[0].bytes:
            raise ValueError(f"{text.path}: there are no rows in this file")
        return tuple(column.array() for column in self.columns)


class _Text:
    """A file, and what is known of its features: their first number, and how many there are."""

    def __init__(self, path: Path, n_features: Any, zero_based: Any, dtype: Any) -> None:
        whole = isinstance(n_features, int | np.integer) and not isinstance(n_features, bool)
        if n_features is not None and not (whole and n_features > 0):
            raise ValueError(f"n_features: expected a whole number > 0 or None, got {n_features!r}")
        if not isinstance(zero_based, bool) and zero_based != "auto":
            raise ValueError(f"zero_based: expected True, False or 'auto', got {zero_based!r}")
        self.path = os.fspath(path)
        self.dtype = np.dtype(dtype)
        if self.dtype not in _PARSERS:
            raise ValueError(f"dtype: expected float32 or float64, got {dtype!r}")
        self.given: int | None = None if n_features is None else int(n_features)
        self.zero_based: ZeroBased = zero_based
        # The features that may occur; once the text was read, those that do.
        self.smallest = 1 if zero_based is False else 0
        self.largest = 2**31 - 1 if self.given is None else self.given - (zero_based is True)

    @property
    def first(self) -> int:
        """The number of the first feature."""
        if self.zero_based == "auto":
            return int(0 < self.smallest <= self.largest)
        return int(not self.zero_based)

    @property
    def n_features(self) -> int:
        """The number of features, once the text was read."""
        n = max(self.largest + 1 - self.first, 1)
        if self.given is None:
            return n
        if n > self.given:
            raise ValueError(
                f"{self.path}: features are numbered from 0 to {self.largest}, which makes {n}; "
                f"n_features is {self.given}"
            )
        return self.given

    def passes(
        self, size: int | None, columns: _Columns | None = None, line: Line | None = None
    ) -> Iterator[Arrays]:
        """One pass over the text, in blocks of about `size` bytes (None: a single one).

        The first pass fills the `columns`, and finds the features.
        """
        queries = columns is not None and len(columns.columns) == 2
        parser = _PARSERS[self.dtype](self.smallest, self.largest, queries)
        n_rows = 0

        def take() -> Arrays:
            nonlocal n_rows
            *rows, labels, query = parser.take()
            n_rows += len(labels)
            if columns is not None:
                columns.append(labels, query)
            return tuple(rows)

        begin = time.perf_counter()
        with open(self.path, "rb") as raw, _uncompressed(raw, self.path, "rb") as file:
            n_bytes = os.fstat(raw.fileno()).st_size
            while piece := self._read(file, _PIECE if size is None else min(size, _PIECE)):
                self._parse(parser.feed, piece)
                if size is not None and parser.bytes >= size:
                    yield take()
                if line is not None and line.due(time.perf_counter() - begin):
                    line.write(100 * raw.tell() // max(n_bytes, 1), f"{n_rows} rows")
        self._parse(parser.finish)
        last = take()
        if len(last[-1]) > 1:
            yield last
        if columns is not None:
            self.smallest, self.largest = parser.smallest, parser.largest
        if line is not None:
            seconds = time.perf_counter() - begin
            line.write(100, f"{n_rows} rows, finished after {seconds:.1f} s", last=True)

    def _read(self, file: IO[bytes], n_bytes: int) -> bytes:
        try:
            return file.read(n_bytes)
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            raise ValueError(f"{self.path}: damaged, or cut off at its end: {error}") from error

    def _parse(self, method: Callable[..., None], *piece: bytes) -> None:
        try:
            method(*piece)
        except ValueError as error:
            raise ValueError(f"{self.path}, {error}") from None


def _uncompressed(raw: IO[bytes], path: str, mode: str) -> Any:
    """The file itself, or a view of it as if it were not compressed."""
    ending = os.path.splitext(path)[1]
    return _COMPRESSED[ending](raw, mode) if ending in _COMPRESSED else raw


# ------------------------------------------------------------------ writing


def write_svmlight(
    X: Any, y: Any, path: Path, *, query_id: Any = None, zero_based: bool = False
) -> None:
    """Write rows to a file in SVMlight's format; zeros are left out.

    Numbers are written with as few digits as bring the same number back when it is read in the
    same type.

    Parameters
    ----------
    X : array, sparse matrix or RowBlocks of shape (n, d)
    y : array of shape (n,)
        Labels: finite numbers.
    path : path
        Where to write; .gz, .bz2 and .xz are compressed. A file that is there is replaced.
    query_id : array of shape (n,) or None
        The query of each row, whole numbers.
    zero_based : bool
        Whether features are numbered from 0. From 1, the default, is what LIBSVM and LIBLINEAR
        read, and what readers that guess never mistake.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin.io import write_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.svm")
    ...     write_svmlight([[0, 0.5], [2, 0]], [1, -1], path)
    ...     with open(path) as file:
    ...         print(file.read(), end="")
    1 2:0.5
    -1 1:2
    """
    if not isinstance(zero_based, bool):
        raise ValueError(f"zero_based: expected True or False, got {zero_based!r}")
    rows = X if isinstance(X, RowBlocks) else RowBlocks.from_array(X)
    n = len(rows)
    labels = _column(y, np.float64, n, "y")
    queries = (
        np.empty(0, np.int64) if query_id is None else _column(query_id, np.int64, n, "query_id")
    )
    with open(path, "wb") as raw, _uncompressed(raw, os.fspath(path), "wb") as file:
        for where, block in rows.blocks():
            for at, piece in RowBlocks.from_array(block, block_bytes=_PIECE).blocks():
                begin, end = where.start + at.start, where.start + at.stop
                x: Any = sp.csr_array(piece)
                if not (finite := np.isfinite(x.data)).all():
                    row = begin + np.searchsorted(x.indptr, np.argmin(finite), side="right") - 1
                    raise ValueError(
                        f"X: row {row} has NaN or infinity; the format is for finite numbers"
                    )
                arrays = x.data, x.indices, x.indptr, labels[begin:end], queries[begin:end]
                file.write(_core.svmlight_text(*arrays, int(not zero_based)))


def _column(values: Any, dtype: Any, n: int, name: str) -> NDArray[Any]:
    """One number per row, in a type that holds each exactly."""
    given = np.asarray(values)
    if given.shape != (n,):
        raise ValueError(
            f"{name}: expected one number for each of {n} rows, got shape {given.shape}"
        )
    if given.dtype.kind in "buif" and np.isfinite(given).all():
        with np.errstate(invalid="ignore"):
            column = np.ascontiguousarray(given.astype(dtype))
            if np.array_equal(column.astype(given.dtype), given):
                return column
    raise ValueError(
        f"{name}: expected finite numbers that {np.dtype(dtype)} holds, got {given.dtype} with "
        f"values such as {given[:3]}"
    )
