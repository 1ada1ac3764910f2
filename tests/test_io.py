"""Rows out of core: blocks, chunks, and the text format of SVMlight."""

import bz2
import copy
import gc
import gzip
import itertools
import lzma
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin import io
from maxmargin.io import RowBlocks, open_chunks, open_svmlight, read_svmlight, write_svmlight
from maxmargin.io import svmlight as module

OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def dense(X):
    """The whole matrix, from its blocks, which must follow each other."""
    parts, end = [], 0
    for rows, block in X.blocks():
        assert rows.start == end
        assert rows.stop - rows.start == block.shape[0] > 0
        end = rows.stop
        assert block.dtype == X.dtype
        if sp.issparse(block):
            again = sp.csr_array((block.data, block.indices, block.indptr), shape=block.shape)
            assert again.has_canonical_format
            block = block.toarray()
        parts.append(block.copy())
    assert end == len(X) == X.shape[0]
    whole = np.vstack(parts)
    assert whole.shape == X.shape
    return whole


def random_rows(n=60, d=9, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    X[n // 2] = 0
    return X.astype(dtype), rng.integers(-1, 3, size=n).astype(float)


def write(path, text):
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


# ------------------------------------------------------------------ the text format


@pytest.mark.parametrize("zero_based", [True, False, "auto"])
@pytest.mark.parametrize("written_zero_based", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reads_what_scikit_learn_writes(tmp_path, zero_based, written_zero_based, dtype):
    X, y = random_rows()
    path = tmp_path / "rows.svm"
    query = np.arange(len(y)) // 4
    dump_svmlight_file(
        X, y, os.fspath(path), zero_based=written_zero_based, query_id=query, comment="a\nb"
    )
    args = {"zero_based": zero_based, "dtype": dtype, "query_id": True}
    if written_zero_based and zero_based is False:
        with pytest.raises(ValueError, match=r"line \d+: feature 0 is not one of 1 to 2147483647"):
            read_svmlight(path, **args)
        return
    theirs = load_svmlight_file(path, **args)
    ours = read_svmlight(path, **args)
    streamed = open_svmlight(path, **args, block_bytes=200)
    assert isinstance(ours[0], sp.csr_array)
    assert_array_equal(ours[0].toarray(), theirs[0].toarray())
    assert_array_equal(dense(streamed[0]), theirs[0].toarray())
    assert ours[0].dtype == streamed[0].dtype == dtype
    for mine in (ours, streamed):
        assert_array_equal(mine[1], theirs[1])
        assert mine[1].dtype == np.float64
        assert_array_equal(mine[2], query)


numbers = st.floats(allow_nan=False, allow_infinity=False)
row = st.tuples(numbers, st.dictionaries(st.integers(0, 30), numbers, max_size=5), st.booleans())


@given(
    rows=st.lists(row, min_size=1, max_size=6),
    piece=st.integers(1, 40),
    block_bytes=st.sampled_from([1, 50, 10**6]),
    end=st.sampled_from(["\n", "\r\n"]),
    cache=st.booleans(),
)
def test_agrees_with_scikit_learn_on_any_file(
    tmp_path_factory, rows, piece, block_bytes, end, cache
):
    lines = []
    for label, features, comment in rows:
        words = [repr(label), *(f"{i}:{features[i]!r}" for i in sorted(features))]
        lines.append(" ".join(words) + (" # 3:4" if comment else ""))
    path = write(tmp_path_factory.mktemp("io") / "rows", end.join(lines))
    X, y = load_svmlight_file(os.fspath(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE", piece)
        mine, labels = open_svmlight(path, block_bytes=block_bytes, cache=cache)
        assert_array_equal(dense(mine), X.toarray())
        assert_array_equal(dense(mine), X.toarray())
    assert_array_equal(labels, y)


@pytest.mark.parametrize("suffix", OPENERS)
@pytest.mark.parametrize("cache", [True, False])
def test_every_suffix(tmp_path, suffix, cache):
    X, y = random_rows()
    path = tmp_path / f"rows.svm{suffix}"
    write_svmlight(X, y, path)
    with OPENERS[suffix](path, "rb") as file:
        theirs = load_svmlight_file(file, n_features=X.shape[1])
    assert_array_equal(theirs[0].toarray(), X)
    mine, labels = open_svmlight(os.fspath(path), cache=cache, block_bytes=500)
    assert len(list(mine.blocks())) > 1
    for _ in range(3):
        assert_array_equal(dense(mine), X)
    assert_array_equal(labels, y)
    assert_array_equal(read_svmlight(path)[0].toarray(), X)


def test_pieces_of_any_size_read_the_same(tmp_path, monkeypatch):
    text = (
        b"# head\n+1 qid:1 1:0.5 7:-2e-3 # tail\r\n\n-1\tqid:2  3:1\n2 qid:2 9:1 2:.25 +5:5.\n"
        b"0 qid:3\n3 qid:4 1:0.1"
    )
    expected = np.zeros((5, 9))
    expected[[0, 0, 1, 2, 2, 2, 4], [0, 6, 2, 8, 1, 4, 0]] = [0.5, -2e-3, 1, 1, 0.25, 5, 0.1]
    for end in (b"", b"\n"):
        path = write(tmp_path / "rows", text + end)
        for piece in range(1, len(text) + 2):
            monkeypatch.setattr(module, "_PIECE", piece)
            X, y, query = open_svmlight(path, query_id=True, block_bytes=100)
            assert_array_equal(dense(X), expected)
            assert_array_equal(y, [1, -1, 2, 0, 3])
            assert_array_equal(query, [1, 2, 2, 3, 4])
            assert query.dtype == np.int64


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 1:1\n\n# x\n1 2:x\n", "line 4: the value in '2:x' is not a number"),
        ("1 1:1\r\n1 3:nan", "line 2: the value in '3:nan' is not finite"),
        ("1 3:1e999", "line 1: the value in '3:1e999' is not finite"),
        ("inf 3:1", "line 1: its label 'inf' is not finite"),
        ("1 3:1 2:1 3:2", "line 1: feature 3 comes twice"),
        ("1\n1,2 3:1", "line 2: several labels"),
        ("1\n 1:1 2:3", "line 2: it begins with '1:1', where its label belongs"),
        ("spam 1:1", "line 1: its label 'spam' is not a number"),
        ("1 spam", "line 1: 'spam' is not of the form feature:value"),
        ("1 qid:1.5 1:1", "line 1: 'qid:1.5' is not a query"),
        (b"1 1:\xff\x00\n", r"line 1: the value in '1:\xff\x00' is not a number"),
        ("1 3000000000:1", "line 1: feature 3000000000 is not one of 0 to 2147483647"),
        ("", "no rows in this file"),
        ("# nothing\n\n", "no rows in this file"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, text, message):
    path = write(tmp_path / "rows.svm", text)
    for read in (read_svmlight, open_svmlight):
        with pytest.raises(ValueError) as caught:
            read(path)
        assert message in str(caught.value)
        assert "rows.svm" in str(caught.value)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_files_that_were_cut_off(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    write_svmlight(*random_rows(), path)
    write(path, path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=f"rows{suffix}: damaged, or cut off at its end"):
        open_svmlight(path)


def test_features_that_were_promised(tmp_path):
    path = write(tmp_path / "rows", "1 1:1 4:1\n2\n")
    for n_features in (None, 4, 6):
        X, _ = read_svmlight(path, n_features=n_features)
        assert X.shape == (2, n_features or 4)
        assert_array_equal(X.indices, [0, 3])
    assert read_svmlight(path, zero_based=True)[0].shape == (2, 5)
    with pytest.raises(ValueError, match="feature 4 is not one of 0 to 3"):
        read_svmlight(path, n_features=4, zero_based=True)
    with pytest.raises(ValueError, match="feature 4 is not one of 0 to 3"):
        open_svmlight(path, n_features=3)
    write(path, "1 0:1 4:1\n")
    with pytest.raises(ValueError, match="from 0 to 4, which makes 5; n_features is 4"):
        read_svmlight(path, n_features=4)
    write(path, "1\n2\n")
    assert read_svmlight(path)[0].shape == load_svmlight_file(os.fspath(path))[0].shape == (2, 1)
    with pytest.raises(ValueError, match="line 1: no query"):
        read_svmlight(path, query_id=True)
    with pytest.raises(ValueError, match="as a float32"):
        read_svmlight(write(path, "1 1:1e300\n"), dtype=np.float32)


@pytest.mark.parametrize(
    "name, value",
    [
        ("n_features", 0),
        ("n_features", 2.0),
        ("n_features", True),
        ("zero_based", "no"),
        ("zero_based", 1),
        ("dtype", np.int32),
        ("cache", None),
        ("cache", 1),
        ("block_bytes", 0),
        ("block_bytes", 1.5),
        ("block_bytes", "1"),
    ],
)
def test_parameters_are_named(tmp_path, name, value):
    path = write(tmp_path / "rows", "1 1:1\n")
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        open_svmlight(path, **{name: value})


# ------------------------------------------------------------------ writing


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    values=st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=5),
    single=st.booleans(),
    zero_based=st.booleans(),
    form=st.sampled_from([np.asarray, sp.csr_array, sp.coo_matrix, RowBlocks.from_array]),
)
def test_what_is_written_reads_back_exactly(tmp_path_factory, values, single, zero_based, form):
    dtype = np.float32 if single else np.float64
    with np.errstate(over="ignore"):
        X = np.nan_to_num(np.array(values).astype(dtype))
    y = X[:, 0].astype(float) / 3
    path = tmp_path_factory.mktemp("io") / "rows"
    write_svmlight(form(X), y, path, zero_based=zero_based, query_id=np.arange(len(y)))
    args = {"n_features": 3, "zero_based": zero_based, "dtype": dtype, "query_id": True}
    back, labels, query = read_svmlight(path, **args)
    assert_array_equal(back.toarray(), X)
    assert_array_equal(labels, y)
    assert_array_equal(query, np.arange(len(y)))


def test_blocks_are_written_block_by_block(tmp_path, monkeypatch):
    X, y = random_rows(d=70)
    monkeypatch.setattr(module, "_PIECE", 1000)
    for blocks in (
        RowBlocks.from_array(X, block_bytes=3000),
        RowBlocks.from_array(sp.csr_array(X)),
    ):
        write_svmlight(blocks, y.astype(int), tmp_path / "rows")
        back, labels = read_svmlight(tmp_path / "rows")
        assert_array_equal(back.toarray(), X)
        assert_array_equal(labels, y)
    X[41, 3], X[42, 1] = np.inf, np.nan
    for bad in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match="X: row 41 has NaN or infinity"):
            write_svmlight(bad, y, tmp_path / "rows")


def test_what_cannot_be_written(tmp_path):
    X, path = np.eye(2), tmp_path / "rows"
    for y in ([1], [[1], [2]], ["a", "b"], [1, np.nan], [1, 2**60 + 1], [1j, 2]):
        with pytest.raises(ValueError, match=r"^y: expected"):
            write_svmlight(X, y, path)
    for query in ([1], [0.5, 1], [1, np.inf]):
        with pytest.raises(ValueError, match=r"^query_id: expected"):
            write_svmlight(X, [1, 2], path, query_id=query)
    with pytest.raises(ValueError, match=r"^X: expected a matrix"):
        write_svmlight([1, 2], [1, 2], path)
    with pytest.raises(ValueError, match=r"^zero_based: expected True or False, got 'auto'"):
        write_svmlight(X, [1, 2], path, zero_based="auto")
    assert not path.exists()


# ------------------------------------------------------------------ blocks


FORMS = {
    "float64": lambda X, folder: X,
    "float32": lambda X, folder: X.astype(np.float32),
    "int8": lambda X, folder: np.sign(X).astype(np.int8),
    "fortran": lambda X, folder: np.asfortranarray(X),
    "big-endian": lambda X, folder: X.astype(">f8"),
    "csr": lambda X, folder: sp.csr_array(X),
    "csr of float32 and int64": lambda X, folder: long_indices(sp.csr_array(X.astype(np.float32))),
    "coo": lambda X, folder: sp.coo_matrix(X),
    "mapped": lambda X, folder: mapped(X, folder),
}


def mapped(X, folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block_bytes", [1, 300, 10**6])
def test_matrices_as_blocks(tmp_path, form, block_bytes):
    X = FORMS[form](random_rows(40, 7)[0], tmp_path)
    blocks = RowBlocks.from_array(X, block_bytes=block_bytes)
    expected = X.toarray() if sp.issparse(X) else np.asarray(X)
    assert blocks.shape == X.shape
    assert len(blocks) == 40
    assert blocks.dtype == (np.float32 if X.dtype == np.float32 else np.float64)
    for _ in range(2):
        assert_array_equal(dense(blocks), expected)
    for _, block in blocks.blocks():
        size = block.nbytes if not sp.issparse(block) else block.data.nbytes + block.indices.nbytes
        assert size <= block_bytes or block.shape[0] == 1
    assert repr(blocks) == f"RowBlocks(40 rows, 7 features, {blocks.dtype})"


def test_blocks_are_views(tmp_path):
    X = random_rows(40, 7)[0]
    for form in ("float64", "fortran", "csr", "mapped"):
        source = FORMS[form](X, tmp_path)
        memory = source.data if sp.issparse(source) else source
        for _, block in RowBlocks.from_array(source, block_bytes=300).blocks():
            values = block.data if sp.issparse(block) else block
            assert np.shares_memory(values, memory)
            assert type(values) is np.ndarray


def test_duplicates_are_added_in_a_copy():
    X = sp.csr_array((np.ones(4), [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    assert_array_equal(dense(RowBlocks.from_array(X)), [[1, 0, 2], [0, 1, 0]])
    assert X.nnz == 4


def test_what_is_no_matrix():
    for X in (np.ones(3), np.ones((2, 2, 2)), [["a"]], np.ones((2, 2), complex), [[None]]):
        with pytest.raises(ValueError, match=r"^X: expected a matrix of real numbers"):
            RowBlocks.from_array(X)


def test_blocks_are_not_mistaken_for_an_array():
    X = RowBlocks.from_array(np.eye(3))
    for mistake in (np.asarray, np.sum, pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"RowBlocks\(3 rows"):
            mistake(X)


# ------------------------------------------------------------------ chunks


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block_bytes", [1, 200, 10**6])
@pytest.mark.parametrize("cache", [False, True])
def test_chunks_of_any_size(sparse, block_bytes, cache):
    X, y = random_rows(50, 6)
    cuts = [0, 1, 2, 2, 5, 30, 31, 50]
    calls = []

    def chunks():
        calls.append(None)
        buffer = np.empty((50, 6))  # the same memory for every chunk
        for begin, end in itertools.pairwise(cuts):
            part = buffer[: end - begin]
            part[:] = X[begin:end]
            yield (sp.csr_array(part) if sparse else part), y[begin:end]
            buffer[:] = np.nan

    blocks, labels = open_chunks(chunks, cache=cache, block_bytes=block_bytes)
    assert_array_equal(labels, y)
    for _ in range(3):
        assert_array_equal(dense(blocks), X)
    assert len(calls) == (1 if cache else 4)
    if block_bytes > 1000:
        assert len(list(blocks.blocks())) == 1


def test_types_of_chunks():
    singles = [(np.ones((2, 2), np.float32), ["a", "b"]), (np.ones((1, 2), np.float32), ["ccc"])]
    X, y = open_chunks(singles)
    assert X.dtype == np.float32
    assert_array_equal(y, ["a", "b", "ccc"])
    y = np.array(["dddd"], dtype=object)
    assert_array_equal(open_chunks([*singles, (np.eye(2)[:1], y)])[1], ["a", "b", "ccc", "dddd"])
    for more in (np.full((1, 2), 7), np.full((1, 2), 7.0)):
        X, y = open_chunks([*singles, (more, ["d"])])
        assert X.dtype == np.float64
        assert_array_equal(dense(X)[:, 0], [1, 1, 1, 7])


def test_an_iterator_is_good_for_one_pass():
    def chunks():
        yield np.eye(2), [1, 2]
        yield np.ones((1, 2)), [3]

    with pytest.raises(ValueError, match="an iterator can be read only once"):
        open_chunks(chunks())
    X, y = open_chunks(chunks(), cache=True)
    assert_array_equal(y, [1, 2, 3])
    for _ in range(2):
        assert_array_equal(dense(X), [[1, 0], [0, 1], [1, 1]])
    once = chunks()
    X, y = open_chunks(lambda: once)
    with pytest.raises(RuntimeError, match=r"found 0, and the first found 3.*return"):
        dense(X)


def test_chunks_that_change():
    sizes = iter([3, 5])
    X, _ = open_chunks(lambda: iter([(np.eye(3), [1, 2, 3])] * next(sizes)))
    with pytest.raises(RuntimeError, match="found more than 9"):
        dense(X)


@pytest.mark.parametrize(
    "chunks, message",
    [
        ([], "there are no rows"),
        ([(np.ones((0, 2)), [])], "there are no rows"),
        ([np.ones((2, 2))], r"chunk 0: expected a pair \(X, y\), got ndarray"),
        ([(np.ones(2), [1, 2])], "chunk 0: expected a matrix"),
        ([(np.eye(2), [1])], r"chunk 0: 2 rows need as many labels.*got shape \(1,\)"),
        ([(np.eye(2), [1, None])], "chunk 0: .* numbers or strings; got .* type object"),
        ([(np.eye(2), [1, 2]), (np.eye(3), [1, 2, 3])], "chunk 1: it is dense with 3 features"),
        ([(np.eye(2), [1, 2]), (sp.eye_array(2), [1, 2])], "chunk 1: it is sparse with 2"),
    ],
)
@pytest.mark.parametrize("cache", [False, True])
def test_chunks_that_do_not_fit(tmp_path, chunks, message, cache):
    with pytest.raises(ValueError, match=message):
        open_chunks(chunks, cache=tmp_path if cache else False)
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_what_makes_no_chunks():
    with pytest.raises(TypeError, match="make_chunks: expected a function"):
        open_chunks(7)


# ------------------------------------------------------------------ the copy on disk


def test_the_copy_goes_with_the_rows(tmp_path):
    X, y = random_rows()
    write_svmlight(X, y, tmp_path / "rows")
    folder = tmp_path / "cache"
    folder.mkdir()
    blocks, _ = open_svmlight(tmp_path / "rows", cache=folder)
    assert len(list(folder.iterdir())) == 1
    os.remove(tmp_path / "rows")
    running = blocks.blocks()
    del blocks
    assert_array_equal(next(running)[1].toarray()[0], X[0])
    del running
    gc.collect()
    assert not list(folder.iterdir())

    write(tmp_path / "rows", "1 1:1\n" * 100 + "oops oops\n")
    with pytest.raises(ValueError, match="line 101"):
        open_svmlight(tmp_path / "rows", cache=folder, block_bytes=1)
    assert not list(folder.iterdir())


def test_the_copy_goes_at_exit_but_not_in_a_child(tmp_path):
    program = """
import os, sys, numpy as np
from maxmargin.io import open_chunks
X, y = open_chunks([(np.eye(3), [1, 2, 3])], cache=sys.argv[1])
child = os.fork()
if child == 0:
    del X
    sys.exit(0)  # runs what is registered for the exit
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert len(list(X.blocks())) == 1
"""
    subprocess.run([sys.executable, "-c", program, os.fspath(tmp_path)], check=True)
    assert not list(tmp_path.iterdir())


def test_no_directory_without_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path / "none"))
    X, y = random_rows()
    write_svmlight(X, y, tmp_path / "rows")
    assert_array_equal(dense(open_svmlight(tmp_path / "rows", cache=False)[0]), X)
    with pytest.raises(FileNotFoundError):
        open_svmlight(tmp_path / "rows")


def test_a_file_that_changes_between_passes(tmp_path):
    path = write(tmp_path / "rows", "1 1:1\n2 2:2\n")
    X, _ = open_svmlight(path, cache=False)
    write(path, "1 1:1\n")
    with pytest.raises(RuntimeError, match="found 1, and the first found 2"):
        dense(X)


# ------------------------------------------------------------------ memory, progress, Ctrl-C


MEMORY = """
import resource, sys
from maxmargin.io import open_svmlight
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
X, y = open_svmlight(sys.argv[1], block_bytes=2**20, cache=sys.argv[2] == "True")
total = sum(block.data.sum() for _ in range(2) for _, block in X.blocks())
print(peak() - before, X.shape[0], total)
"""


@pytest.mark.parametrize("cache", [True, False])
def test_memory_stays_within_a_few_blocks(tmp_path, cache):
    path = tmp_path / "large.svm"
    line = "1 " + " ".join(f"{i}:{i / 8}" for i in range(1, 200)) + "\n"
    n = 60_000_000 // len(line)
    with open(path, "w") as file:
        for _ in range(n // 100):
            file.write(line * 100)
    n = n // 100 * 100
    command = [sys.executable, "-c", MEMORY, os.fspath(path), str(cache)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    megabytes, rows, total = map(float, out.split())
    assert rows == n
    assert total == 2 * n * sum(range(200)) / 8
    assert megabytes < 20  # the rows have 75

    tracemalloc.start()
    try:
        X = open_svmlight(path, block_bytes=2**20, cache=cache)[0]
        for _ in X.blocks():
            pass
        assert tracemalloc.get_traced_memory()[1] < 12 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", OPENERS)
def test_progress(tmp_path, capsys, monkeypatch, suffix):
    X, y = random_rows(500)
    write_svmlight(X, y, tmp_path / f"rows{suffix}")
    monkeypatch.setattr(module, "_PIECE", 1000)
    monkeypatch.setattr(module.Line, "due", lambda self, seconds: True)
    open_svmlight(tmp_path / f"rows{suffix}", block_bytes=1000)
    assert capsys.readouterr().out == ""
    open_svmlight(tmp_path / f"rows{suffix}", block_bytes=1000, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    percents = [int(line.split(":")[1].split("%")[0]) for line in lines]
    assert len(lines) > 5
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert lines[0].startswith(f"rows{suffix}: ")
    assert "500 rows, finished after" in lines[-1]


INTERRUPTED = """
import signal, sys, maxmargin.io as io
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has it ignored
X, y = io.open_svmlight(sys.argv[1], cache=sys.argv[2], block_bytes=10**5)
print("parsed", flush=True)
while True:
    for rows, block in X.blocks():
        pass
"""


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    fifo, folder = tmp_path / "rows", tmp_path / "cache"
    folder.mkdir()
    os.mkfifo(fifo)  # the text never ends: it is interrupted while parsing, then while reading
    for end in (False, True):
        command = [sys.executable, "-c", INTERRUPTED, os.fspath(fifo), os.fspath(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            with open(fifo, "wb") as file:
                file.write(b"1 1:1 2:2\n" * 400_000)
                file.flush()
                if not end:
                    process.send_signal(signal.SIGINT)
                    err = process.communicate(timeout=60)[1]
            if end:
                assert process.stdout.readline() == b"parsed\n"
                process.send_signal(signal.SIGINT)
                err = process.communicate(timeout=60)[1]
        assert b"KeyboardInterrupt" in err
        assert not list(folder.iterdir())


def test_the_module_is_there():
    import maxmargin

    assert maxmargin.io is io
    assert set(io.__all__) <= set(dir(io))
