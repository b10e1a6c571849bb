"""The method of a project: a new project, the same images learned with another method, and a comparison of methods."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.errors import HyCalError
from hycal.project.changes import Outcome, Receipt, describe_counts, memo_after
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
        Whether the encoder embeds class names too. If not, a method that can use texts is set to use images alone.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method; by default its own.
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
    """The leave-one-out accuracy of a method on the images of a model.

    Attributes
    ----------
    method : str
    left_out : Score
    seconds : float
        Time to learn all images and to judge them.
    problem : str
        Why the method could not be tried; "" if it could.
    """

    method: str
    left_out: Score
    seconds: float
    problem: str = ""


def remake(state: State, method: str) -> Outcome:
    """Return the same images learned with `method` and its default parameters; the history starts again."""
    has_text = all(class_.text is not None for class_ in state.classes.values())
    empty = empty_state(state.space, has_text=has_text, method=method)
    images = {label: class_.examples for label, class_ in state.classes.items()}
    following = empty.with_classes(state.classes, memo=memo_after(empty, state.classes, images))
    counts = {label: len(examples) for label, examples in images.items()}
    what = f"{describe_counts(counts)} with {method}"
    recorded = empty.with_entry(following, state.classes, action="remake", what=what)
    change = recorded.history[-1].id
    return recorded, Receipt("remake", what, state.hash, following.hash, counts, touched=tuple(counts), change=change)


def trials(state: State, methods: Iterable[str]) -> Iterator[Trial]:
    """Yield the leave-one-out accuracy of each method, with its default parameters, on the same learned images.

    At most 2,000 images are judged, spread evenly over the classes with two or more. The best of many methods is partly
    best by chance, so its accuracy is a little optimistic.
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
            classifier = remake(state, method)[0].classifier
            hits = classifier.leave_one_out(rows).hits
        except HyCalError as problem:
            yield Trial(method, Score(0, 0), 0.0, str(problem))
        else:
            yield Trial(method, Score(int(hits.sum()), len(hits)), time.perf_counter() - began)
