"""RankSVM against a linear SVM of differences, the readable solver, and counted pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kendalltau
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from maxmargin import RankSVM, reference
from maxmargin.kernels import RBF
from maxmargin.problem import ranking
from maxmargin.svm.ranking import given_pairs, graded_pairs


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.round(2 * X[:, 0] + rng.normal(size=60))
    return X, y, rng.integers(0, 5, 60), rng.integers(0, 3, 60)


def all_pairs(y, qid):
    return np.array(
        [
            (a, b)
            for a in range(len(y))
            for b in range(len(y))
            if y[a] > y[b] and (qid is None or qid[a] == qid[b])
        ]
    )


@pytest.mark.parametrize("queries", [True, False])
def test_pairs_come_from_grades_within_queries(data, queries):
    _, y, qid, _ = data
    found = graded_pairs(y, qid if queries else None)
    wanted = all_pairs(y, qid if queries else None)
    assert set(map(tuple, found)) == set(map(tuple, wanted)) and len(found) == len(wanted)


def test_as_a_linear_machine_of_differences(data):
    X, y, qid, _ = data
    rank = RankSVM(kernel="linear", C=0.5, tol=1e-9).fit(X, y, qid)
    pairs = all_pairs(y, qid)
    D = X[pairs[:, 0]] - X[pairs[:, 1]]
    both = np.vstack([D, -D])  # LinearSVC wants two classes; half the weight for each copy
    svc = LinearSVC(loss="hinge", C=0.25, fit_intercept=False, tol=1e-10, max_iter=10**6)
    svc.fit(both, np.repeat([1, -1], len(D)))
    np.testing.assert_allclose(rank.coef_, svc.coef_, atol=1e-5)
    slack = np.maximum(0, 1 - D @ rank.coef_[0]).sum()
    assert rank.objective_ == pytest.approx((rank.coef_**2).sum() / 2 + 0.5 * slack)
    assert rank.n_pairs_ == len(pairs)
    np.testing.assert_array_equal(rank.intercept_, [0.0])


def test_as_the_readable_solver(data):
    X, y, qid, w = data
    rank = RankSVM(gamma=0.3, tol=1e-8).fit(X, y, qid, sample_weight=w)
    pairs = all_pairs(y, qid)
    weights = w[pairs].prod(axis=1)
    problem = ranking(pairs[weights > 0], 60, 1.0, weights[weights > 0])
    solution = reference.solve(problem, RBF(gamma=0.3)(X), tol=1e-8)
    assert rank.objective_ == pytest.approx(solution.primal, rel=1e-8)
    np.testing.assert_allclose(rank.predict(X), solution.scores[:, 0], atol=1e-6)


def test_explicit_pairs(data):
    X, y, qid, w = data
    pairs = all_pairs(y, qid)
    from_grades = RankSVM(tol=1e-9).fit(X, y, qid, sample_weight=w).predict(X)
    given = RankSVM(tol=1e-9).fit(X, pairs=pairs, sample_weight=w).predict(X)
    np.testing.assert_allclose(given, from_grades, atol=1e-7)
    graded_too = RankSVM(tol=1e-9).fit(X, -y, pairs=pairs.tolist(), sample_weight=w).predict(X)
    np.testing.assert_allclose(graded_too, from_grades, atol=1e-7)


def test_a_weight_counts_as_repetitions(data):
    X, y, qid, w = data
    again = np.repeat(np.arange(60), w)
    weighted = RankSVM(tol=1e-10).fit(X, y, qid, sample_weight=w).predict(X)
    repeated = RankSVM(tol=1e-10).fit(X[again], y[again], qid[again]).predict(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)


def test_score_counts_pairs(data):
    X, y, qid, w = data
    rank = RankSVM().fit(X, y, qid)
    scores = rank.predict(X)
    for queries in (qid, None):
        pairs = all_pairs(y, queries)
        right = scores[pairs[:, 0]] > scores[pairs[:, 1]]
        assert rank.score(X, y, queries) == pytest.approx(right.mean())
        weights = w[pairs].prod(axis=1)
        weighted = rank.score(X, y, queries, sample_weight=w)
        assert weighted == pytest.approx(np.average(right, weights=weights))
    distinct = np.random.default_rng(0).permutation(60)
    tau = kendalltau(scores, distinct).statistic
    assert rank.score(X, distinct) == pytest.approx((tau + 1) / 2)
    assert np.isnan(rank.score(X, np.zeros(60)))
    flat = RankSVM(gamma=0).fit(X, y)
    assert flat.score(X, y) == pytest.approx(0.5)


def test_hard_margin(data):
    X, _, qid, _ = data
    y = X @ [1.0, 2.0, 0.0, -1.0]
    rank = RankSVM(kernel="linear", C=np.inf).fit(X, y, qid)
    assert rank.score(X, y, qid) == 1.0
    pairs = all_pairs(y, qid)
    scores = rank.predict(X)
    assert (scores[pairs[:, 0]] - scores[pairs[:, 1]]).min() == pytest.approx(1, abs=2e-3)


def test_sparse_and_precomputed(data):
    X, y, qid, _ = data
    dense = RankSVM(gamma=0.3, tol=1e-8).fit(X, y, qid).predict(X)
    sparse = RankSVM(gamma=0.3, tol=1e-8).fit(sp.csr_array(X), y, qid).predict(sp.csr_array(X))
    K = RBF(gamma=0.3)(X)
    matrix = RankSVM(kernel="precomputed", tol=1e-8).fit(K, y, qid).predict(K)
    np.testing.assert_allclose(sparse, dense, atol=1e-6)
    np.testing.assert_allclose(matrix, dense, atol=1e-6)


def test_in_a_grid(data):
    X, y, _, _ = data
    search = GridSearchCV(RankSVM(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert 0.5 < search.best_score_ <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "requires y to be passed"),
        ({"y": np.zeros(60)}, "nothing to order"),
        ({"y": np.arange(60), "qid": np.arange(60)}, "nothing to order"),
        ({"y": np.arange(60), "qid": np.arange(3)}, "qid must name the query"),
        ({"y": np.full(60, np.nan)}, "NaN"),
        ({"pairs": [(0, 60)]}, "must number the 60 rows"),
        ({"pairs": [(-1, 3)]}, "must number the 60 rows"),
        ({"pairs": [(3, 3)]}, "two different items"),
        ({"pairs": [(0.5, 1)]}, "must hold integers"),
        ({"pairs": [0, 1]}, "must hold integers"),
        ({"pairs": np.empty((0, 2), dtype=int)}, "nothing to order"),
    ],
)
def test_what_cannot_be_ranked_is_named(data, wrong, message):
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(data[0], **wrong)


def test_pairs_of_dropped_items_are_dropped():
    kept = np.array([0, 2, 3])
    np.testing.assert_array_equal(given_pairs([(0, 1), (3, 2), (2, 0)], 4, kept), [(2, 1), (1, 0)])


def test_many_pairs_converge_at_the_default_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    y = X[:, 0] + 0.3 * rng.normal(size=500)
    rank = RankSVM(time_limit=30).fit(X, y)
    assert rank.n_pairs_ == 500 * 499 // 2
    assert rank.status_.startswith("converged: ")
    assert rank.dual_gap_ <= 0.01 * rank.objective_
