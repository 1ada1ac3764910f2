"""Least squares by conjugate gradients, with and without a preconditioner, against Cholesky.

    python benchmarks/least_squares.py --data DIR

where DIR holds ``usps.npz`` (``X_train``, ``y_train``).  Writes
``benchmarks/results/least_squares.csv``: steps, and the time of a fit as a multiple of Cholesky's.
All ways take turns, several times, and the median of the ratios counts, so that whatever else runs
on the machine meets all of them.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LSSVC, inverse

RESULTS = Path(__file__).parent / "results" / "least_squares.csv"
COLUMNS = ["C", "MB", "preconditioned", "rank", "steps", "times Cholesky", "violation"]
BUDGETS = [10.0, 100.0]
"""Megabytes; the kernel matrix of usps takes 406."""


def fit(X: np.ndarray, y: np.ndarray, C: float, megabytes: float, n_jobs: int) -> tuple:
    """Seconds, steps and the largest violation of a fit."""
    machine = LSSVC(C=C, gamma=1 / 128, cache_size=megabytes, n_jobs=n_jobs)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    seconds = time.perf_counter() - start
    return seconds, max(machine.n_iter_), max(each.violation for each in machine.subproblems_)


def without(rank_of: Callable[[int, float], int]) -> mock._patch:
    """The same code with that many columns of the kernel matrix in the preconditioner."""
    return mock.patch.object(inverse, "affordable_rank", rank_of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with usps.npz")
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 100.0, 1000.0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rows", type=int, default=None, help="only so many of them")
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    with np.load(options.data / "usps.npz") as file:
        X, y = file["X_train"][: options.rows], file["y_train"][: options.rows]
    ways = [(BUDGETS[0], False), *((megabytes, True) for megabytes in BUDGETS)]
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for C in options.C:
            ratios: list[list[float]] = [[] for _ in ways]
            last: list[list] = [[] for _ in ways]
            for _ in range(options.repeat):
                cholesky, _, _ = fit(X, y, C, 1e4, options.n_jobs)
                for i, (megabytes, preconditioned) in enumerate(ways):
                    rank = inverse.affordable_rank(len(X), megabytes * 2**20) * preconditioned
                    with without(lambda n, memory, rank=rank: rank):
                        seconds, steps, violation = fit(X, y, C, megabytes, options.n_jobs)
                    ratios[i].append(seconds / cholesky)
                    last[i] = [rank, steps, f"{violation:.1e}"]
            for i, (megabytes, preconditioned) in enumerate(ways):
                rank, steps, violation = last[i]
                ratio = f"{median(ratios[i]):.1f}"
                row = [C, megabytes, preconditioned, rank, steps, ratio, violation]
                table.writerow(row)
                print(*row, sep="  ", flush=True)


if __name__ == "__main__":
    main()
