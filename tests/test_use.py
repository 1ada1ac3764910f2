"""The programs that users type, as they stand, on real data small enough for a test."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(StandardScaler().fit_transform(X), y, random_state=0)


def test_a_drop_in_that_proves_its_answer(cancer):
    from maxmargin import SVC

    X, X_test, y, y_test = cancer
    svc = SVC(C=10, gap_tol=1e-6).fit(X, y)
    assert svc.score(X_test, y_test) > 0.95
    assert svc.objective_ > 0
    assert 0 <= svc.dual_gap_ <= 1e-6 * svc.objective_
    assert svc.status_.startswith("converged: duality gap ")
    assert svc.status_.endswith("(asked: 1e-06; verified in float64)")
    assert svc.margin_ > 0
    margins = svc.margins(X, y)
    signs = np.where(y == svc.classes_[1], 1, -1)
    np.testing.assert_allclose(margins, signs * svc.decision_function(X) * svc.margin_)
    d = svc.diagnose(X, y)
    assert d.alpha.shape == d.slack.shape == d.margin.shape == d.case.shape == y.shape
    assert d.primal - d.dual == pytest.approx(svc.dual_gap_, abs=1e-9 * d.primal)
    low, high = np.ravel(d.intercept_interval)
    assert low <= svc.intercept_[0] + 1e-6
    assert svc.intercept_[0] <= high + 1e-6
    assert len(str(d).splitlines()) > 5


def test_watch_stop_resume(cancer, capsys):
    pytest.importorskip("rich")
    pytest.importorskip("matplotlib").use("Agg")
    from sklearn.callback import ProgressBar

    from maxmargin import SVC
    from maxmargin.callbacks import Trace

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 20)) * np.logspace(-2, 2, 20)
    y = X[:, -1] + 30 * rng.normal(size=6000) > 0
    trace = Trace()
    svc = SVC(C=1e4, kernel="linear", time_limit=1, warm_start=True)
    svc.set_callbacks(ProgressBar(), trace)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        svc.fit(X, y)
    first = svc.objective_ - svc.dual_gap_
    assert svc.predict(X).shape == y.shape
    assert trace.records[-1].dual_gap == pytest.approx(svc.dual_gap_)
    with pytest.warns(ConvergenceWarning):
        svc.set_params(time_limit=None, max_iter=20_000).fit(X, y)
    assert svc.objective_ - svc.dual_gap_ > first
    assert trace.plot() is not None


def test_the_solvers_of_the_lectures_one_by_one(cancer):
    from maxmargin import SVC
    from maxmargin.kernels import RBF
    from maxmargin.problem import c_svc
    from maxmargin.reference import solve
    from maxmargin.solve import solve as engine
    from maxmargin.strategies import Block, Coordinate, Gradient

    X, _, labels, _ = cancer
    objectives = []
    for working_set in (
        "random",
        "platt",
        "max-violating-pair",
        "second-order",
        Block(size=64, growing=True),
        Gradient(),
    ):
        svc = SVC(kernel="linear", working_set=working_set).fit(X, labels)
        assert svc.n_iter_[0] > 0
        objectives.append(svc.objective_)
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-4)
    with pytest.raises(ValueError, match="fit_intercept=False"):
        SVC(kernel="linear", working_set=Coordinate()).fit(X, labels)
    assert SVC(kernel="linear", working_set=Coordinate(), fit_intercept=False).fit(X, labels)

    y = np.where(labels, 1.0, -1.0)
    K = RBF(gamma=1.0)(X)
    solution = solve(c_svc(y, C=1.0), K)
    again = engine(c_svc(y, C=1.0), RBF(gamma=1).fit(X).prepare(X))
    assert solution.objective == pytest.approx(again.objective, rel=1e-5)
    np.testing.assert_allclose(again.gradient, K @ again.coefficients - y, atol=1e-9)
    assert solution.gap >= 0
    assert solution.status.startswith("converged")


def test_kernels_are_values(cancer):
    from sklearn.svm import SVC as LIBSVM

    from maxmargin import SVC
    from maxmargin.kernels import RBF

    X, _, y, _ = cancer
    assert RBF.from_sigma(2.0) == RBF(gamma=1 / 8)
    k = RBF(gamma=0.05)
    assert repr(k) == "RBF(gamma=0.05)"
    assert k(X).shape == (len(X), len(X))
    np.testing.assert_array_equal(k(X)[:, :3], k(X, X[:3]))
    search = GridSearchCV(SVC(kernel=RBF(gamma=1)), {"kernel__gamma": [0.1, 1], "C": [1, 10]})
    assert search.fit(X, y).best_params_["kernel__gamma"] == 0.1
    ours, theirs = SVC(kernel=k).fit(X, y), LIBSVM(kernel=clone(k)).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_linear_machines(cancer, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    from maxmargin import LinearClassifier, LinearRegressor, LinearSVC, regularization_path
    from maxmargin.io import open_svmlight, write_svmlight

    X, X_test, y, y_test = cancer
    X_sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    svc = LinearSVC(C=1, gap_tol=1e-6).fit(X_sparse, y)
    assert 0 <= svc.dual_gap_ <= 1e-6 * svc.objective_
    assert LinearClassifier(loss="hinge", penalty="l1", C=1).fit(X, y).score(X_test, y_test) > 0.9
    with pytest.raises(ValueError, match=r"pegasos needs the l2 penalty; for l1 with the hinge"):
        LinearClassifier(loss="hinge", penalty="l1", solver="pegasos").fit(X, y)
    assert LinearRegressor().fit(X[:, 1:], X[:, 0]).score(X[:, 1:], X[:, 0]) > 0.9
    path = regularization_path(LinearClassifier(loss="logistic", penalty="l1"), X, y, Cs=50)
    assert len(path.Cs) == 50
    assert path.plot() is not None

    write_svmlight(X_sparse, y, tmp_path / "rows.svm.gz")
    X, y = open_svmlight(tmp_path / "rows.svm.gz")
    on_disk = LinearClassifier(loss="hinge").fit(X, y)
    in_memory = LinearClassifier(loss="hinge").fit(X_sparse, y)
    np.testing.assert_allclose(on_disk.coef_, in_memory.coef_, atol=1e-8)
    assert on_disk.score(X_test, y_test) > 0.9


def test_the_doorway_perceptrons(cancer):
    from maxmargin import (
        AveragedPerceptron,
        BasicLinearClassifier,
        BudgetPerceptron,
        DualPerceptron,
        KernelPegasos,
        KernelPerceptron,
        PassiveAggressive,
        Pegasos,
        Perceptron,
        VotedPerceptron,
    )

    X, X_test, y, y_test = cancer
    p = Perceptron(eta0=1.0).fit(X, y)
    assert p.n_mistakes_ <= p.mistake_bound(X, y, n_passes=p.n_iter_)
    one_pass = Perceptron(max_iter=1, tol=None).fit(X, y)
    assert one_pass.n_mistakes_ <= p.mistake_bound(X, y)
    q = DualPerceptron().fit(X, y)
    assert q.alpha_.shape == y.shape
    assert q.alpha_.sum() == q.n_mistakes_
    np.testing.assert_allclose(q.coef_, p.coef_)
    budget = BudgetPerceptron(kernel="rbf", budget=200)
    stream = zip(np.array_split(X, 10), np.array_split(y, 10), strict=True)
    for X_chunk, y_chunk in stream:
        budget.partial_fit(X_chunk, y_chunk, classes=[0, 1])
    assert budget.n_support_[0] <= 200
    others = (
        BasicLinearClassifier(),
        KernelPerceptron(),
        AveragedPerceptron(),
        VotedPerceptron(),
        PassiveAggressive(),
        Pegasos(),
        KernelPegasos(),
    )
    for model in (p, q, budget, *(other.fit(X, y) for other in others)):
        assert model.score(X_test, y_test) > 0.9


def test_show_versions_tells_instruction_set_and_threads(capsys):
    import maxmargin

    maxmargin.show_versions()
    told = capsys.readouterr().out
    assert maxmargin.__version__ in told
    assert "instruction set" in told
    assert "scikit-learn" in told
