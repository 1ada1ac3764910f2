"""Small quadratic problems over mixtures: what the planes of a bundle method are weighed by.

    minimise  1/2 a'K a - b'a     over  a >= 0, sum a = 1

by an active set method: the minimum over the mixtures of a support, found by one system of
equations, either stays a mixture, and then the index with the smallest gradient enters, or the way
to it ends where an index leaves (Wolfe 1976, whose nearest point is the case b = 0).  The objective
falls with every step, so that the end is reached after finitely many.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError, solve

from maxmargin.problem import Floats

ROUNDING = 1e-15
"""Of the terms of a gradient."""


def mix(K: Floats, b: Floats, start: Floats) -> Floats:
    """The best mixture, from a feasible one.

    Parameters
    ----------
    K : array of shape (m, m)
        Positive semi-definite.
    b, start : array of shape (m,)

    Returns
    -------
    array of shape (m,)
    """
    a = np.array(start)
    inside = a > 0
    for _ in range(20 * len(b) + 100):
        S = np.flatnonzero(inside)
        x = _affine(K[np.ix_(S, S)], b[S])
        if x is None:
            break
        if np.all(x > 0):
            a[S] = x
            products = K[:, S] * x
            gradient = products.sum(axis=1) - b
            enters = int(np.argmin(gradient))
            slack = ROUNDING * (np.abs(products[enters]).sum() + abs(b[enters]))
            if inside[enters] or gradient[enters] >= a @ gradient - slack:
                break
            inside[enters] = True
            continue
        falls = np.flatnonzero(x <= 0)  # one that has just entered may leave at once, with a = 0
        ratios = a[S[falls]] / (a[S[falls]] - x[falls] + 1e-300)
        first = int(np.argmin(ratios))
        a[S] = np.maximum(a[S] + ratios[first] * (x - a[S]), 0.0)
        a[S[falls[first]]] = 0.0
        inside[S[falls[first]]] = False
    return a / a.sum()


def _affine(K: Floats, b: Floats) -> Floats | None:
    """The minimum over all a with sum 1, of any signs.

    Planes may be of any size, so that the equations are those of sqrt(K_jj) a_j.  A hair of
    curvature makes them solvable where planes depend on each other: the minimum is then far away,
    and the way to it ends where a plane leaves.
    """
    m = len(b)
    scale = 1 / np.sqrt(np.maximum(np.diag(K), 1e-300 + 1e-30 * float(np.diag(K).max())))
    A = np.zeros((m + 1, m + 1))
    A[:m, :m] = scale[:, None] * K * scale + 1e-14 * np.eye(m)
    unit = float(scale.max())
    A[m, :m] = A[:m, m] = scale / unit
    try:
        x = solve(A, np.append(scale * b, 1 / unit))[:m]
    except LinAlgError:
        return None
    x *= scale
    return x / x.sum() if np.isfinite(x).all() and x.sum() > 0 else None
