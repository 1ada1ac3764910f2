"""Support vector machines with certified answers: scikit-learn's interface, one engine.

Names are imported when they are first used, so that ``import maxmargin`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "SVC": "svm.classification",
    "NuSVC": "svm.classification",
    "SVR": "svm.regression",
    "NuSVR": "svm.regression",
    "OneClassSVM": "svm.novelty",
    "SVDD": "svm.novelty",
    "RankSVM": "svm.ranking",
    "LSSVC": "svm.least_squares",
    "LSSVR": "svm.least_squares",
    "show_versions": "versions",
}
"""Public names and the modules that hold them."""

_MODULES = ("callbacks", "exceptions", "kernels", "problem", "reference", "solve", "strategies", "svm")
"""Modules that are there without an import of their own."""

__all__ = [*_EXPORTS, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS, *_MODULES])
