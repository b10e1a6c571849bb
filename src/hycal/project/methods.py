"""The method of a project: a new project with one, the same images under another one, and which one suits them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.errors import HyCalError
from hycal.project.changes import Outcome, Receipt, remembered, told
from hycal.project.evaluation import Score
from hycal.project.state import Space, State
from hycal.state.records import Records
from hycal.state.selection import spread_rows

DEFAULT_METHOD = "HyCal"


def empty_state(
    space: Space, *, has_text: bool, method: str = DEFAULT_METHOD, parameters: Mapping[str, Any] | None = None
) -> State:
    """Return a project that has learned nothing.

    Parameters
    ----------
    space : Space
    has_text : bool
        Whether the encoder embeds class names too; if not, methods that use texts beside images do without.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method, its defaults where not given.
    """
    kind = METHODS.find(method)
    classifier = _method(kind, {**({} if has_text else kind.without_text or {}), **(parameters or {})})
    classifier.encoder_ = space.fingerprint
    return State(classifier.knowing(Records({})), {}, space)


def _method(kind: type[IncrementalClassifier], parameters: Mapping[str, Any]) -> IncrementalClassifier:
    try:
        classifier = kind(**parameters)
    except TypeError as error:
        raise HyCalError(f"{kind.__name__} does not take these parameters: {error}.") from None
    classifier.check_parameters()
    return classifier


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
    has_text = all(class_.text is not None for class_ in state.classes.values())
    empty = empty_state(state.space, has_text=has_text, method=method)
    images = {label: class_.examples for label, class_ in state.classes.items()}
    following = empty.changed(state.classes, memo=remembered(empty, state.classes, images))
    counts = {label: len(examples) for label, examples in images.items()}
    what = f"{told(counts)} with {method}"
    recorded = empty.recorded(following, state.classes, action="remake", what=what)
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
