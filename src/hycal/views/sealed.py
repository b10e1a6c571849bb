"""A model of several views, sealed: the sealed table of each view, and the weights of views as numbers.

A domain keeps its weights of views. One that a sealed model learns gets the weights for all domains, since nothing can
be held out of it. Where the sealed model had one domain, no weights for telling domains were fitted: those inside the
domain, which say how much each view knows, take their place once there are two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hycal.errors import HyCalError
from hycal.sealing import SealPlan, familiarity_in, kept_numbers, rounded_numbers
from hycal.state.sealed import SealedRecords
from hycal.state.sealed_views import DOMAINS, SHARED, SealedViews
from hycal.state.snapshot import Snapshot
from hycal.uncertainty.calibration import Calibration
from hycal.uncertainty.carried import CalibratedMethod, calibration_of
from hycal.uncertainty.unknown import Familiarity
from hycal.views.familiarity import ViewFamiliarity
from hycal.views.models import View, ViewModels, fit_models
from hycal.views.weights import DomainColumns, ViewWeights

_LEAST, _LARGEST = 1e-9, 1e6  # weight of a view that a fit can give


def seal_views(scorer: CalibratedMethod, snapshot: Snapshot, parameters: Mapping[str, Any]) -> SealedViews:
    """Return what is kept of a snapshot; what the method leaves out has no part in the weights and the calibration."""
    models: ViewModels = snapshot.value
    plans = {view.part.start: _plan(view) for view in models.views if view is not None}
    values = {start: plan.value for start, plan in plans.items()}
    if all(view is None or view.value is values[view.part.start] for view in models.views):
        calibration = calibration_of(scorer, snapshot)
    else:
        views = (None if view is None else replace(view, value=values[view.part.start]) for view in models.views)
        models = fit_models(models.records, models.groups, tuple(views))
        calibration = Calibration.of(scorer, models, models.records, scorer.fixed_temperature)
    familiarity = ViewFamiliarity.of(models, most=0.0)
    known = {part.start: one for part, one in zip(familiarity.parts, familiarity.known, strict=True)}
    tables = tuple(
        None if view is None else _table(view, plans[view.part.start], known[view.part.start]) for view in models.views
    )
    weights = models.weights
    return replace(
        SealedViews.of_views(models.records, parameters["views"], tables),
        weights=dict(zip(weights.names, weights.classes, strict=True)),
        numbers={
            **rounded_numbers(calibration, 0.0, familiarity.spread, familiarity.held_out),
            SHARED: weights.shared,
            DOMAINS: weights.domains if len(weights.names) > 1 else weights.shared,
        },
        parameters=parameters,
    )


def _plan(view: View) -> SealPlan:
    """Return what is sealed of a view."""
    if view.table.unseen:
        raise HyCalError(
            f"Class {view.table.unseen[0]!r} has a text and no image in one of the views. Only classes with images can "
            "be sealed. Nothing was changed. Learn its images with all encoders, or forget it."
        )
    return view.method.seal_plan(view.value, view.table)


def _table(view: View, plan: SealPlan, known: Familiarity) -> SealedRecords:
    """Return the table of a view, with its temperature and its measure of unknown queries."""
    temperature = Calibration(view.temperature, 0.0, np.empty(0))
    return plan.table(view.method, view.table, kept_numbers(temperature, known))


def models_in(table: SealedViews, views: tuple[View | None, ...]) -> ViewModels:
    """Return the models of a sealed table, with the weights that it keeps."""
    groups, shared = DomainColumns.of(table.domains), table.numbers[SHARED]
    classes = np.stack([table.weights.get(name, shared) for name in groups.names])
    return ViewModels(table, groups, views, ViewWeights(groups.names, classes, shared, table.numbers[DOMAINS]))


def view_familiarity_in(models: ViewModels, table: SealedViews) -> ViewFamiliarity:
    """Return the measure of how well queries fit, as the numbers of a sealed table say it."""
    weighed = zip(models.views, table.views, models.weights.shared, strict=True)
    parts, known, weights = zip(
        *((view.part, familiarity_in(own), weight) for view, own, weight in weighed if view and own), strict=True
    )
    _, spread, *held_out = table.numbers["familiarity"].tolist()
    return ViewFamiliarity(parts, known, np.array(weights) / sum(weights), spread, np.array(held_out))


def check_view_weights(table: SealedViews) -> None:
    """Refuse weights of views that no fit can give."""
    weights = [table.numbers.get(name, np.empty(0)) for name in (SHARED, DOMAINS)] + [*table.weights.values()]
    if any(len(each) != len(table.views) for each in weights):
        raise HyCalError("It has no weights of its views, or weights of another number of views.")
    if not all(np.all((each >= _LEAST) & (each <= _LARGEST)) for each in weights):
        raise HyCalError(f"It has weights of views below {_LEAST} or above {_LARGEST:,.0f}.")
