"""The scores of a model of several views as nodes of an ONNX graph, for rows that have all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder


def view_scores(
    build: GraphBuilder,
    rows: str,
    parts: Sequence[slice],
    scores_of: Sequence[Callable[[str], str]],
    columns: Sequence[npt.NDArray[np.intp]],
    *,
    class_weights: Doubles,
    domain_weights: Doubles,
) -> str:
    """Add the nodes that score rows.

    `parts` are the columns of each view in a row, `columns` the classes of each domain. `scores_of` has for each view a
    function that adds the nodes that score its unit rows by log posterior, of any normalisation. Weights have the
    shapes (G, V) and (V,).
    """
    views = [score(_unit_part(build, rows, part)) for part, score in zip(parts, scores_of, strict=True)]
    inside, totals = [], []
    for own, weights in zip(columns, class_weights, strict=True):
        found = [build.node("Gather", scores, build.ints(*own.tolist()), axis=1) for scores in views]
        shares = [build.node("LogSoftmax", one, axis=1) for one in found]
        totals.append([build.node("ReduceLogSumExp", one, axes=[1], keepdims=1) for one in found])
        inside.append(build.node("LogSoftmax", _weighted(build, shares, weights), axis=1))
    domains = [
        build.node("LogSoftmax", build.node("Concat", *one, axis=1), axis=1) for one in zip(*totals, strict=True)
    ]
    of_domains = build.node("LogSoftmax", _weighted(build, domains, domain_weights), axis=1)
    scores = [
        build.node("Add", one, build.node("Gather", of_domains, build.ints(number), axis=1))
        for number, one in enumerate(inside)
    ]
    order = np.argsort(np.concatenate(columns))
    return build.node("Gather", build.node("Concat", *scores, axis=1), build.ints(*order.tolist()), axis=1)


def _unit_part(build: GraphBuilder, rows: str, part: slice) -> str:
    own = build.node("Gather", rows, build.ints(*range(part.start, part.stop)), axis=1)
    return build.node("Div", own, build.node("ReduceL2", own, axes=[1], keepdims=1))


def _weighted(build: GraphBuilder, parts: Sequence[str], weights: Doubles) -> str:
    total, *rest = [build.node("Mul", one, build.number(weight)) for one, weight in zip(parts, weights, strict=True)]
    for one in rest:
        total = build.node("Add", total, one)
    return total
