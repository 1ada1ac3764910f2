"""What a comparison says: a table with the ratios last, JSON, CSV and a picture."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.harness import OURS, Figures, Options
from benchmarks.problems import Ask, Case

COLUMNS = {
    "case": "case",
    "gap": "gap asked",
    "peer": "peer",
    "setting": "setting",
    "status": "status",
    "reached": "gap reached",
    "fit": "fit s",
    "predict": "predict s",
    "memory": "MB above data",
    "nonzeros": "nonzeros",
    "score": "test score",
    "ratio": "times ours",
}
"""Keys of a row, and what the tables call them. The ratio is the peer's time through ours."""

FORMATS = {
    "gap": "{:.0e}",
    "reached": "{:.1e}",
    "fit": "{:.4g}",
    "predict": "{:.3g}",
    "memory": "{:.1f}",
    "nonzeros": "{:.0f}",
    "score": "{:.4f}",
    "ratio": "{:.2f}",
}


def met(row: Figures) -> bool:
    return row["status"] == "met"


def with_ratios(rows: list[Figures]) -> list[Figures]:
    """Each row with its time through ours, where both met the gap."""
    result = []
    for _, group in groupby(rows, key=lambda row: (row["case"], row["gap"])):
        some = list(group)
        ours = next((row["fit"] for row in some if row["peer"] == OURS and met(row)), None)
        for row in some:
            ratio = {"ratio": row["fit"] / ours} if ours is not None and met(row) else {}
            result.append({**row, **ratio})
    return result


def verdicts(rows: Sequence[Figures], cases: Sequence[Case]) -> list[str]:
    """One line for each gap asked: ours beside the best peer, and beside the target."""
    wanted: dict[tuple[str, float], Ask] = {(c.name, a.gap): a for c in cases for a in c.asks}
    lines = []
    for key, group in groupby(rows, key=lambda row: (row["case"], row["gap"])):
        some = list(group)
        peers = [row for row in some if not row["peer"].startswith(OURS) and met(row)]
        best = min(peers, key=lambda row: row["fit"], default=None)
        ours = next((row for row in some if row["peer"] == OURS), None)
        text = f"{key[0]} to {key[1]:.0e}: "
        text += f"best peer {best['peer']} {best['fit']:.4g} s" if best else "no peer met it"
        if ours is None or not met(ours):
            status = "not run" if ours is None else ours["status"]
            lines.append(f"{text}; ours: {status}")
            continue
        text += f"; ours {ours['fit']:.4g} s"
        ratio = best["fit"] / ours["fit"] if best else float("inf")
        if best:
            text += f", {ratio:.2f} times as fast"
        ask = wanted[key]
        if ask.factor is not None:
            text += f" (wanted {ask.factor:g}: {'met' if ratio >= ask.factor else 'MISSED'})"
        if ask.seconds is not None:
            reached = "met" if ours["fit"] <= ask.seconds else "MISSED"
            text += f" (wanted {ask.seconds:g} s: {reached})"
        lines.append(text)
    return lines


def cell(row: Figures, key: str) -> str:
    value: Any = row.get(key)
    if value is None:
        return ""
    if key == "memory":
        value = value / 1e6
    if key == "setting":
        return " ".join(f"{name}={part:g}" for name, part in value.items())
    return FORMATS[key].format(value) if key in FORMATS else str(value)


def table(rows: Sequence[Figures]) -> list[list[str]]:
    """Header and rows as text."""
    return [list(COLUMNS.values()), *([cell(row, key) for key in COLUMNS] for row in rows)]


def text(rows: Sequence[Figures], cases: Sequence[Case], machine: dict[str, str]) -> str:
    """All of it for a terminal."""
    cells = table(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    described = [f"{key}: {value}" for key, value in machine.items()]
    return "\n".join([*lines, "", *verdicts(rows, cases), "", *described])


def picture(rows: Sequence[Figures], path: Path) -> None:
    """A line for each gap asked, a mark for each peer at its time; hollow: the gap was not met."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "maxmargin"  # the same picture from the same rows
    timed = [row for row in rows if "fit" in row]
    labels = list(dict.fromkeys(f"{row['case']}, {row['gap']:.0e}" for row in timed))
    peers = list(dict.fromkeys(row["peer"] for row in timed))
    figure = Figure(figsize=(9, 1.5 + 0.3 * len(labels)), layout="constrained")
    axes = figure.subplots()
    marks = "osv^D<>P*Xhp"
    for i, peer in enumerate(peers):
        mine = [row for row in timed if row["peer"] == peer]
        for filled in (True, False):
            some = [row for row in mine if met(row) == filled]
            axes.plot(
                [row["fit"] for row in some],
                [labels.index(f"{row['case']}, {row['gap']:.0e}") for row in some],
                marks[i % len(marks)],
                color="black" if peer == OURS else f"C{i % 10}",
                fillstyle="full" if filled else "none",
                label=peer if filled == any(map(met, mine)) else None,
                linestyle="none",
            )
    axes.set_xscale("log")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(axis="both", alpha=0.3)
    axes.set_xlabel("seconds to the relative gap (hollow: not reached)")
    if peers:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def write(
    rows: list[Figures], cases: Sequence[Case], machine: dict[str, str], name: str, options: Options
) -> str:
    """All files of a suite below the output folder; returns the text."""
    rows = with_ratios(rows)
    options.output.mkdir(parents=True, exist_ok=True)
    whole = {
        "suite": name,
        "machine": machine,
        "threads": options.threads,
        "verdicts": verdicts(rows, cases),
        "rows": rows,
    }
    (options.output / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
    with (options.output / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table(rows))
    picture(rows, options.output / f"{name}.svg")
    return text(rows, cases, machine)
