"""An interior point method for losses with a kink, few features and any number of rows.

    minimise   |w|^2 / 2 + sum_i price_i xi_i,    xi_i >= offset_i - sign_i x_i.w,   xi_i >= 0

is the hinge with sign = y and offset = 1; the epsilon-insensitive loss has two such sides.  With a
the multipliers of the first constraints and t = price - a those of the second, the points

    X'(sign a) = w,    offset - sign X w = xi - u,    a u = mu,    t xi = mu,    a + t = price

for mu > 0 form the central path, which ends in the optimum.  Newton's step on these equations,
after everything else is eliminated, has as many unknowns as there are features,

    (I + X' diag(h) X) dw = ...,     h = 1 / (u / a + xi / t)

(Ferris and Munson 2002; Woodsend and Gondzio 2009), with Mehrotra's predictor and corrector (1992).
Rows far from their kink have h near zero, and are left out of the matrix.

For given w and mu the equations of a row have one solution, in closed form: there it starts.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.linear.losses import EpsilonInsensitive, Hinge
from maxmargin.linear.penalties import L2
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.solver import Progress, Solver, blas_limit
from maxmargin.problem import Floats


class InteriorPoint(Solver):
    """A primal-dual interior point method; the cost of a step is n d^2.

    Parameters
    ----------
    most : int, default=3000
        The most columns.
    """

    name = "interior-point"
    fast_at_the_end = True

    def __init__(self, most: int = 3000):
        self.most = most

    def refusal(self, problem: LinearProblem) -> str | None:
        if not isinstance(problem.penalty, L2):
            return "interior-point needs the l2 penalty"
        if not isinstance(problem.loss, (Hinge, EpsilonInsensitive)):
            return "interior-point is for the hinge and the epsilon-insensitive loss"
        if problem.design.n_columns > self.most:
            return f"interior-point is for at most {self.most} features"
        return None

    def solve(self, progress: Progress, start: Floats | None, seed: int) -> None:
        with blas_limit(progress.problem.design.n_columns):
            path = Path(progress.problem, start)
            iterations = 0
            while not progress.ends(path.w, path.z, path.c, iterations, path.v):
                if not path.step():
                    progress.stuck()
                    return
                iterations += 1


class Path:
    """A point near the central path.  Arrays of the sides have shape (n_sides, n)."""

    def __init__(self, problem: LinearProblem, start: Floats | None):
        self.problem = problem
        y = problem.y
        if isinstance(problem.loss, Hinge):
            self.sign, self.offset = y[None, :], np.ones((1, len(y)))
        else:
            epsilon = problem.loss.epsilon  # type: ignore[attr-defined]
            self.sign = np.stack([np.ones_like(y), -np.ones_like(y)])
            self.offset = np.stack([y - epsilon, -y - epsilon])
        self.price = problem.price
        self.counted = np.ones(problem.design.n_columns)
        if problem.free:
            self.counted[-1] = 0.0
        self.w = np.zeros(len(self.counted)) if start is None else np.array(start)
        self.z = problem.design.scores(self.w)
        missing = self.offset - self.sign * self.z
        self._center(missing, float(np.mean(np.abs(missing))) * self.price)
        self.v = problem.design.combine(self.c)

    def _center(self, missing: Floats, mu: Floats) -> None:
        """The a, t, xi, u with xi - u = missing, a u = t xi = mu and a + t = price: with
        xi = mu / t and u = mu / a,  mu / t - mu / a = missing  is a quadratic equation for a.
        """
        price = self.price
        # s a^2 - (s p - 2 mu) a - mu p = 0 for s = missing, in the form without cancellation
        root = np.sqrt((missing * price) ** 2 + (2 * mu) ** 2)
        b = 2 * mu - missing * price
        with np.errstate(divide="ignore", invalid="ignore"):
            positive = 2 * mu * price / (b + root)
            negative = (root - b) / (2 * missing)
        a = np.where(b >= 0, positive, negative)
        self.a = np.clip(a, 1e-12 * price, (1 - 1e-12) * price)
        self.t = price - self.a
        self.xi, self.u = mu / self.t, mu / self.a

    @property
    def c(self) -> Floats:
        return (self.sign * self.a).sum(axis=0)

    @property
    def mu(self) -> float:
        return float((np.vdot(self.a, self.u) + np.vdot(self.t, self.xi)) / (2 * self.a.size))

    def step(self) -> bool:
        """Predict where the path ends, then go there as far as the curvature of the path allows."""
        design, a, t, xi, u = self.problem.design, self.a, self.t, self.xi, self.u
        with np.errstate(over="ignore", divide="ignore"):
            D = u / a + xi / t
        h = (1 / D).sum(axis=0)
        h[h < 1e-9 * h.max()] = 0.0
        H = design.gram(h)
        diagonal = np.einsum("ii->i", H)
        diagonal += self.counted
        try:
            factor = cho_factor(H + 1e-13 * np.diag(diagonal), check_finite=False)
        except LinAlgError:
            return False
        if not np.isfinite(np.einsum("ii->i", factor[0])).all():
            return False
        primal = self.offset - self.sign * self.z - xi + u  # what is left of the equations
        dual = self.v - self.counted * self.w

        def direction(au: Floats, txi: Floats) -> tuple[Floats, ...]:
            """The Newton step for a u = au and t xi = txi (both less what they are now)."""
            right = primal - txi / t + au / a
            dw = cho_solve(factor, design.combine((self.sign * right / D).sum(axis=0)) + dual)
            dz = design.scores(dw)
            da = (right - self.sign * dz) / D
            return dw, dz, da, (txi + xi * da) / t, (au - u * da) / a

        _, _, da, dxi, du = direction(-a * u, -t * xi)
        mu = self.mu
        reach = self._reach(da, dxi, du)
        ahead = np.vdot(a + reach * da, u + reach * du)
        ahead += np.vdot(t - reach * da, xi + reach * dxi)
        sigma = (float(ahead) / (2 * a.size) / mu) ** 3
        dw, dz, da, dxi, du = direction(
            sigma * mu - a * u - da * du, sigma * mu - t * xi + da * dxi
        )
        reach = min(1.0, 0.995 * self._reach(da, dxi, du))
        if not reach > 1e-10 or not np.isfinite(dw).all():
            return False
        self.w, self.z = self.w + reach * dw, self.z + reach * dz
        self.a, self.t = a + reach * da, t - reach * da
        self.xi, self.u = xi + reach * dxi, u + reach * du
        self.v = design.combine(self.c)
        return True

    def _reach(self, da: Floats, dxi: Floats, du: Floats) -> float:
        """The longest step that keeps a, t, xi and u positive."""
        longest = 0.0
        for x, dx in ((self.a, da), (self.t, -da), (self.xi, dxi), (self.u, du)):
            longest = max(longest, float((-dx / x).max()))
        return 1 / longest if longest > 0 else 1e10
