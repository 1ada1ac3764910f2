r"""
Losses
======

A linear machine minimises a penalty plus what its rows cost. What a row costs is the *loss*: of a
classifier a function of the margin :math:`m = y\,f(x)`, of a regression machine one of the residual
:math:`r = f(x) - t`. All of them are objects of ``maxmargin.linear`` that know their value, slope,
curvature and conjugate.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.linear import (
    EpsilonInsensitive,
    Hinge,
    HuberisedHinge,
    HuberisedInsensitive,
    Logistic,
    PerceptronLoss,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

BLUE, RED, GREEN, GOLD, INK = "#2a7f9e", "#c8553d", "#5b8c5a", "#d9a441", "#22313f"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


def draw(ax, curves, x, xlabel, title):
    """Losses as functions of the score; all have the target at which the score is x."""
    for label, (values, colour, style) in curves.items():
        ax.plot(x, values, style, color=colour, label=label, linewidth=1.8)
    ax.set(xlabel=xlabel, title=title, xlim=(x[0], x[-1]))
    ax.axhline(0, color=INK, linewidth=0.5)
    ax.legend(frameon=False)


# %%
# Of the margin
# -------------
# What all of them stand for is the number of errors, the step at zero, which nobody can minimise.
# The perceptron's loss ends there; the hinge asks for a margin of 1, and its square asks harder.
# The logistic loss never ends, and touches no corner. Divided by :math:`\log 2` it would lie above
# the step, as the hinge does.

m = np.linspace(-2.2, 2.6, 961)
y = np.ones_like(m)
fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharex=True)
draw(
    axes[0],
    {
        "error": ((m < 0).astype(float), "#9aa5ad", "-"),
        "perceptron": (PerceptronLoss().value(y, m), GOLD, "-"),
        "hinge": (Hinge().value(y, m), BLUE, "-"),
        "squared hinge": (SquaredHinge().value(y, m), RED, "-"),
        "Huberised hinge": (HuberisedHinge().value(y, m), INK, "--"),
        "logistic": (Logistic().value(y, m), GREEN, "-"),
    },
    m,
    "margin  y f(x)",
    "what a row costs",
)
axes[0].set_ylim(-0.15, 4.2)
draw(
    axes[1],
    {
        "perceptron": (PerceptronLoss().derivative(y, m), GOLD, "-"),
        "hinge": (Hinge().derivative(y, m), BLUE, "-"),
        "squared hinge": (SquaredHinge().derivative(y, m), RED, "-"),
        "Huberised hinge": (HuberisedHinge().derivative(y, m), INK, "--"),
        "logistic": (Logistic().derivative(y, m), GREEN, "-"),
    },
    m,
    "margin  y f(x)",
    "its slope: minus the row's pull on the weights",
)
axes[1].set_ylim(-2.6, 0.15)
plt.show()

# %%
# The slope, times the price of the row, is the coefficient that the row has in the solution. Where
# it is zero the row is no support vector: beyond the margin for the hinge and its square, nowhere
# for the logistic loss.
#
# Of the residual
# ---------------
# Least squares never forgives. Support vector regression forgives what lies within a tube of half
# the width :math:`\varepsilon`, and beyond it counts the distance: an outlier pulls no harder than
# any other row outside.

r = np.linspace(-2.4, 2.4, 961)
t = np.zeros_like(r)
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.axvspan(-0.5, 0.5, color="#eef3f5")
draw(
    ax,
    {
        "squared": (Squared().value(t, r), GREEN, "-"),
        r"$\varepsilon$-insensitive": (EpsilonInsensitive(0.5).value(t, r), BLUE, "-"),
        "its square": (SquaredEpsilonInsensitive(0.5).value(t, r), RED, "-"),
        "Huberised": (HuberisedInsensitive(0.5, width=1.0).value(t, r), INK, "--"),
        "Huber's": (HuberisedInsensitive(0.0, width=0.6).value(t, r), GOLD, "--"),
    },
    r,
    "residual  f(x) - t",
    r"what a row costs, $\varepsilon = 1/2$",
)
ax.set_ylim(-0.1, 2.6)
plt.show()

# %%
# Kinks, rounded
# --------------
# Newton's method needs a curvature, and a loss with kinks has none. ``smoothed(width)`` is the
# largest function below the loss whose curvature is at most 1 / width; it is nowhere more than
# width / 2 below. A solver goes from wide to narrow, and each solution is the start of the next.
# The duality gap that it reports is always that of the true loss.

widths = (2.0, 1.0, 0.5, 0.25)
shades = plt.get_cmap("Blues")(np.linspace(0.35, 0.8, len(widths)))
fig, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, loss, x, target, label in (
    (axes[0], Hinge(), np.linspace(-1.6, 1.8, 681), y, "margin"),
    (axes[1], EpsilonInsensitive(0.5), np.linspace(-2.4, 2.4, 681), t, "residual"),
):
    for width, shade in zip(widths, shades, strict=True):
        values = loss.smoothed(width).value(target[:681], x)
        ax.plot(x, values, color=shade, label=f"width {width:g}")
    ax.plot(x, loss.value(target[:681], x), color=INK, linewidth=1, label=loss.name)
    ax.set(xlabel=label, xlim=(x[0], x[-1]), ylim=(-0.1, 2.0))
    ax.legend(frameon=False)
plt.show()
