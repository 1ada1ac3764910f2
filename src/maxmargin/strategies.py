"""Working-set strategies: which variables a step of the solver moves.

A strategy holds its parameters and nothing else.  What it does is written twice: readably in
``maxmargin.reference``, and natively in the engine.  All of them reach the same optimum.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from maxmargin.problem import Problem


class Strategy(BaseEstimator):
    """A rule that names the next variables to move.

    Attributes
    ----------
    name : str
        What ``working_set=`` calls it.
    computes_anew : bool
        Whether steps are products with many kernel values, which are better read from a matrix,
        where that fits the memory, than computed each time.
    """

    name: str
    computes_anew = False

    def refusal(self, problem: Problem) -> str | None:
        """Why this strategy cannot solve ``problem``; None when it can."""
        return None

    def step_cost(self, problem: Problem, length: int, product: int = 0) -> int:
        """How many numbers a step looks at, about, when it has ``length`` variables to move.

        The default limit on steps is a limit on these.  What is computed rather than read counts
        by its time, of which a number takes some 4 ns.  ``product`` is what x . w costs where the
        kernel is linear (``product_cost`` of the items).
        """
        return length


class Sweep(Strategy):
    """What visits the variables in turn and moves those that violate the conditions.

    It asks for single scores.  With the linear kernel each is a product with w, kept up to date.

    Attributes
    ----------
    visits : int or None
        The scores that a step asks for, about, until its variables are found, as counted on hard
        problems; None where it may be those of all variables.
    """

    visits: int | None = 50

    def step_cost(self, problem: Problem, length: int, product: int = 0) -> int:
        score = product / SERIAL
        if problem.minus is not None:
            # Ranking has far more variables than items, and each moves alone: what a step takes is
            # the update of the scores.  Most pairs that are visited are in order.
            return problem.n_items // 2 + int(40 * score)
        alone = len(problem.target) == 0
        visits = Sweep.visits if alone else self.visits
        scores = length if visits is None else min(visits, length)
        # In many small groups a partner is rarely met with.
        return (length if len(problem.target) <= 2 else 3 * length) + int(scores * score)


SERIAL = 16
"""Numbers that are read and summed one after the other in the time of one that is looked at."""


class Random(Sweep):
    """Simplified SMO: each violator in turn, with a random partner; slow, there for study."""

    name = "random"
    visits = 100


class Platt(Sweep):
    """Platt's two loops (1999).

    The outer one alternates between all variables and the free ones, the inner one seeks the
    partner that promises the largest step.
    """

    name = "platt"
    visits = None


class MaxViolatingPair(Strategy):
    """The pair that violates the conditions most (Keerthi et al. 2001, modification 2; WSS 1)."""

    name = "max-violating-pair"


class SecondOrder(Strategy):
    """A Newton step on two variables (Fan, Chen and Lin 2005, WSS 3).

    They are the most violating variable and the partner with which the objective falls most.
    """

    name = "second-order"


class Block(Strategy):
    """Decomposition (Osuna et al. 1997, Joachims 1999): solve for ``size`` variables at a time.

    Parameters
    ----------
    size : int, default=512
        How many variables a block holds.
    growing : bool, default=False
        Chunking: every block keeps the support vectors found so far and adds ``size`` of the worst
        violators.
    inner : str or Strategy, default="second-order"
        What solves a block; another ``Block`` gives nested decomposition.  For Crammer-Singer
        blocks hold whole examples, and "group" solves one of them at a time.
    """

    name = "block"
    computes_anew = True

    def __init__(
        self, size: int = 512, *, growing: bool = False, inner: str | Strategy = "second-order"
    ):
        self.size = size
        self.growing = growing
        self.inner = inner

    def refusal(self, problem: Problem) -> str | None:
        if self.size < 2:
            return f"a block needs a size of at least 2, got {self.size}"
        inner = named(self.inner)
        if not isinstance(inner, (MaxViolatingPair, SecondOrder, Group, Block)):
            return (
                f"a block is solved by 'max-violating-pair', 'second-order', 'group' or another "
                f"Block, not by {inner.name!r}"
            )
        return inner.refusal(problem)

    def step_cost(self, problem: Problem, length: int, product: int = 0) -> int:
        # A block of q variables takes q / 2 steps or more, which share its choice and what is set
        # up for it.
        size = min(self.size, length)
        choice = (15_000 + 5 * length + 40 * len(problem.target)) // max(size // 2, 1)
        return choice + named(self.inner).step_cost(problem, length if self.growing else size)


class Gradient(Strategy):
    """Projected gradient ascent in the dual, with an exact line search along the feasible arc's
    chord; for study.

    Parameters
    ----------
    size : int or None, default=None
        Move only this many of the most violating coordinates at a time; None moves all.
    """

    name = "gradient"
    computes_anew = True

    def __init__(self, size: int | None = None):
        self.size = size

    def refusal(self, problem: Problem) -> str | None:
        if self.size is not None and self.size < 2:
            return f"a gradient step needs a size of at least 2, got {self.size}"
        return None

    def step_cost(self, problem: Problem, length: int, product: int = 0) -> int:
        # A product with the kernel matrix, a certificate, and a projection for each group: in
        # NumPy, where every call costs something.
        moved = length if self.size is None else min(self.size, length)
        used = min(moved * (1 if problem.minus is None else 2), problem.n_items)
        product = problem.n_items * used * problem.n_channels // 4
        choice = 0 if self.size is None else 1000 * moved
        return 100_000 + product + choice + 60 * length + 12_500 * len(problem.target)


class Coordinate(Sweep):
    """One coordinate at a time, in random order (Hsieh et al. 2008): only without an intercept."""

    name = "coordinate"

    def refusal(self, problem: Problem) -> str | None:
        if len(problem.target):
            return (
                "the intercept (or another sum) ties the coefficients together, so that no single "
                "one can move; use fit_intercept=False where the machine has it, or another "
                "working set such as 'second-order'"
            )
        return None


class Group(Strategy):
    """Whole groups at a time, each solved exactly: the machine of Crammer and Singer (2001).

    The group that violates the conditions most is next; within a group Q is a multiple of the
    identity, so that its optimum is a projection.
    """

    name = "group"

    def refusal(self, problem: Problem) -> str | None:
        if problem.n_channels == 1:
            return "whole groups are solved exactly for Crammer-Singer only"
        return None


STRATEGIES: dict[str, type[Strategy]] = {
    cls.name: cls
    for cls in (Random, Platt, MaxViolatingPair, SecondOrder, Block, Gradient, Coordinate, Group)
}


def named(strategy: Any) -> Strategy:
    """The strategy object that a name or an object stands for."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]()
    raise ValueError(
        f"working_set must be 'auto', one of {sorted(STRATEGIES)} or an object of "
        f"maxmargin.strategies; got {strategy!r}."
    )


def choose(strategy: Any, problem: Problem) -> Strategy:
    """The strategy to use; ``"auto"`` takes the one that suits the problem."""
    if isinstance(strategy, str) and strategy == "auto":
        if problem.n_channels > 1:
            return Group()
        return Coordinate() if problem.minus is not None else SecondOrder()
    chosen = named(strategy)
    if (reason := chosen.refusal(problem)) is not None:
        raise ValueError(f"working_set={chosen.name!r} cannot solve this problem: {reason}.")
    return chosen
