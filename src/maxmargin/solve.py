"""The engine (being written): until then the reference answers."""

from typing import Any

from maxmargin import reference
from maxmargin.problem import Problem
from maxmargin.solution import Solution


def solve(problem: Problem, items: Any, strategy: Any = "auto", **options: Any) -> Solution:
    known = {"tol", "gap_tol", "max_iter", "start", "random_state"}
    return reference.solve(
        problem, items, strategy, **{k: v for k, v in options.items() if k in known}
    )
