"""Support vector machines with certified answers: scikit-learn's interface, one engine.

Names are imported when they are first used, so that ``import maxmargin`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.linear.classification import LinearClassifier, LinearSVC, LogisticRegression
    from maxmargin.linear.novelty import LinearOneClassSVM
    from maxmargin.linear.path import regularization_path
    from maxmargin.linear.ranking import LinearRankSVM
    from maxmargin.linear.regression import LinearRegressor, LinearSVR, Ridge
    from maxmargin.perceptron.basic import BasicLinearClassifier
    from maxmargin.perceptron.budget import BudgetPerceptron
    from maxmargin.perceptron.dual import DualPerceptron
    from maxmargin.perceptron.kernel import KernelPerceptron
    from maxmargin.perceptron.kernel_pegasos import KernelPegasos
    from maxmargin.perceptron.linear import AveragedPerceptron, Perceptron
    from maxmargin.perceptron.passive_aggressive import PassiveAggressive
    from maxmargin.perceptron.pegasos import Pegasos
    from maxmargin.perceptron.voted import VotedPerceptron
    from maxmargin.svm.classification import SVC, NuSVC
    from maxmargin.svm.least_squares import LSSVC, LSSVR
    from maxmargin.svm.novelty import SVDD, OneClassSVM
    from maxmargin.svm.ranking import RankSVM
    from maxmargin.svm.regression import SVR, NuSVR
    from maxmargin.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "LSSVC",
    "LSSVR",
    "SVC",
    "SVDD",
    "SVR",
    "AveragedPerceptron",
    "BasicLinearClassifier",
    "BudgetPerceptron",
    "DualPerceptron",
    "KernelPegasos",
    "KernelPerceptron",
    "LinearClassifier",
    "LinearOneClassSVM",
    "LinearRankSVM",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PassiveAggressive",
    "Pegasos",
    "Perceptron",
    "RankSVM",
    "Ridge",
    "VotedPerceptron",
    "__version__",
    "regularization_path",
    "show_versions",
]

_HOMES = {
    "Ridge": "linear.regression",
    "LogisticRegression": "linear.classification",
    "LinearSVR": "linear.regression",
    "LinearSVC": "linear.classification",
    "LinearRegressor": "linear.regression",
    "LinearRankSVM": "linear.ranking",
    "LinearOneClassSVM": "linear.novelty",
    "LinearClassifier": "linear.classification",
    "AveragedPerceptron": "perceptron.linear",
    "BasicLinearClassifier": "perceptron.basic",
    "BudgetPerceptron": "perceptron.budget",
    "DualPerceptron": "perceptron.dual",
    "KernelPegasos": "perceptron.kernel_pegasos",
    "KernelPerceptron": "perceptron.kernel",
    "LSSVC": "svm.least_squares",
    "LSSVR": "svm.least_squares",
    "NuSVC": "svm.classification",
    "NuSVR": "svm.regression",
    "OneClassSVM": "svm.novelty",
    "PassiveAggressive": "perceptron.passive_aggressive",
    "Pegasos": "perceptron.pegasos",
    "Perceptron": "perceptron.linear",
    "RankSVM": "svm.ranking",
    "SVC": "svm.classification",
    "SVDD": "svm.novelty",
    "SVR": "svm.regression",
    "VotedPerceptron": "perceptron.voted",
    "regularization_path": "linear.path",
    "show_versions": "versions",
}
"""Public names and the modules they come from."""

_MODULES = (
    "callbacks",
    "exceptions",
    "io",
    "kernels",
    "linear",
    "monitor",
    "multiclass",
    "perceptron",
    "problem",
    "reference",
    "solve",
    "strategies",
    "svm",
)
"""Modules that are there without an import of their own."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
