"""Every working-set strategy keeps the same contracts, and reaches the same optimum."""

import numpy as np
import pytest
from machines import LINEAR_SYSTEMS, MAKERS, make
from scipy.sparse import random_array
from textbook import assert_feasible, gradient, violation

from maxmargin import SVC, strategies
from maxmargin import solve as engine
from maxmargin.feasible import feasible_start, project
from maxmargin.kernels import RBF, Linear
from maxmargin.problem import c_svc, crammer_singer, epsilon_svr, ranking
from maxmargin.projected_gradient import ProjectedGradient
from maxmargin.solution import Outcome

# Every strategy of the table, and parameters that change the way it goes.
STRATEGIES = {name: cls() for name, cls in strategies.STRATEGIES.items()} | {
    "small blocks": strategies.Block(size=4),
    "chunking": strategies.Block(size=4, growing=True),
    "nested blocks": strategies.Block(size=8, inner=strategies.Block(size=3)),
    "nested growing blocks": strategies.Block(
        size=6, inner=strategies.Block(size=2, growing=True, inner="max-violating-pair")
    ),
    "gradient of a few": strategies.Gradient(size=4),
}

BY_STEPS = [name for name in MAKERS if name not in LINEAR_SYSTEMS]


def machine_of(name, **options):
    return make(name, **({"seed": 5, "n": 10} | options))


def every_strategy_on(*names):
    """All pairs of a machine and a strategy that accepts it."""
    pairs = [
        pytest.param(name, strategy, id=f"{name}-{label}")
        for name in names
        for label, strategy in STRATEGIES.items()
        if strategy.refusal(machine_of(name).problem) is None
    ]
    return pytest.mark.parametrize("name, strategy", pairs)


@every_strategy_on(*BY_STEPS)
def test_same_optimum(solve, name, strategy):
    machine = machine_of(name)
    best = solve(machine.problem, machine.K, tol=1e-8)
    solution = solve(machine.problem, machine.K, strategy, tol=1e-5)
    assert solution.converged, solution.status
    assert solution.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-8)
    assert_feasible(machine.problem, solution.coefficients)


@every_strategy_on("c_svc", "ranking", "crammer_singer", "nu_svr")
def test_tol_is_met_in_float64(solve, name, strategy):
    """The violation, computed afresh and pair by pair, keeps what was asked for."""
    machine = machine_of(name, weighted=True)
    for tol in (1e-1, 1e-3, 1e-6):
        solution = solve(machine.problem, machine.K, strategy, tol=tol)
        c = solution.coefficients
        G = gradient(machine.problem, machine.K, c)
        assert solution.outcome is Outcome.CONVERGED, solution.status
        assert violation(machine.problem, c, G) <= tol
        assert solution.violation <= tol


@every_strategy_on("c_svc", "squared_hinge_svc_no_intercept", "crammer_singer")
def test_gap_tol_alone_decides(solve, name, strategy):
    machine = machine_of(name)
    for gap_tol in (1e-2, 1e-6):
        solution = solve(machine.problem, machine.K, strategy, tol=10.0, gap_tol=gap_tol)
        assert solution.outcome is Outcome.CONVERGED, solution.status
        assert solution.relative_gap <= gap_tol
        primal = machine.primal_value(solution.coefficients, solution.certificate_rho)
        assert primal + solution.objective <= gap_tol * abs(primal) * (1 + 1e-9)


@every_strategy_on("c_svc", "c_svc_no_intercept", "nu_svc", "crammer_singer")
def test_same_bits_twice(solve, name, strategy):
    machine = machine_of(name)
    first, second = (solve(machine.problem, machine.K, strategy, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    np.testing.assert_array_equal(first.gradient, second.gradient)
    assert first.iterations == second.iterations
    assert first.gap == second.gap
    assert first.status == second.status


@pytest.mark.parametrize("strategy", ["second-order", "platt", "block"])
@pytest.mark.parametrize("kernel", [RBF(gamma=0.1), Linear()], ids=["rbf", "linear"])
def test_same_bits_whatever_the_machine_lends(kernel, strategy):
    """Threads and memory decide how fast, never what."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 20))
    y = np.where(x[:, 0] + 0.5 * rng.normal(size=300) > 0, 1.0, -1.0)
    items = kernel.fit(x).prepare(x)
    problem = c_svc(y, 1.0)
    first, *others = (
        engine.solve(problem, items, strategy, n_jobs=n_jobs, cache_size=cache_size, max_iter=3000)
        for n_jobs, cache_size in [(1, "auto"), (2, "auto"), (1, 0.02), (2, 0.2)]
    )
    for other in others:
        np.testing.assert_array_equal(other.coefficients, first.coefficients)
        np.testing.assert_array_equal(other.scores, first.scores)
        assert other.iterations == first.iterations
        assert other.gap == first.gap


@every_strategy_on("c_svc", "ranking", "nu_svr", "crammer_singer")
def test_a_start_is_projected_never_obeyed(solve, name, strategy):
    machine = machine_of(name)
    problem, K = machine.problem, machine.K
    far = 100 * np.random.default_rng(0).normal(size=len(problem))
    stopped = solve(problem, K, strategy, start=far, max_iter=0)
    np.testing.assert_allclose(stopped.coefficients, project(problem, far), atol=1e-9)
    best = solve(problem, K, tol=1e-8)
    solution = solve(problem, K, strategy, start=far, tol=1e-5)
    assert solution.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-8)
    assert_feasible(problem, solution.coefficients)


@every_strategy_on("c_svc", "squared_epsilon_svr", "ranking", "crammer_singer")
def test_max_iter_is_honoured(solve, name, strategy):
    """A fit that is stopped early is feasible, says so, and its gap is honest."""
    machine = machine_of(name)
    problem, K = machine.problem, machine.K
    optimum = -machine.primal.optimum()
    for limit in (0, 1, 5):
        solution = solve(problem, K, strategy, max_iter=limit, tol=1e-9)
        assert solution.outcome is Outcome.MAX_ITER
        assert not solution.converged
        assert solution.status.startswith(Outcome.MAX_ITER.value)
        assert solution.iterations <= limit
        assert_feasible(problem, solution.coefficients)
        assert solution.gap >= solution.objective - optimum - 1e-9
    np.testing.assert_allclose(
        solve(problem, K, strategy, max_iter=0).coefficients, feasible_start(problem), atol=1e-12
    )


@every_strategy_on("c_svc", "nu_svc", "ranking", "crammer_singer")
def test_a_solution_is_a_fixed_point(solve, name, strategy):
    """Resumed from its own answer, a solver has next to nothing to do."""
    machine = machine_of(name)
    first = solve(machine.problem, machine.K, strategy, tol=1e-6)
    again = solve(machine.problem, machine.K, strategy, tol=1e-6, start=first.coefficients)
    assert again.iterations <= 1
    assert again.objective == pytest.approx(first.objective, rel=1e-9)
    np.testing.assert_allclose(again.coefficients, first.coefficients, atol=1e-5)
    if name != "crammer_singer":  # whose multipliers nobody uses
        np.testing.assert_allclose(again.rho, first.rho, atol=1e-5)


@pytest.mark.parametrize("name", BY_STEPS)
def test_auto_takes_one_that_accepts(solve, name):
    machine = make(name, seed=5)
    chosen = strategies.choose("auto", machine.problem)
    assert chosen.refusal(machine.problem) is None
    solution = solve(machine.problem, machine.K, "auto", tol=1e-4, max_iter=50)
    named = solve(machine.problem, machine.K, chosen, tol=1e-4, max_iter=50)
    np.testing.assert_allclose(solution.coefficients, named.coefficients, atol=1e-9)


REFUSALS = [
    ("c_svc", strategies.Coordinate(), "ties the coefficients together"),
    ("nu_svr", "coordinate", "ties the coefficients together"),
    ("c_svc", "group", "Crammer-Singer only"),
    ("ranking", "group", "Crammer-Singer only"),
    ("c_svc", strategies.Block(size=1), "size of at least 2, got 1"),
    ("c_svc", strategies.Block(inner="random"), "not by 'random'"),
    ("c_svc", strategies.Block(inner=strategies.Block(size=0)), "size of at least 2, got 0"),
    ("c_svc", strategies.Gradient(size=1), "size of at least 2, got 1"),
    ("c_svc", "fastest", "one of .*second-order"),
    ("c_svc", None, "must be 'auto'"),
]


@pytest.mark.parametrize("name, strategy, reason", REFUSALS)
def test_refusals_say_why(solve, name, strategy, reason):
    machine = make(name)
    with pytest.raises(ValueError, match=reason):
        solve(machine.problem, machine.K, strategy)


@pytest.mark.parametrize("name", ["random", "platt", "max-violating-pair", "second-order", "block"])
def test_parameters_survive_a_clone(name):
    from sklearn.base import clone

    strategy = strategies.named(name)
    assert clone(strategy).get_params() == strategy.get_params()
    assert strategies.named(strategy) is strategy


# ------------------------------------------------------------------ the default limit


def hard_problems(n):
    rng = np.random.default_rng(0)
    pairs = rng.permuted(np.tile(np.arange(n), (20 * n, 1)), axis=1)[:, :2]
    yield c_svc(rng.choice([-1.0, 1.0], n))
    yield c_svc(rng.choice([-1.0, 1.0], n), intercept=False)
    yield epsilon_svr(rng.normal(size=n))
    yield ranking(pairs, n)
    yield crammer_singer(rng.integers(0, 4, n), 4)


class Counted:
    """A Gram matrix that counts how many of its values are multiplied."""

    def __init__(self, K):
        self.K, self.values = K, 0

    def diagonal(self):
        return np.diag(self.K)

    def subset(self, rows):
        return self.K[:, rows]

    def multiply(self, columns, V, n_threads):
        self.values += columns.size * V.shape[1]
        return columns @ V


@pytest.mark.parametrize("size", [None, 2, 30])
def test_the_default_limit_counts_what_a_gradient_step_multiplies(size):
    n, strategy = 60, strategies.Gradient(size)
    X = np.random.default_rng(1).normal(size=(n, 3))
    for problem in hard_problems(n):
        items = Counted(X @ X.T)
        start = feasible_start(problem)
        scores = items.K @ problem.spread(start)
        moving = ProjectedGradient(problem, items, strategy, start, scores, 1)
        moving.run(1e-9, 5, lambda: False)
        assert 4 * strategy.step_cost(problem, len(problem)) >= items.values / moving.iterations


@pytest.mark.parametrize("label", STRATEGIES)
def test_the_default_limit_is_a_limit_on_work(label, monkeypatch):
    """With 2000 rows all steps together look at no more than what takes some ten seconds."""
    strategy = STRATEGIES[label]
    for problem in hard_problems(200):
        if strategy.refusal(problem) is not None:
            continue
        monkeypatch.setattr(engine, "Run", Ended)
        engine.solve(problem, np.eye(200), strategy)
        look = len(problem)  # at every variable
        if isinstance(strategy, strategies.Block):
            look = strategy.step_cost(problem, len(problem))
        elif problem.minus is not None and isinstance(strategy, strategies.Sweep):
            look = problem.n_items // 2
        elif isinstance(strategy, strategies.Gradient):
            look = 60 * look
        assert 1 <= Ended.limit <= 5e9 / look


@pytest.mark.parametrize("sparse", [False, True])
def test_the_default_limit_counts_products_with_the_weights(sparse, monkeypatch):
    """Platt's inner loop asks for the scores of all rows; with the linear kernel each is x.w."""
    n, d = 200, 3200
    X = random_array((n, d), density=0.25, rng=np.random.default_rng(0)).tocsr()
    X = X if sparse else X.toarray()
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    monkeypatch.setattr(engine, "Run", Ended)
    limits = {}
    for kernel in (Linear(), RBF(gamma=1.0)):
        engine.solve(c_svc(y), kernel.fit(X).prepare(X), "platt")
        limits[kernel] = Ended.limit
        shared = SVC(kernel=kernel, working_set="platt")
        with pytest.raises(ValueError):  # a run that is over has no answer
            shared.fit(X, y)
        assert Ended.limit == limits[kernel]
    product = d / 16  # in sequence, and so faster than looks at single numbers
    assert limits[Linear()] <= 5e9 / (n * product) < limits[RBF(gamma=1.0)]


class Ended:
    """A run that is told its limit and is over."""

    limit = 0

    def __init__(self, problem, items, run, asked, limit, n_threads, monitor):
        Ended.limit = limit

    def to_the_end(self, polish):
        return None


def test_a_step_costs_more_where_it_does_more():
    for problem in hard_problems(200):
        m = len(problem)
        cost = {label: s.step_cost(problem, m) for label, s in STRATEGIES.items()}
        assert cost["gradient"] > cost["second-order"] >= cost["coordinate"] / 3
        assert cost["small blocks"] > cost["second-order"]  # a look at everything for two steps
        larger, longer = strategies.Block(size=100), strategies.Gradient(size=100)
        assert larger.step_cost(problem, m) < cost["small blocks"]
        assert longer.step_cost(problem, m) > cost["gradient of a few"]


@pytest.mark.parametrize("strategy", [strategies.Block(size=6), strategies.Gradient()])
def test_a_matrix_in_memory_has_the_same_bits(strategy):
    """What steps compute anew is read where it fits; the answer does not know."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        X = rng.normal(size=(60, 3)).astype(dtype)
        items = RBF(gamma=0.5).fit(X).prepare(X)
        problem = c_svc(np.sign(X[:, 0] + rng.normal(size=60)), C=10.0)
        a, b = (engine.solve(problem, items, strategy, cache_size=mb) for mb in ("auto", 1e-3))
        np.testing.assert_array_equal(a.coefficients, b.coefficients)
        assert a.iterations == b.iterations
