"""The benchmarks' own arithmetic, and what becomes of peers that miss or fail."""

import csv
import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVR

from benchmarks import harness, machine, report
from benchmarks.data import Data, gaussian, shipped
from benchmarks.problems import LOSSES, Ask, Case, Linear, Weights
from benchmarks.runners import liblinear, reference, scikit_learn
from benchmarks.runners.base import NotAvailable, with_constant
from benchmarks.suites import agreement, linear, out_of_core, pegasos
from maxmargin import SVC

X = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
CLASSES = Data(X, np.array([1, 0, 0]))
VALUES = Data(X, np.array([1.0, 2.0, -1.0]))
W, B = np.array([[1.0, -2.0]]), np.array([0.5])
# Scores: 1 - 4 + 0.5 = -2.5, 2 + 0.5 = 2.5, 3 - 1 + 0.5 = 2.5; margins with y = +, -, -: -2.5 each.


@pytest.mark.parametrize(
    ("problem", "data", "expected"),
    [
        (Linear("hinge", C=2), CLASSES, 5.25 / 2 + 2 * 3 * 3.5),
        (Linear("hinge", C=2, intercept="free"), CLASSES, 5 / 2 + 2 * 3 * 3.5),
        (Linear("squared_hinge"), CLASSES, 5.25 / 2 + 3 * 3.5**2),
        (Linear("hinge", "l1"), CLASSES, 3.5 + 3 * 3.5),
        (Linear("hinge", "l1", intercept="free"), CLASSES, 3 + 3 * 3.5),
        (Linear("logistic"), CLASSES, 5.25 / 2 + 3 * np.log(1 + np.exp(2.5))),
        # Residuals: 3.5, -0.5, -3.5.
        (Linear("epsilon_insensitive", epsilon=1.0), VALUES, 5.25 / 2 + 2.5 + 2.5),
        (Linear("squared_epsilon_insensitive", epsilon=1.0), VALUES, 5.25 / 2 + 2 * 2.5**2),
    ],
    ids=lambda value: value.loss if isinstance(value, Linear) else "",
)
def test_objective_by_hand(problem, data, expected):
    assert problem.objective(data, Weights(W, B)) == pytest.approx(expected, rel=1e-14)
    sparse = dataclasses.replace(data, X=sp.csr_array(data.X))
    assert problem.objective(sparse, Weights(W, B)) == pytest.approx(expected, rel=1e-14)


def test_objective_sums_over_classes_and_blocks(monkeypatch):
    monkeypatch.setattr("benchmarks.problems.BLOCK", 2)
    data = Data(X, np.array([0, 1, 2]))
    zero = Weights(np.zeros((3, 2)), np.zeros(3))
    assert Linear("squared_hinge", C=0.5).objective(data, zero) == pytest.approx(0.5 * 9)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_convex_in_the_score(loss):
    f = np.linspace(-4, 4, 801)
    values = LOSSES[loss](1.0, f, 0.3)
    assert np.all(np.diff(values, 2) >= -1e-12)
    assert values.min() >= 0


def test_objective_refuses_what_is_no_answer():
    with pytest.raises(ValueError, match="shape"):
        Linear("hinge").objective(CLASSES, Weights(W[:, :1], B))
    with pytest.raises(ValueError, match="the problem has none"):
        Linear("hinge", intercept="none").objective(CLASSES, Weights(W, B))


# ---- Reference optima ------------------------------------------------------------------------


def optimum(problem, data):
    solver = reference.REFERENCE.machine(problem, data, {"tol": 1e-9}, 1)
    solver.fit()
    return problem.objective(data, solver.answer())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_reference_is_the_optimum_of_the_kernel_machine(loss):
    data = shipped("breast_cancer").load(None)
    svc = SVC(kernel="linear", loss=loss, fit_intercept=False, gap_tol=1e-9)
    svc.fit(with_constant(data.X), data.y)
    best = optimum(Linear(loss), data)
    assert svc.objective_ - svc.dual_gap_ <= best * (1 + 1e-9)
    assert best == pytest.approx(svc.objective_, rel=1e-8)


def test_reference_of_logistic_regression():
    data = shipped("breast_cancer").load(None)
    problem = Linear("logistic", intercept="none", C=0.5)
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(data.X, data.y)
    there = problem.objective(data, Weights(peer.coef_, np.zeros(1)))
    assert optimum(problem, data) == pytest.approx(there, rel=1e-9)


def test_reference_of_regression():
    data = shipped("diabetes", regression=True).load(None)
    problem = Linear("epsilon_insensitive", intercept="none")
    # LIBSVM's machine has a free intercept, which mirrored data bring to zero: each row twice.
    mirrored = np.concatenate([data.X, -data.X]), np.concatenate([data.y, -data.y])
    peer = SVR(kernel="linear", C=0.5, tol=1e-8).fit(*mirrored)
    there = problem.objective(data, Weights(peer.coef_, np.zeros(1)))
    assert optimum(problem, data) == pytest.approx(there, rel=1e-6)


@pytest.mark.parametrize("case", linear.CASES, ids=lambda case: case.name)
def test_every_linear_case_has_a_reference_and_peers(case):
    assert linear.REFERENCE.solves(case.problem)
    assert sum(runner.solves(case.problem) for runner in linear.RUNNERS) >= 3


@pytest.mark.parametrize(
    "problem",
    [
        Linear("squared_hinge"),
        Linear("squared_hinge", "l1", intercept="none"),
        Linear("logistic", "l2", intercept="none"),
        Linear("logistic", "l1"),
        Linear("hinge"),
    ],
    ids=str,
)
def test_runners_of_one_problem_agree(problem):
    data = gaussian(80, 3).load(None)
    found = {}
    for runner in [
        *scikit_learn.RUNNERS,
        *liblinear.RUNNERS[:2],
    ]:  # one of two packages of one name
        if not runner.solves(problem) or runner.name == "sklearn:sgd":
            continue
        try:
            fit = runner.machine(problem, data, runner.settings[-2], 1)
        except NotAvailable:
            continue
        fit.fit()
        found[runner.name] = problem.objective(data, fit.answer())
        assert problem.score(data.y, fit.predict(data.X)) > 0.8
    assert len(found) >= 1
    # LIBLINEAR stops after a fixed number of passes, whatever its tolerance.
    assert max(found.values()) <= min(found.values()) * (1 + 1e-3)


# ---- The harness -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The tiny suite, with its files."""
    output = tmp_path_factory.mktemp("benchmarks")
    options = harness.Options("tiny_suite", repeats=1, threads=1, time_limit=120, output=output)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(harness.ROOT / "tests"))
        rows = harness.compare_all(options, say=lambda line: None)
    import tiny_suite

    said = report.write(rows, tiny_suite.CASES, machine.describe(), "tiny", options)
    return {row["peer"]: row for row in report.with_ratios(rows)}, output, said


def test_who_meets_the_gap_is_timed(outcome):
    rows, _, _ = outcome
    for peer in ("maxmargin", "good"):
        assert rows[peer]["status"] == "met"
        assert rows[peer]["reached"] <= 1e-4
        assert rows[peer]["score"] > 0.9
        assert rows[peer]["fit"] > 0
    assert rows["maxmargin"]["ratio"] == 1
    assert rows["good"]["ratio"] == rows["good"]["fit"] / rows["maxmargin"]["fit"]
    assert rows["good"]["setting"] == {"tol": 1e-5}  # tol=1 misses the gap


def test_who_misses_or_fails_is_marked(outcome):
    rows, _, _ = outcome
    assert rows["never"]["status"] == "never"
    assert rows["never"]["reached"] > 1e-4
    assert rows["crashing"]["status"].startswith("the process ended with 3")
    assert rows["raising"]["status"] == "FloatingPointError: out of numbers"
    assert "not installed: pip install no-such-package" in rows["absent"]["status"]
    assert not any("ratio" in rows[p] for p in ("never", "crashing", "raising", "absent"))


def test_files(outcome):
    rows, output, said = outcome
    whole = json.loads((output / "tiny.json").read_text())
    assert {row["peer"] for row in whole["rows"]} == set(rows)
    assert whole["machine"]["cores"]
    with (output / "tiny.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [line["peer"] for line in table] == list(rows)
    assert table[0]["times ours"] == "1.00"
    assert (output / "tiny.svg").read_text().count("<svg") == 1
    assert "breast-cancer-hinge to 1e-04: best peer good" in said
    assert "(wanted 50: " in said
    assert len(list((output / "reference").iterdir())) == 1


# ---- Tables from given rows ------------------------------------------------------------------


def given(peer, fit, status="met"):
    return {"case": "c", "gap": 1e-3, "peer": peer, "fit": fit, "status": status}


def test_verdicts_take_the_best_peer_that_met_the_gap():
    case = Case(gaussian(10, 2), Linear("hinge"), (Ask(1e-3, factor=3, seconds=1.5),), name="c")
    rows = [given("maxmargin", 2.0), given("a", 5.0), given("b", 1.0, "never"), given("d", 8.0)]
    (line,) = report.verdicts(report.with_ratios(rows), [case])
    assert line == (
        "c to 1e-03: best peer a 5 s; ours 2 s, 2.50 times as fast "
        "(wanted 3: MISSED) (wanted 1.5 s: MISSED)"
    )
    missed = [given("maxmargin", 2.0, "never"), *rows[1:]]
    assert report.verdicts(missed, [case]) == ["c to 1e-03: best peer a 5 s; ours: never"]
    assert not any("ratio" in row for row in report.with_ratios(missed))


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match=r"--peers: nobody is unknown; there are maxmargin"):
        harness.chosen_runners(linear.RUNNERS, ["nobody"])
    options = harness.Options("benchmarks.suites.linear", sets=("nothing",))
    with pytest.raises(SystemExit, match=r"--sets: nothing is unknown; there are a9a"):
        harness.chosen_cases(linear.CASES, options, print)


def test_a_name_stands_for_all_that_it_begins():
    names = [runner.name for runner in harness.chosen_runners(linear.RUNNERS, ["sklearn"])]
    assert names == [
        "maxmargin",
        *(name for name in map(str, (r.name for r in scikit_learn.RUNNERS))),
    ]


def test_sets_of_the_folder_are_left_out_without_it():
    said = []
    chosen = harness.chosen_cases(linear.CASES, harness.Options("linear"), said.append)
    assert {case.source.name for case in chosen} == {
        "breast_cancer",
        "digits",
        "diabetes",
        "random_100x4",
    }
    assert "a9a-hinge: skipped, needs --data DIR" in said


# ---- Pegasos and the stream ------------------------------------------------------------------


def test_pegasos_writes_the_curves_it_can(tmp_path, monkeypatch, capsys):
    def absent(problem, data, passes):
        raise NotAvailable("there is none")

    some = {"LIBLINEAR": pegasos.CURVES["LIBLINEAR"], "nothing": absent}
    monkeypatch.setattr(pegasos, "CURVES", some)
    monkeypatch.setattr(pegasos, "reference", lambda *_: 1e-3)
    pegasos.main(["--sets", "breast_cancer", "--most", "2", "--output", str(tmp_path)])
    assert "nothing: skipped, there is none" in capsys.readouterr().out
    rows = json.loads((tmp_path / "pegasos.json").read_text())["rows"]
    assert [(row["method"], row["passes"]) for row in rows] == [("LIBLINEAR", 1), ("LIBLINEAR", 2)]
    assert all(row["above"] == pytest.approx(row["objective"] / 1e-3 - 1) for row in rows)
    assert (tmp_path / "pegasos.svg").exists()


@pytest.mark.parametrize("dense", [False, True])
def test_stream_repeats_itself(dense):
    stream = out_of_core.Stream(250, chunk=100, features=40, nonzeros=4, dense=dense)
    first, again = list(stream.chunks()), list(stream.chunks())
    assert [len(y) for _, y in first] == [100, 100, 50]
    for (one, y), (two, z) in zip(first, again, strict=True):
        np.testing.assert_array_equal(y, z)
        assert abs(one - two).max() == 0
    assert abs(first[0][0] - first[1][0]).max() > 0
    assert abs(stream.unseen()[0][:50] - first[2][0]).max() > 0
    if not dense:
        assert first[0][0].has_sorted_indices
        assert first[0][0].nnz == 400


def test_stream_is_wrong_as_often_as_it_says():
    X, y = out_of_core.Stream(1, chunk=20_000, noise=0.1).unseen()
    right = X @ out_of_core.Stream(1).plane() > 0
    assert np.mean(right != y) == pytest.approx(0.1, abs=0.01)


def test_out_of_core_says_what_it_took(tmp_path, capsys):
    options = ["--rows", "4000", "--chunk", "1000", "--features", "20", "--learner", "sgd"]
    out_of_core.main([*options, "--limit", "1e6", "--output", str(tmp_path)])
    figures = json.loads((tmp_path / "out_of_core_sgd.json").read_text())
    assert figures["accuracy"] > 0.8
    assert "4,000 rows" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"peak .* allowed 1"):
        out_of_core.main([*options, "--limit", "1", "--output", str(tmp_path)])


def test_the_table_of_agreement_measures_what_is_claimed():
    """Unpolished fits are not optimal, and say so truthfully."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    gaps = agreement.claims(X, X[:, 0] + rng.normal(size=200) > 0, 10.0, 0.5)
    for gap, true in zip(gaps[::2], gaps[1::2], strict=True):
        assert gap >= true - 1e-10
    assert gaps[1] > 1e-9  # at tol=1e-3 there is something to see
