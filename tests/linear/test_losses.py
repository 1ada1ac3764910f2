"""Every loss: its derivative, curvature, conjugate, domain and smooth stand-in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_problems import LOSSES, targets
from scipy.optimize import minimize, minimize_scalar

from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    Softmax,
    named,
)

numbers = st.floats(-5, 5)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def kinks(loss, y):
    """The scores at which slope or curvature jump."""
    width, epsilon = getattr(loss, "width", 0.0), getattr(loss, "epsilon", None)
    if loss.task == "classification":
        return [0.0] if loss.name == "perceptron" else [y, y * (1 - width)]
    if epsilon is None:
        return []
    ends = (epsilon, epsilon + width)
    return [y + side * end for side in (-1, 1) for end in ends]


@every_loss
@given(seed=st.integers(0, 10**6), z=numbers)
def test_slope_and_curvature_are_those_of_the_value(loss, seed, z):
    y = targets(loss, 1, np.random.default_rng(seed))
    step = 1e-6
    if any(abs(z - kink) < 10 * step for kink in kinks(loss, y[0])):
        return
    z = np.array([z])
    slope = (loss.value(y, z + step) - loss.value(y, z - step)) / (2 * step)
    bend = (loss.derivative(y, z + step) - loss.derivative(y, z - step)) / (2 * step)
    assert loss.derivative(y, z) == pytest.approx(slope, abs=1e-7)
    assert loss.curvature(y, z) == pytest.approx(bend, abs=1e-6)
    assert loss.curvature(y, z) <= loss.smoothness + 1e-12
    assert np.abs(loss.derivative(y, z)) <= loss.lipschitz


@every_loss
@given(seed=st.integers(0, 10**6), a=numbers, b=numbers)
def test_derivative_is_a_subgradient(loss, seed, a, b):
    y = targets(loss, 1, np.random.default_rng(seed))
    a, b = np.array([a]), np.array([b])
    assert loss.value(y, b) >= loss.value(y, a) + loss.derivative(y, a) * (b - a) - 1e-12


@every_loss
@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 0.99))
def test_conjugate_is_the_supremum(loss, seed, share):
    y = targets(loss, 1, np.random.default_rng(seed))
    low, high = loss.domain(y)
    v = np.clip(low, -4, 4) * (1 - share) + np.clip(high, -4, 4) * share
    far = minimize_scalar(
        lambda z: float(loss.value(y, np.array([z]))[0] - v[0] * z),
        bounds=(-30, 30),
        method="bounded",
        options={"xatol": 1e-10},
    )
    candidates = [far.fun, *(float(loss.value(y, k)[0] - v[0] * k) for k in kinks(loss, y[0]))]
    assert loss.conjugate(y, v)[0] == pytest.approx(-min(candidates), abs=1e-7)


@every_loss
@given(seed=st.integers(0, 10**6), z=numbers)
def test_conjugate_meets_the_loss_at_its_slopes(loss, seed, z):
    """Fenchel and Young: loss(z) + loss*(v) >= v z, with equality for a subgradient v at z."""
    y = targets(loss, 1, np.random.default_rng(seed))
    z = np.array([z])
    v = loss.derivative(y, z)
    assert loss.value(y, z) + loss.conjugate(y, v) == pytest.approx(v * z, abs=1e-9)


@every_loss
def test_conjugate_is_infinite_outside_its_domain(loss):
    y = targets(loss, 6, np.random.default_rng(0))
    low, high = loss.domain(y)
    assert (low <= 0).all() and (high >= 0).all()
    for end, outwards in ((low, -1e-6), (high, 1e-6)):
        finite = np.isfinite(end)
        assert np.isfinite(loss.conjugate(y, np.where(finite, end, 0.0))).all()
        outside = loss.conjugate(y, np.where(finite, end + outwards, 0.0))
        assert np.isinf(outside[finite]).all()


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3)], ids=repr)
@given(seed=st.integers(0, 10**6), z=numbers, width=st.floats(1e-6, 10))
def test_smooth_stand_in_is_a_little_below(loss, seed, z, width):
    y, z = targets(loss, 1, np.random.default_rng(seed)), np.array([z])
    smooth = loss.smoothed(width)
    below = loss.value(y, z) - smooth.value(y, z)
    assert -1e-12 <= below[0] <= width * loss.lipschitz**2 / 2 + 1e-12
    assert smooth.smoothness == pytest.approx(1 / width)


@given(seed=st.integers(0, 10**6))
def test_softmax(seed):
    rng = np.random.default_rng(seed)
    loss, y, z = Softmax(), rng.integers(0, 4, 1), rng.normal(size=(1, 4)) * 3
    step = 1e-6
    for m in range(4):
        e = step * np.eye(4)[[m]]
        slope = (loss.value(y, z + e) - loss.value(y, z - e)) / (2 * step)
        bend = (loss.derivative(y, z + e) - loss.derivative(y, z - e))[0, m] / (2 * step)
        assert loss.derivative(y, z)[0, m] == pytest.approx(slope[0], abs=1e-7)
        assert loss.curvature(y, z)[0, m] == pytest.approx(bend, abs=1e-7)
    v = rng.dirichlet(np.ones(4))[None, :] - np.eye(4)[y]
    top = minimize(lambda s: float(loss.value(y, s[None, :])[0] - v[0] @ s), np.zeros(4), tol=1e-9)
    assert loss.conjugate(y, v)[0] == pytest.approx(-top.fun, abs=1e-6)
    assert np.isinf(loss.conjugate(y, v + 0.01)[0])


def test_names():
    assert named("huberised_hinge", width=0.5, epsilon=3.0) == HuberisedHinge(0.5)
    assert named(Hinge()) == Hinge()
    with pytest.raises(ValueError, match=r"write Hinge\(\), not Hinge"):
        named(Hinge)
    with pytest.raises(ValueError, match="loss must be one of"):
        named("hing")
