"""Gravity as tables of text and sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hycal.gravity.measure import CLAIMS, Gravity

MISSING = "–"


@dataclass(frozen=True)
class Sheet:
    """A table whose cells are text."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_RELATED = 5  # domains: no order of fewer is as rare as one in twenty, so no relation would be beyond chance


def sheets(gravity: Gravity) -> list[Sheet]:
    """Return the measured numbers as tables: flow, domains, and relations if there are domains enough."""
    related = [_relations(gravity)] if len(gravity.domains) >= _RELATED else []
    return [_flow(gravity), _domains(gravity), *related]


def summary(gravity: Gravity) -> str:
    """Return one sentence: how many images cross, and which domain takes most of them."""
    flow = gravity.flow
    crossed, asked = int(flow.outflow.sum()), int(flow.counts.sum())
    line = f"{crossed:,} of {asked:,} images ({100 * flow.crossing:.2f}%) are given to a class of another domain"
    if not crossed:
        return f"{line}."
    most = int(np.argmax(flow.inflow))
    return f"{line}; {gravity.domains[most]} takes most, {int(flow.inflow[most]):,}."


def sentence(when: str, gravity: Gravity) -> str:
    """Return the method, its state of calibration ("before" or "after"), and the summary."""
    return f"{gravity.method} ({when} calibration): {summary(gravity)}"


def _flow(gravity: Gravity) -> Sheet:
    flow = gravity.flow
    rows = tuple(
        (name, *(f"{count:,}" for count in counts), _percent(loss))
        for name, counts, loss in zip(gravity.domains, flow.counts, flow.loss, strict=True)
    )
    note = "Images by the domain they belong to (rows) and the domain of the class they were given (columns)."
    taken = ("taken", *(f"{count:,}" for count in flow.inflow), "")
    net = ("net", *(f"{count:+,}" for count in flow.net), "")
    return Sheet(f"{gravity.method}: flow", note, ("domain", *gravity.domains, "lost %"), (*rows, taken, net))


def _domains(gravity: Gravity) -> Sheet:
    columns, drifts = gravity.columns, gravity.drifts
    rows = tuple(
        (
            name,
            f"{gravity.classes[at]:,}",
            f"{gravity.samples[at]:,}",
            _number(columns["visual entropy"][at], 2),
            _number(100 * columns["pull"][at], 1, signed=True),
            *(_percent(value) for value in (drifts[at].alone, drifts[at].together)),
            *(_percent(value) for value in (drifts[at].captured, drifts[at].drifted, drifts[at].gained)),
            _number(drifts[at].shift, 3),
        )
        for at, name in enumerate(gravity.domains)
    )
    note = (
        "Pull is the domain's share of the images that crossed, less its share by chance, in points. Accuracy with no "
        "other domain (alone) less accuracy in company (together) = captured by others + drifted - gained, in percent "
        "of the domain's images. Shift is how far its scores moved: 0 not at all, 1 beyond recognition."
    )
    head = ("domain", "classes", "images", "entropy", "pull", "alone", "together", "captured", "drifted", "gained")
    return Sheet(f"{gravity.method}: domains", note, (*head, "shift"), rows)


def _relations(gravity: Gravity) -> Sheet:
    rows = tuple(
        (
            f"{of}, {against}",
            "+" if CLAIMS[of, against] > 0 else "-",
            _number(relation.correlation, 2, signed=True),
            _number(relation.p, 3),
        )
        for (of, against), relation in gravity.relations.items()
    )
    note = f"Spearman's correlation over {len(gravity.domains)} domains, with its exact or permutation p-value."
    return Sheet(f"{gravity.method}: relations", note, ("between", "claimed", "found", "p"), rows)


def _percent(value: float) -> str:
    return _number(100 * value, 1)


def _number(value: float, digits: int, *, signed: bool = False) -> str:
    if np.isnan(value):
        return MISSING
    rounded = round(float(value), digits) + 0.0  # no negative zero
    return f"{rounded:+.{digits}f}" if signed else f"{rounded:.{digits}f}"
