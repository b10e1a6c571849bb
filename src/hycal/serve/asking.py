"""What may be asked over the wire, as the OpenAPI document describes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Identity = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Content hash of an image, hexadecimal.")]
Model = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Hash of a model, hexadecimal.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Asked(BaseModel):
    """A request: nothing that is not described here."""

    model_config = ConfigDict(extra="forbid")


class Rows(Asked):
    """Embeddings to classify."""

    rows: Annotated[list[list[float]], Field(min_length=1)]


class Images(Asked):
    """Images that were sent before."""

    images: Annotated[list[Identity], Field(max_length=1000)]


class Correcting(Asked):
    """What an image shows."""

    image: Identity
    label: Name


class Learning(Asked):
    """Images that were sent before, with the label of each."""

    labels: Annotated[dict[Identity, Name], Field(min_length=1)]


class Renaming(Asked):
    """A class or a domain, and its new name."""

    old: Name
    new: Name


class Undoing(Asked):
    """The model to take the last change back from, as the receipt of that change has it in `after`; by default any."""

    only_if: Model | None = None


class Forgetting(Asked):
    """A class or a domain by name, or one image by its content hash; for good, or to be undone."""

    name: Name | None = None
    image: Identity | None = None
    for_good: bool = False

    @model_validator(mode="after")
    def _one(self) -> Forgetting:
        if (self.name is None) == (self.image is None):
            raise ValueError("say either the name of a class or domain, or one image")
        return self
