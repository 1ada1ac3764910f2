"""Callbacks of our own, for scikit-learn's ``set_callbacks``.

Whatever a callback does, it reads the state of the fit from ``context.event`` (see monitor.py), and
returns True from ``on_fit_task_end`` to stop the whole fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin import _compat
from maxmargin.monitor import Event

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# One fit: the run it belongs to, and its place in the tree of tasks of that run.
FitKey = tuple[str, tuple[Any, ...]]

_LABELS = {
    "seconds": "seconds",
    "iteration": "iteration",
    "dual_gap": "duality gap",
    "violation": "largest violation",
}


class Trace:
    """Records the events of every fit of the estimator that it is set on.

    Each subproblem has at least its first and its last state; between them there are a few
    records a second. Fits in worker processes (``GridSearchCV(..., n_jobs=2)``) are recorded as
    well. A trace is set on the solver's estimator itself, which may be inside a Pipeline or a
    GridSearchCV: those do not hand it on.

    Attributes
    ----------
    records : list of Event
        All events in the order of their arrival: iteration, seconds, objective, dual_gap,
        violation, active, cache_hits, subproblem.
    fits : list of list of Event
        The same, one list per fit.

    Examples
    --------
    >>> from maxmargin.callbacks import Trace
    >>> Trace()
    Trace(no records)
    """

    def __init__(self) -> None:
        self._log = _Log()
        self._channel = _compat.Channel(self._log.add, owner=self)

    @property
    def records(self) -> list[Event]:
        return list(self._log.records)

    @property
    def fits(self) -> list[list[Event]]:
        return [list(events) for events in self._log.fits.copy().values()]

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit is noticed by its first event."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: every event has arrived when it has been sent."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: what the subtask begins with was the end of the one before it."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Record the event of a subtask; never ask to stop."""
        event = getattr(context, "event", None)
        if event is not None and context.max_subtasks == 0:
            self._channel.send((_fit_key(context.parent), event))
        return False

    def plot(self, ax: Axes | None = None, *, x: str = "seconds", y: str = "dual_gap") -> Axes:
        """Draw how the gap (or the violation) fell, one line per subproblem of each fit.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; None makes a new figure.
        x : {"seconds", "iteration"}
        y : {"dual_gap", "violation"}
            On a logarithmic axis; values that are zero or infinite are left out.

        Returns
        -------
        matplotlib Axes
        """
        for name, value, allowed in (
            ("x", x, ("seconds", "iteration")),
            ("y", y, ("dual_gap", "violation")),
        ):
            if value not in allowed:
                raise ValueError(f"{name}={value!r}: it must be one of {allowed}.")
        fits = self.fits
        if not fits:
            raise ValueError(
                "Nothing to plot: this Trace has no records. Set it with set_callbacks on the "
                "estimator itself (inside a Pipeline or GridSearchCV, not on it), and fit."
            )
        if ax is None:
            ax = _new_axes()
        lines = _lines(fits)
        for label, events in lines.items():
            ax.plot(
                [getattr(event, x) for event in events],
                [_drawable(getattr(event, y)) for event in events],
                marker=".",
                label=label,
            )
        ax.set(xlabel=_LABELS[x], ylabel=_LABELS[y], yscale="log")
        if 1 < len(lines) <= 10:  # more than that no legend can tell apart
            ax.legend()
        return ax

    def __repr__(self) -> str:
        records = self.records
        if not records:
            return "Trace(no records)"
        last = records[-1]
        size = f"{_count(len(records), 'record')} of {_count(len(self._log.fits), 'fit')}"
        return (
            f"Trace({size}; last: iteration {last.iteration}, gap {last.dual_gap:.1e}, "
            f"violation {last.violation:.1e} after {last.seconds:.2f} s)"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"_log": self._log.copy(), "_channel": self._channel}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._channel.reopen(self._log.add, owner=self)


class _Log:
    """Where events arrive, possibly from several threads: each fit sends from one at a time."""

    def __init__(self) -> None:
        self.records: list[Event] = []
        self.fits: dict[FitKey, list[Event]] = {}

    def add(self, message: tuple[FitKey, Event]) -> None:
        key, event = message
        events = self.fits.setdefault(key, [])
        # the last subtask of a fit ends with the event that the solver ended with
        if events and events[-1].seconds == event.seconds:
            return
        events.append(event)
        self.records.append(event)

    def copy(self) -> _Log:
        """Return a copy that does not grow, which a pickler can walk."""
        copy = _Log()
        copy.records = self.records.copy()
        copy.fits = {key: events.copy() for key, events in self.fits.copy().items()}
        return copy


def _fit_key(context: Any) -> FitKey:
    path = []
    run = context.root_uuid.hex
    while context is not None:
        path.append(context.task_id)
        context = context.parent
    return run, tuple(path)


def _lines(fits: list[list[Event]]) -> dict[str, list[Event]]:
    """Return the events of each subproblem of each fit, by a label."""
    lines: dict[str, list[Event]] = {}
    for number, events in enumerate(fits, start=1):
        for event in events:
            label = f"subproblem {event.subproblem}"
            if len(fits) > 1:
                label = f"fit {number}, {label}"
            lines.setdefault(label, []).append(event)
    return lines


def _drawable(value: float) -> float:
    return value if 0 < value < float("inf") else float("nan")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Trace.plot draws with matplotlib, which is not installed: pip install matplotlib"
        ) from error
    return plt.subplots()[1]
