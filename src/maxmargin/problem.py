"""The one quadratic problem that every kernel machine of this library solves.

    minimise    1/2 c'(Q + diag(ridge))c + p'c
    subject to  lower <= c <= upper,   sum of c over group g = target_g
    with        Q = D K D'

Glossary
--------
c       signed coefficients, one for each variable: c_i = y_i alpha_i, so that every machine
        predicts f(x) = sum_i c_i k(x_i, x) + intercept
K       kernel matrix of the n items; it knows neither labels nor bounds, so rows can be shared
D       which item(s) a variable stands for: row i has +1 at ``item[i]`` and, for ranking, -1 at
        ``minus[i]``; with channels (Crammer-Singer) variables of different channels do not meet
F       scores, F = K D'c: the function values without intercept; all that a solver keeps up
G       gradient, G = D F + ridge c + p
up      variables that may grow (c < upper);  down: those that may shrink (c > lower)
rho     multiplier of a group's sum; the intercept is -rho.  Optimal means: G >= rho on every
        variable of the group that may grow, G <= rho on every one that may shrink

A builder below is one row of the table in the documentation: it says p, the box and the groups.
Rows of weight zero have no place in a problem; estimators drop them first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A box- and group-constrained quadratic problem, as data.

    Parameters
    ----------
    linear : array of shape (m,)
        p, the linear term.
    lower, upper : array of shape (m,)
        The box.  Infinite ends are allowed.
    item : array of shape (m,)
        The item that each variable stands for.
    group : array of shape (m,)
        The group whose sum a variable enters, -1 for none.
    target : array of shape (n_groups,)
        The sums.
    ridge : array of shape (m,)
        What is added to the diagonal of Q.
    n_items : int
        How many items there are.
    channel : array of shape (m,)
        Variables of different channels do not interact.
    minus : array of shape (m,) or None
        Ranking: variable i stands for the difference of ``item[i]`` and ``minus[i]``.
    """

    linear: Floats
    lower: Floats
    upper: Floats
    item: Indices
    group: Indices
    target: Floats
    ridge: Floats
    n_items: int
    channel: Indices
    minus: Indices | None = None

    def __len__(self) -> int:
        return len(self.linear)

    @property
    def n_channels(self) -> int:
        return int(self.channel.max(initial=0)) + 1

    @property
    def is_unbounded(self) -> bool:
        """Whether a side of the box is infinite and no ridge makes up for it: a hard margin."""
        return bool(np.any(np.isinf(self.upper - self.lower) & (self.ridge == 0)))

    @property
    def is_linear_system(self) -> bool:
        """Whether there is no box at all: the optimality conditions are linear equations."""
        no_box = np.isinf(self.lower).all() and np.isinf(self.upper).all()
        return bool(no_box and (self.ridge > 0).all())

    @property
    def unit(self) -> float:
        """What ``tol`` is a multiple of: 1, or less where G has no scale but that of small sums.

        Without a linear term (the nu machines, one class) c and G are proportional to the sums: a
        ``tol`` that is fine for sums of 1 says nothing when they are 10^-6.
        """
        if not self.is_distance:
            return 1.0
        return min(1.0, float(np.abs(self.target[self.target != 0]).min()))

    @property
    def is_distance(self) -> bool:
        """Whether the objective is half a squared distance: no linear term, but sums to keep.

        Of the reduced hulls of two classes (nu-SVC), or of the data's from the origin (one class).
        """
        return bool(self.target.any()) and not self.linear.any()

    def groups(self) -> list[Indices]:
        """The variables of each group."""
        order = np.argsort(self.group, kind="stable")
        ends = np.searchsorted(self.group[order], np.arange(len(self.target) + 1))
        return [order[a:b] for a, b in pairwise(ends)]

    def only(self, variables: Indices) -> tuple[Problem, Indices]:
        """These variables, and the items that they stand for, which are numbered anew.

        Boxes, groups and the linear term stay as they are: what the other variables contribute is
        for the caller to say.
        """
        ends = [self.item] if self.minus is None else [self.item, self.minus]
        both = np.concatenate([end[variables] for end in ends])
        used, place = np.unique(both, return_inverse=True)
        place = place.reshape(-1, len(variables))
        part = replace(
            self,
            linear=self.linear[variables],
            lower=self.lower[variables],
            upper=self.upper[variables],
            ridge=self.ridge[variables],
            group=self.group[variables],
            channel=self.channel[variables],
            item=place[0],
            minus=None if self.minus is None else place[1],
            n_items=len(used),
        )
        return part, used

    def hessian(self, K: Floats) -> Floats:
        """H = D K D' + diag(ridge), where variables of different channels do not meet."""
        rows = K[self.item] if self.minus is None else K[self.item] - K[self.minus]
        Q = rows[:, self.item] if self.minus is None else rows[:, self.item] - rows[:, self.minus]
        return np.where(self.channel[:, None] == self.channel, Q, 0.0) + np.diag(self.ridge)

    def spread(self, coefficients: Floats) -> Floats:
        """D'c: the coefficient of each item in each channel, shape (n_items, n_channels)."""
        out = np.zeros((self.n_items, self.n_channels))
        np.add.at(out, (self.item, self.channel), coefficients)
        if self.minus is not None:
            np.add.at(out, (self.minus, self.channel), -coefficients)
        return out

    def gradient(self, coefficients: Floats, scores: Floats) -> Floats:
        """G = D F + ridge c + p."""
        product = scores[self.item, self.channel]
        if self.minus is not None:
            product = product - scores[self.minus, self.channel]
        return product + self.ridge * coefficients + self.linear

    def objective(self, coefficients: Floats, gradient: Floats) -> float:
        """1/2 c'(Q + diag(ridge))c + p'c, from G = (Q + diag(ridge))c + p."""
        return dot(coefficients, gradient + self.linear) / 2


def dot(a: Floats, b: Floats) -> float:
    """a'b, in an order of summation that does not depend on BLAS and its threads."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sum(a * b))


# ------------------------------------------------------------------ the formulations


def _problem(
    linear: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    target: ArrayLike = (),
    group: ArrayLike | None = None,
    ridge: ArrayLike = 0.0,
    item: ArrayLike | None = None,
    n_items: int | None = None,
    channel: ArrayLike = 0,
    minus: ArrayLike | None = None,
) -> Problem:
    """Fill in what most formulations share: variable i is item i, one group or none."""
    p = np.ascontiguousarray(linear, dtype=np.float64)
    m = len(p)
    targets = np.atleast_1d(np.asarray(target, dtype=np.float64))
    if group is None:
        group = 0 if len(targets) else -1
    items = np.arange(m) if item is None else np.asarray(item)

    def floats(values: ArrayLike) -> Floats:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), m))

    def indices(values: ArrayLike) -> Indices:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.int64), m))

    return Problem(
        linear=p,
        lower=floats(lower),
        upper=floats(upper),
        item=indices(items),
        group=indices(group),
        target=targets,
        ridge=floats(ridge),
        n_items=m if n_items is None else n_items,
        channel=indices(channel),
        minus=None if minus is None else indices(minus),
    )


def _weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.all((weights > 0) & (weights < np.inf)):
        raise ValueError(
            f"sample_weight must hold {n} positive, finite numbers, one for each item (or the "
            "product of a pair's): drop the rows of weight zero, divide the rest by their mean."
        )
    return weights


def _prices(C: float, sample_weight: ArrayLike | None, n: int) -> Floats:
    """C w_i, the price of each item's slack.  Only C itself may be infinite: the hard margin."""
    weights = _weights(sample_weight, n)
    with np.errstate(over="ignore"):
        prices = C * weights
        within = np.isfinite(prices.sum()) or np.isinf(C)
    if not (within and np.all(prices > 0)):
        raise _out_of_range(C, weights)
    return prices


def _ridges(C: float, sample_weight: ArrayLike | None, n: int) -> Floats:
    """1 / (C w_i), where slacks are squared."""
    with np.errstate(over="ignore"):
        ridges = 1 / _prices(C, sample_weight, n)
    if not np.isfinite(ridges).all():
        raise _out_of_range(C, _weights(sample_weight, n))
    return ridges


def _out_of_range(C: float, weights: Floats) -> ValueError:
    return ValueError(
        f"C={C:g} times sample_weight (from {weights.min():g} to {weights.max():g}) leaves the "
        "range of float64. Divide the weights by their mean, and choose C for that."
    )


def _shared_out(nu: float, weights: Floats, share: float = 1.0) -> float:
    """What c adds up to, nu sum(w) times ``share``; the objective goes with its square."""
    total = share * nu * float(weights.sum())
    if total < 1e-100:
        raise ValueError(
            f"nu={nu:g} times sample_weight (from {weights.min():g} to {weights.max():g}) is so "
            "small that the objective leaves the range of float64. Divide the weights by their "
            "mean, and choose a larger nu."
        )
    return total


def _signs(y: ArrayLike) -> Floats:
    signs = np.asarray(y, dtype=np.float64)
    if signs.ndim != 1 or not np.all(np.abs(signs) == 1):
        raise ValueError("y must be a vector of -1 and +1.")
    return signs


def _toward(y: Floats, size: ArrayLike) -> tuple[Floats, Floats]:
    """The box [0, size] where y is positive and [-size, 0] where it is negative."""
    size = np.broadcast_to(np.asarray(size, dtype=np.float64), y.shape)
    return np.where(y > 0, 0.0, -size), np.where(y > 0, size, 0.0)


def c_svc(
    y: ArrayLike, C: float = 1.0, sample_weight: ArrayLike | None = None, intercept: bool = True
) -> Problem:
    """The soft margin with the hinge loss; C = inf is the hard margin.

    Primal: minimise 1/2 |w|^2 + C sum_i w_i max(0, 1 - y_i f(x_i))  (Cortes and Vapnik 1995).
    """
    y = _signs(y)
    lower, upper = _toward(y, _prices(C, sample_weight, len(y)))
    return _problem(-y, lower, upper, target=[0.0] if intercept else ())


def squared_hinge_svc(
    y: ArrayLike, C: float = 1.0, sample_weight: ArrayLike | None = None, intercept: bool = True
) -> Problem:
    """The soft margin with the squared hinge loss.

    Primal: minimise 1/2 |w|^2 + C sum_i w_i max(0, 1 - y_i f(x_i))^2.
    """
    y = _signs(y)
    ridge = _ridges(C, sample_weight, len(y)) / 2
    return _problem(-y, *_toward(y, np.inf), target=[0.0] if intercept else (), ridge=ridge)


def nu_svc(y: ArrayLike, nu: float = 0.5, sample_weight: ArrayLike | None = None) -> Problem:
    """The nu-SVM: at most a fraction nu of errors, at least a fraction nu of support vectors.

    Scaled as LIBSVM's (Chang and Lin 2001, with C = 1): each class sums to nu sum(w) / 2.  The
    model is the solution divided by (rho_+ - rho_-) / 2, with intercept -(rho_+ + rho_-) / 2 before
    the division; where that divisor is not positive, nu is too small for data that overlap.
    """
    y = _signs(y)
    weights = _weights(sample_weight, len(y))
    half = _shared_out(nu, weights, 0.5)
    return _problem(
        np.zeros_like(y), *_toward(y, weights), target=[half, -half], group=np.where(y > 0, 0, 1)
    )


def _twice(n: int) -> Indices:
    """Regression has two variables for an item: above the tube (c >= 0) and below it (c <= 0)."""
    return np.tile(np.arange(n), 2)


def _above_below(n: int) -> Floats:
    return np.repeat([1.0, -1.0], n)


def epsilon_svr(
    t: ArrayLike,
    C: float = 1.0,
    epsilon: float = 0.1,
    sample_weight: ArrayLike | None = None,
    intercept: bool = True,
) -> Problem:
    """Regression with the epsilon-insensitive loss; C = inf asks for the flattest tube.

    Primal: minimise 1/2 |w|^2 + C sum_i w_i max(0, |t_i - f(x_i)| - epsilon).
    """
    t = np.asarray(t, dtype=np.float64)
    n = len(t)
    side = _above_below(n)
    lower, upper = _toward(side, np.tile(_prices(C, sample_weight, n), 2))
    linear = side * epsilon - np.tile(t, 2)
    return _problem(
        linear, lower, upper, target=[0.0] if intercept else (), item=_twice(n), n_items=n
    )


def squared_epsilon_svr(
    t: ArrayLike,
    C: float = 1.0,
    epsilon: float = 0.1,
    sample_weight: ArrayLike | None = None,
    intercept: bool = True,
) -> Problem:
    """Regression with the squared epsilon-insensitive loss.

    Primal: minimise 1/2 |w|^2 + C sum_i w_i max(0, |t_i - f(x_i)| - epsilon)^2.
    """
    t = np.asarray(t, dtype=np.float64)
    n = len(t)
    side = _above_below(n)
    ridge = np.tile(_ridges(C, sample_weight, n) / 2, 2)
    linear = side * epsilon - np.tile(t, 2)
    target = [0.0] if intercept else ()
    return _problem(
        linear, *_toward(side, np.inf), target=target, ridge=ridge, item=_twice(n), n_items=n
    )


def nu_svr(
    t: ArrayLike, C: float = 1.0, nu: float = 0.5, sample_weight: ArrayLike | None = None
) -> Problem:
    """Regression that chooses its own tube: at most a fraction nu of the points lie outside.

    Both halves sum to C nu sum(w) / 2, with opposite signs (Chang and Lin 2002).  The tube's
    half-width is (rho_below - rho_above) / 2 and the intercept -(rho_above + rho_below) / 2.
    """
    t = np.asarray(t, dtype=np.float64)
    n = len(t)
    weights = _prices(C, sample_weight, n)
    half = nu * weights.sum() / 2
    return _problem(
        -np.tile(t, 2),
        *_toward(_above_below(n), np.tile(weights, 2)),
        target=[half, -half],
        group=np.repeat([0, 1], n),
        item=_twice(n),
        n_items=n,
    )


def one_class(sample_weight: ArrayLike, nu: float = 0.5) -> Problem:
    """The half-space that holds most of the data, away from the origin (Schoelkopf et al. 2001).

    ``sample_weight`` holds one weight for each item (ones for plain data); the sum of c is
    nu sum(w).
    """
    weights = np.asarray(sample_weight, dtype=np.float64)
    weights = _weights(weights, len(weights))
    return _problem(np.zeros_like(weights), 0.0, weights, target=[_shared_out(nu, weights)])


def svdd(diagonal: ArrayLike, C: float = 1.0, sample_weight: ArrayLike | None = None) -> Problem:
    """The smallest ball around most of the data (Tax and Duin 2004), half its usual dual.

    Primal: minimise R^2 + C sum_i w_i max(0, |x_i - a|^2 - R^2), halved.  Needs C sum(w) >= 1.
    """
    diagonal = np.asarray(diagonal, dtype=np.float64)
    size = _prices(C, sample_weight, len(diagonal))
    if size.sum() < 1:
        raise ValueError(
            f"svdd needs C * sum(sample_weight) >= 1; got {size.sum():g}.  Below that the ball "
            "shrinks to the weighted mean of the data."
        )
    return _problem(-diagonal / 2, 0.0, size, target=[1.0])


def ranking(
    pairs: ArrayLike, n_items: int, C: float = 1.0, sample_weight: ArrayLike | None = None
) -> Problem:
    """Ordered pairs: the first item of each is to score above the second by a margin.

    Primal: minimise 1/2 |w|^2 + C sum_(a,b) w_ab max(0, 1 - f(x_a) + f(x_b))  (Joachims 2002).
    ``sample_weight`` holds one weight for each pair, the product of its items'.
    """
    pairs = np.asarray(pairs, dtype=np.int64)
    size = _prices(C, sample_weight, len(pairs))
    return _problem(
        -np.ones(len(pairs)), 0.0, size, item=pairs[:, 0], minus=pairs[:, 1], n_items=n_items
    )


def crammer_singer(
    labels: ArrayLike, n_classes: int, C: float = 1.0, sample_weight: ArrayLike | None = None
) -> Problem:
    """All classes at once, without an intercept (Crammer and Singer 2001).

    Primal: minimise 1/2 sum_m |w_m|^2 + C sum_i w_i max_m ([m != y_i] + f_m(x_i) - f_(y_i)(x_i)).
    Variable i * n_classes + m is the coefficient of item i in class m; an example is a group.
    """
    labels = np.asarray(labels, dtype=np.int64)
    n = len(labels)
    right = (labels[:, None] == np.arange(n_classes)).ravel()
    size = np.repeat(_prices(C, sample_weight, n), n_classes)
    return _problem(
        np.where(right, 0.0, 1.0),
        *_toward(np.where(right, 1.0, -1.0), size),
        target=np.zeros(n),
        group=np.repeat(np.arange(n), n_classes),
        channel=np.tile(np.arange(n_classes), n),
        item=np.repeat(np.arange(n), n_classes),
        n_items=n,
    )


def least_squares(
    y: ArrayLike, C: float = 1.0, sample_weight: ArrayLike | None = None, intercept: bool = True
) -> Problem:
    """The least-squares machine (Suykens and Vandewalle 1999): equalities, and no box at all.

    Primal: minimise 1/2 |w|^2 + C / 2 sum_i w_i (y_i - f(x_i))^2.
    """
    y = np.asarray(y, dtype=np.float64)
    ridge = _ridges(C, sample_weight, len(y))
    return _problem(-y, -np.inf, np.inf, target=[0.0] if intercept else (), ridge=ridge)
