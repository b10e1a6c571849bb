"""TEEN: class means, and covariances, of new classes drawn towards those of similar base classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition
from hycal.algebra.covariance import NO_SPREAD, class_means, directions
from hycal.algebra.discriminant import WithinClass
from hycal.algebra.features import LinearHead
from hycal.base import IncrementalClassifier
from hycal.classifiers.families import score_in_folds
from hycal.errors import HyCalError
from hycal.estimator import Interval, StrOptions
from hycal.parallel.threads import map_rows
from hycal.sealing import Sealing
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats, Label

_AT_ONCE = 16  # covariances that are calibrated together
_DEPENDS = "the classes of the first call are the base, so it depends on how the stream was cut into calls"


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Unit means of all classes, and how strongly each may be drawn towards each other one."""

    means: Doubles  # (C, d)
    allowed: npt.NDArray[np.bool_]  # (C, C): whether the class of the row is drawn towards that of the column
    affinity: Doubles  # (C, C): exp(t (cos - 1)) where allowed, 0 elsewhere
    shift: float
    temperature: float

    def prototypes(self) -> Doubles:
        """Return the calibrated unit means."""
        return self._drawn(self.means, self.affinity @ self.means)

    def weights(self) -> Doubles:
        """Return the share of each other class; a class that is not drawn has none."""
        sums = self.affinity.sum(axis=1, keepdims=True)
        return np.divide(self.affinity, sums, out=np.zeros_like(self.affinity), where=sums > 0)

    def scores_without(self, samples: Selection, counts: npt.NDArray[np.int64], plain: Doubles) -> Doubles:
        """Return the cosines of samples, each with the prototypes without it; `plain` are the means, not scaled."""
        scores, targets = np.empty((len(samples.rows), len(self.means))), self.affinity @ self.means
        for row, (x, own) in enumerate(zip(samples.X.astype(np.float64), samples.own, strict=True)):
            mean = directions((counts[own] * plain[own] - x)[None])[0]
            affinity = np.exp(self.temperature * (self.means @ mean - 1.0))
            means, moved = self.means.copy(), targets.copy()
            means[own] = mean
            moved += np.outer(affinity * self.allowed[:, own], mean) - np.outer(self.affinity[:, own], self.means[own])
            moved[own] = (affinity * self.allowed[own]) @ self.means
            scores[row] = self._drawn(means, moved) @ x
        return scores

    def _drawn(self, means: Doubles, targets: Doubles) -> Doubles:
        drawn = (1.0 - self.shift) * means + self.shift * directions(targets)
        return directions(np.where(self.allowed.any(axis=1, keepdims=True), drawn, means))


@dataclass(frozen=True, eq=False)
class _Distances:
    """-(x - mu_c)'R_c (x - mu_c) for every class, with mu_c (C, d) and R_c (C, d, d)."""

    centres: Doubles
    matrices: Doubles

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        chosen = np.arange(len(self.centres)) if columns is None else columns

        def score(rows: Doubles) -> Doubles:
            return np.stack([_quadratic(rows - self.centres[c], self.matrices[c]) for c in chosen], axis=1)

        return map_rows(score, X, width=len(chosen), numbers_per_row=3 * X.shape[1])


def _quadratic(rows: Doubles, matrix: Doubles) -> Doubles:
    return -np.einsum("nd,nd->n", rows @ matrix, rows)


class TEEN(IncrementalClassifier):
    r"""Cosine to the class mean, which for a new class is drawn towards those of similar base classes.

    .. math::
        s_c = x^\top m_c / |m_c|, \quad m_c = (1 - \alpha) \mu_c + \alpha \, \delta_c / |\delta_c|, \quad
        \delta_c = \sum_b w_{cb} \mu_b, \quad w_{cb} \propto \exp(t \mu_c^\top \mu_b)

    with mu_c the mean of class c, scaled to unit length, and b the base classes, whose own means stay as they are.
    The covariance calibration gives a new class the covariance S_c + sum_b w_cb S_b, and scores by the distance
    -(x - m_c)'R_c^+(x - m_c), m_c scaled to unit length, where R_c are the correlations between the rows of that
    covariance plus a ridge.

    Parameters
    ----------
    shift : float in [0, 1], default=0.1
        Alpha; published from 0.1 to 0.5.
    temperature : float, default=16
        t.
    metric : {"cosine", "mahalanobis"}, default="cosine"
        "cosine" is TEEN, "mahalanobis" the covariance calibration.
    base : {"first", "others"}, default="first"
        "first": the classes of the first call are the base, as published. "others": every class is drawn towards all
        others, which keeps every law.
    ridge : float, default=100
        Of the covariance, in mean variances; only for the distance.

    Notes
    -----
    Read from the authors' code of both papers. The published ridge of 100 is meant for embeddings of length 100; here
    it counts mean variances. A class of one sample adds no covariance (published: NaN).

    The model file stores which classes came in which call. The base is the earliest call of which a class is left. A
    class that is forgotten and learned again counts for the call that named it first. Merging keeps the calls of the
    model merged into; classes that only the other one knows are new.

    Learning costs O(N d + C^2 d), a query 2 d C operations. The distance costs O(C d^3) and holds a d x d matrix for
    each class; a query costs 2 d^2 C, and leave-one-out has no closed form: up to a tenth of each class is left out at
    once.

    References
    ----------
    Wang et al., Few-shot class-incremental learning via training-free prototype calibration, NeurIPS 2023.
    Goswami et al., Calibrating higher-order statistics for few-shot class-incremental learning with pre-trained vision
    transformers, CVPRW 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import TEEN
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TEEN().partial_fit(X[:500][y[:500] < 6], y[:500][y[:500] < 6])
    >>> clf = clf.partial_fit(X[:500][y[:500] > 5], y[:500][y[:500] > 5])
    >>> bool(clf.score(X[1000:], y[1000:]) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "shift": [Interval(Real, 0, 1, closed="both")],
        "temperature": [Interval(Real, 0, 300, closed="neither")],
        "metric": [StrOptions({"cosine", "mahalanobis"})],
        "base": [StrOptions({"first", "others"})],
        "ridge": [Interval(Real, 0, None, closed="neither")],
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "temperature": (8.0, 16.0, 32.0, 64.0),
        "shift": (0.0, 0.05, 0.1, 0.25, 0.5),
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"shift": 0.1, "temperature": 16.0, "base": "first"},
        "robust": {"base": "others"},
    }

    def __init__(
        self,
        *,
        shift: float = 0.1,
        temperature: float = 16.0,
        metric: str = "cosine",
        base: str = "first",
        ridge: float = 100.0,
    ) -> None:
        self.shift = shift
        self.temperature = temperature
        self.metric = metric
        self.base = base
        self.ridge = ridge

    rebuilt_because = "means are drawn towards each other, and all are drawn again"

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the means, their cosines, and what they are drawn towards."""
        return addition.samples * addition.width + 4 * addition.classes**2 * addition.width

    @property
    def broken_laws(self) -> Mapping[str, str]:
        """Those that a base of the first call cannot keep; none with base="others"."""
        return dict.fromkeys(("split_invariance", "order_invariance", "merging"), _DEPENDS) if self._sessions else {}

    @property
    def _sessions(self) -> bool:
        return self.base == "first"

    def check_records(self, records: Records) -> None:
        """Refuse a memo that is not one list of calls."""
        super().check_records(records.with_memo({}))
        calls = records.memo.get("calls", [])
        if set(records.memo) - {"calls"} or not isinstance(calls, list) or not all(map(_are_labels, calls)):
            raise HyCalError(f"TEEN remembers the labels of each call, but found {dict(records.memo)}.")

    def remember(self, memo: Mapping[str, Any], step: Step) -> Mapping[str, Any]:
        """Return the labels of all calls, each in the call that named it first."""
        if not self._sessions:
            return {}
        calls: list[list[Label]] = memo.get("calls", [])
        known = {label for call in calls for label in call}
        fresh = sorted(set(step.samples) - known)
        return {"calls": [*calls, fresh]} if fresh else memo

    def rename_memo(self, memo: Mapping[str, Any], names: Mapping[Label, Label]) -> Mapping[str, Any]:
        """Return the calls with the new labels."""
        calls = [sorted(names.get(label, label) for label in call) for call in memo.get("calls", [])]
        return {"calls": calls} if calls else memo

    def _allowed(self, records: Records) -> npt.NDArray[np.bool_]:
        """Return whether the class of the row is drawn towards that of the column."""
        classes = len(records.counts)
        if not self._sessions:
            return ~np.eye(classes, dtype=np.bool_)
        calls = ([label for label in call if label in records.by_label] for call in records.memo.get("calls", []))
        base = np.zeros(classes, np.bool_)
        base[[records.column_of[label] for label in next(filter(None, calls), [])]] = True
        return ~base[:, None] & base

    def _drawing(self, records: Records, plain: Doubles) -> _Drawing:
        means, allowed = directions(plain), self._allowed(records)
        affinity = np.exp(self.temperature * (means @ means.T - 1.0)) * allowed
        return _Drawing(means, allowed, affinity, self.shift, self.temperature)

    def derive(self, records: Records, previous: Any) -> LinearHead | _Distances:
        """Return the calibrated means, and the distances where they are wanted."""
        drawing = self._drawing(records, class_means(records.stacked(), records.counts))
        prototypes = drawing.prototypes()
        if self.metric == "cosine":
            return LinearHead.on_embeddings(prototypes)
        deviations = WithinClass.of(records.stacked(), records.counts).deviations
        parts = np.split(deviations, np.cumsum(records.counts)[:-1])
        return _Distances(prototypes, self._matrices(parts, records.counts, drawing.weights()))

    @property
    def sealing(self) -> Sealing:
        """Means alone; for the distance, the covariance of each class."""
        return Sealing("means" if self.metric == "cosine" else "classes")

    def derive_sealed(self, table: SealedRecords) -> LinearHead | _Distances:
        """Return the same from moments."""
        drawing = self._drawing(table, table.means)
        if self.metric == "cosine":
            return LinearHead.on_embeddings(drawing.prototypes())
        factors = [moments.factor.astype(np.float64) for moments in table.moments]
        return _Distances(drawing.prototypes(), self._matrices(factors, table.counts, drawing.weights()))

    def _matrices(self, parts: Sequence[Doubles], counts: npt.NDArray[np.int64], weights: Doubles) -> Doubles:
        """Return R_c^+ of every class, (C, d, d); `parts` are factors of the scatters."""
        scatters = zip(parts, counts.tolist(), strict=True)
        covariances = np.stack([part.T @ part / max(count - 1, 1) for part, count in scatters])
        flat, drawn_to = covariances.reshape(len(counts), -1), np.flatnonzero(weights.any(axis=0))
        sources = flat[drawn_to]
        matrices = np.empty_like(covariances)
        for start in range(0, len(counts), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            added = (weights[some, drawn_to] @ sources).reshape(covariances[some].shape)
            matrices[some] = [_row_correlations_inverse(each, self.ridge) for each in covariances[some] + added]
        return matrices

    def score_rows(self, derived: LinearHead | _Distances, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the cosines or minus the distances."""
        return derived(X, columns)

    def scores_without_each(self, derived: LinearHead | _Distances, records: Records, samples: Selection) -> Doubles:
        """Return the cosines in closed form; for distances, leave out samples in folds."""
        if self.metric == "mahalanobis":
            return score_in_folds(self, records, samples)
        plain = class_means(records.stacked(), records.counts)
        return self._drawing(records, plain).scores_without(samples, records.counts, plain)


def _are_labels(call: Any) -> bool:
    return isinstance(call, list) and all(isinstance(label, str | int) for label in call)


def _row_correlations_inverse(covariance: Doubles, ridge: float) -> Doubles:
    """Return the pseudo-inverse of the correlations R between the rows of A = covariance + ridge (mean variance) I.

    R = D^-1 A C A D^-1 with C = I - 11'/d and D the lengths of the rows of A C. Its one null vector is v = D A^-1 1, so
    R^+ = Q D A^-1 C A^-1 D Q with Q = I - vv'/|v|^2.
    """
    d, variance = len(covariance), float(np.trace(covariance)) / len(covariance)
    # Without samples to vary, the limit of ever smaller covariances: the ridge alone.
    A = ridge * np.eye(d) + (covariance / variance if d * variance > NO_SPREAD else 0.0)
    inverse, sums = np.linalg.inv(A), A.sum(axis=1)
    D = np.sqrt(np.einsum("ij,ij->i", A, A) - sums**2 / d)
    solved = inverse.sum(axis=1)
    v = D * solved
    v /= np.linalg.norm(v)
    M = D[:, None] * (inverse @ inverse - np.outer(solved, solved) / d) * D
    M -= np.outer(v, v @ M)
    M -= np.outer(M @ v, v)
    return M
