"""Degenerate and hostile input: it works, or a ValueError names the parameter and the remedy."""

import mmap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from maxmargin import LSSVC, LSSVR, SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, RankSVM
from maxmargin.exceptions import NotSeparableError
from maxmargin.kernels import RBF, FromFunction, Kernel, native
from maxmargin.problem import c_svc, epsilon_svr
from maxmargin.recession import recession

KERNELS = ["linear", "poly", "rbf", "sigmoid", "laplacian"]
rng = np.random.default_rng(0)
X, Y = make_classification(80, 4, flip_y=0.1, random_state=0)


def quietly(fit):
    """Run a fit that may say that it did not converge, with its gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit()


# ------------------------------------------------------------------ strange data


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1.0, 1e12])
def test_duplicates_with_both_labels(kernel, C):
    rows = np.repeat(X[:20], 2, axis=0)
    labels = np.tile([0, 1], 20)
    machine = quietly(lambda: SVC(kernel=kernel, C=C, max_iter=100_000).fit(rows, labels))
    assert machine.predict(rows).shape == labels.shape
    assert np.isfinite(machine.decision_function(rows)).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_constant_features(kernel, Machine):
    with_constant = np.hstack([X, np.full((len(X), 2), 7.0)])
    assert (
        Machine(kernel="linear", **nu(Machine)).fit(with_constant, Y).score(with_constant, Y) > 0.7
    )
    nothing = np.ones((10, 3))
    labels = np.tile([0, 1], 5)
    if Machine is NuSVC:
        with pytest.raises(ValueError, match=r"nu=0.5 is too small|not positive semi-definite"):
            NuSVC(kernel=kernel).fit(nothing, labels)
    else:
        assert set(SVC(kernel=kernel).fit(nothing, labels).predict(nothing)) <= {0, 1}


@pytest.mark.parametrize("value", [7.0, 0.1, -3.3, 0.0])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_constant_features_have_the_variance_zero(value, container):
    nothing = np.full((10, 3), value)
    for weights in (None, rng.uniform(0.1, 2, 10)):
        machine = SVC().fit(container(nothing), np.tile([0, 1], 5), weights)
        assert machine._gamma == 1.0


def nu(Machine):
    return {"nu": 0.6} if Machine is NuSVC else {}


@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_one_sample_of_each_class(Machine):
    machine = Machine(kernel="linear", **nu(Machine)).fit([[0.0], [2.0]], ["a", "b"])
    assert_array_equal(machine.predict([[0.5], [1.5]]), ["a", "b"])
    assert_allclose(machine.decision_function([[1.0]]), [0], atol=1e-12)
    machine = SVC().fit(np.eye(4), [3, 1, 2, 0])
    assert_array_equal(machine.predict(np.eye(4)), [3, 1, 2, 0])


@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_one_class_only(Machine):
    with pytest.raises(ValueError, match=r"has to be greater than one; got 1 class\. y must"):
        Machine().fit(X, np.zeros(len(X)))
    message = (
        "specified nu is infeasible.*class" if Machine is NuSVC else "belong to the same class"
    ) + ".*sample_weight"
    with pytest.raises(ValueError, match=message):
        Machine().fit(X, Y, sample_weight=Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_nan_and_infinity(bad, container):
    rows = X.copy()
    rows[3, 1] = bad
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        SVC().fit(container(rows), Y)
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        SVC().fit(container(X), Y).predict(container(rows))
    with pytest.raises(ValueError, match=r"sample_weight contains (NaN|infinity)"):
        SVC().fit(X, Y, np.where(np.arange(len(X)) == 2, bad, 1.0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS)
def test_numbers_too_large(kernel, dtype):
    rows = np.full((4, 2), np.finfo(np.float64).max) * rng.uniform(0.1, 1, (4, 2))
    with pytest.raises(ValueError, match=r"or intercepts are not finite.*X holds.*scale it"):
        SVC(kernel=kernel).fit(rows, [0, 1, 0, 1])
    big = (np.finfo(np.float32).max / 4 * rng.uniform(0.1, 1, (4, 2))).astype(dtype)
    machine = quietly(lambda: SVC(kernel="rbf").fit(big, [0, 1, 0, 1]))
    assert machine.predict(big).shape == (4,)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_huge_C(kernel, loss):
    if (kernel, loss) == ("sigmoid", "squared_hinge"):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            SVC(kernel=kernel, C=1e12, loss=loss).fit(X, Y)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine = SVC(kernel=kernel, C=1e12, loss=loss, max_iter=100_000).fit(X, Y)
    assert np.isfinite(machine.decision_function(X)).all()
    assert machine.dual_gap_ >= 0
    if caught:
        assert {each.category for each in caught} == {ConvergenceWarning}
        assert machine.dual_gap_ < np.inf
    elif kernel == "sigmoid":
        assert "not positive semi-definite" in machine.status_
    else:
        assert machine.fit_status_ == 0
        assert machine.dual_gap_ <= 1e-3 * machine.objective_


def test_hard_margin_of_data_that_cannot_be_separated():
    with pytest.raises(NotSeparableError, match="C"):
        SVC(kernel="linear", C=np.inf).fit(X, Y)
    with pytest.raises(ValueError):
        SVC(kernel="linear", C=np.inf).fit([[0.0], [0.0], [1.0]], [0, 1, 1])
    assert SVC(C=np.inf, gamma=10).fit(X, Y).score(X, Y) == 1


def test_nu_at_its_ends():
    rows, labels = make_blobs(60, centers=2, random_state=0)
    machine = NuSVC(nu=1, kernel="linear").fit(rows, labels)
    means = rows[labels == 1].mean(axis=0) - rows[labels == 0].mean(axis=0)
    assert_allclose(machine.coef_[0] / np.linalg.norm(machine.coef_), means / np.linalg.norm(means))
    assert np.isfinite(machine.intercept_).all()
    assert len(machine.support_) == 60
    with pytest.raises(ValueError, match=r"nu=0.01 is too small.*larger nu"):
        NuSVC(nu=0.01, kernel="linear").fit(X, Y)


@pytest.mark.parametrize("weight", [1.0, 1e-6])
def test_a_nu_that_is_tiny_for_the_data_but_not_too_small(weight):
    """The coefficients sum to nu sum(w) / 2, so that the unit of tol shrinks with them."""
    rows = np.vstack([X[Y == 0][:20] - 3, X[Y == 1][:20] + 3])
    labels = np.repeat([0, 1], 20)
    weights = np.full(40, weight)
    tiny = quietly(lambda: NuSVC(kernel="linear", nu=1e-4).fit(rows, labels, weights))
    hard = SVC(kernel="linear", C=np.inf, gap_tol=1e-6).fit(rows, labels)
    assert_allclose(tiny.margin_, hard.margin_, rtol=1e-2)
    assert_array_equal(tiny.predict(rows), labels)


def test_a_margin_that_tol_does_not_see():
    """Features on very different scales: violations of 1e-3 say nothing of hulls this near."""
    rows, labels = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = NuSVC(nu=0.1).fit(rows, labels)
    exact = NuSVC(nu=0.1, gap_tol=1e-8).fit(rows, labels)
    smallest = exact.objective_ - exact.dual_gap_  # minus half the squared distance
    assert machine.objective_ - machine.dual_gap_ <= exact.objective_ < 0
    assert smallest <= machine.objective_
    assert machine.dual_gap_ <= 0.1 * -smallest
    assert np.mean(machine.predict(rows) == exact.predict(rows)) > 0.98


def test_a_distance_of_zero_is_no_reason_to_warn():
    """The origin lies within the data: the half-space that leaves it out has no width."""
    rows = np.vstack([X - X.mean(axis=0), X.mean(axis=0) - X])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = OneClassSVM(kernel="linear", nu=0.3).fit(rows)
    assert_allclose(machine.coef_, 0, atol=1e-6)
    assert machine.status_.startswith("converged")


def test_a_fit_that_met_tol_and_proves_little_says_so():
    random = np.random.default_rng(0)
    rows, noise = random.normal(size=(300, 4)), random.normal(size=300)
    with pytest.warns(ConvergenceWarning, match="met tol, but its duality gap .* gap_tol"):
        loose = SVR(C=1e15).fit(rows, rows[:, 0] + 0.1 * noise)
    assert loose.status_.startswith("converged")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVDD().fit(X[:1])  # an objective of zero is none


def test_nu_too_large_for_a_class():
    labels = (np.arange(len(X)) < 10).astype(int)
    with pytest.warns(UserWarning, match=r"nu=0.9 is infeasible.*0.25") as caught:
        machine = NuSVC(nu=0.9).fit(X, labels)
    assert "test_degenerate" in caught[0].filename
    assert_allclose(
        machine.decision_function(X), NuSVC(nu=0.25).fit(X, labels).decision_function(X)
    )


@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 0.0, 1e12])
def test_tiny_and_huge_gamma(gamma):
    machine = quietly(lambda: SVC(gamma=gamma).fit(X, Y))
    assert np.isfinite(machine.decision_function(X)).all()


def test_indefinite_kernel():
    machine = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, Y)
    assert "not positive semi-definite" in machine.status_
    assert machine.dual_gap_ == np.inf
    assert np.isfinite(machine.decision_function(X)).all()


def test_precomputed_matrices():
    K = X @ X.T
    crooked = K + np.triu(rng.normal(size=K.shape))
    with pytest.raises(ValueError, match=r"not symmetric.*\(X \+ X.T\) / 2"):
        SVC(kernel="precomputed").fit(crooked, Y)
    with pytest.raises(ValueError, match="must be a square matrix"):
        SVC(kernel="precomputed").fit(K[:, :10], Y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(K), Y)
    machine = SVC(kernel="precomputed").fit(K, Y)
    with pytest.raises(ValueError, match="80"):
        machine.predict(K[:, :10])


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda A, B: A, "shape"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN"),
        (lambda A, B: "nothing", "kernel|convert|shape"),
    ],
)
def test_functions_that_are_no_kernels(f, message):
    with pytest.raises(ValueError, match=message):
        SVC(kernel=f).fit(X, Y)


class Crooked(Kernel):
    """Adds a half-line to a kernel, from one side only."""

    def block(self, X, Z):
        return X @ Z.T + X[:, :1]


@pytest.mark.parametrize("Machine", [SVC, LSSVC, OneClassSVM])
@pytest.mark.parametrize(
    "kernel", [FromFunction(Crooked().block, blockwise=True), Crooked(), Crooked().block]
)
def test_functions_that_are_not_symmetric(Machine, kernel):
    with pytest.raises(ValueError, match=r"kernel: it is not symmetric.* \+ .* / 2"):
        Machine(kernel=kernel).fit(X, Y)


def test_functions_may_round_to_float32():
    """Products in float32 depend on the place in the block; that is no asymmetry."""

    def rounded(A, B):
        noise = np.random.default_rng(len(A)).uniform(-1e-7, 1e-7, (len(A), len(B)))
        return A @ B.T * (1 + noise)

    machine = SVC(kernel=FromFunction(rounded, blockwise=True)).fit(X, Y)
    expected = SVC(kernel="linear").fit(X, Y).decision_function(X)
    assert_allclose(machine.decision_function(X), expected, atol=1e-2)


@pytest.mark.parametrize("Machine", [SVC, SVR, SVDD])
def test_a_class_in_the_place_of_a_kernel(Machine):
    with pytest.raises(ValueError, match=r"kernel=RBF is a class.*write kernel=RBF\(\)"):
        Machine(kernel=RBF).fit(X, Y)


@pytest.mark.parametrize("container", [sp.lil_array, sp.coo_matrix, sp.csr_matrix, list])
def test_functions_take_rows_as_they_come(container):
    if container is list:
        rows, f = ["".join(row) for row in rng.choice(list("ab"), (30, 8))], same_letters
    else:
        rows, f = container(X[:30]), lambda A, B: A @ B.T
    machine = SVC(kernel=f).fit(rows, Y[:30])
    assert machine.score(rows, Y[:30]) > 0.6


def same_letters(A, B):
    return [[sum(a == b for a, b in zip(s, t, strict=True)) for t in B] for s in A]


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_weights_that_mean_nothing(Machine):
    for weights in (np.zeros(len(X)), -np.ones(len(X))):
        with pytest.raises(ValueError, match=r"zero or negative weights\. sample_weight needs"):
            Machine().fit(X, Y, weights)
    with pytest.raises(ValueError, match="sample_weight and X have incompatible shapes"):
        Machine().fit(X, Y, np.ones(3))
    with pytest.raises(ValueError, match="class_weight must be positive"):
        Machine(class_weight={0: 0.0}).fit(X, Y)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_weights_of_any_size(scale):
    a = SVC(C=1 / scale).fit(X, Y, np.full(len(X), scale))
    b = SVC().fit(X, Y)
    assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


EVERY_MACHINE = [
    SVC(),
    SVC(kernel="linear"),
    SVC(loss="squared_hinge"),
    SVC(fit_intercept=False),
    SVC(multi_class="crammer_singer"),
    NuSVC(nu=0.3),
    SVR(),
    SVR(loss="squared_epsilon_insensitive"),
    NuSVR(),
    OneClassSVM(),
    SVDD(),
    RankSVM(),
    LSSVC(),
    LSSVR(),
]


@pytest.mark.parametrize("by", ["sample_weight", "C"])
@pytest.mark.parametrize("size", [1e100, 1e200, 1e300, 1.7e308, 1e-200, 1e-320])
@pytest.mark.parametrize("machine", EVERY_MACHINE, ids=str)
def test_weights_at_the_ends_of_float64(machine, size, by):
    """A finite objective with a gap that holds, or an error that names what is too large."""
    machine = clone(machine).set_params(max_iter=1000)
    weights = np.full(len(X), size) if by == "sample_weight" else None
    if by == "C":
        if not hasattr(machine, "C"):
            pytest.skip("has no C")
        machine.set_params(C=size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=r"C=.* is so small")
        try:
            machine.fit(X, Y, sample_weight=weights)
        except ValueError as error:
            assert "sample_weight" in str(error) or "nu=0.3 is too small" in str(error)
            return
    assert np.isfinite([machine.objective_, machine.dual_gap_]).all()
    assert machine.dual_gap_ >= 0
    if by == "sample_weight" and size == 1e200:
        # f changes little with a price that is out of sight: so much is the optimum at least
        moderate = clone(machine).fit(X, Y, sample_weight=np.full(len(X), 1.0))
        assert machine.objective_ >= moderate.objective_ * (1 - 1e-9) - moderate.dual_gap_


@pytest.mark.parametrize("machine", EVERY_MACHINE, ids=str)
def test_a_price_that_overflows(machine):
    if not hasattr(machine, "C") or isinstance(machine, SVDD):
        pytest.skip("its coefficients are bounded by something else")
    with pytest.raises(ValueError, match="sample_weight"):
        clone(machine).set_params(C=1e200).fit(X, Y, sample_weight=np.full(len(X), 1e200))


# ------------------------------------------------------------------ kinds of arrays


def test_rows_to_predict():
    machine = SVC().fit(X, Y)
    assert machine.predict(X[:1]).shape == (1,)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        machine.predict(X[:0])
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 4"):
        machine.predict(X[:, :3])
    with pytest.raises(ValueError, match="Reshape your data"):
        machine.predict(X[0])
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        machine.predict(sp.csr_matrix(X))
    sparse = SVC().fit(sp.csr_matrix(X), Y)
    assert_array_equal(sparse.predict(X), sparse.predict(sp.csr_matrix(X)))


def test_labels_of_all_kinds():
    expected = SVC().fit(X, Y).decision_function(X)
    for names in (["no", "yes"], [False, True], [-3, 8], [0.0, 1.0], np.array(["a", "b"], object)):
        labels = np.asarray(names)[Y]
        machine = SVC().fit(X, labels)
        assert_array_equal(machine.decision_function(X), expected)
        assert set(machine.predict(X)) <= set(np.asarray(names).tolist())
        assert machine.predict(X).dtype == machine.classes_.dtype
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SVC().fit(X, X[:, 0])


def variants(rows):
    """The same rows as arrays of every kind that there is."""
    frozen = rows.copy()
    frozen.setflags(write=False)
    mapped = np.frombuffer(mmap.mmap(-1, rows.nbytes), dtype=rows.dtype).reshape(rows.shape)
    mapped[:] = rows
    big = sp.csr_matrix(rows)
    big.indices, big.indptr = big.indices.astype(np.int64), big.indptr.astype(np.int64)
    fixed = sp.csr_matrix(rows)
    for part in (fixed.data, fixed.indices, fixed.indptr):
        part.setflags(write=False)
    messy = sp.csr_matrix(rows)
    for i in range(len(rows)):
        part = slice(messy.indptr[i], messy.indptr[i + 1])
        messy.indices[part], messy.data[part] = messy.indices[part][::-1], messy.data[part][::-1]
    messy.has_sorted_indices = False
    wide = np.empty((2 * len(rows), 3 * rows.shape[1]))
    wide[::2, ::3] = rows
    return {
        "list": rows.tolist(),
        "read-only": frozen,
        "memory-mapped": mapped,
        "Fortran order": np.asfortranarray(rows),
        "strided": wide[::2, ::3],
        "big-endian": rows.astype(">f8"),
        "CSC": sp.csc_matrix(rows),
        "COO": sp.coo_matrix(rows),
        "int64 indices": big,
        "read-only CSR": fixed,
        "unsorted CSR": messy,
    }


@pytest.mark.parametrize("kind", variants(X))
def test_arrays_of_all_kinds(kind):
    expected = SVC(gamma=0.3).fit(X, Y).decision_function(X)
    given = variants(X)[kind]
    machine = SVC(gamma=0.3).fit(given, Y)
    assert_allclose(machine.decision_function(given), expected, atol=1e-9)
    assert_allclose(machine.decision_function(X), expected, atol=1e-9)
    if sp.issparse(given):
        assert np.all(given.toarray() == X)


def test_arrays_are_left_as_they_are():
    messy = variants(X)["unsorted CSR"]
    indices = messy.indices.copy()
    SVC().fit(messy, Y).predict(messy)
    assert_array_equal(messy.indices, indices)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float16, np.float32])
def test_numbers_of_all_kinds(dtype):
    rows = np.round(X).astype(dtype)
    machine = SVC().fit(rows, Y)
    wanted = np.float32 if dtype is np.float32 else np.float64
    assert machine.support_vectors_.dtype == wanted
    assert machine.decision_function(rows).dtype == np.float64
    single = SVC(dtype="float32").fit(rows, Y)
    assert single.support_vectors_.dtype == np.float32
    assert_allclose(single.decision_function(X), machine.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovo"])
def test_many_classes_without_a_hard_margin(multi_class):
    """The proof is found, and not waited for: three classes of which two are mixed."""
    rows, labels = load_iris(return_X_y=True)
    machine = SVC(kernel="linear", C=np.inf, multi_class=multi_class, max_iter=60_000)
    apart = labels != 1  # setosa and virginica
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.fit(rows[apart], labels[apart])
    assert machine.score(rows[apart], labels[apart]) == 1
    mixed = np.where(rows[:, 1] > np.median(rows[:, 1]), 1, labels)
    with pytest.raises(NotSeparableError, match="any margin is below"):
        machine.fit(rows, mixed)


def test_the_proof_that_there_is_no_margin():
    """A combination of rows that is zero, with the signs of the classes, found near any other."""
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(60, 3)), np.repeat([1.0, -1.0], 30)
    for problem in (c_svc(labels, np.inf), c_svc(labels, np.inf, intercept=False)):
        weights = labels * random.uniform(1, 2, size=60)
        c = recession(problem, native(rows @ rows.T), weights, 1)
        assert c is not None
        assert np.all(c * labels >= 0)
        size = np.abs(c).sum()
        assert size > 1
        assert_allclose(rows.T @ c / size, 0, atol=1e-9)
        if len(problem.target):
            assert abs(c.sum()) < 1e-9 * size
    apart = rows + 5 * labels[:, None]
    problem = c_svc(labels, np.inf)
    assert recession(problem, native(apart @ apart.T), labels, 1) is None
    tube = epsilon_svr(
        rows[:, 0], np.inf, 0.1
    )  # that exists: pairs of a row cancel, and prove nothing
    both = np.repeat([1.0, -1.0], 60)
    assert recession(tube, native(rows @ rows.T), both, 1) is None


@pytest.mark.parametrize("Machine", [NuSVC, OneClassSVM])
def test_a_distance_too_small_for_float64(Machine):
    """c sums to nu sum(w), and its square would be zero: no work can tell."""
    with pytest.raises(ValueError, match=r"nu=0.5 times sample_weight \(from 1e-200 to 1e-200\)"):
        Machine(nu=0.5).fit(X, Y, np.full(len(X), 1e-200))
    with pytest.raises(ValueError, match=r"nu=1e-300 times sample_weight .* larger nu"):
        Machine(nu=1e-300).fit(X, Y)


@pytest.mark.parametrize("Machine", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize("kernel", ["rbf", lambda A, B: np.asarray(A) @ np.asarray(B).T])
def test_one_warning_for_a_column_of_targets(Machine, kernel):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Machine(kernel=kernel).fit(X, Y[:, None])
    assert [each.category for each in caught].count(DataConversionWarning) == 1


@pytest.mark.parametrize("C, loss", [(np.inf, "hinge"), (1.0, "squared_hinge")])
def test_an_indefinite_kernel_without_bounds_has_no_optimum(C, loss):
    machine = SVC(kernel="sigmoid", gamma=10, coef0=-5, C=C, loss=loss)
    with pytest.raises(ValueError, match=r"kernel is not positive semi-definite.*a finite C"):
        machine.fit(X, Y)
