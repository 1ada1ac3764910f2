"""One run in a process of its own: ``python -m benchmarks.child`` reads a job from its input, as
JSON, and writes what it measured.

The order: load the data, fit the first rows of each class once (imports that are put off,
compilers, thread pools), then the fit on the clock, the prediction on the clock, and the objective.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import os
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.problems import Case
from benchmarks.runners.base import NotAvailable, Runner

STATUS = Path("/proc/self/status")
PEAK_RESET = Path("/proc/self/clear_refs")
PREDICTIONS = 3


def memory(field: str) -> int:
    """VmRSS or VmHWM (the peak since it was last forgotten), in bytes; the peak elsewhere."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Where the system allows it, so that reading the data does not hide what a fit needs."""
    with contextlib.suppress(OSError):
        PEAK_RESET.write_text("5")


def seconds(action: Callable[[], Any], loops: int) -> float:
    """The median of so many calls."""
    taken = []
    for _ in range(loops):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure(case: Case, runner: Runner, job: dict[str, Any]) -> dict[str, Any]:
    """The figures of one run."""
    problem, setting, threads = case.problem, job["setting"], job["threads"]
    folder = Path(job["data"]) if job["data"] else None
    data = case.source.load(folder)
    tiny = data.head(classes=not problem.regression)
    first = runner.machine(problem, tiny, setting, threads)
    first.fit()
    first.predict(tiny.X)
    del first
    gc.collect()
    forget_peak()
    before = memory("VmRSS")
    machine = runner.machine(problem, data, setting, threads)
    fit = seconds(machine.fit, case.loops)
    peak = memory("VmHWM") - before
    answer = machine.answer()
    objective = problem.objective(data, answer)
    if not math.isfinite(objective):
        raise ValueError(f"the objective of its answer is {objective}")
    tested = data.X if data.X_test is None else data.X_test
    some = tested[: case.predict_rows] if case.predict_rows else tested
    figures: dict[str, Any] = {
        "fit": fit,
        "predict": seconds(lambda: machine.predict(some), max(PREDICTIONS, case.loops)),
        "memory": max(peak, 0),
        "objective": objective,
        **problem.facts(data, answer),
        **machine.facts(),
    }
    if data.y_test is not None:
        figures["score"] = problem.score(data.y_test, machine.predict(data.X_test))
    return figures


def find(job: dict[str, Any]) -> tuple[Case, Runner]:
    """The case and the runner that a job names."""
    suite = importlib.import_module(job["suite"])
    case = next(case for case in suite.CASES if case.name == job["case"])
    runners = [*suite.RUNNERS, suite.REFERENCE]
    return case, next(runner for runner in runners if runner.name == job["runner"])


def main() -> None:
    job = json.load(sys.stdin)
    # Whatever a peer prints goes where errors go: the output is one JSON object.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    try:
        result = measure(*find(job), job)
    except NotAvailable as reason:
        result = {"unavailable": str(reason)}
    except Exception as error:  # whatever a peer does wrong is a line of the table
        result = {"failed": f"{type(error).__name__}: {error}"}
    json.dump(result, output)
    output.close()


if __name__ == "__main__":
    main()
