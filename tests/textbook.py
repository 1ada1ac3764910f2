"""The machines as the lectures write them, and an independent solver for quadratic programs.

Nothing here knows the library's problem: a primal is written down from its loss function, in a
feature space that is there in coordinates, and solved by Clarabel's interior point method.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import clarabel
import numpy as np
from scipy import sparse


def quadratic_program(P, q, A_eq, b_eq, A_le, b_le):
    """minimise 1/2 x'Px + q'x subject to A_eq x = b_eq and A_le x <= b_le: (value, x)."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.tol_gap_abs = 1e-14
    settings.max_iter = 500
    solver = clarabel.DefaultSolver(
        sparse.triu(sparse.csc_matrix(P)).tocsc(),
        np.asarray(q, dtype=np.float64),
        sparse.csc_matrix(np.vstack([A_eq, A_le])),
        np.concatenate([b_eq, b_le]),
        [clarabel.ZeroConeT(len(b_eq)), clarabel.NonnegativeConeT(len(b_le))],
        settings,
    )
    answer = solver.solve()
    # 'Insufficient progress' and its like come with a point that is as good as rounding allows.
    assert "Infeasible" not in str(answer.status), answer.status
    assert max(answer.r_prim, answer.r_dual) < 1e-6, (answer.status, answer.r_prim, answer.r_dual)
    difference = abs(answer.obj_val - answer.obj_val_dual)
    assert difference < 1e-6 * max(1.0, abs(answer.obj_val)), (answer.status, difference)
    return (answer.obj_val + answer.obj_val_dual) / 2, np.array(answer.x)


@dataclass(frozen=True)
class Primal:
    """minimise 1/2 |w|^2 + price'z + sum_s cost_s xi_s^power
    subject to W w + Z z + xi_slack >= r, xi >= 0.

    Every machine of the lectures has this form.  z holds the intercept and its like; a row k of the
    requirements has the slack variable slack_k, which several may share (-1: it has none).
    """

    W: np.ndarray
    r: np.ndarray
    cost: np.ndarray
    slack: np.ndarray
    power: int = 1
    Z: np.ndarray = field(default=None)
    price: np.ndarray = field(default=None)

    def __post_init__(self):
        rows = len(self.r)
        if self.Z is None:
            object.__setattr__(self, "Z", np.zeros((rows, 0)))
        if self.price is None:
            object.__setattr__(self, "price", np.zeros(self.Z.shape[1]))

    def value(self, w, z) -> float:
        """The objective at (w, z), with the smallest slacks that it allows."""
        miss = np.maximum(0, self.r - self.W @ w - self.Z @ z)
        assert np.all(miss[self.slack < 0] <= 1e-9)
        slack = np.zeros(len(self.cost))
        np.maximum.at(slack, self.slack[self.slack >= 0], miss[self.slack >= 0])
        return float(w @ w / 2 + self.price @ z + self.cost @ slack**self.power)

    def optimum(self) -> float:
        d, k, s = self.W.shape[1], self.Z.shape[1], len(self.cost)
        squared = self.power == 2
        P = np.diag(np.concatenate([np.ones(d), np.zeros(k), 2 * self.cost * squared]))
        q = np.concatenate([np.zeros(d), self.price, self.cost * (not squared)])
        slacks = (self.slack[:, None] == np.arange(s)).astype(np.float64)
        A = np.block(
            [[-self.W, -self.Z, -slacks], [np.zeros((s, d + k)), -np.eye(s)]],
        )
        empty = np.zeros((0, d + k + s))
        b = np.concatenate([-self.r, np.zeros(s)])
        return quadratic_program(P, q, empty, np.zeros(0), A, b)[0]


def hessian(problem, K):
    """Q + diag(ridge), from the definition: D as a matrix, K once for each channel."""
    m, n, channels = len(problem), problem.n_items, problem.n_channels
    D = np.zeros((m, channels * n))
    D[np.arange(m), problem.channel * n + problem.item] += 1
    if problem.minus is not None:
        D[np.arange(m), problem.channel * n + problem.minus] -= 1
    return D @ np.kron(np.eye(channels), K) @ D.T + np.diag(problem.ridge)


def _constraints(problem):
    m = len(problem)
    sums = (problem.group == np.arange(len(problem.target))[:, None]).astype(np.float64)
    below, above = np.isfinite(problem.lower), np.isfinite(problem.upper)
    A = np.vstack([-np.eye(m)[below], np.eye(m)[above]])
    b = np.concatenate([-problem.lower[below], problem.upper[above]])
    return sums, problem.target, A, b


def dual_optimum(problem, K) -> float:
    """The optimum of the library's own problem, by the independent solver.

    A ridge makes tiny coefficients, on which an interior point method ends early: there c = s u.
    """
    H, p = hessian(problem, K), problem.linear
    s = float(np.abs(p).max()) / float(np.diag(H).max()) if problem.ridge.any() else 1.0
    sums, target, A, b = _constraints(problem)
    value, _ = quadratic_program(s * H, p, sums, target / s, A, b / s)
    return s * value


def nearest_feasible(problem, point):
    """The feasible point nearest to ``point``, by the independent solver."""
    return quadratic_program(np.eye(len(problem)), -np.asarray(point), *_constraints(problem))[1]


def objective(problem, K, c) -> float:
    return float(c @ hessian(problem, K) @ c / 2 + problem.linear @ c)


def gradient(problem, K, c):
    return hessian(problem, K) @ c + problem.linear


def violation(problem, c, G) -> float:
    """The largest violation of the optimality conditions, pair by pair from their definition."""
    worst = 0.0
    for i in range(len(problem)):
        can_grow, can_shrink = c[i] < problem.upper[i], c[i] > problem.lower[i]
        if problem.group[i] < 0:
            worst = max(worst, -G[i] if can_grow else 0.0, G[i] if can_shrink else 0.0)
        elif can_grow:
            partners = (problem.group == problem.group[i]) & (c > problem.lower)
            worst = max(worst, float((G[partners] - G[i]).max(initial=0.0)))
    return worst


def assert_feasible(problem, c, tolerance=1e-9) -> None:
    scale = tolerance * max(1.0, float(np.abs(c).sum()))
    assert np.all(c >= problem.lower - scale)
    assert np.all(c <= problem.upper + scale)
    for g, target in enumerate(problem.target):
        assert abs(c[problem.group == g].sum() - target) <= scale
