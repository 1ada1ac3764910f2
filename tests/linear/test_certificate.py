"""What a pair of points proves is true: dual <= optimum <= primal, for any points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_problems import LOSSES, PENALTIES, linear_problem

from maxmargin.linear.losses import PerceptronLoss, Softmax
from maxmargin.linear.penalties import L2, Group
from maxmargin.linear.proximal_gradient import ProximalGradient
from maxmargin.linear.solver import Progress

PROBLEMS = [
    (loss, penalty, free)
    for loss in [*LOSSES, Softmax()]
    for penalty in PENALTIES
    for free in (False, True)
    if not (isinstance(loss, Softmax) and isinstance(penalty, Group))
]


def optimum(problem):
    """The best objective that a long run of a first-order method finds."""
    progress = Progress(problem, 1e-6, 2000)
    ProximalGradient().solve(progress, None, 0)
    return progress.solution().primal


@pytest.mark.parametrize(("loss", "penalty", "free"), PROBLEMS, ids=str)
def test_any_points_bound_the_optimum(loss, penalty, free):
    problem = linear_problem(loss, penalty, free)
    # The perceptron's loss has the optimum 0, at w = 0, and no solver.
    best = 0.0 if isinstance(loss, PerceptronLoss) else optimum(problem)

    @given(seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 0.1, 1.0, 10.0]))
    def bounds(seed, size):
        rng = np.random.default_rng(seed)
        w = size * rng.normal(size=problem.shape)
        z = problem.design.scores(w)
        # Coefficients in the box: those of other scores.
        c = problem.slopes(z + size * rng.normal(size=z.shape))
        proof = problem.certificate(w, z, c)
        assert proof.dual <= best * (1 + 1e-12) + 1e-9
        # `best` may be above the optimum by what its run left, 1e-6 of it or more; far below no
        # primal can be.
        assert proof.primal >= best - 1e-3 * (1 + abs(best))
        assert proof.gap >= proof.primal - best >= -1e-3 * (1 + abs(best))

    bounds()


@given(seed=st.integers(0, 10**6))
def test_balanced_coefficients_sum_to_zero_within_their_box(seed):
    rng = np.random.default_rng(seed)
    for loss in [*LOSSES, Softmax()]:
        problem = linear_problem(loss, L2(), free=True, seed=seed)
        scores = rng.normal(size=(40, 3) if isinstance(loss, Softmax) else 40)
        c = problem.balanced(problem.slopes(3 * scores))
        assert c.sum(axis=0) == pytest.approx(0, abs=1e-9)
        if not isinstance(loss, Softmax):
            low, high = problem.box()
            assert ((low <= c) & (c <= high)).all()
        assert np.isfinite(problem.dual(c, problem.design.combine(c)))
