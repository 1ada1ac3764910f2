"""The command line: ``python -m benchmarks SUITE --data DIR --peers a,b --sets x,y``."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks import harness, machine, report

SUITES = sorted(
    path.stem for path in (Path(__file__).parent / "suites").glob("*.py") if path.stem != "__init__"
)


def names(given: str) -> tuple[str, ...]:
    return tuple(filter(None, given.split(",")))


def options(suite: str, given: list[str], about: str | None) -> harness.Options:
    """The options of a comparison."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {suite}",
        description=about,
        epilog="Peers that are not installed are skipped; pip install '.[bench]' brings them.",
    )
    parser.add_argument("--data", type=Path, help="folder of the .npz archives")
    parser.add_argument("--peers", type=names, default=(), help="sklearn,liblinear-official,...")
    parser.add_argument("--sets", type=names, default=(), help="names of cases or of their data")
    parser.add_argument("--repeats", type=int, help="rounds: 3, or 5 for fits under a second")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for one process")
    parser.add_argument("--short", action="store_true", help="the cases of the short version")
    parser.add_argument("--output", type=Path, default=harness.Options.output)
    arguments = parser.parse_args(given)
    return harness.Options(suite=f"benchmarks.suites.{suite}", **vars(arguments))


def main(given: list[str]) -> None:
    if not given or given[0] not in SUITES:
        raise SystemExit(f"usage: python -m benchmarks SUITE ...; SUITE is {', '.join(SUITES)}")
    name, rest = given[0], given[1:]
    suite = importlib.import_module(f"benchmarks.suites.{name}")
    if hasattr(suite, "main"):
        suite.main(rest)
        return
    chosen = options(name, rest, suite.__doc__)
    rows = harness.compare_all(chosen)
    described = machine.describe(harness.chosen_runners(suite.RUNNERS, chosen.peers))
    print(report.write(rows, suite.CASES, described, name, chosen))


if __name__ == "__main__":
    main(sys.argv[1:])
