"""Margins and diagnoses against their definitions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin import LSSVC, LSSVR, SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, RankSVM
from maxmargin.kernels import RBF


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[:, :3] + 1e-3 * np.random.default_rng(0).normal(size=(150, 3)), y


@pytest.fixture(scope="module")
def two(iris):
    X, y = iris
    w = np.random.default_rng(1).integers(0, 4, 150).astype(float)
    return X[50:], np.where(y[50:] == 1, "left", "right"), w[50:]


MACHINES = {
    "hinge": SVC(kernel="linear", C=0.8),
    "squared": SVC(kernel="linear", C=0.8, loss="squared_hinge"),
    "origin": SVC(kernel="linear", C=0.8, fit_intercept=False),
    "nu": NuSVC(kernel="linear", nu=0.4),
    "least squares": LSSVC(kernel="linear", C=0.8),
}


@pytest.mark.parametrize("name", MACHINES)
def test_two_classes(two, name):
    X, y, w = two
    machine = MACHINES[name].fit(X, y, sample_weight=w)
    d = machine.diagnose(X, y, w)
    signs, f = np.where(y == "right", 1, -1), machine.decision_function(X)
    norm = np.linalg.norm(machine.coef_)
    there = w > 0
    assert machine.margin_ == pytest.approx(1 / norm) and d.norm == pytest.approx(norm)
    np.testing.assert_allclose(machine.margins(X, y), signs * f / norm)
    np.testing.assert_allclose(machine.margins(X, y, functional=True), signs * f)
    np.testing.assert_allclose(d.margin[there], (signs * f / norm)[there])
    assert np.isnan(d.margin[~there]).all()
    beyond = 1 - signs * f
    slack = beyond if name == "least squares" else np.maximum(beyond, 0)
    np.testing.assert_allclose(d.slack, np.where(there, slack, 0), atol=1e-9)
    alpha = np.zeros(100)
    alpha[machine.support_] = machine.dual_coef_[0]
    np.testing.assert_allclose(d.alpha, signs * alpha, atol=1e-12)
    np.testing.assert_array_equal(d.case == "absent", ~there)
    np.testing.assert_array_equal(d.case == "misclassified", there & (signs * f <= 0))
    np.testing.assert_array_equal(d.case == "outside", there & (beyond < -1e-6))
    np.testing.assert_array_equal(d.case == "on", there & (np.abs(beyond) < 1e-6))
    assert d.primal - d.dual == pytest.approx(d.gap, abs=1e-12)
    assert d.primal == pytest.approx(machine.objective_, rel=1e-9)
    assert d.dual == pytest.approx(machine.objective_ - machine.dual_gap_, rel=1e-9)
    cost = {"hinge": 0.8 * slack, "origin": 0.8 * slack, "squared": 0.8 * slack**2}
    if name in cost:
        assert d.primal == pytest.approx(norm**2 / 2 + w @ cost[name])
    low, high = d.intercept_interval
    assert low - 1e-6 <= machine.intercept_[0] <= high + 1e-6
    assert d.complexity == pytest.approx((d.radius / machine.margin_) ** 2)
    kept = X[there]
    furthest = np.sqrt(((kept[:, None] - kept) ** 2).sum(-1).max())
    assert furthest / 2 <= d.radius <= furthest / np.sqrt(2)
    table = str(d)
    assert all(case in table for case in np.unique(d.case))
    assert "left" in table and "right" in table


def test_hinge_cases_go_by_alpha(two):
    X, y, w = two
    d = SVC(C=0.8, tol=1e-9).fit(X, y, w).diagnose(X, y, w)
    there = w > 0
    free = (d.alpha > 0) & (d.alpha < 0.8 * w)
    np.testing.assert_array_equal(d.case == "on", free)
    np.testing.assert_array_equal((d.case == "outside"), there & (d.alpha == 0))
    np.testing.assert_array_equal(
        np.isin(d.case, ["inside", "misclassified"]), there & (d.slack > 1e-6)
    )


def test_the_interval_of_the_intercept():
    """Without a free support vector every intercept of an interval is optimal."""
    X, y = np.array([[-2.0], [-1], [1], [2]]), np.array([0, 0, 1, 1])
    svc = SVC(kernel="linear", C=0.05).fit(X, y)
    low, high = svc.diagnose(X, y).intercept_interval
    assert low < high and svc.intercept_[0] == pytest.approx((low + high) / 2)

    def primal(b):
        return (svc.coef_**2).sum() / 2 + 0.05 * sum(
            max(0, 1 - s * (svc.coef_[0, 0] * x[0] + b)) for x, s in zip(X, 2 * y - 1, strict=True)
        )

    assert primal(low) == pytest.approx(primal(high)) == pytest.approx(svc.objective_)
    assert primal(low - 0.1) > svc.objective_ < primal(high + 0.1)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_problems(iris, multi_class):
    X, y = iris
    svc = SVC(kernel="linear", multi_class=multi_class, decision_function_shape="ovo").fit(X, y)
    norm = np.linalg.norm(svc.coef_, axis=1)
    np.testing.assert_allclose(svc.margin_, 1 / norm)
    distance = svc.decision_function(X) / norm
    expected = np.full(150, np.inf)
    for p, problem in enumerate(svc.subproblems_):
        first = y == problem.classes[0]
        other = ~first if multi_class == "ovr" else y == problem.classes[1]
        expected[first] = np.minimum(expected[first], distance[first, p])
        expected[other] = np.minimum(expected[other], -distance[other, p])
    np.testing.assert_allclose(svc.margins(X, y), expected)
    found = svc.diagnose(X, y)
    assert len(found) == 3
    for p, d in enumerate(found):
        assert d.classes == svc.subproblems_[p].classes
        there = d.case != "absent"
        np.testing.assert_array_equal(there, np.isin(y, d.classes) | (multi_class == "ovr"))
        np.testing.assert_allclose(np.abs(d.margin[there]), np.abs(distance[there, p]))
    assert sum(d.primal for d in found) == pytest.approx(svc.objective_)
    np.testing.assert_allclose(np.nanmin([d.margin for d in found], axis=0), expected)
    assert str(found).count("Diagnosis") == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_crammer_singer(iris, n_classes):
    X, y = iris
    X, y = X[y < n_classes], y[y < n_classes]
    svc = SVC(kernel="linear", multi_class="crammer_singer", C=0.5).fit(X, y)
    d = svc.diagnose(X, y)
    f = svc.decision_function(X)
    W = svc.coef_ if n_classes > 2 else np.vstack([np.zeros(3), svc.coef_])
    f = f if n_classes > 2 else np.column_stack([np.zeros(len(X)), f])
    rows = np.arange(len(y))
    others = [[m for m in range(n_classes) if m != c] for c in y]
    ahead = f[rows, y][:, None] - np.take_along_axis(f, np.array(others), axis=1)
    apart = np.linalg.norm(W[y][:, None] - W[np.array(others)], axis=2)
    np.testing.assert_allclose(svc.margins(X, y, functional=True), ahead.min(axis=1))
    np.testing.assert_allclose(svc.margins(X, y), (ahead / apart).min(axis=1))
    np.testing.assert_allclose(d.margin, svc.margins(X, y))
    np.testing.assert_allclose(d.slack, np.maximum(0, 1 - ahead.min(axis=1)), atol=1e-9)
    assert d.primal == pytest.approx(d.norm**2 / 2 + 0.5 * d.slack.sum())
    assert np.all(d.alpha >= 0) and d.alpha.max() <= 0.5 + 1e-12
    assert d.intercept_interval == (0.0, 0.0)
    assert np.size(svc.margin_) == n_classes * (n_classes - 1) // 2


@pytest.mark.parametrize(
    "machine",
    [SVR(C=0.5), SVR(C=0.5, loss="squared_epsilon_insensitive"), NuSVR(C=0.5), LSSVR(C=0.5)],
    ids=["SVR", "squared", "NuSVR", "LSSVR"],
)
def test_regression(iris, machine):
    X, _ = iris
    d = machine.fit(X[:, 1:], X[:, 0]).diagnose(X[:, 1:], X[:, 0])
    error = X[:, 0] - machine.predict(X[:, 1:])
    half = {"SVR": 0.1, "NuSVR": getattr(machine, "epsilon_", 0), "LSSVR": 0}[
        type(machine).__name__
    ]
    np.testing.assert_allclose(d.slack, np.maximum(0, np.abs(error) - half), atol=1e-9)
    np.testing.assert_array_equal(d.case == "inside", np.abs(error) < half - 1e-6)
    np.testing.assert_allclose(d.alpha[machine.support_], machine.dual_coef_[0])
    assert d.primal == pytest.approx(machine.objective_)
    assert d.margin is None and not hasattr(machine, "margins")
    low, high = d.intercept_interval
    assert low - 1e-6 <= machine.intercept_[0] <= high + 1e-6
    assert "outside" in str(d)


@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.2), SVDD(C=0.04)], ids=["half", "ball"])
def test_novelty(iris, machine):
    X, _ = iris
    d = machine.fit(X).diagnose(X)
    f = machine.decision_function(X)
    np.testing.assert_allclose(d.slack, np.maximum(0, -f), atol=1e-8)
    np.testing.assert_allclose(d.alpha[machine.support_], machine.dual_coef_[0])
    near = max(d.violation, 1e-6)
    assert np.all(d.case[f > 3 * near] == "inside") and np.all(d.case[f < -3 * near] == "outside")
    assert d.primal == pytest.approx(machine.objective_, rel=1e-9)
    if isinstance(machine, SVDD):
        assert d.primal == pytest.approx(machine.radius_**2 + 0.04 * d.slack.sum(), rel=1e-3)
    else:
        value = d.norm**2 / 2 - 0.2 * 150 * machine.offset_[0] + d.slack.sum()
        assert d.primal == pytest.approx(value)


# ------------------------------------------------------------------ the training data, and no other


def test_other_data_are_refused(two):
    X, y, w = two
    svc = SVC().fit(X, y, w)
    moved = X.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], 10)
    swapped = np.arange(100)
    swapped[[10, 11]] = 11, 10
    other = np.where(np.arange(100) == 70, "left", y)
    for args in (
        (moved, y, w),
        (X[swapped], y[swapped], w[swapped]),
        (X, other, w),
        (X, y),
        (X, y, 2 * w),
        (X[:90], y[:90], w[:90]),
    ):
        with pytest.raises(ValueError, match="diagnose needs the data that this machine was"):
            svc.diagnose(*args)
    with pytest.raises(ValueError, match="requires y"):
        svc.diagnose(X)
    with pytest.raises(ValueError, match="diagnose needs"):
        svc.diagnose(X[:, :2], y, w)
    assert svc.n_features_in_ == 3
    for change in ({"C": 2.0}, {"gamma": 1.0}, {"kernel": "linear"}, {"fit_intercept": False}):
        machine = SVC().fit(X, y, w).set_params(**change)
        with pytest.raises(ValueError, match="parameters unchanged"):
            machine.diagnose(X, y, w)
    assert svc.diagnose(X, y, w).primal > 0


def test_the_same_data_in_other_clothes(two):
    X, y, w = two
    svc = SVC(C=2.0).fit(X, y, w)
    expected = svc.diagnose(X, y, w)
    for again in (X.tolist(), np.asfortranarray(X)):
        np.testing.assert_array_equal(svc.diagnose(again, list(y), w).alpha, expected.alpha)
    copied = pickle.loads(pickle.dumps(svc))
    np.testing.assert_array_equal(copied.diagnose(X, y, w).slack, expected.slack)
    frame = pd.DataFrame(X, columns=list("abc"))
    machine = SVC(C=2.0).fit(frame, y, w)
    np.testing.assert_array_equal(machine.diagnose(frame, y, w).alpha, expected.alpha)
    assert list(machine.feature_names_in_) == list("abc")


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, lambda X: X.astype("f4")])
def test_sparse_and_single_precision(two, container):
    X, y, w = two
    X = container(X)
    d = SVC(C=2.0).fit(X, y, w).diagnose(X, y, w)
    assert 0 <= d.gap <= 1e-6 * d.primal


def test_kernels_given_in_other_ways(two):
    X, y, w = two
    K = RBF(gamma=0.5)(X)
    expected = SVC(gamma=0.5).fit(X, y, w).diagnose(X, y, w)
    for kernel, data in (
        (RBF(gamma=0.5), X),
        ("precomputed", K),
        (lambda A, B: RBF(gamma=0.5)(np.asarray(A), np.asarray(B)), X),
    ):
        d = SVC(kernel=kernel).fit(data, y, w).diagnose(data, y, w)
        np.testing.assert_allclose(d.slack, expected.slack, atol=1e-6)
        assert d.radius == pytest.approx(expected.radius, rel=1e-3)

    def same_letters(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    words = ["abc", "abd", "xyz", "xya", "bca", "zzx"]
    labels = [0, 0, 1, 1, 0, 1]
    svc = SVC(kernel=same_letters).fit(words, labels)
    assert svc.diagnose(words, labels).gap < 1e-6
    with pytest.raises(ValueError, match="diagnose needs"):
        svc.diagnose(words[::-1], labels)


def test_an_indefinite_kernel_has_no_bound(two):
    X, y, w = two
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svc = SVC(kernel="sigmoid", gamma=0.1, coef0=-1.0, C=100.0).fit(X, y, w)
    d = svc.diagnose(X, y, w)
    assert np.isfinite(d.dual)
    assert np.isinf(d.gap) == np.isinf(svc.dual_gap_)


def test_a_fit_that_ended_early_is_diagnosed_as_it_is(two):
    X, y, w = two
    with pytest.warns(UserWarning):
        svc = SVC(C=100.0, max_iter=5).fit(X, y, w)
    d = svc.diagnose(X, y, w)
    best = SVC(C=100.0, gap_tol=1e-10).fit(X, y, w).objective_
    assert d.dual <= best <= d.primal
    assert d.violation > 1e-3


def test_labels_that_the_fit_has_not_seen(two):
    X, y, _ = two
    svc = SVC().fit(X, y)
    with pytest.raises(ValueError, match="labels other than those of the fit"):
        svc.margins(X, np.where(y == "left", "middle", y))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        svc.margins(X, y[:5])


@pytest.mark.parametrize("by", ["grades", "pairs"])
def test_rankings_are_diagnosed_by_pairs(two, by):
    X, _, w = two
    y, qid = np.round(X[:, 2]), np.arange(100) % 4
    pairs = np.random.default_rng(3).permutation(np.argwhere(y[:, None] > y))[:300]
    given = {"y": y, "qid": qid} if by == "grades" else {"pairs": pairs}
    rank = RankSVM(kernel="linear", C=0.01, tol=1e-9).fit(X, **given, sample_weight=w)
    d = rank.diagnose(X, **given, sample_weight=w)

    if by == "grades":
        alike = (y[:, None] > y) & (qid[:, None] == qid)
        expected = np.argwhere(alike & (w[:, None] * w > 0))
        order = np.lexsort(d.pairs.T[::-1])
        np.testing.assert_array_equal(d.pairs[order], expected)
    else:
        np.testing.assert_array_equal(d.pairs, pairs[w[pairs].prod(axis=1) > 0])
    a, b = d.pairs.T
    assert len(d.pairs) == rank.n_pairs_ == len(d.alpha) == len(d.case)
    f, norm, price = rank.predict(X), np.linalg.norm(rank.coef_), 0.01 * w[a] * w[b]
    ahead = f[a] - f[b]
    np.testing.assert_allclose(d.slack, np.maximum(1 - ahead, 0), atol=1e-9)
    np.testing.assert_allclose(d.margin, ahead / norm)
    assert d.norm == pytest.approx(norm)
    np.testing.assert_allclose(d.alpha @ (X[a] - X[b]), rank.coef_[0], atol=1e-9)
    assert np.all((d.alpha >= 0) & (d.alpha <= price))
    assert d.primal == pytest.approx(norm**2 / 2 + price @ d.slack)
    assert d.dual == pytest.approx(d.alpha.sum() - norm**2 / 2)
    assert d.primal == pytest.approx(rank.objective_) and 0 <= d.gap <= 1e-6 * d.primal

    case = np.select(
        [ahead <= 0, np.abs(ahead - 1) < 1e-6, ahead > 1], ["misordered", "on", "outside"], "inside"
    )
    np.testing.assert_array_equal(d.case, case)
    assert set(case) == {"misordered", "on", "outside", "inside"}
    np.testing.assert_array_equal((d.alpha > 0) & (d.alpha < price), case == "on")
    np.testing.assert_array_equal(d.alpha == 0, case == "outside")
    assert d.intercept_interval == (0, 0) and d.classes == ()
    points = X[w > 0]
    furthest = np.sqrt(((points[:, None] - points) ** 2).sum(-1).max())
    assert furthest / 2 <= d.radius <= furthest / np.sqrt(2)
    assert d.complexity == pytest.approx((d.radius * norm) ** 2)
    assert "pairs" in str(d) and "misordered" in str(d)


def test_rankings_know_their_pairs_again(two):
    X, _, _ = two
    y, pairs = np.round(X[:, 2]), np.array([(0, 1), (2, 3), (4, 5)])
    rank = RankSVM().fit(X, y)
    for other in ({"y": -y}, {"y": y, "qid": np.arange(100) % 4}, {"pairs": pairs}):
        with pytest.raises(ValueError, match=r"diagnose needs .*X, y, qid, pairs, sample_weight"):
            rank.diagnose(X, **other)
    rank.fit(X, pairs=pairs)
    assert len(rank.diagnose(X, pairs=pairs).alpha) == 3
    with pytest.raises(ValueError, match="diagnose needs"):  # the same first items, other second
        rank.diagnose(X, pairs=pairs[:, [0, 0]] + [0, 10])
    assert not hasattr(rank, "margins")


def test_the_fit_is_not_warned_of_again(two):
    X, _, _ = two
    machine = SVDD(C=1e-4)
    with pytest.warns(UserWarning, match="so small"):
        machine.fit(X)
    machine.diagnose(X)  # warnings are errors here


def test_nothing_is_drawn_by_diagnose(two):
    X, y, _ = two
    rng = np.random.RandomState(0)
    machine = SVC(probability=True, random_state=rng).fit(X, y)
    before = rng.get_state()[2]
    machine.diagnose(X, y)
    assert rng.get_state()[2] == before
