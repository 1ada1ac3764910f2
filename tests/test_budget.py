"""Perceptrons on a budget, and their policies, against the papers' definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BudgetPerceptron, KernelPerceptron
from maxmargin.kernels import RBF
from maxmargin.perceptron.policies import (
    POLICIES,
    Forgetron,
    Projectron,
    ProjectronPlus,
    largest_root,
)


def overlapping(n=300, d=3, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(X[:, 0] + rng.normal(size=n), [0.0] if classes == 2 else [-1, 1])


ONE_PASS = {"gamma": 0.2, "max_iter": 1, "tol": None, "shuffle": False}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("budget", [1, 2, 13])
def test_the_budget_is_never_exceeded(policy, classes, budget):
    X, y = overlapping(classes=classes)
    model = BudgetPerceptron(budget=budget, policy=policy, gamma=0.2)
    for rows in np.array_split(np.arange(len(y)), 20):
        model.partial_fit(X[rows], y[rows], classes=range(classes))
        assert model.n_support_.max() <= budget
        assert model.dual_coef_.shape == (len(model.n_support_), model.n_support_.sum())
        np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
    model = BudgetPerceptron(budget=budget, policy=policy, max_iter=4, tol=None).fit(X, y)
    assert model.n_support_.max() <= budget


@pytest.mark.parametrize("policy", ["forgetron", "random", Projectron(eta=0)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_without_a_budget_it_is_the_kernel_perceptron(policy, fit_intercept, classes):
    X, y = overlapping(n=120, classes=classes)
    options = {"fit_intercept": fit_intercept, "gamma": 1.0, "max_iter": 3, "tol": None}
    model = BudgetPerceptron(policy=policy, budget=None, **options).fit(X, y)
    plain = KernelPerceptron(**options).fit(X, y)
    np.testing.assert_array_equal(model.n_mistakes_, plain.n_mistakes_)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_rows_in_the_span_are_projected_on_it_exactly():
    """A linear kernel in three dimensions has no more than three directions."""
    X, y = overlapping(n=200)
    X = np.round(X, 1)
    options = {"kernel": "linear", "fit_intercept": False, "max_iter": 2, "tol": None}
    model = BudgetPerceptron(policy=Projectron(eta=0), budget=None, **options).fit(X, y)
    plain = KernelPerceptron(**options).fit(X, y)
    assert model.n_support_ <= 3
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-8)


def by_the_paper(K, y, budget, policy):
    """Projectron(++) and Forgetron row by row, with plain inverses: coefficients of all rows."""
    c, S, M, Q = np.zeros(len(y)), [], 0, 0.0
    for i in range(len(y)):
        margin = y[i] * (K[i] @ c)
        if margin > policy.margin:
            continue
        M += margin <= 0
        if isinstance(policy, Forgetron):
            c[i] = y[i]
            S.append(i)
            if len(S) > budget:
                r = S.pop(0)
                sigma, mu = abs(c[r]), y[r] * (K[r] @ c) / K[r, r]
                phi = np.linspace(0, 1, 200_001)
                damage = (sigma * phi) ** 2 + 2 * sigma * phi - 2 * sigma * phi**2 * mu
                chosen = np.flatnonzero(Q + damage <= 15 / 32 * M).max()
                Q += damage[chosen]
                c *= phi[chosen]
                c[r] = 0
            continue
        d = np.linalg.solve(K[np.ix_(S, S)], K[S, i])
        delta = np.sqrt(max(K[i, i] - K[i, S] @ d, 0.0))
        if margin <= 0:
            if delta <= policy.eta or len(S) >= budget:
                c[S] += y[i] * d
            else:
                c[i] = y[i]
                S.append(i)
        elif (loss := 1 - margin) > delta / policy.eta:
            length = K[i, S] @ d
            tau = min(loss / length, 2 * (loss - delta / policy.eta) / length, 1)
            c[S] += y[i] * tau * d
    return c, M


@pytest.mark.parametrize(
    "policy", [Forgetron(), Projectron(eta=0.3), ProjectronPlus(eta=0.4), Projectron(eta=1e-3)]
)
@pytest.mark.parametrize("budget", [5, 40])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_policies_do_what_their_papers_say(policy, budget, fit_intercept):
    X, y = overlapping()
    K = RBF(gamma=0.2)(X) + fit_intercept
    c, M = by_the_paper(K, 2 * y - 1, budget, policy)
    options = {**ONE_PASS, "budget": budget, "fit_intercept": fit_intercept}
    model = BudgetPerceptron(policy=policy, **options).fit(X, y)
    assert model.n_mistakes_ == M
    tolerance = 1e-3 if isinstance(policy, Forgetron) else 1e-6  # phi from a table of 200 000
    np.testing.assert_allclose(model.decision_function(X), K @ c, atol=tolerance)
    scaled = BudgetPerceptron(policy=policy, eta0=0.5, **options).fit(X, y)
    if not isinstance(policy, ProjectronPlus):  # whose margin is 1
        np.testing.assert_allclose(scaled.decision_function(X), K @ c / 2, atol=tolerance)


@given(a=st.floats(-50, 50), b=st.floats(1e-3, 50), room=st.floats(1e-3, 50))
def test_the_largest_factor_that_the_damage_allows(a, b, room):
    phi = largest_root(a, b, room)
    assert 0 < phi <= 1
    assert a * phi**2 + b * phi <= room * (1 + 1e-9)
    more = np.linspace(phi, 1, 1000)[1:]
    if phi < 1:
        assert a * phi**2 + b * phi == pytest.approx(room)
        # Above phi the damage is too large somewhere: at 1, or phi would be 1.
        assert a + b > room
        assert np.all(a * more**2 + b * more >= room * (1 - 1e-9))


def test_what_random_forgets_is_drawn_from_random_state():
    X, y = overlapping()
    fits = [
        BudgetPerceptron(policy="random", budget=20, random_state=s, **ONE_PASS).fit(X, y).support_
        for s in (0, 0, 1)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


def test_policies_are_searched_and_refused():
    X, y = overlapping()
    model = BudgetPerceptron(policy=Projectron(eta=0.5)).set_params(policy__eta=0.25)
    assert model.policy.eta == 0.25
    with pytest.raises(ValueError, match="eta"):
        model.set_params(policy__eta=-1).fit(X, y)
    for bad in ({"policy": "oldest"}, {"budget": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            BudgetPerceptron(**bad).fit(X, y)
