"""What all kernel machines share: parameters, input, the expansion in support vectors, prediction.

    f(x) = sum_i dual_coef_i k(x_i, x) + intercept

A machine's ``fit`` reads: take the samples, write down the quadratic problems, train::

    samples = self._samples(X, y, sample_weight)
    tasks = [Task(c_svc(y, self.C, samples.weights), samples)]
    return self._train(samples, tasks, lambda solutions: ...the fitted attributes...)

For the author of a machine
---------------------------
- ``_samples`` validates X (and y, as one column), drops the rows without weight, resolves the
  kernel and prepares the items; ``Samples`` says what it returns.
- ``_train`` solves the tasks inside a monitored session, stores ``attributes(solutions)`` and warns
  of an early end.  ``attributes`` gets one Solution per task, None where a task was not begun: it
  is also what callbacks see of a running fit, so it must not touch ``self``.
- ``_expansion(samples, coefficients)`` makes support_, support_vectors_, n_support_ and dual_coef_
  from the coefficients of the kept rows, shape (k, n); ``training.report`` makes objective_,
  dual_gap_, status_, fit_status_ and subproblems_.
- ``_decisions(X)`` is f(X), shape (n, k); ``_evaluate(X, combine)`` hands the kernel products of
  blocks of rows to a machine that combines them in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from maxmargin._compat import (
    CallbackSupportMixin,
    Interval,
    Options,
    StrOptions,
    align_sparse,
    num_samples,
    safe_indexing,
)
from maxmargin.exceptions import NOT_FINITE
from maxmargin.kernels import FromFunction, Linear
from maxmargin.monitor import session
from maxmargin.multiclass import Products
from maxmargin.pickles import Versioned
from maxmargin.problem import Floats, Indices
from maxmargin.solution import Solution
from maxmargin.strategies import STRATEGIES, Strategy
from maxmargin.svm import inputs, training
from maxmargin.svm.diagnosis import checksum
from maxmargin.svm.inputs import Samples
from maxmargin.svm.training import Task

Attributes = dict[str, Any]
KERNEL_PARAMETERS: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(inputs.KERNELS)), callable],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "dtype": [StrOptions({"float32", "float64"}), Options(type, {np.float32, np.float64}), None],
}
SOLVER_PARAMETERS: dict[str, list[Any]] = {
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
    "shrinking": ["boolean"],
    "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "working_set": [StrOptions({"auto", *STRATEGIES}), Strategy],
    "n_jobs": [Integral, None],
    "time_limit": [Interval(Real, 0.0, None, closed="left"), None],
    "warm_start": ["boolean"],
}

_support_items: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()
"""The support vectors of each model, prepared for its kernel; outside of the models, so that no
pickle, copy or comparison of theirs meets native objects."""

BLOCK = 2048
"""Rows that are predicted together."""


class KernelMachine(Versioned, CallbackSupportMixin, BaseEstimator):
    """A model f(x) = sum_i c_i k(x_i, x) + intercept, trained by quadratic problems.

    The parameters that every machine has; its subclasses describe them.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KERNEL_PARAMETERS,
        **SOLVER_PARAMETERS,
    }

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    tol: float
    gap_tol: float | None
    shrinking: bool
    cache_size: Any
    verbose: Any
    max_iter: int
    working_set: Any
    n_jobs: int | None
    time_limit: float | None
    warm_start: bool
    dtype: Any

    support_: Any
    support_vectors_: Any
    n_support_: Any
    dual_coef_: Any
    intercept_: Any
    shape_fit_: tuple[int, ...]
    n_features_in_: int
    _kernel: Any
    _gamma: float
    _sparse: bool
    _fit_dtype: Any
    _support_rows: Any

    # -------------------------------------------------------------- training

    def _samples(
        self, X: Any, y: Any = None, sample_weight: Any = None, **metadata: Any
    ) -> Samples:
        """Validate the training data, drop rows without weight and prepare the items."""
        given = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight, **metadata}}
        if sp.issparse(X) and inputs.is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported. Pass X.toarray().")
        if inputs.takes_arrays(self.kernel):
            X = self._validated(X, y, reset=True)
        else:
            check_consistent_length(X, y)
            X = X.tocsr() if sp.issparse(X) else X  # whose rows can be taken
        n = num_samples(X)
        weights, rows = inputs.positive_weights(sample_weight, n)
        if y is not None:
            y = column_or_1d(y, warn=not inputs.takes_arrays(self.kernel))  # or it has warned
            if len(y) != n:
                raise ValueError(
                    f"X and y have incompatible shapes.\nX has {n} samples, but y has {len(y)}."
                )
            y = y[rows]
        shape = tuple(getattr(X, "shape", (n,)))
        prepared = inputs.prepare(self, X, weights, rows)
        return Samples(y=y, weights=weights, rows=rows, shape=shape, given=given, **prepared)

    def _validated(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """X as a C-ordered array or a canonical CSR matrix, float32 or float64; y only checked."""
        if reset:
            dtype: Any = [np.float64, np.float32] if self.dtype is None else np.dtype(self.dtype)
        else:
            dtype = self._fit_dtype
        options: Any = {
            "accept_sparse": "csr",
            "accept_large_sparse": True,
            "dtype": dtype,
            "order": "C",
            "reset": reset,
        }
        if reset and (y is not None or get_tags(self).target_tags.required):
            X, _ = validate_data(self, X, **options | {"y": y})
        else:
            X = validate_data(self, X, **options)
        return inputs.canonical(align_sparse(X)) if sp.issparse(X) else X

    def _solver_options(self) -> dict[str, Any]:
        """The arguments of ``solve`` that are parameters of the machine."""
        names = ("tol", "gap_tol", "max_iter", "cache_size", "shrinking", "n_jobs")
        random = getattr(self, "random_state", None)
        seed = 0 if random is None else check_random_state(random).randint(2**31 - 1)
        options = {name: getattr(self, name) for name in names}
        return options | {"strategy": self.working_set, "random_state": seed}

    def _train(
        self,
        samples: Samples,
        tasks: Sequence[Task],
        attributes: Callable[[Sequence[Solution | None]], Attributes],
        *,
        check: Callable[[Sequence[Solution]], None] | None = None,
        then: Callable[[Any], tuple[Attributes, Sequence[Solution]]] | None = None,
        n_more: int = 0,
    ) -> Any:
        """Solve the tasks, store the model and warn of an early end.

        ``check(solutions)`` may refuse them before anything is stored.  ``then(monitor)`` may solve
        ``n_more`` further problems, numbered from len(tasks) on, when the model is stored, and
        returns further attributes and those problems' solutions (calibration).
        """
        common = {"shape_fit_": samples.shape, "_gamma": samples.gamma, "_kernel": samples.kernel}
        common |= {"_sparse": samples.sparse, "_fit_dtype": getattr(samples.X, "dtype", None)}
        common |= {"_checksum": checksum(tasks)}

        def everything(solutions: Sequence[Solution | None]) -> Attributes:
            return common | attributes(solutions[: len(tasks)])  # calibration has its own

        start = training.starts(self, tasks)
        with session(
            self,
            **samples.given,
            n_subproblems=len(tasks) + n_more,
            time_limit=self.time_limit,
            verbose=self.verbose,
            attributes=everything,
        ) as monitor:
            solutions = self._solve(tasks, monitor, start)
            if check is not None:
                check(solutions)
            fitted = everything(solutions)
            _check_finite(fitted)
            self._forget()
            vars(self).update(fitted)
            further: Sequence[Solution] = ()
            if then is not None:
                more, further = then(monitor)
                vars(self).update(more)
        training.warn_of_early_end(self, solutions, further)
        training.warn_of_scales(samples, tasks, solutions)
        return self

    def _solve(
        self, tasks: Sequence[Task], monitor: Any, start: Sequence[Any]
    ) -> Sequence[Solution]:
        """One Solution for each task, begun at its start."""
        return training.run(tasks, self._solver_options(), monitor, start)

    def _forget(self) -> None:
        """Drop what was prepared for the last model."""
        _support_items.pop(self, None)

    def _expansion(self, samples: Samples, coefficients: Floats, order: Any = None) -> Attributes:
        """The support vectors of f_j = sum_i coefficients[j, i] k(x_i, .), and theirs alone.

        ``order`` may give the kept rows in another order than the data's (classes together).
        """
        support = np.flatnonzero((coefficients != 0).any(axis=0))
        if order is not None:
            support = order[np.isin(order, support)]
        dual_coef = np.ascontiguousarray(coefficients[:, support])
        attributes: Attributes = {
            "support_": samples.rows[support].astype(np.int32, copy=False),
            "n_support_": np.array([len(support)], dtype=np.int32),
            "dual_coef_": _like(samples, dual_coef),
        }
        kernel = samples.kernel.kernel
        rows = None if inputs.is_precomputed(kernel) else safe_indexing(samples.X, support)
        of_function = isinstance(kernel, FromFunction)
        hidden = of_function or rows is None
        attributes["support_vectors_"] = np.empty((0, 0)) if hidden else rows
        attributes["_support_rows"] = rows if of_function else None
        return attributes

    # -------------------------------------------------------------- prediction

    def _decisions(self, X: Any) -> Floats:
        """f(X) for every row of dual_coef_, shape (n_rows, k)."""
        check_is_fitted(self)
        V = np.ascontiguousarray(dense(self.dual_coef_).T)
        return self._evaluate(X, lambda products: products(V, slice(None))) + self.intercept_

    def _evaluate(self, X: Any, combine: Callable[[Products], Any]) -> Any:
        """``combine(products)`` for one block of rows of X after the other, concatenated.

        ``products(V, part)`` is K(block, support vectors[part]) @ V; no more of K is in memory
        than a tile, and no more of what ``combine`` makes than its result.
        """
        X = self._checked_for_prediction(X)
        kernel = self._kernel.kernel
        if isinstance(kernel, FromFunction):
            X = _called(kernel, X, self._support_rows)
        n = num_samples(X)
        return np.concatenate(
            [combine(self._products(X[block])) for block in blocks(n, BLOCK) or [slice(0, 0)]]
        )

    def _products(self, X: Any) -> Products:
        if isinstance(self._kernel.kernel, FromFunction):
            return lambda V, part: X[:, part] @ V
        kernel = self._kernel.kernel
        new = self._kernel.rows if inputs.is_precomputed(kernel) else self._kernel.prepare
        left, right = new(X), self._support()
        n_support = len(right)

        def products(V: Floats, part: slice) -> Floats:
            rows = np.arange(n_support)[part]
            if len(rows) == 0 or len(left) == 0:
                return np.zeros((len(left), V.shape[1]))
            other = right if len(rows) == n_support else right.subset(rows)
            return left.multiply(other, V, self.n_jobs)

        return products

    def _support(self) -> Any:
        """The support vectors as items, prepared once per model."""
        if inputs.is_precomputed(self._kernel.kernel):
            return self._kernel.select(self.support_)
        vectors = self.support_vectors_
        known = _support_items.get(self)
        if known is None or known[0] is not vectors:
            known = (vectors, self._kernel.prepare(vectors))
            _support_items[self] = known
        return known[1]

    def _checked_for_prediction(self, X: Any) -> Any:
        check_is_fitted(self)
        if not inputs.takes_arrays(self._kernel.kernel):
            return X
        X = self._validated(X, reset=False)
        if sp.issparse(X) and not self._sparse:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data"
            )
        if self._sparse and not sp.issparse(X):
            X = sp.csr_array(X)
        if inputs.is_precomputed(self._kernel.kernel) and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of "
                "samples at training time"
            )
        self._check_consistent()
        return X

    def _check_consistent(self) -> None:
        """Refuse a model whose parts do not fit together, before native code meets it."""
        n, vectors = len(self.support_), self.support_vectors_
        stored = not (isinstance(vectors, np.ndarray) and vectors.size == 0)
        if not (
            self.support_.shape == (n,)
            and (self.dual_coef_.shape, self.intercept_.shape) == self._shapes(n)
            and self.n_support_.sum() == n
            and self.n_support_.min(initial=0) >= 0
            and (not stored or vectors.shape == (n, self.n_features_in_))
            and all(inputs.is_well_formed(m) for m in (self.dual_coef_, vectors) if sp.issparse(m))
        ):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")

    def _shapes(self, n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of dual_coef_ and intercept_ when there are n support vectors."""
        k = len(self.intercept_)
        return (k, n), (k,)

    # -------------------------------------------------------------- attributes

    @property
    def _n_support(self) -> Indices:
        """n_support_ under the name by which scikit-learn's own tests ask for it."""
        return self.n_support_

    @property
    def coef_(self) -> Any:
        """Weights of the features in the model of a linear kernel (read only)."""
        check_is_fitted(self)
        if not isinstance(self._kernel.kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = align_sparse(self._weights())
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _weights(self) -> Any:
        return safe_sparse_dot(self.dual_coef_, self.support_vectors_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not isinstance(self.kernel, str) or self.kernel in inputs.KERNELS:
            tags.input_tags = inputs.as_kernel(self.kernel).tags
        return tags


# ------------------------------------------------------------------ helpers


def _check_finite(attributes: Attributes) -> None:
    dual_coef = attributes["dual_coef_"]
    values = dual_coef.data if sp.issparse(dual_coef) else dual_coef
    if not (np.isfinite(values).all() and np.isfinite(attributes["intercept_"]).all()):
        raise ValueError(NOT_FINITE)


def _like(samples: Samples, dual_coef: Floats) -> Any:
    """Coefficients of a model fitted on sparse rows are sparse, with every entry stored."""
    if not samples.sparse:
        return dual_coef
    k, n = dual_coef.shape
    indices = np.tile(np.arange(n, dtype=np.int32), k)
    table = sp.csr_array((dual_coef.ravel(), indices, np.arange(k + 1) * n), shape=(k, n))
    return align_sparse(table)


def _called(kernel: FromFunction, X: Any, support_rows: Any) -> Floats:
    """The values of a Python function, which is called once, for new rows and support vectors."""
    if num_samples(X) == 0:
        return np.zeros((0, num_samples(support_rows)))
    return kernel(X, support_rows)


def dense(matrix: Any) -> Floats:
    """A matrix as an ordinary array."""
    return matrix.toarray() if sp.issparse(matrix) else matrix


def blocks(n: int, size: int) -> list[slice]:
    """Slices of at most ``size`` rows that cover n."""
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]
