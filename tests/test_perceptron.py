"""Perceptrons against the loops of the lectures, their closed forms and their bounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as TheirPerceptron
from sklearn.neighbors import NearestCentroid

import maxmargin
from maxmargin import (
    AveragedPerceptron,
    BasicLinearClassifier,
    DualPerceptron,
    KernelPerceptron,
    PassiveAggressive,
    Perceptron,
    VotedPerceptron,
)
from maxmargin.kernels import RBF, Kernel, Linear
from maxmargin.perceptron import kernel as kernel_module
from maxmargin.perceptron.expansion import mistakes

ONE_PASS = {"max_iter": 1, "tol": None, "shuffle": False}
LINEAR = (Perceptron, AveragedPerceptron, PassiveAggressive, maxmargin.Pegasos)
KERNELS = (
    DualPerceptron,
    KernelPerceptron,
    VotedPerceptron,
    maxmargin.BudgetPerceptron,
    maxmargin.KernelPegasos,
)


def overlapping(n=60, d=3, seed=0, classes=2):
    """Rows of small integers, so that sums are exact, whose classes overlap."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(n, d)).astype(float)
    noise = rng.normal(size=n)
    y = np.digitize(X[:, 0] + noise, [0.0] if classes == 2 else [-1.5, 1.5])
    return X, y


def separable(n=40, d=3, seed=0, gap=0.5):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    X = rng.normal(size=(n, d))
    distance = X @ w / np.linalg.norm(w)
    X += np.outer(gap * np.sign(distance), w / np.linalg.norm(w))
    return X, np.sign(distance)


def textbook(K, y, passes=1, C=None):
    """The kernel perceptron of the lectures, row by row: coefficients after each row."""
    c, history = np.zeros(len(y)), []
    for _ in range(passes):
        for i in range(len(y)):
            if y[i] * (K[i] @ c) <= 0:
                c[i] += y[i]
            history.append(c.copy())
    return np.array(history)


def with_constant(X):
    return np.hstack([X, np.ones((len(X), 1))])


# ------------------------------------------------------------------ the perceptron and its forms


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_primal_and_dual_are_one_predictor(fit_intercept, shuffle, classes):
    X, y = overlapping(classes=classes)
    options = {"fit_intercept": fit_intercept, "shuffle": shuffle, "max_iter": 7, "tol": None}
    p, q = Perceptron(**options).fit(X, y), DualPerceptron(**options).fit(X, y)
    np.testing.assert_array_equal(p.coef_, q.coef_)
    np.testing.assert_array_equal(p.intercept_, q.intercept_)
    np.testing.assert_array_equal(p.n_mistakes_, q.n_mistakes_)
    np.testing.assert_array_equal(q.alpha_.sum(axis=-1), q.n_mistakes_)
    signs = np.where(y == np.arange(classes)[:, None], 1, -1)[-1 if classes == 2 else slice(None)]
    np.testing.assert_array_equal(np.atleast_2d(q.alpha_ * signs) @ X, p.coef_)
    np.testing.assert_array_equal(p.decision_function(X), q.decision_function(X))


@pytest.mark.parametrize("eta0", [1.0, 0.25])
def test_the_loop_of_the_lecture(eta0):
    X, y = overlapping()
    w, mistakes_made = np.zeros(4), 0
    for _ in range(3):
        for x, label in zip(with_constant(X), 2 * y - 1, strict=True):
            if label * (w @ x) <= 0:
                w += eta0 * label * x
                mistakes_made += 1
    p = Perceptron(eta0=eta0, max_iter=3, tol=None, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(np.append(p.coef_, p.intercept_), w)
    assert p.n_mistakes_ == mistakes_made
    assert (p.n_iter_, p.t_) == (3, 3 * len(y) + 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_scikit_learns_perceptron_is_the_same_on_rows_in_order(classes):
    X, y = overlapping(classes=classes)
    options = {"shuffle": False, "fit_intercept": True}
    for more in ({"max_iter": 5, "tol": None}, {"tol": 1e-2, "max_iter": 1000}):
        ours, theirs = (E(**options, **more).fit(X, y) for E in (Perceptron, TheirPerceptron))
        np.testing.assert_allclose(ours.coef_, theirs.coef_)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_)
        assert ours.n_iter_ == theirs.n_iter_
        assert ours.t_ == theirs.t_


def test_a_score_of_zero_is_a_mistake_and_the_positive_class():
    p = Perceptron(**ONE_PASS, fit_intercept=False).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    assert p.n_mistakes_ == 2
    assert p.decision_function([[1.0, 1.0]]) == 0
    assert p.predict([[1.0, 1.0]]) == "b"


def test_a_pass_without_mistakes_ends_the_fit_and_nothing_else_without_tol():
    X, y = separable()
    p = Perceptron(tol=None).fit(X, y)
    assert p.n_iter_ < 1000
    assert p.score(X, y) == 1
    before = p.n_mistakes_
    assert p.partial_fit(X, y).n_mistakes_ == before
    X, y = overlapping()
    assert Perceptron(tol=None, max_iter=123).fit(X, y).n_iter_ == 123
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        Perceptron(max_iter=3).fit(X, y)


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.3)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_blocks_make_the_mistakes_of_single_rows(kernel, fit_intercept, monkeypatch):
    X, y = overlapping(n=200)
    options = {"kernel": kernel, "fit_intercept": fit_intercept, "max_iter": 3, "tol": None}
    models = []
    for block in (1, 7, 64, 512):
        monkeypatch.setattr(kernel_module, "BLOCK", block)
        monkeypatch.setitem(kernel_module.KernelLearner.__init__.__kwdefaults__, "block", block)
        models.append(KernelPerceptron(**options, shuffle=False).fit(X, y))
    K = kernel(X) + fit_intercept
    history = textbook(K, 2 * y - 1, passes=3)
    for model in models:
        np.testing.assert_array_equal(model.support_, np.flatnonzero(history[-1]))
        np.testing.assert_array_equal(model.dual_coef_[0], history[-1][model.support_])
        np.testing.assert_allclose(
            model.average_dual_coef_[0], history.mean(axis=0)[model.support_], atol=1e-12
        )
        assert model.n_mistakes_ == np.abs(history[-1]).sum()


def test_mistakes_are_found_one_after_the_other():
    F, Y = np.array([[1.0], [-1.0], [2.0], [-3.0]]), np.ones((4, 1))
    seen = []
    for place, wrong in mistakes(F, Y, np.array([3, 2, 1, 0])):
        seen.append(place)
        assert wrong.all()
        F[1] = 1.0  # mended before its turn
    assert seen == [0]


# ------------------------------------------------------------------ averages and votes


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_average_is_that_of_all_weights_there_were(make):
    X, y = overlapping()
    history = textbook(with_constant(X) @ with_constant(X).T, 2 * y - 1, passes=3)
    weights = history @ with_constant(X)
    a = AveragedPerceptron(max_iter=3, tol=None, shuffle=False).fit(make(X), y)
    np.testing.assert_allclose(np.append(a.coef_, a.intercept_), weights.mean(axis=0))
    np.testing.assert_allclose(np.append(a.last_coef_, a.last_intercept_), weights[-1])
    p = Perceptron(max_iter=3, tol=None, shuffle=False).fit(make(X), y)
    np.testing.assert_array_equal(a.last_coef_, p.coef_)
    k = KernelPerceptron(kernel="linear", average=True, max_iter=3, tol=None, shuffle=False)
    np.testing.assert_allclose(k.fit(X, y).decision_function(X), a.decision_function(make(X)))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_predictor_votes_once_for_each_row_that_it_survived(kernel):
    X, y = overlapping()
    v = VotedPerceptron(kernel=kernel, gamma=0.1, max_iter=2, tol=None, shuffle=False).fit(X, y)
    K = (Linear() if kernel == "linear" else RBF(gamma=0.1))(X) + 1
    history = textbook(K, 2 * y - 1, passes=2)
    votes = np.where(K @ history.T >= 0, 1, -1).mean(axis=1)
    np.testing.assert_allclose(v.decision_function(X), votes)
    assert v.votes_[0].sum() == 2 * len(y)
    assert len(v.votes_[0]) == v.n_mistakes_
    np.testing.assert_array_equal(v.dual_coef_[0], history[-1][v.support_])


def test_votes_go_on_over_chunks_and_classes():
    X, y = overlapping(classes=3, n=90)
    whole = VotedPerceptron(**ONE_PASS).fit(X, y)
    parts = VotedPerceptron()
    for rows in np.array_split(np.arange(90), 4):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X))
    assert [v.tolist() for v in parts.votes_] == [v.tolist() for v in whole.votes_]


# ------------------------------------------------------------------ passive-aggressive


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.05, 2.0, np.inf])
def test_steps_of_the_passive_aggressive_have_a_closed_form(loss, C):
    X, y = overlapping()
    w = np.zeros(4)
    for x, label in zip(with_constant(X), 2 * y - 1, strict=True):
        suffered = max(0.0, 1 - label * (w @ x))
        tau = min(C, suffered / (x @ x)) if loss == "hinge" else suffered / (x @ x + 1 / (2 * C))
        w += tau * label * x
    pa = PassiveAggressive(C=C, loss=loss, **ONE_PASS).fit(X, y)
    np.testing.assert_allclose(np.append(pa.coef_, pa.intercept_), w)


def test_a_passive_aggressive_step_is_the_smallest_with_a_margin():
    """The step for C = inf: the projection on the half-space y f(x) >= 1."""
    X, y = overlapping(n=20)
    pa = PassiveAggressive(C=np.inf).partial_fit(X, y, classes=[0, 1])
    before = np.append(pa.coef_, pa.intercept_)
    x = np.array([0.3, -2.0, 1.0])
    label = -1 if pa.decision_function([x])[0] > -1 else 1
    pa.partial_fit([x], [label > 0])
    after = np.append(pa.coef_, pa.intercept_)
    assert label * pa.decision_function([x])[0] == pytest.approx(1)
    change, direction = after - before, np.append(x, 1.0)
    np.testing.assert_allclose(change, (change @ direction) / (direction @ direction) * direction)


def test_rows_of_zeros_move_nothing():
    for loss in ("hinge", "squared_hinge"):
        pa = PassiveAggressive(C=np.inf, loss=loss, fit_intercept=False, **ONE_PASS)
        assert not pa.fit(np.zeros((4, 2)), [0, 1, 0, 1]).coef_.any()


# ------------------------------------------------------------------ the basic linear classifier


def test_two_means_and_the_plane_between():
    X, y = overlapping()
    b = BasicLinearClassifier().fit(X, y)
    plus, minus = X[y == 1].mean(axis=0), X[y == 0].mean(axis=0)
    np.testing.assert_allclose(b.coef_[0], plus - minus)
    assert b.intercept_[0] == pytest.approx(-(plus - minus) @ (plus + minus) / 2)
    assert b.decision_function([(plus + minus) / 2])[0] == pytest.approx(0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_nearest_of_several_means(make):
    X, y = make_blobs(150, centers=5, n_features=4, random_state=1)
    b = BasicLinearClassifier().fit(make(X), y)
    np.testing.assert_array_equal(b.predict(X), NearestCentroid().fit(X, y).predict(X))
    parts = BasicLinearClassifier()
    for rows in np.array_split(np.arange(150), 7):
        parts.partial_fit(make(X[rows]), y[rows], classes=range(5))
    np.testing.assert_allclose(parts.coef_, b.coef_)
    np.testing.assert_allclose(parts.intercept_, b.intercept_)


# ------------------------------------------------------------------ bounds


@given(
    seed=st.integers(0, 2**16), gap=st.floats(0.05, 2), d=st.integers(1, 4), intercept=st.booleans()
)
def test_no_more_mistakes_than_the_margin_allows(seed, gap, d, intercept):
    X, y = separable(20, d, seed, gap)
    if len(np.unique(y)) < 2:
        return
    for make in (Perceptron, DualPerceptron, AveragedPerceptron):
        p = make(fit_intercept=intercept, tol=None, random_state=seed).fit(X, y)
        assert p.score(X, y) == 1 or isinstance(p, AveragedPerceptron)
        assert p.n_mistakes_ <= p.mistake_bound(X, y)
    assert intercept or p.mistake_bound(X, y) <= (np.linalg.norm(X, axis=1).max() / gap) ** 2 * (
        1 + 1e-6
    )


def test_the_bound_is_radius_over_margin():
    X, y = np.array([[3.0, 0], [0, 4], [-3, 0], [0, -4]]), [1, 1, 0, 0]
    p = Perceptron(fit_intercept=False).fit(X, y)
    gamma = 12 / 5  # the separator is parallel to the line through the first two points
    assert p.mistake_bound(X, y) == pytest.approx((4 / gamma) ** 2, rel=1e-5)
    p = Perceptron(fit_intercept=True).fit(X, y)  # symmetric: b = 0, and R grows
    assert p.mistake_bound(X, y) == pytest.approx(17 / gamma**2, rel=1e-5)
    assert p.mistake_bound(10 * X, y) == pytest.approx(1601 / 24**2, rel=1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_bound_in_feature_space(fit_intercept):
    X, y = overlapping(n=30)
    X = X + np.random.default_rng(1).normal(size=X.shape) / 100  # no two rows alike
    k = KernelPerceptron(kernel="rbf", gamma=1.0, fit_intercept=fit_intercept, tol=None).fit(X, y)
    K, signs = RBF(gamma=1.0)(X) + fit_intercept, 2 * y - 1
    assert k.n_mistakes_ <= k.mistake_bound(X, y)
    # An independent bound on the margin: that of the function with y f = 1 on all rows.
    c = np.linalg.solve(K, signs)
    assert k.mistake_bound(X, y) <= K.max() * (signs @ c) * (1 + 1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 0.5, 2: 1.0}])
@pytest.mark.parametrize("passes", [1, 5])
def test_the_bound_by_hinge_losses(classes, class_weight, passes):
    if class_weight and classes == 2:
        class_weight = {c: class_weight[c] for c in (0, 1)}
    X, y = overlapping(classes=classes)
    p = Perceptron(max_iter=passes, tol=None, class_weight=class_weight).fit(X, y)
    bound = p.mistake_bound(X, y, n_passes=passes)
    assert np.all(p.n_mistakes_ <= bound)
    assert np.all(bound <= passes * len(y))  # that of u = 0


def test_few_mistakes_mean_few_errors():
    X, y = separable(300, gap=1.5)
    v = VotedPerceptron(**ONE_PASS).fit(X, y)
    assert v.error_bound(X, y) == pytest.approx(2 * v.mistake_bound(X, y) / 300)
    new, truth = separable(2000, gap=1.5)  # the same separator, since the same seed
    assert np.mean(v.predict(new) != truth) <= v.error_bound(X, y)
    with pytest.raises(ValueError, match="max_iter=1"):
        VotedPerceptron(shuffle=False).fit(X[:, :1], y).error_bound(X[:, :1], y)


# ------------------------------------------------------------------ what all have in common


@pytest.mark.parametrize("make", [*LINEAR, *KERNELS], ids=lambda m: m.__name__)
@pytest.mark.parametrize("classes", [2, 3])
def test_chunks_are_a_pass(make, classes):
    X, y = overlapping(n=120, classes=classes)
    options = {"kernel": "rbf", "gamma": 0.1} if make in KERNELS else {}
    whole = make(**ONE_PASS, **options).fit(X, y)
    parts = make(**options)
    for rows in np.array_split(np.arange(len(y)), 5):
        parts.partial_fit(X[rows], y[rows], classes=range(classes))
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(parts.n_mistakes_, whole.n_mistakes_)
    assert parts.t_ == whole.t_ == len(y) + 1
    for name in ("support_", "alpha_"):
        if hasattr(whole, name):
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


@pytest.mark.parametrize("make", [*LINEAR, *KERNELS], ids=lambda m: m.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_dense_rows(make, dtype):
    X, y = overlapping(classes=3)
    X = X.astype(dtype)
    options = {"kernel": "poly", "gamma": 1.0} if make in KERNELS else {}
    model = make(max_iter=4, tol=None, **options).fit(X, np.array(["a", "b", "c"])[y])
    for index in (np.int32, np.int64):
        rows = sp.csr_array(X)
        rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
        again = clone(model).fit(rows, np.array(["a", "b", "c"])[y])
        np.testing.assert_array_equal(again.predict(rows), model.predict(X))
        np.testing.assert_array_equal(again.n_mistakes_, model.n_mistakes_)
        np.testing.assert_allclose(
            again.decision_function(X), model.decision_function(rows), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("make", [*LINEAR, *KERNELS], ids=lambda m: m.__name__)
def test_threads_change_nothing(make):
    X, y = overlapping(n=300, classes=3)
    options = {"max_iter": 2, "tol": None}
    one, two = (make(n_jobs=n, **options).fit(X, y).decision_function(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("make", [*LINEAR, *KERNELS], ids=lambda m: m.__name__)
def test_warm_start_goes_on(make):
    X, y = overlapping(classes=3)
    options = {"tol": None, "shuffle": False}
    four = make(max_iter=4, **options).fit(X, y)
    again = make(max_iter=2, warm_start=True, **options).fit(X, y).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), four.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(again.n_mistakes_, four.n_mistakes_)
    assert again.t_ == four.t_


@pytest.mark.parametrize("make", [*LINEAR, *KERNELS], ids=lambda m: m.__name__)
def test_weights_of_classes_scale_the_step(make):
    X, y = overlapping()
    options = {**ONE_PASS, "class_weight": {0: 2.0, 1: 0.5}}
    model = make(**options).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.raises(ValueError, match="class_weight"):
        make(class_weight={0: 1.0, 7: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        make(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    both = make(**ONE_PASS, class_weight="balanced").fit(X, y)
    count = np.bincount(y)
    numbers = {c: len(y) / (2 * count[c]) for c in (0, 1)}
    np.testing.assert_allclose(
        make(**ONE_PASS, class_weight=numbers).fit(X, y).decision_function(X),
        both.decision_function(X),
    )


def test_a_weighted_mistake_is_a_longer_step():
    X, y = overlapping()
    weight = np.array([2.0, 0.5])
    w = np.zeros(4)
    for x, label in zip(with_constant(X), y, strict=True):
        sign = 2 * label - 1
        if sign * (w @ x) <= 0:
            w += weight[label] * sign * x
    options = {**ONE_PASS, "class_weight": {0: 2.0, 1: 0.5}}
    for make in (Perceptron, DualPerceptron):
        p = make(**options).fit(X, y)
        np.testing.assert_array_equal(np.append(p.coef_, p.intercept_), w)


@pytest.mark.parametrize("make", [BasicLinearClassifier, Perceptron, KernelPerceptron])
def test_labels_and_classes(make):
    X, y = overlapping()
    model = make()
    with pytest.raises(ValueError, match="classes must be passed"):
        model.partial_fit(X, y)
    names = np.array(["no", "yes"])[y]
    model.partial_fit(X[names == "no"], names[names == "no"], classes=["yes", "no"])
    model.partial_fit(X, names, classes=["no", "yes"])
    assert set(model.predict(X)) <= {"no", "yes"}
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, names, classes=["no", "maybe"])
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X[:1], ["maybe"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], names)
    with pytest.raises(ValueError, match="greater than one"):
        make().fit(X, np.ones(len(X)))


def test_own_kernels_and_rows_that_are_no_vectors():
    class Letters(Kernel):
        def block(self, X, Z):
            return [[len(set(x) & set(z)) for z in Z] for x in X]

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array = False
            tags.input_tags.string = True
            return tags

    words, y = ["abc", "abd", "xyz", "xyw", "bcd", "wzy"], [0, 0, 1, 1, 0, 1]
    for make in KERNELS:
        model = make(kernel=Letters(), tol=None).fit(words, y)
        assert model.predict(["acd", "zwx"]).tolist() == [0, 1]
        model.partial_fit(["aaa", "www"], [0, 1])
        assert set(model.support_vectors_) <= {*words, "aaa", "www"}
        assert model.predict(["a", "w"]).shape == (2,)


def test_functions_and_matrices_as_kernels():
    X, y = overlapping()
    options = {"max_iter": 3, "tol": None}
    named = KernelPerceptron(kernel="linear", **options).fit(X, y)
    function = KernelPerceptron(kernel=lambda A, B: A @ B.T, **options).fit(X, y)
    np.testing.assert_array_equal(function.decision_function(X), named.decision_function(X))
    for make in KERNELS:
        named = make(kernel="linear", **options).fit(X, y)
        matrix = make(kernel="precomputed", **options).fit(X @ X.T, y)
        np.testing.assert_allclose(
            matrix.decision_function(X @ X.T), named.decision_function(X), rtol=1e-6, atol=1e-6
        )
        with pytest.raises(ValueError, match="precomputed"):
            matrix.partial_fit(X @ X.T, y)


def test_parameters_may_change_between_calls():
    X, y = overlapping()
    pa = PassiveAggressive(C=1e-3).partial_fit(X, y, classes=[0, 1])
    w = np.append(pa.coef_, pa.intercept_)
    x, label = np.append(X[0], 1.0), 2 * y[0] - 1
    loss = max(0.0, 1 - label * (w @ x))
    pa.set_params(C=np.inf).partial_fit(X[:1], y[:1])
    np.testing.assert_allclose(
        np.append(pa.coef_, pa.intercept_), w + loss / (x @ x) * label * x, atol=1e-12
    )


def test_an_interrupt_leaves_a_model_that_goes_on():
    X, y = overlapping(n=1200)
    calls = []

    def linear(A, B):
        calls.append(len(A))
        if len(calls) == 9:
            raise KeyboardInterrupt
        return A @ B.T

    for make in (KernelPerceptron, maxmargin.BudgetPerceptron, maxmargin.KernelPegasos):
        calls.clear()
        model = make(kernel=linear, tol=None, max_iter=3)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.score(X, y) > 0.5
        seen = model.t_
        assert model.partial_fit(X, y).t_ == seen + len(y)


def test_numbers_beyond_float64_are_refused():
    X, y = overlapping()
    for make in (Perceptron, KernelPerceptron):
        options = {"kernel": "linear"} if make is KernelPerceptron else {}
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="finite"):
            make(eta0=1e308, max_iter=50, tol=None, **options).fit(X, y)


# ------------------------------------------------------------------ scikit-learn's own tests

iris = load_iris()
order = np.random.RandomState(12).permutation(150)
IRIS, SPECIES = iris.data[order], iris.target[order]


@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.csr_matrix])
def test_accuracy_on_iris(make):
    assert (
        Perceptron(max_iter=100, tol=None, shuffle=False)
        .fit(make(IRIS), SPECIES)
        .score(make(IRIS), SPECIES)
        > 0.7
    )
    for fit_intercept in (True, False):
        pa = PassiveAggressive(max_iter=30, fit_intercept=fit_intercept, random_state=1, tol=None)
        assert pa.fit(make(IRIS), SPECIES).score(make(IRIS), SPECIES) > 0.79
    pa = PassiveAggressive()
    for _ in range(30):
        pa.partial_fit(make(IRIS), SPECIES, classes=np.unique(SPECIES))
    assert pa.score(make(IRIS), SPECIES) > 0.79


@pytest.mark.parametrize("make", [*LINEAR, *KERNELS], ids=lambda m: m.__name__)
def test_refit_and_methods_that_are_not_there(make):
    model = make(max_iter=5, tol=None).fit(IRIS, SPECIES)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    model.fit(IRIS[:, :-1], iris.target_names[SPECIES])
    np.testing.assert_array_equal(model.classes_, iris.target_names)
    for method in ("predict_proba", "predict_log_proba", "transform"):
        assert not hasattr(model, method)


def test_class_weights_turn_the_plane():
    X = np.array([[-1.0, -1.0], [-1.0, 0], [-0.8, -1.0], [1.0, 1.0], [1.0, 0.0]])
    y = [1, 1, 1, -1, -1]
    plain = PassiveAggressive(C=0.1, max_iter=100, random_state=100).fit(X, y)
    assert plain.predict([[0.2, -1.0]]) == 1
    small = PassiveAggressive(C=0.1, max_iter=100, class_weight={1: 0.001}, random_state=100)
    assert small.fit(X, y).predict([[0.2, -1.0]]) == -1
