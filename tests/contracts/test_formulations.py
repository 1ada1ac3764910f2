"""Every formulation is the lecture's machine: same optimum, and a certificate that equals the
difference between the primal value and the dual one.
"""

import numpy as np
import pytest
from machines import MAKERS, SOFT, feasible_point, make
from textbook import assert_feasible, dual_optimum, gradient, objective, violation

from maxmargin.certificate import certify

VARIANTS = {
    "plain": {"seed": 0},
    "weighted, small C": {"seed": 1, "C": 0.1, "weighted": True},
    "weighted, large C": {"seed": 2, "C": 20.0, "weighted": True},
    "more features than items": {"seed": 3, "n": 8, "d": 10},
}

every_machine = pytest.mark.parametrize("name", MAKERS)
every_variant = pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)


@every_variant
@every_machine
def test_reaches_the_optimum_of_the_primal(solve, name, options):
    machine = make(name, **options)
    solution = solve(machine.problem, machine.K, tol=1e-7)
    optimum = machine.primal.optimum()
    assert solution.converged, solution.status
    assert -solution.objective == pytest.approx(optimum, rel=1e-6, abs=1e-9)
    # The primal's optimum lies in the interval that the solver certifies.
    rounding = 1e-9 * max(1.0, abs(optimum))
    assert -solution.objective - rounding <= optimum
    assert optimum <= solution.gap - solution.objective + rounding
    assert_feasible(machine.problem, solution.coefficients)


@every_variant
@every_machine
def test_builders_state_the_dual(name, options):
    machine = make(name, **options)
    optimum = dual_optimum(machine.problem, machine.K)
    assert -optimum == pytest.approx(machine.primal.optimum(), rel=1e-7, abs=1e-9)


@every_variant
@every_machine
def test_solutions_are_consistent(solve, name, options):
    """What a solution says of itself follows from its coefficients alone."""
    problem, K = make(name, **options).problem, make(name, **options).K
    solution = solve(problem, K)
    c = solution.coefficients
    G = gradient(problem, K, c)
    scale = max(1.0, float(np.abs(c).sum()) * float(np.abs(K).max()))
    assert solution.scores.shape == (problem.n_items, problem.n_channels)
    np.testing.assert_allclose(solution.scores, K @ problem.spread(c), atol=1e-12 * scale)
    np.testing.assert_allclose(solution.gradient, G, atol=1e-12 * scale)
    assert solution.objective == pytest.approx(objective(problem, K, c), rel=1e-9, abs=1e-9)
    assert solution.violation == pytest.approx(violation(problem, c, G), abs=1e-9 * scale)
    assert solution.violation <= 1e-3
    size = max(abs(solution.objective), abs(solution.gap - solution.objective))
    assert solution.relative_gap * size == pytest.approx(solution.gap)
    n_groups = len(problem.target)
    assert solution.rho.shape == solution.certificate_rho.shape == (n_groups,)
    assert solution.rho_interval.shape == (n_groups, 2)
    low, high = solution.rho_interval.T
    assert np.all(low - high <= solution.violation + 1e-12 * scale)
    assert np.all(solution.rho >= np.minimum(low, high) - 1e-12 * scale)
    assert np.all(solution.rho <= np.maximum(low, high) + 1e-12 * scale)
    assert solution.status.startswith(solution.outcome.value)


@every_variant
@pytest.mark.parametrize("name", SOFT)
def test_the_gap_is_primal_minus_dual_at_any_point(name, options):
    """The certificate knows no loss function, and yet gives the gap that the loss gives.

    Beyond what the design promises (C-SVC, squared hinge, least squares) this holds for every
    formulation: the conjugate of the loss is what is left of the box.
    """
    machine = make(name, **options)
    rng = np.random.default_rng(7)
    for _ in range(5):
        c = feasible_point(machine.problem, rng)
        certificate = certify(machine.problem, c, gradient(machine.problem, machine.K, c))
        primal = machine.primal_value(c, certificate.certificate_rho)
        assert certificate.gap == pytest.approx(primal + certificate.objective, rel=1e-9, abs=1e-9)
        # No other multipliers give a smaller one, least of all the model's.
        other = certificate.certificate_rho + 0.1 * rng.normal(size=len(certificate.rho))
        for rho in (certificate.rho, other):
            assert primal <= machine.primal_value(c, rho) * (1 + 1e-12) + 1e-9


@every_variant
@pytest.mark.parametrize("name", SOFT)
def test_the_gap_is_primal_minus_dual_at_the_solution(solve, name, options):
    machine = make(name, **options)
    solution = solve(machine.problem, machine.K, tol=1e-2)
    primal = machine.primal_value(solution.coefficients, solution.certificate_rho)
    scale = max(1.0, abs(primal))
    assert solution.gap == pytest.approx(primal + solution.objective, abs=1e-9 * scale)
