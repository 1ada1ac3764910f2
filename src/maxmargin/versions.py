"""What a bug report should say about the machine and its software."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_info

from maxmargin import __version__, _core
from maxmargin.threads import effective_threads

DEPENDENCIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "threadpoolctl",
    "matplotlib",
    "pandas",
    "polars",
    "rich",
)


def show_versions() -> None:
    """Print the versions, the instruction set of the kernels and the threads in use."""
    print("System:")
    print(f"    python: {sys.version.split()[0]} ({platform.python_implementation()})")
    print(f"   machine: {platform.machine()}, {platform.platform()}")
    print("\nmaxmargin:")
    print(f"           version: {__version__}")
    print(f"   instruction set: {_core.instruction_set()}")
    print(f"  threads (n_jobs=None): {effective_threads(None)}")
    print("\nDependencies:")
    for name in DEPENDENCIES:
        print(f"  {name:>14}: {_version(name)}")
    print("\nThread pools:")
    for pool in threadpool_info():
        print(f"  {pool['user_api']} ({pool['internal_api']}): {pool['num_threads']} threads")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
