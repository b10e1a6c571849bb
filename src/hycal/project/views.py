"""The views of a project: which there are, one more, and one less.

A view is the part of each row that one encoder made. To drop one is exact: the rows of the other views stay as they
are, so the model is the one that never had it. Each function returns the next state and a receipt, as those of
`changes`; the history entry holds the rows as they were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.embedding.sources import ImageError, ImageFile, ImageSource, content_hash
from hycal.errors import HyCalError
from hycal.project.changes import Change, changed, describe_counts, memo_after, unchanged
from hycal.project.examples import ClassExamples, Example, Space
from hycal.project.methods import make_method
from hycal.project.state import State
from hycal.state.records import Records
from hycal.state.sealed import refuse
from hycal.state.sealed_views import SealedViews
from hycal.validation import Floats, Label


@dataclass(frozen=True)
class ViewSummary:
    """One view of a model."""

    space: Space  # the encoder that made it, and its width
    lacking: int  # learned images that do not have it
    texts: int  # classes whose name it has embedded
    weights: Mapping[str, float]  # its weight in each domain, as the method found it; {} if there is one view


def views_of(state: State) -> list[ViewSummary]:
    """Return the views of a model; the one encoder of a model without views counts as one."""
    found = []
    for number, (part, columns) in enumerate(zip(state.space.parts, state.space.columns, strict=True)):
        lacking = _lacking(state, columns)
        texts = sum(class_.text is not None and bool(class_.text[columns].any()) for class_ in state.classes.values())
        found.append(ViewSummary(part, lacking, texts, _weights(state, number)))
    return found


def _lacking(state: State, columns: slice) -> int:
    """Return how many learned images lack the view of these columns; of a sealed model, as it counts them."""
    records = state.classifier.records_
    if isinstance(records, SealedViews):
        return state.n_images - sum(record.count for record in records.view(columns).ordered)
    return sum(not example.row[columns].any() for example in state.examples)


def _weights(state: State, number: int) -> dict[str, float]:
    if state.space.views is None or not state.classes:
        return {}
    weights = state.classifier.view_weights_[:, number]
    return dict(zip(state.domains, weights.tolist(), strict=True))


def images_without(state: State, part: Space) -> dict[bytes, Example]:
    """Return the learned images, by content hash, that lack the view of `part`, which the model may not have yet."""
    at = _place(state, part.name)
    columns = slice(0, 0) if at is None else state.space.columns[at]
    return {e.key: e for e in state.examples if e.key and not e.row[columns].any()}


def _place(state: State, name: str) -> int | None:
    names = [part.name.lower() for part in state.space.parts]
    return names.index(name.lower()) if name.lower() in names else None


def check_has_images(state: State) -> None:
    """Refuse a view of a sealed model, whatever the encoder."""
    if state.sealed:
        refuse("get a view: it has no images")


def check_addable(state: State, part: Space) -> None:
    """Refuse a view that a model cannot get: before its images are embedded."""
    check_has_images(state)
    if not state.classes:
        raise HyCalError(
            "The model has learned nothing yet, so there is nothing to add a view to. Name all encoders when it "
            f"learns: hycal learn MODEL FOLDER --encoder {state.space.name or 'NAME'}+{part.name}."
        )
    if not all(own.name for own in state.space.parts):
        raise HyCalError(
            "The model does not say which encoder made its embeddings, so a view cannot be added beside them. Learn "
            f"the images again into a new model: hycal learn NEW.hycal FOLDER --encoder NAME+{part.name}."
        )
    at = _place(state, part.name)
    own = None if at is None else state.space.parts[at]
    if own is not None and (own.dimension != part.dimension or own.fingerprint not in (None, part.fingerprint)):
        raise HyCalError(
            f"The model has the view {own.name} of the space {own.fingerprint!r}, and here it is {part.fingerprint!r}. "
            "Their embeddings cannot be compared. Drop the view first, or use the weights that it was made with."
        )
    _method(state, _with(state.space, part), text=any(class_.text is not None for class_ in state.classes.values()))


def add_view(
    state: State, part: Space, rows: Mapping[bytes, Floats], texts: Mapping[str, Floats] | None = None
) -> Change:
    """Return the project with one more view, or with a view that some images lacked.

    `part` is the encoder of the view. `rows` has its unit embeddings by content hash; learned images that have none
    lack the view. `texts` has its embeddings of class names, if it has a text tower.
    """
    check_addable(state, part)
    wanted = images_without(state, part)
    new = {key: row for key, row in rows.items() if key in wanted}
    if not new:
        why = f"no image got the view {part.name}" if wanted else f"every image has the view {part.name} already"
        return state, unchanged(state, "view", why)
    space = _with(state.space, part)
    columns = space.columns[[own.name for own in space.parts].index(part.name)]

    def put(row: Floats, own: Floats | None) -> Floats:
        if own is not None:
            row[columns] = own
        return row

    def text(label: Label, moved: Floats) -> Floats:
        return put(moved, (texts or {}).get(str(label)))

    changes = _moved(state, space, lambda example, moved: put(moved, new.get(example.key)), text)
    counts = {label: sum(e.key in new for e in class_.examples) for label, class_ in state.classes.items()}
    counts = {label: count for label, count in counts.items() if count}
    return _changed(state, changes, space, f"{part.name} added to {describe_counts(counts)}", counts)


def drop_view(state: State, name: str) -> Change:
    """Return the project without a view: the model that never had it."""
    if state.sealed:
        refuse("lose a view: its weights and its calibration were fitted to images in all views")
    at, parts = _place(state, name), state.space.parts
    if at is None or state.space.views is None:
        listed = " and ".join(filter(None, (part.name for part in parts))) or "unnamed"
        if len(parts) == 1 and at is not None:
            raise HyCalError(f"{name} cannot be dropped: the model has one view, {listed}, and needs it.")
        raise HyCalError(f"The model has no view {name!r}; it has {listed}. Nothing was changed.")
    space = Space.joined(part for number, part in enumerate(parts) if number != at)
    changes = _moved(state, space, lambda example, moved: moved, lambda label, moved: moved)
    alone = sum(not example.row.any() for class_ in changes.values() for example in class_.examples)
    alone += sum(not class_.examples and class_.text is None for class_ in changes.values())  # announced by a text
    if alone:
        others = " or ".join(part.name for part in space.parts)
        raise HyCalError(
            f"{alone:,} learned images have the view {parts[at].name} alone, and would have no embedding without it. "
            f"Nothing was changed. Add {others} to them first (`hycal views MODEL --add ENCODER --images FOLDER`), or "
            "forget them."
        )
    counts = {label: len(class_.examples) for label, class_ in state.classes.items()}
    return _changed(state, changes, space, f"{parts[at].name} dropped", counts)


def _with(space: Space, part: Space) -> Space:
    """Return a space that has a part, as it is if it has it already."""
    names = [own.name for own in space.parts]
    return space if part.name in names else Space.joined([*space.parts, part])


def _moved(
    state: State,
    space: Space,
    row: Callable[[Example, Floats], Floats],
    text: Callable[[Label, Floats], Floats],
) -> dict[Label, ClassExamples]:
    """Return every class with its rows and texts moved to `space`: the views of both stay, a new one is zeros.

    `row` and `text` may fill in what is new. A text that no view has is None.
    """
    places = dict(zip((part.name for part in state.space.parts), state.space.columns, strict=True))
    common = [
        (to, places[part.name]) for part, to in zip(space.parts, space.columns, strict=True) if part.name in places
    ]

    def moved(vector: Floats | None) -> Floats:
        wide = np.zeros(space.dimension, np.float32)
        if vector is not None:
            for to, source in common:
                wide[to] = vector[source]
        return wide

    classes = {}
    for label, class_ in state.classes.items():
        examples = [replace(example, row=row(example, moved(example.row))) for example in class_.examples]
        vector = text(label, moved(class_.text))
        classes[label] = ClassExamples.of(class_.domain, examples, vector if vector.any() else None)
    return classes


def _changed(
    state: State, changes: Mapping[Label, ClassExamples], space: Space, what: str, counts: Mapping[Label, int]
) -> Change:
    """Return the project with these classes in `space`, and its method with the views of that space."""
    method = _method(state, space, text=any(class_.text is not None for class_ in changes.values()))
    empty = replace(state, classifier=method.with_records(Records({})), classes={}, space=space)
    images = {label: class_.examples for label, class_ in changes.items() if class_.examples}
    memo = memo_after(empty, changes, images)
    return changed(state, changes, "view", what, counts, memo=memo, method=method, space=space)


def _method(state: State, space: Space, *, text: bool) -> IncrementalClassifier:
    """Return the method of a project with the views of `space`; where texts come or go, it uses them or not."""
    kind, parameters = type(state.classifier), state.classifier.get_params(deep=False)
    had = any(class_.text is not None for class_ in state.classes.values())
    images_only: Mapping[str, Any] = kind.without_text or {}
    if had and not text:
        if kind.without_text is None:
            raise HyCalError(
                f"{kind.__name__} needs the text of every class, and the view that has them would be gone. Nothing was "
                "changed. Change the method first: `hycal remake MODEL METHOD`."
            )
        parameters |= images_only
    if text and not had and all(parameters[name] == value for name, value in images_only.items()):
        usual = kind().get_params(deep=False)
        parameters |= {name: usual[name] for name in images_only}
    views = {"views": space.views} if space.views is not None or "views" in parameters else {}
    return make_method(kind, {**parameters, **views})


def find_images(
    wanted: Mapping[bytes, Example], folders: Iterable[Path], sources: Iterable[ImageSource]
) -> dict[bytes, ImageSource]:
    """Return the learned images that are at hand, by content hash.

    The name of a learned image may lead to it from one of the `folders`. `sources` are files under any name; they are
    read only as long as an image is missing.
    """
    named = (ImageFile(folder / example.name) for folder in folders for example in wanted.values() if example.name)
    found: dict[bytes, ImageSource] = {}
    for source in chain(sources, named):
        if len(found) == len(wanted):
            break
        with contextlib.suppress(ImageError):
            key = content_hash(source.read())
            if key in wanted:
                found.setdefault(key, source)
    return found
