"""Linear machines on rows that are read block by block: the same answers as in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression
from maxmargin.callbacks import Trace
from maxmargin.io import RowBlocks, open_chunks, open_svmlight, write_svmlight
from maxmargin.linear.blocks import BlockDesign
from maxmargin.linear.choose import SOLVERS
from maxmargin.linear.problem import Design


def rows(n=600, d=12, dtype=np.float64, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) + 0.5 > 0, 1, -1)
    return (sp.csr_array(X) if sparse else X), y


def in_blocks(X, blocks=7):
    stored = X.nnz * 1.5 if sp.issparse(X) else X.size
    return RowBlocks.from_array(X, block_bytes=int(stored * X.dtype.itemsize / blocks))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_products_are_those_of_the_rows_in_memory(dtype, sparse, some, bias):
    X, _ = rows(dtype=dtype, sparse=sparse)
    rng = np.random.default_rng(1)
    counted = np.flatnonzero(rng.random(X.shape[0]) < 0.3) if some else None
    whole = Design(X if counted is None else X[counted], bias)
    blocks = BlockDesign(in_blocks(X), counted, bias)
    n, m = whole.n_rows, whole.n_columns
    assert (blocks.n_rows, blocks.n_columns, blocks.stored) == (n, m, whole.stored)
    w, c = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    for name, of in [("scores", w), ("combine", c), ("gram", np.abs(c[:, 0]))]:
        expected = getattr(whole, name)(of)
        np.testing.assert_allclose(getattr(blocks, name)(of), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(blocks.norms(), whole.norms())
    taken = np.sort(rng.choice(n, 20, replace=False))
    np.testing.assert_allclose(blocks.take(taken).scores(w), whole.take(taken).scores(w))
    Z = np.full((n, 2), np.nan)
    for where, block in blocks.mixed(3):
        Z[where] = block.scores(w)
    np.testing.assert_allclose(Z, whole.scores(w))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("block_bytes", [1, 1000, 10**7])
def test_shuffled_blocks_hold_every_row_once(sparse, cached, block_bytes):
    X, y = rows(n=90, sparse=sparse)
    if cached:
        blocks, _ = open_chunks(lambda: iter([(X, y)]), cache=True, block_bytes=block_bytes)
    else:
        blocks = RowBlocks.from_array(X, block_bytes=block_bytes)
    assert blocks.random_access
    orders = []
    for seed in (0, 0, 1):
        seen = []
        for where, block in blocks.shuffled(seed):
            assert block.shape[0] == len(where)
            difference = block - X[where]
            assert abs(difference).max() == 0
            seen.append(where)
        orders.append(np.concatenate(seen))
        np.testing.assert_array_equal(np.sort(orders[-1]), np.arange(90))
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


def test_rows_without_random_access_say_so_and_can_still_be_learned():
    X, y = rows()
    blocks, labels = open_chunks(lambda: iter([(X, y)]), block_bytes=8000)
    assert not blocks.random_access
    with pytest.raises(ValueError, match="cache=True"):
        next(blocks.shuffled(0))
    model = LinearSVC(gap_tol=1e-6, max_iter=10_000).fit(blocks, labels)
    same = LinearSVC(gap_tol=1e-8).fit(X, y)
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-6)


@pytest.mark.parametrize("n_blocks", [7, 50])
@pytest.mark.parametrize("free", [False, True])
def test_mixed_blocks_take_no_more_passes_than_memory_takes_sweeps(n_blocks, free, monkeypatch):
    """Where rows have a constant in common and little else, as texts do."""
    rng = np.random.default_rng(2)
    X = sp.random_array((3000, 4000), density=0.005, rng=rng, format="csr")
    X = sp.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    y = np.where(X @ rng.normal(size=4000) + 0.3 * rng.normal(size=3000) > 0, 1, -1)
    args = {"solver": "dual-coordinate", "gap_tol": 1e-5, "random_state": 0, "max_iter": 60}
    make = LinearClassifier if free else LinearSVC
    memory = make(loss="squared_hinge", **args).fit(X, y)
    blocks = make(loss="squared_hinge", **args).fit(in_blocks(X, n_blocks), y)
    assert blocks.fit_status_ == 0
    assert blocks.n_iter_ <= memory.n_iter_
    assert memory.objective_ - memory.dual_gap_ <= blocks.objective_
    assert blocks.objective_ - blocks.dual_gap_ <= memory.objective_
    monkeypatch.setattr(BlockDesign, "mixed", lambda self, seed: self.blocks())
    with pytest.warns(ConvergenceWarning):  # the same blocks in each pass stall
        make(loss="squared_hinge", **args).fit(in_blocks(X, n_blocks), y)


MACHINES = [
    LinearSVC(gap_tol=1e-8),
    LinearClassifier(loss="hinge", gap_tol=1e-6),
    LinearRegressor(gap_tol=1e-8),
    LogisticRegression(gap_tol=1e-8),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("where", ["array", "file"])
def test_estimators_fit_and_predict_blocks(machine, where, tmp_path):
    X, y = rows()
    if where == "array":
        blocks, labels = in_blocks(X), y
    else:
        write_svmlight(X, y, tmp_path / "rows.svm.gz")
        blocks, labels = open_svmlight(tmp_path / "rows.svm.gz", block_bytes=5000)
    machine.fit(X, y)
    objective, gap, coef = machine.objective_, machine.dual_gap_, machine.coef_
    machine.set_params(warm_start=False).fit(blocks, labels)
    rounding = 1e-12 * objective
    assert machine.objective_ - machine.dual_gap_ <= objective + rounding
    assert objective - gap <= machine.objective_ + rounding
    np.testing.assert_allclose(machine.coef_, coef, atol=2e-2)
    np.testing.assert_allclose(machine.predict(blocks), machine.predict(X))
    assert machine.score(blocks, labels) == pytest.approx(machine.score(X, y))
    again = machine.objective_
    machine.set_params(warm_start=True).fit(blocks, labels)
    assert machine.objective_ == pytest.approx(again, rel=1e-5)


def test_several_classes_in_blocks():
    X, _ = rows()
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    memory = LinearSVC(gap_tol=1e-6).fit(X, y)
    model = LinearSVC(gap_tol=1e-6).fit(in_blocks(X), y)
    assert model.objective_ == pytest.approx(memory.objective_, rel=1e-5)
    assert (model.predict(in_blocks(X)) == memory.predict(X)).mean() > 0.99


def test_a_block_with_nan_is_refused():
    X, y = rows()
    X[400, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        LinearSVC().fit(in_blocks(X), y)


# ------------------------------------------------------------------ every solver, and being stopped


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_reaches_the_same_optimum_on_blocks_or_refuses_them(name):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for loss in ("hinge", "squared_hinge", "logistic", "multiclass_hinge"):
        machine = LinearClassifier(
            loss, C=0.05, solver=name, gap_tol=1e-3, max_iter=3000, penalize_intercept=True
        )
        try:
            on_blocks = clone(machine).fit(RowBlocks.from_array(X, block_bytes=20_000), y)
        except ValueError as refusal:
            assert "cannot solve this problem" in str(refusal)
            continue
        best = LinearClassifier(loss, C=0.05, gap_tol=1e-8, penalize_intercept=True).fit(X, y)
        assert on_blocks.objective_ - on_blocks.dual_gap_ <= best.objective_ * (1 + 1e-9)
        assert_allclose(on_blocks.objective_, best.objective_, rtol=2e-3)


def test_fits_on_blocks_are_watched_and_stopped():
    X, y = load_breast_cancer(return_X_y=True)
    X = RowBlocks.from_array(StandardScaler().fit_transform(X), block_bytes=20_000)
    machine = LinearSVC(loss="hinge", solver="dual-coordinate", gap_tol=1e-12, max_iter=10**6)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        limited = clone(machine).set_params(time_limit=0.2).fit(X, y)
    assert limited.fit_status_ == 1 and np.isfinite(limited.dual_gap_)
    trace = Trace()
    LinearSVC().set_callbacks(trace).fit(X, y)
    assert trace.records[-1].dual_gap <= 1e-4 * LinearSVC().fit(X, y).objective_ * 1.01
