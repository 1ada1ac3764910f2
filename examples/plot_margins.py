r"""
What a margin is, point by point
================================

A linear support vector machine separates two clouds in the plane by the line
:math:`f(x) = w \cdot x + b = 0` and keeps as far from both as it can. The lines :math:`f(x) = 1`
and :math:`f(x) = -1` are the edges of its margin, :math:`1 / \|w\|` away on either side. Where no
line separates the clouds, some points pay a slack, and :math:`C` says how much slack costs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC

X, y = make_blobs(100, centers=[[-1.2, -1.0], [1.2, 1.0]], cluster_std=1.0, random_state=3)
svc = SVC(kernel="linear", C=0.5).fit(X, y)
print(svc.status_)

# %%
# The optimality conditions sort the training points into four cases. A point outside the margin
# has :math:`\alpha = 0`: it could be dropped and nothing would change. A point on the margin's
# edge has :math:`0 < \alpha < C`, and these points fix the intercept. A point inside the margin
# and a misclassified one have :math:`\alpha = C` and pay a slack. ``diagnose`` gives every point
# its case, with the numbers that decide it:

diagnosis = svc.diagnose(X, y)
print(diagnosis)

# %%
# The picture of it. Rings mark the support vectors, and their width is :math:`\alpha`; the thin
# lines are the slacks, from a point to the edge of the margin where it should be.

COLOURS = {
    "outside": "#9aa5b1",
    "on": "#2a7f9e",
    "inside": "#e0a030",
    "misclassified": "#c8553d",
}


def draw(ax, svc, X, y):
    """The separating line, its margin, and every training point coloured by its case."""
    diagnosis = svc.diagnose(X, y)
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    plane = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    f = svc.decision_function(np.column_stack([axis.ravel() for axis in plane]))
    f = f.reshape(plane[0].shape)
    ax.contourf(*plane, f, levels=[-1, 1], colors=["#eef3f6"])
    ax.contour(*plane, f, levels=[-1, 0, 1], colors="#22313f", linestyles=["--", "-", "--"])

    w = svc.coef_[0]
    side = np.where(y == svc.classes_[1], 1, -1)
    slack = np.asarray(diagnosis.slack)
    edge = X + np.outer(side * slack / (w @ w), w)
    paying = slack > 1e-6
    segments = np.stack([X[paying], edge[paying]])
    ax.plot(segments[..., 0], segments[..., 1], color="#c8553d", linewidth=0.6)

    case = np.asarray(diagnosis.case)
    for name, colour in COLOURS.items():
        for label, marker in zip(svc.classes_, "os", strict=True):
            rows = (case == name) & (y == label)
            ax.scatter(*X[rows].T, s=22, marker=marker, color=colour, zorder=2)
        ax.scatter([], [], color=colour, label=f"{name}: {np.count_nonzero(case == name)}")
    alpha = np.abs(svc.dual_coef_[0]) / svc.C
    ring = {"facecolors": "none", "edgecolors": "#22313f", "zorder": 3}
    ax.scatter(*X[svc.support_].T, s=60, linewidths=1.2 * alpha, **ring)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    ax.legend(loc="lower right", fontsize=8)


fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
draw(ax, svc, X, y)
ax.set_title(f"C = {svc.C}: margin {svc.margin_:.2f}, {len(svc.support_)} support vectors")
plt.show()

# %%
# What the fit proves
# -------------------
# The primal objective is what the lectures minimise, the dual is a bound from below. Their
# difference, the duality gap, bounds how far the answer can be from the best one. No reference
# solution is needed for that, and it holds for every kernel.

print(f"primal {diagnosis.primal:.9f}")
print(f"dual   {diagnosis.dual:.9f}")
print(f"gap    {svc.dual_gap_:.1e}")

# %%
# The price of slack
# ------------------
# A small C buys a wide margin with much slack, a large one a narrow margin with little.

fig, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for ax, C in zip(axes, (0.01, 0.5, 100.0), strict=True):
    machine = SVC(kernel="linear", C=C).fit(X, y)
    draw(ax, machine, X, y)
    ax.set_title(f"C = {C:g}: margin {machine.margin_:.2f}")
plt.show()
