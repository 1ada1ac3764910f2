"""Properties of the problem, its certificate and its feasible points, looked for by hypothesis."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import LINEAR_SYSTEMS, MAKERS, SOFT, feasible_point, make
from textbook import (
    assert_feasible,
    dual_optimum,
    gradient,
    nearest_feasible,
    objective,
    violation,
)

from maxmargin import problem as formulations
from maxmargin import reference, strategies
from maxmargin.certificate import certify
from maxmargin.feasible import balance, feasible_start, project
from maxmargin.problem import Problem
from maxmargin.projected_gradient import worst

seeds = st.integers(0, 10**6)
powers_of_ten = st.integers(-3, 3).map(lambda k: 10.0**k)


@st.composite
def machines(draw, names=tuple(MAKERS)):
    return make(
        draw(st.sampled_from(names)),
        seed=draw(seeds),
        n=draw(st.integers(4, 12)),
        d=draw(st.integers(3, 6)),
        C=draw(powers_of_ten),
        weighted=draw(st.booleans()),
    )


@st.composite
def boxes(draw):
    """A group with any box, finite or not, narrow or wide, and a sum that it can meet."""
    rng = np.random.default_rng(draw(seeds))
    m = draw(st.integers(1, 10))
    lower = rng.normal(size=m) * 10 ** rng.uniform(-3, 3, size=m)
    upper = lower + rng.choice([0.0, 1e-6, 1.0, 100.0], size=m)
    inner = rng.uniform(lower, upper)
    lower[rng.random(m) < draw(st.sampled_from([0, 0.3, 1]))] = -np.inf
    upper[rng.random(m) < draw(st.sampled_from([0, 0.3, 1]))] = np.inf
    return lower, upper, float(inner.sum())


def slack(*values) -> float:
    """What the independent solver and rounding may differ by."""
    return 1e-7 * max(1.0, *(abs(value) for value in values if np.isfinite(value)))


# ------------------------------------------------------------------ the certificate


@given(machines(), seeds)
def test_the_gap_bounds_the_distance_from_the_optimum(machine, seed):
    """At any feasible point, and along the way from there to the solution."""
    problem, K = machine.problem, machine.K
    optimum = dual_optimum(problem, K)
    solution = reference.solve(problem, K, tol=1e-6, max_iter=3000)
    away = feasible_point(problem, np.random.default_rng(seed))
    for t in (0.0, 1e-4, 0.1, 1.0):
        c = (1 - t) * solution.coefficients + t * away
        certificate = certify(problem, c, gradient(problem, K, c))
        assert certificate.gap >= 0
        assert certificate.gap >= certificate.objective - optimum - slack(optimum)
        assert certificate.objective == pytest.approx(objective(problem, K, c), rel=1e-9, abs=1e-9)


@given(machines(), seeds)
def test_no_violation_means_optimal_and_the_other_way_round(machine, seed):
    problem, K = machine.problem, machine.K
    optimum = dual_optimum(problem, K)
    solution = reference.solve(problem, K, tol=1e-9, max_iter=3000)
    for c in (solution.coefficients, feasible_point(problem, np.random.default_rng(seed))):
        G = gradient(problem, K, c)
        certificate = certify(problem, c, G)
        scale = max(1.0, float(np.abs(G).max()))
        assert certificate.violation == pytest.approx(violation(problem, c, G), abs=1e-12 * scale)
        distance = objective(problem, K, c) - optimum
        if certificate.violation <= 1e-9:
            assert distance <= slack(optimum) * max(1.0, float(np.abs(c).sum()))
        if distance > 100 * slack(optimum):
            assert certificate.violation > 0
        if machine.name in SOFT and not problem.ridge.any():
            # Moving every variable through its whole box gains no more than this.
            widths = float((problem.upper - problem.lower).sum())
            assert certificate.gap <= certificate.violation * widths * (1 + 1e-9) + slack(distance)


@given(machines(), seeds)
def test_the_multipliers_lie_where_the_conditions_allow(machine, seed):
    problem, K = machine.problem, machine.K
    c = feasible_point(problem, np.random.default_rng(seed))
    G = gradient(problem, K, c)
    certificate = certify(problem, c, G)
    for g, (low, high) in enumerate(certificate.rho_interval):
        members = problem.group == g
        down, up = members & (c > problem.lower), members & (c < problem.upper)
        assert low == G[down].max(initial=-np.inf)
        assert high == G[up].min(initial=np.inf)
        ends = [end for end in (low, high) if np.isfinite(end)]
        if ends:
            assert min(ends) - 1e-9 <= certificate.rho[g] <= max(ends) + 1e-9
        free = down & up
        if free.any():
            assert certificate.rho[g] == pytest.approx(G[free].mean())
        elif len(ends) == 2:
            assert certificate.rho[g] == pytest.approx((low + high) / 2)
        elif ends:
            assert certificate.rho[g] == ends[0]


@given(machines(("nu_svc", "nu_svr", "crammer_singer")), seeds)
def test_names_of_groups_mean_nothing(machine, seed):
    problem, rng = machine.problem, np.random.default_rng(seed)
    c = feasible_point(problem, rng)
    G = gradient(problem, machine.K, c)
    name = rng.permutation(len(problem.target))
    target = np.empty_like(problem.target)
    target[name] = problem.target
    renamed = replace(problem, group=name[problem.group], target=target)
    before, after = certify(problem, c, G), certify(renamed, c, G)
    assert after.objective == before.objective
    assert after.violation == before.violation
    assert after.gap == pytest.approx(before.gap, rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(after.rho[name], before.rho)
    np.testing.assert_array_equal(after.rho_interval[name], before.rho_interval)


@given(machines(), seeds)
def test_the_order_of_the_variables_means_nothing(machine, seed):
    problem, rng = machine.problem, np.random.default_rng(seed)
    c = feasible_point(problem, rng)
    order = rng.permutation(len(problem))
    names = ("linear", "lower", "upper", "item", "group", "ridge", "channel")
    shuffled = replace(problem, **{name: getattr(problem, name)[order] for name in names})
    if problem.minus is not None:
        shuffled = replace(shuffled, minus=problem.minus[order])
    G = gradient(problem, machine.K, c)
    before, after = certify(problem, c, G), certify(shuffled, c[order], G[order])
    assert after.violation == before.violation
    if np.isfinite(before.gap):
        size = abs(before.objective) + before.gap
        assert after.gap == pytest.approx(before.gap, rel=1e-7, abs=1e-9 * (1 + size))
    else:
        assert after.gap == before.gap


# ------------------------------------------------------------------ feasible points


@given(boxes(), seeds, st.integers(-3, 6))
def test_project_is_the_nearest_feasible_point(box, seed, magnitude):
    lower, upper, target = box
    m = len(lower)
    zeros = np.zeros(m)
    index = np.arange(m)
    problem = Problem(
        linear=zeros,
        lower=lower,
        upper=upper,
        item=index,
        group=0 * index,
        target=np.array([target]),
        ridge=zeros,
        n_items=m,
        channel=0 * index,
    )
    wish = np.random.default_rng(seed).normal(size=m) * 10.0**magnitude
    point = project(problem, wish)
    assert_feasible(problem, point)
    np.testing.assert_allclose(project(problem, point), point, rtol=1e-9, atol=1e-9)
    near = nearest_feasible(problem, wish)
    best = float(np.linalg.norm(near - wish))
    assert np.linalg.norm(point - wish) <= best * (1 + 1e-7) + 1e-7 * np.abs(near).max() + 1e-7
    assert_feasible(problem, feasible_start(problem))


@given(machines(), seeds, st.integers(-3, 4))
def test_project_on_every_formulation(machine, seed, magnitude):
    problem = machine.problem
    wish = np.random.default_rng(seed).normal(size=len(problem)) * 10.0**magnitude
    point = project(problem, wish)
    assert_feasible(problem, point)
    np.testing.assert_allclose(project(problem, point), point, rtol=1e-9, atol=1e-12)
    best = float(np.linalg.norm(nearest_feasible(problem, wish) - wish))
    assert np.linalg.norm(point - wish) <= best * (1 + 1e-7) + 1e-7
    # Nothing that was feasible is touched, and nothing is lifted from its bound by a hair.
    start = feasible_start(problem)
    assert_feasible(problem, start)
    np.testing.assert_array_equal(project(problem, start), start)


@given(boxes(), seeds)
def test_balance_meets_the_sum(box, seed):
    lower, upper, total = box
    rng = np.random.default_rng(seed)
    center = rng.normal(size=len(lower)) * 10.0 ** rng.integers(-3, 4)
    slope = 10.0 ** rng.uniform(-3, 3, size=len(lower))
    rho, x = balance(center, slope, lower, upper, total)
    scale = 1e-9 * (np.abs(x).sum() + abs(total) + float(np.abs(center * slope).sum()))
    assert x.sum() == pytest.approx(total, abs=scale)
    np.testing.assert_allclose(x, np.clip((center - rho) * slope, lower, upper), atol=scale)


def test_an_infeasible_sum_is_refused():
    y = np.array([1.0, -1.0, -1.0])
    for start in (None, np.zeros(3)):
        with pytest.raises(ValueError, match=r"No point is feasible: .* 1\.5, .* 0 to 1"):
            reference.solve(formulations.nu_svc(y, nu=1.0), np.eye(3), start=start)


@pytest.mark.parametrize("start", [np.zeros(2), np.full(3, np.nan), [0.0, np.inf, 0.0]])
def test_a_start_of_another_kind_is_refused(start):
    with pytest.raises(ValueError, match="start must hold 3 finite numbers"):
        project(formulations.c_svc([1, -1, 1]), start)


# ------------------------------------------------------------------ weights and order

BUILDERS = {
    "c_svc": lambda d, w: formulations.c_svc(d["y"], d["C"], w),
    "c_svc_no_intercept": lambda d, w: formulations.c_svc(d["y"], d["C"], w, False),
    "squared_hinge_svc": lambda d, w: formulations.squared_hinge_svc(d["y"], d["C"], w),
    "nu_svc": lambda d, w: formulations.nu_svc(d["y"], d["nu"], w),
    "epsilon_svr": lambda d, w: formulations.epsilon_svr(d["t"], d["C"], 0.1, w),
    "squared_epsilon_svr": lambda d, w: formulations.squared_epsilon_svr(d["t"], d["C"], 0.1, w),
    "nu_svr": lambda d, w: formulations.nu_svr(d["t"], d["C"], d["nu"], w),
    "one_class": lambda d, w: formulations.one_class(w, d["nu"]),
    "svdd": lambda d, w: formulations.svdd(np.diag(d["K"]), 1.0, w),
    "crammer_singer": lambda d, w: formulations.crammer_singer(d["labels"], 3, d["C"], w),
    "least_squares": lambda d, w: formulations.least_squares(d["t"], d["C"], w),
}


def rows(seed, n, C):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return {
        "x": x,
        "K": np.exp(-((x[:, None] - x) ** 2).sum(axis=2)),
        "y": np.where(np.arange(n) % 2, 1.0, -1.0),
        "t": rng.normal(size=n),
        "labels": np.arange(n) % 3,
        "C": C,
        "nu": 0.4,
    }


def taken(data, order):
    """The data with these rows, in this order."""
    part = {name: data[name][order] for name in ("x", "y", "t", "labels")}
    return data | part | {"K": data["K"][np.ix_(order, order)]}


@pytest.mark.parametrize("name", BUILDERS)
@given(seed=seeds, C=st.sampled_from([0.1, 1.0, 10.0]), twice=st.integers(0, 7))
def test_weight_two_is_a_row_that_comes_twice(name, seed, C, twice):
    data = rows(seed, 8, C)
    weights = np.ones(8)
    weights[twice] = 2.0
    heavy = reference.solve(BUILDERS[name](data, weights), data["K"], tol=1e-8)
    double = taken(data, np.append(np.arange(8), twice))
    duplicated = reference.solve(BUILDERS[name](double, np.ones(9)), double["K"], tol=1e-8)
    assert duplicated.objective == pytest.approx(heavy.objective, rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(duplicated.scores[:8], heavy.scores, atol=1e-5 * max(1, C))
    np.testing.assert_allclose(
        reference.solve(BUILDERS[name](data, 2 * np.ones(8)), data["K"], tol=1e-8).objective,
        reference.solve(
            BUILDERS[name](taken(data, np.tile(np.arange(8), 2)), np.ones(16)),
            np.tile(data["K"], (2, 2)),
            tol=1e-8,
        ).objective,
        rtol=1e-7,
        atol=1e-9,
    )


@pytest.mark.parametrize("name", BUILDERS)
@given(seed=seeds, C=st.sampled_from([0.1, 1.0, 10.0]))
def test_the_order_of_the_rows_means_nothing_within_the_gap(name, seed, C):
    data = rows(seed, 10, C)
    order = np.random.default_rng(seed).permutation(10)
    first = reference.solve(BUILDERS[name](data, np.ones(10)), data["K"])
    other = taken(data, order)
    second = reference.solve(BUILDERS[name](other, np.ones(10)), other["K"])
    allowed = max(first.gap, second.gap) + slack(first.objective)
    assert abs(first.objective - second.objective) <= allowed
    # |w - w*|^2 / 2 <= gap: the scores of two such points differ by so much at most.
    near = np.sqrt(2 * first.gap) + np.sqrt(2 * second.gap) + 1e-6
    np.testing.assert_allclose(second.scores, first.scores[order], atol=near)


def test_ranking_counts_the_weights_of_pairs():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 2))
    pairs = np.array([[0, 3], [1, 3], [2, 4], [5, 0]])
    heavy = reference.solve(formulations.ranking(pairs, 6, 1.0, [1, 2, 1, 1]), x @ x.T, tol=1e-9)
    twice = formulations.ranking(np.vstack([pairs, pairs[1]]), 6, 1.0)
    duplicated = reference.solve(twice, x @ x.T, tol=1e-9)
    assert duplicated.objective == pytest.approx(heavy.objective, rel=1e-8)
    np.testing.assert_allclose(duplicated.scores, heavy.scores, atol=1e-6)


# ------------------------------------------------------------------ the moves of the strategies

WAYS = {name: cls() for name, cls in strategies.STRATEGIES.items()} | {
    "small blocks": strategies.Block(size=4),
    "chunking": strategies.Block(size=3, growing=True),
    "nested blocks": strategies.Block(size=6, inner=strategies.Block(size=3)),
    "gradient of a few": strategies.Gradient(size=4),
}
BY_STEPS = tuple(name for name in MAKERS if name not in LINEAR_SYSTEMS)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(data=st.data(), seed=seeds)
def test_every_move_is_feasible_and_never_uphill(way, data, seed):
    accepted = [name for name in BY_STEPS if way.refusal(make(name).problem) is None]
    machine = data.draw(machines(accepted))
    problem, K = machine.problem, machine.K
    rng = np.random.default_rng(seed)
    s = reference.State(problem, K, feasible_point(problem, rng))
    before = objective(problem, K, s.c)
    moves = reference.STRATEGIES[type(way)](s, way, 1e-4, rng)
    for _, (variables, values) in zip(range(60), moves, strict=False):
        s.apply(variables, values)
        assert_feasible(problem, s.c)
        after = objective(problem, K, s.c)
        size = max(1.0, abs(before), float(np.abs(s.c).sum() * np.abs(K).max()))
        assert after <= before + 1e-12 * size
        before = after
    np.testing.assert_allclose(s.G, gradient(problem, K, s.c), atol=1e-10 * size_of(s))


def size_of(s) -> float:
    return max(1.0, float((np.abs(s.H) @ np.abs(s.c)).max()))


@given(machines(("crammer_singer", "nu_svc", "c_svc", "ranking")), seeds, st.integers(2, 9))
def test_the_worst_variables_are_no_more_than_asked_and_lead_the_violation(machine, seed, size):
    problem = machine.problem
    c = feasible_point(problem, np.random.default_rng(seed))
    G = gradient(problem, machine.K, c)
    chosen = worst(problem, c, G, size)
    assert len(chosen) <= size
    part, _ = problem.only(chosen)
    # Of the chosen alone, the violation is that of all.
    assert violation(part, c[chosen], G[chosen]) == violation(problem, c, G)
