"""Every penalty: its conjugate, proximal operator and reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_problems import PENALTIES
from scipy.optimize import minimize

from maxmargin.linear.penalties import L1, Group, named

every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: repr(p)[:30])
seeds = st.integers(0, 10**6)


def smallest(f, start):
    """A minimum of a convex function with kinks on the axes: the best of several searches."""
    best = minimize(f, start, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14})
    again = minimize(f, best.x, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14})
    return min(best.fun, again.fun)


@every_penalty
@given(seed=seeds, step=st.floats(0.01, 3))
def test_prox_minimises(penalty, seed, step):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=6)

    def f(u):
        return penalty.value(u) + (u - w) @ (u - w) / (2 * step)

    there = penalty.prox(w, step)
    assert f(there) <= smallest(f, w) + 1e-9
    for _ in range(20):
        assert f(there) <= f(there + 1e-3 * rng.normal(size=6))


@every_penalty
@given(seed=seeds)
def test_conjugate_bounds_and_is_reached(penalty, seed):
    """penalty(w) + penalty*(v) >= v.w, and for w = prox(u), v = u - w is a subgradient at w."""
    rng = np.random.default_rng(seed)
    w, u = rng.normal(size=(2, 6))
    t = penalty.reach(u)
    assert penalty.value(w) + penalty.conjugate(t * u) >= t * u @ w - 1e-12
    there = penalty.prox(u, 1.0)
    v = u - there
    assert penalty.reach(v) >= 1 - 1e-12
    assert penalty.value(there) + penalty.conjugate(v) == pytest.approx(v @ there, abs=1e-12)


@every_penalty
@given(seed=seeds, scale=st.floats(0.01, 100))
def test_reach_is_as_far_as_the_conjugate_is_finite(penalty, seed, scale):
    v = scale * np.random.default_rng(seed).normal(size=6)
    t = penalty.reach(v)
    assert 0 < t <= 1
    # In reach, v.w - value(w) has no end only beyond t: along the prox of a far point.
    if t < 1:
        direction = penalty.prox(v, 1.0)
        assert v @ direction > penalty.value(direction)
        inside = 0.999 * t * v
        assert penalty.prox(inside, 1.0) == pytest.approx(np.zeros(6), abs=1e-15)


def test_groups():
    alone = Group([0, 0, -1, -1])
    assert alone.value(np.array([3.0, 4.0, 1.0, -2.0])) == pytest.approx(np.sqrt(2) * 5 + 3)
    assert alone == Group([0, 0, -1, -1])
    assert alone != Group([0, 1, -1, -1])
    with pytest.raises(ValueError, match="each of the 3 features"):
        alone.value(np.zeros(3))


def test_names():
    assert named("elasticnet", l1_ratio=0.3).l1_ratio == 0.3
    with pytest.raises(ValueError, match="penalty=Group"):
        named("group")
    with pytest.raises(ValueError, match=r"write L1\(\)"):
        named(L1)
    with pytest.raises(ValueError, match="penalty must be one of"):
        named("l0")
