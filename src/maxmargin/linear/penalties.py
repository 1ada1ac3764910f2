"""Penalties of linear machines: what the weights cost.

A penalty knows its value, its conjugate, which the dual objective needs, and its proximal operator,

    conjugate(v) = sup over w of  v.w - penalty(w),
    prox(w, step) = argmin over u of  penalty(u) + |u - w|^2 / (2 step),

with which first-order and coordinate solvers step.  The intercept is never among the w given here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from maxmargin.problem import Floats


class Penalty(BaseEstimator):
    """What weights cost.

    Attributes
    ----------
    name : str
        What ``penalty=`` calls it.
    strength : float
        The modulus of strong convexity: 1 for L2, 0 for L1.
    """

    name: ClassVar[str]

    @property
    def strength(self) -> float:
        return 0.0

    def value(self, w: Floats) -> float:
        raise NotImplementedError

    def conjugate(self, v: Floats) -> float:
        """Sup over w of v.w - value(w), for v within reach (see ``reach``)."""
        raise NotImplementedError

    def prox(self, w: Floats, step: float) -> Floats:
        """Argmin over u of value(u) + |u - w|^2 / (2 step)."""
        raise NotImplementedError

    def reach(self, v: Floats) -> float:
        """The largest factor t <= 1 for which the conjugate of t v is finite."""
        return 1.0

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = self.get_params(), other.get_params()  # type: ignore[attr-defined]
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]


class L2(Penalty):
    """|w|^2 / 2: the inverse square of the margin."""

    name = "l2"

    @property
    def strength(self) -> float:
        return 1.0

    def value(self, w: Floats) -> float:
        return float(np.square(w).sum()) / 2

    def conjugate(self, v: Floats) -> float:
        return float(np.square(v).sum()) / 2

    def prox(self, w: Floats, step: float) -> Floats:
        return w / (1 + step)


class L1(Penalty):
    """|w|_1: most weights are zero (Tibshirani 1996)."""

    name = "l1"

    def value(self, w: Floats) -> float:
        return float(np.abs(w).sum())

    def conjugate(self, v: Floats) -> float:
        return 0.0

    def prox(self, w: Floats, step: float) -> Floats:
        return soft_threshold(w, step)

    def reach(self, v: Floats) -> float:
        return min(1.0, 1 / max(float(np.abs(v).max(initial=0.0)), 1e-300))


class ElasticNet(Penalty):
    """l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2 (Zou and Hastie 2005).

    Parameters
    ----------
    l1_ratio : float, default=0.5
        Between 0 and 1, which are L2 and L1.
    """

    name = "elasticnet"

    def __init__(self, l1_ratio: float = 0.5):
        self.l1_ratio = l1_ratio

    @property
    def strength(self) -> float:
        return 1 - self.l1_ratio

    def value(self, w: Floats) -> float:
        return (
            self.l1_ratio * float(np.abs(w).sum()) + self.strength * float(np.square(w).sum()) / 2
        )

    def conjugate(self, v: Floats) -> float:
        if self.strength == 0:
            return 0.0
        excess = soft_threshold(v, self.l1_ratio)
        return float(np.square(excess).sum()) / (2 * self.strength)

    def prox(self, w: Floats, step: float) -> Floats:
        return soft_threshold(w, step * self.l1_ratio) / (1 + step * self.strength)

    def reach(self, v: Floats) -> float:
        return L1().reach(v) if self.strength == 0 else 1.0


class Group(Penalty):
    """sum over groups of sqrt(size) |w_group|: features enter or stay out together
    (Yuan and Lin 2006).

    Parameters
    ----------
    groups : array-like of shape (n_features,)
        The group of each feature, any labels.  A negative number: the feature is a group of its
        own.
    """

    name = "group"

    def __init__(self, groups: Sequence[int] | Any):
        self.groups = groups

    def members(self, d: int) -> tuple[Any, Floats]:
        """The group of each of d features, numbered from 0, and the price of each group."""
        groups = np.asarray(self.groups)
        if groups.shape != (d,):
            raise ValueError(
                f"groups must name the group of each of the {d} features; got an array of shape "
                f"{groups.shape}."
            )
        if np.issubdtype(groups.dtype, np.number):
            alone = groups < 0
            groups = np.where(alone, groups.max(initial=0) + 1 + np.arange(d), groups)
        _, index = np.unique(groups, return_inverse=True)
        return index, np.sqrt(np.bincount(index))

    def _norms(self, w: Floats) -> tuple[Any, Floats, Floats]:
        index, price = self.members(len(w))
        return index, price, np.sqrt(np.bincount(index, weights=w**2))

    def value(self, w: Floats) -> float:
        _, price, norms = self._norms(w)
        return float(price @ norms)

    def conjugate(self, v: Floats) -> float:
        return 0.0

    def prox(self, w: Floats, step: float) -> Floats:
        index, price, norms = self._norms(w)
        factor = np.maximum(0.0, 1 - step * price / np.maximum(norms, 1e-300))
        return factor[index] * w

    def reach(self, v: Floats) -> float:
        _, price, norms = self._norms(v)
        return min(1.0, 1 / max(float((norms / price).max(initial=0.0)), 1e-300))


def soft_threshold(w: Floats, by: float | Floats) -> Floats:
    """sign(w) max(0, |w| - by)."""
    return np.sign(w) * np.maximum(0.0, np.abs(w) - by)


PENALTIES: dict[str, type[Penalty]] = {cls.name: cls for cls in (L2, L1, ElasticNet)}
"""What ``penalty=`` calls those that need no more than a name."""


def named(penalty: Any, **parameters: Any) -> Penalty:
    """The penalty that a name or an object stands for; a name takes what it needs of the rest."""
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str) and penalty in PENALTIES:
        cls = PENALTIES[penalty]
        names = cls._get_param_names()
        return cls(**{name: value for name, value in parameters.items() if name in names})
    if penalty == "group" or penalty is Group:
        raise ValueError("penalty='group' needs to know the groups: write penalty=Group(groups).")
    if isinstance(penalty, type) and issubclass(penalty, Penalty):
        name = penalty.__name__
        raise ValueError(f"penalty must be an object: write {name}(), not {name}.")
    raise ValueError(
        f"penalty must be one of {sorted(PENALTIES)} or a Penalty object; got {penalty!r}."
    )
