"""Losses of linear machines: what a score z costs when the target is y.

A loss knows its value, its derivative (a subgradient at kinks), its curvature, and its conjugate

    loss*(y, v) = sup over z of  v z - loss(y, z)

so that primal objective, dual objective and duality gap of every machine come from one formula (see
``problem``).  Two families cover all losses of one score:

    MarginLoss      loss(y, z) = phi(y z),    y = -1 or +1
    ResidualLoss    loss(t, z) = psi(z - t)

A loss with kinks offers a smooth stand-in, ``smoothed(width)``: the largest function below it whose
curvature is at most 1 / width, so that  loss - width / 2 <= smoothed <= loss  (Nesterov 2005).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import entr, expit, logsumexp, softmax
from sklearn.base import BaseEstimator

from maxmargin.problem import Floats


class Loss(BaseEstimator):
    """What a score costs.

    Attributes
    ----------
    name : str
        What ``loss=`` calls it.
    task : {"classification", "regression", "multiclass"}
        What kind of targets it has: signs, numbers, or classes 0 .. k-1 with a score for each.
    smoothness : float
        The largest curvature; infinite where the loss has kinks.
    lipschitz : float
        The largest slope; infinite where there is none.
    """

    name: ClassVar[str]
    task: ClassVar[str]
    lipschitz: ClassVar[float] = np.inf

    @property
    def smoothness(self) -> float:
        raise NotImplementedError

    def value(self, y: Any, z: Floats) -> Floats:
        """loss(y, z), for each row."""
        raise NotImplementedError

    def derivative(self, y: Any, z: Floats) -> Floats:
        """The derivative by z; at a kink one of the subgradients."""
        raise NotImplementedError

    def curvature(self, y: Any, z: Floats) -> Floats:
        """The second derivative by z, where there is one; at its jumps one of the two values."""
        raise NotImplementedError

    def conjugate(self, y: Any, v: Floats) -> Floats:
        """Sup over z of v z - loss(y, z); infinite outside the domain."""
        raise NotImplementedError

    def domain(self, y: Any) -> tuple[Floats, Floats]:
        """The interval of v, for each row, in which the conjugate is finite."""
        raise NotImplementedError

    def smoothed(self, width: float) -> Loss:
        """A smooth stand-in, at most width * lipschitz^2 / 2 below; itself where it is smooth."""
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))


# ------------------------------------------------------------------ of the margin m = y z


class MarginLoss(Loss):
    """loss(y, z) = phi(y z): falls with the margin, and is used for signs y = -1 and +1.

    ``low`` and ``high`` bound the slopes of phi, which is where its conjugate is finite.
    """

    task = "classification"
    low: ClassVar[float] = -np.inf
    high: ClassVar[float] = 0.0

    def phi(self, m: Floats) -> Floats:
        """The loss as a function of the margin."""
        raise NotImplementedError

    def slope(self, m: Floats) -> Floats:
        """Phi'."""
        raise NotImplementedError

    def bend(self, m: Floats) -> Floats:
        """Phi''."""
        raise NotImplementedError

    def phi_conjugate(self, v: Floats) -> Floats:
        """phi* on [low, high]."""
        raise NotImplementedError

    def value(self, y: Any, z: Floats) -> Floats:
        return self.phi(y * z)

    def derivative(self, y: Any, z: Floats) -> Floats:
        return y * self.slope(y * z)

    def curvature(self, y: Any, z: Floats) -> Floats:
        return self.bend(y * z)

    def conjugate(self, y: Any, v: Floats) -> Floats:
        v = y * np.asarray(v, dtype=np.float64)
        inside = (v >= self.low) & (v <= self.high)
        return np.where(inside, self.phi_conjugate(np.clip(v, self.low, self.high)), np.inf)

    def domain(self, y: Any) -> tuple[Floats, Floats]:
        positive = np.asarray(y) > 0
        return (
            np.where(positive, self.low, -self.high),
            np.where(positive, self.high, -self.low),
        )


class Hinge(MarginLoss):
    """max(0, 1 - m): the support vector machine's (Cortes and Vapnik 1995)."""

    name = "hinge"
    low = -1.0
    lipschitz = 1.0
    smoothness = np.inf  # type: ignore[assignment]

    def phi(self, m: Floats) -> Floats:
        return np.maximum(0.0, 1 - m)

    def slope(self, m: Floats) -> Floats:
        return np.where(m < 1, -1.0, 0.0)

    def bend(self, m: Floats) -> Floats:
        return np.zeros_like(m)

    def phi_conjugate(self, v: Floats) -> Floats:
        return v

    def smoothed(self, width: float) -> Loss:
        return HuberisedHinge(width)


class SquaredHinge(MarginLoss):
    """max(0, 1 - m)^2."""

    name = "squared_hinge"
    smoothness = 2.0  # type: ignore[assignment]

    def phi(self, m: Floats) -> Floats:
        return np.maximum(0.0, 1 - m) ** 2

    def slope(self, m: Floats) -> Floats:
        return -2 * np.maximum(0.0, 1 - m)

    def bend(self, m: Floats) -> Floats:
        return np.where(m < 1, 2.0, 0.0)

    def phi_conjugate(self, v: Floats) -> Floats:
        return v + v**2 / 4


class HuberisedHinge(MarginLoss):
    """The hinge with its kink rounded over [1 - width, 1]: below that 1 - m - width / 2.

    Parameters
    ----------
    width : float, default=1.0
    """

    name = "huberised_hinge"
    low = -1.0
    lipschitz = 1.0

    def __init__(self, width: float = 1.0):
        self.width = width

    @property
    def smoothness(self) -> float:
        return 1 / self.width

    def phi(self, m: Floats) -> Floats:
        a = np.clip((1 - m) / self.width, 0.0, 1.0)
        return a * (1 - m) - self.width * a**2 / 2

    def slope(self, m: Floats) -> Floats:
        return -np.clip((1 - m) / self.width, 0.0, 1.0)

    def bend(self, m: Floats) -> Floats:
        return np.where((m < 1) & (m > 1 - self.width), 1 / self.width, 0.0)

    def phi_conjugate(self, v: Floats) -> Floats:
        return v + self.width * v**2 / 2


class Logistic(MarginLoss):
    """log(1 + exp(-m)): minus the logarithm of the probability of the right class."""

    name = "logistic"
    low = -1.0
    lipschitz = 1.0
    smoothness = 0.25  # type: ignore[assignment]

    def phi(self, m: Floats) -> Floats:
        return np.logaddexp(0.0, -m)

    def slope(self, m: Floats) -> Floats:
        return -expit(-m)

    def bend(self, m: Floats) -> Floats:
        return expit(-m) * expit(m)

    def phi_conjugate(self, v: Floats) -> Floats:
        return -entr(-v) - entr(1 + v)


class PerceptronLoss(MarginLoss):
    """max(0, -m): what the perceptron's steps descend."""

    name = "perceptron"
    low = -1.0
    lipschitz = 1.0
    smoothness = np.inf  # type: ignore[assignment]

    def phi(self, m: Floats) -> Floats:
        return np.maximum(0.0, -m)

    def slope(self, m: Floats) -> Floats:
        return np.where(m <= 0, -1.0, 0.0)

    def bend(self, m: Floats) -> Floats:
        return np.zeros_like(m)

    def phi_conjugate(self, v: Floats) -> Floats:
        return np.zeros_like(v)


# ------------------------------------------------------------------ of the residual r = z - t


class ResidualLoss(Loss):
    """loss(t, z) = psi(z - t), with psi even; ``high`` is its largest slope."""

    task = "regression"
    high: ClassVar[float] = np.inf

    def psi(self, r: Floats) -> Floats:
        """The loss as a function of the residual."""
        raise NotImplementedError

    def slope(self, r: Floats) -> Floats:
        """Psi'."""
        raise NotImplementedError

    def bend(self, r: Floats) -> Floats:
        """Psi''."""
        raise NotImplementedError

    def psi_conjugate(self, v: Floats) -> Floats:
        """psi* on [-high, high]."""
        raise NotImplementedError

    def value(self, y: Any, z: Floats) -> Floats:
        return self.psi(z - y)

    def derivative(self, y: Any, z: Floats) -> Floats:
        return self.slope(z - y)

    def curvature(self, y: Any, z: Floats) -> Floats:
        return self.bend(z - y)

    def conjugate(self, y: Any, v: Floats) -> Floats:
        v = np.asarray(v, dtype=np.float64)
        inside = np.abs(v) <= self.high
        clipped = np.clip(v, -self.high, self.high)
        return np.where(inside, clipped * y + self.psi_conjugate(clipped), np.inf)

    def domain(self, y: Any) -> tuple[Floats, Floats]:
        return np.full(np.shape(y), -self.high), np.full(np.shape(y), self.high)


class Squared(ResidualLoss):
    """r^2 / 2: least squares."""

    name = "squared"
    smoothness = 1.0  # type: ignore[assignment]

    def psi(self, r: Floats) -> Floats:
        return r**2 / 2

    def slope(self, r: Floats) -> Floats:
        return r

    def bend(self, r: Floats) -> Floats:
        return np.ones_like(r)

    def psi_conjugate(self, v: Floats) -> Floats:
        return v**2 / 2


class Insensitive(ResidualLoss):
    """What losses with a tube of half-width epsilon share: nothing inside it costs anything."""

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = epsilon

    def excess(self, r: Floats) -> Floats:
        """How far outside the tube a residual is."""
        return np.maximum(0.0, np.abs(r) - self.epsilon)


class EpsilonInsensitive(Insensitive):
    """max(0, |r| - epsilon): support vector regression's (Vapnik 1995).

    Parameters
    ----------
    epsilon : float, default=0.1
    """

    name = "epsilon_insensitive"
    high = 1.0
    lipschitz = 1.0
    smoothness = np.inf  # type: ignore[assignment]

    def psi(self, r: Floats) -> Floats:
        return self.excess(r)

    def slope(self, r: Floats) -> Floats:
        return np.where(self.excess(r) > 0, np.sign(r), 0.0)

    def bend(self, r: Floats) -> Floats:
        return np.zeros_like(r)

    def psi_conjugate(self, v: Floats) -> Floats:
        return self.epsilon * np.abs(v)

    def smoothed(self, width: float) -> Loss:
        return HuberisedInsensitive(self.epsilon, width)


class SquaredEpsilonInsensitive(Insensitive):
    """max(0, |r| - epsilon)^2.

    Parameters
    ----------
    epsilon : float, default=0.1
    """

    name = "squared_epsilon_insensitive"
    smoothness = 2.0  # type: ignore[assignment]

    def psi(self, r: Floats) -> Floats:
        return self.excess(r) ** 2

    def slope(self, r: Floats) -> Floats:
        return 2 * np.sign(r) * self.excess(r)

    def bend(self, r: Floats) -> Floats:
        return np.where(self.excess(r) > 0, 2.0, 0.0)

    def psi_conjugate(self, v: Floats) -> Floats:
        return self.epsilon * np.abs(v) + v**2 / 4


class HuberisedInsensitive(Insensitive):
    """The epsilon-insensitive loss with its kinks rounded over a width; epsilon 0 gives Huber's.

    Parameters
    ----------
    epsilon : float, default=0.1
    width : float, default=1.0
    """

    name = "huberised_epsilon_insensitive"
    high = 1.0
    lipschitz = 1.0

    def __init__(self, epsilon: float = 0.1, width: float = 1.0):
        super().__init__(epsilon)
        self.width = width

    @property
    def smoothness(self) -> float:
        return 1 / self.width

    def psi(self, r: Floats) -> Floats:
        excess = self.excess(r)
        a = np.minimum(excess / self.width, 1.0)
        return a * excess - self.width * a**2 / 2

    def slope(self, r: Floats) -> Floats:
        return np.sign(r) * np.minimum(self.excess(r) / self.width, 1.0)

    def bend(self, r: Floats) -> Floats:
        excess = self.excess(r)
        return np.where((excess > 0) & (excess < self.width), 1 / self.width, 0.0)

    def psi_conjugate(self, v: Floats) -> Floats:
        return self.epsilon * np.abs(v) + self.width * v**2 / 2


# ------------------------------------------------------------------ of many scores


class Softmax(Loss):
    """log sum_m exp(z_m) - z_y: multinomial logistic regression.

    Scores, derivatives and conjugate variables have a column for each class; the curvature is the
    diagonal of diag(p) - p p'.
    """

    name = "softmax"
    task = "multiclass"
    lipschitz = np.sqrt(2.0)
    smoothness = 0.5  # type: ignore[assignment]

    def value(self, y: Any, z: Floats) -> Floats:
        return logsumexp(z, axis=1) - z[np.arange(len(z)), y]

    def probabilities(self, z: Floats) -> Floats:
        """exp(z_m) / sum of exp(z)."""
        return softmax(z, axis=1)

    def derivative(self, y: Any, z: Floats) -> Floats:
        p = self.probabilities(z)
        p[np.arange(len(z)), y] -= 1
        return p

    def curvature(self, y: Any, z: Floats) -> Floats:
        p = self.probabilities(z)
        return p * (1 - p)

    def conjugate(self, y: Any, v: Floats) -> Floats:
        """Minus the entropy of v + e_y, which must be a distribution."""
        p = np.array(v, dtype=np.float64)
        p[np.arange(len(p)), y] += 1
        rounding = 1e-12
        inside = (p >= -rounding).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= rounding)
        return np.where(inside, -entr(np.maximum(p, 0.0)).sum(axis=1), np.inf)

    def domain(self, y: Any) -> tuple[Floats, Floats]:
        raise NotImplementedError("the domain is a simplex for each row, not an interval")


class MulticlassHinge(Loss):
    """max_m ([m != y] + z_m - z_y): by how much the right class fails to lead by 1 (Crammer and
    Singer 2001).

    Scores, derivatives and conjugate variables have a column for each class.
    """

    name = "multiclass_hinge"
    task = "multiclass"
    lipschitz = np.sqrt(2.0)
    smoothness = np.inf  # type: ignore[assignment]

    def margins(self, y: Any, z: Floats) -> Floats:
        """[m != y] + z_m - z_y."""
        rows = np.arange(len(z))
        margins = z - z[rows, y][:, None] + 1
        margins[rows, y] = 0.0
        return margins

    def value(self, y: Any, z: Floats) -> Floats:
        return self.margins(y, z).max(axis=1)

    def derivative(self, y: Any, z: Floats) -> Floats:
        rows = np.arange(len(z))
        v = np.zeros_like(z)
        v[rows, self.margins(y, z).argmax(axis=1)] = 1.0
        v[rows, y] -= 1
        return v

    def curvature(self, y: Any, z: Floats) -> Floats:
        return np.zeros_like(z)

    def conjugate(self, y: Any, v: Floats) -> Floats:
        """v_y, where v + e_y must be a distribution."""
        v = np.asarray(v, dtype=np.float64)
        right = v[np.arange(len(v)), y]
        p = v.copy()
        p[np.arange(len(v)), y] += 1
        rounding = 1e-12
        inside = (p >= -rounding).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= rounding)
        return np.where(inside, right, np.inf)

    def domain(self, y: Any) -> tuple[Floats, Floats]:
        raise NotImplementedError("the domain is a simplex for each row, not an interval")


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        Hinge,
        SquaredHinge,
        HuberisedHinge,
        Logistic,
        PerceptronLoss,
        Squared,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        HuberisedInsensitive,
        Softmax,
        MulticlassHinge,
    )
}
"""What ``loss=`` calls them."""


def named(loss: Any, **parameters: Any) -> Loss:
    """The loss that a name or an object stands for; a name takes the parameters that it needs."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        cls = LOSSES[loss]
        names = cls._get_param_names()
        return cls(**{name: value for name, value in parameters.items() if name in names})
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise ValueError(f"loss must be an object: write {loss.__name__}(), not {loss.__name__}.")
    raise ValueError(f"loss must be one of {sorted(LOSSES)} or a Loss object; got {loss!r}.")
