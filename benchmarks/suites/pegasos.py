"""Objective against passes over the data: Pegasos, dual coordinate descent, the cutting plane.

    python -m benchmarks pegasos --data DIR --sets a9a,w8a

The hinge loss with a penalised intercept, C = 1, which is Pegasos' lambda = 1 / n. One pass is one
look at every row: an epoch of Pegasos or of coordinate descent, one cut of the cutting plane. What
is drawn is the distance from the optimum, relative to it.
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.data import Data, archive, shipped
from benchmarks.harness import Options, chosen_cases, reference, say_now
from benchmarks.machine import describe
from benchmarks.problems import Case, Linear, Weights
from benchmarks.runners import reference as solver
from benchmarks.runners.base import NotAvailable, with_constant
from benchmarks.runners.ours import ours

HINGE = Linear("hinge")
CASES = [
    Case(archive("a9a", positive=lambda y: y > 0), HINGE, short=True),
    Case(archive("w8a", positive=lambda y: y > 0), HINGE),
    Case(archive("ijcnn1", positive=lambda y: y > 0), HINGE),
    Case(archive("news20_tfidf", positive=lambda y: y < 10), HINGE),
    Case(archive("mnist", scaling=255.0, positive=lambda y: y % 2 == 0), HINGE),
    Case(
        archive("covtype", scaling="standard", positive=lambda y: y == 2, third=False),
        HINGE,
    ),
    Case(shipped("breast_cancer"), HINGE, short=True),
]
RUNNERS: list[Any] = []
REFERENCE = solver.REFERENCE

PASSES = (1, 2, 3, 5, 10, 20, 50, 100)

Point = tuple[int, Weights]
Curve = Callable[[Linear, Data, tuple[int, ...]], Iterator[Point]]


def weights(coef: Any, intercept: Any) -> Weights:
    return Weights(np.atleast_2d(coef), np.ravel(intercept))


def steps(average: bool) -> Curve:
    """Pegasos pass by pass, each in an order of its own."""

    def curve(problem: Linear, data: Data, passes: tuple[int, ...]) -> Iterator[Point]:
        pegasos = ours("Pegasos")(alpha=1 / (problem.C * len(data.y)), average=average)
        rng = np.random.default_rng(0)
        for done in range(1, max(passes) + 1):
            order = rng.permutation(len(data.y))
            pegasos.partial_fit(data.X[order], data.y[order], classes=[0, 1])
            if done in passes:
                yield done, weights(pegasos.coef_, pegasos.intercept_)

    return curve


def descent(problem: Linear, data: Data, passes: tuple[int, ...]) -> Iterator[Point]:
    """scikit-learn's stochastic gradient descent, the constant feature appended."""
    X = with_constant(data.X)
    sgd = SGDClassifier(
        alpha=1 / (problem.C * len(data.y)), fit_intercept=False, random_state=0, shuffle=False
    )
    rng = np.random.default_rng(0)
    for done in range(1, max(passes) + 1):
        order = rng.permutation(len(data.y))
        sgd.partial_fit(X[order], data.y[order], classes=[0, 1])
        if done in passes:
            yield done, weights(sgd.coef_[:, :-1], sgd.coef_[:, -1])


def limited(make: Callable[[Linear, int], Any]) -> Curve:
    """A solver that is stopped after so many passes, begun anew for each number."""

    def curve(problem: Linear, data: Data, passes: tuple[int, ...]) -> Iterator[Point]:
        for done in passes:
            machine = make(problem, done).fit(data.X, data.y)
            yield done, weights(machine.coef_, machine.intercept_)

    return curve


def linear(name: str) -> Curve:
    def make(problem: Linear, passes: int) -> Any:
        return ours("LinearClassifier")(
            loss=problem.loss,
            C=problem.C,
            penalize_intercept=True,
            solver=name,
            max_iter=passes,
            gap_tol=1e-12,
        )

    return limited(make)


def liblinear(problem: Linear, passes: int) -> Any:
    return LinearSVC(loss=problem.loss, C=problem.C, tol=1e-12, max_iter=passes, random_state=0)


CURVES: dict[str, Curve] = {
    "Pegasos, last": steps(average=False),
    "Pegasos, averaged": steps(average=True),
    "dual coordinate descent": linear("dual-coordinate"),
    "cutting plane": linear("cutting-plane"),
    "LIBLINEAR": limited(liblinear),
    "SGD (scikit-learn)": descent,
}


def trace(case: Case, data: Data, optimum: float, passes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Every curve of one set."""
    rows = []
    for name, curve in CURVES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a solver was stopped is the purpose
                for done, answer in curve(case.problem, data, passes):
                    objective = case.problem.objective(data, answer)
                    above = (objective - optimum) / optimum
                    row = {"case": case.name, "method": name, "passes": done, "above": above}
                    rows.append({**row, "objective": objective})
        except NotAvailable as reason:
            say_now(f"  {name}: skipped, {reason}")
            continue
        last = [row for row in rows if row["method"] == name][-1]
        say_now(f"  {name}: {last['above']:.1e} above the optimum after {last['passes']} passes")
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "maxmargin"
    names = list(dict.fromkeys(row["case"] for row in rows))
    across = min(3, len(names))
    down = -(-len(names) // across)
    figure = Figure(figsize=(4 * across + 1, 3.2 * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        for i, method in enumerate(CURVES):
            some = [row for row in rows if row["case"] == name and row["method"] == method]
            x, y = [row["passes"] for row in some], [max(row["above"], 1e-12) for row in some]
            axes.loglog(x, y, "o-", markersize=3, color=f"C{i}", label=method if some else None)
        axes.set(title=name, xlabel="passes over the data", ylabel="above the optimum, relative")
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    grid.flat[0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks pegasos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="folder of the .npz archives")
    parser.add_argument("--sets", default="", help="names of cases or of their data")
    parser.add_argument("--most", type=int, default=PASSES[-1], help="passes at most")
    parser.add_argument("--short", action="store_true", help="the cases of the short version")
    parser.add_argument("--output", type=Path, default=Options.output)
    arguments = parser.parse_args(given)
    options = Options(
        suite=__name__,
        data=arguments.data,
        sets=tuple(filter(None, arguments.sets.split(","))),
        short=arguments.short,
        output=arguments.output,
    )
    passes = tuple(number for number in PASSES if number <= arguments.most)
    rows: list[dict[str, Any]] = []
    for case in chosen_cases(CASES, options, say_now):
        say_now(case.name)
        optimum = reference(options, case, REFERENCE)
        assert optimum is not None  # the reference solves every hinge with a penalised intercept
        rows += trace(case, case.source.load(options.data), optimum, passes)
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "pegasos.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["case", "method", "passes", "above the optimum, relative"])
        table.writerows(
            [row["case"], row["method"], row["passes"], f"{row['above']:.2e}"] for row in rows
        )
    whole = {"suite": "pegasos", "machine": describe(), "rows": rows}
    (options.output / "pegasos.json").write_text(json.dumps(whole, indent=1) + "\n")
    if rows:
        draw(rows, options.output / "pegasos.svg")
