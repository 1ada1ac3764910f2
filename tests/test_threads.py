import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
import threadpoolctl
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from maxmargin.kernels import RBF
from maxmargin.threads import effective_threads


def ours():
    (info,) = (i for i in threadpoolctl.threadpool_info() if i["user_api"] == "maxmargin")
    return info


def test_none_is_what_scikit_learn_uses():
    assert effective_threads() == effective_threads(None) == _openmp_effective_n_threads()
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        assert effective_threads() == 1


def test_integers_count_as_in_scikit_learn():
    everything = _openmp_effective_n_threads(-1)
    assert effective_threads(-1) == everything
    assert effective_threads(-2) == max(1, everything - 1)
    assert effective_threads(-1000) == 1
    assert [effective_threads(n) for n in (1, 3, np.int64(2))] == [1, 3, 2]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_anything_else_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        effective_threads(n_jobs)


def test_the_environment_is_heard():
    script = "from maxmargin.threads import effective_threads; print(effective_threads())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == 3


def test_threadpoolctl_shows_and_limits_our_pool():
    before = ours()
    assert before["num_threads"] >= 1 and before["instruction_set"]
    with threadpoolctl.threadpool_limits(1):
        assert ours()["num_threads"] == 1
        assert effective_threads(8) == effective_threads() == effective_threads(-1) == 1
        X = np.eye(5)
        assert RBF()(X).shape == (5, 5)
    assert ours() == before
    assert effective_threads(8) == 8
    with threadpoolctl.threadpool_limits(1, user_api="maxmargin"):
        assert effective_threads(8) == 1


def test_workers_of_joblib_share_the_machine():
    threads = joblib.Parallel(2, backend="threading")(
        joblib.delayed(effective_threads)() for _ in range(4)
    )
    assert threads == [1] * 4
    explicit = joblib.Parallel(2, backend="threading")(
        joblib.delayed(effective_threads)(2) for _ in range(2)
    )
    assert explicit == [2] * 2
    share = max(1, joblib.cpu_count() // 2)
    processes = joblib.Parallel(2, backend="loky")(
        joblib.delayed(effective_threads)() for _ in range(2)
    )
    assert all(n <= share for n in processes)


def test_nothing_is_shared_outside_of_workers():
    with joblib.parallel_config("threading", n_jobs=2):
        assert effective_threads() == _openmp_effective_n_threads()
    alone = joblib.Parallel(1)(joblib.delayed(effective_threads)() for _ in range(1))
    assert alone == [_openmp_effective_n_threads()]
