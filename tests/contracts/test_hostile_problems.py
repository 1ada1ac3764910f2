"""Problems at the edge of what float64 and the mathematics allow: every solver ends, with a
feasible point and an honest sentence.
"""

from dataclasses import replace

import numpy as np
import pytest
from machines import LINEAR_SYSTEMS, SOFT, draw, make
from textbook import assert_feasible, dual_optimum, gradient, objective, violation

from maxmargin import problem as formulations
from maxmargin.certificate import certify
from maxmargin.exceptions import NotSeparableError
from maxmargin.solution import Accuracy, Outcome, describe, relative_gap

LIMIT = 10_000
WITHOUT_C = ("nu_svc", "one_class", "svdd")


def check(solution, problem, K, optimum=None, rel=1e-6):
    """Feasible, consistent, and the gap is honest."""
    c = solution.coefficients
    assert_feasible(problem, c)
    G = gradient(problem, K, c)
    scale = max(1.0, float(np.abs(G).max()), float(np.abs(K).max() * np.abs(c).sum()))
    np.testing.assert_allclose(solution.gradient, G, atol=1e-11 * scale)
    assert solution.violation == pytest.approx(violation(problem, c, G), abs=1e-11 * scale)
    assert solution.gap >= 0
    assert solution.status.startswith(solution.outcome.value)
    if optimum is not None:
        size = max(abs(optimum), 1e-3)
        assert solution.gap >= solution.objective - optimum - 1e-7 * size
        if solution.outcome is Outcome.CONVERGED:
            assert solution.objective == pytest.approx(optimum, rel=rel, abs=1e-9)


@pytest.mark.parametrize("name", SOFT)
def test_huge_C(solve, name):
    """1e12: converged or not, the certificate says how far it is."""
    machine = make(name, seed=1, n=10, C=1e12)
    solution = solve(machine.problem, machine.K, max_iter=LIMIT)
    check(solution, machine.problem, machine.K)
    if name not in LINEAR_SYSTEMS:  # whose w = phi'c cancels to nothing
        primal = machine.primal_value(solution.coefficients, solution.certificate_rho)
        reach = float(np.abs(solution.coefficients).sum())
        rounding = (
            1e-15 * float(machine.primal.cost.sum()) + 1e-14 * reach**2 * np.diag(machine.K).max()
        )
        size = abs(primal) + abs(solution.objective) + solution.gap
        gap = primal + solution.objective
        assert solution.gap == pytest.approx(gap, abs=1e-7 * size + rounding)


@pytest.mark.parametrize("name", ["c_svc", "c_svc_no_intercept"])
def test_huge_C_is_the_hard_margin_where_there_is_one(solve, name):
    hard = make(name.replace("c_svc", "hard_margin"), seed=0)
    finite = replace(
        hard.problem,
        lower=np.maximum(hard.problem.lower, -1e12),
        upper=np.minimum(hard.problem.upper, 1e12),
    )
    solution = solve(finite, hard.K, tol=1e-8)
    assert solution.converged
    assert -solution.objective == pytest.approx(hard.primal.optimum(), rel=1e-6)
    assert solve(hard.problem, hard.K, tol=1e-8).gap <= 1e-5


@pytest.mark.parametrize("name", [name for name in SOFT if name not in WITHOUT_C])
def test_tiny_C(solve, name):
    """f is zero: the loss of the best constant is all that is left, C times that of C = 1."""
    machine = make(name, seed=3, n=10, C=1e-9)
    solution = solve(machine.problem, machine.K, tol=1e-6)
    assert solution.converged, solution.status
    check(solution, machine.problem, machine.K)
    ones = make(name, seed=3, n=10).primal
    constant = replace(ones, W=0 * ones.W).optimum()
    assert -solution.objective == pytest.approx(1e-9 * constant, rel=1e-6, abs=1e-18)


def opposite(n=6):
    """Every point twice, with both labels."""
    x = draw(4, n=n).phi
    return np.vstack([x, x]), np.repeat([1.0, -1.0], n)


@pytest.mark.parametrize("intercept, flat", [(True, False), (True, True), (False, True)])
def test_no_separator_no_hard_margin(solve, intercept, flat):
    x, y = opposite(2)
    K = np.zeros((4, 4)) if flat else 1000 * x @ x.T
    problem = formulations.c_svc(y, np.inf, intercept=intercept)
    with pytest.raises(NotSeparableError, match="Use a finite C"):
        solve(problem, K)
    certificate = certify(problem, y, gradient(problem, K, y))
    assert certificate.gap == relative_gap(certificate) == np.inf
    assert "no duality gap is known" in describe(Outcome.MAX_ITER, certificate, Accuracy(1e-3))


@pytest.mark.parametrize("C", [1e-3, 1.0, 10.0])
def test_duplicates_with_opposite_labels(solve, C):
    x, y = opposite()
    K = x @ x.T
    for problem in (formulations.c_svc(y, C), formulations.c_svc(y, C, intercept=False)):
        solution = solve(problem, K, max_iter=LIMIT)
        # Nothing beats f = 0, whose loss is one everywhere.
        check(solution, problem, K, optimum=-C * len(y), rel=1e-3)
        assert solution.converged
        assert np.abs(solution.scores).max() <= 1e-2


@pytest.mark.parametrize("name", SOFT)
def test_zero_kernel(solve, name):
    machine = make(name, seed=5, n=8, C=0.5, weighted=True)
    problem, K = machine.problem, np.zeros_like(machine.K)
    solution = solve(problem, K, tol=1e-6)
    assert solution.converged, solution.status
    check(solution, problem, K, dual_optimum(problem, K))
    assert not solution.scores.any()


@pytest.mark.parametrize("name", SOFT)
def test_a_row_of_zeros(solve, name):
    machine = make(name, seed=6, n=9, C=0.5, weighted=True)
    K = machine.K + np.eye(9)
    K[4] = K[:, 4] = 0
    solution = solve(machine.problem, K, tol=1e-6)
    assert solution.converged, solution.status
    check(solution, machine.problem, K, dual_optimum(machine.problem, K))


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("name", ["c_svc", "nu_svr", "ranking", "crammer_singer", "least_squares"])
def test_kernels_of_any_scale(solve, name, scale):
    """K s with C / s is the same machine."""
    plain = make(name, seed=7, n=8)
    scaled = make(name, seed=7, n=8, C=1 / scale)
    first = solve(plain.problem, plain.K, tol=1e-7)
    second = solve(scaled.problem, plain.K * scale, tol=1e-7)
    assert second.converged, second.status
    check(second, scaled.problem, plain.K * scale)
    assert second.objective * scale == pytest.approx(first.objective, rel=1e-5)


def test_constant_targets(solve):
    K = draw(8, n=7).K
    for t in (0.0, 3.0, -1e6):
        problem = formulations.epsilon_svr(np.full(7, t), 1.0, 0.1)
        solution = solve(problem, K)
        assert not solution.coefficients.any()
        assert solution.rho == pytest.approx([-t])
        assert solution.gap == 0
        for problem in (
            formulations.nu_svr(np.full(7, t), 1.0, 0.5),
            formulations.squared_epsilon_svr(np.full(7, t), 1.0, 0.1),
            formulations.least_squares(np.full(7, t)),
        ):
            solution = solve(problem, K, tol=1e-6)
            assert solution.converged
            check(solution, problem, K)
            np.testing.assert_allclose(solution.scores, 0, atol=1e-6 * max(1, abs(t)))
            assert -solution.rho.mean() == pytest.approx(t, rel=1e-6, abs=1e-6)


def test_one_class_only(solve):
    """The sum leaves nothing but zero, and the intercept is the end that exists."""
    problem = formulations.c_svc(np.ones(4), 1.0)
    solution = solve(problem, draw(0, n=4).K)
    assert solution.converged
    assert not solution.coefficients.any()
    assert solution.rho == pytest.approx([-1])
    assert solution.gap == 0


def test_one_sample_per_class(solve):
    x = np.array([[0.0, 1.0], [2.0, 1.0]])
    solution = solve(formulations.c_svc([1, -1], 10.0), x @ x.T, tol=1e-9)
    np.testing.assert_allclose(solution.coefficients, [0.5, -0.5])  # 2 / |x - z|^2
    assert -solution.rho[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "problem",
    [formulations.one_class([2.0], 0.5), formulations.svdd([4.0], 1.0)],
    ids=["one_class", "svdd"],
)
def test_one_item(solve, problem):
    solution = solve(problem, np.array([[4.0]]))
    assert solution.converged
    assert solution.coefficients == pytest.approx([1.0])
    assert solution.violation == 0
    assert solution.gap <= 1e-13


def general(linear, lower, upper, group, target, **others):
    m = len(linear)
    values = {
        "linear": np.asarray(linear, dtype=np.float64),
        "lower": np.broadcast_to(np.float64(lower), m).copy(),
        "upper": np.broadcast_to(np.float64(upper), m).copy(),
        "item": np.arange(m),
        "group": np.asarray(group),
        "target": np.asarray(target, dtype=np.float64),
        "ridge": np.zeros(m),
        "n_items": m,
        "channel": np.zeros(m, dtype=np.int64),
    }
    return formulations.Problem(**(values | others))


def test_one_variable_per_group(solve):
    """Every sum names its variable; nothing can move."""
    target = np.array([0.25, -0.5, 1.0])
    problem = general([1.0, 2.0, 3.0], -1.0, 1.0, [0, 1, 2], target)
    K = draw(9, n=3).K
    solution = solve(problem, K)
    assert solution.converged
    check(solution, problem, K, objective(problem, K, target))
    np.testing.assert_allclose(solution.coefficients, target)


def test_grouped_and_ungrouped_variables_together(solve):
    rng = np.random.default_rng(10)
    group = np.array([0, -1, 1, 0, -1, 1, 0, 1])
    problem = general(rng.normal(size=8), -1.0, 1.0, group, [0.5, -0.25])
    K = draw(10, n=8).K
    solution = solve(problem, K, tol=1e-7)
    assert solution.converged, solution.status
    check(solution, problem, K, dual_optimum(problem, K))


def test_boxes_without_width(solve):
    """Some variables are fixed, away from zero too."""
    rng = np.random.default_rng(11)
    lower = np.where(np.arange(8) % 2, -1.0, 0.3)
    upper = np.where(np.arange(8) % 2, 1.0, 0.3)
    K = draw(11, n=8).K
    for group, target in ((np.zeros(8, dtype=int), [0.7]), (np.full(8, -1), [])):
        problem = general(rng.normal(size=8), lower, upper, group, target)
        solution = solve(problem, K, tol=1e-7)
        assert solution.converged
        check(solution, problem, K, dual_optimum(problem, K))
        np.testing.assert_array_equal(solution.coefficients[::2], 0.3)
    everything = general(np.ones(8), 0.5, 0.5, np.zeros(8, dtype=int), [4.0])
    solution = solve(everything, K)
    assert solution.converged
    assert solution.violation == 0
    assert solution.gap <= 1e-13


WEIGHTED = {
    "c_svc": lambda d, w: formulations.c_svc(d.signs(), 1.0, w),
    "c_svc_no_intercept": lambda d, w: formulations.c_svc(d.signs(), 1.0, w, False),
    "squared_hinge_svc": lambda d, w: formulations.squared_hinge_svc(d.signs(), 1.0, w),
    "nu_svc": lambda d, w: formulations.nu_svc(d.signs(), 1e-5, w),
    "epsilon_svr": lambda d, w: formulations.epsilon_svr(d.targets(), 1.0, 0.1, w),
    "squared_epsilon_svr": lambda d, w: formulations.squared_epsilon_svr(d.targets(), 1.0, 0.1, w),
    "nu_svr": lambda d, w: formulations.nu_svr(d.targets(), 1.0, 0.5, w),
    "one_class": lambda d, w: formulations.one_class(w, 0.5),
    "svdd": lambda d, w: formulations.svdd(np.diag(d.K), 1.0, w),
    "ranking": lambda d, w: formulations.ranking(np.argwhere(np.tri(5, k=-1)), 10, 1.0, w),
    "crammer_singer": lambda d, w: formulations.crammer_singer(np.arange(10) % 3, 3, 1.0, w),
    "least_squares": lambda d, w: formulations.least_squares(d.targets(), 1.0, w),
}


@pytest.mark.parametrize("build", WEIGHTED.values(), ids=WEIGHTED)
def test_weights_of_twelve_decades(solve, build):
    data = draw(12, n=10)
    weights = 10 ** np.random.default_rng(12).uniform(-6, 6, size=10)
    problem, K = build(data, weights), data.K + 0.1 * np.eye(10)
    solution = solve(problem, K, gap_tol=1e-6, max_iter=LIMIT)
    assert solution.converged, solution.status
    check(solution, problem, K)
    assert solution.relative_gap <= 1e-6 or solution.outcome is Outcome.ROUNDING


def test_nu_is_one(solve):
    """Everything is at its bound, and stays there exactly."""
    data = draw(13, n=8)
    y = np.repeat([1.0, -1.0], 4)
    weights = np.full(8, 0.1)
    for problem in (
        formulations.nu_svc(y, 1.0),
        formulations.nu_svc(y, 1.0, weights),
        formulations.one_class(np.ones(8), 1.0),
        formulations.one_class(weights, 1.0),
    ):
        solution = solve(problem, data.K)
        assert solution.converged
        np.testing.assert_array_equal(np.abs(solution.coefficients), problem.upper - problem.lower)
        check(solution, problem, data.K, objective(problem, data.K, solution.coefficients))
        assert solution.gap <= 1e-12
    problem = formulations.nu_svr(data.targets(), 1.0, 1.0)
    solution = solve(problem, data.K, tol=1e-7)
    check(solution, problem, data.K, dual_optimum(problem, data.K))


@pytest.mark.parametrize("options", [{"tol": 0.0}, {"tol": 1e-15}, {"gap_tol": 0.0}])
@pytest.mark.parametrize("name", ["c_svc", "ranking", "crammer_singer", "squared_epsilon_svr"])
def test_what_rounding_forbids_is_not_waited_for(solve, name, options):
    machine = make(name, seed=14, n=8, C=10.0)
    solution = solve(machine.problem, machine.K, **options)
    assert solution.outcome in (Outcome.CONVERGED, Outcome.ROUNDING), solution.status
    assert solution.converged
    assert solution.relative_gap <= 1e-9


@pytest.mark.parametrize("options", [{}, {"gap_tol": 1e-6}])
@pytest.mark.parametrize("intercept", [True, False])
def test_an_indefinite_kernel_has_no_gap(solve, intercept, options):
    """Nor where every pair of variables moves on a convex parabola."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(20, 3))
        K = np.tanh(0.5 * x @ x.T)
        y = np.where(rng.random(20) > 0.5, 1.0, -1.0)
        problem = formulations.c_svc(y, 10.0, intercept=intercept)
        solution = solve(problem, K, **options)
        assert_feasible(problem, solution.coefficients)
        assert solution.outcome is Outcome.INDEFINITE
        assert solution.gap == np.inf
        assert "not positive semi-definite" in solution.status
        assert solution.violation <= 1e-3
        assert solve(problem, K, max_iter=1, **options).gap == np.inf


def test_a_kernel_that_is_definite_where_it_matters_has_a_gap(solve):
    """-|x - z|^2 is positive on coefficients that sum to zero, and on no others."""
    x = draw(15, n=10).phi
    K = -((x[:, None] - x) ** 2).sum(axis=2)
    y = np.where(np.arange(10) % 2, 1.0, -1.0)
    problem = formulations.c_svc(y, 1.0)
    solution = solve(problem, K, tol=1e-7)
    check(solution, problem, K, dual_optimum(problem, x @ x.T * 2))
    assert solution.outcome is Outcome.CONVERGED
    assert solve(formulations.c_svc(y, 1.0, intercept=False), K).outcome is Outcome.INDEFINITE


@pytest.mark.parametrize("name", ["c_svc", "nu_svc", "nu_svr", "crammer_singer", "svdd"])
def test_a_start_from_another_world(solve, name):
    machine = make(name, seed=16, n=8)
    rng = np.random.default_rng(16)
    best = solve(machine.problem, machine.K, tol=1e-7)
    for size in (1e-300, 1e6, 1e15, 1e300):
        start = size * rng.normal(size=len(machine.problem))
        solution = solve(machine.problem, machine.K, start=start, tol=1e-6)
        check(solution, machine.problem, machine.K)
        assert solution.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-8)


def test_hard_margins_of_every_kind(solve):
    """C = inf beyond two classes: a ball, all classes at once, a tube."""
    data = draw(17, n=8, d=12)
    K = data.K
    for problem in (
        formulations.svdd(np.diag(K), np.inf),
        formulations.svdd(np.full(8, 2.0), np.inf),
        formulations.svdd(np.ones(8), np.inf),
        formulations.crammer_singer(np.arange(8) % 3, 3, np.inf),
        formulations.epsilon_svr(data.targets(), np.inf, 0.1),
        formulations.epsilon_svr(data.targets(), np.inf, 0.0, intercept=False),
        formulations.ranking(np.array([[i, j] for i in range(4) for j in range(4, 8)]), 8, np.inf),
    ):
        optimum = dual_optimum(problem, K)
        solution = solve(problem, K, tol=1e-6)
        assert solution.converged, solution.status
        check(solution, problem, K, optimum)
        tube = len(problem) == 2 * len(K) and problem.n_channels == 1
        exact = solution.violation <= 1e-12  # a tube that is violated at all has no gap
        assert solution.gap <= 1e-4 * abs(optimum) or (tube and not exact)
        by_gap = solve(problem, K, gap_tol=1e-5)
        assert by_gap.objective == pytest.approx(optimum, rel=1e-4)


def test_a_ball_around_the_origin(solve):
    """Its centre is zero, which is no missing margin."""
    x = np.array([[1.0], [-1.0], [0.5], [-0.5]])
    solution = solve(formulations.svdd((x**2).ravel(), np.inf), x @ x.T, tol=1e-9)
    assert solution.converged
    assert solution.objective == pytest.approx(-0.5)
    np.testing.assert_allclose(solution.coefficients, [0.5, 0.5, 0, 0], atol=1e-9)


def test_no_claim_far_from_a_hard_tube():
    """At zero the dual is zero, and so is the primal of a tube that is wide enough: no gap."""
    data = draw(18, n=8, d=12)
    problem = formulations.epsilon_svr(data.targets(), np.inf, 0.1)
    assert certify(problem, np.zeros(16), problem.linear).gap == np.inf
    problem = formulations.crammer_singer(np.arange(8) % 3, 3, np.inf)
    assert certify(problem, np.zeros(24), problem.linear).gap == np.inf
