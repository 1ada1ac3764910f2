"""A kernel perceptron on a budget: no more support vectors than the budget allows.

    on a mistake, y f(x) <= 0:    f += eta0 y k(x, .), and a policy mends what this costs

A kernel perceptron that never separates its data grows for ever. Which support vector to give up,
or not to take, is the policy's: see ``policies``.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from maxmargin._compat import Interval, StrOptions, safe_indexing
from maxmargin.perceptron.expansion import (
    BLOCK,
    KERNEL,
    KernelPassClassifier,
    gram,
    joined,
    prepared,
)
from maxmargin.perceptron.passes import PASSES, STEP, Learner, Stream
from maxmargin.perceptron.policies import POLICIES, Memory, Policy
from maxmargin.problem import Floats, Indices
from maxmargin.svm import inputs
from maxmargin.svm.base import blocks


class BudgetLearner:
    """k machines, each with a memory of its own.

    Between calls the memories name their support vectors by places in ``vectors``, which is the
    machines' support vectors one machine after the other.
    """

    state: tuple[str, ...] = ("memories", "vectors", "support", "seen", "rng")

    def __init__(
        self,
        kernel: Any,
        k: int,
        policy: Policy,
        *,
        budget: int | None,
        unit: float,
        intercept: bool,
        rng: Any,
        n_jobs: int | None,
    ) -> None:
        self.kernel, self.policy, self.rng = kernel, policy, rng
        self.intercept, self.n_jobs = intercept, n_jobs
        self.memories = [Memory(budget, unit) for _ in range(k)]
        self.vectors: Any = None
        self.support = np.zeros(0, dtype=np.int64)
        self.seen = 0

    def open(self, stream: Stream) -> None:
        """Name the support vectors 0, 1, ..., and the rows of the stream by the numbers behind."""
        self.stream, self.n_old = stream, len(self.support)
        self.old = prepared(self.kernel, self.support, self.vectors) if self.n_old else None

    def run(self, order: Indices, machines: Indices) -> tuple[Indices, Floats]:
        n_mistakes, loss = np.zeros(len(machines), dtype=np.int64), np.zeros(len(machines))
        for block in blocks(len(order), BLOCK):
            rows = order[block]
            part = self.stream.items.subset(rows)
            G = gram(part) + self.intercept
            Y, weight = self.stream.signs(rows, machines)
            for j, machine in enumerate(machines):
                memory = self.memories[machine]
                K = np.hstack([self._with_memory(part, memory), G])
                n_wrong, wrong_by = self._visit(memory, K, rows, Y[:, j], weight[:, 0])
                n_mistakes[j] += n_wrong
                loss[j] += wrong_by
        return n_mistakes, loss

    def _with_memory(self, part: Any, memory: Memory) -> Floats:
        """The kernel of a block of rows with the support vectors of a machine."""
        K = np.empty((len(part), len(memory.c)))
        names = np.array(memory.names, dtype=np.int64)
        old = names < self.n_old
        if old.any():
            K[:, old] = part.tile(None, self.old, names[old], in_float64=True)
        if not old.all():
            K[:, ~old] = part.tile(
                None, self.stream.items, names[~old] - self.n_old, in_float64=True
            )
        return K + self.intercept

    def _visit(
        self, memory: Memory, K: Floats, rows: Indices, y: Floats, weight: Floats
    ) -> tuple[int, float]:
        """Show the rows of a block, one after the other, to one machine.

        Column j of K is the j-th support vector at the block's begin, or behind those a row of the
        block; ``columns`` says where the support vectors of now are, and c is spread over K.
        """
        n_memory = K.shape[1] - len(rows)
        columns = {name: j for j, name in enumerate(memory.names)}
        n_mistakes, loss, start = 0, 0.0, 0
        F = K[:, :n_memory] @ memory.c
        while start < len(rows):
            late = y[start:] * F[start:] <= self.policy.margin
            first = int(late.argmax())
            if not late[first]:
                break
            r = start + first
            if y[r] * F[r] <= 0:
                n_mistakes += 1
                loss -= weight[r] * y[r] * F[r]
            at = [columns[name] for name in memory.names]
            name = int(self.n_old + rows[r])
            k, kxx = K[r, at], K[r, n_memory + r]
            step = float(self.stream.eta0 * weight[r] * y[r])
            self.policy.update(memory, name, step, k, kxx, float(F[r]), self.rng)
            columns[name] = n_memory + r
            spread = np.zeros(K.shape[1])
            np.add.at(spread, [columns[name] for name in memory.names], memory.c)
            F[r + 1 :] = K[r + 1 :] @ spread
            start = r + 1
        return n_mistakes, loss

    def close(self) -> None:
        """Gather the support vectors of all machines, and name them by their places."""
        names = np.array([n for memory in self.memories for n in memory.names], dtype=np.int64)
        old = names < self.n_old
        numbers = np.empty(len(names), dtype=np.int64)
        numbers[old] = self.support[names[old]]
        numbers[~old] = self.seen + names[~old] - self.n_old
        self.support = numbers
        if not inputs.is_precomputed(self.kernel.kernel):
            new = np.unique(names[~old])
            places = np.where(old, names, self.n_old + np.searchsorted(new, names))
            rows = joined(self.vectors, safe_indexing(self.stream.X, new - self.n_old))
            self.vectors = taken(rows, places)
        begin = 0
        for memory in self.memories:
            memory.names = list(range(begin, begin + len(memory.c)))
            begin += len(memory.c)
        self.seen += len(self.stream)
        del self.stream, self.old, self.n_old

    def attributes(self) -> dict[str, Any]:
        sizes = [len(memory.c) for memory in self.memories]
        dual_coef = np.zeros((len(sizes), sum(sizes)))
        for row, memory in zip(dual_coef, self.memories, strict=True):
            row[memory.names] = memory.c
        return {
            "support_": self.support.copy(),
            "support_vectors_": np.empty((0, 0)) if self.vectors is None else self.vectors,
            "n_support_": np.array(sizes, dtype=np.int32),
            "dual_coef_": dual_coef,
            "intercept_": self.intercept * dual_coef.sum(axis=1),
        }


def taken(rows: Any, places: Indices) -> Any:
    """These rows, of an array or of a list."""
    if isinstance(rows, Sequence):
        return [rows[i] for i in places]
    return rows[places] if sp.issparse(rows) else safe_indexing(rows, places)


class BudgetPerceptron(KernelPassClassifier):
    """A kernel perceptron with a bounded number of support vectors.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See `KernelPerceptron`.
    budget : int or None, default=100
        The most support vectors of each machine, from the first call on. None: no limit, and then
        only projectron leaves any out.
    policy : {"forgetron", "projectron", "projectron++", "random"} or Policy, default="forgetron"
        What happens to a mistake: "forgetron" shrinks all coefficients and drops the oldest,
        "random" drops one at random, "projectron" adds only what is not nearly in the span of the
        support vectors, and projects the rest. ``Projectron(eta=0.3)`` of
        ``maxmargin.perceptron.policies`` says how near is near.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernels with a name; "scale" is 1 / (n_features * X.var()) of the first call's rows.
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels.
    eta0 : float, default=1.0
        The step: the coefficient of a mistake.
    fit_intercept : bool, default=True
        Whether to learn b; the same as a kernel that is larger by 1.
    max_iter : int, default=1000
        The most passes over the data.
    tol : float or None, default=1e-3
        A fit ends when the mean of max(0, -y f(x)) over a pass was not less by tol than in the
        best pass so far, ``n_iter_no_change`` times in a row. With None only a pass without
        mistakes ends it before ``max_iter``.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
        Whether each pass of ``fit`` has an order of its own. ``partial_fit`` never shuffles.
    random_state : int, RandomState instance or None, default=0
        Draws the orders, and what the random policy forgets.
    class_weight : dict, "balanced" or None, default=None
        Scales the step on the rows of a class, in all machines.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last model.
    n_jobs : int or None, default=None
        Threads; the answer does not depend on it.
    verbose : int, default=0
        Whether to print a line for each pass.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        Numbers of the support vectors, counted over the rows of all calls: machine after machine,
        and of each the oldest first.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
    n_support_ : array of shape (1,) or (n_classes,)
        How many each machine has.
    dual_coef_ : array of shape (1, n_support) or (n_classes, n_support)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_mistakes_ : int or array of shape (n_classes,)
        The mistakes of all passes; of one pass, the online error.
    n_iter_ : int
    t_ : float
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KERNEL,
        "budget": [Interval(Integral, 1, None, closed="left"), None],
        "policy": [StrOptions(set(POLICIES)), Policy],
        **STEP,
        **PASSES,
    }

    n_support_: Indices

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        budget: int | None = 100,
        policy: Any = "forgetron",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        eta0: float = 1.0,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.budget = budget
        self.policy = policy
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.eta0 = eta0
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _begin(self, stream: Stream) -> Learner:
        policy: Any = (
            POLICIES[self.policy]() if isinstance(self.policy, str) else clone(self.policy)
        )
        policy._validate_params()
        return BudgetLearner(
            self._kernel,
            len(stream.positive),
            policy,
            budget=self.budget,
            unit=self.eta0,
            intercept=self.fit_intercept,
            rng=check_random_state(self.random_state),
            n_jobs=self.n_jobs,
        )
