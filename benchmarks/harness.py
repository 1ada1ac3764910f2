"""Runs every peer of a suite in fresh processes, and finds its time to a given accuracy.

Peers know a tolerance of their own only, which means something else in each of them. So each tries
its settings from loose to tight until the recomputed objective is within the tightest gap asked;
for every gap asked, the fastest setting that met it is timed again, in rounds in which all peers
take turns, and the median counts. Who meets a gap with no setting is marked "never", with the best
it reached.

The optimum is the best objective that anybody returned, a reference solver included, whose answer
is kept on disk.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.problems import Ask, Case
from benchmarks.runners.base import NotAvailable, Runner

ROOT = Path(__file__).parent.parent
OURS = "maxmargin"
PATIENCE = 3
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    suite: str
    data: Path | None = None
    peers: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    repeats: int | None = None
    time_limit: float = 300.0
    threads: int = 2
    short: bool = False
    output: Path = ROOT / "benchmarks" / "results"


@dataclass
class Peer:
    """One runner on one case: what its settings gave."""

    runner: Runner
    tried: list[tuple[dict[str, Any], Figures]] = field(default_factory=list)
    trouble: str = ""

    def meeting(self, gap: float, optimum: float) -> int | None:
        """The fastest setting that met a gap."""
        good = [i for i, (_, f) in enumerate(self.tried) if relative(f, optimum) <= gap]
        return min(good, key=lambda i: self.tried[i][1]["fit"], default=None)


def relative(figures: Figures, optimum: float) -> float:
    """How far an objective lies above the best one known."""
    return max(figures["objective"] - optimum, 0.0) / max(abs(optimum), 1e-300)


def say_now(line: str) -> None:
    print(line, flush=True)


# ---- What is compared ------------------------------------------------------------------------


def named(name: str, wanted: Iterable[str]) -> bool:
    """``sklearn`` means all of ``sklearn:dual``, ``sklearn:sgd``, ..."""
    return any(name == one or name.startswith((f"{one}:", f"{one}-")) for one in wanted)


def chosen_runners(runners: Sequence[Runner], peers: Sequence[str]) -> list[Runner]:
    """Ours first, then the peers asked for (all of them without ``--peers``)."""
    unknown = [peer for peer in peers if not any(named(r.name, [peer]) for r in runners)]
    if unknown:
        known = ", ".join(runner.name for runner in runners)
        raise SystemExit(f"--peers: {', '.join(unknown)} is unknown; there are {known}")
    ours = [runner for runner in runners if runner.name == OURS]
    others = [runner for runner in runners if runner.name != OURS]
    default = [r for r in others if not r.name.startswith(f"{OURS}:")]
    return ours + ([r for r in others if named(r.name, peers)] if peers else default)


def chosen_cases(cases: Sequence[Case], options: Options, say: Callable[[str], None]) -> list[Case]:
    """Those asked for by the name of a case or of its data, and that can be loaded."""
    unknown = [
        one
        for one in options.sets
        if not any(named(c.name, [one]) or c.source.name == one for c in cases)
    ]
    if unknown:
        known = ", ".join(case.name for case in cases)
        raise SystemExit(f"--sets: {', '.join(unknown)} is unknown; there are {known}")
    chosen = []
    for case in cases:
        asked = named(case.name, options.sets) or case.source.name in options.sets
        if (options.sets and not asked) or (options.short and not case.short):
            continue
        if case.source.needs_folder and options.data is None:
            say(f"{case.name}: skipped, needs --data DIR")
            continue
        chosen.append(case)
    return chosen


# ---- Runs ------------------------------------------------------------------------------------


def run(options: Options, case: Case, runner: Runner, setting: dict[str, Any]) -> Figures:
    """One fresh process. A failure is a result too."""
    job = {
        "suite": options.suite,
        "case": case.name,
        "runner": runner.name,
        "setting": setting,
        "threads": options.threads,
        "data": str(options.data) if options.data else None,
    }
    environment = {**os.environ, **dict.fromkeys(THREADS, str(options.threads))}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.child"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=options.time_limit,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"stopped": f"stopped after {options.time_limit:g} s"}
    if done.returncode or not done.stdout:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failed": f"the process ended with {done.returncode}: {last}"}
    return json.loads(done.stdout)


def reference_path(options: Options, case: Case) -> Path:
    key = hashlib.sha256(repr((case.source.name, case.problem)).encode()).hexdigest()[:8]
    return options.output / "reference" / f"{case.name}-{key}.json"


def remember(path: Path, objective: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"objective": objective}) + "\n")


def reference(options: Options, case: Case, runner: Runner | None) -> float | None:
    """The reference solver's objective, from disk where it was computed before."""
    if runner is None or not runner.solves(case.problem):
        return None
    path = reference_path(options, case)
    if path.exists():
        return json.loads(path.read_text())["objective"]
    without_limit = Options(**{**vars(options), "time_limit": 3600.0})
    figures = run(without_limit, case, runner, dict(runner.settings[0]))
    if "objective" not in figures:
        raise SystemExit(f"{case.name}: the reference solver {figures}")
    remember(path, figures["objective"])
    return figures["objective"]


def sweep(
    options: Options, case: Case, peer: Peer, optimum: float | None, say: Callable[[str], None]
) -> None:
    """Every setting from loose to tight, until the tightest gap is met, a run takes too long, or
    PATIENCE settings in a row brought no better objective.
    """
    tightest = min(ask.gap for ask in case.asks)
    best, without_progress = float("inf"), 0
    for setting in map(dict, peer.runner.settings):
        figures = run(options, case, peer.runner, setting)
        if "objective" not in figures:
            ((kind, peer.trouble),) = figures.items()
            say(f"  {peer.runner.name} {setting}: {peer.trouble}")
            if kind == "failed" and peer.tried:
                continue  # another setting may do
            return
        peer.trouble = ""
        peer.tried.append((setting, figures))
        gap = relative(figures, optimum) if optimum is not None else float("nan")
        say(f"  {peer.runner.name} {setting}: {figures['fit']:.4g} s, gap {gap:.1e}")
        without_progress = 0 if figures["objective"] < best else without_progress + 1
        best = min(best, figures["objective"])
        if gap <= tightest or without_progress == PATIENCE:
            return


def compare(
    options: Options,
    case: Case,
    runners: Sequence[Runner],
    reference_runner: Runner | None,
    say: Callable[[str], None],
) -> list[Figures]:
    """All rows of one case: a peer and a gap each."""
    say(f"{case.name}: {case.problem}")
    optimum = reference(options, case, reference_runner)
    peers = [Peer(runner) for runner in runners if runner.solves(case.problem)]
    for peer in peers:
        try:
            peer.runner.version()
        except NotAvailable as reason:
            peer.trouble = str(reason)
            say(f"  {peer.runner.name}: {reason}")
            continue
        sweep(options, case, peer, optimum, say)
    reached = [figures["objective"] for peer in peers for _, figures in peer.tried]
    best = min(reached, default=float("nan"))
    if optimum is None:
        optimum = best
    elif best < optimum:  # by rounding, or the reference ended early
        tightest = min(ask.gap for ask in case.asks)
        if (optimum - best) / abs(best) > tightest / 10:
            say(f"  the reference was {(optimum - best) / abs(best):.1e} too high: run it again")
        optimum = best
        remember(reference_path(options, case), optimum)
    wanted = [
        (peer, ask, peer.meeting(ask.gap, optimum))
        for ask in sorted(case.asks, key=lambda ask: -ask.gap)
        for peer in peers
    ]
    timed = rounds(options, case, [(peer, i) for peer, _, i in wanted if i is not None], say)
    return [row(case, ask, peer, optimum, i, timed) for peer, ask, i in wanted]


Timed = dict[tuple[str, int], list[Figures]]


def rounds(
    options: Options, case: Case, chosen: list[tuple[Peer, int]], say: Callable[[str], None]
) -> Timed:
    """All chosen settings by turns: as often as asked, or three rounds, five for those under a
    second.
    """
    unique = list({(peer.runner.name, i): (peer, i) for peer, i in chosen}.values())
    timed: Timed = {(peer.runner.name, i): [] for peer, i in unique}
    for turn in range(options.repeats or 5):
        for peer, i in unique:
            setting, figures = peer.tried[i]
            if options.repeats or turn < 3 or figures["fit"] < 1:
                timed[peer.runner.name, i].append(run(options, case, peer.runner, setting))
    say(f"  timed: {sum(map(len, timed.values()))} runs")
    return timed


def row(
    case: Case, ask: Ask, peer: Peer, optimum: float, chosen: int | None, timed: Timed
) -> Figures:
    """What the tables say of one peer at one gap."""
    base = {
        "case": case.name,
        "data": case.source.name,
        "gap": ask.gap,
        "peer": peer.runner.name,
        "optimum": optimum,
    }
    if not peer.tried:
        return {**base, "status": peer.trouble}
    if chosen is None:
        setting, figures = min(peer.tried, key=lambda pair: pair[1]["objective"])
        status = "never" + (f" ({peer.trouble})" if peer.trouble else "")
        runs = [figures]
    else:
        setting = peer.tried[chosen][0]
        runs = [run for run in timed[peer.runner.name, chosen] if "objective" in run]
        lost = len(timed[peer.runner.name, chosen]) - len(runs)
        missed = any(relative(figures, optimum) > ask.gap for figures in runs)
        status = f"{lost} runs failed" if lost else ("missed in a repeat" if missed else "met")
        runs = runs or [peer.tried[chosen][1]]
    medians = {
        key: statistics.median(run[key] for run in runs)
        for key in ("fit", "predict", "memory", "nonzeros", "score", "iterations", "claimed_gap")
        if all(key in run for run in runs)
    }
    return {
        **base,
        "status": status,
        "setting": setting,
        "fits": [run["fit"] for run in runs],
        "reached": max(relative(figures, optimum) for figures in runs),
        **medians,
    }


def compare_all(options: Options, say: Callable[[str], None] = say_now) -> list[Figures]:
    """Every case of a suite."""
    suite = importlib.import_module(options.suite)
    runners = chosen_runners(suite.RUNNERS, options.peers)
    rows: list[Figures] = []
    for case in chosen_cases(suite.CASES, options, say):
        rows += compare(options, case, runners, suite.REFERENCE, say)
    return rows
