"""What a fitted machine proves and what became of each training row: margins, slacks, KKT cases.

``diagnose`` takes the training data again, computes every score afresh in float64, and reads off
the lectures' quantities.  Margins are distances in feature space: y f(x) / |w|, and 1 / |w| for the
classifier itself.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.certificate import certify
from maxmargin.problem import Floats, Indices, Problem, svdd
from maxmargin.solve import solve
from maxmargin.svm.training import Subproblem, Task

CASES = ("outside", "on", "inside", "misclassified", "misordered", "absent")


@dataclass(frozen=True)
class Diagnosis:
    """One quadratic problem of a fitted machine, and the training rows in it.

    Arrays have one entry for each row of the training data, in its order; a row that takes no part
    (weight 0, or neither of the two classes) has alpha and slack 0, margin NaN and the case
    "absent".  In ranking they have one entry for each pair of ``pairs`` instead, and f(x) below is
    the difference of the pair's scores.

    Attributes
    ----------
    alpha : array of shape (n_samples,)
        Dual variables.  Classification: y_i c_i (at least 0, except for least squares); otherwise
        the signed coefficient c_i.
    slack : array of shape (n_samples,)
        By how much the row violates its margin, tube, half-space or ball.  For least squares, where
        that is the error, also by how much it goes beyond (negative).
    margin : array of shape (n_samples,) or None
        y f(x) / |w|, negative on the wrong side; None where there are no classes.
    case : array of str of shape (n_samples,)
        Classification: "outside" the margin, "on" it, "inside", or "misclassified" (y f(x) <= 0);
        ranking the same, but "misordered".  Otherwise "inside" the tube, half-space or ball, "on"
        its border, or "outside".
    primal, dual : float
        The primal and the maximised dual objective; primal - dual = gap.
    gap : float
        How far the problem is from its optimum at most; infinite where no bound is known.
    violation : float
        The largest violation of the optimality conditions.
    intercept_interval : tuple of float
        The intercepts that the optimality conditions allow, up to the violation.
    norm : float
        |w| in feature space (for SVDD the centre's, for several classes that of all together).
    radius : float
        R, the radius of the smallest ball around the rows in feature space, to 0.1 %, never less;
        NaN where the kernel is not positive semi-definite.
    complexity : float
        R^2 |w|^2, which is R^2 / margin^2 for a classifier: the lectures' margin complexity.
    classes : tuple
        The labels that the problem separates, if any.
    pairs : array of shape (n_pairs, 2) or None
        Ranking: the rows (a, b) of the training data of which a is to score above b.
    """

    alpha: Floats
    slack: Floats
    margin: Floats | None
    case: NDArray[np.str_]
    primal: float
    dual: float
    gap: float
    violation: float
    intercept_interval: tuple[float, float]
    norm: float
    radius: float
    complexity: float
    classes: tuple[Any, ...]
    pairs: Indices | None = None

    def __str__(self) -> str:
        low, high = self.intercept_interval
        about = f" ({' / '.join(map(str, self.classes))})" if self.classes else ""
        what = "rows" if self.pairs is None else "pairs"
        lines = [
            f"Diagnosis{about}",
            f"primal {self.primal:.8g}, dual {self.dual:.8g}, gap {self.gap:.2g}, "
            f"violation {self.violation:.2g}",
            f"|w| {self.norm:.6g}, radius {self.radius:.6g}, complexity {self.complexity:.6g}, "
            f"intercept in [{low:.6g}, {high:.6g}]",
            f"{'case':<14}{what:>8}{'sum of |alpha|':>16}{'sum of slack':>14}"
            + ("" if self.margin is None else f"{'least margin':>14}"),
        ]
        for case in CASES:
            rows = self.case == case
            if rows.any():
                line = f"{case:<14}{rows.sum():>8}{np.abs(self.alpha[rows]).sum():>16.6g}"
                line += f"{self.slack[rows].sum():>14.6g}"
                if self.margin is not None:
                    line += f"{self.margin[rows].min():>14.6g}"
                lines.append(line)
        return "\n".join(lines)


class Diagnoses(list[Diagnosis]):
    """The diagnoses of a machine's problems, one table below the other."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))


@dataclass(frozen=True)
class Judgement:
    """What a machine thinks of the rows of one problem.

    Attributes
    ----------
    alpha : array of shape (n,)
        Dual variables.
    room : array of shape (n,)
        By how much a row keeps its constraint; negative: violates it.
    functional, margin : array of shape (n,) or None
        y f(x) and y f(x) / |w|, where there are classes or pairs.
    divisor : float
        The model is the problem's solution divided by it.
    """

    alpha: Floats
    room: Floats
    functional: Floats | None = None
    margin: Floats | None = None
    divisor: float = 1.0


class Diagnosable:
    """A fitted machine that can be asked about its training rows."""

    n_jobs: int | None
    cache_size: float | str
    shape_fit_: tuple[int, ...]
    subproblems_: list[Subproblem]
    _kernel: Any
    _checksum: int

    _least_squares: ClassVar[bool] = False

    def _judge(self, index: int, task: Task, coefficients: Floats, scores: Floats) -> Judgement:
        """The rows (or pairs) of problem ``index``, from its variables and scores F = K D'c."""
        raise NotImplementedError

    def diagnose(self, X: Any, y: Any = None, sample_weight: Any = None) -> Diagnosis | Diagnoses:
        """What the fit proves, and what became of each training row; see ``Diagnosis``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            The training rows.
        y : array-like of shape (n_samples,), default=None
            Their labels or targets, where there are any.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.

        Returns
        -------
        Diagnosis, or a list of them where the machine has solved several problems

        Raises
        ------
        ValueError
            When these are not the data, or the parameters, that the machine was fitted with.
        """
        return self._diagnoses(X, y, sample_weight=sample_weight)

    def _diagnoses(self, X: Any, y: Any, **metadata: Any) -> Diagnosis | Diagnoses:
        """What ``diagnose`` returns; ``metadata`` are the further arguments of ``fit``."""
        check_is_fitted(self)
        radius_of_all: float | None = None
        found = Diagnoses()
        for index, task in enumerate(self._tasks_again(X, y, metadata)):
            items = task.items
            if task.part is not None:
                radius = enclosing_radius(items, self.n_jobs, self.cache_size)
            else:
                radius_of_all = radius_of_all or enclosing_radius(
                    items, self.n_jobs, self.cache_size
                )
                radius = radius_of_all
            found.append(self._diagnosis(index, task, items, radius))
        return found[0] if len(found) == 1 else found

    def _tasks_again(self, X: Any, y: Any, metadata: dict[str, Any]) -> list[Task]:
        """The problems that ``fit`` would solve; it is an error if they are not those it solved.

        A copy's ``fit`` is cut short where it would train, because it alone knows, for each kind of
        machine, how data become problems; of what it warns of the fit has warned already.
        """
        twin: Any = copy(self)
        twin._train = lambda samples, tasks, *_, **__: tasks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tasks = twin.fit(X, y, **metadata)
        same_kernel = tasks[0].samples.kernel.kernel == self._kernel.kernel
        if not same_kernel or checksum(tasks) != self._checksum:
            arguments = ", ".join(["X", "y", *metadata])
            raise ValueError(
                f"X: diagnose needs the data that this machine was fitted to ({arguments}, in the "
                "same order), and its parameters unchanged; these are others."
            )
        return tasks

    def _diagnosis(self, index: int, task: Task, items: Any, radius: float) -> Diagnosis:
        problem, solved = task.problem, self.subproblems_[index]
        spread = problem.spread(solved.coefficients)
        used = np.flatnonzero(spread.any(axis=1))
        scores = items.multiply(items.subset(used), spread[used], self.n_jobs)
        gradient = problem.gradient(solved.coefficients, scores)
        certificate = certify(problem, solved.coefficients, gradient, items.diagonal())
        gap = task.scale * certificate.gap if np.isfinite(solved.gap) else np.inf
        dual = -task.scale * certificate.objective
        judged = self._judge(index, task, solved.coefficients, scores)
        norm = float(np.sqrt(max(float(np.sum(spread * scores)), 0.0))) / judged.divisor
        low, high = _intercepts(problem, certificate.rho_interval / judged.divisor)

        pairs = None
        if problem.minus is not None:
            pairs = task.rows[np.column_stack([problem.item, problem.minus])]
        n = self.shape_fit_[0] if pairs is None else len(pairs)
        there = task.rows if pairs is None else np.arange(n)

        def by_row(values: Any, absent: float) -> Floats:
            out = np.full(n, absent)
            out[there] = values
            return out

        case = np.full(n, CASES[-1], dtype="<U13")
        wrong = "misclassified" if pairs is None else "misordered"
        case[there] = _cases(judged, certificate.violation / judged.divisor, wrong)
        slack = -judged.room if self._least_squares else np.maximum(-judged.room, 0.0)
        return Diagnosis(
            alpha=by_row(judged.alpha, 0.0),
            slack=by_row(slack, 0.0),
            margin=None if judged.margin is None else by_row(judged.margin, np.nan),
            case=case,
            primal=dual + gap if np.isfinite(gap) else dual,
            dual=dual,
            gap=gap,
            violation=certificate.violation,
            intercept_interval=(low, high) if task.sign > 0 else (-high, -low),
            norm=norm,
            radius=radius,
            complexity=(radius * norm) ** 2,
            classes=task.classes,
            pairs=pairs,
        )


def _cases(judged: Judgement, violation: float, wrong: str) -> NDArray[np.str_]:
    """On the border are the rows that keep their constraint exactly, as far as was solved."""
    room, functional = judged.room, judged.functional
    near = max(violation, 1e-8 * (1 + float(np.abs(room).max())))
    if functional is None:
        return np.select([np.abs(room) <= near, room > 0], ["on", "inside"], "outside")
    return np.select(
        [functional <= 0, np.abs(room) <= near, room > 0],
        [wrong, "on", "outside"],
        "inside",
    )


def _intercepts(problem: Problem, rho: Floats) -> tuple[float, float]:
    """The intercepts -rho of an interval; two groups (nu) share one, minus their mean."""
    if len(rho) == 0 or problem.n_channels > 1:
        return 0.0, 0.0
    ends = np.sort(-rho.mean(axis=0))
    return float(ends[0]), float(ends[1])


def enclosing_radius(
    items: Any, n_jobs: int | None = None, cache_size: float | str = "auto"
) -> float:
    """The radius of the smallest ball around the items, at most 0.1 % too large; NaN if unknown."""
    ball = solve(svdd(items.diagonal()), items, gap_tol=1e-3, n_jobs=n_jobs, cache_size=cache_size)
    if ball.relative_gap > 1e-3 and not ball.is_zero:
        return float("nan")
    return float(np.sqrt(2 * max(ball.primal, 0.0))) if np.isfinite(ball.gap) else float("nan")


def checksum(tasks: Sequence[Task]) -> int:
    """A checksum of training data and problems: cheap, and enough to notice that they differ."""
    samples = tasks[0].samples
    value = 0
    for array in [*_arrays(samples.X), samples.rows, *_numbers(tasks)]:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


def _arrays(X: Any) -> list[NDArray[Any]]:
    if sp.issparse(X):
        X = X.tocsr()  # a function of the user's may take any format
        return [X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)]
    if isinstance(X, np.ndarray) and X.dtype != object:
        return [X]
    fingerprint = str(joblib.hash(list(X)))  # strings, graphs, ...
    return [np.frombuffer(fingerprint.encode(), dtype=np.uint8)]


def _numbers(tasks: Sequence[Task]) -> Iterator[NDArray[Any]]:
    for task in tasks:
        p = task.problem
        yield from (p.linear, p.lower, p.upper, p.ridge, p.target, p.item, p.channel)
        if p.minus is not None:
            yield p.minus
