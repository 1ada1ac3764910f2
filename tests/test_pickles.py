"""Models on disk: NumPy and Python only, a version, a warning when it differs, never a crash."""

import copy
import pickle
import pickletools
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris

import maxmargin
from maxmargin.exceptions import InconsistentVersionWarning

X, Y = load_iris(return_X_y=True)

MACHINES = {
    "SVC": (maxmargin.SVC(), Y),
    "SVC of two classes": (maxmargin.SVC(probability=True, random_state=0), Y == 1),
    "SVC, each against the rest": (maxmargin.SVC(multi_class="ovr", kernel="linear"), Y),
    "SVC, Crammer-Singer": (maxmargin.SVC(multi_class="crammer_singer"), Y),
    "NuSVC": (maxmargin.NuSVC(nu=0.2), Y),
    "SVR": (maxmargin.SVR(kernel="laplacian"), X[:, 0]),
    "NuSVR": (maxmargin.NuSVR(), X[:, 0]),
    "OneClassSVM": (maxmargin.OneClassSVM(), None),
    "SVDD": (maxmargin.SVDD(), None),
    "RankSVM": (maxmargin.RankSVM(max_iter=20_000), X[:, 0]),
    "LSSVC": (maxmargin.LSSVC(), Y),
    "LSSVR": (maxmargin.LSSVR(), X[:, 0]),
}
FIXTURES = sorted(Path(__file__).parent.glob("models/*.pickle"))


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: clone(m).fit(X, y) for name, (m, y) in MACHINES.items()}


def values(machine, rows=X):
    method = getattr(machine, "decision_function", machine.predict)
    return method(rows)


# ------------------------------------------------------------------ what is in them


def modules(data):
    """The modules of all classes and functions that a pickle (of protocol 2) names."""
    return {value.split()[0] for op, value, _ in pickletools.genops(data) if op.name == "GLOBAL"}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_numpy_and_python_only(name, container):
    machine, y = MACHINES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = clone(machine).fit(container(X), y)
    state = machine.__getstate__().keys()
    expected = values(machine, container(X))
    assert machine.__getstate__().keys() == state  # what prediction prepares stays outside
    data = pickle.dumps(machine, protocol=2)
    allowed = {"maxmargin", "numpy", "scipy", "__builtin__", "copy_reg", "_codecs"}
    assert {module.split(".")[0] for module in modules(data)} <= allowed
    assert "maxmargin._core" not in modules(data)
    assert_array_equal(values(pickle.loads(data), container(X)), expected)


@pytest.mark.parametrize("name", MACHINES)
def test_copies(fitted, name, tmp_path):
    machine = fitted[name]
    expected = values(machine)
    joblib.dump(machine, tmp_path / "model")
    for other in (
        copy.copy(machine),
        copy.deepcopy(machine),
        joblib.load(tmp_path / "model", mmap_mode="r"),
    ):
        assert_array_equal(values(other), expected)


# ------------------------------------------------------------------ versions


@pytest.mark.parametrize("state", [{"_maxmargin_version": "0.0.1"}, {}])
def test_another_version_is_named(fitted, state):
    machine = fitted["SVC"]
    old = {**machine.__getstate__()}
    assert old.pop("_maxmargin_version") == maxmargin.__version__
    twin = maxmargin.SVC()
    with pytest.warns(InconsistentVersionWarning, match="fit it again") as caught:
        twin.__setstate__(old | state)
    warning = caught[0].message
    assert warning.estimator_name == "SVC"
    assert warning.current_version == maxmargin.__version__
    assert warning.original_version == state.get("_maxmargin_version", "an unknown version")
    assert_array_equal(values(twin), values(machine))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_models_of_earlier_releases(path):
    """Written by ``python tests/test_pickles.py``, one file for each release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        machines, expected = pickle.loads(path.read_bytes())
    for name, machine in machines.items():
        np.testing.assert_allclose(values(machine), expected[name], atol=1e-9, err_msg=name)


def test_there_is_one_for_this_release():
    assert maxmargin.__version__ in {path.stem for path in FIXTURES}


# ------------------------------------------------------------------ altered models


def shorter(name):
    def alter(machine):
        setattr(machine, name, getattr(machine, name)[:-1])

    return alter


def more_support(machine):
    machine.n_support_[0] = 1_000_000


def negative_support(machine):
    machine.n_support_[:2] += [-1000, 1000]


def fewer_features(machine):
    machine.support_vectors_ = machine.support_vectors_[:, :2]


def transposed(machine):
    machine.dual_coef_ = machine.dual_coef_.T


def flat(machine):
    machine.dual_coef_ = machine.dual_coef_.ravel()


ALTERATIONS = [
    *(shorter(n) for n in ("support_", "support_vectors_", "dual_coef_", "intercept_", "classes_")),
    more_support,
    negative_support,
    fewer_features,
    transposed,
    flat,
]


@pytest.mark.parametrize("alter", ALTERATIONS)
@pytest.mark.parametrize("name", ["SVC", "SVC of two classes", "NuSVC", "SVC, Crammer-Singer"])
def test_an_altered_model_is_refused(fitted, name, alter):
    machine = copy.deepcopy(fitted[name])
    kind = type(machine).__name__
    if name == "SVC of two classes" and alter is ALTERATIONS[2]:
        pytest.skip("one row less is none")
    alter(machine)
    with pytest.raises(ValueError, match=f"The internal representation of {kind} was altered"):
        machine.predict(X)


@pytest.mark.parametrize("part, value", [("indices", 10**6), ("indices", -1), ("indptr", 10**6)])
def test_altered_sparse_support_vectors_are_refused(part, value):
    machine = maxmargin.SVC().fit(sp.csr_matrix(X), Y)
    getattr(machine.support_vectors_, part)[1] = value
    with pytest.raises(ValueError, match="representation of SVC was altered"):
        machine.predict(sp.csr_matrix(X))
    broken = machine.support_vectors_
    with pytest.raises(ValueError, match="not those of a CSR matrix"):
        maxmargin.SVC().fit(broken, np.arange(broken.shape[0]) % 2)


def test_changed_coefficients_count():
    machine = maxmargin.SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
    machine.dual_coef_ = -machine.dual_coef_
    assert machine.predict([[3.0]]) == 0
    machine.support_vectors_ = -machine.support_vectors_
    assert machine.predict([[3.0]]) == 1


if __name__ == "__main__":
    here = Path(__file__).parent / "models"
    here.mkdir(exist_ok=True)
    machines = {
        name: clone(m).fit(X[::3], None if y is None else y[::3])
        for name, (m, y) in MACHINES.items()
    }
    content = machines, {name: values(machine) for name, machine in machines.items()}
    (here / f"{maxmargin.__version__}.pickle").write_bytes(pickle.dumps(content, protocol=4))
