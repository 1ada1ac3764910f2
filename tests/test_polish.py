"""Polishing: an approximate solution becomes the exact one, also where it errs in what is free."""

import numpy as np
import pytest
from machines import LINEAR_SYSTEMS, SOFT, make
from sklearn.datasets import make_classification

from maxmargin import SVC, SVR, OneClassSVM
from maxmargin.kernels import Linear, native
from maxmargin.polish import polish
from maxmargin.problem import c_svc
from maxmargin.run import scores_of
from maxmargin.solve import solve

# Ranking has more pairs than items, so that its equations are singular; it is polished by luck.
QUADRATIC = [name for name in SOFT if name not in (*LINEAR_SYSTEMS, "ranking")]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", QUADRATIC)
def test_a_rough_solution_becomes_exact(name, seed):
    """With more features than items the model is unique, and its equations are regular."""
    machine = make(name, seed, n=12, d=30, weighted=True)
    problem, K = machine.problem, machine.K
    exact = solve(problem, K, tol=1e-12, polish=False)
    rough = solve(problem, K, tol=0.3, polish=False)
    c, F = polish(problem, native(K), rough.coefficients, rough.scores)
    assert np.all((c >= problem.lower) & (c <= problem.upper))
    np.testing.assert_allclose(F, K @ problem.spread(c), atol=1e-12)
    sums = np.bincount(problem.group + 1, c, len(problem.target) + 1)[1:]
    np.testing.assert_allclose(sums, problem.target, atol=1e-12)
    np.testing.assert_allclose(F, exact.scores, atol=1e-9)


@pytest.mark.parametrize("machine", [SVC(C=3.0), SVR(epsilon=0.2), OneClassSVM(nu=0.3)], ids=str)
def test_a_weight_of_two_is_a_duplicate_to_the_last_digits(machine):
    X, y = make_classification(400, 6, flip_y=0.1, random_state=0)
    weights = np.random.default_rng(0).integers(0, 4, 400)
    twice = np.repeat(np.arange(400), weights)
    values = machine.predict if isinstance(machine, SVR) else machine.decision_function
    for tol in (1e-2, 1e-3):
        machine.set_params(tol=tol).fit(X, y, sample_weight=weights)
        assert machine.subproblems_[0].violation < 1e-12
        weighted = values(X)
        machine.fit(X[twice], y[twice])
        repeated = values(X)
        np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-10)


@pytest.mark.parametrize("C, d", [(10.0, 5), (1e3, 5)])
def test_what_is_claimed_of_a_polished_point_is_true_of_it(C, d):
    """Its scores are computed from its coefficients, not carried along."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)
    items = Linear().fit(X).prepare(X)
    problem = c_svc(y, C)
    solution = solve(problem, items, max_iter=10**6)
    fresh = scores_of(problem, items, solution.coefficients, 1)
    np.testing.assert_array_equal(solution.scores, fresh)
