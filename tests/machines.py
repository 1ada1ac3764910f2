"""Small random problems of every formulation, each with its primal from the lectures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from textbook import Primal

from maxmargin import problem as formulations
from maxmargin.feasible import project
from maxmargin.problem import Problem


@dataclass(frozen=True)
class Machine:
    """A problem, its Gram matrix and its primal.

    ``phi`` holds the items in a feature space of finite dimension, K = phi phi'; ``unknowns`` turns
    the multipliers rho into the primal's z (the intercept and its like).
    """

    name: str
    options: dict  # what ``make`` needs to make it again
    problem: Problem = field(repr=False)
    K: np.ndarray = field(repr=False)
    phi: np.ndarray = field(repr=False)
    primal: Primal = field(repr=False)
    unknowns: Callable[[np.ndarray], np.ndarray] = field(repr=False)

    def primal_value(self, c, rho) -> float:
        w = (self.phi.T @ self.problem.spread(c)).T.ravel()
        return self.primal.value(w, self.unknowns(rho))


@dataclass(frozen=True)
class Data:
    """What the makers draw from."""

    phi: np.ndarray
    weights: np.ndarray
    C: float
    rng: np.random.Generator

    @property
    def n(self) -> int:
        return len(self.phi)

    @property
    def K(self) -> np.ndarray:
        return self.phi @ self.phi.T

    def signs(self) -> np.ndarray:
        """Two overlapping classes, both of them there."""
        y = np.sign(self.phi[:, 0] + 0.7 * self.rng.normal(size=self.n))
        y[y == 0] = 1.0
        y[:2] = 1.0, -1.0
        return y

    def targets(self) -> np.ndarray:
        return np.sin(2 * self.phi[:, 0]) + 0.3 * self.rng.normal(size=self.n)


def draw(seed: int, n: int = 14, d: int = 3, C: float = 1.0, weighted: bool = False) -> Data:
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, d))
    weights = rng.integers(1, 5, size=n) / 2 if weighted else np.ones(n)
    return Data(phi, weights, C, rng)


def _none(rho):
    return np.zeros(0)


def _intercept(rho):
    return -rho


def _margin(data, y, cost, power, intercept, hard=False) -> Primal:
    n = data.n
    return Primal(
        W=y[:, None] * data.phi,
        r=np.ones(n),
        cost=np.zeros(0) if hard else cost,
        slack=np.full(n, -1) if hard else np.arange(n),
        power=power,
        Z=y[:, None] if intercept else None,
    )


def _tube(data, t, epsilon, cost, power, intercept) -> Primal:
    """|t - f(x)| <= epsilon + xi, as two requirements that share a slack."""
    ones = np.ones((data.n, 1))
    return Primal(
        W=np.vstack([data.phi, -data.phi]),
        r=np.concatenate([t, -t]) - epsilon,
        cost=cost,
        slack=np.tile(np.arange(data.n), 2),
        power=power,
        Z=np.vstack([ones, -ones]) if intercept else None,
    )


def _c_svc(data, intercept=True):
    y = data.signs()
    problem = formulations.c_svc(y, data.C, data.weights, intercept)
    return problem, _margin(data, y, data.C * data.weights, 1, intercept)


def _squared_hinge_svc(data, intercept=True):
    y = data.signs()
    problem = formulations.squared_hinge_svc(y, data.C, data.weights, intercept)
    return problem, _margin(data, y, data.C * data.weights, 2, intercept)


def _hard_margin(data, intercept=True):
    w = data.rng.normal(size=data.phi.shape[1])
    y = np.where(data.phi @ w > np.median(data.phi @ w) * intercept, 1.0, -1.0)
    if not intercept:
        y[np.argmax(data.phi @ w)] = 1.0
    problem = formulations.c_svc(y, np.inf, data.weights, intercept)
    return problem, _margin(data, y, None, 1, intercept, hard=True)


def _nu_svc(data):
    y = data.signs()
    total = data.weights.sum()
    most = 2 * min(data.weights[y > 0].sum(), data.weights[y < 0].sum()) / total
    nu = most * data.rng.uniform(0.3, 1.0)
    primal = Primal(
        W=y[:, None] * data.phi,
        r=np.zeros(data.n),
        cost=data.weights,
        slack=np.arange(data.n),
        Z=np.column_stack([y, -np.ones(data.n)]),
        price=np.array([0.0, -nu * total]),
    )
    return formulations.nu_svc(y, nu, data.weights), primal


def _epsilon_svr(data, intercept=True):
    t, epsilon = data.targets(), 0.2
    problem = formulations.epsilon_svr(t, data.C, epsilon, data.weights, intercept)
    return problem, _tube(data, t, epsilon, data.C * data.weights, 1, intercept)


def _hard_tube(data, intercept=True):
    """Targets that a function has in its tube, most of them near its border."""
    f = data.phi @ data.rng.normal(size=data.phi.shape[1])
    epsilon = 0.2
    t = f + epsilon * data.rng.choice([-1.0, 0.0, 1.0], size=data.n)
    problem = formulations.epsilon_svr(t, np.inf, epsilon, data.weights, intercept)
    hard = Primal(
        W=np.vstack([data.phi, -data.phi]),
        r=np.concatenate([t, -t]) - epsilon,
        cost=np.zeros(0),
        slack=np.full(2 * data.n, -1),
        Z=np.repeat([[1.0], [-1.0]], data.n, axis=0) if intercept else None,
    )
    return problem, hard


def _squared_epsilon_svr(data, intercept=True):
    t, epsilon = data.targets(), 0.2
    problem = formulations.squared_epsilon_svr(t, data.C, epsilon, data.weights, intercept)
    return problem, _tube(data, t, epsilon, data.C * data.weights, 2, intercept)


def _nu_svr(data):
    t, nu = data.targets(), data.rng.uniform(0.1, 1.0)
    cost, ones = data.C * data.weights, np.ones((data.n, 1))
    primal = Primal(
        W=np.vstack([data.phi, -data.phi]),
        r=np.concatenate([t, -t]),
        cost=np.tile(cost, 2),
        slack=np.arange(2 * data.n),
        Z=np.block([[ones, ones], [-ones, ones]]),
        price=np.array([0.0, nu * cost.sum()]),
    )
    return formulations.nu_svr(t, data.C, nu, data.weights), primal


def _one_class(data):
    nu = data.rng.uniform(0.1, 1.0)
    primal = Primal(
        W=data.phi,
        r=np.zeros(data.n),
        cost=data.weights,
        slack=np.arange(data.n),
        Z=-np.ones((data.n, 1)),
        price=np.array([-nu * data.weights.sum()]),
    )
    return formulations.one_class(data.weights, nu), primal


def _svdd(data):
    """R^2 + C sum xi, halved; with r = (R^2 - |a|^2) / 2 it is |a|^2 / 2 + r + C sum xi / 2."""
    C = max(data.C, 1.5 / data.weights.sum())
    diagonal = np.diag(data.K)
    primal = Primal(
        W=data.phi,
        r=diagonal / 2,
        cost=C * data.weights,
        slack=np.arange(data.n),
        Z=np.ones((data.n, 1)),
        price=np.array([1.0]),
    )
    return formulations.svdd(diagonal, C, data.weights), primal


def _ranking(data):
    utility = data.phi[:, 0] + 0.5 * data.rng.normal(size=data.n)
    pairs = data.rng.permutation(np.argwhere(utility[:, None] > utility))[: 2 * data.n]
    weights = data.weights[pairs].prod(axis=1)
    primal = Primal(
        W=data.phi[pairs[:, 0]] - data.phi[pairs[:, 1]],
        r=np.ones(len(pairs)),
        cost=data.C * weights,
        slack=np.arange(len(pairs)),
    )
    return formulations.ranking(pairs, data.n, data.C, weights), primal


def _crammer_singer(data, n_classes=3):
    labels = np.argmax(data.phi[:, :n_classes] + 0.5 * data.rng.normal(size=(data.n, 3)), axis=1)
    rows = [
        np.kron(np.eye(n_classes)[y] - np.eye(n_classes)[m], phi)
        for y, phi in zip(labels, data.phi, strict=True)
        for m in range(n_classes)
    ]
    primal = Primal(
        W=np.array(rows),
        r=np.array([float(m != y) for y in labels for m in range(n_classes)]),
        cost=data.C * data.weights,
        slack=np.repeat(np.arange(data.n), n_classes),
    )
    return formulations.crammer_singer(labels, n_classes, data.C, data.weights), primal


def _least_squares(data, intercept=True):
    """C/2 sum w (y - f)^2: a tube of width zero with a squared loss."""
    t = data.targets()
    problem = formulations.least_squares(t, data.C, data.weights, intercept)
    return problem, _tube(data, t, 0.0, data.C * data.weights / 2, 2, intercept)


def _centre(rho):
    """nu-SVC: (intercept, margin); nu-SVR: (intercept, tube)."""
    return np.array([-(rho[0] + rho[1]) / 2, (rho[0] - rho[1]) / 2])


MAKERS: dict[str, tuple[Callable, Callable]] = {
    "c_svc": (_c_svc, _intercept),
    "c_svc_no_intercept": (lambda data: _c_svc(data, False), _none),
    "squared_hinge_svc": (_squared_hinge_svc, _intercept),
    "squared_hinge_svc_no_intercept": (lambda data: _squared_hinge_svc(data, False), _none),
    "hard_margin": (_hard_margin, _intercept),
    "hard_margin_no_intercept": (lambda data: _hard_margin(data, False), _none),
    "hard_tube": (_hard_tube, _intercept),
    "hard_tube_no_intercept": (lambda data: _hard_tube(data, False), _none),
    "nu_svc": (_nu_svc, _centre),
    "epsilon_svr": (_epsilon_svr, _intercept),
    "epsilon_svr_no_intercept": (lambda data: _epsilon_svr(data, False), _none),
    "squared_epsilon_svr": (_squared_epsilon_svr, _intercept),
    "squared_epsilon_svr_no_intercept": (lambda data: _squared_epsilon_svr(data, False), _none),
    "nu_svr": (_nu_svr, lambda rho: _centre(rho) * [1, -1]),
    "one_class": (_one_class, lambda rho: rho),
    "svdd": (_svdd, _intercept),
    "ranking": (_ranking, _none),
    "crammer_singer": (_crammer_singer, _none),
    "least_squares": (_least_squares, _intercept),
    "least_squares_no_intercept": (lambda data: _least_squares(data, False), _none),
}

HARD = ("hard_margin", "hard_margin_no_intercept", "hard_tube", "hard_tube_no_intercept")
SOFT = tuple(name for name in MAKERS if name not in HARD)
LINEAR_SYSTEMS = ("least_squares", "least_squares_no_intercept")


def make(name: str, seed: int = 0, **options) -> Machine:
    """The machine of this name on random data; ``options`` are those of ``draw``."""
    data = draw(seed, **options)
    maker, unknowns = MAKERS[name]
    problem, primal = maker(data)
    given = {"seed": seed, **options}
    return Machine(name, given, problem, data.K, data.phi, primal, unknowns)


def feasible_point(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """A random feasible point, often on the edge of the box: a mixture of two corners or so."""
    width = np.minimum(problem.upper, 3.0) - np.maximum(problem.lower, -3.0)
    point = np.maximum(problem.lower, -3.0) + width * rng.uniform(-0.3, 1.3, size=len(problem))
    return project(problem, point * rng.choice([0.0, 0.1, 1.0]))
