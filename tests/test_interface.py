"""The machines inside of scikit-learn: parameters, tags, routing, searches, tables, pages."""

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import maxmargin
from maxmargin import SVC, NuSVC
from maxmargin.kernels import RBF, FromFunction, Precomputed
from maxmargin.strategies import Block

X, Y = load_iris(return_X_y=True)
SAME_NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
DEVIATIONS = {"cache_size": "auto", "probability": False}


@pytest.mark.parametrize("name", SAME_NAMES)
def test_parameters_are_scikit_learns_and_more(name):
    ours = inspect.signature(getattr(maxmargin, name)).parameters
    theirs = inspect.signature(getattr(svm, name)).parameters
    for each, parameter in theirs.items():
        assert ours[each].default == DEVIATIONS.get(each, parameter.default), each
    for each in ours.keys() - theirs.keys():
        assert ours[each].kind is inspect.Parameter.KEYWORD_ONLY
    more = {"working_set", "gap_tol", "n_jobs", "time_limit", "warm_start", "dtype"}
    assert more <= ours.keys()
    for method in ("fit", "predict"):
        a, b = (getattr(getattr(module, name), method) for module in (maxmargin, svm))
        assert list(inspect.signature(a).parameters) == list(inspect.signature(b).parameters)


@pytest.mark.parametrize(
    "parameter, value",
    [
        ("C", 0),
        ("C", -1.0),
        ("C", "1"),
        ("kernel", "quadratic"),
        ("kernel", None),
        ("degree", -1),
        ("gamma", -0.1),
        ("gamma", "large"),
        ("coef0", np.inf),
        ("tol", 0),
        ("gap_tol", -1e-3),
        ("cache_size", 0),
        ("cache_size", "large"),
        ("class_weight", "unbalanced"),
        ("max_iter", -2),
        ("decision_function_shape", "ova"),
        ("multi_class", "all"),
        ("loss", "log"),
        ("working_set", "third-order"),
        ("n_jobs", 1.5),
        ("time_limit", -1),
        ("warm_start", "yes"),
        ("dtype", "int8"),
        ("probability", "deprecated"),
        ("fit_intercept", None),
    ],
)
def test_parameters_are_checked_once_by_name(parameter, value):
    message = f"The '{parameter}' parameter of SVC must be"
    with pytest.raises(ValueError, match=message) as caught:
        SVC(**{parameter: value}).fit(X, Y)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    "working_set",
    ["random", "platt", "max-violating-pair", "second-order", "block", "gradient", Block(16)],
)
def test_every_working_set_reaches_the_optimum(working_set):
    rows = StandardScaler().fit_transform(X)
    best = SVC(tol=1e-6).fit(rows, Y)
    machine = SVC(working_set=working_set, tol=1e-6, random_state=0).fit(rows, Y)
    assert machine.objective_ == pytest.approx(best.objective_, rel=1e-6)
    assert_array_equal(machine.predict(rows), best.predict(rows))


def test_working_sets_that_cannot_say_why():
    with pytest.raises(ValueError, match="intercept"):
        SVC(working_set="coordinate").fit(X, Y)
    SVC(working_set="coordinate", fit_intercept=False).fit(X, Y)


# ------------------------------------------------------------------ tags and searches


def test_tags_are_the_kernels():
    for kernel, pairwise, sparse in [
        ("rbf", False, True),
        ("precomputed", True, False),
        (Precomputed(), True, False),
        (RBF(), False, True),
        (FromFunction(lambda A, B: A @ B.T), False, True),
        ("no such kernel", False, False),
    ]:
        tags = get_tags(SVC(kernel=kernel)).input_tags
        assert (tags.pairwise, tags.sparse) == (pairwise, sparse)
    assert get_tags(SVC()).estimator_type == "classifier"


@pytest.mark.parametrize("kernel", ["precomputed", Precomputed()])
def test_gram_matrices_are_cut_by_cross_validation(kernel):
    K = X @ X.T
    ours = cross_val_score(SVC(kernel=kernel), K, Y)
    assert_array_equal(ours, cross_val_score(SVC(kernel="linear"), X, Y))


def test_searches():
    pipeline = make_pipeline(StandardScaler(), SVC(kernel=RBF(gamma=1.0)))
    grid = {"svc__kernel__gamma": [0.1, 1.0], "svc__C": [1, 10]}
    search = GridSearchCV(pipeline, grid, n_jobs=2).fit(X, Y)
    assert search.best_score_ > 0.95
    assert clone(pipeline).get_params()["svc__kernel__gamma"] == 1.0
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (150, 3)


def test_metadata_is_routed():
    weights = np.arange(len(Y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        machine = NuSVC(nu=0.2).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, machine)
        pipeline.fit(X, Y, sample_weight=weights)
        assert np.all(weights[pipeline[-1].support_] > 0)
        cross_val_predict(pipeline, X, Y, params={"sample_weight": weights})


# ------------------------------------------------------------------ tables and pages


def test_tables():
    frame, labels = load_iris(return_X_y=True, as_frame=True)
    machine = SVC().fit(frame, labels)
    assert_array_equal(machine.feature_names_in_, frame.columns)
    assert machine.n_features_in_ == 4
    assert_array_equal(machine.predict(frame), SVC().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        machine.predict(frame.rename(columns=str.upper))
    assert_array_equal(machine.classes_, pd.unique(labels))


def test_pages():
    assert "SVC" in SVC(C=3)._repr_html_()
    assert "kernel=RBF(gamma=2.0)" in repr(SVC(kernel=RBF(gamma=2.0)))


def test_the_package_is_lazy():
    assert set(maxmargin.__all__) <= set(dir(maxmargin))
    assert inspect.ismodule(maxmargin.solve)
    with pytest.raises(AttributeError, match="no attribute 'SVM'"):
        maxmargin.SVM  # noqa: B018
    program = "import sys, maxmargin; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_versions(capsys):
    maxmargin.show_versions()
    printed = capsys.readouterr().out
    for part in ("maxmargin", "instruction set", "threads", "numpy", "scikit-learn"):
        assert part in printed
