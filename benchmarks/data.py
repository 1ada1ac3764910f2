"""The data sets: archives of a folder, scikit-learn's own, and random ones.

A :class:`Source` is a name and a way to load it. What it loads is float64 (LIBLINEAR takes nothing
else), CSR or C-ordered, with class labels 0, 1, ... where the classes are what is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.preprocessing import MinMaxScaler, StandardScaler

Labels = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Data:
    """Rows to learn from and, where the data have them, rows to test on."""

    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: np.ndarray | None = None

    def head(self, per_class: int = 50, classes: bool = True) -> Data:
        """The first rows of each class: what every runner fits once before the clock starts."""
        labels = np.unique(self.y) if classes else []
        some = [np.flatnonzero(self.y == label)[:per_class] for label in labels]
        rows = np.sort(np.concatenate(some)) if classes else np.arange(min(per_class, len(self.y)))
        return Data(self.X[rows], self.y[rows])


@dataclass(frozen=True)
class Source:
    """A data set by name. ``needs_folder``: whether it lies in the folder given by ``--data``."""

    name: str
    load: Callable[[Path | None], Data]
    needs_folder: bool = False


# ---- Archives --------------------------------------------------------------------------------


def array(archive: Mapping[str, np.ndarray], key: str) -> Any:
    """One matrix of an archive, dense or CSR."""
    if key in archive:
        return np.ascontiguousarray(archive[key], dtype=np.float64)
    values = archive[f"{key}_data"].astype(np.float64)
    # LIBSVM and LIBLINEAR take 32-bit indices only.
    indices, indptr = (archive[f"{key}_{part}"].astype(np.int32) for part in ("indices", "indptr"))
    return sp.csr_array((values, indices, indptr), shape=tuple(archive[f"{key}_shape"]))


def split(path: Path, rng: np.random.Generator, third: bool = True) -> Data:
    """Training and test rows: the literature's split, or a random third for the test (or none)."""
    archive = np.load(path)
    if "y_test" in archive:
        X, y = array(archive, "X_train"), archive["y_train"]
        return Data(X, y, array(archive, "X_test"), archive["y_test"])
    suffix = "_train" if "y_train" in archive else ""
    X, y = array(archive, f"X{suffix}"), archive[f"y{suffix}"]
    if not third:
        return Data(X, y)
    return without_third(X, y, rng)


def without_third(X: Any, y: np.ndarray, rng: np.random.Generator) -> Data:
    """A random third is kept for the test."""
    test, train = np.split(rng.permutation(len(y)), [len(y) // 3])
    return Data(X[train], y[train], X[test], y[test])


SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler}


def scaled(data: Data, scaling: str | float | None) -> Data:
    """Divided by a number, or by what the training rows say."""
    if scaling is None:
        return data
    if isinstance(scaling, str):
        change = SCALERS[scaling]().fit(data.X).transform
    else:

        def change(X: Any) -> Any:
            return X / scaling

    test = None if data.X_test is None else change(data.X_test)
    return Data(change(data.X), data.y, test, data.y_test)


def coded(data: Data, positive: Labels | None) -> Data:
    """Classes as 0, 1, ...: two, the positive one as 1, or all in their order."""
    labels = np.unique(data.y)

    def code(y: np.ndarray | None) -> np.ndarray | None:
        if y is None:
            return None
        return np.asarray(positive(y)).astype(np.int64) if positive else np.searchsorted(labels, y)

    return Data(data.X, code(data.y), data.X_test, code(data.y_test))  # type: ignore[arg-type]


def archive(
    name: str,
    scaling: str | float | None = None,
    positive: Labels | None = None,
    third: bool = True,
    regression: bool = False,
) -> Source:
    """A set of the folder: ``positive`` says which labels are the positive class, None keeps all.

    ``third=False`` learns from all rows where the literature has no split. The target of a
    regression is standardised.
    """

    def load(folder: Path | None) -> Data:
        if folder is None:
            raise ValueError(f"{name} lies in a folder of archives: say which with --data DIR")
        data = scaled(split(folder / f"{name}.npz", np.random.default_rng(0), third), scaling)
        return standard_target(data) if regression else coded(data, positive)

    return Source(name, load, needs_folder=True)


def standard_target(data: Data) -> Data:
    """Regression: the target with mean 0 and variance 1."""
    mean, deviation = data.y.mean(), data.y.std()
    test = None if data.y_test is None else (data.y_test - mean) / deviation
    return Data(data.X, (data.y - mean) / deviation, data.X_test, test)


# ---- Without a folder ------------------------------------------------------------------------


def shipped(name: str, regression: bool = False, positive: Labels | None = None) -> Source:
    """One of the sets that scikit-learn ships, standardised, a third of it for the test."""

    def load(folder: Path | None) -> Data:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        data = scaled(without_third(X, y, np.random.default_rng(0)), "standard")
        return standard_target(data) if regression else coded(data, positive)

    return Source(name, load)


def gaussian(rows: int, features: int) -> Source:
    """Two overlapping classes of normally distributed rows, as small as asked."""

    def load(folder: Path | None) -> Data:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2 * rows, features))
        y = (X[:, 0] + 0.5 * rng.standard_normal(2 * rows) > 0).astype(np.int64)
        return Data(X[:rows], y[:rows], X[rows:], y[rows:])

    return Source(f"random_{rows}x{features}", load)
