"""A split preconditioner for A = K + diag(ridge): what conjugate gradients are spared.

Kernel matrices have a few large eigenvalues, which some of the columns already tell of.  Partial
Cholesky with pivots p_1, ..., p_r leaves of K = L L' + E a small E >= 0 whose diagonal is known:

    M = L L' + D,    D = diag(A - L L') = ridge + diag(E)

has the diagonal of A, and without any columns it is that diagonal (Jacobi).  With V = D^-1/2 L the
identity of Woodbury gives M^-1 = D^-1/2 (I - V (I + V'V)^-1 V') D^-1/2, and conjugate gradients
need it as a product: for the Cholesky factor C of I + V'V,

    M^-1 = P P',    P = D^-1/2 (I - V N V'),    N = C'^-1 (I + C)^-1

because N + N' - N V'V N' = (C C')^-1.  P'A P then takes the place of A: it is symmetric, it has as
many negative eigenvalues as A, and where E is small beside the ridge it is nearly the identity.

The pivots are drawn with the probabilities E_ii / ridge_i (Chen, Epperly, Tropp and Webber 2023;
as a preconditioner Diaz, Epperly, Frangella, Tropp and Webber 2023), several at once and then
thinned out by rejection (Epperly, Tropp and Webber 2024): nearly the same distribution, since a
pivot that has less than a thousandth of its E_ii left is never accepted.  The
largest E_ii, the rule of Harbrecht, Peters and Schneider (2012), seeks out the rows that are like
no other.  The seed is fixed: the same data have the same pivots, whatever the number of threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from maxmargin.problem import Floats, Indices

if TYPE_CHECKING:
    from maxmargin.inverse import Matrix

DRAWN = 64
"""Pivots drawn at once."""

LARGEST_RANK = 2048
"""C is computed in one piece, a tenth of a second or so."""

ROWS = 1024
"""Rows of V between two checks, and for one thread at a time."""

EPSILON = float(np.finfo(np.float64).eps)


def affordable_rank(n: int, memory: float) -> int:
    """How many columns V may have.

    V, twice the columns that are drawn at once and two matrices of V's width have to fit the
    memory.  And n / 4 columns cost no more to make than a few products with K.
    """
    rank = np.arange(min(n // 4, LARGEST_RANK) + 1)
    numbers = n * (rank + 2 * np.minimum(rank, DRAWN)) + 2 * rank**2
    return int(np.flatnonzero(8 * numbers <= memory)[-1])


class Preconditioner:
    """P with P P' = M^-1, from at most ``rank`` columns of K."""

    def __init__(self, A: Matrix, rank: int):
        self.blocks = [slice(a, min(a + ROWS, len(A))) for a in range(0, len(A), ROWS)]
        with ThreadPoolExecutor(A.n_threads) as pool:
            V, left = self._partial_cholesky(A, rank, pool)
            D = np.abs(left + A.ridge[:, 0])
            if V.shape[1]:  # I + V'V has to stay positive definite in rounding
                floor = 10 * EPSILON * V.shape[1] * float(np.abs(A.items.diagonal()).sum())
                D = np.maximum(D, floor)
            self.scale = 1 / np.sqrt(np.where(D > 0, D, 1.0))[:, None]
            V *= self.scale
            self.V = V
            inner = self._inner_products(A, pool)
        inner[np.diag_indices_from(inner)] += 1.0
        # The transpose is in Fortran's order, and so its upper factor C' is made in place.
        self.C = cholesky(inner.T, overwrite_a=True).T
        self.C_and_I = self.C.copy()
        self.C_and_I[np.diag_indices_from(inner)] += 1.0

    @property
    def rank(self) -> int:
        return self.V.shape[1]

    def apply(self, B: Floats) -> Floats:
        """P B."""
        inner = solve_triangular(self.C_and_I, self.V.T @ B, lower=True)
        return self.scale * (B - self.V @ solve_triangular(self.C, inner, lower=True, trans=1))

    def apply_transposed(self, B: Floats) -> Floats:
        """P'B."""
        B = self.scale * B
        inner = solve_triangular(self.C, self.V.T @ B, lower=True)
        return B - self.V @ solve_triangular(self.C_and_I, inner, lower=True, trans=1)

    def _partial_cholesky(
        self, A: Matrix, rank: int, pool: ThreadPoolExecutor
    ) -> tuple[Floats, Floats]:
        """L and the diagonal of E = K - L L'."""
        left: Floats = A.items.diagonal().astype(np.float64)
        rounding = len(A) * EPSILON * float(np.abs(left).max(initial=0.0))
        random = np.random.RandomState(0)
        L = np.empty((len(A), rank))
        m = 0
        while m < rank:
            # Where E is negative, K is no kernel: its large eigenvalues are not found like this.
            if not (np.isfinite(left).all() and left.min() >= -rounding):
                break
            weight = np.where(left > rounding, left, 0.0) / A.ridge[:, 0]
            A.check()
            if weight.sum() < NOTHING:
                break
            drawn = random.choice(len(A), size=min(DRAWN, rank - m), p=weight / weight.sum())
            _, first = np.unique(drawn, return_index=True)
            pivots, L_pivots = _thinned(A, L[:, :m], drawn[np.sort(first)], random)
            self._next_columns(A, L, m, pivots, L_pivots, pool)
            new = slice(m, m + len(pivots))
            left = left - np.einsum("ij,ij->i", L[:, new], L[:, new])
            left[pivots] = 0.0
            m += len(pivots)
        return L[:, :m], left

    def _next_columns(
        self,
        A: Matrix,
        L: Floats,
        m: int,
        pivots: Indices,
        L_pivots: Floats,
        pool: ThreadPoolExecutor,
    ) -> None:
        """L_:p = (K_:p - L_:m L_pm') L_pp'^-1, block of rows by block of rows."""
        inverse = solve_triangular(L_pivots, np.eye(len(pivots)), lower=True).T
        of_pivots = L[pivots, :m].T
        columns = A.kernel_tile(np.arange(len(A)), pivots)

        def fill(rows: slice) -> None:
            L[rows, m : m + len(pivots)] = (columns[rows] - L[rows, :m] @ of_pivots) @ inverse

        for _ in pool.map(fill, self.blocks):
            A.check()

    def _inner_products(self, A: Matrix, pool: ThreadPoolExecutor) -> Floats:
        """V'V from the diagonal down: blocks of rows in order, strips of the result at once."""
        r = self.V.shape[1]
        inner = np.zeros((r, r))
        strips = [slice(a, min(a + DRAWN, r)) for a in range(0, r, DRAWN)]
        for rows in self.blocks:
            V = self.V[rows]

            def add(strip: slice, V: Floats = V) -> None:
                inner[strip, : strip.stop] += V[:, strip].T @ V[:, : strip.stop]

            for _ in pool.map(add, strips):
                pass
            A.check()
        return inner


NOTHING = 0.1
"""The sum of E_ii / ridge_i that is not worth another pivot: M^-1 A is nearly the identity."""


def _thinned(
    A: Matrix, L: Floats, drawn: Indices, random: np.random.RandomState
) -> tuple[Indices, Floats]:
    """The pivots among those drawn, and the Cholesky factor of what is left of K for them.

    One after the other is accepted with the share that the ones before it have left of its E_ii.
    """
    E = A.kernel_tile(drawn, drawn) - L[drawn] @ L[drawn].T
    C = np.zeros_like(E)
    before, now = E.diagonal().copy(), E.diagonal().copy()
    chances = random.uniform(size=len(drawn))
    kept: list[int] = []
    for i, chance in enumerate(chances):
        if kept and not now[i] > max(chance, 1e-3) * before[i]:
            continue
        c = (E[:, i] - C[:, : len(kept)] @ C[i, : len(kept)]) / np.sqrt(now[i])
        C[:, len(kept)] = c
        kept.append(i)
        now = now - c**2
    return drawn[kept], np.tril(C[kept, : len(kept)])
