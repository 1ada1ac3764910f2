"""What a solver returns: the coefficients, what they prove, and in words how the fit ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.exceptions import NOT_FINITE
from maxmargin.problem import Floats, Problem, dot


class Outcome(Enum):
    """How a solver ended; the value begins the sentence of ``Solution.status``."""

    CONVERGED = "converged"
    ROUNDING = "converged as far as float64 allows"
    INDEFINITE = "stationary (the kernel is not positive semi-definite: no gap bounds the optimum)"
    RUNNING = "still running"
    MAX_ITER = "stopped at the iteration limit"
    TIME_LIMIT = "stopped by the time limit"
    CALLBACK = "stopped by a callback"
    INTERRUPTED = "interrupted"

    @property
    def finished(self) -> bool:
        """Whether the solver ended by itself."""
        return self in (Outcome.CONVERGED, Outcome.ROUNDING, Outcome.INDEFINITE)

    @property
    def verified(self) -> bool:
        """Whether what is claimed was checked after the solver ended."""
        return self.finished or self is Outcome.MAX_ITER


@dataclass(frozen=True)
class Solution:
    """The answer to a quadratic problem.

    Attributes
    ----------
    coefficients, gradient : array of shape (m,)
        c and G = (Q + diag(ridge))c + p.
    scores : array of shape (n_items, n_channels)
        F = K D'c, the function values on the items without intercept.
    certificate : Certificate
        Objective, duality gap, violation and multipliers of the point.
    iterations : int
        Updates that the solver made (pairs, coordinates, groups or its own steps).
    outcome : Outcome
    asked : Accuracy
    status : str
        A sentence that says how the solver ended, what it proves and what was asked.
    """

    coefficients: Floats
    gradient: Floats
    scores: Floats
    certificate: Certificate
    iterations: int
    outcome: Outcome
    asked: Accuracy
    status: str

    @property
    def objective(self) -> float:
        """The minimised dual objective."""
        return self.certificate.objective

    @property
    def primal(self) -> float:
        """The primal objective at the certificate's multipliers, maximised dual + gap.

        The dual itself where no gap is known.
        """
        return -self.objective + (self.gap if np.isfinite(self.gap) else 0.0)

    @property
    def gap(self) -> float:
        """An upper bound of objective - optimum."""
        return self.certificate.gap

    @property
    def violation(self) -> float:
        """The largest violation of the optimality conditions."""
        return self.certificate.violation

    @property
    def rho(self) -> Floats:
        """The multiplier of each group's sum; an intercept is its negative."""
        return self.certificate.rho

    @property
    def rho_interval(self) -> Floats:
        """The interval of multipliers that the optimality conditions allow."""
        return self.certificate.rho_interval

    @property
    def certificate_rho(self) -> Floats:
        """The multipliers at which the gap is smallest."""
        return self.certificate.certificate_rho

    @property
    def converged(self) -> bool:
        return self.outcome.finished

    @property
    def relative_gap(self) -> float:
        """The gap over max(|primal|, |dual|)."""
        return relative_gap(self.certificate)

    @property
    def proves_little(self) -> bool:
        """Whether it met ``tol`` with a gap like its objective, and not because that is zero."""
        met_tol = self.outcome is Outcome.CONVERGED
        return met_tol and self.relative_gap > LOOSE and not self.is_zero

    @property
    def is_zero(self) -> bool:
        """Whether gap and objective are what rounding leaves of zero."""
        if self.asked.zero is not None:
            return self.gap <= self.asked.zero
        return self.gap <= 1e-12 * dot(np.abs(self.coefficients), np.abs(self.gradient))


LOOSE = 0.1
"""A relative gap that a fit which met ``tol`` should not have."""


def relative_gap(certificate: Certificate) -> float:
    """The gap over max(|primal|, |dual|), which is what ``gap_tol`` asks to be small."""
    gap = certificate.gap
    scale = max(abs(certificate.objective), abs(gap - certificate.objective))
    return gap / scale if 0 < gap < np.inf else gap


@dataclass(frozen=True)
class Accuracy:
    """What was asked of a solver.

    Attributes
    ----------
    tol, gap_tol : float
        The violation, or else the relative gap, at which it may end.
    zero : float or None
        Where the objective is a distance: the value that is zero but for rounding.  A larger one
        has to be proved positive, by a gap that is not ``LOOSE``, whatever ``tol`` says.
    """

    tol: float
    gap_tol: float | None = None
    zero: float | None = None

    def met_by(self, certificate: Certificate) -> bool:
        relative = relative_gap(certificate)
        if self.zero is not None and certificate.objective > self.zero and relative > LOOSE:
            return False
        if self.gap_tol is not None:
            return relative <= self.gap_tol
        return certificate.violation <= self.tol

    def shortfall(self, certificate: Certificate) -> float:
        """By how much less the violation must be, where this was not met."""
        if self.gap_tol is None and certificate.violation > self.tol:
            return 0.5
        wanted = LOOSE if self.gap_tol is None else min(self.gap_tol, LOOSE)
        return float(np.clip(wanted / relative_gap(certificate) / 2, 1e-3, 0.5))


def describe(outcome: Outcome, certificate: Certificate, asked: Accuracy) -> str:
    """The sentence of ``Solution.status``."""
    value = max(abs(certificate.objective), abs(certificate.gap - certificate.objective))
    if np.isfinite(certificate.gap):
        gap = f"duality gap {relative_gap(certificate):.1e} of {value:.4g}"
        gap += ", if the kernel is positive semi-definite" * certificate.presumed
    else:
        gap = "no duality gap is known"
    # A stopped solver's own sums are not looked at again.
    checked = "verified in float64" if outcome.verified else "not verified"
    if asked.gap_tol is not None:
        figures = f"{gap} (asked: {asked.gap_tol:g}; {checked})"
    else:
        figures = f"violation {certificate.violation:.1e} (asked: {asked.tol:g}), {gap} ({checked})"
    return f"{outcome.value}: {figures}"


def solution(
    problem: Problem,
    coefficients: Floats,
    scores: Floats,
    certificate: Certificate,
    iterations: int,
    outcome: Outcome,
    asked: Accuracy,
) -> Solution:
    """Put a Solution together."""
    return Solution(
        coefficients=coefficients,
        gradient=problem.gradient(coefficients, scores),
        scores=scores,
        certificate=certificate,
        iterations=iterations,
        outcome=outcome,
        asked=asked,
        status=describe(outcome, certificate, asked),
    )


HEAVY = 1e30
"""A box this wide, or a ridge as small as its inverse, is what makes numbers overflow."""


def check_finite(problem: Problem, answer: Solution) -> None:
    """Refuse an answer whose gradient, objective or gap is not a number any more."""
    figures = [answer.objective, answer.primal]
    if np.isfinite(answer.gradient).all() and np.isfinite(figures).all() and answer.gap >= 0:
        return
    box = np.concatenate([problem.lower, problem.upper, problem.target])
    widest = float(np.abs(box[np.isfinite(box)]).max(initial=0.0))
    with np.errstate(divide="ignore"):
        price = float((1 / problem.ridge[problem.ridge > 0]).max(initial=widest))
    if price > HEAVY:
        raise ValueError(
            f"sample_weight and C allow coefficients up to {price:.1g}: the objective overflows "
            "float64. Divide the weights by their mean, or use a smaller C."
        )
    raise ValueError(NOT_FINITE)
