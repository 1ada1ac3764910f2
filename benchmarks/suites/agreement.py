"""How far our SVC agrees with LIBSVM, on every classification set at hand.

    python -m benchmarks agreement --data DIR

writes ``benchmarks/results/agreement.csv``. LIBSVM is scikit-learn's SVC. Sets of more than 10 000
rows are subsampled (news20, with its 56 437 features, to fewer). For each set, one class against
the rest (the dual objective is that of one problem), and then all classes by pairs (the
predictions):

- ``objective``: (ours - LIBSVM's) / |LIBSVM's|, the dual objectives recomputed here in float64 from
  the coefficients, both fitted at tol=1e-6. Negative: ours is the better one.
- ``gap`` and ``true``, each at tol=1e-3 and tol=1e-6: the duality gap that our fit claims before it
  is polished, and how far its objective lies above that of a fit with a gap of 1e-10, both over the
  objective. A true distance above the gap would be a false certificate.
- ``same``: share of test rows with the same prediction, both fitted at tol=1e-3.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC as LIBSVM

from benchmarks.data import split
from maxmargin import SVC
from maxmargin.kernels import RBF
from maxmargin.problem import c_svc
from maxmargin.solve import solve

RESULTS = Path(__file__).parents[1] / "results" / "agreement.csv"
COLUMNS = ["data", "rows", "C", "gamma", "objective"]
COLUMNS += ["gap 1e-3", "true 1e-3", "gap 1e-6", "true 1e-6", "same"]
MOST_ROWS = 10_000
MOST_WORDS = 100_000_000  # rows x features of a sparse set, so that LIBSVM ends in minutes

# Scaling, C and gamma as the data's own index gives them; "scale" where it is silent.
SETS = {
    "mnist": (lambda X: X / 255, 10, 0.02),
    "a9a": (None, 1, 1 / 123),
    "w8a": (None, 10, 0.05),
    "ijcnn1": (None, 32, 2),
    "cod-rna": (None, 10, 1 / 8),
    "covtype": ("standard", 10, 1 / 54),
    "letter": (lambda X: X / 15, 10, 4),
    "shuttle": ("minmax", 100, 10),
    "usps": (None, 10, 1 / 128),
    "satimage": ("minmax", 10, 1),
    "news20_tfidf": (None, 1, "scale"),
    "lasvm_reuters": (None, 10, 1),
    "madelon": ("standard", 1, "scale"),
    "dna": (None, 10, "scale"),
    "vowel": (None, 10, "scale"),
    "vehicle": ("standard", 10, "scale"),
    "spambase": ("standard", 10, "scale"),
    "mushrooms": (None, 1, "scale"),
    "elec2": ("standard", 10, "scale"),
    "svmguide1": ("standard", 10, "scale"),
    "svmguide3": (None, 10, "scale"),
    "australian": ("standard", 1, "scale"),
    "german_numer_scale": (None, 1, "scale"),
    "heart_scale": (None, 1, "scale"),
    "diabetes_scale": (None, 1, "scale"),
    "fourclass_scale": (None, 10, "scale"),
    "ionosphere": (None, 10, "scale"),
    "sonar": (None, 10, "scale"),
    "leukemia": (None, 1, "scale"),
}


def load(path, scaling):
    """Training and test rows: the literature's split, or a random third for the test."""
    rng = np.random.default_rng(0)
    data = split(path, rng)
    X, y, X_test = data.X, data.y, data.X_test
    most = min(MOST_ROWS, MOST_WORDS // X.shape[1]) if sp.issparse(X) else MOST_ROWS
    some = rng.permutation(len(y))[:most]
    X, y = X[some], y[some]
    X_test = X_test[rng.permutation(X_test.shape[0])[:MOST_ROWS]]
    if scaling == "standard":
        scaler = StandardScaler().fit(X)
    elif scaling == "minmax":
        scaler = MinMaxScaler().fit(X)
    else:
        scale = scaling or (lambda X: X)
        return scale(X), y, scale(X_test)
    return scaler.transform(X), y, scaler.transform(X_test)


def dual_objective(svc, X, gamma):
    """1/2 c'Kc - sum|c|, in float64."""
    coefficients = svc.dual_coef_
    c = np.ravel(coefficients.toarray() if sp.issparse(coefficients) else coefficients)
    vectors = X[svc.support_]
    value = -np.abs(c).sum()
    for first in range(0, len(c), 1000):
        some = slice(first, first + 1000)
        K = pairwise_kernels(vectors[some], vectors, metric="rbf", gamma=gamma)
        value += c[some] @ (K @ c) / 2
    return value


def fit(machine, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(X, y)


def claims(X, one, C, gamma):
    """The gap claimed and the true distance from the optimum at two tolerances, unpolished."""
    problem = c_svc(np.where(one, 1.0, -1.0), C)
    items = RBF(gamma=gamma).fit(X).prepare(X)
    best = solve(problem, items, gap_tol=1e-10)
    found = []
    for tol in (1e-3, 1e-6):
        rough = solve(problem, items, tol=tol, polish=False)
        found += [rough.gap, rough.objective - best.objective]
    return [value / abs(best.objective) for value in found]


def measure(path, scaling, C, gamma):
    X, y, X_test = load(path, scaling)
    labels, counts = np.unique(y, return_counts=True)
    one = y == labels[np.argmin(np.abs(counts - len(y) / 2))]
    if gamma == "scale":
        variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
        gamma = 1 / (X.shape[1] * variance)
    options = {"C": C, "gamma": gamma}
    ours = fit(SVC(tol=1e-6, **options), X, one)
    theirs = fit(LIBSVM(tol=1e-6, cache_size=2000, **options), X, one)
    mine, other = (dual_objective(machine, X, gamma) for machine in (ours, theirs))
    pairs = fit(SVC(**options), X, y)
    their_pairs = fit(LIBSVM(cache_size=2000, **options), X, y)
    same = np.mean(pairs.predict(X_test) == their_pairs.predict(X_test))
    difference = (mine - other) / abs(other)
    figures = [f"{value:.1e}" for value in (difference, *claims(X, one, C, gamma))]
    return [path.stem, len(y), C, f"{gamma:.4g}", *figures, f"{same:.4f}"]


def main(given=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks agreement", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the .npz archives")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    arguments = parser.parse_args(given)
    rows = []
    for name in arguments.sets:
        row = measure(arguments.data / f"{name}.npz", *SETS[name])
        rows.append(
            [
                f"{v:.2e}" if isinstance(v, float) and i != len(row) - 1 else v
                for i, v in enumerate(row)
            ]
        )
        print(*rows[-1], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
