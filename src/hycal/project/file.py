"""Between a project and the content of its file. `docs/model-file.md` is the specification.

The file is a model file that any reader of models can read. What the project knows beside the model stands in the
manifest under `project` and in tensors whose names begin with `project.`; a model file without them is a project whose
images are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.classifiers.loading import model_of
from hycal.errors import ModelFileError
from hycal.project.examples import Example, Shelf
from hycal.project.history import Entry, Undo
from hycal.project.pool import Pool, packed, unpacked
from hycal.project.state import Space, State
from hycal.state.records import Records
from hycal.storage.codec import content_of
from hycal.storage.model_file import Content
from hycal.validation import Floats, Label


def project_content(state: State) -> Content:
    """Return what the file of a project holds."""
    classifier = state.classifier
    parameters = classifier.get_params(deep=False)
    model = content_of(
        classifier.records_, type(classifier).__name__, parameters, classifier.encoder_, width=state.space.dimension
    )
    texts = [state.shelves[label].text for label in state.labels]
    pool = Pool(list(state.examples), [text for text in texts if text is not None])
    live, live_texts = len(pool.examples), len(pool.texts)
    history = [_entry_json(entry, pool) for entry in state.history]
    retired = [example.row for example in pool.examples[live:]]
    width = state.space.dimension
    return Content(
        manifest={**model.manifest, "project": _project_json(state, history)},
        tensors={
            **model.tensors,
            **packed(pool.examples),
            "project.retired_samples": stacked(retired, width),
            "project.retired_texts": stacked(pool.texts[live_texts:], width),
        },
    )


def _project_json(state: State, history: list[dict[str, Any]]) -> dict[str, Any]:
    return {"encoder_name": state.space.name, "version": state.version, "history": history}


def stacked(rows: Sequence[Floats], width: int) -> Floats:
    """Return rows as a matrix, also if there are none."""
    return np.stack(rows) if len(rows) else np.empty((0, width), np.float32)


def _entry_json(entry: Entry, pool: Pool) -> dict[str, Any]:
    plain: dict[str, Any] = {name: getattr(entry, name) for name in _ENTRY}
    if entry.undo is not None:
        shelves = [
            [label, None if shelf is None else pool.shelve(shelf)] for label, shelf in entry.undo.shelves.items()
        ]
        plain["undo"] = {"shelves": shelves, "memo": dict(entry.undo.memo)}
    return plain


_ENTRY = ("when", "action", "what", "before", "after")


def state_of(content: Content) -> State:
    """Return the project that a model file holds; every claim is checked."""
    classifier = model_of(content)
    records = classifier.records_
    width = int(content.tensors["samples"].shape[1])
    try:
        project = content.manifest.get("project", {})
        name, version = project.get("encoder_name", ""), project.get("version", 0)
        if not isinstance(name, str) or type(version) is not int:
            raise TypeError("the encoder's name is no text, or the version no number")
        pool = _pool(content)
        shelves = _live(records, pool)
        history = tuple(_entry_of(plain, pool) for plain in project.get("history", ()))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(
            f"The project in the model file is malformed: {error!r}. Restore it from a copy."
        ) from None
    return State(classifier, shelves, Space(name, classifier.encoder_, width), history, version)


def _pool(content: Content) -> Pool:
    """Return live and retired examples and texts, numbered as the file numbers them."""
    tensors = content.tensors
    samples, texts = tensors["samples"], tensors["texts"]
    rows = [*samples, *_rows(tensors.get("project.retired_samples"), samples)]
    kept_texts = [*texts, *_rows(tensors.get("project.retired_texts"), samples)]
    return Pool(unpacked(rows, tensors), kept_texts)


def _rows(array: npt.NDArray[Any] | None, like: Floats) -> Floats:
    if array is None:
        return like[:0]
    if array.dtype != np.float32 or array.ndim != 2 or array.shape[1] != like.shape[1]:
        raise ValueError("retired rows must be float32, as wide as the samples")
    return array


def _live(records: Records, pool: Pool) -> dict[Label, Shelf]:
    shelves: dict[Label, Shelf] = {}
    first = 0
    for label in records.labels:
        record = records.by_label[label]
        examples: list[Example] = pool.examples[first : first + record.count]
        shelves[label] = Shelf.of_record(record, examples)
        first += record.count
    return shelves


def _entry_of(plain: Mapping[str, Any], pool: Pool) -> Entry:
    values = {name: plain[name] for name in _ENTRY}
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError("a history entry has a field that is no text")
    undo = plain.get("undo")
    if undo is None:
        return Entry(**values)
    shelves = {label: None if shelf is None else pool.shelf(shelf) for label, shelf in undo["shelves"]}
    return Entry(**values, undo=Undo(shelves, dict(undo["memo"])))
