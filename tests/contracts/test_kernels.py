"""What every kernel promises: one value per pair, bit for bit, and its items' interface."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial import distance
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import pairwise

from maxmargin import SVC, _core
from maxmargin.kernels import (
    RBF,
    FromFunction,
    Items,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    native,
)

VECTOR_KERNELS = [
    Linear(),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    RBF(gamma=0.1),
    Sigmoid(gamma=0.1, coef0=0.5),
    Laplacian(gamma=0.1),
]
DTYPES = [np.float32, np.float64]


class Overlap(Kernel):
    """The least that somebody writes for a kernel of their own."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def block(self, X, Z):
        return self.scale * (np.asarray(X)[:, None, :] == np.asarray(Z)[None, :, :]).sum(axis=2)


FOREIGN_KERNELS = [
    Overlap(scale=0.5),
    FromFunction(pairwise.rbf_kernel),
    FromFunction(pairwise.rbf_kernel, blockwise=True),
]
vector_kernels = pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
all_kernels = pytest.mark.parametrize("kernel", VECTOR_KERNELS + FOREIGN_KERNELS, ids=repr)


def rows(n, d=11, dtype=np.float64, seed=0):
    """Rows with a third of zeros, duplicates among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.67)
    X[n // 2] = X[0]
    return X.astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def reference(kernel, X, Z):
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    name = type(kernel).__name__.lower()
    return pairwise.pairwise_kernels(X, Z, metric=name, **kernel.get_params())


# ---- Values ----------------------------------------------------------------------------------


@vector_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_scikit_learns(kernel, dtype):
    X, Z = rows(40, dtype=dtype), rows(23, dtype=dtype, seed=1)
    K = kernel(X, Z)
    assert K.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(K, reference(kernel, X, Z), rtol=tolerance, atol=tolerance)


@vector_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pair_has_one_bit_pattern(kernel, dtype):
    X, Z = rows(70, dtype=dtype), rows(41, dtype=dtype, seed=1)
    fitted = kernel.fit(X)
    a, b = fitted.prepare(X), fitted.prepare(Z)
    K = a.tile(None, b)
    assert same_bits(K, np.ascontiguousarray(b.tile(None, a).T))
    assert same_bits(K, a.tile(None, b, n_jobs=2))
    G = a.tile(None, a)
    assert same_bits(G, np.ascontiguousarray(G.T))
    assert same_bits(np.diag(G).copy(), a.diagonal().astype(dtype))

    rng = np.random.default_rng(2)
    for _ in range(20):
        r, c = rng.integers(70, size=rng.integers(12)), rng.integers(41, size=rng.integers(30))
        assert same_bits(a.tile(r, b, c), K[np.ix_(r, c)])
        assert same_bits(a.subset(r).tile(None, b.subset(c)), K[np.ix_(r, c)])
    for i, j in [(0, 0), (69, 40), (16, 15)]:
        alone = fitted.prepare(X[i : i + 1]).tile(None, fitted.prepare(Z[j : j + 1]))
        assert same_bits(alone, K[i : i + 1, j : j + 1])


@vector_kernels
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_is_dense_bit_for_bit(kernel, dtype, indices, container):
    """But for RBF, whose distances sparse rows take from products."""
    X, Z = rows(50, d=30, dtype=dtype), rows(33, d=30, dtype=dtype, seed=1)
    K = kernel(X, Z)
    sparse_X, sparse_Z = container(X), container(Z)
    for S in (sparse_X, sparse_Z):
        S.indices, S.indptr = S.indices.astype(indices), S.indptr.astype(indices)
    sparse_K = kernel(sparse_X, sparse_Z)
    assert same_bits(K, kernel(sparse_X, Z))
    assert same_bits(sparse_K, kernel(X, sparse_Z))
    if isinstance(kernel, RBF):
        np.testing.assert_allclose(sparse_K, K, rtol=1e-13 if dtype == np.float64 else 1e-6)
    else:
        assert same_bits(sparse_K, K)
    items, sparse_items = kernel.fit(X).prepare(X), kernel.fit(X).prepare(sparse_X)
    assert same_bits(items.diagonal(), sparse_items.diagonal())


@vector_kernels
def test_unsorted_and_repeated_sparse_entries(kernel):
    X = sparse.csr_array(
        (np.array([2.0, 1.0, 3.0, 4.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3)
    )
    K = kernel(X)
    assert same_bits(K, kernel(X.toarray()))
    assert X.indices.tolist() == [2, 0, 1, 1]  # the user's matrix is as it was


@vector_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_float32_and_float64_meet(kernel, dtype):
    X, Z = rows(9), rows(7, dtype=np.float32, seed=1)
    for left, right in [(X, Z), (Z, X)]:
        K = kernel(left, right)
        assert same_bits(K, kernel(left.astype(np.float64), right.astype(np.float64)))
    items = kernel.fit(X).prepare(X, dtype=dtype)
    assert items.dtype == dtype
    assert same_bits(items.tile(None, items), kernel(X.astype(dtype)))


def test_no_distance_is_negative_and_copies_have_kernel_one():
    X = rows(20) * 1e6 + 1e9
    K = RBF(gamma=1e-3)(X)
    assert (K <= 1).all() and (K >= 0).all()
    assert (np.diag(K) == 1).all() and K[0, 10] == 1


@pytest.mark.parametrize("offset", [0, 1000, 1e6])
def test_distances_keep_their_digits_far_from_the_origin(offset):
    X, Z = rows(40) + offset, rows(23, seed=1) + offset
    exact = np.exp(-0.1 * distance.cdist(X, Z, "sqeuclidean"))
    np.testing.assert_allclose(RBF(gamma=0.1)(X, Z), exact, rtol=1e-12)
    K = RBF(gamma=0.1)(X)
    assert same_bits(K, K.T.copy()) and (np.diag(K) == 1).all()


def test_data_far_from_the_origin_have_a_certificate():
    X, y = load_iris(return_X_y=True)
    svc = SVC().fit(X + 1000, y)
    assert np.isfinite(svc.dual_gap_) and svc.status_.startswith("converged")


def test_far_points_and_gamma_zero():
    X = np.array([[0.0], [1e100], [30.0]])
    np.testing.assert_array_equal(RBF(gamma=1.0)(X), np.eye(3))
    np.testing.assert_array_equal(RBF(gamma=0.0)(X), np.ones((3, 3)))
    assert RBF(gamma=1e300)(X)[0, 1] == 0
    assert Polynomial(degree=0)(X[[0, 2]]).tolist() == [[1, 1], [1, 1]]


@pytest.mark.skipif("MAXMARGIN_ISA" in os.environ, reason="runs these tests, once is enough")
@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512"])
def test_every_instruction_set(isa):
    if isa == _core.instruction_set():
        pytest.skip("this one is running")
    environment = {**os.environ, "MAXMARGIN_ISA": isa}
    import_it = [sys.executable, "-c", "import maxmargin._core"]
    done = subprocess.run(import_it, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        assert "ImportError: the environment variable MAXMARGIN_ISA" in done.stderr
        pytest.skip(f"no {isa} here")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    tests += ["-k", "not child and not ctrl_c"]
    done = subprocess.run(tests, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_an_unknown_instruction_set_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", "import maxmargin._core"],
        env={**os.environ, "MAXMARGIN_ISA": "abacus"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ImportError" in done.stderr and "abacus" in done.stderr and "generic" in done.stderr


# ---- Items -----------------------------------------------------------------------------------


@all_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_items_keep_their_contract(kernel, dtype):
    X, Z = rows(30, dtype=dtype), rows(17, dtype=dtype, seed=1)
    fitted = kernel.fit(X)
    a, b = fitted.prepare(X), fitted.prepare(Z)
    assert isinstance(a, Items)
    assert len(a) == 30 and a.dtype == dtype
    K = a.tile(None, b)
    assert K.shape == (30, 17) and K.dtype == dtype
    r, c = np.array([3, 3, 29]), np.array([16, 0])
    np.testing.assert_allclose(a.tile(r, b, c), K[np.ix_(r, c)], rtol=1e-6)
    np.testing.assert_allclose(a.tile(None, a).diagonal(), a.diagonal(), rtol=1e-6)
    assert a.diagonal().dtype == np.float64

    some = b.subset(c)
    assert len(some) == 2 and some.dtype == dtype
    np.testing.assert_allclose(a.tile(r, some), K[np.ix_(r, c)], rtol=1e-6)

    V = np.random.default_rng(3).normal(size=(17, 2))
    V[4] = 0
    np.testing.assert_allclose(a.multiply(b, V), K @ V, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a.multiply(some, V[:2]), K[:, c] @ V[:2], rtol=1e-5, atol=1e-5)


@all_kernels
def test_native_code_sees_the_same_items(kernel):
    X = rows(30)
    items = kernel.fit(X).prepare(X)
    same = native(items)
    assert isinstance(same, _core.Items) and len(same) == 30
    np.testing.assert_allclose(same.tile(None, same), items.tile(None, items), rtol=1e-12)
    np.testing.assert_allclose(same.diagonal(), items.diagonal(), rtol=1e-12)
    V = np.eye(30)[:, :4]
    np.testing.assert_allclose(same.multiply(same, V), items.tile(None, items)[:, :4], rtol=1e-12)
    part = same.subset(np.array([5, 2]))
    np.testing.assert_allclose(part.tile(None, part), kernel(X[[5, 2]]), rtol=1e-12)


@vector_kernels
def test_multiply_has_the_same_bits_for_any_number_of_threads(kernel):
    X, Z = rows(300), rows(700, seed=1)
    fitted = kernel.fit(X)
    a, b = fitted.prepare(X), fitted.prepare(Z)
    V = np.random.default_rng(3).normal(size=(700, 3))
    one = a.multiply(b, V, 1)
    np.testing.assert_allclose(one, a.tile(None, b) @ V, rtol=1e-9, atol=1e-9)
    assert all(same_bits(one, a.multiply(b, V, n_jobs)) for n_jobs in (2, 3, None))
    V[np.arange(700) % 5 > 0] = 0
    assert same_bits(a.multiply(b, V, 1), a.multiply(b, V, 2))
    np.testing.assert_allclose(a.multiply(b, V, 1), a.tile(None, b) @ V, rtol=1e-9, atol=1e-9)
    assert same_bits(a.multiply(b, np.zeros((700, 2))), np.zeros((300, 2)))


@vector_kernels
def test_rows_do_not_depend_on_their_company(kernel):
    """A prediction for one row is that for the same row among others."""
    X, Z = rows(100), rows(600, seed=1)
    fitted = kernel.fit(X)
    b, V = fitted.prepare(Z), np.random.default_rng(3).normal(size=(600, 2))
    together = fitted.prepare(X).multiply(b, V)
    for i in (0, 31, 32, 99):
        assert same_bits(fitted.prepare(X[i : i + 1]).multiply(b, V), together[i : i + 1])


@vector_kernels
def test_empty_and_single(kernel):
    X = rows(3)
    fitted = kernel.fit(X)
    none, one, three = (fitted.prepare(X[:n]) for n in (0, 1, 3))
    assert none.tile(None, three).shape == (0, 3) and three.tile(None, none).shape == (3, 0)
    assert none.diagonal().shape == (0,) and none.multiply(three, np.ones((3, 2))).shape == (0, 2)
    assert (three.multiply(none, np.ones((0, 2))) == 0).all()
    assert len(three.subset(np.array([], dtype=np.int64))) == 0
    assert same_bits(one.tile(None, three), three.tile(np.array([0]), three))
    assert kernel(sparse.csr_array((2, 5))).shape == (2, 2)
    assert fitted.prepare(sparse.csr_array((0, 11))).tile(None, three).shape == (0, 3)


# ---- Arrays as they come ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_borrowed_whatever_keeps_them(dtype, tmp_path):
    X = rows(60, dtype=dtype)
    K = RBF(gamma=0.2)(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for Z in (read_only, mapped, np.asfortranarray(X), X[::-1][::-1], X.tolist()):
        assert same_bits(RBF(gamma=0.2)(Z).astype(dtype), K)
    S = sparse.csr_array(X)
    K = RBF(gamma=0.2)(S)
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    assert same_bits(RBF(gamma=0.2)(S), K)


def test_items_keep_their_array_alive_and_let_go_of_it():
    class Watched(np.ndarray):
        pass

    X = rows(40).view(Watched)
    watch = weakref.ref(X)
    fitted = RBF(gamma=0.2).fit(X)
    items = _core.dense_items(fitted.native_kernel(), X)
    K = items.tile(None, items)
    del X
    gc.collect()
    assert watch() is not None
    assert same_bits(items.tile(None, items), K)
    del items
    gc.collect()
    assert watch() is None


def test_other_types_become_float64():
    X = np.arange(12).reshape(4, 3)
    for Z in (X, X.astype(np.int8), X.astype(np.float16), X.tolist(), X > 5):
        assert Linear()(Z).dtype == np.float64
    assert Linear()(X).tolist() == (X @ X.T).tolist()


# ---- Bad input -------------------------------------------------------------------------------


@vector_kernels
def test_bad_data_is_refused(kernel):
    X = rows(5)
    fitted = kernel.fit(X)
    items = fitted.prepare(X)
    with pytest.raises(ValueError, match="features"):
        fitted.prepare(X[:, :3])
    for bad in (np.nan, np.inf, 1e200):
        Z = X.copy()
        Z[3, 2] = bad
        for data in (Z, sparse.csr_array(Z)):
            with pytest.raises(ValueError, match=r"row 3 is too long .* NaN or infinity"):
                fitted.prepare(data)
    with pytest.raises(ValueError, match="2D"):
        fitted.prepare(X[0])
    other = type(kernel)(**kernel.get_params()).fit(X[:, :3]).prepare(X[:, :3])
    with pytest.raises(ValueError, match="same fitted kernel"):
        items.tile(None, other)
    for i in (-1, 5, 2**62):
        with pytest.raises(IndexError, match="not the index of one of 5"):
            items.tile(np.array([i]), items)
        with pytest.raises(IndexError, match="cols"):
            items.tile(None, items, np.array([0, i]))
        with pytest.raises(IndexError):
            items.subset(np.array([i]))
    with pytest.raises(ValueError, match="V: it has 4 rows"):
        items.multiply(items, np.ones((4, 1)))
    with pytest.raises(TypeError):
        items.tile(None, X)
    with pytest.raises(ValueError, match="n_jobs"):
        items.multiply(items, np.ones((5, 1)), 0)


def test_hostile_sparse_matrices_are_refused():
    kernel = Linear().fit(np.eye(3)).native_kernel()
    data = np.ones(3)
    indices, starts = np.array([0, 1, 2]), np.array([0, 1, 2, 3])
    assert len(_core.csr_items(kernel, data, indices, starts, 3)) == 3
    for bad_indices, bad_starts, n_features in [
        ([0, 1, 3], [0, 1, 2, 3], 3),
        ([0, -1, 2], [0, 1, 2, 3], 3),
        ([2, 1, 0], [0, 3], 3),
        ([1, 1, 2], [0, 3], 3),
        ([0, 1, 2], [0, 2, 1, 3], 3),
        ([0, 1, 2], [0, 1, 2, 4], 3),
        ([0, 1, 2], [1, 2, 3], 3),
        ([0, 1, 2], [0, 2**40, 3], 3),
        ([0, 1, 2], [0, -5, 3], 3),
        ([0, 1, 2], [], 3),
        ([0, 1], [0, 1, 2], 3),
        ([0, 1, 2], [0, 3], -1),
    ]:
        with pytest.raises(ValueError, match="X: "):
            _core.csr_items(
                kernel,
                data,
                np.array(bad_indices, dtype=np.int64),
                np.array(bad_starts, dtype=np.int64),
                n_features,
            )


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(gamma="scale"), "gamma"),
        (RBF(gamma=-1), "gamma"),
        (RBF(gamma=np.nan), "gamma"),
        (Laplacian(gamma=np.inf), "gamma"),
        (Sigmoid(coef0="1"), "coef0"),
        (Polynomial(degree=2.5), "degree"),
        (Polynomial(degree=-1), "degree"),
        (Polynomial(degree=2**40), "degree"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(kernel, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {type(kernel).__name__}"):
        kernel(rows(3))


def test_kernels_that_overflow_are_refused():
    with pytest.raises(ValueError, match="row 0 is too long"):
        Polynomial(degree=300)(np.array([[1e3]]))
    with pytest.raises(ValueError, match="Scale the features"):
        Linear()(np.array([[1e25]], dtype=np.float32))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.ones((1, 1)), "shape"),
        (np.ones(9), "shape"),
        (np.full((3, 3), np.nan), "NaN"),
        ([["a"] * 3] * 3, "could not convert"),
    ],
)
@pytest.mark.parametrize("blockwise", [False, True])
def test_functions_that_misbehave_are_refused(returned, message, blockwise):
    X = rows(3)
    kernel = FromFunction(lambda X, Z: returned, blockwise=blockwise)
    with pytest.raises(ValueError, match=message):
        kernel(X)
    with pytest.raises(ValueError, match=message):
        items = native(kernel.fit(X).prepare(X))
        items.tile(None, items)


def test_errors_in_a_kernel_come_back_as_they_are():
    class Broken(Kernel):
        def block(self, X, Z):
            raise ZeroDivisionError("mine")

    X = rows(600)
    items = native(Broken().fit(X).prepare(X))
    for call in (
        lambda: items.tile(None, items),
        items.diagonal,
        lambda: items.multiply(items, np.ones((600, 1))),
    ):
        with pytest.raises(ZeroDivisionError, match="mine"):
            call()
    with pytest.raises(NotImplementedError, match="does not define block"):
        Kernel()(X)


# ---- Matrices and functions ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_precomputed(dtype):
    X, Z = rows(20, dtype=dtype), rows(8, dtype=dtype, seed=1)
    K, K_new = RBF()(X), RBF()(Z, X)
    fitted = Precomputed().fit(K)
    items, new = fitted.prepare(K), fitted.prepare(K_new)
    assert len(new) == 8 and new.dtype == dtype
    assert same_bits(items.tile(None, items), K) and same_bits(new.tile(None, items), K_new)
    some = np.array([17, 2, 5])
    for chosen in (items.subset(some), fitted.select(some)):
        assert same_bits(new.tile(None, chosen), np.ascontiguousarray(K_new[:, some]))
        V = np.random.default_rng(0).normal(size=(3, 2))
        np.testing.assert_allclose(new.multiply(chosen, V), K_new[:, some] @ V, rtol=1e-6)
    assert same_bits(Precomputed()(K), K)
    np.testing.assert_array_equal(items.diagonal(), np.diag(K))
    assert same_bits(native(K).tile(None, native(K)), K)


def test_precomputed_is_checked():
    K = np.eye(4)
    fitted = Precomputed().fit(K)
    with pytest.raises(ValueError, match="square"):
        Precomputed().fit(np.ones((3, 4)))
    with pytest.raises(ValueError, match="not symmetric"):
        Precomputed().fit(np.triu(np.ones((300, 300))))
    Precomputed().fit(K + 1e-9 * np.random.default_rng(0).normal(size=(4, 4)))
    with pytest.raises(ValueError, match=r"X.shape\[1\] = 3 should be equal to 4"):
        fitted.prepare(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        Precomputed().fit(K * np.nan)
    with pytest.raises(TypeError, match="sparse precomputed"):
        Precomputed().fit(sparse.eye_array(3).tocsr())
    with pytest.raises(ValueError, match="numbered 0 to 3"):
        fitted.select(np.array([4]))
    new = fitted.prepare(np.ones((2, 4)))
    with pytest.raises(ValueError, match="not square"):
        new.tile(None, new)
    with pytest.raises(ValueError, match="no rows of their own"):
        fitted.select(np.array([0])).diagonal()
    with pytest.raises(ValueError, match="Z: "):
        Precomputed()(K, K)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gram_matrices_are_symmetric_up_to_rounding(dtype):
    X = rows(500, dtype=dtype)
    centring = np.eye(500, dtype=dtype) - np.ones((500, 500), dtype=dtype) / 500
    for real in (pairwise.rbf_kernel(X), X @ X.T, centring @ (X @ X.T) @ centring):
        Precomputed().fit(real)

    K = pairwise.rbf_kernel(X)
    noise = np.random.default_rng(0).uniform(-1, 1, size=K.shape).astype(dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-8
    with pytest.raises(ValueError, match="not symmetric"):
        Precomputed().fit(K + 10 * tolerance * noise)
    with pytest.raises(ValueError, match="kernel: it is not symmetric"):
        native(FromFunction(lambda X, Z: K + 10 * tolerance * noise).fit(X).prepare(X))

    rough = K + tolerance / 10 * noise
    assert not np.array_equal(rough, rough.T)
    before = rough.copy()
    for items in (
        Precomputed().fit(rough).prepare(rough),
        Precomputed().fit(rough.T).prepare(rough.T),
        native(FromFunction(lambda X, Z: rough).fit(X).prepare(X)),
    ):
        G = items.tile(None, items)
        assert same_bits(G, np.ascontiguousarray(G.T))
        assert same_bits(G, (rough + rough.T) / 2)
    assert same_bits(rough, before)

    crooked = np.triu(K)  # new items, as many as there are training items
    new = Precomputed().fit(K).prepare(crooked)
    assert same_bits(new.tile(None, Precomputed().fit(K).prepare(K)), crooked)


def test_a_function_is_called_once_and_with_what_is_needed():
    calls = []

    def f(X, Z):
        calls.append((X.shape[0], Z.shape[0]))
        return X @ Z.T

    X, Z = rows(40), rows(9, seed=1)
    fitted = FromFunction(f).fit(X)
    items = fitted.prepare(X)
    native(items), native(items), items.diagonal(), items.tile(np.array([3]), items)
    items.multiply(items, np.ones((40, 1)))
    part = items.subset(np.arange(10))
    part.tile(None, part)
    assert calls == [(40, 40)]
    np.testing.assert_allclose(
        fitted.prepare(Z).multiply(part, np.ones((10, 1))), (Z @ X[:10].T).sum(axis=1)[:, None]
    )
    assert calls == [(40, 40), (9, 10)]

    calls.clear()
    items = native(FromFunction(f, blockwise=True).fit(X).prepare(X))
    items.tile(np.array([3, 4]), items, np.arange(5))
    assert calls == [(2, 5)]


def test_functions_may_return_sparse_matrices_and_take_them():
    X = sparse.csr_array(rows(12))
    for blockwise in (False, True):
        K = FromFunction(lambda X, Z: X @ Z.T, blockwise=blockwise)(X)
        np.testing.assert_allclose(K, Linear()(X))


def test_a_kernel_of_objects():
    class SameStart(Kernel):
        def block(self, X, Z):
            return [[float(x[0] == z[0]) for z in Z] for x in X]

    words = ["one", "two", "three", "four"]
    assert SameStart()(words).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    items = SameStart().fit(words).prepare(words)
    assert items.multiply(items, np.ones((4, 1))).ravel().tolist() == [1, 2, 2, 1]
    assert native(items).subset(np.array([1, 2])).diagonal().tolist() == [1, 1]


# ---- Kernels are values ----------------------------------------------------------------------


@all_kernels
def test_kernels_are_values(kernel):
    copy = clone(kernel)
    assert copy == kernel and hash(copy) == hash(kernel) and copy is not kernel
    assert kernel != object() and kernel != Precomputed()
    thawed = pickle.loads(pickle.dumps(kernel))
    assert thawed == kernel
    X = rows(6)
    fitted = pickle.loads(pickle.dumps(kernel.fit(X)))
    np.testing.assert_array_equal(
        fitted.prepare(X).tile(None, fitted.prepare(X)), kernel(X, X.copy())
    )


def test_repr_is_the_constructor():
    for kernel in [*VECTOR_KERNELS, Overlap(scale=0.5), Precomputed()]:
        assert eval(repr(kernel)) == kernel
    assert repr(Polynomial()) == "Polynomial(degree=3, gamma=1.0, coef0=0.0)"


def test_different_parameters_are_different_kernels():
    assert RBF(gamma=1) != RBF(gamma=2) and RBF(gamma=1) == RBF(gamma=1.0)
    assert RBF() != Laplacian()
    assert RBF.from_sigma(2.0) == RBF(gamma=1 / 8)
    assert len({RBF(gamma=0.5), RBF(gamma=0.5), RBF(gamma=0.25)}) == 2
    assert RBF().set_params(gamma=3) == RBF(gamma=3)


def test_equal_kernels_have_equal_hashes():
    assert hash(RBF(gamma=1)) == hash(RBF(gamma=1.0))


def test_tags_say_what_a_kernel_takes():
    assert all(kernel.tags.sparse and not kernel.tags.pairwise for kernel in VECTOR_KERNELS)
    assert Precomputed().tags.pairwise and not Precomputed().tags.sparse
    assert FromFunction(np.dot).tags.sparse
    assert not Overlap().tags.sparse and not Overlap().tags.pairwise


# ---- Threads and processes -------------------------------------------------------------------


def test_many_python_threads_at_once():
    X = rows(200)
    kernel = RBF(gamma=0.1)
    K, V = kernel(X), np.ones((200, 2))
    product = kernel.fit(X).prepare(X).multiply(kernel.fit(X).prepare(X), V)
    failures = []

    def work():
        for _ in range(20):
            items = kernel.fit(X).prepare(X)
            if not same_bits(items.tile(None, items, n_jobs=2), K):
                failures.append("tile")
            if not same_bits(items.multiply(items, V, 2), product):
                failures.append("multiply")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_interpreter_is_free_meanwhile():
    """Another thread goes on while a long product runs."""
    X = rows(6000, d=60)
    items = RBF(gamma=0.1).fit(X).prepare(X)
    ticks, done = 0, threading.Event()

    def work():
        items.multiply(items, np.ones((6000, 1)), 1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.002):
        ticks += 1
    thread.join()
    assert ticks >= 3


def test_ctrl_c_stops_a_long_product():
    script = """
import _thread, signal, threading, time
import numpy as np
from maxmargin.kernels import RBF
X = np.random.default_rng(0).normal(size=(40000, 50))
items = RBF().fit(X).prepare(X)
start = time.monotonic()
threading.Timer(0.3, _thread.interrupt_main).start()
try:
    items.multiply(items, np.ones((40000, 1)), 2)
except KeyboardInterrupt:
    print("stopped" if time.monotonic() - start < 1.5 else "late")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip() == "stopped", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_can_go_on():
    script = """
import os
import numpy as np
from maxmargin.kernels import RBF
X = np.random.default_rng(0).normal(size=(500, 5))
items = RBF().fit(X).prepare(X)
V = np.ones((500, 1))
before = items.multiply(items, V, 2)
child = os.fork()
same = (items.multiply(items, V, 2) == before).all()
if child == 0:
    os._exit(0 if same else 1)
print(same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.strip() == "True", done.stderr


def test_sums_over_python_items_have_the_bits_of_those_over_their_matrix():
    """So that no result depends on whether memory allowed to keep the matrix."""

    class Gaussian(Kernel):
        def block(self, X, Z):
            return np.exp(-0.3 * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    items = native(Gaussian().fit(X).prepare(X))
    matrix = native(items.tile(None, items, None, 1, in_float64=True))
    V = rng.normal(size=(1500, 2))
    np.testing.assert_array_equal(items.multiply(items, V, 1), matrix.multiply(matrix, V, 1))
