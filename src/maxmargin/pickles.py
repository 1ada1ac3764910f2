"""Fitted models remember which version wrote them."""

from __future__ import annotations

import warnings
from typing import Any

import maxmargin
from maxmargin.exceptions import InconsistentVersionWarning


class Versioned:
    """An estimator whose pickles carry the version, and warn when another one reads them."""

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
        super().__setstate__(state)  # type: ignore[misc]
