"""Three ways to apply the inverse of A = K + diag(ridge).

    Cholesky              A = L L', in half of the matrix; n^3 / 3 operations
    Elimination           P A = L U, for what is not positive definite; 2 n^3 / 3 operations
    ConjugateGradients    without the matrix: a product with K for each step, preconditioned

All of them work in pieces that a time limit or Ctrl-C need not wait for: the matrix's ``check`` is
called after each and may raise.  A tile is computed by one thread with the same operations
whichever that is, so that the answer does not depend on how many there are: BLAS, whose own threads
would change it (and slow these tiles down tenfold), has to be kept to ``one_blas_thread``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from threading import Lock, get_ident
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular
from threadpoolctl import OpenBLASController, threadpool_limits

from maxmargin.kernels import native
from maxmargin.preconditioner import Preconditioner, affordable_rank
from maxmargin.problem import Floats, Indices

TILE = 256
PIECE = 2 * 10**7
"""Kernel values between two checks, a tenth of a second's work or so."""

EPSILON = float(np.finfo(np.float64).eps)

Check = Callable[[], None]


class Matrix:
    """A = K + diag(ridge), of which no more is computed than is asked for, in float64."""

    def __init__(self, items: Any, ridge: Floats, n_threads: int, check: Check):
        self.items: Any = native(items)
        self.ridge = ridge[:, None]
        self.n_threads = n_threads
        self.check = check

    def __len__(self) -> int:
        return len(self.ridge)

    def kernel(self, V: Floats) -> Floats:
        """K V."""
        V, n = np.ascontiguousarray(V), len(self)
        product = np.empty_like(V)
        step = max(PIECE // n, 1)
        for rows in (np.arange(a, min(a + step, n)) for a in range(0, n, step)):
            some = self.items if len(rows) == n else self.items.subset(rows)
            product[rows] = some.multiply(self.items, V, self.n_threads)
            self.check()
        return product

    def diagonal(self) -> Floats:
        """The diagonal of A."""
        return self.items.diagonal() + self.ridge[:, 0]

    def columns(self, begin: int, end: int, first_row: int) -> Floats:
        """The columns begin .. end of A from a row down (the diagonal's or above): a new array."""
        rows, columns = np.arange(first_row, len(self)), np.arange(begin, end)
        A = self.kernel_tile(rows, columns)
        A[columns - first_row, columns - begin] += self.ridge[begin:end, 0]
        return A

    def kernel_tile(self, rows: Indices, columns: Indices) -> Floats:
        """Rows and columns of K: a new array."""
        if self.items.dtype == np.float64:
            return self.items.tile(rows, self.items, columns, self.n_threads)
        left, right = self.items.subset(rows), self.items.subset(columns)
        return left.multiply(right, np.eye(len(columns)), self.n_threads)  # a tile is float32


class Inverse(Protocol):
    """A way to apply A^-1; ``convex`` says whether A is positive definite, up to rounding."""

    convex: bool

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Ever better D, approximately A^-1 B, each with its residual B - A D."""
        ...


def is_affordable(A: Matrix, memory: float) -> bool:
    """Whether all of the matrix may be held in so many bytes of memory."""
    return 8.0 * len(A) ** 2 <= memory


def inverse(A: Matrix, memory: float) -> Inverse:
    """The way to go with a matrix that may take so many bytes of memory.

    A ridge that is lost in rounding beside the kernel (a huge C) is lifted to where it is not: the
    result is a correction only, and the next one is of what this one leaves.
    """
    if not is_affordable(A, memory):
        return ConjugateGradients(A, affordable_rank(len(A), memory))
    lift, rounding = 0.0, len(A) * EPSILON * float(np.abs(A.diagonal()).max())
    while True:
        try:
            return Cholesky(A, lift)
        except NotPositiveError as refusal:
            if not refusal.pivot >= -max(rounding, lift):
                return Elimination(A)
        lift = max(100 * lift, rounding)


class NotPositiveError(Exception):
    """What is left of A after some steps of Cholesky's has a pivot (eigenvalue) that is not."""

    def __init__(self, pivot: float):
        self.pivot = pivot


class Cholesky:
    """A = L L', where L is kept in row panels, so that only half of the matrix is ever held.

    Left-looking: column of tiles by column of tiles, each from the panels to its left,

        L_ij = (A_ij - L_i,:j L_j,:j') L_jj'^-1

    where the tiles of a column do not depend on each other.
    """

    convex = True

    def __init__(self, A: Matrix, lift: float = 0.0):
        self.blocks = _blocks(len(A))
        self.panels = [np.empty((block.stop - block.start, block.stop)) for block in self.blocks]
        with ThreadPoolExecutor(A.n_threads) as pool:
            for j in range(len(self.blocks)):
                self._next_column(j, A, lift, pool)

    def _next_column(self, j: int, A: Matrix, lift: float, pool: ThreadPoolExecutor) -> None:
        begin, end = self.blocks[j].start, self.blocks[j].stop
        column = A.columns(begin, end, begin)
        left = self.panels[j][:, :begin]
        rest = column[: end - begin] - left @ left.T + lift * np.eye(end - begin)
        try:
            L_jj = np.linalg.cholesky(rest)
        except np.linalg.LinAlgError:
            raise NotPositiveError(float(np.linalg.eigvalsh(rest)[0])) from None
        self.panels[j][:, begin:] = L_jj
        L_jj_inverse = solve_triangular(L_jj, np.eye(end - begin), lower=True)

        def below(i: int) -> None:
            rows = slice(self.blocks[i].start - begin, self.blocks[i].stop - begin)
            rest = column[rows] - self.panels[i][:, :begin] @ left.T
            self.panels[i][:, begin:end] = rest @ L_jj_inverse.T

        for _ in pool.map(below, range(j + 1, len(self.blocks))):
            A.check()

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        D = np.array(B)
        for block, panel in zip(self.blocks, self.panels, strict=True):  # L Z = B
            D[block] -= panel[:, : block.start] @ D[: block.start]
            D[block] = solve_triangular(panel[:, block], D[block], lower=True)
        for block, panel in zip(self.blocks[::-1], self.panels[::-1], strict=True):  # L'D = Z
            D[block] = solve_triangular(panel[:, block], D[block], lower=True, trans=1)
            D[: block.start] -= panel[:, : block.start].T @ D[block]
        yield D, np.zeros_like(D)


class Elimination:
    """P A = L U by Gaussian elimination with row exchanges, panel by panel, in the whole matrix.

    Right-looking: when a panel of columns is factored, its product is taken off all rows below.
    """

    convex = False

    def __init__(self, A: Matrix):
        self.blocks = _blocks(len(A))
        self.order = np.arange(len(A))
        self.LU = np.empty((len(A), len(A)))
        (self.getrf,) = get_lapack_funcs(("getrf",), (self.LU,))
        with ThreadPoolExecutor(A.n_threads) as pool:
            for block in self.blocks:
                self.LU[block] = A.columns(block.start, block.stop, 0).T
                A.check()
            for block in self.blocks:
                self._next_panel(block, pool, A.check)
        pivots = np.einsum("ii->i", self.LU)
        lost = len(A) * EPSILON * np.abs(pivots).max()
        pivots[np.abs(pivots) < lost] = lost

    def _next_panel(self, block: slice, pool: ThreadPoolExecutor, check: Check) -> None:
        LU, begin, end = self.LU, block.start, block.stop
        panel, pivots, _ = self.getrf(LU[begin:, block])
        for i, pivot in enumerate(pivots):
            exchanged = [begin + pivot, begin + i]
            LU[[begin + i, begin + pivot]] = LU[exchanged]
            self.order[[begin + i, begin + pivot]] = self.order[exchanged]
        LU[begin:, block] = panel
        LU[block, end:] = solve_triangular(
            LU[block, block], LU[block, end:], lower=True, unit_diagonal=True
        )

        def below(rows: slice) -> None:
            LU[rows, end:] -= LU[rows, block] @ LU[block, end:]

        for _ in pool.map(below, [rows for rows in self.blocks if rows.start >= end]):
            check()

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        LU, D = self.LU, B[self.order]
        for block in self.blocks:  # L Z = P B
            D[block] -= LU[block, : block.start] @ D[: block.start]
            D[block] = solve_triangular(LU[block, block], D[block], lower=True, unit_diagonal=True)
        for block in self.blocks[::-1]:  # U D = Z
            D[block] -= LU[block, block.stop :] @ D[block.stop :]
            D[block] = solve_triangular(LU[block, block], D[block])
        yield D, np.zeros_like(D)


class ConjugateGradients:
    """Block conjugate gradients in the stable form of Dubrulle (2001), algorithm BCGrQ.

    All columns search the same space.  Instead of the residuals an orthonormal basis W of them is
    kept, P'R = W delta, so that columns may become dependent, or be finished early, without harm.
    The matrix is P'A P, for the P of ``preconditioner``: the residuals R themselves are kept beside
    W, as P can be large and is never inverted.

    Parameters
    ----------
    A : Matrix
    rank : int, default=0
        The most columns of K that P is made of; 0 is the scaling by the diagonal (Jacobi).
    """

    def __init__(self, A: Matrix, rank: int = 0):
        self.A = A
        self.P = Preconditioner(A, rank)
        self.magnitude = np.abs(A.diagonal())[:, None]
        self.convex = True

    def apply(self, B: Floats) -> Iterator[tuple[Floats, Floats]]:
        P = self.P
        W, delta = np.linalg.qr(P.apply_transposed(B))
        least = EPSILON * float(np.abs(delta).max(initial=0.0))
        S, X, R = W, np.zeros_like(B), B
        while True:
            PS = P.apply(S)
            APS = self.A.kernel(PS) + self.A.ridge * PS
            curvature = PS.T @ APS
            curvature = (curvature + curvature.T) / 2
            rounding = len(S) * EPSILON * np.vdot(PS, self.magnitude * PS)
            self.convex &= bool(np.linalg.eigvalsh(curvature)[0] >= -rounding)
            try:
                xi = np.linalg.inv(curvature)
            except np.linalg.LinAlgError:
                return  # the space is exhausted
            X, R = X + PS @ (xi @ delta), R - APS @ (xi @ delta)
            W, zeta = np.linalg.qr(W - P.apply_transposed(APS) @ xi)
            S = W + S @ zeta.T
            delta = zeta @ delta
            yield X, R
            if not np.abs(delta).max() > least:
                return  # the rest of R is rounding


def _blocks(n: int) -> list[slice]:
    return [slice(a, b) for a, b in pairwise([*range(0, n, TILE), n])]


class _BlasLimit:
    """Keeps BLAS to one thread while anybody is inside; the last one out restores what was.

    BLAS has one number of threads for the whole process, so that fits in several Python threads
    must share one limit.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside: list[int] = []
        """The Python threads, once for each time that they entered."""
        self.limits: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if not self.inside:
                with _control():
                    self.limits = threadpool_limits(1, user_api="blas")
            self.inside.append(get_ident())
        try:
            yield
        finally:
            with self.lock:
                self._leave([get_ident()])

    def _leave(self, threads: list[int]) -> None:
        for thread in threads:
            self.inside.remove(thread)
        if not self.inside and self.limits is not None:
            with _control():
                self.limits.restore_original_limits()
            self.limits = None

    def in_child(self) -> None:
        """After a fork: only the thread that forked goes on."""
        self._leave([thread for thread in self.inside if thread != get_ident()])
        self.lock.release()


@contextmanager
def _control() -> Iterator[None]:
    """From its release 3.8 on threadpoolctl obeys only the thread that set a limit first.

    Here another may take a limit off.
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


one_blas_thread = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=one_blas_thread.lock.acquire,
        after_in_parent=one_blas_thread.lock.release,
        after_in_child=one_blas_thread.in_child,
    )
