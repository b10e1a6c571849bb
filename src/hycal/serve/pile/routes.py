"""The routes of the pile: the queue, groups, pictures, sorting and the download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from hycal.project import Example
from hycal.serve.batching import ANSWERING, BULK, run_on
from hycal.serve.pile import schemas
from hycal.serve.pile.desk import MAY_BE_UNKNOWN, PileDesk
from hycal.serve.requests import PREFIX
from hycal.serve.routes import ERRORS, Files, TheService, read_uploads
from hycal.serve.serializers import describe_answer
from hycal.serve.service import SentImage, Service

CANDIDATES = 9  # one for each key
_PREVIEWS = 2, "hycal-previews"


async def _desk(request: Request) -> PileDesk:
    return request.app.state.desk


TheDesk = Annotated[PileDesk, Depends(_desk)]
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="Content hash of an image, hexadecimal.")]
Error = Annotated[float, Query(gt=0, lt=1, description="Share of wrong images to expect in class folders.")]
MayBeUnknown = Annotated[float, Query(ge=0, lt=1, description="Share of known images in unknown/; 0: none goes there.")]

pile_router = APIRouter(prefix=f"{PREFIX}/pile", responses=ERRORS)


@pile_router.get("", summary="How far the pile is")
def pile(service: TheService, desk: TheDesk) -> schemas.PileOut:
    """Files, embedded and labelled images, and the accuracy to expect of the rest."""
    return desk.status(service.state)


@pile_router.post("/images", summary="Add images to a pile that is dropped")
async def images(service: TheService, desk: TheDesk, files: Files) -> schemas.PileOut:
    """They are embedded in the background. A pile that is a folder takes none."""

    def add() -> schemas.PileOut:
        desk.pile.add([(upload.name, upload.content) for upload in read_uploads(service, files)])
        return desk.status(service.state)

    return await run_in_threadpool(add)


@pile_router.get("/skipped", summary="Files of the pile that cannot be used")
def skipped(desk: TheDesk) -> schemas.SkippedFilesOut:
    """The last thousand, with the reason."""
    return schemas.SkippedFilesOut.model_validate({"files": desk.pile.skipped})


@pile_router.post("/next", summary="Images to label next")
async def following(service: TheService, desk: TheDesk, body: schemas.NextIn) -> schemas.NextOut:
    """The images that a person has in hand, lent for five minutes; nobody else gets them meanwhile."""
    state = service.state
    found = await run_in_threadpool(desk.take, state, body.person, body.most, body.first)
    answers = await run_on(ANSWERING, _answers, service, found)
    status = await run_in_threadpool(desk.status, service.state)
    return schemas.NextOut.model_validate({**answers, "pile": status})


def _answers(service: Service, examples: Sequence[Example]) -> dict[str, Any]:
    state, rows = service.state, [example.row for example in examples]
    candidates = service.answers(state, rows, top=CANDIDATES) if rows and state.classes else [()] * len(rows)
    answered = zip(examples, candidates, service.unknown(state, rows, MAY_BE_UNKNOWN), strict=True)
    shown = [describe_answer(state, SentImage(one.name, one), found, strange) for one, found, strange in answered]
    return {"model": state.hash, "images": shown}


@pile_router.post("/later", summary="Put an image off")
def later(service: TheService, desk: TheDesk, body: schemas.LaterIn) -> schemas.PileOut:
    """Others may be asked about it at once; this person is asked again at the end."""
    desk.queue.leases.put_off(body.person, bytes.fromhex(body.image))
    return desk.status(service.state)


@pile_router.get(
    "/pictures/{image}",
    summary="An image of the pile for the screen",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}, "description": "A JPEG of at most 720 pixels."}},
)
async def picture(desk: TheDesk, image: Hash) -> Response:
    """Decoded in a worker, and sent as a new JPEG whatever the file is."""
    return Response(await run_on(_PREVIEWS, desk.picture, image), media_type="image/jpeg")


@pile_router.get("/groups", summary="Groups among the images that fit no class")
async def groups(service: TheService, desk: TheDesk) -> schemas.GroupsOut:
    """Name one by sending its images with a label to `learn`."""
    state = service.state
    found = await run_on(BULK, desk.groups, state)
    shown = [{"images": keys, "similarity": group.similarity} for group, keys in found]
    return schemas.GroupsOut.model_validate({"model": state.hash, "groups": shown})


@pile_router.post("/sort", summary="Sort a folder into class folders beside it")
async def sort(service: TheService, desk: TheDesk, body: schemas.SortIn) -> schemas.SortedOut:
    """Copies, never moves; `unsort` and `hycal unsort` take it back."""
    return await run_on(BULK, desk.sorter.sort, service.state, error=body.error, unknown=body.unknown)


@pile_router.post("/unsort", summary="Remove the sorted copies again")
async def unsort(desk: TheDesk) -> schemas.UnsortedOut:
    """A copy that was changed stays, and so does one whose original is gone."""
    return schemas.UnsortedOut(folder=await run_on(BULK, desk.sorter.unsort))


@pile_router.get(
    "/download",
    summary="The sorted pile as a ZIP file",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "Class folders, unknown, unsure, a table."}},
)
async def download(
    service: TheService, desk: TheDesk, error: Error = 0.05, unknown: MayBeUnknown = MAY_BE_UNKNOWN
) -> Response:
    """Made while it is sent: one image at a time is in memory."""
    plan = await run_on(BULK, desk.sorter.plan, service.state, error=error, unknown=unknown or None)
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in desk.pile.name or "pile")
    headers = {"Content-Disposition": f'attachment; filename="{name}-sorted.zip"'}
    return StreamingResponse(desk.sorter.zipped(plan), media_type="application/zip", headers=headers)


@pile_router.post("/clear", summary="Remove all images that were dropped")
def clear(service: TheService, desk: TheDesk) -> schemas.PileOut:
    """What was learned stays learned. A pile that is a folder stays."""
    desk.clear()
    return desk.status(service.state)
