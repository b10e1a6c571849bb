"""The API: each route calls the service, and returns a schema. CONTRIBUTING.md shows how to add one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Query, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool
from pydantic.json_schema import SkipJsonSchema

from hycal._version import __version__
from hycal.embedding import ImageBytes
from hycal.errors import HyCalError
from hycal.project import Receipt, find_class
from hycal.project.answers import ERROR
from hycal.serve import requests, schemas, serializers
from hycal.serve.batching import ANSWERING, EMBEDDING, Stopwatch, run_on
from hycal.serve.embeddings import TOP
from hycal.serve.requests import EMBEDDINGS, NPY, PREFIX, EmbeddingsIn, FoldersIn, LearnIn, json_schema, parse_json
from hycal.serve.service import SentImage, Service


async def _service(request: Request) -> Service:
    return request.app.state.service


TheService = Annotated[Service, Depends(_service)]
Top = Annotated[int, Query(ge=1, le=50, description="Classes to name for each image.")]
Why = Annotated[bool, Query(description="Add the evidence: shares of the score, nearest learned images.")]
Unknown = Annotated[
    float,
    Query(
        ge=0,
        lt=1,
        description="Say which fit no learned class, where this share of learned images may be wrong; 0 does not say.",
    ),
]
Files = Annotated[list[UploadFile], File(description="Image files.")]

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": schemas.ProblemOut, "description": "The request makes no sense for this model."},
    401: {"model": schemas.ProblemOut, "description": "The token is missing."},
    403: {"model": schemas.ProblemOut, "description": "Sent by another web site, or under another name."},
    404: {"model": schemas.ProblemOut, "description": "The server does not have the image; send it again."},
    409: {"model": schemas.ProblemOut, "description": "The model is not the one that the change was meant for."},
    413: {"model": schemas.ProblemOut, "description": "Larger than the limits allow."},
    503: {
        "model": schemas.ProblemOut,
        "description": "Another program is changing the model, or too many requests came at once.",
    },
    507: {"model": schemas.ProblemOut, "description": "The disk is full, or the folder may not be written."},
}


def _body(kinds: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the description of a body that the route parses itself: a schema for each media type."""
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind, schema in kinds.items()}}}


router = APIRouter(prefix=PREFIX, responses=ERRORS)


@router.get("/health", summary="Whether the server is running")
async def health() -> schemas.HealthOut:
    """The only route that needs no token. It waits for no thread: all of them may be busy."""
    return schemas.HealthOut(status="ok", version=__version__)


@router.get("/info", summary="The model as a whole")
def info(service: TheService) -> schemas.InfoOut:
    """Name, hash, size, what the next undo takes back, and the limits of the server."""
    return serializers.describe_model(service, service.state)


@router.get("/classes", summary="Classes with their images")
def classes(service: TheService) -> schemas.ClassesOut:
    """All classes, each with the number of its images and the hashes of the first few."""
    state = service.state
    return schemas.ClassesOut(model=state.hash, classes=serializers.describe_classes(state, state.labels))


@router.get("/examples", summary="The learned images of one class")
def examples(service: TheService, label: Annotated[str, Query(max_length=200)]) -> schemas.ExamplesOut:
    """All learned images of the class `label`."""
    state = service.state
    target = find_class(state, label)
    (found,) = target.images
    return schemas.ExamplesOut.model_validate({"label": target.name, "examples": state.classes[found].examples})


@router.get("/accuracy", summary="Accuracy on learned images, near-duplicates, images that look mislabelled")
def accuracy(service: TheService) -> schemas.AccuracyOut:
    """Each learned image is judged by a model without it. Computed once for each model."""
    state = service.state
    advice = service.advice(state)
    if advice is None:
        nothing: dict[str, list[Any]] = {"classes": [], "suspects": [], "duplicates": [], "hints": []}
        return schemas.AccuracyOut(model=state.hash, overall=None, estimate=None, **nothing)
    judged = {} if advice.overall.total else {"overall": None, "estimate": None}
    return schemas.AccuracyOut.model_validate({**vars(advice), "model": state.hash, **judged})


@router.get("/map", summary="The classes in two dimensions")
def class_map(service: TheService) -> schemas.MapOut:
    """The class means in the plane where they differ most."""
    state = service.state
    return serializers.describe_map(state, service.map(state))


@router.get("/history", summary="Accepted changes, newest first")
def history(service: TheService) -> schemas.HistoryOut:
    """Each change has the hash of the model before and after."""
    return schemas.HistoryOut.model_validate({"entries": service.state.history[::-1]})


@router.get(
    "/thumbnails/{image}",
    summary="A small picture of an image",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}, "description": "A JPEG."}},
)
def thumbnail(service: TheService, image: str) -> Response:
    """The thumbnail of an image that was learned, or sent lately, by its content hash."""
    picture = service.image(image).thumbnail
    if not picture:
        return Response(status_code=404)
    return Response(picture, media_type="image/jpeg")  # `no-store`, as every answer: it may be forgotten


@router.post("/classify", summary="Classify images")
async def classify(
    service: TheService, files: Files, top: Top = TOP, why: Why = False, unknown: Unknown = ERROR
) -> schemas.AnswersOut:
    """An image that cannot be used has a problem instead of candidates."""
    images, watch = await run_on(EMBEDDING, _receive, service, files)
    return await run_on(ANSWERING, _answer, service, images, top, why, unknown, watch)


@router.post("/answers", summary="Classify images that were sent before")
async def answers(
    service: TheService, body: requests.AnswersIn, top: Top = TOP, why: Why = False, unknown: Unknown = ERROR
) -> schemas.AnswersOut:
    """An image that the server does not have any more has a problem instead of candidates."""
    return await run_on(ANSWERING, _answer_again, service, body.images, top, why, unknown)


@router.post(
    EMBEDDINGS,
    summary="Classify embeddings",
    response_model=schemas.AnswersOut,
    openapi_extra=_body({"application/json": json_schema(EmbeddingsIn), NPY: {"type": "string", "format": "binary"}}),
)
async def classify_embeddings(
    request: Request,
    top: Top = TOP,
    unknown: Unknown = 0.0,
    view: Annotated[str, Query(max_length=200, description="The encoder of the rows, of a model with views.")] = "",
) -> Response:
    """JSON `{"rows": [[...], ...]}`, or the bytes of a float32 .npy file of shape (n, d).

    A model with views takes rows of all views side by side, zeros for a missing one, or of the one that `view` names.
    """
    return await request.app.state.embeddings(request, top, unknown, view)


@router.post("/images", summary="Send images to learn them afterwards; nothing is learned yet")
async def images(service: TheService, files: Files) -> schemas.ImagesOut:
    """Returns the content hash of each image, which `learn`, `correct` and `answers` take."""
    return await run_on(EMBEDDING, _receive_only, service, files)


@router.post(
    "/folders",
    summary="Domain, split and class of the files in dropped folders",
    openapi_extra=_body({"application/json": json_schema(FoldersIn)}),
)
async def folders(request: Request) -> schemas.FoldersOut:
    """The reading of `hycal learn`. Nothing is learned."""
    body = await request.body()
    return await run_in_threadpool(serializers.describe_folders, parse_json(body, FoldersIn).folders)


@router.post(
    "/learn",
    summary="Learn images that were sent before, in one step",
    openapi_extra=_body({"application/json": json_schema(LearnIn)}),
)
async def learn(service: TheService, request: Request) -> schemas.ChangeOut:
    """All images are learned, or none."""
    body = await request.body()
    return await run_in_threadpool(_change, service, lambda: service.learn(parse_json(body, LearnIn).labels))


@router.post("/correct", summary="Say what an image shows")
async def correct(
    service: TheService, body: requests.CorrectIn, top: Top = TOP, why: Why = False
) -> schemas.CorrectionOut:
    """The image is learned as `label`, and forgotten as anything else."""
    changed = await run_in_threadpool(_change, service, lambda: service.correct(body.image, body.label))
    return await run_on(ANSWERING, _answer_corrected, service, changed, body.image, top, why)


@router.post("/rename", summary="Rename a class or a domain")
def rename(service: TheService, body: requests.RenameIn) -> schemas.ChangeOut:
    """Only the name changes, and the scores stay, unless classes come to another domain: `what` says so then."""
    return _change(service, lambda: service.project.rename(body.old, body.new))


@router.post("/forget", summary="Forget a class, a domain or an image, exactly")
def forget(service: TheService, body: requests.ForgetIn) -> schemas.ChangeOut:
    """The model is then the one that never saw the images; a sealed one keeps their part of what classes share."""
    target = body.name if body.image is None else bytes.fromhex(body.image)
    assert target is not None
    return _change(service, lambda: service.forget(target, for_good=body.for_good))


async def _only_if(request: Request, body: requests.UndoIn | SkipJsonSchema[None] = None) -> str | None:
    """Return the hash of the model that a client means. The framework reads JSON `null` as no body; it is refused."""
    if body is None and await request.body():
        raise HyCalError('The body is null; expected JSON {"only_if": ...}, {} or no body. Nothing was changed.')
    return None if body is None else body.only_if


OnlyIf = Annotated[str | None, Depends(_only_if)]


@router.post("/undo", summary="Take the last change back")
def undo(service: TheService, only_if: OnlyIf) -> schemas.ChangeOut:
    """With `only_if`, only if the model is still the one of that hash."""
    return _change(service, lambda: service.undo(only_if=only_if))


@router.post("/redo", summary="Make the change again that the last undo took back")
def redo(service: TheService, only_if: OnlyIf) -> schemas.ChangeOut:
    """With `only_if`, only if the model is still the one of that hash."""
    return _change(service, lambda: service.redo(only_if=only_if))


@router.get("/choices", summary="The methods and encoders that there are")
def choices(service: TheService) -> schemas.ChoicesOut:
    """Which the model may have, and how to get the others."""
    return serializers.describe_choices(service, service.state)


@router.get("/trial", summary="Accuracy of a method on the learned images")
def trial(service: TheService, method: Annotated[str, Query(max_length=200)]) -> schemas.TrialOut:
    """Each learned image is judged by a model of that method without it. One method at a time is tried."""
    state = service.state
    return serializers.describe_trial(state, service.try_method(state, method))


@router.post("/method", summary="Change the method of the model")
def method(service: TheService, body: requests.MethodIn) -> schemas.ChangeOut:
    """The same images under another method: nothing is embedded again, and undo takes it back."""
    return _change(service, lambda: service.change_method(body.method))


@router.post("/encoder", summary="Change the encoder of a model that has learned nothing yet")
def encoder(service: TheService, body: requests.EncoderIn) -> schemas.ChangeOut:
    """An encoder whose weights are installed. A model that has learned something keeps its own."""
    return _change(service, lambda: service.change_encoder(body.encoder))


def _receive(service: Service, files: Sequence[UploadFile]) -> tuple[list[SentImage], Stopwatch]:
    uploads, watch = read_uploads(service, files), Stopwatch()
    with watch.on("embedding"):
        return service.receive(uploads), watch


def read_uploads(service: Service, files: Sequence[UploadFile]) -> list[ImageBytes]:
    """Return the image files of a request, which may not be too many."""
    most = service.limits.images
    if len(files) > most:
        raise HyCalError(f"{len(files)} images in one request; the limit is {most}. Send them in several.")
    return [ImageBytes(file.filename or "image", file.file.read()) for file in files]


def _receive_only(service: Service, files: Sequence[UploadFile]) -> schemas.ImagesOut:
    sent, watch = _receive(service, files)
    state = service.state
    return schemas.ImagesOut(
        images=[serializers.describe_image(state, image) for image in sent], milliseconds=watch.spent
    )


def _answer(
    service: Service, images: Sequence[SentImage], top: int, why: bool, error: float, watch: Stopwatch
) -> schemas.AnswersOut:
    state = service.state
    usable = [image.example.row for image in images if image.example is not None]
    with watch.on("answering"):
        found = iter(service.answers(state, usable, top=top, why=why))
        unknown = iter(service.unknown(state, usable, error))
    answers = [
        serializers.describe_answer(state, image, (), None)
        if image.example is None
        else serializers.describe_answer(state, image, next(found), next(unknown))
        for image in images
    ]
    return schemas.AnswersOut(model=state.hash, answers=answers, milliseconds=watch.spent)


def _answer_again(service: Service, images: Sequence[str], top: int, why: bool, error: float) -> schemas.AnswersOut:
    return _answer(service, [service.sent_image(image) for image in images], top, why, error, Stopwatch())


def _answer_corrected(
    service: Service, changed: schemas.ChangeOut, image: str, top: int, why: bool
) -> schemas.CorrectionOut:
    state, example = service.state, service.image(image)
    watch = Stopwatch(dict(changed.milliseconds))
    with watch.on("answering"):
        found = service.answer_quickly(state, example, top=top, why=why)
    answer = serializers.describe_answer(state, SentImage(example.name, example), found, None)
    return schemas.CorrectionOut(**{**vars(changed), "milliseconds": watch.spent}, answer=answer)


def _change(service: Service, work: Callable[[], Receipt]) -> schemas.ChangeOut:
    watch = Stopwatch()
    with watch.on("changing"):
        receipt = work()
    return serializers.describe_change(service, service.state, receipt, watch.spent)
