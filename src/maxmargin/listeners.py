"""Who hears of a fit's events: scikit-learn's callbacks, and the display of ``verbose=True``.

How callbacks see a fit
-----------------------
scikit-learn's callbacks see a tree of tasks. A fit is a task with 100 subtasks, one for each
percent of its progress. The subtask that has the current percent as its number is open, and
``context.event`` is its latest `Event` (None before the first; of the fit itself: the last one).

- When the progress moves on, the open subtask ends and that of the new percent begins, for
  everyone. Those jumped over begin and end for ProgressBar only, which counts them.
- When it does not, each event ends the open subtask once more (a heartbeat), so that a callback
  can stop a fit that is stuck. ProgressBar and ScoringMonitor are spared: they take one end per
  task.
- When the fit is over and the model stored, the subtasks that remain end in the same way, and then
  the fit. After an exception nothing ends, there is only the teardown.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from maxmargin import _compat

if TYPE_CHECKING:
    from maxmargin.monitor import Event, Monitor

Attributes = Callable[[], Mapping[str, Any]]


class Listener(Protocol):
    """Somebody who is told of events."""

    def update(self, event: Event, percent: int, attributes: Attributes | None) -> bool:
        """Take note of an event and of the progress; return True to stop the fit.

        `attributes` makes the fitted attributes of the model as it stands; it costs.
        """
        ...


@contextmanager
def tasks(estimator: Any, X: Any, y: Any, metadata: Mapping[str, Any] | None) -> Iterator[Listener]:
    """Tell scikit-learn's callbacks of a fit from its beginning to its end."""
    try:
        listener = _Tasks(estimator, X, y, metadata)
        yield listener
        listener.close()
    finally:
        _compat.tear_down(estimator)


class _Tasks:
    """A fit as scikit-learn's callbacks see it: a hundred subtasks, one of them open."""

    N = 100

    def __init__(self, estimator: Any, X: Any, y: Any, metadata: Mapping[str, Any] | None) -> None:
        callbacks = _compat.callbacks_of(estimator)
        self.counting = [each for each in callbacks if _compat.counts_tasks(each)]
        self.patient = [each for each in callbacks if not _compat.once_per_task(each)]
        self.given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.fit = _compat.begin_fit(estimator, self.N)
        self.fit.event = None
        self.fit.call_on_fit_task_begin(**self.given)
        self.open = self.subtask(None)
        self.open.call_on_fit_task_begin(**self.given)

    def subtask(self, event: Event | None) -> Any:
        """Return the next one; its number is how many there are already."""
        context = self.fit.subcontext(task_name="percent")
        context.event = event
        return context

    def update(self, event: Event, percent: int, attributes: Attributes | None) -> bool:
        self.fit.event = self.open.event = event
        now = self.given | {"reconstruction_attributes": attributes}
        if percent == self.open.task_id:
            with _compat.only(self.open, self.patient):
                return self.open.call_on_fit_task_end(**now)
        stop = self.open.call_on_fit_task_end(**now)
        stop |= self.jump(percent, now)
        self.open = self.subtask(event)
        self.open.call_on_fit_task_begin(**now)
        return stop

    def jump(self, percent: int, now: dict[str, Any]) -> bool:
        """Let those pass that lie between the subtask that just ended and that of `percent`."""
        stop = False
        for _ in range(self.open.task_id + 1, percent):
            subtask = self.subtask(self.fit.event)
            with _compat.only(subtask, self.counting):
                subtask.call_on_fit_task_begin(**now)
                stop |= subtask.call_on_fit_task_end(**now)
        return stop

    def close(self) -> None:
        """End the fit. The estimator has its model: a copy of it is the fitted estimator."""
        now = self.given | {"reconstruction_attributes": {}}
        self.open.call_on_fit_task_end(**now)
        self.jump(self.N, now)
        self.fit.call_on_fit_task_end(**now)


@contextmanager
def display(estimator: Any, monitor: Monitor) -> Iterator[Listener]:
    """Show a fit on standard output; the last line comes whatever the end is."""
    listener = _Display(type(estimator).__name__, monitor.n_subproblems)
    end = "finished"
    try:
        yield listener
    except BaseException as error:
        end = f"ended by {type(error).__name__}"
        raise
    finally:
        if monitor.reason is not None:
            end = f"stopped by {monitor.reason.value}"
        listener.close(monitor, end)


class _Display:
    """What ``verbose=True`` shows of a fit."""

    def __init__(self, name: str, n_subproblems: int) -> None:
        self.line = Line(name)
        self.n_subproblems = n_subproblems

    def update(self, event: Event, percent: int, attributes: Attributes | None) -> bool:
        if self.line.due(event.seconds):
            self.line.write(percent, self.describe(event))
        return False

    def close(self, monitor: Monitor, end: str) -> None:
        percent = 100 if end == "finished" else monitor.percent
        text = f"{end} after {monitor.seconds:.1f} s"
        if monitor.latest is not None:
            text = f"{self.describe(monitor.latest)}, {text}"
        self.line.write(percent, text, last=True)

    def describe(self, event: Event) -> str:
        text = f"iteration {event.iteration}, violation {event.violation:.1e}"
        if self.n_subproblems > 1:
            text = f"problem {event.subproblem + 1} of {self.n_subproblems}, {text}"
        return f"{text}, gap {event.dual_gap:.1e}"


class Line:
    """How far something is: a bar that moves on a terminal, a line a second elsewhere.

    Written to Python's own ``sys.stdout``, so that notebooks and redirections get it.  When nobody
    reads it any more (a closed pipe, a full disk) it goes quiet, and what it tells of goes on.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = not getattr(sys.stdout, "closed", sys.stdout is None)
        self.terminal = self.open and sys.stdout.isatty()
        self.pause = 0.2 if self.terminal else 1.0
        self.next = 0.0 if self.terminal else self.pause

    def due(self, seconds: float) -> bool:
        """Whether to write, so many seconds after the beginning."""
        if seconds < self.next:
            return False
        self.next = seconds + self.pause
        return True

    def write(self, percent: int, text: str, last: bool = False) -> None:
        """Write over the line before, on a terminal, or below it."""
        line, end = f"{self.name}: {percent:3d} %, {text}", "\n"
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            line = f"{self.name} [{'#' * (percent // 5):20}] {percent:3d} %  {text}"
            if not last:  # to be overwritten, so it must not wrap
                line, end = line[:width], ""
            line = f"\r{line:{width}}"
        if self.open:
            try:
                print(line, end=end, flush=True)
            except (OSError, ValueError):  # ValueError: closed meanwhile, or no such letters
                self.open = False
