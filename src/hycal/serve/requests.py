"""What clients send, as the OpenAPI document describes it; `bodies` has the requests that may be large."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hycal.serve.bodies import MOST_IMAGES_AGAIN

ImageHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Content hash of an image, hexadecimal.")]
ModelHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Hash of a model, hexadecimal.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]


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
