"""What a perceptron forgets: the rules that keep its support vectors within a budget.

A policy sees the mistakes one by one. It may add the example to the memory, remove another one, or
change the coefficients. Its memory is small, and so is its Gram matrix, which it may use freely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator

from maxmargin._compat import Interval
from maxmargin.problem import Floats


@dataclass
class Memory:
    """The support vectors of one machine, from the oldest to the latest.

    Attributes
    ----------
    budget : int or None
        How many there may be.
    unit : float
        The step, eta0: coefficients are measured by it.
    gram : array of shape (n, n)
        The kernel between them.
    c : array of shape (n,)
        Their coefficients.
    names : list
        What the learner calls them.
    notes : dict
        What the policy wants to remember.
    """

    budget: int | None
    unit: float
    gram: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    c: Floats = field(default_factory=lambda: np.zeros(0))
    names: list[Any] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        return self.budget is not None and len(self.c) >= self.budget

    def add(self, name: Any, step: float, k: Floats, kxx: float) -> None:
        """Append a row; k are its kernel values with those that are here, kxx that with itself."""
        n = len(self.c)
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n] = self.gram
        gram[n, :n] = gram[:n, n] = k
        gram[n, n] = kxx
        self.gram, self.c = gram, np.append(self.c, step)
        self.names.append(name)

    def remove(self, i: int) -> None:
        keep = np.arange(len(self.c)) != i
        self.gram, self.c = self.gram[np.ix_(keep, keep)], self.c[keep]
        del self.names[i]


class Policy(BaseEstimator):
    """What to do about a row that calls for a change."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    margin = 0.0
    """Rows with y f(x) <= margin are shown to the policy: mistakes, or more than that."""

    def update(
        self, memory: Memory, name: Any, step: float, k: Floats, kxx: float, score: float, rng: Any
    ) -> None:
        """Learn the row ``name``.

        ``step`` is y times the length of the step, k and kxx as in ``Memory.add``, ``score`` is
        f(x), and ``rng`` a RandomState.
        """
        raise NotImplementedError


class Random(Policy):
    """Forget one at random (Cavallanti, Cesa-Bianchi and Gentile 2007, figure 1)."""

    def update(
        self, memory: Memory, name: Any, step: float, k: Floats, kxx: float, score: float, rng: Any
    ) -> None:
        if memory.full:
            gone = rng.randint(len(memory.c))
            memory.remove(gone)
            k = np.delete(k, gone)
        memory.add(name, step, k, kxx)


class Forgetron(Policy):
    """Forget the oldest, after shrinking all (Dekel, Shalev-Shwartz and Singer 2008, section 5).

    The self-tuned form: with M the mistakes so far, sigma = |c| of the oldest, and mu = y f(x) at
    the oldest after the perceptron's step, all coefficients are multiplied by the largest phi <= 1
    for which the damage of the removals stays within

        Q + Psi <= 15/32 M,   Psi = (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu

    The paper has k(x, x) <= 1; mu is divided by the k(x, x) of the oldest here, which is the same
    as to scale the kernel.
    """

    def update(
        self, memory: Memory, name: Any, step: float, k: Floats, kxx: float, score: float, rng: Any
    ) -> None:
        notes = memory.notes
        M = notes["M"] = notes.get("M", 0) + 1
        Q = notes.get("Q", 0.0)
        was_full = memory.full
        memory.add(name, step, k, kxx)
        if not was_full:
            return
        sigma, norm = abs(memory.c[0]) / memory.unit, memory.gram[0, 0]
        mu = np.sign(memory.c[0]) * (memory.gram[0] @ memory.c) / memory.unit
        mu = mu / norm if norm > 0 else 0.0
        a, b, room = sigma**2 - 2 * sigma * mu, 2 * sigma, 15 / 32 * M - Q
        phi = largest_root(a, b, room)
        memory.c *= phi
        notes["Q"] = Q + a * phi**2 + b * phi
        memory.remove(0)


def largest_root(a: float, b: float, room: float) -> float:
    """The largest phi in [0, 1] with a phi^2 + b phi <= room, where b and room are positive."""
    if a + b <= room:
        return 1.0
    # The left side is above room at 1 and below at 0, so that there is a root between; this form
    # of the formula holds for both signs of a, and for 0.
    return 2 * room / (b + np.sqrt(b * b + 4 * a * room))


class Projectron(Policy):
    """Project what is nearly there already (Orabona, Keshet and Caputo 2009, algorithm 2).

    A mistake whose k(x, .) is within ``eta`` of the span of the support vectors is replaced by its
    projection on that span, and adds none. When the budget is full all mistakes are projected.

    Parameters
    ----------
    eta : float, default=0.3
        The distance, of k(x, .) from its projection. 0: only what is in the span, and the function
        is that of the kernel perceptron. The paper's experiments are met with the root of 0.1.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "eta": [Interval(Real, 0, None, closed="left")]
    }

    def __init__(self, eta: float = 0.3) -> None:
        self.eta = eta

    def update(
        self, memory: Memory, name: Any, step: float, k: Floats, kxx: float, score: float, rng: Any
    ) -> None:
        v, distance = self.project(memory, k, kxx)
        if distance <= self.eta or memory.full:
            memory.c = memory.c + step * self.coefficients(memory, v)
        else:
            L = memory.notes["L"]
            n = len(L)
            larger = np.zeros((n + 1, n + 1))
            larger[:n, :n], larger[n, :n], larger[n, n] = L, v, distance
            memory.notes["L"] = larger
            memory.add(name, step, k, kxx)

    @staticmethod
    def project(memory: Memory, k: Floats, kxx: float) -> tuple[Floats, float]:
        """The distance of k(x, .) from the span, and v with |v| the length of its projection.

        L L' is the Gram matrix and L v = k, so that the projection's coefficients are L'^-1 v.
        """
        L = memory.notes.setdefault("L", np.zeros((0, 0)))
        v = solve_triangular(L, k, lower=True, check_finite=False) if len(k) else np.zeros(0)
        square = kxx - v @ v
        # Less than rounding is no distance: it would make L singular.
        rounding = 1e-12 * max(len(k), 1) * kxx
        return v, float(np.sqrt(square)) if square > rounding else 0.0

    @staticmethod
    def coefficients(memory: Memory, v: Floats) -> Floats:
        """Those of the projection."""
        if len(v) == 0:
            return v
        return solve_triangular(memory.notes["L"], v, lower=True, trans=1, check_finite=False)


class ProjectronPlus(Projectron):
    """Projectron++: margins below 1 move it too, as far as it costs no support vector.

    On 0 < y f(x) < 1, with loss = 1 - y f(x), v as above and delta the distance from the span, f
    moves by y tau times the projection when loss > delta / eta, where tau is the least of
    loss / |v|^2, 2 (loss - delta / eta) / |v|^2 and 1 (Orabona et al. 2009, algorithm 3).

    Parameters
    ----------
    eta : float, default=0.3
        As for `Projectron`.
    """

    margin = 1.0

    def update(
        self, memory: Memory, name: Any, step: float, k: Floats, kxx: float, score: float, rng: Any
    ) -> None:
        margin = np.sign(step) * score
        if margin <= 0:
            return super().update(memory, name, step, k, kxx, score, rng)
        v, distance = self.project(memory, k, kxx)
        length, loss = v @ v, 1 - margin
        if distance > 0 and self.eta == 0:
            return None
        cost = distance / self.eta if distance > 0 else 0.0
        if length > 0 and loss > cost:
            tau = min(loss / length, 2 * (loss - cost) / length, 1.0)
            memory.c = memory.c + tau * step * self.coefficients(memory, v)
        return None


POLICIES: dict[str, Callable[[], Policy]] = {
    "forgetron": Forgetron,
    "projectron": Projectron,
    "projectron++": ProjectronPlus,
    "random": Random,
}
"""The policies by name."""
