"""The encoder of a project: its space, loading it, refusing another one, and embeddings of class names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hycal.embedding.store import space_fingerprint
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project.labels import split_label
from hycal.project.state import Space, State
from hycal.validation import Floats, Label, unit_rows

_PROMPT = "a photo of a {}."


def encoder_space(encoder: Encoder) -> Space:
    """Return the space that an encoder embeds into."""
    return Space(encoder.name, space_fingerprint(encoder), encoder.dimension)


def encoder_of(state: State, name: str | None, weights: Path | None, *, threads: int | None = None) -> Encoder:
    """Load the encoder that a project was learned with; refuse another one.

    Parameters
    ----------
    state : State
    name : str or None
        The encoder that the user asked for; None for the one that the project names.
    weights : Path or None
        Where its weights are; by default in their usual place.
    threads : int, optional
        Threads for one batch; by default every core.
    """
    from hycal.encoders import load_encoder  # imports ONNX Runtime, which is slow

    own = state.space.name
    if not own and not name:
        raise HyCalError(
            "This model does not say which encoder made its embeddings. Name it: --encoder NAME; "
            "`hycal encoders list` shows them."
        )
    if own and name and name.lower() != own.lower():
        raise HyCalError(
            f"This model was learned with encoder {own!r}, so {name!r} cannot be used with it: their embeddings "
            f"cannot be compared. Leave --encoder out, or learn the images again into a new model."
        )
    like = (state.space.fingerprint or "").partition("/")[0]  # without the version of the decoder
    encoder = load_encoder(name or own, weights=weights, like=like, threads=threads)
    check_encoder(state, encoder)
    return encoder


def encoder_if_any(
    state: State, name: str | None, weights: Path | None, *, threads: int | None = None
) -> tuple[Encoder | None, str]:
    """Return the encoder of a project, or None and the reason; refuse if the user named one. As `encoder_of`."""
    try:
        return encoder_of(state, name, weights, threads=threads), ""
    except HyCalError as problem:
        if name is not None or weights is not None:
            raise
        return None, str(problem)


def check_encoder(state: State, encoder: Encoder) -> None:
    """Refuse an encoder whose embeddings cannot be compared with those in the project."""
    here, theirs = state.space, encoder_space(encoder)
    if here.fingerprint not in (None, theirs.fingerprint, encoder.fingerprint) or here.dimension != theirs.dimension:
        raise HyCalError(
            f"This model was learned in the space {here.fingerprint!r} of encoder {here.name!r} ({here.dimension} "
            f"numbers), and {theirs.name!r} here gives {theirs.fingerprint!r} ({theirs.dimension} numbers). Their "
            "embeddings cannot be compared. Use the encoder it was learned with, or learn the images again into a new "
            "model."
        )


def text_embeddings(labels: Iterable[Label], encoder: Encoder) -> dict[str, Floats]:
    """Return the text embedding of each class name, in the prompt of the paper; {} if the encoder has no text tower."""
    wanted = [str(label) for label in labels]
    if not encoder.has_text or not wanted:
        return {}
    prompts = [_PROMPT.format(split_label(label)[1].replace("_", " ")) for label in wanted]
    return dict(zip(wanted, unit_rows(encoder.encode_texts(prompts)), strict=True))
