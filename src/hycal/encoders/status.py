"""What is ready on this machine, and what is not."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from hycal.encoders.catalog import EncoderSpec, find_spec
from hycal.encoders.files import encoder_dir, locate, missing_message
from hycal.encoders.golden import check_golden, has_golden
from hycal.encoders.loader import load_encoder
from hycal.errors import HyCalError

EXTRAS = {
    "clip": ("onnx", "tokenizers", "huggingface_hub"),
    "torch": ("torch", "open_clip", "transformers"),
}


@dataclass(frozen=True)
class EncoderState:
    """One encoder on this machine.

    Attributes
    ----------
    spec : EncoderSpec
    folder : Path
        Where its files are, or would be.
    ready : bool
        All files are there; after `try_out`: and it works.
    text : str
        "yes", "no", or whose text tower it would use.
    detail : str
        What is wrong and what to do, or what was tried.
    """

    spec: EncoderSpec
    folder: Path
    ready: bool
    text: str
    detail: str


def look_at(spec: EncoderSpec) -> EncoderState:
    """Return the state of an encoder by looking for its files, without loading them."""
    located = locate(spec)
    ready = not located.missing
    detail = "" if ready else missing_message(spec, located)
    return EncoderState(spec, encoder_dir(spec), ready, _text(spec), detail)


def try_out(state: EncoderState) -> EncoderState:
    """Load an encoder whose files are there, and compare it with its golden vectors."""
    if not state.ready:
        return state
    try:
        encoder = load_encoder(state.spec.name)
        if has_golden(state.spec.name):
            cosine = check_golden(encoder, tolerance=state.spec.tolerance)
            detail = f"works: agrees with its golden vectors (cosine {cosine:.4f})"
        else:
            detail = "loads"
    except HyCalError as error:
        return EncoderState(state.spec, state.folder, False, state.text, str(error))
    return EncoderState(state.spec, state.folder, True, state.text, f"{detail}; fingerprint {encoder.fingerprint}")


def missing_packages() -> dict[str, list[str]]:
    """Return, for each extra, the packages that cannot be imported."""
    return {
        extra: [name for name in names if importlib.util.find_spec(name) is None] for extra, names in EXTRAS.items()
    }


def _text(spec: EncoderSpec) -> str:
    if spec.space is None:
        return "no" if spec.kind == "bundled" else "yes"
    other = locate(find_spec(spec.space))
    return f"yes, of {spec.space}" if {"text", "tokenizer"} <= other.found.keys() else f"needs {spec.space}"
