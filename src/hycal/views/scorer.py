"""Views: a model of several encoders, as one model of the method for each, whose evidence is added.

A row of such a model is the unit vectors of its encoders side by side; a part that is all zeros is a view that the row
does not have. Each view has the samples and texts that have it, and its own model of the method. The log posteriors of
the views are weighted by what they prove on samples that are left out: `hycal.views.weights`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.evidence import ScoreParts
from hycal.errors import HyCalError
from hycal.export.onnx_views import view_scores
from hycal.parallel.threads import run_in_chunks
from hycal.sealing import Sealing
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords, refuse
from hycal.state.sealed_views import SealedViews
from hycal.state.selection import Selection
from hycal.state.snapshot import Snapshot
from hycal.state.steps import Step
from hycal.uncertainty.calibration import Calibration
from hycal.uncertainty.carried import familiarity_of
from hycal.uncertainty.unknown import Familiarity
from hycal.validation import Doubles, Floats, view_slices
from hycal.views.familiarity import ViewFamiliarity, view_familiarity_of
from hycal.views.models import View, ViewModels, fit_models, leave_out_quickly
from hycal.views.sealed import check_view_weights, models_in, seal_views, view_familiarity_in
from hycal.views.weights import DomainColumns

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder

_MOST_VIEWS = 16
_WIDEST = 2**17


class ViewWidths:
    """Widths of views, as a parameter.

    >>> ViewWidths().is_satisfied_by((512, 384)), ViewWidths().is_satisfied_by((512,))
    (True, False)
    """

    def is_satisfied_by(self, value: Any, /) -> bool:
        """Whether the value is a tuple of two to sixteen widths."""
        right_kind = isinstance(value, tuple) and 2 <= len(value) <= _MOST_VIEWS
        return right_kind and all(type(each) is int and 1 <= each <= _WIDEST for each in value)

    def __str__(self) -> str:
        return f"a tuple of two to {_MOST_VIEWS} widths such as (512, 384)"


#: Valid values of the parameter `views`.
VIEWS: list[Any] = [None, ViewWidths()]


class ViewScorer:
    """What derives and scores a model of several views: the same functions as those of a method.

    `model` is a method with the parameter `views`.
    """

    fixed_temperature: ClassVar[float | None] = 1.0  # the weights are fitted on held-out samples already

    def __init__(self, model: Any) -> None:
        self.model = model
        self.method = model.with_parameters(views=None)
        self.parts = view_slices(model.views)

    @property
    def scorer(self) -> ViewScorer:
        """Itself."""
        return self

    @property
    def rebuilt_because(self) -> str:
        """Why a step is not as cheap as that of the method: the weights of views depend on all held-out samples."""
        return "the weights of views are fitted at every step; the models of the views follow it"

    @property
    def kept_in_steps(self) -> str:
        """What the method keeps in each view while few samples change."""
        return str(self.method.kept_in_steps)

    @property
    def sealing(self) -> Sealing:
        """What a sealed model keeps of each view: the same as of one."""
        return self.method.sealing

    def with_parameters(self, **changes: Any) -> ViewScorer:
        """Return the same of other parameters."""
        return ViewScorer(self.model.with_parameters(**changes))

    def scores_by_value(self, *_: Any) -> None:
        """Values of a parameter share no work."""

    def check_records(self, records: Records) -> None:
        """Refuse records that the method cannot use in one of the views."""
        if records.by_label and records.width != self.parts[-1].stop:
            raise HyCalError(
                f"{self.model} needs rows as wide as its views together, {self.parts[-1].stop} numbers, and those of "
                f"the model have {records.width}. Learn the images again with all its encoders."
            )
        if not self.method.scores_announced:
            records.check_seen(type(self.model).__name__)
        for part in self.parts:
            method, table = self._part(records, part)
            if table.by_label:
                method.check_records(table)

    def uses_texts(self, derived: ViewModels) -> bool:
        """Whether every view uses the text of every class."""
        return all(view is None or view.method.uses_texts(view.value) for view in derived.views)

    def derive(self, records: Records, previous: ViewModels | None) -> ViewModels:
        """Return the models of all views, each of which follows a small change, and weights for them."""
        before = [None] * len(self.parts) if previous is None else previous.views
        views = tuple(self._view(records, part, old) for part, old in zip(self.parts, before, strict=True))
        return fit_models(records, DomainColumns.of(records.domains), views)

    def _part(self, records: Records, part: slice) -> tuple[Any, Records]:
        """Return the method and the table of one view."""
        table, method = records.view(part), self.method
        if not method.scores_announced and table.unseen:
            table = table.forget(table.unseen)
        if isinstance(table, SealedRecords) and not table.by_label:
            return method.with_parameters(**table.parameters), table
        if method.without_text and all(record.text is None for record in table.by_label.values()):
            method = method.with_parameters(**method.without_text)
        return method, table

    def _view(self, records: Records, part: slice, old: View | None) -> View | None:
        method, table = self._part(records, part)
        if not table.by_label:
            return None
        same = old is not None and old.method.get_params() == method.get_params()
        value, _ = method.derived(table, old.value if same and old is not None else None)
        columns = np.array([records.column_of[label] for label in table.labels], dtype=np.intp)
        sealed = isinstance(table, SealedRecords)
        return View(
            part, method, table, columns, value, method.kept_calibration(value, table).temperature if sealed else 1.0
        )

    # Sealing

    def sealed_table(self, snapshot: Snapshot) -> SealedViews:
        """Return what is kept of a snapshot."""
        return seal_views(self, snapshot, self.model.get_params(deep=False))

    def derive_sealed(self, table: SealedViews) -> ViewModels:
        """Return the models of all views, from moments, with the weights that are kept."""
        return models_in(table, tuple(self._view(table, part, None) for part in self.parts))

    def kept_calibration(self, value: ViewModels, table: SealedRecords) -> Calibration:
        """Return what a sealed table keeps of the calibration; temperatures are those of the views."""
        temperature, *own = table.numbers["calibration"].tolist()
        return Calibration.known(temperature, np.array(own), table, self.fixed_temperature)

    def kept_familiarity(self, value: ViewModels, table: SealedViews) -> ViewFamiliarity:
        """Return the measure of how well queries fit the classes, as a snapshot has it."""
        return view_familiarity_in(value, table)

    def learned_moments(self, table: SealedViews, step: Step) -> SealedViews:
        """Return a sealed table with `step` learned."""
        methods = [self._part(table, part)[0] for part in self.parts]
        learned = table.learn_views(step, [method.seal_rows for method in methods])
        for part, method in zip(self.parts, methods, strict=True):
            if self._part(learned, part)[0].get_params() != method.get_params():
                refuse("use texts in a view that had none, or do without in one that had some")
        return learned

    def adopted(self, table: SealedViews) -> SealedViews:
        """Return a sealed table of a file as one of this method, with its parameters; refuse one that it never made."""
        check_view_weights(table)
        parts = (self._part(table, part) for part in self.parts)
        views = tuple(method.adopted(own) if own.by_label else None for method, own in parts)
        return replace(table, views=views, parameters=self.model.get_params(deep=False))

    # Answers

    def score_rows(self, derived: ViewModels, X: Floats, columns: npt.NDArray[np.intp] | None) -> Floats:
        """Return the log posterior of every class."""
        scores = np.empty((len(X), len(derived.records.labels)), np.float32)

        def score(rows: slice) -> None:
            scores[rows] = derived.scores(X[rows])

        run_in_chunks(score, len(X), numbers_per_row=(3 * len(self.parts) + 1) * scores.shape[1] + X.shape[1])
        return scores if columns is None else scores[:, columns]

    def scores_without_each(self, derived: ViewModels, records: Records, samples: Selection) -> Doubles | None:
        """The weights stay as they are, and in each view what the method keeps; None if a view has no closed form."""
        return derived.held_out(samples) if leave_out_quickly(derived.views) else None

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add the nodes of every view, and of their weights; the graph takes rows that have all views."""
        derived: ViewModels = snapshot.value
        views = [view for view in derived.views if view is not None]
        if len(views) < len(self.parts) or any(len(view.columns) < len(derived.records.labels) for view in views):
            raise HyCalError(
                f"{self.model} cannot be exported to ONNX: a class has no image in one of the views. Learn the images "
                "of all classes with all encoders first."
            )
        weights = derived.sharpened
        return view_scores(
            graph,
            rows,
            self.parts,
            [partial(view.onnx_scores, graph) for view in views],
            derived.groups.columns,
            class_weights=weights.classes,
            domain_weights=weights.domains,
        )

    def parts_of(self, X: npt.ArrayLike) -> ScoreParts:
        """Return the evidence of each view, and what the domain of a class adds."""
        queries, derived = self.model.check_queries(X), self.model.snapshot().value
        has = derived.present(queries)
        D, W = derived.evidence(has, derived.scores_by_view(queries, has))
        shares, scores = np.zeros(W.shape), derived.combined(derived.sharpened, has, D, W)
        for rows, weights in derived.sharpened.by_presence(has):
            for number, columns in enumerate(derived.groups.columns):
                at = np.ix_(np.arange(len(W)), rows, columns)
                inside = weights.classes[number][:, None, None] * W[at]
                shares[at] = inside + (weights.domains[:, None] * D[:, rows, number])[:, :, None]
        return ScoreParts.of_evidence(scores, {f"view {number + 1}": share for number, share in enumerate(shares)})


class Viewed:
    """What a method may say about views, and the part of a classifier that knows of them."""

    #: Widths of the views of a row, side by side; None is one view. A method that can have several has it as parameter.
    views: tuple[int, ...] | None = None
    #: Why the method takes one view, where it has no parameter `views`.
    one_view_because: ClassVar[str] = "its features, cache or texts belong to one space of embeddings"

    @property
    def scorer(self) -> Any:
        """What derives and scores: the method itself, or its models of several views."""
        return self if self.views is None else ViewScorer(self)

    def score_parts(self, X: npt.ArrayLike) -> ScoreParts | None:
        """Return the scores of queries with the evidence behind them, or each view's; None if the method cannot say."""
        return self.scorer.parts_of(X)

    @property
    def view_weights_(self) -> Doubles:
        """Weight of each view for the classes of each domain, (G, V); domains in the order of their names."""
        model: Any = self
        if self.views is None:
            raise AttributeError(f"{model} has one view, and no weights of views.")
        weights: Doubles = model.snapshot().value.sharpened.classes
        return weights

    @property
    def familiarity_(self) -> Familiarity | ViewFamiliarity:
        """The measure of how well queries fit the learned classes, and its thresholds."""
        model: Any = self
        return (familiarity_of if self.views is None else view_familiarity_of)(model.snapshot())

    @property
    def stored_parameters(self) -> dict[str, Any]:
        """The parameters as files and hashes have them: `views` only where there are several."""
        model: Any = self
        parameters = model.get_params(deep=False)
        return {name: value for name, value in parameters.items() if name != "views" or value is not None}
