"""Reading a checkpoint from the files that transformers or open_clip publish.

A folder holds `config.json` and `model.safetensors` (transformers: CLIP, SigLIP, DINOv2), or `open_clip_config.json` and
`open_clip_model.safetensors` (open_clip: CLIP, MobileCLIP with a vision transformer).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from hycal.encoders.checkpoint import Checkpoint
from hycal.encoders.checkpoint_open_clip import from_open_clip
from hycal.encoders.checkpoint_transformers import from_transformers
from hycal.errors import HyCalError


def read_checkpoint(config: Path, weights: Path, *, size: int) -> Checkpoint:
    """Read a checkpoint from its configuration and its safetensors file.

    Parameters
    ----------
    config, weights : Path
    size : int
        Side of the images that will come; the positions of a model that allows other sizes are interpolated to it.
    """
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        tensors = {name: value.astype(np.float32) for name, value in load_file(weights).items()}
    except (SafetensorError, ValueError, OSError) as error:
        raise HyCalError(
            f"{weights} with {config.name} cannot be read: {error}. Expected a CLIP checkpoint, or a similar one, as "
            "published by transformers or open_clip; get the files again."
        ) from None
    try:
        if "model_cfg" in settings:
            return from_open_clip(settings, tensors)
        return from_transformers(settings, tensors, size)
    except KeyError as error:
        raise HyCalError(
            f"{weights} with {config.name} lacks {error}. Expected a checkpoint with a vision transformer: CLIP, SigLIP "
            "or DINOv2 of transformers, CLIP or MobileCLIP of open_clip."
        ) from None
