"""From a project to the content of its file, and back. `docs/reference/model-file.md` is the specification.

A project file is a model file that any reader of models can read. What a project has beside the model is in the
manifest under `project`, and in tensors whose names begin with `project.`. A model file without them is a project that
has embeddings only. The file holds every example once: first the learned ones, then those that are only in the undo
data. In the file, classes are called `shelves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.classifiers.loader import model_of, named_method
from hycal.errors import ModelFileError
from hycal.project.examples import ClassExamples, Example, Space
from hycal.project.state import History, HistoryEntry, State, Undo
from hycal.state.records import Records
from hycal.storage.codec import content_of
from hycal.storage.model_file import Content, unit_matrix
from hycal.validation import Floats, Label, check_label, check_one_kind


def project_content(state: State) -> Content:
    """Return the content of the file of a project."""
    classifier = state.classifier
    parameters = classifier.stored_parameters
    model = content_of(
        classifier.records_, type(classifier).__name__, parameters, classifier.encoder_, width=state.space.dimension
    )
    texts = [state.classes[label].text for label in state.labels]
    pool = Pool(list(state.examples), [text for text in texts if text is not None])
    live, live_texts = len(pool.examples), len(pool.texts)
    history = [_entry_json(entry, pool) for entry in state.history]
    width = state.space.dimension
    return Content(
        manifest={
            **model.manifest,
            "project": {"encoder_name": state.space.name, "version": state.version, "history": history},
        },
        tensors={
            **model.tensors,
            **pack_provenance(pool.examples),
            **_retired(_SAMPLES, [example.row for example in pool.examples[live:]], width),
            **_retired(_TEXTS, pool.texts[live_texts:], width),
        },
    )


_SAMPLES, _TEXTS = "project.retired_samples", "project.retired_texts"


def _retired(name: str, rows: Sequence[Floats], width: int) -> dict[str, npt.NDArray[Any]]:
    """Return the rows of undo data as a tensor. Rows from before a change of views have a width of their own.

    Then all are padded with zeros to the widest, and a second tensor has their widths.
    """
    widths = [len(row) for row in rows]
    if set(widths) <= {width}:
        return {name: stack_rows(rows, width)}
    padded = np.zeros((len(rows), max(widths)), np.float32)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return {name: padded, f"{name}.widths": np.array(widths, np.int64)}


def _unpack_retired(tensors: Mapping[str, npt.NDArray[Any]], name: str, views: tuple[int, ...] | None) -> list[Floats]:
    """Return the rows that `_retired` packed. The hash of the model that an undo makes checks those of other widths."""
    samples = tensors["samples"]
    widths = tensors.get(f"{name}.widths")
    if widths is None:
        return list(unit_matrix(tensors.get(name, samples[:0]), name, width=samples.shape[1], views=views))
    rows = tensors[name]
    sound = rows.dtype == np.float32 and rows.ndim == 2 and widths.dtype == np.int64 and widths.shape == rows.shape[:1]
    if not sound or not np.isfinite(rows).all() or np.any((widths < 1) | (widths > rows.shape[1])):
        raise ValueError(f"{name} and its widths do not fit together")
    return [row[:width] for row, width in zip(rows, widths.tolist(), strict=True)]


def stack_rows(rows: Sequence[Floats], width: int) -> Floats:
    """Return rows as a matrix of shape (n, width); n may be 0."""
    return np.stack(rows) if len(rows) else np.empty((0, width), np.float32)


def _entry_json(entry: HistoryEntry, pool: Pool) -> dict[str, Any]:
    plain: dict[str, Any] = {name: getattr(entry, name) for name in _ENTRY}
    if entry.undo is not None:
        classes = [
            [label, None if class_ is None else pool.encode_class(class_)]
            for label, class_ in entry.undo.classes.items()
        ]
        plain["undo"] = {"shelves": classes, "memo": dict(entry.undo.memo)}
        method = entry.undo.method
        if method is not None:
            plain["undo"]["method"] = [type(method).__name__, method.stored_parameters]
        if entry.undo.space is not None:
            plain["undo"]["space"] = [entry.undo.space.name, entry.undo.space.fingerprint, entry.undo.space.dimension]
    return plain


_ENTRY = ("when", "action", "what", "before", "after")


def state_of(content: Content) -> State:
    """Return the project in the content of a model file; every field is checked."""
    classifier = model_of(content)
    records = classifier.records_
    width = int(content.tensors["samples"].shape[1])
    try:
        project = content.manifest.get("project", {})
        name, version = project.get("encoder_name", ""), project.get("version", 0)
        if not isinstance(name, str) or type(version) is not int or version < 0:
            raise TypeError("the encoder's name is not text, or the version is not a number of changes")
        pool = _pool(content, classifier.views)
        classes = _live(records, pool)
        history = _history(project.get("history", []), pool, version, classifier)
        state = State(classifier, classes, Space(name, classifier.encoder_, width, classifier.views), history, version)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(
            f"The project in the model file is malformed: {error!r}. Restore it from a copy."
        ) from None
    complete = content.manifest["parameters"] == classifier.stored_parameters  # else its hash was another one
    if content.manifest.get("version") == 1 and complete and history and history[-1].after != state.hash:
        raise ModelFileError(  # version 1 has no checksums
            f"The model file is damaged: it holds the model {state.hash}, and its history ends with "
            f"{history[-1].after}. Restore it from a copy."
        )
    return state


def _history(
    entries: Sequence[Mapping[str, Any]], pool: Pool, version: int, classifier: IncrementalClassifier
) -> History:
    """Return the history of a model; the number of the last change is the version."""
    first = version - len(entries) + 1
    history = tuple(_entry_of(plain, pool, first + at) for at, plain in enumerate(entries))
    undone = [entry.undo for entry in history if entry.undo is not None]
    check_one_kind([*classifier.records_.labels, *(label for undo in undone for label in undo.classes)])
    return history


def _pool(content: Content, views: tuple[int, ...] | None) -> Pool:
    """Return the learned examples and texts, then those of the undo data, in the order of the file."""
    tensors = content.tensors
    retired, retired_texts = (_unpack_retired(tensors, name, views) for name in (_SAMPLES, _TEXTS))
    return Pool(unpack_examples([*tensors["samples"], *retired], tensors), [*tensors["texts"], *retired_texts])


def _live(records: Records, pool: Pool) -> dict[Label, ClassExamples]:
    classes: dict[Label, ClassExamples] = {}
    first = 0
    for label in records.labels:
        record = records.by_label[label]
        examples: list[Example] = pool.examples[first : first + record.count]
        classes[label] = ClassExamples.of_record(record, examples)
        first += record.count
    return classes


def _entry_of(plain: Mapping[str, Any], pool: Pool, number: int) -> HistoryEntry:
    values = {name: plain[name] for name in _ENTRY}
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError("a history entry has a field that is not text")
    undo = plain.get("undo")
    if undo is None:
        return HistoryEntry(**values, number=number)
    if not isinstance(undo["memo"], dict):
        raise TypeError("the memo of an undo is not an object")
    method = named_method(*undo["method"]) if "method" in undo else None
    space = _space(undo["space"], None if method is None else method.views) if "space" in undo else None
    found = Undo(pool.decode_classes(undo["shelves"]), undo["memo"], method, space)
    return HistoryEntry(**values, undo=found, number=number)


def _space(plain: Any, views: tuple[int, ...] | None) -> Space:
    name, fingerprint, dimension = plain
    if not isinstance(name, str) or not isinstance(fingerprint, str | None) or not _is_number(dimension):
        raise TypeError("the space of an undo is not a name, a fingerprint and a width")
    return Space(name, fingerprint, dimension, views)


_KEY = 32


@dataclass(eq=False)
class Pool:
    """Examples and texts by number: their position. Encoding a class appends those that are not there yet."""

    examples: list[Example]
    texts: list[Floats]
    _example_number: dict[int, int] = field(init=False)
    _text_number: dict[bytes, int] = field(init=False)

    def __post_init__(self) -> None:
        self._example_number = {id(example): number for number, example in enumerate(self.examples)}
        self._text_number = {text.tobytes(): number for number, text in enumerate(self.texts)}

    def encode_class(self, class_: ClassExamples) -> dict[str, Any]:
        """Return a class as plain numbers; an example or text that has no number yet gets the next one."""
        return {
            "domain": class_.domain,
            "examples": [self._number(example) for example in class_.examples],
            "text": None if class_.text is None else self._text(class_.text),
        }

    def decode_classes(self, shelves: Sequence[tuple[Any, Any]]) -> dict[Label, ClassExamples | None]:
        """Return classes by label, None for a class that is not there; every label and number is checked."""
        classes = {check_label(label): None if plain is None else self._class(plain) for label, plain in shelves}
        if len(classes) != len(shelves):
            raise ValueError("a label stands twice")
        return classes

    def _class(self, plain: Mapping[str, Any]) -> ClassExamples:
        """Return the class of the plain numbers that `encode_class` returned."""
        numbers, text, domain = plain["examples"], plain["text"], plain["domain"]
        if not isinstance(domain, str) or not all(_is_number(n) for n in [*numbers, *([] if text is None else [text])]):
            raise ValueError("a class has a number that is not one, or a domain that is not text")
        if not numbers and text is None:
            raise ValueError("a class has neither images nor a text")
        check_label(domain)
        vector = None if text is None else self.texts[text]
        return ClassExamples.of(domain, [self.examples[number] for number in numbers], vector)

    def _number(self, example: Example) -> int:
        if id(example) not in self._example_number:
            self._example_number[id(example)] = len(self.examples)
            self.examples.append(example)
        return self._example_number[id(example)]

    def _text(self, text: Floats) -> int:
        key = text.tobytes()
        if key not in self._text_number:
            self._text_number[key] = len(self.texts)
            self.texts.append(text)
        return self._text_number[key]


def _is_number(value: Any) -> bool:
    return type(value) is int and value >= 0


def pack_provenance(examples: Sequence[Example]) -> dict[str, npt.NDArray[Any]]:
    """Return keys, names and thumbnails of `examples` as tensors. A thumbnail that several have is stored once."""
    first: dict[bytes, int] = {}
    owners = [first.setdefault(example.thumbnail, number) for number, example in enumerate(examples)]
    own = [owner == number for number, owner in enumerate(owners)]
    shared = any(example.thumbnail and not mine for example, mine in zip(examples, own, strict=True))
    keys = b"".join(example.key or bytes(_KEY) for example in examples)
    names, name_ends = _joined([example.name.encode("utf-8", "surrogateescape") for example in examples])
    thumbnails, thumbnail_ends = _joined([e.thumbnail if mine else b"" for e, mine in zip(examples, own, strict=True)])
    return {
        "project.keys": np.frombuffer(keys, np.uint8).reshape(-1, _KEY),
        "project.names": names,
        "project.name_ends": name_ends,
        "project.thumbnails": thumbnails,
        "project.thumbnail_ends": thumbnail_ends,
        **({"project.thumbnail_owners": np.array(owners, np.int64)} if shared else {}),
    }


def unpack_examples(rows: Sequence[Floats], tensors: Mapping[str, npt.NDArray[Any]]) -> list[Example]:
    """Return the examples of `rows`, with keys, names and thumbnails if the tensors have them."""
    if "project.keys" not in tensors:
        return [Example(row) for row in rows]
    keys = tensors["project.keys"]
    if keys.dtype != np.uint8 or keys.shape != (len(rows), _KEY):
        raise ValueError("project.keys must have 32 bytes for each example")
    names = _parted(tensors, "project.names", "project.name_ends", len(rows))
    thumbnails = _parted(tensors, "project.thumbnails", "project.thumbnail_ends", len(rows))
    owners = tensors.get("project.thumbnail_owners", np.arange(len(rows)))
    if owners.dtype != np.int64 or owners.shape != (len(rows),) or np.any((owners < 0) | (owners >= len(rows))):
        raise ValueError("project.thumbnail_owners must have the number of an example for each example")
    return [
        Example(row, key.tobytes() if key.any() else b"", name.decode("utf-8", "surrogateescape"), thumbnails[owner])
        for row, key, name, owner in zip(rows, keys, names, owners.tolist(), strict=True)
    ]


def _joined(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _parted(tensors: Mapping[str, npt.NDArray[Any]], name: str, ends_name: str, count: int) -> list[bytes]:
    joined, ends = tensors[name], tensors[ends_name]
    sound = joined.dtype == np.uint8 and joined.ndim == 1 and ends.dtype == np.int64 and ends.shape == (count,)
    if not sound or np.any(np.diff(ends, prepend=0) < 0) or (count and ends[-1] != len(joined)):
        raise ValueError(f"{name} and {ends_name} do not fit together")
    content = joined.tobytes()
    return [content[start:end] for start, end in pairwise([0, *ends.tolist()])]
