"""What clients send: requests as the OpenAPI document describes them, and how large each may be.

Most bodies are a few names, and the framework parses them. Those that may hold megabytes are parsed by `parse_json`. It
stops at the first fault; the framework would collect every fault of a hostile body, for minutes and in gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hycal.errors import HyCalError
from hycal.project.labels import LONGEST_NAME
from hycal.serve.service import Limits

PREFIX, EMBEDDINGS, LABEL_STUDIO = "/api", "/classify-embeddings", "/label-studio"
NPY = "application/octet-stream"
SMALL = 8 * 2**10  # bytes of a body on a route that is not named below
MOST_IMAGES_AGAIN = 1000
_HEADER = 16 * 2**10  # bytes beside the numbers: the header of an .npy file, the brackets of JSON
_NUMBER_BYTES = 26  # of JSON: a double with its sign, exponent, comma and space
_HASH_BYTES = 72  # of JSON: an image hash with its quotes, comma and space
_LABEL_BYTES = 512  # of JSON: an image hash and its label, on average; a label has 20 characters, seldom 200
_TASK_BYTES = 2560  # of JSON: a task of Label Studio with its annotations and predictions, on average
LONGEST_PATH = 4096

T = TypeVar("T")
ImageHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Content hash of an image, hexadecimal.")]
ModelHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Hash of a model, hexadecimal.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class EmbeddingsIn(msgspec.Struct, forbid_unknown_fields=True):
    """Embeddings to classify."""

    rows: Annotated[list[list[float]], msgspec.Meta(min_length=1)]


class LearnIn(msgspec.Struct, forbid_unknown_fields=True):
    """Images that were sent before, with the label of each."""

    labels: Annotated[
        dict[
            Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$", max_length=64)],
            Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)],
        ],
        msgspec.Meta(min_length=1),
    ]


class FoldersIn(msgspec.Struct, forbid_unknown_fields=True):
    """Folders with the number of files in each; the first name of a path is the folder that was dropped."""

    folders: Annotated[dict[Annotated[str, msgspec.Meta(max_length=LONGEST_PATH)], int], msgspec.Meta(min_length=1)]


@lru_cache(maxsize=1)  # every request asks for the same
def body_limits(limits: Limits, width: int) -> Callable[[str, str], int]:
    """Return the function that gives the largest body for a path and a media type; embeddings have `width` numbers."""
    numbers = limits.rows * width
    most = {
        "/classify": limits.request_bytes,
        "/images": limits.request_bytes,
        "/pile/images": limits.request_bytes,
        "/answers": _HEADER + MOST_IMAGES_AGAIN * _HASH_BYTES,
        "/learn": _HEADER + limits.tray * _LABEL_BYTES,
        "/folders": _HEADER + limits.tray * _LABEL_BYTES,
        **{f"{LABEL_STUDIO}/{name}": _HEADER + limits.rows * _TASK_BYTES for name in ("predict", "setup", "webhook")},
        EMBEDDINGS: _HEADER + numbers * _NUMBER_BYTES,
    }
    by_path = {PREFIX + path: min(size, limits.request_bytes) for path, size in most.items()}
    binary = _HEADER + numbers * 4

    def most_bytes(path: str, kind: str) -> int:
        size = by_path.get(path, SMALL)
        return min(size, binary) if path == PREFIX + EMBEDDINGS and is_npy(kind) else size

    return most_bytes


def is_npy(kind: str) -> bool:
    """Whether a media type says that the body is an .npy file."""
    return kind.partition(";")[0].strip() == NPY


def parse_json(body: bytes, kind: type[T]) -> T:
    """Return the body as an object of `kind`; raise a HyCalError at the first fault."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        fields = ", ".join(f'"{name}": ...' for name in kind.__struct_fields__)  # type: ignore[attr-defined]
        raise HyCalError(f"Expected JSON {{{fields}}}: {_first_line(error)}") from None


def json_schema(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a body, for the OpenAPI document."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return components[kind.__name__]


def _first_line(error: Exception) -> str:
    text = str(error).partition("\n")[0][:200]
    return text if text.endswith(".") else f"{text}."


class RequestBody(BaseModel):
    """The body of a request. A field that is not described is an error."""

    model_config = ConfigDict(extra="forbid")


class AnswersIn(RequestBody):
    """Images that were sent before."""

    images: Annotated[list[ImageHash], Field(max_length=MOST_IMAGES_AGAIN)]


class CorrectIn(RequestBody):
    """An image, and the class that it shows."""

    image: ImageHash
    label: Name


class RenameIn(RequestBody):
    """A class or a domain, and its new name."""

    old: Name
    new: Name


class UndoIn(RequestBody):
    """The model whose last change is undone, as its receipt has it in `after`; of a redo, the undo. By default any."""

    only_if: ModelHash | None = None


class MethodIn(RequestBody):
    """The method that the model will have."""

    method: Name


class EncoderIn(RequestBody):
    """The encoder that a model will have that has learned nothing yet."""

    encoder: Name


class ForgetIn(RequestBody):
    """A class or a domain by name, or one image by its content hash. `for_good` leaves nothing to undo."""

    name: Name | None = None
    image: ImageHash | None = None
    for_good: bool = False

    @model_validator(mode="after")
    def _check_one_target(self) -> ForgetIn:
        if (self.name is None) == (self.image is None):
            raise ValueError("say either the name of a class or domain, or one image")
        return self
