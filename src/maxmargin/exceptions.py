"""What can go wrong, by name, and how a user is warned."""

from __future__ import annotations

import sys
import warnings

__all__ = ["InconsistentVersionWarning", "NotSeparableError"]

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values "
    "and need to be preprocessed."
)
"""What is said, in scikit-learn's words, when numbers have grown beyond float64."""


class NotSeparableError(ValueError):
    """A hard margin (C = inf) was asked of data that no hyperplane separates in feature space."""


class InconsistentVersionWarning(UserWarning):
    """A pickled model was written by another version of maxmargin.

    Parameters
    ----------
    estimator_name : str
        The class of the model.
    current_version, original_version : str
        This version and the one that wrote the model.
    """

    def __init__(self, *, estimator_name: str, current_version: str, original_version: str):
        super().__init__(estimator_name, current_version, original_version)
        self.estimator_name = estimator_name
        self.current_version = current_version
        self.original_version = original_version

    def __str__(self) -> str:
        return (
            f"This {self.estimator_name} was written by maxmargin {self.original_version} and is "
            f"read by {self.current_version}. It may not work, or give other results: fit it again."
        )


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line that called: the first outside maxmargin and what it is called through."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


INSIDE = {"maxmargin", "sklearn", "joblib"}
"""Packages whose lines say nothing to the user."""
