"""How many threads native code may use, and how threadpoolctl gets hold of them."""

from __future__ import annotations

import ctypes
from numbers import Integral

import threadpoolctl

from maxmargin import __version__, _core
from maxmargin._compat import in_joblib_thread, openmp_threads


def effective_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads that `n_jobs` stands for.

    Parameters
    ----------
    n_jobs : int, optional
        None: as many as scikit-learn's own threaded estimators would use, which follows affinity,
        cgroups, OMP_NUM_THREADS, threadpoolctl and joblib's share in a worker process; one in a
        worker thread of joblib. A positive number: that many. -1: all, -2: all but one, and so on.
        A limit set through threadpoolctl holds for all of them.

    Returns
    -------
    int
        At least 1.
    """
    if n_jobs is None:
        threads = 1 if in_joblib_thread() else openmp_threads(None)
    elif isinstance(n_jobs, Integral) and n_jobs != 0:
        threads = openmp_threads(int(n_jobs))
    else:
        raise ValueError(
            f"n_jobs must be None or an integer other than 0 (-1: all processors), got {n_jobs!r}"
        )
    return min(threads, _core.thread_limit())


class PoolController(threadpoolctl.LibController):
    """Shows our pool in ``threadpool_info()`` and lets ``threadpool_limits`` limit it."""

    user_api = "maxmargin"
    internal_api = "maxmargin"
    filename_prefixes = ("_core.",)
    check_symbols = ("maxmargin_get_num_threads",)

    def get_num_threads(self) -> int:
        return self.dynlib.maxmargin_get_num_threads()

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.maxmargin_set_num_threads(num_threads)

    def get_version(self) -> str:
        return __version__

    def set_additional_attributes(self) -> None:
        # Another project's _core gets as far as here before its symbols are looked at.
        function = getattr(self.dynlib, "maxmargin_instruction_set", None)
        if function is not None:
            function.restype = ctypes.c_char_p
            self.instruction_set = function().decode()


threadpoolctl.register(PoolController)
