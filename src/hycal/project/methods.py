"""The method of a project: a new project, the same images under another method, and a comparison of methods."""

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
from hycal.project.changes import Change, Receipt, changed, describe_counts, memo_after, unchanged
from hycal.project.evaluation import Score
from hycal.project.examples import Space
from hycal.project.state import State
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

    Examples
    --------
    >>> state = empty_state(Space("builtin", None, 512), has_text=False, method="ncm")
    >>> type(state.classifier).__name__, state.version
    ('NCM', 0)
    """
    kind = METHODS.find(method)
    views = {} if space.views is None else {"views": space.views}
    classifier = make_method(kind, {**({} if has_text else kind.without_text or {}), **views, **(parameters or {})})
    classifier.encoder_ = space.fingerprint
    return State(classifier.with_records(Records({})), {}, space)


def has_views(kind: type[IncrementalClassifier]) -> bool:
    """Whether a method can learn embeddings of several encoders side by side."""
    return "views" in kind().get_params()


def make_method(kind: type[IncrementalClassifier], parameters: Mapping[str, Any]) -> IncrementalClassifier:
    """Return a method with these parameters, having learned nothing; both are checked."""
    if parameters.get("views") and not has_views(kind):
        able = [name for name in METHODS if has_views(METHODS[name])]
        raise HyCalError(
            f"{kind.__name__} takes embeddings of one encoder, and here there are {len(parameters['views'])} side by "
            f"side: {kind.one_view_because}. Use a method with views ({', '.join(able)}), or one encoder; of a model "
            "that exists, `hycal views MODEL --drop ENCODER`."
        )
    try:
        classifier = kind(**parameters)
    except TypeError as error:
        raise HyCalError(f"{kind.__name__} does not take these parameters: {error}.") from None
    classifier.check_parameters()
    return classifier


_CHANCE = 0.05  # a difference that chance makes as rarely as this is real


@dataclass(frozen=True)
class Trial:
    """The accuracy of a method on the images of a model, each judged by a model that never saw it."""

    method: str
    judged: CrossValidation | None  # None if the method could not be tried
    seconds: float  # time to learn all images and to judge them
    problem: str = ""  # why the method could not be tried; "" if it could

    @property
    def left_out(self) -> Score:
        """Images that are right."""
        return Score(0, 0) if self.judged is None else Score(int(self.judged.hits.sum()), len(self.judged.hits))


def remake(state: State, method: str) -> Change:
    """Return the same images learned with `method` and its default parameters; the history starts again."""
    empty, following = _under(state, method)
    counts = {label: len(class_.examples) for label, class_ in state.classes.items()}
    what = f"{describe_counts(counts)} with {type(empty.classifier).__name__}"
    recorded = empty.with_entry(following, state.classes, action="remake", what=what)
    change = recorded.history[-1].id
    return recorded, Receipt("remake", what, state.hash, following.hash, counts, touched=tuple(counts), change=change)


@dataclass(frozen=True)
class MethodChoice:
    """A method to change to: its name, one line about it, and why it cannot be used here, "" if it can."""

    name: str
    summary: str
    problem: str


def method_choices(state: State, *, has_text: bool) -> list[MethodChoice]:
    """Return every method; those without a variant for images alone cannot be used where classes have no texts."""
    texts = all(class_.text is not None for class_ in state.classes.values()) if state.classes else has_text
    found = []
    for name in METHODS:
        try:
            kind = METHODS[name]
        except HyCalError as error:  # another package's
            found.append(MethodChoice(name, "", str(error)))
            continue
        problem = "" if texts or kind.without_text is not None else "It needs an encoder that embeds class names too."
        if state.space.views is not None and not has_views(kind):
            problem = (
                f"It takes embeddings of one encoder, and this model has views of several: {kind.one_view_because}."
            )
        found.append(MethodChoice(name, (kind.__doc__ or "").strip().partition("\n")[0], problem))
    return found


def change_method(state: State, method: str) -> Change:
    """Return the project under `method` with its default parameters: the same images, and the history goes on."""
    if not state.classes:
        raise HyCalError("The model has no classes, so its method cannot be changed. Learn images first.")
    _, other = _under(state, method)
    names = [type(one.classifier).__name__ for one in (state, other)]
    if other.kind == state.kind:
        return state, unchanged(state, "method", f"it is {names[0]} already")
    return changed(state, {}, "method", f"from {names[0]} to {names[1]}", {}, memo=other.memo, method=other.method)


def _under(state: State, method: str) -> tuple[State, State]:
    """Return an empty project of `method`, and the same with the images of `state`."""
    state.classifier.records_.check_samples("be changed to another method")
    has_text = all(class_.text is not None for class_ in state.classes.values())
    empty = empty_state(state.space, has_text=has_text, method=method)
    images = {label: class_.examples for label, class_ in state.classes.items()}
    return empty, empty.with_classes(state.classes, memo=memo_after(empty, state.classes, images))


def trials(state: State, methods: Iterable[str]) -> Iterator[Trial]:
    """Yield the accuracy of each method, with its default parameters, on the same learned images.

    The images of classes of two or more are judged by models that never saw them, near-duplicates together. The best of
    many methods is partly best by chance, so its accuracy is a little optimistic.
    """
    state.classifier.records_.check_samples("be compared with other methods")
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
            judged = cross_validate(classifier.scorer, classifier.records_)
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
    return is_beyond_chance(won, lost)


def is_beyond_chance(won: int, lost: int) -> bool:
    """Whether one of two is right where the other is wrong, `won` times against `lost`, more often than by chance."""
    as_rare = sum(comb(won + lost, count) for count in range(lost + 1)) / 2 ** (won + lost)
    return won > lost and 2.0 * as_rare < _CHANCE
