"""The models of all views: one of the method for each, on the samples and texts that have the view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.state.snapshot import Snapshot
from hycal.uncertainty.calibration import fit_temperature
from hycal.uncertainty.leave_one_out import HeldOutScores, leaves_out_quickly, score_held_out
from hycal.validation import Doubles, Floats, unit_queries
from hycal.views.weights import DomainColumns, ViewWeights, log_shares

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder

_HELD_OUT = 64  # samples of a domain that the weights of views inside it are fitted on
_HELD_OUT_FOR_DOMAINS = 64  # of all domains together, that only the weights for telling domains are fitted on
_DERIVED_AGAIN = 30  # samples of all, where a model is derived for each


@dataclass(frozen=True, eq=False)
class View:
    """The model of one view."""

    part: slice  # its columns in a row
    method: Any  # the method with one view; without text where the view has none
    table: Records  # the classes that it knows
    columns: npt.NDArray[np.intp]  # (C_v,): their columns in the table of all views
    value: Any  # what the method derived
    temperature: float = 1.0  # what its scores are divided by

    def scores(self, X: Floats) -> npt.NDArray[Any]:
        """Return the scores of rows that have the view, (n, C_v)."""
        return np.asarray(self.method.score_rows(self.value, unit_queries(X[:, self.part]), None))

    def onnx_scores(self, graph: GraphBuilder, rows: str) -> str:
        """Add the nodes that score unit rows of the view, divided by its temperature."""
        snapshot = Snapshot(self.table, self.method.get_params(), self.value)
        scores: str = self.method.onnx_scores(graph, rows, snapshot)
        return graph.node("Div", scores, graph.number(self.temperature))

    def _own(self, samples: Selection, places: npt.NDArray[np.intp]) -> Selection:
        """Return samples of all views, which have this one, as those of its table."""
        own = np.searchsorted(self.columns, samples.own)
        return Selection(places[samples.rows], samples.X[:, self.part], own, self.table.counts[own])

    def held_out(self, samples: Selection, places: npt.NDArray[np.intp]) -> HeldOutScores:
        """Return the scores of learned samples, each by the model of the view without it.

        A class that has no other sample in the view is unknown: its score is NaN. `places` has the position of each
        sample of all views in the table of this one.
        """
        own = self._own(samples, places)
        several, alone = np.flatnonzero(own.counts > 1), np.flatnonzero(own.counts == 1)
        scores = np.empty((len(own.rows), len(self.columns)))
        if len(several):
            scores[several] = score_held_out(self.method, self.value, self.table, own.at(several)).scores
        if len(alone):
            scores[alone] = self.method.score_rows(self.value, own.X[alone], None)
            scores[alone, own.own[alone]] = np.nan
        return HeldOutScores(own, scores)

    def held_out_inside(
        self, samples: Selection, places: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
    ) -> Doubles:
        """Return the same for the classes of the domain of all `samples`, at `columns` of the table of all views."""
        inside = np.flatnonzero(np.isin(self.columns, columns))
        own = self._own(samples, places)
        scores = np.full((len(own.rows), len(columns)), np.nan)
        known = np.searchsorted(columns, self.columns[inside])
        several = np.flatnonzero(own.counts > 1)
        found = None
        if len(several) == len(own.rows):
            found = self.method.scores_inside(self.value, self.table, own, inside)
        scores[:, known] = self.held_out(samples, places).scores[:, inside] if found is None else found
        return scores

    def calibrated(self, found: HeldOutScores) -> View:
        """Return the view with its method's own temperature, or the one that suits held-out scores."""
        fixed = self.method.fixed_temperature
        if len(self.columns) == 1 or fixed is not None:
            return replace(self, temperature=fixed or 1.0)
        judged = np.flatnonzero(found.samples.counts > 1)
        some = HeldOutScores(found.samples.at(judged), found.scores[judged])
        return replace(self, temperature=fit_temperature(self.method, self.value, self.table, some)[0])


@dataclass(frozen=True, eq=False)
class ViewModels:
    """The models of all views, None for a view that no sample has, and the weights of their evidence."""

    records: Records
    groups: DomainColumns
    views: tuple[View | None, ...]
    weights: ViewWeights

    @cached_property
    def places(self) -> tuple[npt.NDArray[np.intp], ...]:
        """For each view, the position of every sample of `records` in the table of the view, if it is there, (N,)."""
        samples = [record.samples.rows for record in self.records.ordered]
        return tuple(
            np.zeros(0, np.intp)
            if view is None
            else np.cumsum(np.concatenate([rows[:, view.part].any(axis=1) for rows in samples])) - 1
            for view in self.views
        )

    def present(self, X: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows have which view, (V, n); a view that no sample has counts as missing."""
        nothing = np.zeros(len(X), np.bool_)
        return np.stack([nothing if view is None else X[:, view.part].any(axis=1) for view in self.views])

    @cached_property
    def sharpened(self) -> ViewWeights:
        """The weights for queries, whose classes have one sample more than those of a sample that is left out.

        A sample differs from the mean of K others by 1 + 1/K times the variance of its class, so a sample more makes
        evidence sharper. Weights grow by 1 + 1/(2K), which suits training embeddings held back for development.
        """
        gains = []
        for columns in self.groups.columns:
            counts = self.records.counts[columns]
            K = float(counts[counts > 1].mean()) if (counts > 1).any() else np.inf
            gains.append(1.0 + 0.5 / K)
        return self.weights.scaled(np.array(gains))

    def scores(self, X: Floats) -> Doubles:
        """Return the scores of rows, (n, C)."""
        has = self.present(X)
        return self.combined(self.sharpened, has, *self.evidence(has, self.scores_by_view(X, has)))

    def held_out(self, samples: Selection) -> Doubles:
        """Return the scores of learned samples, each by the models without it; the weights stay as they are."""
        has = self.present(samples.X)
        return self.combined(self.weights, has, *self.evidence(has, _scores(self.held_out_by_view(samples, has))))

    def scores_by_view(self, X: Floats, has: npt.NDArray[np.bool_]) -> list[npt.NDArray[Any] | None]:
        """Return the scores of the rows that have each view."""
        return [None if view is None else view.scores(X[of]) for view, of in self._of(has)]

    def held_out_by_view(self, samples: Selection, has: npt.NDArray[np.bool_]) -> list[HeldOutScores | None]:
        """Return the held-out scores of the samples that have each view."""
        return [
            None if view is None else view.held_out(samples.at(np.flatnonzero(of)), places)
            for (view, of), places in zip(self._of(has), self.places, strict=True)
        ]

    def _of(self, has: npt.NDArray[np.bool_]) -> list[tuple[View | None, npt.NDArray[np.bool_]]]:
        """Return each view with the rows that have it; None for a view that none has."""
        return [(view if of.any() else None, of) for view, of in zip(self.views, has, strict=True)]

    def evidence(
        self, has: npt.NDArray[np.bool_], scores: Sequence[npt.NDArray[Any] | None]
    ) -> tuple[Doubles, Doubles]:
        """Return D, (V, n, G), and W, (V, n, C), from the scores of each view for the rows that have it."""
        classes = len(self.records.labels)
        D = np.zeros((*has.shape, len(self.groups.names)))
        W = np.zeros((*has.shape, classes))
        for number, (view, found) in enumerate(zip(self.views, scores, strict=True)):
            if view is not None and found is not None:
                L = np.full((len(found), classes), np.nan)
                L[:, view.columns] = found
                D[number, has[number]], W[number, has[number]] = self.groups.split(L / view.temperature)
        return D, W

    def full(self, has: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Return the rows that have all views that any sample has."""
        return np.flatnonzero(has[[view is not None for view in self.views]].all(axis=0))

    def inside(self, samples: Selection, columns: npt.NDArray[np.intp]) -> tuple[Doubles, npt.NDArray[np.intp]]:
        """Return W for the classes of the domain of all `samples`, (V, n, C_g), and the place of the class of each."""
        chosen = samples.at(self.full(self.present(samples.X)))
        W = np.zeros((len(self.views), len(chosen.rows), len(columns)))
        for number, (view, places) in enumerate(zip(self.views, self.places, strict=True)):
            if view is not None and len(chosen.rows):
                W[number] = log_shares(view.held_out_inside(chosen, places, columns) / view.temperature)[1]
        return W, np.searchsorted(columns, chosen.own)

    def combined(self, weights: ViewWeights, has: npt.NDArray[np.bool_], D: Doubles, W: Doubles) -> Doubles:
        """Return the scores, (n, C)."""
        if has.all():
            return weights.combined(self.groups, D, W)
        scores = np.empty(W.shape[1:])
        for rows, own in weights.by_presence(has):
            scores[rows] = own.combined(self.groups, D[:, rows], W[:, rows])
        return scores


def _scores(found: Iterable[HeldOutScores | None]) -> list[npt.NDArray[Any] | None]:
    return [None if one is None else one.scores for one in found]


def leave_out_quickly(views: Iterable[View | None]) -> bool:
    """Whether held-out scores of all views have a closed form, or take a few models."""
    for view in views:
        if view is not None:
            one = spread(view.table, np.arange(len(view.columns)), 1)
            if len(one.rows) and not leaves_out_quickly(view.method, view.value, view.table, one):
                return False
    return True


def fit_models(records: Records, groups: DomainColumns, views: tuple[View | None, ...]) -> ViewModels:
    """Return the models with temperatures and weights that suit held-out samples."""
    even = ViewModels(records, groups, views, ViewWeights.even(groups, len(views)))
    most, most_of_domain = _held_out(groups, views)
    samples = Selection.joined([spread(records, each, most_of_domain) for each in groups.columns])
    has = even.present(samples.X)
    found = even.held_out_by_view(samples, has)
    calibrated = [
        view if view is None or one is None else view.calibrated(one) for view, one in zip(views, found, strict=True)
    ]
    model = replace(even, views=tuple(calibrated))
    D, _ = model.evidence(has, _scores(found))
    full = model.full(has)
    inside = [model.inside(spread(records, each, most), each) for each in groups.columns]
    return replace(model, weights=ViewWeights.fit(groups, D[:, full], samples.own[full], inside))


def _held_out(groups: DomainColumns, views: tuple[View | None, ...]) -> tuple[int, int]:
    """Return how many samples of a domain are held out to weigh views inside it, and for telling domains.

    Those for telling domains fit the temperatures of views too, where the method has none of its own.
    """
    if not leave_out_quickly(views):
        few = -(-_DERIVED_AGAIN // len(groups.names))
        return few, few
    if any(view is not None and view.method.fixed_temperature is None for view in views):
        return _HELD_OUT, _HELD_OUT
    return _HELD_OUT, -(-_HELD_OUT_FOR_DOMAINS // len(groups.names)) if len(groups.names) > 1 else 0
