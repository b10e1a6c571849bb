"""Other encoders on a sample of the learned images, for `hycal methods` and `hycal advise` with `--images`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from hycal.commands._inputs import EncoderChoice, embed_images
from hycal.commands._output import percent
from hycal.encoders.catalog import list_encoders
from hycal.encoders.files import locate
from hycal.project import State
from hycal.project.encoder import encoder_space
from hycal.project.encoder_trials import EncoderTrial, sample_learned, try_encoder
from hycal.project.inputs import to_learn
from hycal.validation import unit_views


def other_encoders(state: State) -> list[str]:
    """Return the encoders whose weights are here, but for the model's own."""
    own = {part.name for part in state.space.parts}
    return [spec.name for spec in list_encoders() if spec.name not in own and not locate(spec).missing]


def no_other_encoder(state: State) -> str:
    """Say that there is none to compare with, and how to get one."""
    return (
        f"No encoder but {state.space.name} is installed, so there is none to compare it with. `hycal encoders get "
        "clip-vit-b16-w8` gets a stronger one (90 MB); then run this again."
    )


def measure_encoders(
    state: State, folder: Path, names: Sequence[str], choice: EncoderChoice, *, quiet: bool
) -> list[EncoderTrial]:
    """Compare the model's encoder with others on a sample of the images in `folder` that it learned."""
    from hycal.encoders import load_encoder  # imports ONNX Runtime, which is slow

    encoders = [load_encoder(name, weights=choice.weights) for name in names]
    sample = sample_learned(state, [image.source for image in to_learn(folder)[0]])
    found = []
    for encoder in encoders:
        rows = embed_images(list(sample.values()), encoder, choice.cache, summary=None, quiet=quiet)
        space = encoder_space(encoder)
        units = dict(zip(rows.keys, unit_views(rows.rows, space.views), strict=True))
        found.append(try_encoder(state, space, units))
    return found


def describe_trials(state: State, folder: Path, found: Sequence[EncoderTrial]) -> list[str]:
    """Return what was measured in sentences, and for an encoder that is better the command that changes to it."""
    method, said = type(state.classifier).__name__, []
    for trial in found:
        verdict = "better" if trial.better else "worse" if trial.worse else "not better"
        said.append(
            f"{trial.encoder} is {verdict} beyond chance than {state.space.name}: {percent(trial.other)} against "
            f"{percent(trial.own)} on learned images that were left out, by {method} without texts"
        )
        if trial.better:
            said.append(f"to change: hycal learn NEW.hycal {shlex.quote(str(folder))} --encoder {trial.encoder}")
    return said
