"""How a fit ends and goes on: limits, warm starts, callbacks, Ctrl-C, what it reports."""

import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import LSSVC, LSSVR, SVC, SVR, NuSVC


@pytest.fixture(scope="module")
def small():
    return make_classification(200, 8, flip_y=0.1, random_state=0)


@pytest.fixture(scope="module")
def three():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def large():
    """Takes much longer than a second to fit with C=1e6."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 20))
    return X, np.sign(X[:, 0] + rng.normal(size=6000))


LONG = {"kernel": "linear", "C": 1e6, "max_iter": 500_000}


# ------------------------------------------------------------------ reports


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "crammer_singer"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_the_optimum_lies_within_the_gap(three, multi_class, tol):
    X, y = three
    machine = SVC(multi_class=multi_class, tol=tol).fit(X, y)
    best = SVC(multi_class=multi_class, tol=1e-10).fit(X, y)
    optimum = best.objective_ - best.dual_gap_ / 2
    assert machine.objective_ - machine.dual_gap_ <= optimum * (1 + 1e-9)
    assert optimum <= machine.objective_ * (1 + 1e-9)
    assert machine.dual_gap_ >= 0
    each = machine.subproblems_
    assert len(each) == (1 if multi_class == "crammer_singer" else 3)
    assert machine.objective_ == pytest.approx(sum(s.objective for s in each))
    assert machine.dual_gap_ == pytest.approx(sum(s.gap for s in each))
    assert machine.status_ in [s.status for s in each]
    assert_array_equal(machine.n_iter_, [s.iterations for s in each])
    assert machine.status_.startswith("converged")


def test_subproblems_say_which_classes_and_rows(three):
    X, y = three
    names = np.array(["setosa", "versicolor", "virginica"])
    weights = (np.arange(len(y)) % 5 != 0).astype(float)
    machine = SVC().fit(X, names[y], weights)
    for each in machine.subproblems_:
        assert len(each.classes) == 2
        assert set(names[y[each.rows]]) == set(each.classes)
        assert np.all(weights[each.rows] > 0)
        signs = np.where(names[y[each.rows]] == each.classes[0], 1, -1)
        assert np.all(signs * each.coefficients >= 0)


def test_gap_tol_decides_alone(small):
    machine = SVC(C=10, tol=1.0, gap_tol=1e-7, kernel="linear").fit(*small)
    assert machine.dual_gap_ <= 1e-7 * machine.objective_
    assert "asked: 1e-07" in machine.status_


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize("machine", [SVC(C=100), NuSVC(nu=0.2), SVC(C=100, loss="squared_hinge")])
def test_an_iteration_limit_leaves_a_usable_model(small, machine):
    X, y = small
    machine = clone(machine).set_params(max_iter=5)
    message = r"Solver terminated early \(max_iter=5\).  Consider pre-processing your data"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        machine.fit(X, y)
    assert caught[0].filename == __file__
    assert machine.fit_status_ == 1
    assert_array_equal(machine.n_iter_, [5])
    assert machine.status_.startswith("stopped at the iteration limit")
    best = clone(machine).set_params(max_iter=-1).fit(X, y)
    assert machine.objective_ - machine.dual_gap_ <= best.objective_
    assert machine.predict(X).shape == y.shape


def test_a_time_limit_covers_all_problems(large):
    X, y = large
    labels = np.where(X[:, 1] > 0, y, 2 * y)
    machine = SVC(**LONG, time_limit=0.3)
    with pytest.warns(ConvergenceWarning, match="stopped after 0.3 s"):
        machine.fit(X, labels)
    assert len(machine.subproblems_) == 6  # those that were never begun are there, and predict
    assert machine.predict(X).shape == labels.shape
    assert machine.dual_gap_ > 0
    assert machine.status_.startswith("stopped by the time limit")


def test_a_time_limit_covers_calibration(large):
    X, y = large
    machine = SVC(**LONG, probability=True, time_limit=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert np.isfinite(machine.predict_proba(X[:5])).all()


def test_unscaled_features_are_named_when_they_make_a_fit_slow():
    rng = np.random.default_rng(0)
    scales = np.logspace(-2, 2, 6)
    X = rng.normal(size=(500, 6)) * scales
    y = np.sign(X / scales @ rng.normal(size=6) + rng.normal(size=500))
    with pytest.warns(ConvergenceWarning, match="StandardScaler") as caught:
        SVC(kernel="linear", C=10).fit(X, y)
    assert caught[0].filename == __file__
    make_pipeline(StandardScaler(), SVC(kernel="linear", C=10)).fit(X, y)


# ------------------------------------------------------------------ warm starts


@pytest.mark.parametrize(
    "machine",
    [SVC(C=100), NuSVC(nu=0.2), SVC(C=100, multi_class="ovr"), SVC(multi_class="crammer_singer")],
)
def test_a_warm_start_has_little_left_to_do(three, machine):
    X, y = three
    machine = clone(machine).set_params(warm_start=True, tol=1e-8)
    cold = machine.fit(X, y).n_iter_.sum()
    values = machine.decision_function(X)
    assert machine.fit(X, y).n_iter_.sum() <= cold / 5
    assert_allclose(machine.decision_function(X), values, atol=1e-6)
    again = pickle.loads(pickle.dumps(machine))
    assert again.fit(X, y).n_iter_.sum() <= cold / 5


def test_a_warm_start_goes_on_after_a_limit(small):
    X, y = small
    whole = SVC(C=100, tol=1e-6).fit(X, y)
    machine = SVC(C=100, tol=1e-6, warm_start=True, max_iter=int(whole.n_iter_[0] // 2))
    with pytest.warns(ConvergenceWarning, match="Fit again to go on"):
        machine.fit(X, y)
    first = machine.dual_gap_
    machine.set_params(max_iter=-1).fit(X, y)
    assert machine.dual_gap_ < first
    assert_allclose(machine.decision_function(X), whole.decision_function(X), atol=1e-4)


def test_a_warm_start_follows_the_parameters(small):
    X, y = small
    machine = SVC(C=10, warm_start=True, tol=1e-8).fit(X, y)
    for change in ({"C": 0.5}, {"C": 50}, {"class_weight": "balanced"}, {"gamma": 0.5}):
        machine.set_params(**change).fit(X, y)
        cold = clone(machine).fit(X, y)
        assert_allclose(machine.decision_function(X), cold.decision_function(X), atol=1e-5)


def test_a_warm_start_from_other_data_is_a_cold_one(three):
    X, y = three
    machine = SVC(warm_start=True).fit(X, y)
    with pytest.warns(UserWarning, match="begins from zero") as caught:
        machine.fit(X[:100], y[:100])
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="begins from zero"):
        machine.fit(X[:100], y[:100] + 5)
    with pytest.warns(UserWarning, match="begins from zero"):
        machine.fit(X[50:], y[50:] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.set_params(warm_start=False).fit(X, y)


# ------------------------------------------------------------------ callbacks and Ctrl-C


class Watch:
    """Keeps the models that callbacks see, and stops at the n-th."""

    def __init__(self, stop_at=np.inf):
        self.stop_at = stop_at
        self.models = []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.models.append(fitted_estimator)
        return len(self.models) >= self.stop_at


@pytest.mark.parametrize(
    "machine", [SVC(), NuSVC(nu=0.2), SVC(multi_class="ovr"), SVC(probability=True)]
)
def test_callbacks_see_models_that_predict(three, machine):
    X, y = three
    watch = Watch()
    machine = clone(machine).set_callbacks(watch).fit(X, y)
    assert len(watch.models) > 3
    for model in watch.models:
        assert model.predict(X).shape == y.shape
        assert np.isfinite(model.objective_)
    assert_array_equal(watch.models[-1].predict(X), machine.predict(X))


def test_a_callback_stops_the_fit(large):
    X, y = large
    machine = SVC(**LONG).set_callbacks(Watch(stop_at=2))
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        machine.fit(X, y)
    assert machine.status_.startswith("stopped by a callback")
    assert machine.score(X, y) > 0.4


def test_ctrl_c_leaves_the_model_as_it_stands(large):
    X, y = large
    machine = SVC(**LONG)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    timer.join()
    assert machine.status_.startswith("interrupted")
    assert machine.score(X, y) > 0.4
    assert machine.dual_gap_ > 0


@pytest.mark.parametrize("gap_tol", [1e-2, 1e-5, 1e-8])
def test_gap_tol_is_honoured_by_many_machines(gap_tol):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rng.integers(10, 60), rng.integers(1, 6)))
        y = X[:, 0] + rng.normal(size=len(X)) > np.median(X[:, 0])
        y[:2] = False, True
        kernel = rng.choice(["linear", "rbf", "poly"])
        machine = SVC(kernel=kernel, C=10.0 ** rng.uniform(-2, 2), gap_tol=gap_tol).fit(X, y)
        assert machine.status_.startswith("converged: "), (seed, machine.status_)
        assert machine.dual_gap_ <= gap_tol * machine.objective_, seed


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_data_far_from_the_origin(kernel):
    X, y = load_iris(return_X_y=True)
    machine = SVC(kernel=kernel).fit(X + 1000, y)
    assert machine.fit_status_ == 0
    assert machine.dual_gap_ < np.inf
    assert machine.score(X + 1000, y) > 0.9


class FromAbove(Watch):
    """Stops when the violation is below tol, which ends the fit by itself."""

    def on_fit_task_end(self, estimator, context):
        event = getattr(context, "event", None)
        return event is not None and event.violation <= estimator.tol


def test_a_callback_that_stops_what_has_ended_is_no_cause_to_warn(small):
    machine = SVC().set_callbacks(FromAbove()).fit(*small)  # warnings are errors here
    assert machine.status_.startswith("converged")


def test_a_callback_that_stops_the_calibration_is(small):
    machine = SVC(probability=True, random_state=0).set_callbacks(FromAbove())
    with pytest.warns(ConvergenceWarning, match="a callback while its probabilities were cal") as w:
        machine.fit(*small)
    assert w[0].filename == __file__
    assert machine.status_.startswith("converged")


class Slow:
    """A kernel function that takes a second; Ctrl-C comes in the middle."""

    def __init__(self):
        self.calls = 0

    def __call__(self, A, B):
        self.calls += 1
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        end = time.perf_counter() + 2
        while time.perf_counter() < end:
            time.sleep(0.01)
        return A @ B.T


@pytest.mark.parametrize("machine", [SVC, LSSVC])
def test_ctrl_c_ends_a_kernel_function_at_once(three, machine):
    kernel = Slow()
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        machine(kernel=kernel).fit(*three)
    assert kernel.calls == 1
    assert time.perf_counter() - begun < 1.5


@pytest.mark.parametrize(
    "machine", [SVC(max_iter=5), SVR(max_iter=5), LSSVR(max_iter=1, cache_size=1e-3, C=1e4)]
)
def test_warnings_name_the_line_that_called(small, machine):
    X, y = small
    for fit in (machine, make_pipeline(StandardScaler(), machine)):
        with pytest.warns(ConvergenceWarning) as caught:
            fit.fit(X, y)
        assert caught[0].filename == __file__
