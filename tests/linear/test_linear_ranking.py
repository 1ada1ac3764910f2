"""LinearRankSVM against RankSVM, a generic solver, and pairs that are formed one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from textbook import Primal

from maxmargin import LinearRankSVM, RankSVM
from maxmargin.linear.pairs import RankingProblem, paired
from maxmargin.linear.problem import Design


def items(n=50, seed=0, queries=3, grades=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.8)
    y = rng.integers(0, grades, n).astype(float) - 1
    X[:, 0] += 0.5 * y
    return X, y, rng.integers(0, queries, n), rng.random(n) * 2


def all_pairs(y, query):
    n = len(y)
    return [(a, b) for a in range(n) for b in range(n) if y[a] > y[b] and query[a] == query[b]]


# ------------------------------------------------------------------ sums over pairs


@given(st.integers(0, 10_000), st.sampled_from([1, 2, 30]), st.sampled_from([1, 2, 5]))
def test_sums_over_pairs(seed, n, k):
    rng = np.random.default_rng(seed)
    grades, query = rng.integers(0, 4, n) / 2, rng.integers(0, 3, n)
    scores = rng.normal(size=n).round(int(rng.integers(0, 3)))  # with ties, and pairs at the margin
    values = rng.normal(size=(n, k))
    below, above = np.zeros((n, k)), np.zeros((n, k))
    for a, b in all_pairs(grades, query):
        if (1.0 - scores[a]) + scores[b] > 0:
            below[a] += values[b]
            above[b] += values[a]
    found = paired(grades, query).sums(scores, values, 2)
    np.testing.assert_allclose(found[0], below, atol=1e-12)
    np.testing.assert_allclose(found[1], above, atol=1e-12)


@pytest.mark.parametrize("squared", [False, True])
def test_risk_slopes_and_curvature(squared):
    X, y, query, weights = items()
    problem = RankingProblem(Design(X), y, query, weights, 0.7, squared)
    rng = np.random.default_rng(1)
    z, u = rng.normal(size=(2, len(y)))
    power = 1 + squared

    def risk(z):
        pairs = all_pairs(y, query)
        return sum(
            0.7 * weights[a] * weights[b] * max(0, 1 - z[a] + z[b]) ** power for a, b in pairs
        )

    value, c = problem.evaluate(z)
    assert value == pytest.approx(risk(z))
    step = 1e-6
    difference = (risk(z + step * u) - risk(z - step * u)) / (2 * step)
    assert -c @ u == pytest.approx(difference, rel=1e-6)
    assert problem.slope(z, u, 0.0) == pytest.approx(difference, rel=1e-6)
    if squared:
        change = problem.evaluate(z + step * u)[1] - problem.evaluate(z - step * u)[1]
        np.testing.assert_allclose(problem.curve(z, u), -change / (2 * step), rtol=1e-5)


@pytest.mark.parametrize("squared", [False, True])
def test_the_bound_is_that_of_pairs(squared):
    """beta is the sum of alpha less that of the conjugates, over all pairs."""
    X, y, query, weights = items()
    problem = RankingProblem(Design(X), y, query, weights, 0.7, squared)
    z = np.random.default_rng(1).normal(size=len(y))
    beta = 0.0
    for a, b in all_pairs(y, query):
        price, miss = 0.7 * weights[a] * weights[b], max(0, 1 - z[a] + z[b])
        alpha = 2 * price * miss if squared else price * (miss > 0)
        beta += alpha - alpha**2 / (4 * price) if squared else alpha
    assert problem.slopes(z).beta == pytest.approx(beta)


# ------------------------------------------------------------------ the machine


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_it_is_rank_svm_with_a_linear_kernel(C, weighted):
    X, y, query, weights = items()
    weight = weights if weighted else None
    ours = LinearRankSVM(C=C, tol=1e-10).fit(X, y, query, weight)
    kernel = RankSVM(kernel="linear", C=C, gap_tol=1e-11).fit(X, y, query, sample_weight=weight)
    assert ours.n_pairs_ == kernel.n_pairs_
    assert ours.objective_ == pytest.approx(kernel.objective_, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, kernel.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), kernel.predict(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_it_reaches_the_optimum_of_a_generic_solver(C, loss):
    X, y, query, weights = items(30)
    machine = LinearRankSVM(C=C, loss=loss, tol=1e-9).fit(X, y, query, weights)
    pairs = np.array(all_pairs(y, query))
    a, b = pairs.T
    best = Primal(
        X[a] - X[b],
        np.ones(len(pairs)),
        C * weights[a] * weights[b],
        np.arange(len(pairs)),
        1 + (loss == "squared_hinge"),
    ).optimum()
    assert machine.objective_ == pytest.approx(best, rel=1e-7)
    assert machine.dual_gap_ <= 1e-9 * machine.objective_
    assert machine.fit_status_ == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_copies(loss):
    X, y, query, _ = items()
    times = np.random.default_rng(1).integers(0, 3, len(y))
    again = np.repeat(np.arange(len(y)), times)
    a = LinearRankSVM(loss=loss, tol=1e-11).fit(X, y, query, times)
    b = LinearRankSVM(loss=loss, tol=1e-11).fit(X[again], y[again], query[again])
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_threads_storage_and_types(loss):
    X, y, query, _ = items()
    one, two = (LinearRankSVM(loss=loss, n_jobs=n).fit(X, y, query) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    exact = LinearRankSVM(loss=loss, tol=1e-10).fit(X, y, query)
    sparse = LinearRankSVM(loss=loss, tol=1e-10).fit(sp.csr_array(X), y, query)
    np.testing.assert_allclose(sparse.coef_, exact.coef_, atol=1e-6)
    single = LinearRankSVM(loss=loss, tol=1e-8).fit(X.astype(np.float32), y, query)
    np.testing.assert_allclose(single.coef_, exact.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_warm_start_and_limits(loss):
    X, y, query, _ = items()
    machine = LinearRankSVM(loss=loss, max_iter=2, tol=1e-10)
    with pytest.warns(match="max_iter=2"):
        machine.fit(X, y, query)
    assert machine.fit_status_ == 1
    machine.set_params(max_iter=1000, warm_start=True).fit(X, y, query)
    assert machine.fit_status_ == 0
    assert machine.fit(X, y, query).n_iter_ <= 2 or loss == "hinge"
    with pytest.warns(match="time_limit"):
        stopped = LinearRankSVM(loss=loss, tol=1e-15, time_limit=0).fit(X, y, query)
    assert stopped.dual_gap_ > 0


def test_the_score_counts_pairs():
    X, y, query, weights = items()
    machine = LinearRankSVM().fit(X, y, query)
    machine.coef_ = np.round(machine.coef_)  # ties
    X = np.round(X)
    f = machine.predict(X)
    right = total = 0.0
    for a, b in all_pairs(y, query):
        s = weights[a] * weights[b]
        right += s * ((f[a] > f[b]) + 0.5 * (f[a] == f[b]))
        total += s
    assert machine.score(X, y, query, weights) == pytest.approx(right / total)
    assert np.isnan(machine.score(X, np.zeros(len(y))))


def test_errors_name_what_is_wrong():
    X, y, query, _ = items()
    with pytest.raises(ValueError, match="nothing to order"):
        LinearRankSVM().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="nothing to order"):
        LinearRankSVM().fit(X, y, np.arange(len(y)))
    with pytest.raises(ValueError, match="qid"):
        LinearRankSVM().fit(X, y, query[:-1])
    with pytest.raises(ValueError, match="loss"):
        LinearRankSVM(loss="logistic").fit(X, y)
