"""Kernels of vectors, dense or sparse: native code computes them.

    Linear        x.z
    Polynomial    (gamma x.z + coef0)^degree
    RBF           exp(-gamma |x - z|^2)
    Sigmoid       tanh(gamma x.z + coef0)
    Laplacian     exp(-gamma |x - z|_1)

Data are kept as float32 or float64, as they come; products and sums are always float64, and taken
in the order of the features, so that a pair has one value wherever it is computed.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.utils import check_array

from maxmargin import _core
from maxmargin._compat import Interval
from maxmargin.kernels.base import FittedKernel, Kernel

NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
ANY_NUMBER = [Interval(Real, None, None, closed="neither")]


class VectorKernel(Kernel):
    """Base class of the kernels of vectors; `native_name` is what native code calls them."""

    native_name: str
    _parameter_constraints: dict[str, list[Any]] = {}

    def fit(self, X: Any, y: None = None) -> FittedVectorKernel:
        """Learn the number of features, and check the parameters."""
        return FittedVectorKernel(self, _as_vectors(X).shape[1])

    def native_kernel(self) -> _core.Kernel:
        """Return the kernel as native code knows it, its parameters checked."""
        self._validate_params()
        return _core.Kernel(self.native_name, **self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FittedVectorKernel(FittedKernel):
    """A kernel of vectors with `n_features_in` features."""

    def __init__(self, kernel: VectorKernel, n_features_in: int) -> None:
        super().__init__(kernel)
        self.n_features_in = n_features_in
        self.native_kernel()

    def native_kernel(self) -> _core.Kernel:
        assert isinstance(self.kernel, VectorKernel)
        return self.kernel.native_kernel()

    def prepare(self, X: Any, dtype: DTypeLike | None = None) -> _core.Items:
        """Make vectors ready: C-ordered arrays and CSR matrices are borrowed, others copied.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        dtype : {float32, float64}, optional
            The type of data and tiles; by default float32 if X has it, float64 otherwise.
        """
        X = _as_vectors(X, dtype)
        if X.shape[1] != self.n_features_in:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self.kernel).__name__} was fitted with "
                f"{self.n_features_in} features"
            )
        if not sparse.issparse(X):
            return _core.dense_items(self.native_kernel(), X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        starts = np.ascontiguousarray(X.indptr, dtype=X.indices.dtype)
        return _core.csr_items(self.native_kernel(), X.data, X.indices, starts, X.shape[1])


class Linear(VectorKernel):
    """The dot product, k(x, z) = x.z."""

    native_name = "linear"


class Polynomial(VectorKernel):
    """The polynomial kernel, k(x, z) = (gamma x.z + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, default=1.0
    coef0 : float, default=0.0
    """

    native_name = "polynomial"
    _parameter_constraints = {
        "degree": [Interval(Integral, 0, 2**31 - 1, closed="both")],
        "gamma": NOT_NEGATIVE,
        "coef0": ANY_NUMBER,
    }

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0


class RBF(VectorKernel):
    """The Gaussian kernel, k(x, z) = exp(-gamma |x - z|^2).

    Parameters
    ----------
    gamma : float, default=1.0
        How fast the similarity falls with the squared distance.
    """

    native_name = "rbf"
    _parameter_constraints = {"gamma": NOT_NEGATIVE}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    @classmethod
    def from_sigma(cls, sigma: float) -> RBF:
        """Return the kernel exp(-|x - z|^2 / (2 sigma^2)), of width `sigma`."""
        return cls(gamma=1 / (2 * sigma**2))


class Sigmoid(VectorKernel):
    """The kernel of the neural-network lectures, k(x, z) = tanh(gamma x.z + coef0).

    It is not positive definite: a machine on it finds a stationary point, not an optimum.

    Parameters
    ----------
    gamma : float, default=1.0
    coef0 : float, default=0.0
    """

    native_name = "sigmoid"
    _parameter_constraints = {"gamma": NOT_NEGATIVE, "coef0": ANY_NUMBER}

    def __init__(self, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0


class Laplacian(VectorKernel):
    """The Laplacian kernel, k(x, z) = exp(-gamma |x - z|_1) with the sum of absolute differences.

    Parameters
    ----------
    gamma : float, default=1.0
    """

    native_name = "laplacian"
    _parameter_constraints = {"gamma": NOT_NEGATIVE}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma


def _as_vectors(X: Any, dtype: DTypeLike | None = None) -> Any:
    """Return X as a C-ordered array or a CSR matrix of float32 or float64, itself if it is one.

    NaN and infinity are found where the norms are taken, in native code.
    """
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32] if dtype is None else dtype,
        "order": "C",
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
        "input_name": "X",
    }
    return check_array(X, **options)
