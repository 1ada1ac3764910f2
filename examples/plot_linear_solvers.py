r"""
Linear solvers, step by step
============================

One problem, the linear support vector machine of the lectures with a penalised intercept, and six
ways to its optimum. Every solver reports the best point that it has seen and what that point
proves, the duality gap, so that an honest comparison needs no optimum: but one of them finds it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin import LinearSVC
from maxmargin.linear import AveragedSGD, CuttingPlane, DualCoordinate, Newton, Pegasos

X, y = load_digits(return_X_y=True)
X, y = X / 16, y % 2  # odd or even


def fit(solver, max_iter, gap_tol):
    """The machine after so many iterations, or when so much is proven."""
    machine = LinearSVC(
        loss="hinge", solver=solver, max_iter=max_iter, gap_tol=gap_tol, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was stopped early is the point here
        return machine.fit(X, y)


optimum = fit("newton", 1000, 1e-12)
print(f"the optimum: {optimum.objective_:.9f}, at most {optimum.dual_gap_:.0e} too high")
print("Newton:", optimum.status_)

# %%
# An iteration of Pegasos, averaged SGD and coordinate descent is a pass over the data; one of the
# cutting plane is two passes; one of Newton's method is two passes and a matrix of the second
# derivatives, whose cost is that of many more (few of the rows enter it near the end). Coordinate
# descent takes eight passes before it looks up for the first time, since a look costs a pass too.

METHODS = {
    "Pegasos": (Pegasos(), "#c8553d", "-"),
    "Pegasos, batches of 20": (Pegasos(batch=20), "#c8553d", ":"),
    "averaged SGD": (AveragedSGD(), "#d9a441", "-"),
    "cutting plane": (CuttingPlane(), "#5b8c5a", "-"),
    "dual coordinate descent": (DualCoordinate(), "#2a7f9e", "-"),
    "Newton": (Newton(), "#22313f", "-"),
}
ITERATIONS = np.unique(np.geomspace(1, 160, 20).astype(int))

fig, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained", sharex=True, sharey=True)
for name, (solver, colour, style) in METHODS.items():
    curve = {}
    for limit in ITERATIONS:
        machine = fit(solver, int(limit), 1e-9)
        above = max(machine.objective_ - optimum.objective_, 1e-12)
        curve[machine.n_iter_] = (above, machine.dual_gap_)
        if machine.fit_status_ == 0:  # it has arrived
            break
    values = np.array(list(curve.values())) / optimum.objective_
    for ax, column in zip(axes, values.T, strict=True):
        ax.plot(list(curve), column, style, color=colour, label=name, marker=".", markersize=5)
axes[0].set(xscale="log", yscale="log", ylim=(1e-9, 1e3), ylabel="relative to the optimum")
axes[0].set(xlabel="iterations", title="how far the objective is above the optimum")
axes[1].set(xlabel="iterations", title="how far it can be at most: the duality gap")
axes[0].legend(frameon=False, loc="lower left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e8ecee", linewidth=0.6)
plt.show()

# %%
# Pegasos begins with steps that are far too long, and its error falls like the inverse of the
# passes: a digit costs ten times as many. An average of its points is calmer from the start. The
# cutting plane needs some dozens of steps whatever the number of rows, and each brings the bound
# nearer. Coordinate descent is slow at the end here, with few features that are alike. Newton's
# method takes digits faster and faster.
