"""The API: each route asks the service and tells what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Query, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool

from hycal._version import __version__
from hycal.errors import HyCalError
from hycal.project import Receipt, find_class
from hycal.serve import asking, schemas, serializers
from hycal.serve.embeddings import EMBEDDINGS, NPY, PREFIX, TOP, AnswersToEmbeddings
from hycal.serve.service import Look, Service, Stopwatch, Upload
from hycal.serve.threads import ANSWERING, LOOKING, on

Top = Annotated[int, Query(ge=1, le=50, description="Classes to tell for each image.")]
Why = Annotated[bool, Query(description="Add the evidence: shares of the score, nearest learned images.")]
Unknown = Annotated[
    float | None,
    Query(gt=0, lt=1, description="Tell which fit no learned class, where this share of learned images may be wrong."),
]
Files = Annotated[list[UploadFile], File(description="Image files.")]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": schemas.Problem, "description": "The request makes no sense for this model."},
    401: {"model": schemas.Problem, "description": "The token is missing."},
    403: {"model": schemas.Problem, "description": "Asked from another web site, or under another name."},
    404: {"model": schemas.Problem, "description": "The image is not at hand; send it again."},
    409: {"model": schemas.Problem, "description": "The model is not the one that the change was meant for."},
    413: {"model": schemas.Problem, "description": "Larger than the limits allow."},
    503: {"model": schemas.Problem, "description": "Another program is changing the model, or too many ask at once."},
    507: {"model": schemas.Problem, "description": "The disk is full, or the folder may not be written."},
}


def api(service: Service, embeddings: AnswersToEmbeddings) -> APIRouter:
    """Return the routes of one service."""
    router = APIRouter(prefix=PREFIX, responses=_REFUSALS)
    _reading(router, service)
    _answering(router, service, embeddings)
    _changing(router, service)
    return router


def _reading(router: APIRouter, service: Service) -> None:
    @router.get("/health", summary="Whether the server is there")
    def health() -> schemas.Health:
        return schemas.Health(status="ok", version=__version__)

    @router.get("/info", summary="The model as a whole")
    def info() -> schemas.Info:
        return serializers.info(service, service.state)

    @router.get("/classes", summary="Classes with their images")
    def classes() -> schemas.Classes:
        return serializers.classes(service.state)

    @router.get("/examples", summary="The learned images of one class")
    def examples(label: Annotated[str, Query(max_length=200)]) -> schemas.Examples:
        state = service.state
        target = find_class(state, label)
        (found,) = target.images
        shelf = state.shelves[found]
        return schemas.Examples(label=target.name, examples=[serializers.example(item) for item in shelf.examples])

    @router.get("/accuracy", summary="Leave-one-out accuracy, confusions, images that look mislabelled")
    def accuracy() -> schemas.Accuracy:
        state = service.state
        return serializers.accuracy(state, service.advice(state))

    @router.get("/map", summary="The classes in two dimensions")
    def class_map() -> schemas.Map:
        return serializers.class_map(service, service.state)

    @router.get("/history", summary="Accepted changes, newest first")
    def history() -> schemas.History:
        return schemas.History(entries=[serializers.event(entry) for entry in reversed(service.state.history)])

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


def _answering(router: APIRouter, service: Service, embeddings: AnswersToEmbeddings) -> None:
    def told(looks: Sequence[Look], top: int, why: bool, error: float | None, watch: Stopwatch) -> schemas.Answers:
        state = service.state
        usable = [look.example.row for look in looks if look.example is not None]
        with watch.on("answering"):
            found = iter(service.answers(state, usable, top=top, why=why))
            unknown = iter(service.unknown(state, usable, error))
        told = [
            serializers.answer(state, look, (), None)
            if look.example is None
            else serializers.answer(state, look, next(found), next(unknown))
            for look in looks
        ]
        return schemas.Answers(model=state.hash, answers=told, milliseconds=watch.spent)

    def again(images: Sequence[str], top: int, why: bool, error: float | None) -> schemas.Answers:
        return told([service.look_again(image) for image in images], top, why, error, Stopwatch())

    @router.post("/classify", summary="Classify images")
    async def classify(files: Files, top: Top = TOP, why: Why = False, unknown: Unknown = None) -> schemas.Answers:
        looks, watch = await on(LOOKING, _looked, service, files)
        return await on(ANSWERING, told, looks, top, why, unknown, watch)

    @router.post("/answers", summary="Classify images that were sent before")
    async def answers(
        asked: asking.Images, top: Top = TOP, why: Why = False, unknown: Unknown = None
    ) -> schemas.Answers:
        return await on(ANSWERING, again, asked.images, top, why, unknown)

    @router.post(
        EMBEDDINGS,
        summary="Classify embeddings",
        response_model=schemas.Answers,
        description='JSON `{"rows": [[...], ...]}`, or the bytes of a float32 .npy file of shape (n, d).',
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": asking.Rows.model_json_schema()},
                    NPY: {"schema": {"type": "string", "format": "binary"}},
                },
            }
        },
    )
    async def classify_embeddings(request: Request, top: Top = TOP, unknown: Unknown = None) -> Response:
        return await embeddings(request, top, unknown)


def _looked(service: Service, files: Sequence[UploadFile]) -> tuple[list[Look], Stopwatch]:
    watch = Stopwatch()
    with watch.on("embedding"):
        return service.look(_uploads(files, service)), watch


def _changing(router: APIRouter, service: Service) -> None:
    def changed(change: Callable[[], Receipt]) -> schemas.Changed:
        watch = Stopwatch()
        with watch.on("changing"):
            receipt = change()
        return serializers.changed(service, service.state, receipt, watch.spent)

    def corrected(receipt: schemas.Changed, image: str, top: int, why: bool) -> schemas.Corrected:
        state, example = service.state, service.image(image)
        watch = Stopwatch(dict(receipt.milliseconds))
        with watch.on("answering"):
            found = service.answer_at_once(state, example, top=top, why=why)
        told = serializers.answer(state, Look(example.name, example), found, None)
        return schemas.Corrected(**{**vars(receipt), "milliseconds": watch.spent}, answer=told)

    def seen(files: Sequence[UploadFile]) -> schemas.SeenImages:
        looks, watch = _looked(service, files)
        state = service.state
        return schemas.SeenImages(images=[serializers.seen(state, look) for look in looks], milliseconds=watch.spent)

    @router.post("/images", summary="Send images to learn them afterwards; nothing is learned yet")
    async def images(files: Files) -> schemas.SeenImages:
        return await on(LOOKING, seen, files)

    @router.post("/learn", summary="Learn images that were sent before, in one step")
    def learn(asked: asking.Learning) -> schemas.Changed:
        return changed(lambda: service.learn(asked.labels))

    @router.post("/correct", summary="Say what an image shows")
    async def correct(asked: asking.Correcting, top: Top = TOP, why: Why = False) -> schemas.Corrected:
        receipt = await run_in_threadpool(changed, lambda: service.correct(asked.image, asked.label))
        return await on(ANSWERING, corrected, receipt, asked.image, top, why)

    @router.post("/rename", summary="Rename a class or a domain")
    def rename(asked: asking.Renaming) -> schemas.Changed:
        return changed(lambda: service.rename(asked.old, asked.new))

    @router.post("/forget", summary="Forget a class, a domain or an image, exactly")
    def forget(asked: asking.Forgetting) -> schemas.Changed:
        target = asked.name if asked.image is None else bytes.fromhex(asked.image)
        assert target is not None
        return changed(lambda: service.forget(target, for_good=asked.for_good))

    @router.post("/undo", summary="Take the last change back")
    def undo(asked: asking.Undoing | None = None) -> schemas.Changed:
        only_if = None if asked is None else asked.only_if
        return changed(lambda: service.project.undo(only_if=only_if))


def _uploads(files: Sequence[UploadFile], service: Service) -> list[Upload]:
    most = service.limits.images
    if len(files) > most:
        raise HyCalError(f"{len(files)} images in one request; the limit is {most}. Send them in several.")
    return [Upload(file.filename or "image", file.file.read()) for file in files]
