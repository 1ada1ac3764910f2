"""SVR and NuSVR against scikit-learn, the readable solver and the definition of their losses."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import make_friedman1

from maxmargin import SVR, NuSVR, reference
from maxmargin.kernels import RBF
from maxmargin.problem import epsilon_svr, nu_svr, squared_epsilon_svr


@pytest.fixture(scope="module")
def data():
    X, y = make_friedman1(90, noise=1.0, random_state=0)
    weights = np.random.default_rng(0).integers(0, 4, 90)
    return X, y, weights


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_as_scikit_learn(data, kernel, name):
    X, y, _ = data
    ours = {"SVR": SVR, "NuSVR": NuSVR}[name](C=2.0, tol=1e-8, **kernel).fit(X, y)
    theirs = getattr(sklearn.svm, name)(C=2.0, tol=1e-8, **kernel).fit(X, y)
    scale = 1e-5 * np.abs(y).max()
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=scale)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    for attribute in ("support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_"):
        mine, other = getattr(ours, attribute), getattr(theirs, attribute)
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype), attribute
    assert type(ours.n_iter_) is int
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == theirs.fit_status_


def hinge(loss, error, epsilon):
    beyond = np.maximum(np.abs(error) - epsilon, 0)
    return beyond if loss == "epsilon_insensitive" else beyond**2


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_objective_is_the_one_that_is_written_down(data, loss, fit_intercept):
    X, y, w = data
    svr = SVR(
        kernel="linear", C=0.3, epsilon=0.7, loss=loss, fit_intercept=fit_intercept, gap_tol=1e-10
    ).fit(X, y, w)
    error = y - svr.predict(X)
    value = (svr.coef_**2).sum() / 2 + 0.3 * w @ hinge(loss, error, 0.7)
    assert value == pytest.approx(svr.objective_, rel=1e-8)
    assert 0 <= svr.dual_gap_ <= 1e-10 * svr.objective_
    if not fit_intercept:
        np.testing.assert_array_equal(svr.intercept_, [0.0])
    rng = np.random.default_rng(0)
    for _ in range(20):  # it is the minimum
        coef = svr.coef_[0] + 1e-3 * rng.normal(size=X.shape[1])
        shift = 1e-3 * rng.normal() if fit_intercept else 0.0
        error = y - X @ coef - svr.intercept_ - shift
        assert coef @ coef / 2 + 0.3 * w @ hinge(loss, error, 0.7) > svr.objective_


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_as_the_readable_solver(data, loss):
    X, y, _ = data
    builder = {
        "epsilon_insensitive": epsilon_svr,
        "squared_epsilon_insensitive": squared_epsilon_svr,
    }
    solution = reference.solve(builder[loss](y, 2.0, 0.1), RBF(gamma=0.5)(X), tol=1e-7)
    svr = SVR(C=2.0, gamma=0.5, loss=loss, tol=1e-7).fit(X, y)
    assert svr.objective_ == pytest.approx(solution.primal, rel=1e-6)
    np.testing.assert_allclose(svr.intercept_, -solution.rho, atol=1e-5)


def test_the_tube_that_nu_chooses(data):
    X, y, w = data
    for nu in (0.1, 0.5, 0.9):
        svr = NuSVR(nu=nu, C=2.0, gap_tol=1e-10).fit(X, y, w)
        error = np.abs(y - svr.predict(X))
        outside, at_least = error > svr.epsilon_ + 1e-9, error >= svr.epsilon_ - 1e-9
        assert w[outside].sum() <= nu * w.sum() + 1e-9 <= w[at_least].sum() + 1e-6
        same = SVR(C=2.0, epsilon=svr.epsilon_, gap_tol=1e-10).fit(X, y, w)
        np.testing.assert_allclose(same.predict(X), svr.predict(X), atol=1e-5)
    solution = reference.solve(nu_svr(y, 2.0, 0.5), RBF(gamma=0.5)(X), tol=1e-7)
    svr = NuSVR(gamma=0.5, C=2.0, tol=1e-7).fit(X, y)
    above, below = solution.rho
    assert svr.epsilon_ == pytest.approx((below - above) / 2, abs=1e-5)


def test_nu_of_one_works(data):
    X, y, _ = data
    svr = NuSVR(nu=1.0, tol=1e-6).fit(X, y)
    assert svr.epsilon_ == pytest.approx(0, abs=1e-3)
    assert len(svr.support_) == len(X)


@pytest.mark.parametrize(
    "machine",
    [SVR(tol=1e-10), SVR(loss="squared_epsilon_insensitive"), NuSVR(tol=1e-10)],
    ids=["SVR", "squared", "NuSVR"],
)
def test_a_weight_counts_as_repetitions(data, machine):
    X, y, w = data
    again = np.repeat(np.arange(len(y)), w)
    weighted = machine.fit(X, y, sample_weight=w).predict(X)
    np.testing.assert_allclose(weighted, machine.fit(X[again], y[again]).predict(X), atol=1e-7)


def test_the_flattest_tube(data):
    X, y, _ = data
    flat = SVR(kernel="linear", C=np.inf, epsilon=8.0, tol=1e-6).fit(X, y)
    assert np.abs(y - flat.predict(X)).max() <= 8.0 + 1e-5
    constant = SVR(kernel="linear", C=np.inf, epsilon=np.ptp(y)).fit(X, y)
    np.testing.assert_array_equal(constant.coef_, 0)


def test_few_support_vectors_or_none(data):
    X, y, _ = data
    none = SVR(epsilon=100).fit(X, y)
    assert none.dual_coef_.shape == (1, 0) and none.support_vectors_.shape == (0, X.shape[1])
    np.testing.assert_allclose(none.predict(X[:3]), none.intercept_[0])
    sparse = SVR(epsilon=100).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict(X[:3]), none.intercept_[0])
    assert none.diagnose(X, y).norm == 0


def test_precision_and_sparsity_are_kept(data):
    X, y, _ = data
    dense, single = SVR(gamma=0.5).fit(X, y), SVR(gamma=0.5).fit(X.astype(np.float32), y)
    assert single.support_vectors_.dtype == np.float32 and single.dual_coef_.dtype == np.float64
    np.testing.assert_allclose(single.predict(X), dense.predict(X), atol=1e-3)
    sparse = SVR(gamma=0.5).fit(sp.csr_array(X), y)
    assert sp.issparse(sparse.dual_coef_) and sp.issparse(sparse.support_vectors_)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X), atol=1e-10)


@pytest.mark.parametrize("machine", [SVR(), NuSVR()], ids=["SVR", "NuSVR"])
def test_bad_targets_are_named(data, machine):
    X, y, _ = data
    with pytest.raises(ValueError, match="y contains NaN"):
        machine.fit(X, np.where(y > 0, np.nan, 0))
    with pytest.raises(ValueError, match=r"y: targets reach 1e\+200"):
        machine.fit(X, np.full(len(y), 1e200))
    with pytest.raises(ValueError, match="could not convert string"):
        machine.fit(X, np.repeat("a", len(y)))
    with pytest.raises(ValueError, match="NaN"):
        machine.set_params(kernel=lambda A, B: A @ B.T).fit(X, np.full(len(y), np.nan))


def test_warm_start_goes_on(data):
    X, y, _ = data
    svr = SVR(C=100.0, tol=1e-6, warm_start=True).fit(X, y)
    cold = svr.n_iter_
    assert svr.fit(X, y).n_iter_ < cold / 10
    nu = NuSVR(C=100.0, tol=1e-6, warm_start=True).fit(X, y)
    cold = nu.n_iter_
    assert nu.fit(X, y).n_iter_ < cold / 10


def test_predictions_from_a_matrix_do_not_depend_on_their_company():
    """A square matrix of new rows, symmetric but for rounding, is that of rows like any other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    K = RBF()(X)
    machine = SVR(kernel="precomputed").fit(K, X[:, 0])
    new = K * (1 + 1e-10 * rng.uniform(size=K.shape))
    alone = [machine.predict(new[i : i + 1])[0] for i in range(50)]
    np.testing.assert_array_equal(machine.predict(new), alone)
