"""The status of each encoder on this machine: which files are there, and whether it works."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace

from hycal.encoders.catalog import Backend, EncoderSpec, find_encoder
from hycal.encoders.files import locate, missing_message
from hycal.encoders.golden import check_golden, has_golden
from hycal.encoders.loader import default_backend, load_tower
from hycal.errors import HyCalError

_EXTRAS = {
    "clip": ("onnx", "tokenizers", "huggingface_hub"),
    "openvino": ("openvino",),
    "torch": ("torch", "open_clip", "transformers"),
}


@dataclass(frozen=True)
class EncoderStatus:
    """The status of one encoder on this machine."""

    spec: EncoderSpec
    ready: bool  # all files are there; after `try_out`, it also works
    text: str  # "yes", "no", or the encoder whose text tower it needs
    detail: str  # the problem and its remedy, or the result of the trial
    backend: Backend  # the back end for new embeddings


def check_files(spec: EncoderSpec) -> EncoderStatus:
    """Return the status of an encoder from its files, without loading them."""
    located = locate(spec)
    ready = not located.missing
    detail = "" if ready else missing_message(spec, located)
    return EncoderStatus(spec, ready, _text(spec), detail, default_backend(spec))


def try_out(status: EncoderStatus) -> EncoderStatus:
    """Load an encoder whose files are there, compare it with its golden vectors, and return its new status."""
    if not status.ready:
        return status
    try:
        encoder = load_tower(status.spec.name)
        if has_golden(status.spec.name):
            cosine = check_golden(encoder, tolerance=status.spec.tolerance)
            detail = f"works: agrees with its golden vectors (cosine {cosine:.4f})"
        else:
            detail = "loads"
        refused = "" if encoder.backend == status.backend else f"; {_refusal(status)}"
    except HyCalError as error:
        return replace(status, ready=False, detail=str(error))
    detail = f"{detail}; back end {encoder.backend}{refused}; fingerprint {encoder.fingerprint}"
    return replace(status, detail=detail, backend=encoder.backend)


def _refusal(status: EncoderStatus) -> str:
    """Return why the first choice of a back end was not taken."""
    try:
        load_tower(status.spec.name, backend=status.backend)
    except HyCalError as error:
        return str(error)
    return f"{status.backend} was not taken the first time"


def missing_packages() -> dict[str, list[str]]:
    """Return, for each extra that an encoder may need, the packages that are not installed."""
    return {
        extra: [name for name in names if importlib.util.find_spec(name) is None] for extra, names in _EXTRAS.items()
    }


def _text(spec: EncoderSpec) -> str:
    if spec.space is None:
        return "yes" if spec.has_text else "no"
    other = locate(find_encoder(spec.space))
    return f"yes, of {spec.space}" if {"text", "tokenizer"} <= other.found.keys() else f"needs {spec.space}"
