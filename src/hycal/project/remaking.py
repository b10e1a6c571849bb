"""The same images under another method: which one suits a model, and the model made again with it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hycal.errors import HyCalError
from hycal.project.changes import Outcome, Receipt, remembered, told
from hycal.project.evaluation import Score
from hycal.project.methods import empty_state
from hycal.project.state import State
from hycal.state.selection import spread_rows

_MOST_JUDGED = 2000


@dataclass(frozen=True)
class Trial:
    """A method on the images of a model, each judged by the model that never saw it.

    Attributes
    ----------
    method : str
    left_out : Score
    seconds : float
        For learning all images and judging them.
    problem : str
        Why the method could not be tried; empty if it could.
    """

    method: str
    left_out: Score
    seconds: float
    problem: str = ""


def remade(state: State, method: str) -> Outcome:
    """Return the model that learned the same images with `method` and its defaults; its history begins anew."""
    has_text = all(shelf.text is not None for shelf in state.shelves.values())
    empty = empty_state(state.space, has_text=has_text, method=method)
    images = {label: shelf.examples for label, shelf in state.shelves.items()}
    following = empty.changed(state.shelves, memo=remembered(empty, state.shelves, images))
    counts = {label: len(examples) for label, examples in images.items()}
    what = f"{told(counts)} with {method}"
    recorded = empty.recorded(following, state.shelves, action="remake", what=what)
    return recorded, Receipt("remake", what, state.hash, following.hash, counts, touched=tuple(counts))


def trials(state: State, methods: Iterable[str]) -> Iterator[Trial]:
    """Try each method, with its defaults, on the same learned images of classes that have two or more.

    At most 2,000 images are judged, of every class as many as find room. Nothing is learned from how they are
    judged, but whoever then picks the best of many methods picks some luck with it.
    """
    records = state.classifier.records_
    columns = np.arange(len(state.labels), dtype=np.intp)
    rows = spread_rows(records, columns, _MOST_JUDGED)
    if len(state.labels) < 2 or not len(rows):
        raise HyCalError(
            "Methods are judged on learned images that are left out: expected two classes at least, and one of them "
            "with two images or more. Learn some more first."
        )
    for method in methods:
        began = time.perf_counter()
        try:
            classifier = remade(state, method)[0].classifier
            hits = classifier.leave_one_out(rows).hits
        except HyCalError as problem:
            yield Trial(method, Score(0, 0), 0.0, str(problem))
        else:
            yield Trial(method, Score(int(hits.sum()), len(hits)), time.perf_counter() - began)
