"""What a kernel machine is given, made ready: rows, weights, the kernel and its numbers.

Here, at the boundary, strings turn into objects and ``gamma='scale'`` into a number; nothing behind
it sees either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from maxmargin._compat import num_samples, safe_indexing
from maxmargin.exceptions import NOT_FINITE
from maxmargin.kernels import (
    RBF,
    FromFunction,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from maxmargin.problem import Floats, Indices

KERNELS: dict[str, Callable[[float, float, int], Kernel]] = {
    "linear": lambda gamma, coef0, degree: Linear(),
    "poly": lambda gamma, coef0, degree: Polynomial(degree=degree, gamma=gamma, coef0=coef0),
    "rbf": lambda gamma, coef0, degree: RBF(gamma=gamma),
    "sigmoid": lambda gamma, coef0, degree: Sigmoid(gamma=gamma, coef0=coef0),
    "laplacian": lambda gamma, coef0, degree: Laplacian(gamma=gamma),
    "precomputed": lambda gamma, coef0, degree: Precomputed(),
}
"""The kernels that have a name, made from (gamma, coef0, degree)."""


@dataclass(frozen=True)
class Samples:
    """The training data as the solver sees them: only rows of positive weight.

    Attributes
    ----------
    X : array, sparse matrix or sequence
        The rows (all of them for a precomputed kernel, whose columns go by their numbers).
    y : array or None
        Their targets as given (labels or numbers).
    weights : array of shape (n,)
        Their positive weights.
    rows : array of shape (n,)
        Where they stand in the data that ``fit`` was given.
    shape : tuple of int
        Shape of those data.
    given : dict
        X, y and metadata as the user gave them, for callbacks.
    kernel : fitted kernel
    gamma : float
        The number behind ``gamma='scale'``; 0 where the kernel has none.
    items : Items
        The rows, prepared for the kernel.
    """

    X: Any
    y: Any
    weights: Floats
    rows: Indices
    shape: tuple[int, ...]
    given: dict[str, Any] = field(repr=False)
    kernel: Any
    gamma: float
    items: Any

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X) and takes_arrays(self.kernel.kernel)


# ------------------------------------------------------------------ kernels


def as_kernel(kernel: Any, gamma: float = 1.0, coef0: float = 0.0, degree: int = 3) -> Kernel:
    """The Kernel that a ``kernel`` parameter stands for: a name, an object or a function."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type):
        raise ValueError(
            f"kernel={kernel.__name__} is a class, and a kernel is an object of it: write "
            f"kernel={kernel.__name__}(), with its parameters in the brackets."
        )
    if callable(kernel):
        function: Any = kernel
        return FromFunction(function)
    return KERNELS[kernel](gamma, coef0, degree)


def takes_arrays(kernel: Any) -> bool:
    """Whether a kernel wants its rows as a numeric array (others take any sequence)."""
    if isinstance(kernel, Kernel):
        return not isinstance(kernel, FromFunction) and kernel.tags.two_d_array
    return not callable(kernel)


def is_precomputed(kernel: Any) -> bool:
    """Whether the rows are those of a kernel matrix already."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def gamma_number(gamma: Any, X: Any, weights: Floats) -> float:
    """The number that ``gamma`` stands for; 'scale' counts every row as often as its weight says.

    'scale' is 1 / (n_features * variance of all entries of X), 'auto' is 1 / n_features.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    variance = _variance(X, weights)
    return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0


def _variance(X: Any, weights: Floats) -> float:
    """The weighted variance over all entries of X, the zeros of a sparse matrix included.

    The mean is found as a distance from one of the entries, so that where all are equal the
    variance is exactly 0.
    """
    total = weights.sum() * X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(X):
            first = np.float64(X[0, 0])
            mean = first + weights @ (X - first).sum(axis=1) / total
            return float(weights @ ((X - mean) ** 2).sum(axis=1) / total)
        stored = np.diff(X.indptr)
        each, zeros = np.repeat(weights, stored), weights @ (X.shape[1] - stored)
        data = X.data.astype(np.float64)
        first = data[0] if len(data) else 0.0
        mean = first + (each @ (data - first) - zeros * first) / total
        return float((each @ (data - mean) ** 2 + zeros * mean**2) / total)


def prepare(parameters: Any, X: Any, weights: Floats, rows: Indices) -> dict[str, Any]:
    """The kept rows, the kernel fitted on them, its gamma, and the items.

    ``parameters`` has the attributes kernel, gamma, coef0 and degree.
    """
    kernel = parameters.kernel
    all_kept = len(rows) == num_samples(X)
    if is_precomputed(kernel):  # its columns go by the numbers of all rows
        check_gram(X)
        fitted = as_kernel(kernel).fit(X)
        items = fitted.prepare(X)
        items = items if all_kept else items.subset(rows)
        return {"X": X, "kernel": fitted, "gamma": 0.0, "items": items}
    X = X if all_kept else safe_indexing(X, rows)
    gamma = 0.0
    if takes_arrays(kernel):
        check_magnitude(X)
        if isinstance(kernel, str):
            gamma = gamma_number(parameters.gamma, X, weights)
    fitted = as_kernel(kernel, gamma, parameters.coef0, parameters.degree).fit(X)
    return {"X": X, "kernel": fitted, "gamma": gamma, "items": fitted.prepare(X)}


# ------------------------------------------------------------------ rows and weights


def positive_weights(sample_weight: Any, n: int) -> tuple[Floats, Indices]:
    """The positive weights of n rows, and which rows they are; the others count as absent."""
    if sample_weight is None:
        return np.ones(n), np.arange(n)
    options: Any = {"ensure_2d": False, "dtype": np.float64, "input_name": "sample_weight"}
    weights = np.atleast_1d(check_array(sample_weight, **options))
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: {weights.shape} for {n} rows; "
            "sample_weight must be a 1D array with one number for each row of X."
        )
    rows = np.flatnonzero(weights > 0)
    if len(rows) == 0:
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. sample_weight needs a "
            "positive number for at least one row; None counts every row once."
        )
    with np.errstate(over="ignore"):
        total = weights[rows].sum()
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight: the sum of the weights, up to {weights.max():g}, overflows float64. "
            "Divide them by their mean."
        )
    return weights[rows], rows


def check_magnitude(X: Any) -> None:
    """Refuse rows whose squared norm is not a number any more."""
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            finite = np.isfinite(values.astype(np.float64) ** 2).all()
        else:
            finite = np.isfinite(np.einsum("ij,ij->i", X, X, dtype=np.float64)).all()
    if not finite:
        raise ValueError(
            f"{NOT_FINITE} X holds numbers up to {np.abs(values).max():.1g}: scale it, for example "
            "with make_pipeline(StandardScaler(), ...)."
        )


def check_gram(K: NDArray[Any]) -> None:
    """Refuse a training matrix that is not square."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "Precomputed matrix must be a square matrix. "
            f"Input is a {K.shape[0]}x{K.shape[1]} matrix. With kernel='precomputed', X holds the "
            "kernel between all pairs of training samples."
        )


def canonical(X: Any) -> Any:
    """A CSR matrix with sorted, unique indices; the user's own is left as it is."""
    if not is_well_formed(X):
        raise ValueError(
            "X: its indptr or indices are not those of a CSR matrix of its shape; was it put "
            "together by hand? X.check_format() says more."
        )
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def is_well_formed(X: Any) -> bool:
    """Whether a CSR matrix refers to nothing but its own entries and columns."""
    starts, indices = X.indptr, X.indices
    return bool(
        len(starts) == X.shape[0] + 1
        and starts[0] == 0
        and (starts[1:] >= starts[:-1]).all()
        and starts[-1] <= min(len(indices), len(X.data))
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < X.shape[1]))
    )


def spread_of_scales(X: Any) -> tuple[float, float]:
    """The smallest positive and the largest root mean square of a feature."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    else:
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64) / max(len(X), 1)
    squares = squares[squares > 0]
    if len(squares) == 0:
        return 1.0, 1.0
    return float(np.sqrt(squares.min())), float(np.sqrt(squares.max()))
