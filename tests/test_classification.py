"""SVC and NuSVC: scikit-learn's values and layouts, many classes, weights, losses."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs, make_classification
from sklearn.metrics import hinge_loss, log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from maxmargin import SVC, NuSVC
from maxmargin import solve as engine
from maxmargin.kernels import RBF, Linear
from maxmargin.problem import crammer_singer
from maxmargin.reference import solve
from maxmargin.strategies import SecondOrder

X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
Y = np.array([1, 1, 1, 2, 2, 2])
T = np.array([[-1, -1], [2, 2], [3, 2]])


def iris():
    data, labels = load_iris(return_X_y=True)
    _, kept = np.unique(data, axis=0, return_index=True)  # twins share coefficients in many ways
    return StandardScaler().fit_transform(data[kept]), labels[kept]


def digits(n=250):
    data, labels = load_digits(return_X_y=True)
    return data[:n] / 16, labels[:n]


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


# ------------------------------------------------------------------ as in scikit-learn


def test_toy():
    machine = SVC(kernel="linear").fit(X, Y)
    assert_array_equal(machine.dual_coef_, [[-0.25, 0.25]])
    assert_array_equal(machine.support_, [1, 3])
    assert_array_equal(machine.support_vectors_, X[[1, 3]])
    assert_array_equal(machine.n_support_, [1, 1])
    assert_array_equal(machine.intercept_, [0.0])
    assert_allclose(machine.coef_, [[0.5, 0.5]])
    assert_array_equal(machine.predict(T), [1, 2, 2])
    assert machine.shape_fit_ == (6, 2)
    assert machine.fit_status_ == 0
    assert machine.objective_ == pytest.approx(0.25)
    assert machine.dual_gap_ == pytest.approx(0, abs=1e-12)


CONTAINERS = [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csr_array, sp.csc_matrix]


@pytest.mark.parametrize("data", [iris, digits])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed", "callable"])
@pytest.mark.parametrize("machine, theirs", [(SVC, svm.SVC), (NuSVC, svm.NuSVC)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layout_and_values_are_scikit_learns(data, kernel, machine, theirs, dtype):
    rows, labels = data()
    rows = rows.astype(dtype)
    options = {"tol": 1e-9, "decision_function_shape": "ovo"}
    if machine is NuSVC:
        options["nu"] = 0.2
    options["kernel"] = {"callable": lambda A, B: A @ B.T}.get(kernel, kernel)
    containers = (
        [np.asarray] if kernel == "precomputed" else CONTAINERS[:: 4 if data is digits else 1]
    )
    for container in containers:
        given = rows @ rows.T if kernel == "precomputed" else container(rows)
        a, b = machine(**options).fit(given, labels), theirs(**options).fit(given, labels)
        assert_array_equal(a.support_, b.support_)
        assert a.support_.dtype == b.support_.dtype
        assert_array_equal(a.n_support_, b.n_support_)
        assert a.n_support_.dtype == b.n_support_.dtype
        assert type(a.dual_coef_) is type(b.dual_coef_)
        assert type(a.support_vectors_) is type(b.support_vectors_)
        assert a.support_vectors_.shape == b.support_vectors_.shape
        assert a.dual_coef_.dtype == a.intercept_.dtype == np.float64
        # Theirs rounds kernel values to float32; nu machines divide by a small number after that.
        off = 2e-2 if machine is NuSVC else 1e-3
        scale = np.abs(dense(b.dual_coef_)).max()
        assert_allclose(dense(a.dual_coef_), dense(b.dual_coef_), rtol=off, atol=off * scale)
        assert_allclose(a.intercept_, b.intercept_, rtol=off, atol=off)
        f = b.decision_function(given)
        assert_allclose(a.decision_function(given), f, atol=off * np.abs(f).max())
        assert_array_equal(a.predict(given), b.predict(given))
        assert a.n_iter_.shape == b.n_iter_.shape
        if kernel == "linear":
            assert type(a.coef_) is type(b.coef_)
            w = dense(b.coef_)
            assert_allclose(dense(a.coef_), w, atol=off * np.abs(w).max())
            assert a.support_vectors_.dtype == dtype


def test_sigmoid_is_as_scikit_learns():
    rows, labels = iris()
    a, b = SVC(kernel="sigmoid").fit(rows, labels), svm.SVC(kernel="sigmoid").fit(rows, labels)
    assert "not positive semi-definite" in a.status_
    assert a.dual_gap_ == np.inf
    assert np.mean(a.predict(rows) == b.predict(rows)) > 0.98


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid", "laplacian"])
def test_sparse_equals_dense(kernel):
    rows, labels = digits()
    full = SVC(kernel=kernel, gamma=0.05).fit(rows, labels)
    thin = SVC(kernel=kernel, gamma=0.05).fit(sp.csr_matrix(rows), labels)
    assert_array_equal(full.support_, thin.support_)
    assert_allclose(full.dual_coef_, thin.dual_coef_.toarray(), rtol=1e-9, atol=1e-12)
    assert_allclose(full.decision_function(rows), thin.decision_function(rows), atol=1e-9)


def test_gamma_scale_counts_weights_and_zeros():
    rows, labels = digits(60)
    weights = np.arange(60) % 4
    repeated = np.repeat(np.arange(60), weights)
    expected = 1 / (64 * rows[repeated].var())
    for container in (np.asarray, sp.csr_matrix):
        machine = SVC().fit(container(rows), labels, weights)
        assert machine._gamma == pytest.approx(expected, rel=1e-12)
    assert SVC(gamma="auto").fit(rows, labels)._gamma == 1 / 64
    assert SVC().fit(np.zeros((4, 2)), [0, 1, 0, 1])._gamma == 1.0


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_ties_are_broken_as_in_scikit_learn(shape, n_classes):
    rows, labels = make_blobs(60, centers=n_classes, random_state=0)
    far = np.vstack([rows, np.full((3, 2), 1e3), np.zeros((1, 2))])  # no kernel reaches there
    options = {"gamma": 50.0, "decision_function_shape": shape, "tol": 1e-9}
    a, b = SVC(**options).fit(rows, labels), svm.SVC(**options).fit(rows, labels)
    assert_allclose(a.decision_function(far), b.decision_function(far), atol=1e-5)
    assert_array_equal(a.predict(far), b.predict(far))
    if shape == "ovr":
        a, b = clone(a).set_params(break_ties=True), clone(b).set_params(break_ties=True)
        assert_array_equal(a.fit(rows, labels).predict(far), b.fit(rows, labels).predict(far))


def test_exact_zero_counts_for_the_second_class():
    machine = SVC(kernel="linear").fit([[-1.0], [1.0]], ["left", "right"])
    assert machine.decision_function([[0.0]]) == 0
    assert machine.predict([[0.0]]) == "right"


def test_kernels_by_name_and_by_value():
    rows, labels = iris()
    for name, value in [("rbf", RBF(gamma=0.25)), ("linear", Linear())]:
        a = SVC(kernel=name, gamma=0.25).fit(rows, labels)
        b = SVC(kernel=value).fit(rows, labels)
        assert_array_equal(a.dual_coef_, b.dual_coef_)
        assert_array_equal(a.decision_function(rows), b.decision_function(rows))
        assert hasattr(a, "coef_") is hasattr(b, "coef_") is (name == "linear")


def test_a_function_is_called_with_support_vectors_only():
    calls = []

    def f(A, B):
        calls.append((len(A), len(B)))
        return np.asarray(A) @ np.asarray(B).T

    rows, labels = iris()
    machine = SVC(kernel=f).fit(rows.tolist(), labels)
    machine.decision_function(rows[:5].tolist())
    n_support = machine.n_support_.sum()
    assert calls == [(len(rows), len(rows)), (5, n_support)]
    assert len(machine.predict([])) == 0


def test_precomputed_reads_support_columns_only():
    rows, labels = iris()
    K = rows @ rows.T
    machine = SVC(kernel="precomputed").fit(K, labels)
    only = np.zeros_like(K)
    only[:, machine.support_] = K[:, machine.support_]
    assert_array_equal(machine.decision_function(K), machine.decision_function(only))
    linear = SVC(kernel="linear").fit(rows, labels)
    assert_allclose(machine.decision_function(K), linear.decision_function(rows), atol=1e-9)


def test_prediction_does_not_depend_on_its_company():
    rows, labels = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
    machine = SVC().fit(rows, labels)
    many = np.tile(rows, (12, 1))  # more than one block
    together = machine.decision_function(many)
    for i in (0, 1, 2047, 2048, 4799):
        assert_array_equal(machine.decision_function(many[i : i + 1]), together[i : i + 1])
    assert_array_equal(machine.predict(many), np.tile(machine.predict(rows), 12))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "crammer_singer"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_threads_and_memory_change_nothing(multi_class, container):
    rows, labels = digits()
    rows = container(rows)
    one = SVC(multi_class=multi_class, n_jobs=1).fit(rows, labels)
    for other in ({"n_jobs": 2}, {"cache_size": 0.05}, {"cache_size": 1, "n_jobs": 2}):
        two = SVC(multi_class=multi_class, **other).fit(rows, labels)
        assert_array_equal(dense(one.dual_coef_), dense(two.dual_coef_))
        assert_array_equal(one.intercept_, two.intercept_)
        assert_array_equal(one.decision_function(rows), two.decision_function(rows))
        assert_array_equal(one.n_iter_, two.n_iter_)
        assert (one.objective_, one.dual_gap_) == (two.objective_, two.dual_gap_)


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize("machine", [SVC(), SVC(kernel="linear", C=0.5), NuSVC(nu=0.2)])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.5, 1: 0.7, 2: 1.0}])
def test_weights_are_repetitions(machine, class_weight):
    rng = np.random.default_rng(0)
    rows, labels = iris()
    rows, labels = rows[::2], labels[::2]
    weights = rng.integers(-1, 4, len(rows))
    repeated = np.repeat(np.arange(len(rows)), np.maximum(weights, 0))
    a = clone(machine).set_params(class_weight=class_weight, tol=1e-12)
    b = clone(a).fit(rows[repeated], labels[repeated])
    a.fit(rows, labels, weights)
    assert_allclose(a.class_weight_, b.class_weight_)
    assert_allclose(a.decision_function(rows), b.decision_function(rows), rtol=1e-7, atol=1e-9)
    assert np.all(weights[a.support_] > 0)
    assert_array_equal(a.support_vectors_, rows[a.support_])


def test_precomputed_rows_without_weight_keep_their_columns():
    rows, labels = iris()
    weights = np.arange(len(rows)) % 3
    a = SVC(kernel="linear").fit(rows, labels, weights)
    b = SVC(kernel="precomputed").fit(rows @ rows.T, labels, weights)
    assert_array_equal(a.support_, b.support_)
    new = rows[:7]
    assert_allclose(a.decision_function(new), b.decision_function(new @ rows.T), atol=1e-9)


def test_a_class_without_weight_is_absent():
    rows, labels = iris()
    weights = (labels != 1).astype(float)
    a = SVC().fit(rows, labels, weights)
    b = SVC().fit(rows[labels != 1], labels[labels != 1])
    assert_array_equal(a.classes_, [0, 2])
    assert_allclose(a.decision_function(rows), b.decision_function(rows))


# ------------------------------------------------------------------ many classes, losses


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_against_the_rest(kernel):
    rows, labels = digits()
    options = {"kernel": kernel, "gamma": 0.05, "tol": 1e-9}
    a = SVC(multi_class="ovr", **options).fit(rows, labels)
    b = OneVsRestClassifier(SVC(**options)).fit(rows, labels)
    assert a.dual_coef_.shape == (10, len(a.support_))
    assert a.intercept_.shape == (10,)
    assert_allclose(a.decision_function(rows), b.decision_function(rows), atol=1e-6)
    assert_array_equal(a.predict(rows), b.predict(rows))
    if kernel == "linear":
        assert_allclose(rows @ a.coef_.T + a.intercept_, a.decision_function(rows), atol=1e-9)


def test_crammer_singer():
    rows, labels = digits(50)
    machine = SVC(multi_class="crammer_singer", kernel="linear", tol=1e-6).fit(rows, labels)
    known = solve(crammer_singer(labels, 10), rows @ rows.T, tol=1e-6)
    assert machine.objective_ == pytest.approx(known.gap - known.objective, rel=1e-4)
    assert_array_equal(machine.intercept_, np.zeros(10))
    assert machine.coef_.shape == (10, 64)
    assert_allclose(machine.coef_.sum(axis=0), 0, atol=1e-9)
    theirs = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=10**5)
    assert_allclose(machine.coef_, theirs.fit(rows, labels).coef_, atol=2e-3)
    assert_array_equal(machine.predict(rows), np.argmax(rows @ machine.coef_.T, axis=1))


def test_crammer_singer_of_two_classes_is_a_machine_without_intercept():
    rows, labels = iris()
    rows, labels = rows[labels > 0], labels[labels > 0]
    options = {"kernel": "rbf", "gamma": 0.5, "tol": 1e-9}
    a = SVC(multi_class="crammer_singer", C=0.5, **options).fit(rows, labels)
    # w_1 = -w_0 = w / 2: half the norm's price is twice the loss's.
    b = SVC(fit_intercept=False, C=1.0, **options).fit(rows, labels)
    assert a.dual_coef_.shape[0] == 1
    assert a.decision_function(rows).shape == labels.shape
    assert_array_equal(a.predict(rows), b.predict(rows))
    assert_allclose(a.decision_function(rows), b.decision_function(rows), atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_losses_without_intercept_are_those_of_linear_machines(loss, C):
    rows, labels = iris()
    rows, labels = rows[labels > 0], labels[labels > 0]
    a = SVC(kernel="linear", loss=loss, C=C, fit_intercept=False, tol=1e-9).fit(rows, labels)
    b = LinearSVC(loss=loss, C=C, fit_intercept=False, tol=1e-9, max_iter=10**6, dual=True)
    assert_allclose(a.coef_, b.fit(rows, labels).coef_, rtol=1e-4, atol=1e-5)
    assert_array_equal(a.intercept_, [0.0])


@pytest.mark.parametrize("loss, power", [("hinge", 1), ("squared_hinge", 2)])
def test_objective_is_the_primal(loss, power):
    rows, labels = make_classification(120, 5, flip_y=0.2, random_state=0)
    machine = SVC(kernel="linear", loss=loss, C=0.7, tol=1e-8).fit(rows, labels)
    margins = 1 - np.where(labels == 1, 1, -1) * machine.decision_function(rows)
    slack = np.maximum(0, margins) ** power
    primal = np.sum(machine.coef_**2) / 2 + 0.7 * slack.sum()
    assert machine.objective_ == pytest.approx(primal, rel=1e-6)
    assert machine.objective_ == pytest.approx(sum(s.objective for s in machine.subproblems_))
    if power == 1:
        assert slack.mean() == pytest.approx(
            hinge_loss(labels, machine.decision_function(rows)), rel=1e-9
        )


def test_hard_margin_is_the_limit_of_soft_ones():
    rows, labels = make_blobs(60, centers=2, cluster_std=0.7, random_state=1)
    hard = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(rows, labels)
    soft = SVC(kernel="linear", C=1e8, tol=1e-8).fit(rows, labels)
    assert_allclose(hard.coef_, soft.coef_, rtol=1e-6)
    margins = np.where(labels == 1, 1, -1) * hard.decision_function(rows)
    assert margins.min() == pytest.approx(1, abs=1e-6)


def test_nu_bounds_errors_and_support_vectors():
    rows, labels = make_classification(300, 6, flip_y=0.1, random_state=0)
    for nu in (0.4, 0.6, 0.8):
        machine = NuSVC(nu=nu).fit(rows, labels)
        margins = np.where(labels == 1, 1, -1) * machine.decision_function(rows)
        assert np.mean(margins < 1 - 1e-3) <= nu + 1e-9
        assert len(machine.support_) / len(rows) >= nu - 1e-9


def test_nu_machine_is_a_c_machine():
    rows, labels = make_classification(150, 5, flip_y=0.1, random_state=1)
    a = NuSVC(nu=0.5, gamma=0.2, tol=1e-9).fit(rows, labels)
    C = np.abs(a.dual_coef_).max()  # which bounded support vectors reach
    b = SVC(C=C, gamma=0.2, tol=1e-9).fit(rows, labels)
    assert_allclose(a.decision_function(rows), b.decision_function(rows), atol=1e-5)


# ------------------------------------------------------------------ probabilities


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "crammer_singer"])
def test_probabilities(multi_class):
    rows, labels = iris()
    machine = SVC(probability=True, random_state=0, multi_class=multi_class).fit(rows, labels)
    P = machine.predict_proba(rows)
    assert P.shape == (len(rows), 3)
    assert_allclose(P.sum(axis=1), 1)
    assert np.mean(machine.classes_[P.argmax(axis=1)] == machine.predict(rows)) > 0.97
    assert log_loss(labels, P) < 0.2
    assert_allclose(machine.predict_log_proba(rows), np.log(P))
    again = clone(machine).fit(rows, labels)
    assert_array_equal(P, again.predict_proba(rows))
    assert machine.probA_.shape == machine.probB_.shape == (3,)


@pytest.mark.parametrize("machine", [SVC(C=0.01), NuSVC(), SVC(multi_class="crammer_singer")])
def test_two_classes_are_predicted_by_their_probabilities(machine):
    rows, labels = make_classification(200, 5, weights=[0.8], flip_y=0.2, random_state=0)
    if isinstance(machine, NuSVC):
        machine = clone(machine).set_params(nu=0.3)
    machine = clone(machine).set_params(probability=True, random_state=0).fit(rows, labels)
    P = machine.predict_proba(rows)
    assert_array_equal(machine.predict(rows), machine.classes_[P.argmax(axis=1)])


def test_probabilities_only_when_asked_for():
    rows, labels = iris()
    machine = SVC().fit(rows, labels)
    assert not hasattr(machine, "predict_proba")
    machine.probability = True
    with pytest.raises(ValueError, match="fitted with probability=False"):
        machine.predict_proba(rows)


def test_no_class_is_impossible():
    rows = np.concatenate([np.linspace(-9, -8, 50), np.linspace(8, 9, 50)])[:, None]
    machine = SVC(kernel="linear", probability=True, random_state=0).fit(rows, rows[:, 0] > 0)
    far = [[-1e6], [1e6]]
    P = machine.predict_proba(far)
    assert_allclose(P, [[1 - 1e-7, 1e-7], [1e-7, 1 - 1e-7]])
    assert np.isfinite(machine.predict_log_proba(far)).all()
    assert_array_equal(machine.predict(far), [False, True])


def test_folds_share_the_default_limit(monkeypatch):
    limits, sizes = [], []

    def limited_solve(problem, *args, max_iter, **options):
        limits.append(max_iter)
        sizes.append(SecondOrder().step_cost(problem, len(problem)))
        return engine.solve(problem, *args, max_iter=max_iter, **options)

    monkeypatch.setattr("maxmargin.svm.training.solve", limited_solve)
    monkeypatch.setattr("maxmargin.svm.calibration.solve", limited_solve)
    rows, labels = iris()
    SVC(probability=True, random_state=0).fit(rows, labels)
    assert len(limits) == 3 + 15
    assert_allclose(limits, engine.iteration_limit(len(rows), sizes), rtol=0.01)


def test_calibration_has_exact_decisions_of_single_precision():
    rows, labels = make_classification(200, 5, flip_y=0.2, random_state=0)
    rows = rows.astype(np.float32)
    single = SVC(probability=True, random_state=0, tol=1e-10).fit(rows, labels)
    double = clone(single).fit(rows.astype(np.float64), labels)
    assert_allclose(single.probA_, double.probA_, rtol=1e-9)
    assert_allclose(single.probB_, double.probB_, rtol=1e-9, atol=1e-9)


def test_the_divisor_of_a_nu_machine_is_kept():
    rows, labels = make_classification(100, 5, flip_y=0.1, random_state=1)
    machine = NuSVC(nu=0.4).fit(rows, labels)
    (solved,) = machine.subproblems_
    model = np.zeros(100)
    model[machine.support_] = machine.dual_coef_[0]
    assert_allclose(solved.sign * solved.coefficients / solved.divisor, model)
    assert solved.divisor != 1 and SVC().fit(rows, labels).subproblems_[0].divisor == 1


def test_a_loss_that_a_scheme_does_not_have_is_refused():
    with pytest.raises(ValueError, match="loss='squared_hinge' does not go with multi_class"):
        SVC(loss="squared_hinge", multi_class="crammer_singer").fit(
            [[0.0], [1.0], [2.0]], [0, 1, 2]
        )
