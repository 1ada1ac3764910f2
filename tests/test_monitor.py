import gc
import io
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

import pytest
import toy_monitored as toy
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin, ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toy_monitored import TOL, Toy, ToyView, X, stalled, steady, y

from maxmargin.callbacks import Trace
from maxmargin.monitor import Event, Monitor, Stop, _share


class Spy:
    """Writes down every hook; stops when `stop(event)` says so."""

    def __init__(self, stop=lambda event: False, **raises):
        self.calls = []
        self.stop = stop
        self.raises = raises

    def note(self, hook, context):
        self.calls.append((hook, context, getattr(context, "event", None)))
        if hook in self.raises:
            raise self.raises[hook]

    def setup(self, estimator, context):
        self.note("setup", context)

    def teardown(self, estimator, context):
        self.note("teardown", context)

    def on_fit_task_begin(self, estimator, context):
        self.note("begin", context)

    def on_fit_task_end(self, estimator, context):
        self.note("end", context)
        return self.stop(context.event)

    def hooks(self):
        return [hook for hook, _, _ in self.calls]


class Receiver(Spy):
    """Takes everything that a hook may ask for."""

    def __init__(self):
        super().__init__()
        self.received = []

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.received.append((context, X, y, metadata, fitted_estimator))


@pytest.fixture
def bar():
    """What ProgressBar's thread draws: after each ended task, (path, progress of the root)."""
    pytest.importorskip("rich")
    from sklearn.callback._progressbar import RichProgressMonitor

    drawn = []
    original = RichProgressMonitor._on_task_end

    def record(self, task_info):
        path = tuple(task_info["path"])
        original(self, task_info)
        drawn.append((path, self.root_rich_task.progress))

    with mock.patch.object(RichProgressMonitor, "_on_task_end", record):
        yield drawn
    assert [t for t in threading.enumerate() if isinstance(t, RichProgressMonitor)] == []


def assert_full(drawn, n_children=100, prefix=(0,)):
    """Every percent ended exactly once and in order, the fit after them, and the bar is full."""
    leaves = [path for path, _ in drawn if path[:-1] == prefix]
    assert leaves == [(*prefix, i) for i in range(n_children)]
    progress = [value for _, value in drawn]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


# --- progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "violation", "tol", "expected"),
    [
        (1.0, 1.0, 1e-3, 0.0),
        (1.0, 1e-1, 1e-3, 1 / 3),
        (1e3, 1e0, 1e-3, 1 / 2),
        (1.0, 1e-3, 1e-3, 1.0),
        (1.0, 0.0, 0.0, 1.0),
        (1.0, 1e-8, 0.0, 8 / 15.65),
        (1e-5, 1e-5, 1e-3, 1.0),
        (1.0, 2.0, 1e-3, 0.0),
        (math.inf, 1.0, 1e-3, 0.0),
        (1.0, math.nan, 1e-3, 0.0),
        (0.0, 0.0, 0.0, 1.0),
    ],
)
def test_share_is_logarithmic(first, violation, tol, expected):
    assert _share(first, violation, tol) == pytest.approx(expected, abs=1e-3)


def test_bar_moves_and_ends_full(bar):
    Toy(paths=[steady(60)]).set_callbacks(ProgressBar()).fit(X, y)
    assert_full(bar)


def test_bar_moves_with_the_logarithm_of_the_violation():
    spy = Spy()
    Toy(paths=[steady(30), steady(30)]).set_callbacks(spy).fit(X, y)
    ends = [
        (c.task_id, event) for hook, c, event in spy.calls if hook == "end" and c.max_subtasks == 0
    ]
    for (percent, _), (_, event) in zip(ends[1:], ends, strict=False):
        done = event.subproblem + _share(1.0, event.violation, TOL)
        assert percent == min(int(50 * done + 1e-6), 99)
    assert len({percent for percent, _ in ends}) > 4


def test_jumps_end_the_subtasks_between_for_the_bar_only(bar):
    spy = Spy()
    Toy(paths=[[1.0, TOL]] * 3).set_callbacks(ProgressBar(), spy).fit(X, y)
    assert_full(bar)
    ended = [c.task_id for hook, c, _ in spy.calls if hook == "end" and c.max_subtasks == 0]
    assert sorted(set(ended)) == [0, 33, 66, 99]


def test_more_subproblems_than_percents(bar):
    trace = Trace()
    Toy(paths=[[1.0]] * 130).set_callbacks(ProgressBar(), trace).fit(X, y)
    assert_full(bar)
    assert {event.subproblem for event in trace.records} == set(range(130))


def test_hooks_come_in_pairs_around_one_tree():
    spy = Spy()
    Toy(paths=[steady(40)]).set_callbacks(spy).fit(X, y)
    hooks = spy.hooks()
    assert hooks[:3] == ["setup", "begin", "begin"]
    assert hooks[-3:] == ["end", "end", "teardown"]
    root = spy.calls[0][1]
    assert spy.calls[-2][1] is root
    assert root.max_subtasks == 100
    children = [context for context in root if context is not root]
    assert [context.task_id for context in children] == list(range(100))

    def order(hook):
        return list(dict.fromkeys(c.task_id for h, c, _ in spy.calls[2:-2] if h == hook))

    assert order("begin") == order("end") == sorted(order("begin"))
    for hook, context, event in spy.calls:
        if hook == "end":
            assert isinstance(event, Event)
            assert event is context.event or context.event.seconds > event.seconds


def test_a_finished_violation_is_not_yet_the_end(bar):
    """The gap may decide: below tol the last percent stays open, and hears heartbeats."""
    spy = Spy()
    Toy(paths=[[1.0] + [TOL / 10] * 60]).set_callbacks(ProgressBar(), spy).fit(X, y)
    last = [c.task_id for hook, c, _ in spy.calls if hook == "end" and c.max_subtasks == 0]
    assert last.count(99) >= 3
    assert_full(bar)


# --- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_bar", [False, True])
def test_callback_stops_a_stalled_fit(with_bar, bar):
    asked = []

    def stop(event):
        if event.seconds > 0.4 and not asked:
            asked.append(time.perf_counter())
        return bool(asked)

    extra = [ProgressBar(), ScoringMonitor(scoring="accuracy")] if with_bar else []
    est = Toy(paths=[stalled(20), stalled(20)]).set_callbacks(*extra, Spy(stop))
    begun = time.perf_counter()
    est.fit(X, y)
    # the callback is heard within half a second of the moment from which it wants to stop
    assert asked[0] - begun < 0.4 + 0.5
    assert time.perf_counter() - asked[0] < 0.5
    assert est.reason_ is Stop.CALLBACK
    assert est.steps_[0] > 0
    assert est.steps_[1] == 0
    assert list(est.predict(X[:2])) == ["yes", "yes"]
    if with_bar:
        assert_full(bar)


@pytest.mark.parametrize("verbose", [False, True])
def test_any_of_several_callbacks_stops(verbose):
    est = Toy(paths=[stalled(20)], verbose=verbose).set_callbacks(Spy(lambda event: True), Spy())
    assert est.fit(X, y).reason_ is Stop.CALLBACK


def test_subclass_of_scoring_monitor_may_stop_a_stalled_fit():
    class Stopping(ScoringMonitor):
        def on_fit_task_end(self, estimator, context):
            return context.event.seconds > 0.2

    est = Toy(paths=[stalled(20)]).set_callbacks(Stopping(scoring="accuracy"))
    assert est.fit(X, y).reason_ is Stop.CALLBACK


def test_time_limit_covers_all_subproblems():
    est = Toy(paths=[stalled(0.2), stalled(20), stalled(20)], time_limit=0.5)
    begun = time.perf_counter()
    est.fit(X, y)
    assert 0.5 <= time.perf_counter() - begun < 1.0
    assert est.reason_ is Stop.TIME_LIMIT
    assert est.steps_[0] == 19
    assert est.steps_[1] > 0
    assert est.steps_[2] == 0


def test_time_limit_that_is_over_at_once():
    trace = Trace()
    est = Toy(paths=[stalled(20)] * 2, time_limit=0).set_callbacks(trace).fit(X, y)
    assert est.steps_ == [0, 0]
    assert [event.subproblem for event in trace.records] == [0, 0]


def test_stop_is_final():
    monitor = Monitor(2, time_limit=0)
    assert monitor.subproblem(0).poll(ToyView(1.0))
    assert monitor.subproblem(1).poll(ToyView(1.0))
    assert monitor.subproblem(1).reason is Stop.TIME_LIMIT


def test_polling_costs_nothing_when_nobody_listens():
    view = ToyView(1.0)
    subproblem = Monitor().subproblem()
    assert not any(subproblem.poll(view) for _ in range(100))
    subproblem.finish(view)
    assert view.gaps == view.solutions == 0


def test_events_are_a_few_a_second():
    trace = Trace()
    Toy(paths=[stalled(1.0)]).set_callbacks(trace).fit(X, y)
    assert 4 <= len(trace.records) <= 2 + 1.5 / 0.15


# --- errors and interrupts ------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["setup", "begin", "end"])
def test_teardown_after_an_error_in_a_hook(hook):
    spy = Spy(**{hook: ValueError("the hook failed")})
    est = Toy(paths=[stalled(20)]).set_callbacks(spy)
    with pytest.raises(ValueError, match="the hook failed"):
        est.fit(X, y)
    assert spy.hooks().count("teardown") == 1
    assert spy.hooks()[-1] == "teardown"
    assert not hasattr(est, "_callback_fit_ctx")


def test_teardown_after_an_error_in_the_fit(bar, monkeypatch):
    def failing(path, monitor):
        monitor.poll(ToyView(1.0))
        raise ValueError("the solver failed")

    monkeypatch.setattr(toy, "toy_solve", failing)
    spy = Spy()
    with pytest.raises(ValueError, match="the solver failed"):
        Toy().set_callbacks(ProgressBar(), spy).fit(X, y)
    assert spy.hooks() == ["setup", "begin", "begin", "end", "teardown"]


class CtrlC(Spy):
    """Presses Ctrl-C in the middle of the fit."""

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if context.event.seconds > 0.2:
            signal.raise_signal(signal.SIGINT)


def test_interrupt_in_a_callback_is_raised_after_the_model_is_stored(bar):
    trace, ctrl_c = Trace(), CtrlC()
    est = Toy(paths=[stalled(20), stalled(20)]).set_callbacks(ProgressBar(), trace, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        est.fit(X, y)
    assert est.reason_ is Stop.INTERRUPTED
    assert est.steps_[0] > 0
    assert est.steps_[1] == 0
    assert ctrl_c.hooks().count("teardown") == 1
    assert trace.records[-1].iteration == est.steps_[0]
    # an interrupted fit ends no task: nobody may delay it with the work of a finished one
    assert len(ctrl_c.calls[0][1]._children_map) == 1


class CtrlCAtTheEnd(Spy):
    """Is interrupted when the fit is over, and its model stored."""

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if context.parent is None:
            signal.raise_signal(signal.SIGINT)


def test_interrupt_in_the_last_hook_is_raised():
    spy = CtrlCAtTheEnd()
    est = Toy(paths=[stalled(0.1)]).set_callbacks(spy)
    with pytest.raises(KeyboardInterrupt):
        est.fit(X, y)
    assert est.steps_[0] > 0
    assert spy.hooks().count("teardown") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_in_the_solver():
    est = Toy(paths=[stalled(20), stalled(20)])
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    begun = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        est.fit(X, y)
    assert time.perf_counter() - begun < 0.2 + 0.5
    assert 0 < est.steps_[0] < 200
    assert est.steps_[1] == 0


def test_interrupt_wins_over_an_error_of_the_body(monkeypatch):
    def failing(self, solutions):
        raise UserWarning("a warning that is an error")

    monkeypatch.setattr(Toy, "_model", failing)
    est = Toy(paths=[stalled(20)])
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt) as raised:
        est.fit(X, y)
    assert isinstance(raised.value.__context__, UserWarning)


# --- what callbacks are given ---------------------------------------------------------------------


def test_fitted_estimator_is_built_only_when_asked_for(monkeypatch):
    built = []

    def model(self, solutions):
        built.append(list(solutions))
        return {"steps_": list(solutions), "begun_": list(solutions)}

    monkeypatch.setattr(Toy, "_model", model)
    est = Toy(paths=[stalled(0.4), stalled(0.4)])
    est.set_callbacks(Spy(), Trace()).fit(X, y)
    assert len(built) == 1  # the fit itself
    receiver = Receiver()
    est.set_callbacks(receiver).fit(X, y, sample_weight=[1.0] * 12)
    assert len(built) > 4
    assert built[1] == [0, None]
    assert all(None not in solutions for solutions in built[-2:])
    for context, X_given, y_given, metadata, fitted in receiver.received:
        assert X_given is X
        assert y_given is y
        assert metadata == {"sample_weight": [1.0] * 12}
        assert list(fitted.predict(X[:1])) == ["yes"]
        if context.max_subtasks == 0:
            assert fitted is not est
    assert receiver.received[-1][-1].steps_ == est.steps_


def test_one_model_serves_the_end_and_the_next_beginning(monkeypatch):
    class Both(Receiver):
        def on_fit_task_begin(self, estimator, context, *, fitted_estimator=None):
            self.note("begin", context)

    built = []
    original = Toy._model
    monkeypatch.setattr(Toy, "_model", lambda self, s: built.append(1) or original(self, s))
    both = Both()
    Toy(paths=[steady(40)]).set_callbacks(both).fit(X, y)
    events = {event.seconds for _, _, event in both.calls if event is not None}
    assert len(built) <= len(events) + 2


def test_estimator_without_attributes_gives_no_model():
    receiver = Receiver()
    Toy(paths=[steady(20)], attributes=False).set_callbacks(receiver).fit(X, y)
    assert {fitted for *_, fitted in receiver.received[:-2]} == {None}


# --- scikit-learn's callbacks, alone and inside its meta-estimators -------------------------------


def rows(scoring, n_fits):
    """The rows of each fit's subtasks; each task has one row, which has the score."""
    data = scoring.get_logs().data
    assert len({row["task_id_path"] for row in data}) == len(data)
    assert all(row["accuracy"] == 0.5 for row in data)
    fits = {}
    for row in data:
        if row["task_name"] == "percent":
            fits.setdefault(row["parent_task_id_path"], []).append(row["task_id"])
    assert len(fits) == n_fits
    return fits


def test_scoring_monitor_alone():
    scoring = ScoringMonitor(scoring="accuracy")
    Toy(paths=[steady(60), stalled(0.5)]).set_callbacks(scoring).fit(X, y)
    (ids,) = rows(scoring, 1).values()
    assert len(ids) >= 3
    assert ids == sorted(ids)


def test_as_the_last_step_of_a_pipeline(bar):
    scoring, trace = ScoringMonitor(scoring="accuracy"), Trace()
    inner = Toy(paths=[steady(40)]).set_callbacks(scoring, trace)
    make_pipeline(StandardScaler(), inner).set_callbacks(ProgressBar()).fit(X, y)
    assert_full(bar, prefix=(0, 1))
    rows(scoring, 1)
    assert len(trace.fits) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_inside_a_grid_search(n_jobs, bar):
    scoring, trace = ScoringMonitor(scoring="accuracy"), Trace()
    inner = Toy().set_callbacks(scoring, trace)
    grid = GridSearchCV(inner, {"paths": [[steady(20)], [[1.0, TOL]] * 2]}, cv=2, n_jobs=n_jobs)
    grid.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, y)
    assert bar[-1] == ((0,), 1.0)
    fits = {}
    for path, _ in bar:
        fits.setdefault(path[:-1], []).append(path[-1])
    full = [path for path, ids in fits.items() if ids == list(range(100))]
    assert len(full) == 5
    rows(scoring, 5)
    assert len(trace.fits) == 5
    for events in trace.fits:
        assert events[0].violation == 1.0
        assert events[-1].violation == pytest.approx(TOL)
    assert len(trace.records) == sum(map(len, trace.fits))


def test_stop_inside_a_grid_search_stops_each_fit():
    est = Toy(paths=[stalled(20)]).set_callbacks(Spy(lambda event: True))
    grid = GridSearchCV(est, {"verbose": [False]}, cv=2)
    assert grid.fit(X, y).best_estimator_.reason_ is Stop.CALLBACK


def test_clone_and_pickle_keep_callbacks():
    trace = Trace()
    est = Toy(paths=[steady(5)]).set_callbacks(trace)
    clone(est).fit(X, y)
    n_records = len(trace.records)
    assert n_records >= 2
    copy = pickle.loads(pickle.dumps(est)).fit(X, y)
    assert len(trace.records) == n_records
    (own,) = copy._skl_callbacks
    assert len(own.records) > n_records
    assert len(own.fits) == 2


def test_no_listener_is_left_behind():
    from sklearn.callback._transport import _listeners

    gc.collect()
    before = set(_listeners)
    trace = Trace()
    assert len(_listeners) == len(before) + 1
    del trace
    gc.collect()
    assert set(_listeners) == before


# --- verbose --------------------------------------------------------------------------------------


def test_verbose_writes_lines_where_there_is_no_terminal(capsys):
    Toy(paths=[steady(130), steady(10)], verbose=True).fit(X, y)
    out = capsys.readouterr().out
    assert "\r" not in out
    lines = out.splitlines()
    assert 2 <= len(lines) <= 3
    assert re.fullmatch(
        r"Toy: +\d+ %, problem 1 of 2, iteration \d+, violation \S+, gap \S+", lines[0]
    )
    assert re.fullmatch(
        r"Toy: 100 %, problem 2 of 2, .*gap 1.0e-02, finished after \d\.\d s", lines[-1]
    )


def test_verbose_redraws_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    Toy(paths=[steady(100)], verbose=True).fit(X, y)
    out = capsys.readouterr().out
    first, *drawn = out.split("\r")
    assert first == ""
    assert 4 <= len(drawn) <= 2 + 1.5 / 0.2
    percents = [int(re.search(r"(\d+) %", line)[1]) for line in drawn]
    assert percents == sorted(percents)
    assert percents[0] == 0
    assert percents[-1] == 100
    assert all(len(line) == 59 for line in drawn[:-1])
    assert out.count("\n") == 1
    assert out.endswith("\n")
    assert "[" + "#" * 20 + "]" in drawn[-1]


@pytest.mark.parametrize("terminal", [False, True])
def test_verbose_last_line_says_how_it_ended(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    Toy(paths=[stalled(20)], verbose=True, time_limit=0.1).fit(X, y)
    assert "stopped by the time limit after 0." in capsys.readouterr().out

    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        Toy(paths=[stalled(20)], verbose=True).fit(X, y)
    assert "stopped by the keyboard after 0." in capsys.readouterr().out

    spy = Spy(end=ValueError())
    with pytest.raises(ValueError):
        Toy(paths=[stalled(20)], verbose=True).set_callbacks(spy).fit(X, y)
    out = capsys.readouterr().out
    assert "ended by ValueError after 0." in out
    assert out.endswith("\n")


def test_verbose_goes_quiet_when_nobody_reads():
    """As in ``python fit.py | head -1``: the pipe is closed, and the model is not lost."""
    script = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from toy_monitored import Toy, X, stalled, y
est = Toy(paths=[stalled(20)], verbose=True, time_limit=2.5).fit(X, y)
assert len(est.predict(X)) == len(X)
sys.stderr.write("fitted")
sys.stderr.flush()
os._exit(0)  # Python itself would complain of the pipe
"""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("Toy: ")
        process.stdout.close()
        assert process.stderr.read() == "fitted"
    assert process.returncode == 0


def test_verbose_on_a_closed_stream(monkeypatch):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stdout", stream)
    assert Toy(verbose=True).fit(X, y).steps_ == [1]


def test_verbose_without_any_output_stream(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert Toy(verbose=True).fit(X, y).steps_ == [1]


# --- without scikit-learn's callback API ----------------------------------------------------------


def test_without_the_callback_api_estimators_fit_and_refuse_callbacks():
    script = """
import sys
sys.modules["sklearn.callback"] = None
from toy_monitored import Toy, X, y
from maxmargin.callbacks import Trace
assert Toy(verbose=True).fit(X, y).steps_ == [1]
Toy().set_callbacks().fit(X, y)
try:
    Toy().set_callbacks(Trace())
except NotImplementedError as error:
    assert "scikit-learn 1.9" in str(error)
else:
    raise AssertionError("callbacks were accepted")
trace = Trace()
trace._channel.send((("run", (0,)), "event"))
assert trace.records == ["event"]
"""
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "finished" in ran.stdout


def test_estimators_use_scikit_learns_own_mixin():
    assert issubclass(Toy, CallbackSupportMixin)
