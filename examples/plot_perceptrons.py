r"""
The doorway: perceptrons
========================

A perceptron looks at one example after the other. If the score :math:`w \cdot x` has the wrong
sign, the example is added to :math:`w`, or subtracted from it; otherwise nothing happens. If some
plane separates the classes, the mistakes come to an end, however long the stream of examples is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import (
    AveragedPerceptron,
    BasicLinearClassifier,
    BudgetPerceptron,
    DualPerceptron,
    KernelPerceptron,
    Perceptron,
    VotedPerceptron,
)

rng = np.random.default_rng(4)
y = np.repeat([-1, 1], 40)
X = 0.8 * rng.normal(size=(80, 2)) + np.outer(y, [1.3, 1.0])
X += np.outer(y * np.maximum(0, 0.25 - y * (X @ [0.79, 0.61])), [0.79, 0.61])  # a margin
X += [2.0, -0.5]

p = Perceptron(shuffle=False, tol=None).fit(X, y)
print(f"{p.n_mistakes_} mistakes in {p.n_iter_} passes; at most {p.mistake_bound(X, y):.0f}")

# %%
# The bound is :math:`(R / \gamma)^2`: the length of the longest example over the largest margin of
# any plane, squared. The margin is that of the hard-margin support vector machine, and it is
# looked up there.
#
# The same predictor in dual form: :math:`w = \sum_i \alpha_i y_i x_i`, where :math:`\alpha_i`
# counts how often example i was misclassified. Rings below are the wider the larger
# :math:`\alpha` is.

q = DualPerceptron(shuffle=False, tol=None).fit(X, y)
print("the same weights:", np.allclose(p.coef_, q.coef_), "  alpha:", q.alpha_[q.support_])

BLUE, RED, INK = "#2a7f9e", "#c8553d", "#22313f"


def draw(ax, model, X, y, title):
    """The regions of a classifier, the line between them, and the examples."""
    low, high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    plane = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    f = model.decision_function(np.column_stack([axis.ravel() for axis in plane]))
    f = f.reshape(plane[0].shape)
    ax.contourf(*plane, f >= 0, levels=[-0.5, 0.5, 1.5], colors=["#f7e9e5", "#e5f0f4"])
    ax.contour(*plane, f, levels=[0], colors=INK, linewidths=1)
    for label, colour, marker in ((y.min(), RED, "s"), (y.max(), BLUE, "o")):
        ax.scatter(*X[y == label].T, s=14, color=colour, marker=marker, zorder=2)
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])


fig, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
draw(axes[0], BasicLinearClassifier().fit(X, y), X, y, "the plane between the class means")
draw(axes[1], q, X, y, f"perceptron: {q.n_mistakes_} mistakes")
rings = {"facecolors": "none", "edgecolors": INK, "zorder": 3}
axes[1].scatter(*X[q.support_].T, s=60, linewidths=0.7 * np.sqrt(q.alpha_[q.support_]), **rings)
average = AveragedPerceptron(shuffle=False, tol=None).fit(X, y)
draw(axes[2], average, X, y, "the average of all its weights")
plt.show()

# %%
# Classes that overlap
# --------------------
# Without a separator the mistakes never end, and the last weights depend on the last rows. The
# average of all weights, and the vote of all predictors, are calmer. Here the examples are half
# moons and the kernel is Gaussian; the scores are taken on new data, after each of ten passes.

X, y = make_moons(400, noise=0.3, random_state=0)
X_new, y_new = make_moons(4000, noise=0.3, random_state=1)
options = {"kernel": "rbf", "gamma": 2.0, "random_state": 0}
last, mean = KernelPerceptron(**options), KernelPerceptron(average=True, **options)
vote = VotedPerceptron(**options)
errors = {"last": [], "average": [], "vote": []}
for seed in range(10):
    rows = np.random.default_rng(seed).permutation(len(y))
    for name, model in zip(errors, (last, mean, vote), strict=True):
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        errors[name].append(1 - model.score(X_new, y_new))

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (name, values), colour in zip(errors.items(), (RED, BLUE, INK), strict=True):
    ax.plot(range(1, 11), values, "o-", color=colour, label=name, markersize=4)
ax.set(xlabel="passes", ylabel="error on new data", ylim=(0, None))
ax.legend()
plt.show()

# %%
# A budget
# --------
# Every mistake is a support vector, and there is no end of mistakes. A budget keeps a few: the
# Forgetron shrinks all coefficients and drops the oldest, the Projectron takes no example that is
# nearly a combination of those it has.

options |= {"max_iter": 10, "tol": None}
models = {
    "no limit": KernelPerceptron(**options),
    "forgetron": BudgetPerceptron(budget=40, policy="forgetron", **options),
    "projectron": BudgetPerceptron(budget=40, policy="projectron", **options),
}
fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    error = 1 - model.score(X_new, y_new)
    draw(ax, model, X, y, f"{name}: {len(model.support_)} support vectors, {error:.1%} error")
    ax.scatter(*model.support_vectors_.T, s=40, linewidths=0.7, **rings)
plt.show()
