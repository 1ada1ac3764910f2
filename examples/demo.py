"""Recognise handwritten digits, with proof: `make demo` runs this.

An SVC is fitted on the digits that scikit-learn ships, with its progress shown; what it reached
and how far that can be from the best possible is printed; and a picture shows the test digits
that were the hardest and the easiest for it.
"""

import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

from maxmargin import SVC

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path("demo.png")
INK, RIGHT, WRONG = "#22313f", "#2a7f9e", "#c8553d"


def draw_confusion(axes, y, predicted):
    """How many test digits of each kind were taken for which: the diagonal is right."""
    counts = confusion_matrix(y, predicted)
    axes.imshow(np.sqrt(counts), cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        if count:
            colour = "white" if row == column else WRONG
            axes.text(column, row, count, ha="center", va="center", fontsize=8, color=colour)
    axes.set(xticks=range(10), yticks=range(10), xlabel="predicted", ylabel="true")
    axes.set_title("test digits, counted", loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_margins(axes, margins):
    """The distances to the nearest decision boundary; the wrong side is left of zero."""
    edges = np.linspace(margins.min(), margins.max(), 40)
    edges = np.sort(np.append(edges, 0.0))
    axes.hist(margins[margins >= 0], edges, color=RIGHT)
    axes.hist(margins[margins < 0], edges, color=WRONG)
    axes.axvline(0, color=INK, linewidth=1)
    axes.set(xlabel="geometric margin", yticks=[])
    axes.set_title("how far from the boundary", loc="left")
    axes.spines[["top", "left", "right"]].set_visible(False)


def draw_digits(figure, images, y, predicted, margins, title):
    """A gallery of digits, each with the label it got and its margin."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    axes = figure.subplots(-(-len(images) // 8), 8)
    for ax, image, truth, label, margin in zip(
        axes.flat, images, y, predicted, margins, strict=True
    ):
        ax.imshow(image, cmap="gray_r", interpolation="bicubic")
        colour = RIGHT if truth == label else WRONG
        verdict = f"{label}" if truth == label else f"{label}, is {truth}"
        ax.set_title(f"{verdict}  ({margin:+.2f})", fontsize=8, color=colour, pad=2)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(color=colour, linewidth=1.5)


def draw(images, y, predicted, margins, title):
    """The picture: confusion and margins on the left, the telling digits on the right."""
    figure = plt.figure(figsize=(14, 7.5), layout="constrained", facecolor="white")
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, color=INK)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2])
    above, below = left.subplots(2, 1, height_ratios=[3, 1])
    draw_confusion(above, y, predicted)
    draw_margins(below, margins)
    hardest, easiest = np.split(np.argsort(margins), [24])
    upper, lower = right.subfigures(2, 1, height_ratios=[3, 1])
    for part, rows, caption in (
        (upper, hardest, "the hardest: label and margin, the true label where it differs"),
        (lower, easiest[-8:], "the easiest"),
    ):
        draw_digits(part, images[rows], y[rows], predicted[rows], margins[rows], caption)
    figure.savefig(PICTURE, dpi=120)


def main():
    digits = load_digits()
    X_train, X_test, y_train, y_test, _, images = train_test_split(
        digits.data / 16, digits.target, digits.images, test_size=0.4, random_state=0
    )
    svc = SVC(C=10).set_callbacks(ProgressBar())
    start = time.perf_counter()
    svc.fit(X_train, y_train)
    seconds = time.perf_counter() - start

    predicted = svc.predict(X_test)
    accuracy = np.mean(predicted == y_test)
    n_wrong = np.count_nonzero(predicted != y_test)
    print(f"accuracy          {accuracy:.2%} ({n_wrong} of {len(y_test)} test digits wrong)")
    print(f"support vectors   {len(svc.support_)} of {len(y_train)} training digits")
    print(f"certified         the optimum is within {svc.dual_gap_:.2e} of {svc.objective_:.6g}")
    print(f"status            {svc.status_}")
    print(f"time              {seconds:.3f} s")

    title = f"{accuracy:.1%} right, {len(svc.support_)} support vectors, {seconds:.2f} s"
    draw(images, y_test, predicted, svc.margins(X_test, y_test), title)
    print(f"picture           {PICTURE.resolve()}")


if __name__ == "__main__":
    main()
