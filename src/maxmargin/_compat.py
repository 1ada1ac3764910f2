"""Everything of scikit-learn that is experimental or private, touched in this file only.

Supported are scikit-learn 1.9 and 1.10. The callback API (``sklearn.callback``) came with 1.9 and
is experimental: should a later version move it, estimators still fit, only ``set_callbacks``
says that it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# --- Callbacks (scikit-learn 1.9: sklearn.callback, experimental) ---------------------------------

try:
    from sklearn.callback import (
        CallbackSupportMixin,
        ProgressBar,
        ScoringMonitor,
        with_callbacks,
    )
except ImportError:
    HAS_CALLBACKS = False
else:
    HAS_CALLBACKS = True

if not HAS_CALLBACKS and not TYPE_CHECKING:

    class CallbackSupportMixin:
        """Stands in for scikit-learn's mixin where the installed version has none."""

        def set_callbacks(self, *callbacks):
            """Accept no callbacks; anything else is an error that says why."""
            if callbacks:
                from sklearn import __version__

                raise NotImplementedError(
                    f"callbacks need sklearn.callback as scikit-learn 1.9 has it; scikit-learn "
                    f"{__version__} offers none. Fit without callbacks, or install another version."
                )
            return self

    class ProgressBar:
        """Never instantiated: without the callback API there are no callbacks."""

    ScoringMonitor = ProgressBar

    def with_callbacks(method):
        """Without callbacks there is nothing to tear down."""
        return method


def callbacks_of(estimator: Any) -> list[Any]:
    """Return the callbacks set on an estimator, those handed down by a meta-estimator included."""
    return getattr(estimator, "_skl_callbacks", [])


def begin_fit(estimator: Any, max_subtasks: int) -> Any:
    """Set up the callbacks of an estimator and return the context of its fit."""
    return estimator._init_callback_context(max_subtasks=max_subtasks)


@with_callbacks
def tear_down(estimator: Any) -> None:
    """Tear down the callbacks of an estimator whose fit is over.

    The decorator does it: it tears down whatever is set up when the decorated method ends.
    """


def counts_tasks(callback: Any) -> bool:
    """Whether the callback counts tasks that ended, so that it must see the end of every one."""
    return isinstance(callback, ProgressBar)


def once_per_task(callback: Any) -> bool:
    """Whether a task may end only once for this callback.

    A second end kills ProgressBar's drawing thread. A plain ScoringMonitor writes one row per
    task, at the price of a prediction, and never asks to stop (a subclass of it might).
    """
    return isinstance(callback, ProgressBar) or type(callback) is ScoringMonitor


@contextmanager
def only(context: Any, callbacks: Sequence[Any]) -> Iterator[Any]:
    """Let the hooks of a context reach these of its callbacks only."""
    everyone = context._callbacks
    context._callbacks = callbacks
    try:
        yield context
    finally:
        context._callbacks = everyone


# --- Messages from worker processes (scikit-learn 1.9: sklearn.callback._transport, private) ------

try:
    from sklearn.callback._transport import can_reuse_listener, open_listener, send
except ImportError:
    open_listener = None


class Channel:
    """A way to ``deliver`` that pickled copies in worker processes can use as well.

    Parameters
    ----------
    deliver : callable
        Takes one message, in the process that opened the channel. It must not refer to `owner`.
    owner : object
        The channel closes when its owner is collected.

    Notes
    -----
    A copy unpickled in another process of the same run sends to the original. Any other copy
    (from a file, or beside the original) has to be opened again: see `reopen`. Without
    scikit-learn's transport every process keeps its own messages.
    """

    def __init__(self, deliver: Callable[[Any], None], owner: object) -> None:
        self._handle = None
        self.reopen(deliver, owner)

    def reopen(self, deliver: Callable[[Any], None], owner: object) -> None:
        """Deliver here from now on, unless the original channel can be reached from here."""
        self._deliver = deliver
        if open_listener is None:
            return
        if self._handle is None or not can_reuse_listener(self._handle):
            self._handle = open_listener(deliver, owner=owner)

    def send(self, message: Any) -> None:
        """Deliver a message; when this returns, it has arrived."""
        if self._handle is None:
            self._deliver(message)
        else:
            send(self._handle, message)

    def __getstate__(self) -> dict[str, Any]:
        return {"_handle": self._handle}


# --- Parameter and input validation (private, but what scikit-learn's own estimators use) ---------

from sklearn.base import _fit_context as fit_context  # noqa: E402, F401
from sklearn.utils import _safe_indexing as safe_indexing  # noqa: E402, F401
from sklearn.utils._param_validation import Interval, Options, StrOptions  # noqa: E402, F401
from sklearn.utils._sparse import (  # noqa: E402, F401
    _align_api_if_sparse as align_sparse,
)
from sklearn.utils.validation import _num_samples as num_samples  # noqa: E402, F401

# --- Threads (sklearn.utils._openmp_helpers; joblib's active backend) -----------------------------


def openmp_threads(n_threads: int | None) -> int:
    """Return how many threads scikit-learn's own threaded estimators would use."""
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    return _openmp_effective_n_threads(n_threads)


def in_joblib_thread() -> bool:
    """Whether this is a worker thread of joblib's threading backend.

    A backend is nested inside of workers. Those of process backends run on the main thread of
    their process, and get their share of the processors through the environment.
    """
    import threading

    from joblib.parallel import get_active_backend

    nested = getattr(get_active_backend()[0], "nesting_level", None)
    return bool(nested) and threading.current_thread() is not threading.main_thread()
