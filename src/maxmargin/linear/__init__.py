"""Linear machines: a loss, a penalty, and solvers that say what they need of them.

The problem stands in ``problem``, what rows and weights cost in ``losses`` and ``penalties``; each
solver is a file of its own, and ``choose`` knows which suits which problem.
"""

from maxmargin.linear.coordinate import DualCoordinate
from maxmargin.linear.coordinate_newton import CoordinateNewton
from maxmargin.linear.crammer_singer import SequentialDual
from maxmargin.linear.cutting_plane import CuttingPlane
from maxmargin.linear.interior_point import InteriorPoint
from maxmargin.linear.losses import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    HuberisedInsensitive,
    Logistic,
    Loss,
    MulticlassHinge,
    PerceptronLoss,
    Softmax,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from maxmargin.linear.newton import Newton
from maxmargin.linear.penalties import L1, L2, ElasticNet, Group, Penalty
from maxmargin.linear.problem import Design, LinearCertificate, LinearProblem
from maxmargin.linear.proximal_gradient import ProximalGradient
from maxmargin.linear.solver import LinearSolution, Progress, Solver
from maxmargin.linear.stochastic import AveragedSGD, Pegasos, ProxSAGA

__all__ = [
    "L1",
    "L2",
    "AveragedSGD",
    "CoordinateNewton",
    "CuttingPlane",
    "Design",
    "DualCoordinate",
    "ElasticNet",
    "EpsilonInsensitive",
    "Group",
    "Hinge",
    "HuberisedHinge",
    "HuberisedInsensitive",
    "InteriorPoint",
    "LinearCertificate",
    "LinearProblem",
    "LinearSolution",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Newton",
    "Pegasos",
    "Penalty",
    "PerceptronLoss",
    "Progress",
    "ProxSAGA",
    "ProximalGradient",
    "SequentialDual",
    "Softmax",
    "Solver",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
]
