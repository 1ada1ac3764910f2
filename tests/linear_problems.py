"""Random problems of linear machines, and generic solvers for them."""

import numpy as np

from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    HuberisedInsensitive,
    Logistic,
    PerceptronLoss,
    Softmax,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from maxmargin.linear.penalties import L1, L2, ElasticNet, Group
from maxmargin.linear.problem import Design, LinearProblem

LOSSES = [
    Hinge(),
    SquaredHinge(),
    HuberisedHinge(),
    HuberisedHinge(0.1),
    Logistic(),
    PerceptronLoss(),
    Squared(),
    EpsilonInsensitive(0.2),
    EpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.2),
    HuberisedInsensitive(0.2, 0.5),
    HuberisedInsensitive(0.0, 1.0),
]
"""Of one score."""

PENALTIES = [L2(), L1(), ElasticNet(0.5), ElasticNet(0.9), Group([0, 0, 1, 1, 2, -1])]
"""For 6 features."""


def targets(loss, n, rng):
    """Signs, numbers or classes, as the loss wants them."""
    if loss.task == "classification":
        return rng.choice([-1.0, 1.0], size=n)
    if loss.task == "multiclass":
        return rng.integers(0, 3, size=n)
    return rng.normal(size=n)


def linear_problem(loss, penalty, free=True, seed=0, n=40, C=1.0, n_jobs=1):
    """Six features, two of which say something about the target; weights of rows differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    signal = X @ [1.5, -1.0, 0, 0, 0, 0.2] + 0.5 + 0.5 * rng.normal(size=n)
    if loss.task == "classification":
        y = np.where(signal > 0, 1.0, -1.0)
    elif loss.task == "multiclass":
        y = np.digitize(signal, [-0.5, 1.0])
    else:
        y = signal
    # A penalised constant is one of the columns, for which a group penalty would need a group.
    bias = 1.0 if free or not isinstance(penalty, Group) else 0.0
    price = C * rng.uniform(0.5, 2.0, size=n)
    k = 3 if isinstance(loss, Softmax) else 1
    return LinearProblem(Design(X, bias, n_jobs), y, price, loss, penalty, free, k)
