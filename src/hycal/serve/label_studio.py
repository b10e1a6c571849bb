"""The routes that Label Studio calls: `hycal serve --label-studio FOLDER` is an ML back end of its projects.

Label Studio sends tasks and gets predictions; it sends annotations, and they are learned or taken back. Tasks name
their images by references (`hycal.data.annotations.label_studio`), which are files in FOLDER. Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from hycal.data.annotations.label_studio import choice_result, chosen, image_files_of
from hycal.embedding import ImageBytes
from hycal.errors import HyCalError
from hycal.escaping import visible
from hycal.project import State
from hycal.project.answers import ERROR
from hycal.serve.annotation_ledger import Ledger
from hycal.serve.batching import ANSWERING, EMBEDDING, run_on
from hycal.serve.labeling_interface import Interface, read_interface
from hycal.serve.requests import LABEL_STUDIO, PREFIX, parse_json
from hycal.serve.schemas import ResponseBody
from hycal.serve.service import SentImage, Service

_TOP = 50  # classes among which the best one with a choice is looked for

router = APIRouter(prefix=PREFIX + LABEL_STUDIO)


class TaskIn(msgspec.Struct):
    """A task; of its fields the data is needed."""

    data: dict[str, Any]


class PredictIn(msgspec.Struct):
    """Tasks to predict, and the labeling interface of their project."""

    tasks: list[TaskIn]
    label_config: str


class SetupIn(msgspec.Struct):
    """The labeling interface of a project that is connected."""

    schema: str


class AnnotationIn(msgspec.Struct):
    """An annotation; one that was deleted has its number alone."""

    id: int
    result: list[dict[str, Any]] | None = None
    was_cancelled: bool | None = False


class ProjectIn(msgspec.Struct):
    """The project of an annotation."""

    label_config: str = ""


class EventIn(msgspec.Struct):
    """What happened in Label Studio."""

    action: str
    annotation: AnnotationIn | list[AnnotationIn] | None = None
    task: TaskIn | list[TaskIn] | None = None
    annotations: list[AnnotationIn] | None = None
    project: ProjectIn | None = None


class BackendHealthOut(ResponseBody):
    """What Label Studio expects of a back end that runs."""

    status: str
    model_class: str


class SetupOut(ResponseBody):
    """The version of the model."""

    model_version: str


class PredictionsOut(ResponseBody):
    """The predictions of each task, the version of the model, and why images could not be used."""

    results: list[list[dict[str, Any]]]
    model_version: str
    problems: list[str]


class EventOut(ResponseBody):
    """What was done about an event, and what could not be done."""

    done: list[str]
    problems: list[str]


class LabelStudio:
    """One model as a back end of Label Studio.

    `folder` has the images of the tasks: the document root of Label Studio's local files, or its media folder.
    """

    def __init__(self, service: Service, folder: Path) -> None:
        if not folder.is_dir():
            raise HyCalError(f"There is no folder {folder}. Expected the folder of the images of Label Studio's tasks.")
        path = service.project.path
        self._service = service
        self._root = Path(os.path.realpath(folder))
        self._ledger = Ledger(path.with_name(f"{path.name}.label-studio.json"))
        self._ledger.keep(service.state.label_of)
        self._changing = threading.Lock()
        service.on_drop.append(self._ledger.drop)

    def version(self) -> str:
        """Return the version of the model."""
        return _version(self._service.state)

    def batches(self, tasks: Sequence[TaskIn], interface: Interface) -> Iterator[list[ImageBytes | SentImage]]:
        """Yield the images of the tasks, with a problem if they cannot be read, a bounded number at a time."""
        most = self._service.limits.rows
        if len(tasks) > most:
            raise HyCalError(f"{len(tasks):,} tasks in one request; the limit is {most:,}. Select fewer at once.")
        batch: list[ImageBytes | SentImage] = []
        held = 0
        for task in tasks:
            found = self._image(task, interface)
            held += len(found.content) if isinstance(found, ImageBytes) else 0
            batch.append(found)
            if len(batch) >= self._service.limits.images or held > self._service.limits.request_bytes:
                yield batch
                batch, held = [], 0
        if batch:
            yield batch

    def _image(self, task: TaskIn, interface: Interface) -> ImageBytes | SentImage:
        reference = task.data.get(interface.key)
        if not isinstance(reference, str):
            return SentImage("a task", None, f"its data has no reference to an image under {interface.key[:50]!r}")
        files, problem = image_files_of(reference)
        most = self._service.limits.image_bytes
        try:
            paths = [Path(os.path.realpath(self._root / file)) for file in files if file and not problem]
            path = next(path for path in paths if path.is_relative_to(self._root) and path.is_file())
            with path.open("rb") as file:
                content = file.read(most + 1)
        except (StopIteration, OSError, ValueError):
            return SentImage(files[0][:200], None, problem or "not a file in the folder of the images, or not readable")
        return ImageBytes(path.relative_to(self._root).as_posix(), content)

    def receive_next(self, batches: Iterator[Sequence[ImageBytes | SentImage]]) -> list[SentImage]:
        """Embed the images of the next batch that the server does not have yet; nothing if there is no other batch."""
        batch = next(batches, ())
        keys = [hashlib.sha256(item.content).hexdigest() if isinstance(item, ImageBytes) else "" for item in batch]
        found = {key: self._service.sent_image(key) for key in keys}
        new = {
            key: item
            for key, item in zip(keys, batch, strict=True)
            if isinstance(item, ImageBytes) and found[key].example is None
        }
        if new:
            found |= dict(zip(new, self._service.receive(list(new.values())), strict=True))
        return [found[key] if isinstance(item, ImageBytes) else item for key, item in zip(keys, batch, strict=True)]

    def predict(self, images: Sequence[SentImage], interface: Interface) -> PredictionsOut:
        """Return the predictions for images that were received, in order; an empty one for what fits no class."""
        state = self._service.state
        rows = [image.example.row for image in images if image.example is not None]
        answers = iter(self._service.answers(state, rows, top=_TOP) if rows and state.classes else [()] * len(rows))
        unknown = iter(self._service.unknown(state, rows, ERROR))
        results: list[list[dict[str, Any]]] = []
        for image in images:
            if image.example is None:
                results.append([])
                continue
            found, strange = next(answers), next(unknown)
            named = ((interface.choice(state, str(best.label)), best.probability) for best in found if not strange)
            choice, chance = next(((name, chance) for name, chance in named if name is not None), (None, 0.0))
            own = [] if choice is None else [choice_result(choice, control=interface.control, image=interface.image)]
            results.append([{"result": own, "score": chance, "model_version": _version(state)}])
        problems = [visible(f"{image.name}: {image.problem}") for image in images if image.problem is not None]
        return PredictionsOut(results=results, model_version=_version(state), problems=problems)

    def learn(self, annotation: AnnotationIn, image: SentImage, interface: Interface) -> str:
        """Learn the label of an annotation; without one, take back what it said before."""
        names = [] if annotation.was_cancelled else _names(annotation)
        if len(names) > 1:
            raise HyCalError(f"The annotation has {len(names)} choices; a model learns one class of an image.")
        if not names:
            return self.take_back(annotation.id)
        if image.example is None:
            raise HyCalError(f"The image of annotation {annotation.id} cannot be used: {image.name}: {image.problem}.")
        with self._changing:
            state, key, identity = self._service.state, str(annotation.id), image.example.identity
            label, known = interface.label(state, names[0]), state.label_of.get(identity)
            moved = self._ledger.find(key)
            if moved is not None and moved[0] != identity.hex():
                self._take_back(key)
            # The list is first: of a label that it does not name, a deletion would not be understood.
            self._ledger.add(key, identity.hex(), label, None if known is None else str(known))
            return self._service.correct(identity.hex(), label).what

    def take_back(self, annotation: int) -> str:
        """Give the image of a deleted annotation the label that it would have without it."""
        with self._changing:
            return self._take_back(str(annotation))

    def _take_back(self, annotation: str) -> str:
        found = self._ledger.find(annotation)
        if found is None:
            return f"annotation {annotation} taught nothing that is known here"
        image, labels = found
        state, target = self._service.state, labels.without(annotation).label
        known = state.label_of.get(bytes.fromhex(image))
        what = f"the label of annotation {annotation} was changed since, and stays"
        if known is not None and str(known) == labels.label:
            if target is None or target not in state.classes:
                what = f"forgotten: {self._service.forget(bytes.fromhex(image), for_good=False).what}"
            else:
                what = self._service.correct(image, target).what
        self._ledger.remove(annotation)
        return what


def _names(annotation: AnnotationIn) -> list[str]:
    try:
        return sorted(set(chosen(annotation.result or ())))
    except (KeyError, TypeError, AttributeError):
        raise HyCalError(f"The result of annotation {annotation.id} cannot be read; expected choices.") from None


def _version(state: State) -> str:
    """Return what Label Studio calls the version of a model: the start of its hash."""
    return state.hash[:12]


def _backend(request: Request) -> LabelStudio:
    return request.app.state.label_studio


@router.get("/health", summary="Whether the back end runs")
async def backend_health(request: Request) -> BackendHealthOut:
    """As Label Studio expects it."""
    return BackendHealthOut(status="UP", model_class="hycal")


@router.post("/setup", summary="Connect a project")
async def setup(request: Request) -> SetupOut:
    """Check the labeling interface, and say the version of the model. The sent address and key are not used."""
    body = parse_json(await request.body(), SetupIn)
    await run_in_threadpool(read_interface, body.schema)
    return SetupOut(model_version=await run_in_threadpool(_backend(request).version))


@router.post("/predict", summary="Predict tasks")
async def predict(request: Request) -> PredictionsOut:
    """A list of predictions for each task: one, or none if its image cannot be used."""
    backend, body = _backend(request), parse_json(await request.body(), PredictIn)
    interface = await run_in_threadpool(read_interface, body.label_config)
    return await run_on(ANSWERING, backend.predict, await _received(backend, body.tasks, interface), interface)


@router.post("/webhook", summary="Learn annotations, or take them back")
async def webhook(request: Request) -> EventOut:
    """ANNOTATION_CREATED, ANNOTATIONS_CREATED, ANNOTATION_UPDATED and ANNOTATIONS_DELETED; other events do nothing."""
    backend, event = _backend(request), parse_json(await request.body(), EventIn)
    if event.action == "ANNOTATIONS_DELETED":
        deleted = event.annotations or ()
        return EventOut(done=[await run_in_threadpool(backend.take_back, entry.id) for entry in deleted], problems=[])
    if event.action not in ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"):
        return EventOut(done=[], problems=[])
    annotations, tasks = _listed(event.annotation), _listed(event.task)
    if event.project is None or len(annotations) != len(tasks):
        raise HyCalError(
            "The event has no project, or not one task for each annotation. Let the webhook send payloads."
        )
    interface = await run_in_threadpool(read_interface, event.project.label_config)
    images = await _received(backend, tasks, interface)
    done, problems = list[str](), list[HyCalError]()
    for annotation, image in zip(annotations, images, strict=True):
        try:
            done.append(await run_in_threadpool(backend.learn, annotation, image, interface))
        except HyCalError as error:  # the others are learned all the same
            problems.append(error)
    if problems and not done:
        raise problems[0]
    return EventOut(done=done, problems=[visible(str(error)) for error in problems])


async def _received(backend: LabelStudio, tasks: Sequence[TaskIn], interface: Interface) -> list[SentImage]:
    """Return the image of each task; between batches others have their turn."""
    found: list[SentImage] = []
    batches = backend.batches(tasks, interface)
    while received := await run_on(EMBEDDING, backend.receive_next, batches):
        found += received
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
