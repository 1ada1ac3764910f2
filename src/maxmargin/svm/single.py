"""Machines of one quadratic problem: all but the classifiers of many classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.svm.base import Attributes, KernelMachine
from maxmargin.svm.inputs import Samples
from maxmargin.svm.training import Task, report


class SingleMachine(KernelMachine):
    """A machine that solves one problem, whose variables stand for the samples."""

    def _fit_one(
        self,
        samples: Samples,
        problem: Problem,
        model: Callable[[Solution], Attributes],
        scale: float = 1.0,
    ) -> Any:
        """Solve the problem; ``model(solution)`` gives the intercept and what is special.

        The objective that the machine is known by is ``scale`` times the problem's.
        """
        task = Task(problem, samples, scale=scale)

        def attributes(solutions: Sequence[Solution | None]) -> Attributes:
            (solution,) = solutions
            assert solution is not None  # a callback sees the only problem once it has begun
            coefficients = problem.spread(solution.coefficients).T
            return {
                **self._expansion(samples, coefficients),
                **report([task], [solution]),
                "n_iter_": max(solution.iterations, 1),
                **model(solution),
            }

        return self._train(samples, [task], attributes)
