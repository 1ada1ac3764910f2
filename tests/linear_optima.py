"""Optima of linear problems by generic solvers: an interior point method for those with kinks,
quasi-Newton steps for smooth ones."""

import numpy as np
from scipy.optimize import minimize
from textbook import Primal

from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    MulticlassHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from maxmargin.linear.penalties import L2


def dense_columns(problem):
    """The rows with their constant feature."""
    X = problem.design.X
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    bias = problem.design.bias
    return np.column_stack([X, np.full(len(X), bias)]) if bias else X


def textbook_primal(problem):
    """The problem with slack variables, for losses of straight or squared pieces; else None."""
    X, y, loss, price = dense_columns(problem), problem.y, problem.loss, problem.price
    each = np.arange(len(X))
    kwargs = {"cost": price, "power": 1, "slack": each}
    if isinstance(loss, (Hinge, SquaredHinge)):
        A, r = y[:, None] * X, np.ones(len(X))
        kwargs["power"] = 1 + isinstance(loss, SquaredHinge)
    elif isinstance(loss, (EpsilonInsensitive, SquaredEpsilonInsensitive, Squared)):
        epsilon = getattr(loss, "epsilon", 0.0)
        A, r = np.vstack([X, -X]), np.concatenate([y - epsilon, -y - epsilon])
        kwargs["slack"] = np.tile(each, 2)
        kwargs["power"] = 1 if isinstance(loss, EpsilonInsensitive) else 2
        kwargs["cost"] = price / 2 if isinstance(loss, Squared) else price
    elif isinstance(loss, MulticlassHinge):
        k = problem.n_scores
        signs = np.eye(k)[y][:, None, :] - np.eye(k)  # (n, k, k): of f_y - f_m
        A = np.einsum("nd,nmk->nmdk", X, signs).reshape(len(X) * k, -1)
        r = 1 - np.eye(k)[y].ravel()
        kwargs["slack"] = np.repeat(each, k)
    else:
        return None
    if problem.free:
        return Primal(A[:, :-1], r, Z=A[:, -1:], **kwargs)
    return Primal(A, r, **kwargs)


def optimum(problem):
    """The least primal objective."""
    primal = textbook_primal(problem) if isinstance(problem.penalty, L2) else None
    if primal is not None:
        return primal.optimum()
    X = dense_columns(problem)
    d = X.shape[1]

    def objective(both):  # w = positive part - negative part, so that |w| is smooth too
        w = both[:d] - both[d:]
        z = X @ w
        value = problem.primal(w, z)
        gradient = -X.T @ problem.slopes(z)
        weights = both[:d] + both[d:] if strength < 1 else np.zeros(d)
        counted = np.ones(d)
        counted[-1] = 0.0 if problem.free else 1.0
        l1 = (1 - strength) * counted
        value += float(l1 @ (weights - np.abs(w)))
        gradient = gradient + strength * counted * w
        return value, np.concatenate([gradient + l1, -gradient + l1])

    strength = problem.penalty.strength
    bounds = [(0, None)] * (2 * d) if strength < 1 else None
    options = {"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-9}
    answer = minimize(
        objective, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return float(answer.fun)
