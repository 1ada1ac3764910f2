"""Watching a fit: events, progress, callbacks, time limits and interrupts.

A solver reports what it has reached a few times a second; the monitor tells whoever listens and
answers whether to stop. Events never change what a solver does, except that it may end early.

For the author of an estimator
------------------------------
Every iterative fit runs inside a `session`, and stores its model inside it too::

    with session(self, X, y, metadata=..., n_subproblems=k, time_limit=self.time_limit,
                 verbose=self.verbose, attributes=self._attributes) as monitor:
        solutions = [solve(problem, items, monitor=monitor.subproblem(i)) for i, ... in ...]
        vars(self).update(self._attributes(solutions))
    if monitor.reason: ...       # Stop.TIME_LIMIT or Stop.CALLBACK: warn

- ``X, y, metadata`` are the user's own (all rows, original labels), for callbacks that score.
- ``attributes(solutions)`` turns one Solution per subproblem, None where a subproblem has not
  begun, into the dict of fitted attributes. It is called only when a callback declares
  ``fitted_estimator``.
- Once the fit is to stop, `Subproblem.poll` answers True at once, so that a subproblem not yet
  begun returns its starting point and the model stays predictable. ``monitor.reason`` says why.
- Ctrl-C: the solver reports it (see below) and returns like after any other stop; the body goes
  on and stores its model; the end of the ``with`` block then raises the KeyboardInterrupt. It wins
  over an exception that the body raises meanwhile. When the block ends normally the model is
  stored, so callbacks see the finished estimator; after an exception they are only torn down.

For the author of a solver
--------------------------
A solver gets one `Subproblem` (or None) and calls

- ``poll(view) -> bool`` before the first move and then a few times a second; it costs next to
  nothing when nobody listens or the last event is recent; True means stop;
- ``interrupt(error)`` when it catches a KeyboardInterrupt: Python raises it wherever it happens to
  run, which during native code is on the way into ``poll``; outcome INTERRUPTED;
- ``finish(view)`` once at the very end, whatever the outcome, where ``view.solution()`` is the
  Solution that is returned.

``Stop`` has the names of the corresponding members of Outcome.

How scikit-learn's callbacks see a fit is told in listeners.py.
"""

from __future__ import annotations

import enum
import functools
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from maxmargin import _compat, listeners

if TYPE_CHECKING:
    from maxmargin.solution import Solution

# Seconds between two events of a subproblem. With a solver that polls ten times a second, every
# other poll is an event, and a stop is noticed well within half a second.
_INTERVAL = 0.15

Model = Callable[[Sequence["Solution | None"]], Mapping[str, Any]]


@dataclass(frozen=True)
class Event:
    """What a solver has reached.

    Attributes
    ----------
    iteration : int
        Steps taken so far in this subproblem.
    seconds : float
        Time since the fit began, all subproblems together.
    objective : float
        The minimised dual.
    dual_gap : float
        How far the objective is from the optimum at most.
    violation : float
        The largest violation of the optimality conditions, which `tol` is compared with.
    active : int
        Variables not shrunk away.
    cache_hits : int
        Kernel rows that were found in the cache so far.
    subproblem : int
        Which of the fit's problems this is about, from 0.
    """

    iteration: int
    seconds: float
    objective: float
    dual_gap: float
    violation: float
    active: int
    cache_hits: int
    subproblem: int


class View(Protocol):
    """What a solver shows of its state. `dual_gap` and `solution` may cost: asked for rarely."""

    @property
    def iteration(self) -> int: ...
    @property
    def objective(self) -> float: ...
    @property
    def violation(self) -> float: ...
    @property
    def active(self) -> int: ...
    @property
    def cache_hits(self) -> int: ...
    @property
    def tol(self) -> float:
        """The violation at which the solver would end."""
        ...

    @property
    def dual_gap(self) -> float: ...
    def solution(self) -> Solution:
        """Return the Solution as it stands."""
        ...


class Stop(enum.Enum):
    """Why a monitor ended a fit; the value completes the sentence 'stopped by ...'."""

    TIME_LIMIT = "the time limit"
    CALLBACK = "a callback"
    INTERRUPTED = "the keyboard"


class Monitor:
    """Decides when a fit ends, and tells its listeners how far it is.

    Parameters
    ----------
    n_subproblems : int
        How many problems the fit solves, one after the other (calibration included).
    time_limit : float or None
        Seconds for all of them together, from now on.
    attributes : callable or None
        Maps the list of the subproblems' Solutions (None: not begun) to the attributes of the
        fitted estimator.

    Attributes
    ----------
    reason : Stop or None
        Why the fit is to stop. Remembered, so that no further subproblem begins.
    interrupted : KeyboardInterrupt or None
        The interrupt to raise when the model is stored.
    latest : Event or None
        The last event that went to the listeners.
    begun : bool
        Whether a subproblem was given to a solver.
    """

    def __init__(
        self,
        n_subproblems: int = 1,
        *,
        time_limit: float | None = None,
        attributes: Model | None = None,
    ) -> None:
        self.n_subproblems = max(n_subproblems, 1)
        self.listeners: list[listeners.Listener] = []
        self.reason: Stop | None = None
        self.interrupted: KeyboardInterrupt | None = None
        self.latest: Event | None = None
        self.begun = False
        self._start = time.perf_counter()
        self._deadline = math.inf if time_limit is None else self._start + time_limit
        self._next_event = self._start
        self._progress = 0.0
        self._attributes = attributes
        self._solutions: list[Solution | None] = [None] * self.n_subproblems

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return time.perf_counter() - self._start

    @property
    def percent(self) -> int:
        """Progress of the whole fit: 100 (finished subproblems + share of the current one) / n.

        It stays below 100 until the fit is over: a violation below `tol` need not be the end, as
        the gap may decide.
        """
        return min(int(100 * self._progress / self.n_subproblems + 1e-6), 99)

    def subproblem(self, index: int = 0) -> Subproblem:
        """Return the monitor of one of the subproblems, to be given to the solver."""
        self.begun = True
        return Subproblem(self, index)

    def interrupt(self, error: KeyboardInterrupt) -> None:
        """Remember a KeyboardInterrupt, to be raised when the model is stored, and stop."""
        self.interrupted = self.interrupted or error
        self.reason = Stop.INTERRUPTED

    def raise_interrupt(self) -> None:
        """Raise the KeyboardInterrupt that was remembered, if any."""
        if self.interrupted is not None:
            raise self.interrupted

    def _tell(self, index: int, view: View) -> None:
        """Send an event to all listeners."""
        self.latest = event = Event(
            iteration=int(view.iteration),
            seconds=self.seconds,
            objective=float(view.objective),
            dual_gap=float(view.dual_gap),
            violation=float(view.violation),
            active=int(view.active),
            cache_hits=int(view.cache_hits),
            subproblem=index,
        )
        attributes = self._attributes_at(index, view)
        try:
            stop = [each.update(event, self.percent, attributes) for each in self.listeners]
        except KeyboardInterrupt as error:
            self.interrupt(error)
        else:
            if any(stop) and self.reason is None:
                self.reason = Stop.CALLBACK
        self._next_event = time.perf_counter() + _INTERVAL

    def _attributes_at(self, index: int, view: View) -> listeners.Attributes | None:
        """Return a function that makes the fitted attributes at this moment, at most once."""
        make = self._attributes
        if make is None:
            return None

        @functools.cache
        def attributes() -> Mapping[str, Any]:
            solutions = list(self._solutions)
            if solutions[index] is None:
                solutions[index] = view.solution()
            return make(solutions)

        return attributes


class Subproblem:
    """The monitor as the solver of one subproblem sees it: `poll`, `interrupt` and `finish`."""

    def __init__(self, monitor: Monitor, index: int) -> None:
        self._monitor = monitor
        self._index = index
        self._first_violation: float | None = None
        self._share = 0.0

    @property
    def reason(self) -> Stop | None:
        """Why the fit is to stop, if it is."""
        return self._monitor.reason

    def poll(self, view: View) -> bool:
        """Report a state, and return whether to stop."""
        monitor = self._monitor
        now = time.perf_counter()
        if monitor.listeners and monitor.reason is None:
            if self._first_violation is None:
                self._first_violation = view.violation
                monitor._tell(self._index, view)
            elif now >= monitor._next_event:
                self._advance(_share(self._first_violation, view.violation, view.tol))
                monitor._tell(self._index, view)
        if monitor.reason is None and now >= monitor._deadline:
            monitor.reason = Stop.TIME_LIMIT
        return monitor.reason is not None

    def interrupt(self, error: KeyboardInterrupt) -> None:
        """Report a KeyboardInterrupt: the session raises it when the model is stored."""
        self._monitor.interrupt(error)

    def finish(self, view: View) -> None:
        """Report the last state, which every listener gets unless the solver never began."""
        monitor = self._monitor
        if not monitor.listeners:
            return
        if monitor._attributes is not None:
            monitor._solutions[self._index] = view.solution()
        if monitor.reason is None:
            self._advance(1.0)
        elif self._first_violation is None:
            return
        monitor._tell(self._index, view)

    def _advance(self, share: float) -> None:
        if share > self._share:
            self._monitor._progress += share - self._share
            self._share = share


def _share(first: float, violation: float, tol: float) -> float:
    """Return which part of the way from the first violation to tol is done, in logarithms."""
    if not violation <= first < math.inf:
        return 0.0
    tol = max(tol, first * sys.float_info.epsilon)  # rounding is the end where tol is 0
    if violation <= tol:
        return 1.0
    return math.log(first / violation) / math.log(first / tol)


@contextmanager
def _patient_interrupts(monitor: Monitor) -> Iterator[None]:
    """Let Ctrl-C wait for the solver's next poll, whatever Python code it meets before.

    A KeyboardInterrupt between two polls would lose the model. The second Ctrl-C does not wait, nor
    does one that comes before the first subproblem, when there is no model. Other threads get no
    signals, and a handler of the user's stays.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def handler(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not monitor.begun:
            signal.default_int_handler(number, frame)
        monitor.interrupt(KeyboardInterrupt())

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def session(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    n_subproblems: int = 1,
    time_limit: float | None = None,
    verbose: bool | int = False,
    attributes: Model | None = None,
) -> Iterator[Monitor]:
    """Run the body of a fit with a monitor: see the top of this file.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted. Its callbacks are set up now and torn down at the end.
    X, y : array-like
        The training data as the user gave them, for the callbacks.
    metadata : dict or None
        What else came with them, such as ``{"sample_weight": sample_weight}``.
    n_subproblems : int
        How many problems will be solved.
    time_limit : float or None
        Seconds for all of them, from now on.
    verbose : bool or int
        Whether to show the progress on standard output.
    attributes : callable or None
        Maps a list of Solutions (None: not begun) to the dict of fitted attributes.

    Yields
    ------
    Monitor

    Raises
    ------
    KeyboardInterrupt
        After the body, when a solver was interrupted, or a callback's last hook.
    """
    monitor = Monitor(n_subproblems, time_limit=time_limit, attributes=attributes)
    try:
        with ExitStack() as stack:
            stack.enter_context(_patient_interrupts(monitor))
            if verbose:
                monitor.listeners.append(stack.enter_context(listeners.display(estimator, monitor)))
            if _compat.callbacks_of(estimator):
                tasks = listeners.tasks(estimator, X, y, metadata)
                monitor.listeners.append(stack.enter_context(tasks))
            try:
                yield monitor
            finally:
                monitor.raise_interrupt()  # listeners are not told of an end
    finally:
        monitor.raise_interrupt()  # one that came while they were
