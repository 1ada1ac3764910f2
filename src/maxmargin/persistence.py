"""What a pickled model carries: NumPy and Python only, and the version that wrote it."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator

import maxmargin
from maxmargin.exceptions import InconsistentVersionWarning


class Versioned(BaseEstimator):
    """An estimator whose pickles know their version, and warn when another one reads them."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "_maxmargin_version": maxmargin.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_maxmargin_version", "an unknown version")
        if version != maxmargin.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_version=maxmargin.__version__,
                    original_version=version,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)
