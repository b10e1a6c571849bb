"""Responses that are put together from several objects, JSON in printable ASCII, and the fast way to it for embeddings.

A response that one dataclass holds needs nothing here: `SomethingOut.model_validate(dataclass)` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.responses import JSONResponse

from hycal.data.readers import places_of_drop
from hycal.encoders.catalog import list_encoders
from hycal.encoders.files import locate
from hycal.escaping import json_text, plain_json
from hycal.project import Receipt, State, split_label
from hycal.project.answers import Answer, Ranking
from hycal.project.encoder import missing_views
from hycal.project.methods import Trial, method_choices
from hycal.project.state import last_redoable, last_undoable, undo_empties
from hycal.serve import schemas
from hycal.serve.service import SentImage, Service
from hycal.validation import Label

_SHOWN = 4  # images of a class in the table


class PlainJson(JSONResponse):
    """JSON that no terminal takes for anything but text."""

    def render(self, content: Any) -> bytes:
        """Return `content` as JSON."""
        return json_text(content).encode()


def describe_model(service: Service, state: State) -> schemas.InfoOut:
    """Return the facts about the model as a whole."""
    last, undone = last_undoable(state.history), last_redoable(state.history)
    facts = {
        "name": service.project.path.name,
        "model": state.hash,
        "method": type(state.classifier).__name__,
        "encoder": state.space.name,
        "views": {} if state.space.views is None else {part.name: part.dimension for part in state.space.parts},
        "missing_views": {} if service.encoder is None else missing_views(service.encoder),
        "can_embed": service.encoder is not None,
        "read_only": service.read_only,
        "sealed": state.sealed,
        "classes": len(state.labels),
        "images": state.n_images,
        "domains": {domain: len(labels) for domain, labels in state.domains.items()},
        "bytes": service.project.path.stat().st_size if service.project.exists else 0,
        "undo": None if last is None else last.title,
        "undo_empties": undo_empties(state),
        "redo": None if undone is None else undone.title,
        "limits": service.limits,
    }
    return schemas.InfoOut.model_validate(facts)


def describe_choices(service: Service, state: State) -> schemas.ChoicesOut:
    """Return the methods and encoders that the project may have."""
    encoders = [
        {"name": spec.name, "summary": spec.summary, "ready": not locate(spec).missing} for spec in list_encoders()
    ]
    methods = method_choices(state, has_text=service.has_text)
    return schemas.ChoicesOut.model_validate(
        {"methods": methods, "encoders": encoders, "encoder_is_free": service.project.is_new}
    )


def describe_trial(state: State, trial: Trial) -> schemas.TrialOut:
    """Return the accuracy of a method that was tried, or why it could not be."""
    judged = {} if trial.judged is None else {"estimate": trial.judged.estimate(), "overall": trial.left_out}
    return schemas.TrialOut.model_validate({**vars(trial), "model": state.hash, **judged})


def describe_folders(folders: Mapping[str, int]) -> schemas.FoldersOut:
    """Return domain, split and class of the files in each folder of a drop, given how many files each has."""
    places = places_of_drop({_parts(folder): count for folder, count in folders.items()})
    found = ((folder, places[_parts(folder)]) for folder in folders)
    return schemas.FoldersOut(
        places=[schemas.PlaceOut(folder=name, domain=at.domain, split=at.split, name=at.label) for name, at in found]
    )


def _parts(folder: str) -> tuple[str, ...]:
    return tuple(folder.split("/")) if folder else ()


def describe_image(state: State, image: SentImage) -> schemas.ImageOut:
    """Return what became of one image that was sent."""
    return schemas.ImageOut.model_validate(_image_fields(state, image))


def describe_answer(state: State, image: SentImage, candidates: Answer, unknown: bool | None) -> schemas.AnswerOut:
    """Return the answer to one image."""
    fields = _image_fields(state, image)
    return schemas.AnswerOut.model_validate({**fields, "unknown": unknown, "candidates": candidates})


def _image_fields(state: State, image: SentImage) -> dict[str, object]:
    identity = None if image.example is None else image.example.identity
    learned_as = None if identity is None else state.label_of.get(identity)
    return {"name": image.name, "image": identity, "problem": image.problem, "learned_as": learned_as}


def describe_classes(state: State, labels: Iterable[Label]) -> list[schemas.ClassOut]:
    """Return the rows of some classes in the table."""
    return [_describe_class(state, label) for label in labels]


def _describe_class(state: State, label: Label) -> schemas.ClassOut:
    class_ = state.classes[label]
    fields = {
        "label": label,
        "domain": class_.domain,
        "name": split_label(label)[1],
        "shots": class_.count,
        "images": [example.identity for example in class_.examples[:_SHOWN]],
    }
    return schemas.ClassOut.model_validate(fields)


def describe_change(
    service: Service, state: State, receipt: Receipt, milliseconds: Mapping[str, float]
) -> schemas.ChangeOut:
    """Return what a change did, and the new rows of the classes that it touched."""
    fields = {
        **vars(receipt),
        "milliseconds": milliseconds,
        "info": describe_model(service, state),
        "rows": describe_classes(state, (label for label in receipt.touched if label in state.classes)),
        "gone": [label for label in receipt.touched if label not in state.classes],
    }
    return schemas.ChangeOut.model_validate(fields)


def describe_map(state: State, places: Mapping[Label, tuple[float, float]]) -> schemas.MapOut:
    """Return the places of the classes on the map."""
    points = []
    for label, (x, y) in places.items():
        class_ = state.classes[label]
        image = class_.examples[0].identity if class_.examples else None
        points.append({"label": label, "domain": class_.domain, "x": x, "y": y, "shots": class_.count, "image": image})
    return schemas.MapOut.model_validate({"model": state.hash, "points": points})


def encode_ranking(
    state: State, found: Ranking, unknown: Sequence[bool | None], milliseconds: Mapping[str, float]
) -> bytes:
    """Return answers to embeddings as JSON of `schemas.AnswersOut`.

    Programs send thousands of rows. To make and validate an object for each candidate would take as long as the
    answers, so this writes plain mappings.
    """
    labels = state.labels
    answers = [
        {
            "name": str(number),
            "image": None,
            "problem": None,
            "learned_as": None,
            "unknown": rejected,
            "candidates": [
                {"label": str(labels[column]), "score": score, "probability": probability, "evidence": None}
                for column, score, probability in ranked
            ],
        }
        for number, (ranked, rejected) in enumerate(zip(found, unknown, strict=True))
    ]
    return plain_json(to_json({"model": state.hash, "answers": answers, "milliseconds": milliseconds}))
