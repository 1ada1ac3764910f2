"""Kernels are values: each is a small object that can be compared, cloned, searched and called."""

from maxmargin.kernels.base import FittedKernel, Items, Kernel, native, on_matrix
from maxmargin.kernels.precomputed import FromFunction, Precomputed
from maxmargin.kernels.symmetry import sample
from maxmargin.kernels.vector import RBF, Laplacian, Linear, Polynomial, Sigmoid

__all__ = [
    "RBF",
    "FittedKernel",
    "FromFunction",
    "Items",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "native",
    "on_matrix",
    "sample",
]
