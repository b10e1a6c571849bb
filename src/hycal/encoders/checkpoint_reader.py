"""Reading a checkpoint from the files that transformers or open_clip publish.

A folder holds `config.json` and `model.safetensors` (transformers: CLIP, SigLIP, DINOv2), or `open_clip_config.json`
and `open_clip_model.safetensors` (open_clip: CLIP, MobileCLIP with a vision transformer).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from hycal.encoders import checkpoint_open_clip, checkpoint_transformers
from hycal.encoders.checkpoint import Checkpoint, TextShape
from hycal.errors import HyCalError


def read_checkpoint(config: Path, weights: Path, *, size: int) -> Checkpoint:
    """Read a checkpoint from its configuration and its safetensors file.

    `size` is the side of the images that will come; the positions of a model that allows other sizes are interpolated.
    """
    with _clear_errors(config, weights):
        settings = _settings(config)
        tensors = {name: value.astype(np.float32) for name, value in load_file(weights).items()}
        if "model_cfg" in settings:
            return checkpoint_open_clip.from_open_clip(settings, tensors)
        return checkpoint_transformers.from_transformers(settings, tensors, size)


def read_text_shape(config: Path, weights: Path) -> TextShape | None:
    """Read the shape of the text tower from the configuration alone; None if there is no such tower."""
    with _clear_errors(config, weights):
        settings = _settings(config)
        family = checkpoint_open_clip if "model_cfg" in settings else checkpoint_transformers
        return family.text_shape(settings)


def _settings(config: Path) -> dict[str, Any]:
    settings = json.loads(config.read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError(f"a JSON object was expected, but it holds a {type(settings).__name__}")
    return settings


@contextmanager
def _clear_errors(config: Path, weights: Path) -> Iterator[None]:
    try:
        yield
    except HyCalError:
        raise
    except (SafetensorError, ValueError, OSError) as error:
        raise HyCalError(
            f"{weights} with {config.name} cannot be read: {error}. Expected a CLIP checkpoint, or a similar one, as "
            "published by transformers or open_clip; get the files again."
        ) from None
    except KeyError as error:
        raise HyCalError(
            f"{weights} with {config.name} lacks {error}. Expected a checkpoint with a vision transformer: CLIP, "
            "SigLIP or DINOv2 of transformers, CLIP or MobileCLIP of open_clip."
        ) from None
