"""The kernel perceptron on mnist, and a perceptron on a budget on a9a.

    python -m benchmarks.perceptron --data DIR [--rows 60000]

mnist: polynomial kernel of degree 4, ten classes one against the rest, one pass. The time beside
it is that of ``perceptron_in_c.c``, compiled here with the system's compiler (-O2, and -O3
-march=native -ffast-math), which does the same row by row on one thread, in float32 products. The
mistakes must be the same but for rounding.

a9a: Projectron with a Gaussian kernel, sigma^2 = 25, no limit but its eta, one pass.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from maxmargin import BudgetPerceptron, VotedPerceptron
from maxmargin.perceptron.policies import Projectron

FLAGS = {
    "C, -O2": ["-O2"],
    "C, -O3 -march=native -ffast-math": ["-O3", "-march=native", "-ffast-math"],
}
KERNEL = {"kernel": "poly", "degree": 4, "gamma": 1.0, "coef0": 1.0}


def in_c(X, y, order, flags):
    """Seconds, mistakes and support vectors of the program in C."""
    source = Path(__file__).with_name("perceptron_in_c.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "perceptron.so"
        subprocess.run(["cc", *flags, "-shared", "-fPIC", source, "-o", library], check=True)
        function = ctypes.CDLL(str(library)).kernel_perceptron
    (n, d), k = X.shape, 10
    support, mistakes = np.zeros(n + 1, np.int64), np.zeros(k, np.int64)
    coefficients, past = np.zeros((n + 1, k)), np.zeros((n + 1, k))
    i64, f64 = ctypes.c_int64, ctypes.c_double
    pointer = [a.ctypes.data_as(ctypes.c_void_p) for a in (X, y, order)]
    results = [a.ctypes.data_as(ctypes.c_void_p) for a in (support, coefficients, past, mistakes)]
    function.restype = i64
    begin = time.perf_counter()
    size = function(
        *pointer, i64(len(order)), i64(d), i64(k), f64(KERNEL["gamma"]), f64(KERNEL["coef0"]),
        ctypes.c_int(KERNEL["degree"]), f64(1.0), *results,
    )  # fmt: skip
    return time.perf_counter() - begin, int(mistakes.sum()), size


def mnist(folder, rows):
    data = np.load(folder / "mnist.npz")
    X, X_test = (np.float32(data[name]) / np.float32(255) for name in ("X_train", "X_test"))
    y, y_test = (data[name].astype(np.int64) for name in ("y_train", "y_test"))
    model = VotedPerceptron(**KERNEL, max_iter=1, tol=None, shuffle=True, random_state=0)
    begin = time.perf_counter()
    model.fit(X[:rows], y[:rows])
    seconds = time.perf_counter() - begin
    print(
        f"mnist, {rows} rows: {seconds:.1f} s, {model.n_mistakes_.sum()} mistakes, "
        f"{len(model.support_)} support vectors"
    )
    order = np.random.RandomState(0).permutation(rows)
    for name, flags in FLAGS.items():
        c_seconds, mistakes, size = in_c(X[:rows], y[:rows], order, flags)
        print(
            f"  {name}: {c_seconds:.1f} s ({c_seconds / seconds:.1f} times ours), "
            f"{mistakes} mistakes, {size} support vectors",
            flush=True,
        )
    print(f"  test error, voted:    {np.mean(model.predict(X_test) != y_test):.2%}")
    for name in ("average", "last"):
        c, b = getattr(model, f"{name}_dual_coef_"), getattr(model, f"{name}_intercept_")
        V = np.ascontiguousarray(c.T)
        F = model._evaluated(X_test, 10, lambda part, support, V=V: part.multiply(support, V))
        print(f"  test error, {name + ':':9} {np.mean((F + b).argmax(axis=1) != y_test):.2%}")


def a9a(folder):
    data = np.load(folder / "a9a.npz")
    names = [f"X_train_{part}" for part in ("data", "indices", "indptr")]
    X = sp.csr_array(tuple(data[name] for name in names), shape=tuple(data["X_train_shape"]))
    for seed in range(5):
        model = BudgetPerceptron(
            gamma=1 / 50, budget=None, policy=Projectron(eta=0.1**0.5), fit_intercept=False,
            max_iter=1, tol=None, random_state=seed,
        )  # fmt: skip
        begin = time.perf_counter()
        model.fit(X, data["y_train"])
        print(
            f"a9a, Projectron, order {seed}: {model.n_mistakes_ / X.shape[0]:.2%} online error, "
            f"{model.n_support_[0]} support vectors, {time.perf_counter() - begin:.1f} s"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=60000)
    arguments = parser.parse_args()
    a9a(arguments.data)
    mnist(arguments.data, arguments.rows)
