"""Design matrices that are read block by block, for data larger than memory.

A ``BlockDesign`` gives the same products as a ``Design``, each in one pass over the blocks, so that
every solver that asks for products only (Newton's method, interior points, cutting planes, proximal
gradients) works on it unchanged.  In memory are a block, and vectors with a number for each row.

Coordinate descent goes by blocks (Yu, Hsieh, Chang and Lin 2010, algorithm 1): each block's
coefficients are improved by a few sweeps while it is in memory, the others stay as they are, and
w = X'c carries what they say from block to block.  Blocks that stay the same stall where rows have
much in common, as a constant feature: a block then does little but share out among its own rows
what they hold together, and the sums of the blocks hardly move.  So each pass mixes the rows into
new blocks, and needs no more sweeps than in memory; rows that can be read in their own order only
(``RowBlocks.random_access``) do without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.io import RowBlocks
from maxmargin.linear.problem import Design
from maxmargin.problem import Floats, Indices

RANDOM_ACCESS = "visits rows in random order, and these are read block by block"
"""Why a solver refuses a BlockDesign."""


class BlockDesign:
    """Rows on disk with a constant feature, ready for products; see ``problem.Design``.

    Parameters
    ----------
    X : RowBlocks
    rows : array or None
        Which of its rows count, ascending; None for all.
    bias : float, default=0.0
        The value of the constant feature; 0 for none.
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self,
        X: RowBlocks,
        rows: Indices | None = None,
        bias: float = 0.0,
        n_jobs: int | None = None,
    ):
        self.X = X
        self.rows = rows
        self.bias = float(bias)
        self.n_jobs = n_jobs
        self.stored = 0
        for block in self.blocks():  # the one pass that looks for numbers that are none
            check_finite(block[1].X)
            self.stored += block[1].stored

    @property
    def n_rows(self) -> int:
        return len(self.X) if self.rows is None else len(self.rows)

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_columns(self) -> int:
        return self.n_features + (self.bias != 0)

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """The blocks, and where their rows stand among those that count."""
        begin = 0
        for rows, block in self.X.blocks():
            if self.rows is not None:
                some = self.rows[np.searchsorted(self.rows, rows.start) :]
                some = some[: np.searchsorted(some, rows.stop)]
                block = block[some - rows.start]
            if block.shape[0] == 0:
                continue
            end = begin + block.shape[0]
            yield slice(begin, end), Design(block, self.bias, self.n_jobs)
            begin = end

    def mixed(self, seed: int) -> Iterator[tuple[Any, Design]]:
        """The rows in blocks made anew for each seed, if they can be read in any order."""
        if not self.X.random_access:
            yield from self.blocks()
            return
        for where, block in self.X.shuffled(seed):
            rows = where
            if self.rows is not None:
                at = np.minimum(np.searchsorted(self.rows, where), len(self.rows) - 1)
                some = self.rows[at] == where
                rows, block = at[some], block[some]
            if len(rows):
                yield rows, Design(block, self.bias, self.n_jobs)

    def scores(self, w: Floats) -> Floats:
        """X w, for a vector or the columns of a matrix."""
        out = np.empty((self.n_rows, *np.shape(w)[1:]))
        for rows, design in self.blocks():
            out[rows] = design.scores(w)
        return out

    def combine(self, c: Floats) -> Floats:
        """X'c, for a vector or the columns of a matrix."""
        out = np.zeros((self.n_columns, *np.shape(c)[1:]))
        for rows, design in self.blocks():
            out += design.combine(c[rows])
        return out

    def gram(self, h: Floats) -> Floats:
        """X' diag(h) X."""
        out = np.zeros((self.n_columns, self.n_columns))
        for rows, design in self.blocks():
            if h[rows].any():
                out += design.gram(h[rows])
        return out

    def norms(self) -> Floats:
        """|x_i|^2."""
        return np.concatenate([design.norms() for _, design in self.blocks()])

    def take(self, rows: Indices) -> Design:
        """Some rows, in memory."""
        parts = []
        for block, design in self.blocks():
            some = rows[(rows >= block.start) & (rows < block.stop)] - block.start
            if len(some):
                parts.append(design.X[some].copy())
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
        return Design(X, self.bias, self.n_jobs)


def check_finite(block: Any) -> None:
    """Refuse a block with numbers that are none."""
    values = block.data if sp.issparse(block) else block
    if not np.isfinite(values).all():
        raise ValueError(
            "X: a block of rows contains NaN or infinity; clean the rows where they are read."
        )
