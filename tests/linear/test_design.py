"""Products of a design matrix, by rows and by columns, against NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.linear.coordinate_newton import columns
from maxmargin.linear.problem import Design

KINDS = ["dense", "int32", "int64"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_bias = pytest.mark.parametrize("bias", [0.0, 1.0, 0.7])


def made(kind, dtype, bias, n=5000, d=23, n_jobs=1):
    """A design with empty rows and columns, and the matrix that it stands for."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, d)).astype(dtype)
    A[rng.random((n, d)) < (0.2 if kind == "dense" else 0.8)] = 0
    A[3], A[n - 1], A[:, 5] = 0, 0, 0
    full = A.astype(np.float64)
    if bias:
        full = np.hstack([full, np.full((n, 1), bias)])
    if kind == "dense":
        return Design(A, bias, n_jobs), full
    X = sp.csr_matrix(A)
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    return Design(X, bias, n_jobs), full


@every_kind
@every_type
@every_bias
@pytest.mark.parametrize("k", [None, 1, 8, 10, 16])
def test_products(kind, dtype, bias, k):
    design, A = made(kind, dtype, bias)
    rng = np.random.default_rng(0)
    extra = () if k is None else (k,)
    w, c = rng.normal(size=(A.shape[1], *extra)), rng.normal(size=(len(A), *extra))
    np.testing.assert_allclose(design.scores(w), A @ w, atol=1e-11)
    np.testing.assert_allclose(design.combine(c), A.T @ c, atol=1e-10)
    assert (design.n_rows, design.n_columns) == A.shape


@every_kind
@every_type
@every_bias
def test_squares(kind, dtype, bias):
    design, A = made(kind, dtype, bias)
    h = np.maximum(np.random.default_rng(0).normal(size=len(A)), 0)
    np.testing.assert_allclose(design.gram(h), A.T @ (h[:, None] * A), atol=1e-9)
    np.testing.assert_allclose(design.norms(), (A**2).sum(axis=1), atol=1e-12)


@every_kind
@pytest.mark.parametrize("k", [None, 10, 16])
def test_threads_do_not_change_a_bit(kind, k):
    one, A = made(kind, np.float32, 1.0, n=20000)
    two, _ = made(kind, np.float32, 1.0, n=20000, n_jobs=2)
    rng = np.random.default_rng(0)
    extra = () if k is None else (k,)
    w, c = rng.normal(size=(A.shape[1], *extra)), rng.normal(size=(len(A), *extra))
    assert np.array_equal(one.scores(w), two.scores(w))
    assert np.array_equal(one.combine(c), two.combine(c))
    h = rng.random(len(A))
    assert np.array_equal(one.gram(h), two.gram(h))
    by_columns = columns(one)
    c = rng.normal(size=len(A))
    assert np.array_equal(by_columns.combine(c, 1), by_columns.combine(c, 2))


@every_kind
@every_type
@every_bias
@pytest.mark.parametrize("n", [1, 63, 5000])
def test_columns(kind, dtype, bias, n):
    design, A = made(kind, dtype, bias, n=max(n, 4))
    by_columns = columns(design)
    c = np.random.default_rng(1).normal(size=len(A))
    assert (by_columns.rows, by_columns.columns) == A.shape
    np.testing.assert_allclose(by_columns.combine(c), A.T @ c, atol=1e-10)
    np.testing.assert_allclose(by_columns.weighted_norms(c**2), c**2 @ A**2, atol=1e-10)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="CSR"):
        _core.csr_columns(np.ones(1), np.array([5]), np.array([0, 1]), 2, 0.0)
    by_columns = columns(made("dense", np.float64, 1.0)[0])
    with pytest.raises(ValueError, match="c: it has 3 numbers, not 5000"):
        by_columns.combine(np.zeros(3))
