"""From what the project layer knows to what goes over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic_core import to_json

from hycal.project import Entry, Receipt, State, answers, evaluation, split_label
from hycal.project import Example as LearnedImage
from hycal.project.advice import Advice
from hycal.project.history import undoable
from hycal.serve import schemas
from hycal.serve.service import Look, Service
from hycal.validation import Label

_SHOWN = 4  # images of a class in the table


def info(service: Service, state: State) -> schemas.Info:
    """Tell about the model as a whole."""
    last = undoable(state.history)
    limits = {name: getattr(service.limits, name) for name in schemas.LimitsOfServer.model_fields}
    return schemas.Info(
        name=service.project.path.name,
        model=state.hash,
        method=type(state.classifier).__name__,
        encoder=state.space.name,
        can_embed=service.encoder is not None,
        classes=len(state.labels),
        images=state.n_images,
        domains={domain: len(labels) for domain, labels in state.domains.items()},
        bytes=service.project.path.stat().st_size if service.project.exists else 0,
        undo=None if last is None else f"{last.action}: {last.what}",
        limits=schemas.LimitsOfServer(**limits),
    )


def answer(state: State, look: Look, found: answers.Answer, unknown: bool | None) -> schemas.Answer:
    """Tell the answer to one image."""
    return schemas.Answer(
        name=look.name,
        image=_image(look.example),
        problem=look.problem,
        learned_as=_label(state, look.example),
        unknown=unknown,
        candidates=[_candidate(item) for item in found],
    )


def answers_to_embeddings(
    state: State, found: answers.Ranking, unknown: Sequence[bool | None], milliseconds: Mapping[str, float]
) -> bytes:
    """Tell answers to embeddings as JSON of `schemas.Answers`.

    Programs send thousands of rows; to make and check an object for each candidate would take as long as the answers.
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
                {"label": str(labels[column]), "score": score, "probability": chance, "evidence": None}
                for column, score, chance in ranked
            ],
        }
        for number, (ranked, rejected) in enumerate(zip(found, unknown, strict=True))
    ]
    return to_json({"model": state.hash, "answers": answers, "milliseconds": milliseconds})


def seen(state: State, look: Look) -> schemas.SeenImage:
    """Tell what became of one upload."""
    return schemas.SeenImage(
        name=look.name, image=_image(look.example), problem=look.problem, learned_as=_label(state, look.example)
    )


def changed(service: Service, state: State, receipt: Receipt, milliseconds: Mapping[str, float]) -> schemas.Changed:
    """Tell what a change did, and what became of the classes that it touched."""
    return schemas.Changed(
        action=receipt.action,
        what=receipt.what,
        before=receipt.before,
        after=receipt.after,
        images={str(label): count for label, count in receipt.images.items()},
        skipped=[schemas.Skipped(name=item.name, reason=item.reason) for item in receipt.skipped],
        undoable=receipt.undoable,
        milliseconds=dict(milliseconds),
        info=info(service, state),
        rows=[_row(state, label) for label in receipt.touched if label in state.shelves],
        gone=[str(label) for label in receipt.touched if label not in state.shelves],
    )


def classes(state: State) -> schemas.Classes:
    """Tell the classes."""
    return schemas.Classes(model=state.hash, classes=[_row(state, label) for label in state.labels])


def _row(state: State, label: Label) -> schemas.ClassRow:
    shelf = state.shelves[label]
    return schemas.ClassRow(
        label=str(label),
        domain=shelf.domain,
        name=split_label(label)[1],
        shots=len(shelf.examples),
        images=[_hex(example) for example in shelf.examples[:_SHOWN]],
    )


def accuracy(state: State, advice: Advice | None) -> schemas.Accuracy:
    """Tell the leave-one-out estimates."""
    if advice is None:
        return schemas.Accuracy(model=state.hash, overall=None, classes=[], suspects=[])
    return schemas.Accuracy(
        model=state.hash,
        overall=_score(advice.overall) if advice.overall.total else None,
        classes=[
            schemas.ClassAdvice(
                label=str(item.label),
                left_out=_score(item.left_out),
                taken_for=None if item.taken_for is None else str(item.taken_for),
                advice=item.advice,
            )
            for item in advice.classes
        ],
        suspects=[
            schemas.Suspect(
                image=_hex(item.example),
                name=text(item.example.name),
                label=str(item.label),
                looks_like=str(item.looks_like),
            )
            for item in advice.suspects
        ],
    )


def class_map(service: Service, state: State) -> schemas.Map:
    """Tell where the classes lie."""
    return schemas.Map(
        model=state.hash,
        points=[
            schemas.Point(
                label=str(label),
                domain=state.shelves[label].domain,
                x=x,
                y=y,
                shots=len(state.shelves[label].examples),
                image=_hex(state.shelves[label].examples[0]),
            )
            for label, (x, y) in service.map(state).items()
        ],
    )


def event(entry: Entry) -> schemas.Event:
    """Tell one entry of the history."""
    return schemas.Event(
        when=entry.when,
        action=entry.action,
        what=text(entry.what),
        before=entry.before,
        after=entry.after,
        undoable=entry.undo is not None,
    )


def example(item: LearnedImage) -> schemas.Example:
    """Tell one learned image."""
    return schemas.Example(image=_hex(item), name=text(item.name))


def _candidate(item: answers.Candidate) -> schemas.Candidate:
    return schemas.Candidate(
        label=str(item.label), score=item.score, probability=item.probability, evidence=_evidence(item.evidence)
    )


def _evidence(item: answers.Evidence | None) -> schemas.Evidence | None:
    if item is None:
        return None
    return schemas.Evidence(
        shots=item.shots,
        nearest=[
            schemas.Neighbour(image=_hex(near.example), label=str(near.label), similarity=near.similarity)
            for near in item.nearest
        ],
        parts=None if item.parts is None else schemas.Parts(**vars(item.parts)),
    )


def _score(score: evaluation.Score) -> schemas.Score:
    return schemas.Score(right=score.right, total=score.total)


def _image(item: LearnedImage | None) -> str | None:
    return None if item is None else _hex(item)


def _hex(item: LearnedImage) -> str:
    return item.identity.hex()


def _label(state: State, item: LearnedImage | None) -> str | None:
    label = None if item is None else state.label_of.get(item.identity)
    return None if label is None else str(label)


def text(given: str) -> str:
    """Return what a file system or a stranger gave as text that JSON can carry."""
    return given.encode("utf-8", "replace").decode()
