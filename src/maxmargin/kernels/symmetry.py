"""Symmetry of kernel matrices: k(x, z) = k(z, x), up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.kernels.base import n_rows

SAMPLE = 100
"""Items whose kernel matrix is looked at where there are too many to look at all."""

ROUNDING = {"float32": 1e-5, "float64": 1e-8}
"""By how much of its largest value a Gram matrix may differ from its transpose."""


def asymmetry(K: np.ndarray, dtype: DTypeLike | None = None) -> float:
    """The largest |K - K'|, in units of what rounding explains, in K or in data of this dtype."""
    if K.size == 0:
        return 0.0
    largest = max(float(K.max()), -float(K.min()))
    if largest == 0:
        return 0.0
    # Block by block, to need no copy of K.
    blocks = [slice(first, first + 256) for first in range(0, n_rows(K), 256)]
    with np.errstate(over="ignore"):
        difference = max(float(np.abs(K[rows] - K[:, rows].T).max()) for rows in blocks)
    rounding = max(ROUNDING[np.dtype(name).name] for name in (K.dtype, dtype or K.dtype))
    return difference / largest / rounding


def check_symmetric(K: np.ndarray, dtype: DTypeLike | None = None) -> None:
    """Refuse kernel values f(X, X) that no symmetric kernel has."""
    if asymmetry(K, dtype) > 1:
        raise ValueError(
            "kernel: it is not symmetric, f(X, X) differs from f(X, X).T; make it so, for example "
            "as (f(X, Z) + f(Z, X).T) / 2"
        )


def without_rounding(K: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
    """K, or its symmetric part where K is symmetric up to rounding.

    So no bit of a result depends on the triangle that was read.
    """
    if not 0 < asymmetry(K, dtype) <= 1:
        return K
    half = 0.5 * K
    return half + half.T


def sample(items: Any, n_threads: int | None = None, most: int = SAMPLE) -> np.ndarray:
    """Return the kernel matrix of the items; of some, spread over all, where they are more.

    Refused where it is not symmetric: a kernel written in Python may be anything.  It may also
    compute in float32 what it returns as float64, which explains differences of that size.
    """
    n = len(items)
    few = n if n <= most else SAMPLE
    rows = np.unique(np.linspace(0, n - 1, few).astype(np.int64))
    K = items.tile(rows, items, rows, n_threads, in_float64=True)
    check_symmetric(K, np.float32)
    return K
