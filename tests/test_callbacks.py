import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.callback import FitCallback
from toy_monitored import TOL, Toy, X, stalled, steady, y

from maxmargin.callbacks import Trace
from maxmargin.monitor import Event


def traced(**parameters):
    trace = Trace()
    est = Toy(**parameters).set_callbacks(trace).fit(X, y)
    return trace, est


def by_subproblem(trace):
    found = {}
    for event in trace.records:
        found.setdefault(event.subproblem, []).append(event)
    return found


def test_follows_the_protocol():
    assert isinstance(Trace(), FitCallback)


def test_first_and_last_state_of_each_subproblem():
    trace, _ = traced(paths=[steady(30), [1.0], stalled(0.3), [1.0, TOL]])
    events = by_subproblem(trace)
    assert sorted(events) == [0, 1, 2, 3]
    for index, steps in enumerate([30, 0, 29, 1]):
        assert events[index][0].iteration == 0
        assert events[index][0].violation == 1.0
        assert events[index][-1].iteration == steps
        assert len(events[index]) >= 2
    assert events[0][-1].violation == pytest.approx(TOL)


def test_records_are_complete_events_in_order_without_repetition():
    trace, _ = traced(paths=[steady(40), steady(10)])
    seconds = [event.seconds for event in trace.records]
    assert all(np.diff(seconds) > 0)
    for event in trace.records:
        assert isinstance(event, Event)
        assert event.dual_gap == pytest.approx(10 * event.violation)
        assert (event.objective, event.active, event.cache_hits) == (-1.0, 10, 3)


def test_stopped_fit_has_its_last_state_and_nothing_of_what_never_began():
    trace, est = traced(paths=[stalled(20), stalled(20)], time_limit=0.3)
    events = by_subproblem(trace)
    assert list(events) == [0]
    assert events[0][-1].iteration == est.steps_[0]


def test_fits_are_kept_apart():
    trace = Trace()
    est = Toy(paths=[steady(5)]).set_callbacks(trace)
    est.fit(X, y)
    first = trace.records
    est.fit(X, y)
    assert trace.fits[0] == first
    assert trace.fits[0] + trace.fits[1] == trace.records
    assert trace.records[-1].seconds < 10


def test_records_cannot_be_spoiled():
    trace, _ = traced()
    trace.records.clear()
    trace.fits[0].clear()
    assert trace.records
    assert trace.fits[0]


def test_repr():
    assert repr(Trace()) == "Trace(no records)"
    trace, _ = traced()
    assert repr(trace).startswith(
        "Trace(2 records of 1 fit; last: iteration 1, gap 1.0e-02, violation 1.0e-03 after 0.0"
    )


@pytest.mark.parametrize("how", [copy.deepcopy, lambda trace: pickle.loads(pickle.dumps(trace))])
def test_copies_are_independent(how):
    trace, est = traced()
    other = how(trace)
    assert other.records == trace.records
    Toy().set_callbacks(other).fit(X, y)
    assert len(trace.fits) == 1
    assert len(other.fits) == 2
    est.fit(X, y)
    assert len(trace.fits) == 2


def test_pickle_is_usable_when_its_process_is_gone(tmp_path):
    path = tmp_path / "model.pkl"
    script = f"""
import sys
sys.path[:] = {sys.path!r}
import pickle
from toy_monitored import Toy, X, y
from maxmargin.callbacks import Trace
est = Toy().set_callbacks(Trace()).fit(X, y)
with open({str(path)!r}, "wb") as file:
    pickle.dump(est, file)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    est = pickle.loads(path.read_bytes())
    (trace,) = est._skl_callbacks
    assert len(trace.records) == 2
    est.fit(X, y)
    assert len(trace.fits) == 2


# --- plot -----------------------------------------------------------------------------------------


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot.subplots()[1]
    pyplot.close("all")


def test_plot_has_one_line_per_subproblem(axes):
    trace, _ = traced(paths=[steady(30), steady(10)])
    assert trace.plot(axes) is axes
    assert len(axes.lines) == 2
    assert axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("seconds", "duality gap")
    expected = [event.dual_gap for event in trace.records if event.subproblem == 1]
    assert list(axes.lines[1].get_ydata()) == expected
    assert [text.get_text() for text in axes.get_legend().texts] == [
        "subproblem 0",
        "subproblem 1",
    ]


def test_plot_of_violations_against_iterations_of_several_fits(axes):
    trace, est = traced(paths=[[1.0, 0.0]])
    est.fit(X, y)
    trace.plot(axes, x="iteration", y="violation")
    assert [line.get_label() for line in axes.lines] == [
        "fit 1, subproblem 0",
        "fit 2, subproblem 0",
    ]
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [0, 1])
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1.0, np.nan])


def test_plot_makes_its_own_axes(axes):
    trace, _ = traced()
    assert trace.plot() is not axes


def test_plot_of_nothing_or_of_something_else(axes):
    with pytest.raises(ValueError, match="no records"):
        Trace().plot(axes)
    with pytest.raises(ValueError, match="y='loss'"):
        traced()[0].plot(axes, y="loss")


def test_plot_without_matplotlib(monkeypatch):
    trace, _ = traced()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        trace.plot()
