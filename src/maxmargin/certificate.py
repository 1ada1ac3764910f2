"""The certificate: what a point proves about its distance from the optimum.

It needs no loss function: only the problem, the point and its gradient (see ``problem`` for the
letters).  For C-SVC, the squared hinge and least squares it equals the primal-dual gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin.exceptions import NotSeparableError
from maxmargin.feasible import balance
from maxmargin.problem import Floats, Indices, Problem, dot

SEPARABLE = 1e-6
"""A hard margin below this fraction of the data's radius counts as none."""

ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""What a sum may be wrong by, relative to the sum of its absolute values."""


@dataclass(frozen=True)
class Certificate:
    """What a point proves about itself.

    Attributes
    ----------
    objective : float
        The minimised objective, and what rounding may hide of it.
    gap : float
        An upper bound of objective - optimum, rounding included; infinite where none is known.
    violation : float
        The largest amount by which a pair of one group (or a single ungrouped variable) violates
        the optimality conditions: LIBSVM's stopping quantity.
    rho : array of shape (n_groups,)
        The multipliers that a model uses: the mean of G over the free variables; without any the
        middle of the interval that the conditions allow; its finite end where only one is finite.
    rho_interval : array of shape (n_groups, 2)
        That interval (its ends cross by the violation before the optimum is reached).
    certificate_rho : array of shape (n_groups,)
        The multipliers at which the gap is smallest.
    presumed : bool
        Whether the gap holds only if the kernel is positive semi-definite.
    """

    objective: float
    gap: float
    violation: float
    rho: Floats
    rho_interval: Floats
    certificate_rho: Floats
    presumed: bool = False

    def if_positive(self) -> Certificate:
        """The same where nobody knows whether the kernel is positive semi-definite."""
        return replace(self, presumed=True)

    def without_gap(self) -> Certificate:
        """The same where convexity, or part of the gradient, is missing: nothing is bounded."""
        return replace(self, gap=np.inf)


def certify(
    problem: Problem, coefficients: Floats, gradient: Floats, diagonal: Floats | None = None
) -> Certificate:
    """Violation, multipliers and duality gap of a feasible point, from its gradient alone.

    With the kernel of each item with itself, ``diagonal``, objective and gap make room for what
    rounding may hide; without, the gradient is taken to be exact.
    """
    interval, single = _kkt_interval(problem, coefficients, gradient)
    of_gradient, of_objective = _rounding(problem, coefficients, diagonal)
    if problem.is_unbounded:
        gap, certificate_rho = _hard_gap(problem, coefficients, gradient, of_gradient)
    else:
        gap, certificate_rho = _gap(problem, coefficients, gradient)
    return Certificate(
        objective=problem.objective(coefficients, gradient) + of_objective,
        gap=gap + 2 * of_objective,
        violation=_largest(interval, single),
        rho=_model_rho(problem, coefficients, gradient, interval),
        rho_interval=interval,
        certificate_rho=certificate_rho,
    )


def _rounding(problem: Problem, c: Floats, diagonal: Floats | None) -> tuple[float, float]:
    """What the largest G, and the objective or its gap, may be wrong by.

    F is a sum of c_j k(x_j, x), each at most |c_j| |phi(x_j)| |phi(x)|, and |phi(x)|^2 = k(x, x).
    Of c'F the errors of F meet c once more; those of many rows, which know nothing of each other,
    add up as the root of the sum of their squares.
    """
    if diagonal is None:
        return 0.0, 0.0
    length = np.sqrt(np.abs(diagonal))
    reach = length[problem.item]
    if problem.minus is not None:
        reach = reach + length[problem.minus]
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.bincount(problem.channel, np.abs(c) * reach).astype(np.float64)
        roots = np.sqrt(np.bincount(problem.channel, (c * reach) ** 2))
        others = np.abs(problem.linear) + problem.ridge * np.abs(c)
        of_gradient = reach.max(initial=0.0) * sums.max(initial=0.0) + others.max(initial=0.0)
    return ROUNDING * float(of_gradient), ROUNDING * (dot(sums, roots) + dot(np.abs(c), others))


def largest_violation(problem: Problem, c: Floats, G: Floats) -> float:
    """The violation alone, without the price of a gap."""
    return _largest(*_kkt_interval(problem, c, G))


def violators(problem: Problem, c: Floats, G: Floats) -> Indices:
    """The variables at a bound that could leave it downhill, beyond rounding."""
    interval, _ = _kkt_interval(problem, c, G)
    slope = _slope(problem, G, _model_rho(problem, c, G, interval))
    rounding = 1e-12 * float((np.abs(G) + np.abs(problem.linear)).max(initial=0.0))
    grow = (slope < -rounding) & (c < problem.upper)
    return np.flatnonzero(grow | ((slope > rounding) & (c > problem.lower)))


def _largest(interval: Floats, single: float) -> float:
    return max(float((interval[:, 0] - interval[:, 1]).max(initial=0.0)), single)


def _kkt_interval(problem: Problem, c: Floats, G: Floats) -> tuple[Floats, float]:
    """Each group's [largest G that may shrink, smallest G that may grow], and how much the worst
    ungrouped variable violates G >= 0 (may grow) or G <= 0 (may shrink).
    """
    up, down = c < problem.upper, c > problem.lower
    grouped = problem.group >= 0
    interval = np.tile([-np.inf, np.inf], (len(problem.target), 1))
    np.maximum.at(interval[:, 0], problem.group[grouped & down], G[grouped & down])
    np.minimum.at(interval[:, 1], problem.group[grouped & up], G[grouped & up])
    single = max(
        float((-G[~grouped & up]).max(initial=0.0)), float(G[~grouped & down].max(initial=0.0))
    )
    return interval, single


def _model_rho(problem: Problem, c: Floats, G: Floats, interval: Floats) -> Floats:
    free = (c > problem.lower) & (c < problem.upper) & (problem.group >= 0)
    n_groups = len(problem.target)
    count = np.bincount(problem.group[free], minlength=n_groups)
    total = np.bincount(problem.group[free], weights=G[free], minlength=n_groups)
    low, high = interval.T
    finite_low, finite_high = np.isfinite(low), np.isfinite(high)
    with np.errstate(invalid="ignore"):
        middle = np.where(finite_low & finite_high, (low + high) / 2, 0.0)
    one_end = np.where(finite_low, low, np.where(finite_high, high, 0.0))
    without_free = np.where(finite_low & finite_high, middle, one_end)
    return np.where(count > 0, total / np.maximum(count, 1), without_free)


def _gap(problem: Problem, c: Floats, G: Floats) -> tuple[float, Floats]:
    """The gap: the sum over groups of the minimum over rho of

        sum_i max over c' in the box of (G_i - rho)(c_i - c') - ridge_i (c_i - c')^2 / 2
        + rho (sum of c - target).

    By convexity of the objective this bounds objective - optimum.  Without a ridge the inner
    maximum sits at an end of the box, and the best rho is a quantile of G weighted by the widths
    of the boxes; with one, rho is where the inner maximisers sum to the target.
    """
    rho = np.zeros(len(problem.target))
    if len(rho):
        if problem.ridge.any():
            some = problem.ridge > 0  # without one, nearly none: any rho gives a bound
            ridges = np.where(some, problem.ridge, 1e-6 * problem.ridge[some].min())
            for g, members in enumerate(problem.groups()):
                ridge, x = ridges[members], c[members]
                low, high = x - problem.upper[members], x - problem.lower[members]
                excess = x.sum() - problem.target[g]
                rho[g], _ = balance(G[members], 1 / ridge, low, high, excess)
        else:
            rho = _weighted_quantiles(problem, G)
    return _gap_at(problem, c, G, rho), rho


def _gap_at(problem: Problem, c: Floats, G: Floats, rho: Floats) -> float:
    """The sum that ``_gap`` minimises, at one rho."""
    grouped = problem.group >= 0
    slope = _slope(problem, G, rho)
    low, high = c - problem.upper, c - problem.lower
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(problem.ridge > 0, slope / problem.ridge, np.sign(slope) * np.inf)
    move = np.where(slope == 0, 0.0, np.clip(inner, low, high))
    gain = move * (slope - problem.ridge * move / 2)  # the square of a wide box may overflow
    sums = np.bincount(problem.group[grouped], weights=c[grouped], minlength=len(rho))
    missed = dot(rho, sums - problem.target)
    return max(float(gain.sum()) + missed, 0.0)  # in this order NaN stays


def _slope(problem: Problem, G: Floats, rho: Floats) -> Floats:
    """G - rho of the variable's group; an ungrouped variable has rho = 0."""
    return G - np.append(rho, 0.0)[problem.group]


def _weighted_quantiles(problem: Problem, G: Floats) -> Floats:
    """The rho of each group at which the gap's slope changes its sign.

    That slope is the sum of the widths of the boxes with G below rho, less target - sum of lower.
    """
    grouped = np.flatnonzero(problem.group >= 0)
    order = grouped[np.lexsort((G[grouped], problem.group[grouped]))]
    group = problem.group[order]
    below = np.cumsum(problem.upper[order] - problem.lower[order])
    first = np.searchsorted(group, np.arange(len(problem.target)))
    start = np.concatenate([[0.0], below])[first]
    lower = np.bincount(group, weights=problem.lower[order], minlength=len(problem.target))
    wanted = start + problem.target - lower
    last = np.concatenate([first[1:], [len(order)]]) - 1
    return G[order[np.clip(np.searchsorted(below, wanted), first, last)]]


def _hard_gap(problem: Problem, c: Floats, G: Floats, rounding: float) -> tuple[float, Floats]:
    """The gap where the box has no far side (C = inf).

    There the primal has constraints instead of a loss; let v be the worst violation of one.  A
    separator whose constraints ask for a margin mu keeps mu - v of it, and becomes feasible when it
    is divided by (1 - v / mu): its primal value is then |w|^2 / (2 (1 - v / mu)^2).  Constraints of
    another form, a tube's, have no such remedy: nothing is claimed before v is what rounding of G
    explains.  Then the general formula holds.
    """
    rho, worst = _far_sides(problem, G)
    margin = _margin(problem)
    if margin > 0 and worst + rounding < margin:
        norm2 = dot(c, G - problem.linear)
        primal = norm2 / (2 * (1 - (worst + rounding) / margin) ** 2)
        return max(primal + problem.objective(c, G), 0.0), rho
    if margin == 0 and worst <= rounding:
        slope = _slope(problem, G, rho)
        low = np.where(np.isinf(problem.upper), 0.0, -np.inf)
        high = np.where(np.isinf(problem.lower), 0.0, np.inf)
        return _gap_at(problem, c, G - slope + np.clip(slope, low, high), rho), rho
    return np.inf, rho


def _far_sides(problem: Problem, G: Floats) -> tuple[Floats, float]:
    """The rho that violates G >= rho (no upper bound) and G <= rho (no lower bound) least, and the
    worst violation that is left; negative when there is room.
    """
    n_groups = len(problem.target)
    rises, falls = np.isinf(problem.upper), np.isinf(problem.lower)
    ends = np.tile([-np.inf, np.inf], (n_groups + 1, 1))  # the last for the ungrouped
    np.maximum.at(ends[:, 0], problem.group[falls], G[falls])
    np.minimum.at(ends[:, 1], problem.group[rises], G[rises])
    low, high = ends[:n_groups].T
    rho = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    both = np.isfinite(low) & np.isfinite(high)
    rho[both] = (low[both] + high[both]) / 2
    slope = _slope(problem, G, rho)
    worst = np.concatenate([-slope[rises], slope[falls]]).max()
    return rho, float(worst)


def _margin(problem: Problem) -> float:
    """The mu by which every constraint asks f to be on its side of a threshold, so that f can be
    rescaled: p is the group's middle, less mu for a coefficient without upper bound, plus mu for
    one without lower bound.  0 where the constraints have another form, or ask for nothing.
    """
    rises, falls = np.isinf(problem.upper), np.isinf(problem.lower)
    if problem.target.any() or not np.all(rises ^ falls):
        return 0.0
    ends = np.tile([np.inf, -np.inf], (len(problem.target), 1))
    grouped = problem.group >= 0
    np.minimum.at(ends[:, 0], problem.group[grouped], problem.linear[grouped])
    np.maximum.at(ends[:, 1], problem.group[grouped], problem.linear[grouped])
    margins = np.where(rises, -1.0, 1.0) * _slope(problem, problem.linear, ends.mean(axis=1))
    return max(float(margins[0]), 0.0) if np.all(margins == margins[0]) else 0.0


def check_separable(
    problem: Problem, c: Floats, scores: Floats, diagonal: Floats, first_row: Floats
) -> float:
    """End a hard margin that does not exist: a margin is at most |w| / sum|c|, at any point (the
    proof is in ``recession``; Crammer and Singer's is half of f_y - f_m).

    The radius, bounded by the largest distance from the first item, is what that is compared with.
    Where the sum of c is given (SVDD), |w| is no margin and every C has a solution.  Returns the
    bound as a share of the radius.
    """
    if problem.target.any() or not c.any():
        return np.inf
    norm = np.sqrt(max(float(np.sum(problem.spread(c) * scores)), 0.0))
    radius = np.sqrt(max(float((diagonal + diagonal[0] - 2 * first_row).max()), 0.0))
    bound = radius * float(np.abs(c).sum())
    if norm <= SEPARABLE * bound:
        raise NotSeparableError(
            "C=inf lets no row violate its constraint, but no function of this kernel keeps all of "
            "them: the data are not separable (or do not fit into the tube of a regression), as "
            f"any margin is below {SEPARABLE:g} of their radius. Use a finite C, or another kernel."
        )
    return float(norm / bound) if bound > 0 else np.inf


def is_indefinite(problem: Problem, K: Floats, precision: float) -> bool:
    """Whether the kernel matrix of the items, or of some, shows that the objective is not convex.

    Only directions that a solver can take count: where a sum ties all variables of a kernel, those
    that sum to zero.  ``precision`` is that of the kernel values.
    """
    rounding = 8 * len(K) * precision * float(np.abs(K).max(initial=0.0))
    differences = problem.minus is not None or bool((problem.group >= 0).all())
    if differences and problem.n_channels == 1:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1)[:, None]
    ridge = problem.ridge.min(initial=np.inf) * problem.n_items / max(len(problem), 1)
    try:
        np.linalg.cholesky((K + K.T) / 2 + (ridge + rounding + 1e-300) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return True
    return False
