"""The machine in words: what explains a time, and nothing that names whose machine it is."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.runners.base import NotAvailable, Runner

CPUINFO = Path("/proc/cpuinfo")
EXTENSIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimd", "sve")
PACKAGES = ("numpy", "scipy", "scikit-learn", "maxmargin")


def processor() -> dict[str, str]:
    """The model's name and the extensions of its instruction set that matter here."""
    fields: dict[str, str] = {}
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    flags = (fields.get("flags") or fields.get("Features", "")).split()
    return {
        "processor": fields.get("model name") or platform.processor() or "unknown",
        "instructions": " ".join(name for name in EXTENSIONS if name in flags) or "unknown",
    }


def cores() -> int:
    """Those that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def memory() -> str:
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    if not all(name in os.sysconf_names for name in names):
        return "unknown"
    page, pages = (os.sysconf(name) for name in names)
    return f"{page * pages / 2**30:.0f} GiB"


def describe(runners: Sequence[Runner] = ()) -> dict[str, str]:
    """Processor, cores, memory, system, and the versions of everything that was compared."""
    described = {
        **processor(),
        "cores": str(cores()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            described[package] = version(package)
        except PackageNotFoundError:
            described[package] = "not installed"
    for runner in runners:
        try:
            described.setdefault(runner.package, runner.version())
        except NotAvailable:
            described.setdefault(runner.package, "not installed")
    return described
