"""RanPAC: ridge regression on random ReLU features, with a ridge chosen on held-out data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition
from hycal.algebra.cost import regression_on_features as operations_on_features
from hycal.algebra.features import LinearHead, Relu, one_hot
from hycal.algebra.ridge import gram_leave_one_out, held_out_by_ridge, sample_kernel, validation_errors
from hycal.algebra.ridge_step import SteppedRegression, followed, regression_on_features
from hycal.classifiers.families import N_COMPONENTS, RANDOM_STATE, feature_bytes, fewer_samples
from hycal.classifiers.sealed_features import SealedOnFeatures
from hycal.errors import HyCalError
from hycal.estimator import Interval, StrOptions
from hycal.sealing import SealPlan
from hycal.state.records import Records
from hycal.state.samples import ClassSamples
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats

_GRIDS: Mapping[str, tuple[float, ...]] = {
    "per-task": tuple(10.0**k for k in range(-8, 9)),
    "first-task": tuple(10.0**k for k in range(1, 9)),
    "joint": tuple(10.0**k for k in range(-8, 9)),
}
_FOLD = 5  # one sample in five is held out
_MOST_ROWS = 4000  # samples that a ridge is chosen on: the eigendecomposition of more takes minutes
_DEPENDS = "the ridge is chosen on the samples of {}, so it depends on how the stream was cut into calls"


@dataclass(frozen=True, eq=False)
class _Fitted:
    ridge: float
    head: LinearHead | SteppedRegression

    @property
    def changed(self) -> int:
        """Samples that changed since the regression was solved."""
        return self.head.changed if isinstance(self.head, SteppedRegression) else 0


_CHOSEN_ANEW = {
    "joint": "all samples choose the ridge out of a grid",
    "per-task": "a call with two samples of a class chooses a new ridge",
}


class RanPAC(SealedOnFeatures):
    r"""Ridge regression of the one-hot labels on random ReLU features.

    .. math:: s(x) = h(x)^\top (H^\top H + \lambda I)^{-1} H^\top Y, \quad h(x) = \max(0, x^\top W)

    with W drawn once from N(0, 1) and the rows of H the features of all samples.

    Parameters
    ----------
    n_components : int, default=10000
        M, the number of random features.
    ridge : {"per-task", "first-task", "joint"} or float, default="per-task"
        Lambda. As published it is chosen anew at every `partial_fit`, from 10^-8 to 10^8, by the squared error on a
        fifth of that call's samples. "first-task" chooses once, from 10^1 to 10^8, at the first call that allows it,
        as is better for few shots (Goswami et al. 2024). "joint" chooses on all samples so far, whatever the calls,
        and so keeps every law, as does a number.
    random_state : int, default=0
        Seed of W.

    Notes
    -----
    The split is stratified: a fifth of the samples is held out, never all of a class, never the only sample of one.
    So rows sorted by class do no harm. A call in which no class has two samples allows no choice: the last ridge
    stays, or at the start all samples so far choose, or if that is not possible either, it is M/2, the mean of |h|^2.
    Where more than 4000 samples come at once, every second, third, ... of each class takes part in the choice.

    The chosen ridge is stored in the model file. Forgetting keeps it, and merging keeps that of the model merged into.

    The regression is solved in sample space where samples are fewer than features. Learning costs O(N M min(N, M)) at
    the first answer after a call, and the choice O(n^3) for a call of n samples; a query 2 M (d + C) operations.

    References
    ----------
    McDonnell et al., RanPAC: Random projections and pre-trained models for continual learning, NeurIPS 2023.
    Goswami et al., Calibrating higher-order statistics for few-shot class-incremental learning with pre-trained vision
    transformers, CVPRW 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import RanPAC
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = RanPAC(n_components=500).fit(X[:500], y[:500])
    >>> bool(clf.score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "n_components": N_COMPONENTS,
        "ridge": [StrOptions(set(_GRIDS)), Interval(Real, 0, None, closed="neither")],
        "random_state": RANDOM_STATE,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"ridge": tuple(10.0**k for k in range(7))}
    # The paper runs its baselines on "1024-dimensional embeddings"; for RanPAC the size of the map is inferred.
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"n_components": 10000, "ridge": "per-task"},
        "hycal-paper": {"n_components": 1024, "ridge": "per-task"},
        "robust": {"n_components": 10000, "ridge": "joint"},
    }

    def __init__(self, *, n_components: int = 10000, ridge: str | float = "per-task", random_state: int = 0) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.random_state = random_state

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the regression on features of all samples, and the choice of a ridge on those that are added."""
        n, d, M = addition.added * addition.shots, addition.width, addition.features
        return operations_on_features(addition) + 2 * n * d * M + n**2 * M + 9 * n**3

    @property
    def broken_laws(self) -> Mapping[str, str]:
        """Those that a ridge of one call cannot keep; none with ridge="joint" or a number."""
        if self.ridge not in ("per-task", "first-task"):
            return {}
        reason = _DEPENDS.format("the last call" if self.ridge == "per-task" else "the first call")
        return dict.fromkeys(("split_invariance", "order_invariance", "merging", "forgetting"), reason)

    @property
    def ridge_(self) -> float:
        """The ridge in use."""
        return self.snapshot().value.ridge

    def least_bytes(self, records: Records) -> int:
        """Return the bytes of the map and of the regression."""
        return feature_bytes(records, self.n_components)

    def check_records(self, records: Records) -> None:
        """Refuse a memo that is not one positive ridge."""
        super().check_records(records.with_memo({}))
        ridge = records.memo.get("ridge", 1.0)
        if set(records.memo) - {"ridge"} or not isinstance(ridge, float) or not 0.0 < ridge < np.inf:
            raise HyCalError(f"RanPAC remembers one positive ridge, but found {dict(records.memo)}.")

    def remember(self, memo: Mapping[str, Any], step: Step) -> Mapping[str, Any]:
        """Return the ridge that the step chose, where the step chooses."""
        if self.ridge not in ("per-task", "first-task"):
            return {}
        if self.ridge == "first-task" and "ridge" in memo:
            return memo
        classes = [ClassSamples.of(rows).rows for rows in step.samples.values()]
        chosen = self._select(classes)
        return memo if chosen is None else {"ridge": chosen}

    def _chosen(self, records: Records) -> float:
        if not isinstance(self.ridge, str):
            return float(self.ridge)
        if self.ridge != "joint" and "ridge" in records.memo:
            return float(records.memo["ridge"])
        chosen = self._select([record.samples.rows for record in records.ordered])
        return self.n_components / 2.0 if chosen is None else chosen  # M/2 is |h|^2 on average, for unit embeddings

    def _select(self, classes: Sequence[Floats]) -> float | None:
        """Return the ridge of the grid with the least error on held-out samples; None where none can be held out."""
        split = _stratified(classes)
        if split is None:
            return None
        (X, Y), (held_out, targets) = split
        features = self.features_of(X.shape[1])
        grid = _GRIDS[str(self.ridge)]
        return grid[int(np.argmin(validation_errors(features(X), Y, features(held_out), targets, grid)))]

    def features_of(self, width: int) -> Relu:
        """Draw W."""
        return Relu.gaussian(width, self.n_components, self.random_state)

    def derive(self, records: Records, previous: _Fitted | None) -> _Fitted:
        """Return the ridge in use and the regression on random features."""
        if previous is not None and self.ridge != "joint" and previous.ridge == self._chosen(records):
            head = followed(previous.head, records)
            if head is not None:
                return _Fitted(previous.ridge, head)
        ridge = self._chosen(records)
        return _Fitted(ridge, regression_on_features(self.features_of(records.width), records, ridge))

    @property
    def rebuilt_because(self) -> str:
        """Fewer samples than features; or a call that chooses a ridge."""
        return fewer_samples(self, self.n_components) or _CHOSEN_ANEW.get(str(self.ridge), "")

    def seal_plan(self, value: _Fitted, records: Records) -> SealPlan:
        """Keep the ridge, which samples chose."""
        return replace(super().seal_plan(value, records), numbers={"ridge": np.array([value.ridge])})

    def check_sealed(self, table: SealedRecords) -> None:
        """Refuse a table without a positive ridge."""
        super().check_sealed(table)
        ridge = table.numbers.get("ridge", np.empty(0))
        if len(ridge) != 1 or not ridge[0] > 0.0:
            raise HyCalError("It has no positive ridge.")

    def derive_sealed(self, table: SealedRecords) -> _Fitted:
        """Return the regression from moments; a call may have chosen another ridge since."""
        per_task = self.ridge == "per-task" and "ridge" in table.memo
        ridge = float(table.memo["ridge"] if per_task else table.numbers["ridge"][0])
        return _Fitted(ridge, self.sealed_head(table, ridge))

    def scores_without_each(self, derived: _Fitted, records: Records, samples: Selection) -> Doubles:
        """Return the closed form, in sample space or in feature space, whichever is smaller."""
        by_kernel = self.scores_by_value(records, samples, "ridge", [derived.ridge])
        if by_kernel is not None:
            return next(iter(by_kernel))
        y, features = np.eye(len(records.counts))[samples.own], self.features_of(records.width)
        fit = derived.head(samples.X) - y
        return gram_leave_one_out(features, records.stacked(), derived.ridge, samples.rows, fit) + y

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the scores under each ridge from one kernel, where samples are fewer than features."""
        features, X = self.features_of(records.width), records.stacked()
        if name != "ridge" or len(X) >= features.size:
            return None
        return held_out_by_ridge(sample_kernel(features, X), one_hot(records.counts), samples.rows, values)

    def score_rows(self, derived: _Fitted, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the regression."""
        return derived.head(X, columns)


def _stratified(classes: Sequence[Floats]) -> tuple[tuple[Doubles, Doubles], tuple[Doubles, Doubles]] | None:
    """Return ((X, Y) to fit, (X, Y) to validate); None where every class has a single sample.

    Classes are put in an order that depends on their samples alone, so the split knows no labels and no calls.
    """
    stride = -(-sum(map(len, classes)) // _MOST_ROWS)
    ordered = sorted((rows[::stride] for rows in classes), key=lambda rows: rows.tobytes())
    targets = one_hot(np.array([len(rows) for rows in ordered]))
    eligible = np.flatnonzero(np.repeat([len(rows) > 1 for rows in ordered], [len(rows) for rows in ordered]))
    if not eligible.size:
        return None
    held_out = np.zeros(len(targets), dtype=np.bool_)
    held_out[eligible[_FOLD - 1 :: _FOLD] if len(eligible) >= _FOLD else eligible[-1:]] = True
    X = np.concatenate(ordered).astype(np.float64)
    return (X[~held_out], targets[~held_out]), (X[held_out], targets[held_out])
