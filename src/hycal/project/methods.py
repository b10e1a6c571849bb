"""The method of a project: a new project, the same images learned with another method, and a comparison of methods."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.errors import HyCalError
from hycal.project.changes import Outcome, Receipt, describe_counts, memo_after
from hycal.project.evaluation import Score
from hycal.project.state import Space, State
from hycal.state.records import Records
from hycal.uncertainty.cross_validation import CrossValidation, cross_validate

DEFAULT_METHOD = "HierarchicalHyCal"  # of `hycal learn` and `hycal serve`


def empty_state(
    space: Space, *, has_text: bool, method: str = "HyCal", parameters: Mapping[str, Any] | None = None
) -> State:
    """Return a project that has learned nothing.

    Parameters
    ----------
    space : Space
    has_text : bool
        Whether the encoder embeds class names too. If not, a method that can use texts is set to use images alone.
    method : str
        One of `METHODS`, in any case; by default the paper's.
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


_CHANCE = 0.05  # a difference that chance makes as rarely as this is real


@dataclass(frozen=True)
class Trial:
    """The accuracy of a method on the images of a model, each judged by a model that never saw it.

    Attributes
    ----------
    method : str
    judged : CrossValidation or None
        None if the method could not be tried.
    seconds : float
        Time to learn all images and to judge them.
    problem : str
        Why the method could not be tried; "" if it could.
    """

    method: str
    judged: CrossValidation | None
    seconds: float
    problem: str = ""

    @property
    def left_out(self) -> Score:
        """Images that are right."""
        return Score(0, 0) if self.judged is None else Score(int(self.judged.hits.sum()), len(self.judged.hits))


def remake(state: State, method: str) -> Outcome:
    """Return the same images learned with `method` and its default parameters; the history starts again."""
    has_text = all(class_.text is not None for class_ in state.classes.values())
    empty = empty_state(state.space, has_text=has_text, method=method)
    images = {label: class_.examples for label, class_ in state.classes.items()}
    following = empty.with_classes(state.classes, memo=memo_after(empty, state.classes, images))
    counts = {label: len(examples) for label, examples in images.items()}
    what = f"{describe_counts(counts)} with {type(empty.classifier).__name__}"
    recorded = empty.with_entry(following, state.classes, action="remake", what=what)
    change = recorded.history[-1].id
    return recorded, Receipt("remake", what, state.hash, following.hash, counts, touched=tuple(counts), change=change)


def trials(state: State, methods: Iterable[str]) -> Iterator[Trial]:
    """Yield the accuracy of each method, with its default parameters, on the same learned images.

    The images of classes of two or more are judged by models that never saw them, near-duplicates together. The best of
    many methods is partly best by chance, so its accuracy is a little optimistic.
    """
    counts = [len(class_.examples) for class_ in state.classes.values()]
    if len(counts) < 2 or max(counts) < 2:
        raise HyCalError(
            "Methods are judged on learned images that are left out: expected two classes at least, and one of them "
            "with two images or more. Learn some more first."
        )
    for method in methods:
        began = time.perf_counter()
        try:
            classifier = remake(state, method)[0].classifier
            judged = cross_validate(classifier, classifier.records_)
        except HyCalError as problem:
            yield Trial(method, None, 0.0, str(problem))
        else:
            yield Trial(method, judged, time.perf_counter() - began)


def better_method(found: Iterable[Trial], own: str) -> str | None:
    """Return the method to change to from `own`, or None.

    It is the cheapest of those that the most accurate one does not surpass beyond chance, if it surpasses `own`.
    """
    tried = {trial.method: trial for trial in found if trial.judged is not None}
    if own not in tried:
        return None
    best = max(tried.values(), key=lambda trial: trial.left_out.right)
    equals = [trial for trial in tried.values() if not _surpasses(best, trial)]
    cheapest = min(equals, key=lambda trial: trial.seconds)
    return cheapest.method if _surpasses(cheapest, tried[own]) else None


def _surpasses(one: Trial, other: Trial) -> bool:
    """Whether one method is right where the other is wrong more often than chance explains (sign test, McNemar)."""
    assert one.judged is not None and other.judged is not None
    _, first = np.unique(one.judged.groups, return_index=True)  # one image of each group of near-duplicates
    ours, theirs = one.judged.hits[first], other.judged.hits[first]
    won, lost = int(np.sum(ours & ~theirs)), int(np.sum(theirs & ~ours))
    as_rare = sum(comb(won + lost, count) for count in range(lost + 1)) / 2 ** (won + lost)
    return won > lost and 2.0 * as_rare < _CHANCE
