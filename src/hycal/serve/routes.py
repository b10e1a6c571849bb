"""The API: each route asks the service and tells what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Query, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool

from hycal._version import __version__
from hycal.errors import HyCalError
from hycal.project import Receipt, find_class
from hycal.project.answering import answer as answers_of
from hycal.serve import shapes, telling
from hycal.serve.embeddings import NPY, rows_of
from hycal.serve.service import Look, Service, Stopwatch, Upload
from hycal.validation import Floats

Top = Annotated[int, Query(ge=1, le=50, description="Classes to tell for each image.")]
Why = Annotated[bool, Query(description="Add the evidence: shares of the score, nearest learned images.")]
Files = Annotated[list[UploadFile], File(description="Image files.")]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": shapes.Problem, "description": "The request makes no sense for this model."},
    401: {"model": shapes.Problem, "description": "The token is missing."},
    403: {"model": shapes.Problem, "description": "Asked from another web site, or under another name."},
    404: {"model": shapes.Problem, "description": "The image is not at hand; send it again."},
    413: {"model": shapes.Problem, "description": "Larger than the limits allow."},
    503: {"model": shapes.Problem, "description": "Another program is changing the model."},
    507: {"model": shapes.Problem, "description": "The disk is full, or the folder may not be written."},
}


def api(service: Service) -> APIRouter:
    """Return the routes of one service."""
    router = APIRouter(prefix="/api", responses=_REFUSALS)
    for group in (_reading, _answering, _changing):
        group(router, service)
    return router


def _reading(router: APIRouter, service: Service) -> None:
    @router.get("/health", summary="Whether the server is there")
    def health() -> shapes.Health:
        return shapes.Health(status="ok", version=__version__)

    @router.get("/info", summary="The model as a whole")
    def info() -> shapes.Info:
        return telling.info(service, service.state)

    @router.get("/classes", summary="Classes with their images")
    def classes() -> shapes.Classes:
        return telling.classes(service.state)

    @router.get("/examples", summary="The learned images of one class")
    def examples(label: Annotated[str, Query(max_length=200)]) -> shapes.Examples:
        state = service.state
        target = find_class(state, label)
        (found,) = target.images
        shelf = state.shelves[found]
        return shapes.Examples(label=target.name, examples=[telling.example(item) for item in shelf.examples])

    @router.get("/accuracy", summary="Leave-one-out accuracy, confusions, images that look mislabelled")
    def accuracy() -> shapes.Accuracy:
        state = service.state
        return telling.accuracy(state, service.advice(state))

    @router.get("/map", summary="The classes in two dimensions")
    def class_map() -> shapes.Map:
        return telling.class_map(service, service.state)

    @router.get("/history", summary="Accepted changes, newest first")
    def history() -> shapes.History:
        return shapes.History(entries=[telling.event(entry) for entry in reversed(service.state.history)])

    @router.get(
        "/thumbnails/{image}",
        summary="A small picture of an image",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}, "description": "A JPEG."}},
    )
    def thumbnail(image: str) -> Response:
        picture = service.image(image).thumbnail
        if not picture:
            return Response(status_code=404)
        return Response(
            picture, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=31536000, immutable"}
        )


def _answering(router: APIRouter, service: Service) -> None:
    def told(looks: Sequence[Look], top: int, why: bool, watch: Stopwatch) -> shapes.Answers:
        state = service.state
        usable = [look.example.row for look in looks if look.example is not None]
        with watch.on("answering"):
            found = iter(answers_of(state, usable, top=top, why=why))
        told = [telling.answer(state, look, () if look.example is None else next(found)) for look in looks]
        return shapes.Answers(model=state.hash, answers=told, milliseconds=watch.spent)

    @router.post("/classify", summary="Classify images")
    def classify(files: Files, top: Top = 5, why: Why = False) -> shapes.Answers:
        watch = Stopwatch()
        with watch.on("embedding"):
            looks = service.look(_uploads(files, service))
        return told(looks, top, why, watch)

    @router.post("/answers", summary="Classify images that were sent before")
    def answers(asked: shapes.Images, top: Top = 5, why: Why = False) -> shapes.Answers:
        examples = [service.image(image) for image in asked.images]
        return told([Look(example.name, example) for example in examples], top, why, Stopwatch())

    @router.post(
        "/classify-embeddings",
        summary="Classify embeddings",
        response_model=shapes.Answers,
        description='JSON `{"rows": [[...], ...]}`, or the bytes of a float32 .npy file of shape (n, d).',
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": shapes.Rows.model_json_schema()},
                    NPY: {"schema": {"type": "string", "format": "binary"}},
                },
            }
        },
    )
    async def classify_embeddings(request: Request, top: Top = 5) -> Response:
        body = await request.body()
        kind = request.headers.get("content-type", "")
        told = await run_in_threadpool(_embeddings_told, service, body, kind, top)
        return Response(told, media_type="application/json")


def _embeddings_told(service: Service, body: bytes, kind: str, top: int) -> bytes:
    rows: Floats = rows_of(body, kind, most=service.limits.rows)
    state, watch = service.state, Stopwatch()
    with watch.on("answering"):
        found = answers_of(state, rows, top=top)
    return telling.answers_to_embeddings(state, found, watch.spent)


def _changing(router: APIRouter, service: Service) -> None:
    def changed(change: Callable[[], Receipt]) -> shapes.Changed:
        watch = Stopwatch()
        with watch.on("changing"):
            receipt = change()
        return telling.changed(receipt, watch.spent)

    @router.post("/images", summary="Send images to learn them afterwards; nothing is learned yet")
    def images(files: Files) -> shapes.SeenImages:
        watch = Stopwatch()
        with watch.on("embedding"):
            looks = service.look(_uploads(files, service))
        state = service.state
        return shapes.SeenImages(images=[telling.seen(state, look) for look in looks], milliseconds=watch.spent)

    @router.post("/learn", summary="Learn images that were sent before, in one step")
    def learn(asked: shapes.Learning) -> shapes.Changed:
        return changed(lambda: service.learn(asked.labels))

    @router.post("/correct", summary="Say what an image shows")
    def correct(asked: shapes.Correcting, top: Top = 5, why: Why = False) -> shapes.Corrected:
        receipt = changed(lambda: service.correct(asked.image, asked.label))
        state, example = service.state, service.image(asked.image)
        watch = Stopwatch(dict(receipt.milliseconds))
        with watch.on("answering"):
            (found,) = answers_of(state, [example.row], top=top, why=why)
        told = telling.answer(state, Look(example.name, example), found)
        return shapes.Corrected(**{**receipt.model_dump(), "milliseconds": watch.spent}, answer=told)

    @router.post("/rename", summary="Rename a class or a domain")
    def rename(asked: shapes.Renaming) -> shapes.Changed:
        return changed(lambda: service.rename(asked.old, asked.new))

    @router.post("/forget", summary="Forget a class, a domain or an image, exactly")
    def forget(asked: shapes.Forgetting) -> shapes.Changed:
        target = asked.name if asked.image is None else bytes.fromhex(asked.image)
        assert target is not None
        return changed(lambda: service.project.forget(target, for_good=asked.for_good))

    @router.post("/undo", summary="Take the last change back")
    def undo() -> shapes.Changed:
        return changed(service.project.undo)


def _uploads(files: Sequence[UploadFile], service: Service) -> list[Upload]:
    most = service.limits.images
    if len(files) > most:
        raise HyCalError(f"{len(files)} images in one request; the limit is {most}. Send them in several.")
    return [Upload(file.filename or "image", file.file.read()) for file in files]
