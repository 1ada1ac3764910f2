"""The direct solver against closed forms, and the machines LSSVC and LSSVR."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from threadpoolctl import threadpool_info

from maxmargin import LSSVC, LSSVR, inverse, preconditioner, reference
from maxmargin.direct import solve_least_squares
from maxmargin.kernels import RBF
from maxmargin.monitor import Monitor
from maxmargin.problem import c_svc, least_squares
from maxmargin.solution import Outcome

N = 120


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    return K, rng.normal(size=(N, 4)), rng.uniform(0.5, 3, N)


def exact(K, y, ridge, intercept):
    n = len(K)
    A, ones = K + np.diag(ridge), np.ones((n, 1))
    if not intercept:
        return np.linalg.solve(A, y), 0.0
    system = np.block([[A, ones], [ones.T, np.zeros((1, 1))]])
    answer = np.linalg.solve(system, np.append(y, 0.0))
    return answer[:n], answer[n]


ROUTES = {"cholesky": np.inf, "conjugate gradients": 0.0, "preconditioned": 7.5 * N**2}


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_both_routes_solve_the_equations(data, memory, intercept, C, monkeypatch):
    monkeypatch.setattr(inverse, "TILE", 50)
    K, Y, w = data
    problems = [least_squares(y, C, w, intercept) for y in Y.T]
    for y, problem, s in zip(
        Y.T, problems, solve_least_squares(problems, K, tol=1e-9, memory=memory), strict=True
    ):
        c, b = exact(K, y, 1 / (C * w), intercept)
        np.testing.assert_allclose(s.coefficients, c, atol=1e-6 * np.abs(c).max())
        other = reference.solve(problem, K)
        np.testing.assert_allclose(s.objective, other.objective, rtol=1e-9)
        np.testing.assert_allclose(s.scores, other.scores, atol=1e-7)
        if intercept:
            np.testing.assert_allclose(-s.rho, b, atol=1e-8)
        assert s.converged and s.violation <= 1e-9
        assert 0 <= s.gap <= 1e-9 * max(1, C, abs(s.objective))
        assert "verified in float64" in s.status


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_dependent_and_zero_outputs(data, memory):
    K, Y, _ = data
    targets = [Y[:, 0], 2 * Y[:, 0], np.zeros(N), np.ones(N)]
    a, b, zero, one = solve_least_squares(
        [least_squares(y) for y in targets], K, tol=1e-10, memory=memory
    )
    np.testing.assert_allclose(2 * a.coefficients, b.coefficients, atol=1e-8)
    np.testing.assert_allclose(zero.coefficients, 0, atol=1e-12)
    np.testing.assert_allclose(one.coefficients, 0, atol=1e-8)
    np.testing.assert_allclose(one.rho, -1)


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_threads_and_pieces_do_not_change_a_bit(data, memory, monkeypatch):
    monkeypatch.setattr(inverse, "TILE", 16)
    monkeypatch.setattr(preconditioner, "ROWS", 16)
    monkeypatch.setattr(preconditioner, "DRAWN", 8)
    K, Y, _ = data
    problems = [least_squares(y) for y in Y.T]
    one = solve_least_squares(problems, K, n_threads=1, memory=memory)
    monkeypatch.setattr(inverse, "PIECE", 7 * N)
    two = solve_least_squares(problems, K, n_threads=2, memory=memory)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.coefficients, b.coefficients)


def test_conjugate_gradients_go_on_from_a_start(data):
    K, Y, _ = data
    problems = [least_squares(y, C=100) for y in Y.T]
    cold = solve_least_squares(problems, K, tol=1e-6, memory=0)
    warm = solve_least_squares(
        problems, K, tol=1e-6, memory=0, starts=[s.coefficients for s in cold]
    )
    assert cold[0].iterations > 5
    assert warm[0].iterations == 1


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_single_precision_data_have_exact_kernels(memory):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)).astype(np.float32), rng.normal(size=N)
    single, double = (RBF(gamma=0.3).fit(X).prepare(X, dtype) for dtype in ("f4", "f8"))
    a, b = (
        solve_least_squares([least_squares(y, C=1e4)], items, tol=1e-9, memory=memory)[0]
        for items in (single, double)
    )
    assert a.iterations == b.iterations
    np.testing.assert_array_equal(a.coefficients, b.coefficients)


def test_a_gap_can_be_asked_for(data):
    K, Y, _ = data
    for memory in ROUTES.values():
        (s,) = solve_least_squares(
            [least_squares(Y[:, 0], C=1e3)], K, tol=1.0, gap_tol=1e-10, memory=memory
        )
        assert s.relative_gap <= 1e-10


def test_the_iteration_limit(data):
    K, Y, _ = data
    (s,) = solve_least_squares([least_squares(Y[:, 0], C=1e4)], K, memory=0, max_iter=3)
    assert s.outcome is Outcome.MAX_ITER and s.iterations == 3
    best = reference.solve(least_squares(Y[:, 0], C=1e4), K)
    assert s.gap >= s.objective - best.objective > 0
    assert "verified in float64" in s.status


def of_rows(n, C, weights=None, seed=0):
    """Two problems on n rows of a smooth kernel, whose matrix has many small eigenvalues."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 4)), rng.normal(size=(n, 2))
    return RBF(gamma=0.1).fit(X).prepare(X), [least_squares(y, C, weights) for y in Y.T]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e2, 1e4])
def test_a_preconditioner_saves_most_steps(C, weighted):
    n = 500
    weights = 10 ** np.random.default_rng(1).uniform(-2, 2, n) if weighted else None
    items, problems = of_rows(n, C, weights)
    direct, plain, spared = (
        solve_least_squares(problems, items, tol=1e-6, memory=memory)
        for memory in (np.inf, 0.0, 6.0 * n**2)
    )
    for a, b, c in zip(direct, plain, spared, strict=True):
        assert a.converged and b.converged and c.converged
        largest = np.abs(a.coefficients).max()
        np.testing.assert_allclose(c.coefficients, a.coefficients, atol=1e-5 * largest)
        assert c.objective == pytest.approx(a.objective, rel=1e-7)
        assert 4 * c.iterations < b.iterations


@pytest.mark.parametrize("rank", [0, 1, 40])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_preconditioner_is_the_split_inverse_of_a_matrix_like_A(rank, n_threads, monkeypatch):
    monkeypatch.setattr(preconditioner, "ROWS", 64)
    n = 200
    items, problems = of_rows(n, 10.0, np.linspace(0.5, 2, n))
    seen = []
    A = inverse.Matrix(items, problems[0].ridge, n_threads, lambda: seen.append(1))
    P = preconditioner.Preconditioner(A, rank)
    assert P.rank == rank
    assert seen
    forth, back = P.apply(np.eye(n)), P.apply_transposed(np.eye(n))
    np.testing.assert_allclose(forth, back.T, atol=1e-12)
    M = np.linalg.inv(forth @ back)
    whole = A.columns(0, n, 0)
    np.testing.assert_allclose(np.diag(M), np.diag(whole), rtol=1e-8)
    L = P.V / P.scale
    np.testing.assert_allclose(M - np.diag(np.diag(M - L @ L.T)), L @ L.T, atol=1e-8)
    assert np.linalg.eigvalsh(A.kernel(np.eye(n)) - L @ L.T)[0] > -1e-10
    again = preconditioner.Preconditioner(A, rank)
    np.testing.assert_array_equal(P.V, again.V)


@pytest.mark.parametrize("memory", [0.0, 1e3, 1e5, 1e6, 1e8, 7.9e8])
def test_a_preconditioner_keeps_to_the_memory(memory):
    n = 10_000
    rank = preconditioner.affordable_rank(n, memory)
    assert (rank > 0) == (memory >= 1e6)


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peak to be reset")
@pytest.mark.parametrize("megabytes", [60, 120])
def test_conjugate_gradients_keep_to_the_memory(megabytes):
    """The peak of a process beyond what it held before, within ten percent."""
    script = f"""
import numpy as np
from maxmargin import LSSVR

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024

X = np.random.default_rng(0).normal(size=(6000, 4))
LSSVR(cache_size=1, n_jobs=2).fit(X, X[:, 0])  # whatever is loaded or started once
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
LSSVR(cache_size={megabytes}, C=100, n_jobs=2).fit(X, np.sin(X[:, 0]))
print(status("VmHWM") - before)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert megabytes / 2 <= float(done.stdout) <= 1.1 * megabytes


def test_a_preconditioner_does_not_hide_that_a_kernel_is_indefinite(data):
    K, Y, _ = data
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(N, N)))[0]
    K = K + 20 * np.outer(Q[:, 0], Q[:, 0]) - 5 * np.outer(Q[:, 1], Q[:, 1])
    assert np.diag(K).min() > 0
    assert np.linalg.eigvalsh(K)[0] < -2
    for memory in ROUTES.values():
        (s,) = solve_least_squares([least_squares(Y[:, 0])], K, tol=1e-6, memory=memory)
        assert s.outcome is Outcome.INDEFINITE and np.isinf(s.gap)


def test_fits_with_no_time_add_up(data):
    """Each takes a step, and goes on where the last one was."""
    K, Y, _ = data
    problem, memory = least_squares(Y[:, 0], C=100), ROUTES["preconditioned"]
    best = reference.solve(problem, K).objective
    start, objectives = np.zeros(N), [0.0]
    for _ in range(20):
        monitor = Monitor(time_limit=0)
        (s,) = solve_least_squares(
            [problem], K, memory=memory, starts=[start], monitors=[monitor.subproblem()], tol=1e-8
        )
        start = s.coefficients
        objectives.append(s.objective)
        if s.converged:
            break
        assert s.outcome is Outcome.TIME_LIMIT and s.iterations == 1
    assert np.all(np.diff(objectives) < 0)
    assert objectives[-1] - best < 0.05 * -best


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_who_stops_at_once_keeps_the_start(data, memory):
    K, Y, _ = data
    problem = least_squares(Y[:, 0], C=100)
    start = solve_least_squares([problem], K, memory=0, max_iter=2)[0]
    monitor = Monitor()
    monitor.listeners.append(Told())
    (s,) = solve_least_squares(
        [problem],
        K,
        tol=1e-12,
        memory=memory,
        starts=[start.coefficients],
        monitors=[monitor.subproblem()],
    )
    assert s.outcome is Outcome.CALLBACK
    np.testing.assert_allclose(s.coefficients, start.coefficients, atol=1e-10)
    assert s.gap == pytest.approx(start.gap)


class Told:
    """A listener that has seen enough."""

    def update(self, event, percent, attributes):
        return True


@pytest.mark.parametrize("memory", ROUTES.values(), ids=ROUTES)
def test_a_listener_can_stop_it(data, memory):
    K, Y, _ = data
    monitor = Monitor(2)
    monitor.listeners.append(Told())
    problems = [least_squares(y) for y in Y.T[:2]]
    monitors = [monitor.subproblem(0), monitor.subproblem(1)]
    for s in solve_least_squares(problems, K, memory=memory, monitors=monitors):
        assert s.outcome is Outcome.CALLBACK and not s.converged
        assert np.isfinite(s.gap) and s.gap > 0


class Impatient:
    """A Gram matrix whose user presses Ctrl-C at the third product, after the sample."""

    dtype = np.dtype(np.float64)

    def __init__(self, K):
        self.K, self.products, self.numbers = K, 0, np.arange(len(K))

    def __len__(self):
        return len(self.numbers)

    def diagonal(self):
        return np.diag(self.K)[self.numbers]

    def subset(self, rows):
        some = Impatient(self.K)
        some.numbers = self.numbers[rows]
        return some

    def tile(self, rows, other, cols):
        self.products += rows[0] == 0
        if self.products == 4:
            raise KeyboardInterrupt
        return self.K[np.ix_(self.numbers[rows], other.numbers[cols])]


def test_an_interrupt_leaves_the_model_as_it_stands(data):
    K, Y, _ = data
    problem = least_squares(Y[:, 0], C=1e4)
    monitor = Monitor()
    (s,) = solve_least_squares(
        [problem], Impatient(K), memory=0, monitors=[monitor.subproblem()], tol=1e-14
    )
    assert monitor.interrupted is not None
    assert s.outcome is Outcome.INTERRUPTED and s.iterations == 2
    assert s.objective < 0 < s.gap
    with pytest.raises(KeyboardInterrupt):
        solve_least_squares([problem], Impatient(K), memory=0, tol=1e-14)


def test_an_indefinite_kernel_is_said_to_be_one(data):
    K, Y, _ = data
    K = K - 3 * np.eye(N)
    for memory in ROUTES.values():
        (s,) = solve_least_squares([least_squares(Y[:, 0])], K, memory=memory)
        assert s.outcome is Outcome.INDEFINITE and np.isinf(s.gap)
        c, _ = exact(K, Y[:, 0], np.ones(N), True)
        np.testing.assert_allclose(s.coefficients, c, atol=1e-2)


@pytest.mark.parametrize("tile", [7, 32, 256])
@pytest.mark.parametrize("shift", [-3.0, -0.5, 0.0])
def test_elimination_takes_any_symmetric_matrix(data, tile, shift, monkeypatch):
    monkeypatch.setattr(inverse, "TILE", tile)
    K, Y, w = data
    seen = []
    A = inverse.Matrix(K + shift * np.eye(N), 1 / w, 2, lambda: seen.append(1))
    ((D, _),) = inverse.Elimination(A).apply(Y)
    np.testing.assert_allclose((K + shift * np.eye(N)) @ D + D / w[:, None], Y, atol=1e-8)
    assert seen


def test_a_singular_system_has_an_answer_all_the_same():
    K = np.kron(np.array([[0.0, 3.0], [3.0, 0.0]]), np.eye(3)) - np.eye(6)  # K + ridge: +3, -3
    K[0, :] = K[:, 0] = 0
    K[0, 0] = -1  # and one row of zeros
    (s,) = solve_least_squares([least_squares(np.arange(6.0), intercept=False)], K)
    assert s.outcome is Outcome.INDEFINITE and np.isfinite(s.coefficients).all()


@pytest.mark.parametrize("C", [1e12, 1e20])
def test_a_huge_C_with_duplicates_is_honest(data, C):
    K, Y, _ = data
    twice = np.tile(K, (2, 2))
    for memory in ROUTES.values():
        (s,) = solve_least_squares(
            [least_squares(np.concatenate([Y[:, 0], Y[:, 1]]), C=C)],
            twice,
            memory=memory,
            max_iter=500,
        )
        assert np.isfinite(s.coefficients).all()
        assert s.converged or s.outcome is Outcome.MAX_ITER


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("C", [1e8, 1e12, 1e16, 1e20])
def test_rounding_is_not_taken_for_an_indefinite_kernel(n_outputs, C):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.normal(size=(40, 2)), (3, 1))
        problems = [least_squares(y, C=C) for y in rng.normal(size=(n_outputs, 120))]
        for memory in ROUTES.values():
            for s in solve_least_squares(problems, X @ X.T, memory=memory, max_iter=200):
                assert s.outcome is not Outcome.INDEFINITE and np.isfinite(s.gap)
                assert np.isfinite(s.coefficients).all()


def test_an_indefinite_kernel_has_no_gap_at_the_iteration_limit_either(data):
    K, Y, _ = data
    (s,) = solve_least_squares(
        [least_squares(Y[:, 0])], K - 3 * np.eye(N), memory=0, tol=1e-12, max_iter=2
    )
    assert s.outcome is Outcome.MAX_ITER and np.isinf(s.gap)


def test_only_alike_problems(data):
    K, Y, w = data
    y = Y[:, 0]
    for other in (
        least_squares(y, 2.0),
        least_squares(y, intercept=False),
        least_squares(y, sample_weight=w),
        c_svc(np.sign(y)),
    ):
        with pytest.raises(ValueError, match="least-squares problems"):
            solve_least_squares([least_squares(y), other], K)


# ------------------------------------------------------------------ the machines


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y, np.random.default_rng(0).integers(0, 4, len(y))


@pytest.mark.parametrize("cache_size", ["auto", 1e-3])
def test_classes_against_their_equations(iris, cache_size):
    X, y, w = iris
    machine = LSSVC(C=3.0, gamma=0.4, tol=1e-10, cache_size=cache_size).fit(X, y, w)
    kept = w > 0
    K = RBF(gamma=0.4)(X[kept])
    for m in range(3):
        signs = np.where(y[kept] == m, 1.0, -1.0)
        c, b = exact(K, signs, 1 / (3.0 * w[kept]), True)
        assert machine.intercept_[m] == pytest.approx(b)
        f = RBF(gamma=0.4)(X, X[kept]) @ c + b
        np.testing.assert_allclose(machine.decision_function(X)[:, m], f, atol=1e-7)
    np.testing.assert_array_equal(machine.predict(X), machine.decision_function(X).argmax(axis=1))
    assert machine.dual_coef_.shape == (3, kept.sum())
    assert machine.n_iter_.shape == (3,)
    assert (machine.n_iter_ == 1).all() == (cache_size == "auto")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_and_the_primal(iris, fit_intercept):
    X, y, w = iris
    y = np.array(["no", "yes"])[(y > 0).astype(int)]
    machine = LSSVC(kernel="linear", C=0.7, fit_intercept=fit_intercept).fit(X, y, w)
    signs = np.where(y == "yes", 1.0, -1.0)
    f = machine.decision_function(X)
    value = (machine.coef_**2).sum() / 2 + 0.7 / 2 * w @ (1 - signs * f) ** 2
    assert value == pytest.approx(machine.objective_)
    assert machine.dual_coef_.shape == (1, (w > 0).sum())
    assert machine.score(X, y) > 0.95
    # the primal in closed form
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    ridge = np.diag([1.0] * 4 + [0.0] * fit_intercept)
    best = np.linalg.solve(ridge + 0.7 * Z.T * w @ Z, 0.7 * Z.T * w @ signs)
    np.testing.assert_allclose(machine.coef_[0], best[:4])


def test_kernel_ridge_is_the_same_without_an_intercept(iris):
    X, y, _ = iris
    ridge = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3).fit(X, y)
    machine = LSSVR(C=2.0, gamma=0.3, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), ridge.predict(X))
    np.testing.assert_allclose(machine.dual_coef_[0], ridge.dual_coef_)
    np.testing.assert_array_equal(machine.intercept_, [0.0])


def test_the_intercept_takes_up_a_shift(iris):
    X, y, w = iris
    a = LSSVR(C=2.0).fit(X, y, w)
    b = LSSVR(C=2.0).fit(X, y + 100.0, w)
    np.testing.assert_allclose(b.predict(X), a.predict(X) + 100)
    np.testing.assert_allclose(b.dual_coef_, a.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(a.dual_coef_.sum(), 0, atol=1e-10)


@pytest.mark.parametrize("machine", [LSSVC(), LSSVC(class_weight="balanced"), LSSVR()])
def test_a_weight_counts_as_repetitions(iris, machine):
    X, y, w = iris
    again = np.repeat(np.arange(len(y)), w)
    f = getattr(machine, "decision_function", machine.predict)
    weighted = [
        machine.fit(X, y, sample_weight=w) and f(X),
        machine.fit(X[again], y[again]) and f(X),
    ]
    np.testing.assert_allclose(*weighted, atol=1e-8)


def test_fits_at_once_give_blas_its_threads_back(data):
    K, Y, _ = data
    before = threadpool_info()
    all_inside = threading.Barrier(3)
    seen = []

    class Waits(Impatient):
        """A Gram matrix that is read when all fits are under way."""

        def tile(self, rows, other, cols):
            if self.products == 0:
                self.products = 1
                all_inside.wait(10)
                seen.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
            return self.K[np.ix_(self.numbers[rows], other.numbers[cols])]

    def fit(i):
        for matrix in [Waits(K), *[K] * i]:  # the first to enter is not the last to leave
            solve_least_squares([least_squares(Y[:, i])], matrix, memory=0)

    threads = [threading.Thread(target=fit, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {1}
    assert threadpool_info() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_from_amid_a_fit_is_not_limited():
    before = threadpool_info()
    entered, leave = threading.Event(), threading.Event()

    def fit():
        with inverse.one_blas_thread():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=fit)
    thread.start()
    assert entered.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(threadpool_info() != before)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert threadpool_info() == before


def test_threads_and_memory_do_not_change_a_prediction(iris):
    X, y, _ = iris
    one, two = (LSSVC(n_jobs=n).fit(X, y).dual_coef_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_an_early_end_is_a_model_with_a_warning(iris):
    X, y, _ = iris
    machine = LSSVC(C=1e6, cache_size=1e-3, max_iter=2, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        machine.fit(X, y)
    assert machine.fit_status_ == 1 and machine.dual_gap_ > 0
    assert machine.predict(X).shape == y.shape
    dual = machine.objective_ - machine.dual_gap_
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert machine.objective_ - machine.dual_gap_ > dual
    machine.set_params(max_iter=-1).fit(X, y)
    assert machine.fit_status_ == 0


def test_only_what_means_something(iris):
    X, y, _ = iris
    with pytest.raises(ValueError, match="'working_set' parameter of LSSVC must be"):
        LSSVC(working_set="platt").fit(X, y)
    assert not {"shrinking", "break_ties", "random_state"} & set(LSSVC().get_params())
