"""What a bug report needs to say of the machine."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

DEPENDENCIES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "matplotlib", "rich")


def show_versions() -> None:
    """Print the versions of maxmargin and its dependencies, the instruction set and the threads.

    Examples
    --------
    >>> import maxmargin
    >>> maxmargin.show_versions()  # doctest: +SKIP
    """
    for name, value in versions().items():
        print(f"{name:>15}: {value}")


def versions() -> dict[str, str]:
    """What ``show_versions`` prints."""
    from maxmargin import __version__, _core
    from maxmargin.threads import effective_threads

    return {
        "maxmargin": __version__,
        "instruction set": _core.instruction_set(),
        "threads": str(effective_threads()),
        "python": sys.version.split()[0],
        "system": platform.platform(),
        **{name: _version(name) for name in DEPENDENCIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
