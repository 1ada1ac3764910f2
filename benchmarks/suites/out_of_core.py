"""Millions of rows that are never in memory at once: accuracy, seconds, and the peak of memory.

    python -m benchmarks out_of_core --rows 20000000 --learner pegasos

The rows are drawn as they are needed, always the same ones for one seed: a row has ``--nonzeros``
features of ``--features`` (or all, with ``--dense``), and its class is the side of a hyperplane,
wrong in ``--noise`` of the rows, so that no learner can score better than 1 - noise. The peak is
that of the whole process, interpreter and libraries included.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from benchmarks.child import memory
from benchmarks.harness import Options
from benchmarks.machine import describe
from benchmarks.runners.base import NotAvailable
from benchmarks.runners.ours import ours

Chunk = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Stream:
    """Rows in chunks; chunk number i is always the same."""

    rows: int
    chunk: int = 100_000
    features: int = 1000
    nonzeros: int = 20
    noise: float = 0.05
    dense: bool = False
    seed: int = 0

    def plane(self) -> np.ndarray:
        return np.random.default_rng(self.seed).standard_normal(self.features)

    def draw(self, number: int, rows: int) -> Chunk:
        """The rows of one chunk and their classes 0 and 1."""
        rng = np.random.default_rng([self.seed, number])
        if self.dense:
            X: Any = rng.standard_normal((rows, self.features), dtype=np.float32)
        else:
            # One feature in each of so many equal parts: sorted, and none twice.
            width = self.features // self.nonzeros
            indices = rng.integers(0, width, (rows, self.nonzeros), dtype=np.int32)
            indices += width * np.arange(self.nonzeros, dtype=np.int32)
            values = rng.standard_normal(rows * self.nonzeros, dtype=np.float32)
            starts = np.arange(0, rows * self.nonzeros + 1, self.nonzeros, dtype=np.int32)
            X = sp.csr_array((values, indices.ravel(), starts), shape=(rows, self.features))
        right = X @ self.plane().astype(np.float32) > 0
        wrong = rng.random(rows) < self.noise
        return X, (right ^ wrong).astype(np.int8)

    def chunks(self) -> Iterator[Chunk]:
        """One pass."""
        for number, first in enumerate(range(0, self.rows, self.chunk)):
            yield self.draw(number, min(self.chunk, self.rows - first))

    def unseen(self) -> Chunk:
        """Rows to test on, after the last chunk of any pass."""
        return self.draw(-(-self.rows // self.chunk), self.chunk)


def incrementally(machine: Any, stream: Stream, passes: int) -> Any:
    for _ in range(passes):
        for X, y in stream.chunks():
            machine.partial_fit(X, y, classes=[0, 1])
    return machine


def pegasos(stream: Stream, passes: int) -> Any:
    machine = ours("Pegasos")(alpha=1 / stream.rows, average=True, batch_size=10)
    return incrementally(machine, stream, passes)


def sgd(stream: Stream, passes: int) -> Any:
    return incrementally(SGDClassifier(alpha=1e-6, random_state=0), stream, passes)


def linear(stream: Stream, passes: int) -> Any:
    """Block minimisation on rows that are kept on disk, to a gap."""
    machine = ours("LinearClassifier")(loss="squared_hinge", gap_tol=1e-2)
    try:
        open_chunks = import_module("maxmargin.io").open_chunks
    except (ImportError, AttributeError) as error:
        raise NotAvailable("this maxmargin has no io.open_chunks") from error
    X, y = open_chunks(stream.chunks, cache=True)
    return machine.fit(X, y)


LEARNERS: dict[str, Callable[[Stream, int], Any]] = {
    "pegasos": pegasos,
    "linear": linear,
    "sgd": sgd,
}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks out_of_core",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--chunk", type=int, default=Stream.chunk)
    parser.add_argument("--features", type=int, default=Stream.features)
    parser.add_argument("--nonzeros", type=int, default=Stream.nonzeros)
    parser.add_argument("--noise", type=float, default=Stream.noise)
    parser.add_argument("--dense", action="store_true")
    parser.add_argument("--seed", type=int, default=Stream.seed)
    parser.add_argument("--learner", choices=LEARNERS, default="pegasos")
    parser.add_argument("--passes", type=int, default=1, help="of the learners that take chunks")
    parser.add_argument("--limit", type=float, default=500, help="MB of memory allowed")
    parser.add_argument("--output", type=Path, default=Options.output)
    arguments = vars(parser.parse_args(given))
    learner, passes = arguments.pop("learner"), arguments.pop("passes")
    limit, output = arguments.pop("limit"), arguments.pop("output")
    stream = Stream(**arguments)
    start = time.perf_counter()
    try:
        machine = LEARNERS[learner](stream, passes)
    except NotAvailable as reason:
        raise SystemExit(f"{learner}: {reason}") from reason
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(passes):
        for _chunk in stream.chunks():
            pass
    drawing = time.perf_counter() - start
    X, y = stream.unseen()
    accuracy = float(np.mean(machine.predict(X) == y))
    peak = memory("VmHWM") / 1e6
    print(
        f"{learner}: {stream.rows:,} rows in {seconds:.1f} s (drawing them alone {drawing:.1f} s), "
        f"accuracy {accuracy:.4f} (best possible {1 - stream.noise:.4f}), peak {peak:.0f} MB "
        f"of {limit:.0f}"
    )
    figures = {"seconds": seconds, "drawing": drawing, "accuracy": accuracy, "peak_mb": peak}
    whole = {"learner": learner, "passes": passes, "stream": vars(stream), **figures}
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"out_of_core_{learner}.json"
    path.write_text(json.dumps({"machine": describe(), **whole}, indent=1) + "\n")
    if peak > limit:
        raise SystemExit(f"peak {peak:.0f} MB, allowed {limit:.0f}")
