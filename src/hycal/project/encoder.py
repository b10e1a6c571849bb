"""The encoder of a project: its space, loading it, refusing another one, and embeddings of class names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from hycal.embedding.store import space_fingerprint
from hycal.encoders import load_encoder
from hycal.encoders.catalog import JOINED_BY, find_parts
from hycal.encoders.encoder import CombinedEncoder, Encoder, MissingEncoder
from hycal.errors import HyCalError
from hycal.project.examples import Space
from hycal.project.labels import split_label
from hycal.project.state import State
from hycal.validation import Floats, Label, unit_views

_PROMPT = "a photo of a {}."


def encoder_space(encoder: Encoder) -> Space:
    """Return the space that an encoder embeds into."""
    views = encoder.views if isinstance(encoder, CombinedEncoder) else None
    return Space(encoder.name, space_fingerprint(encoder), encoder.dimension, views)


def encoder_of(
    state: State,
    name: str | None,
    weights: Path | None,
    *,
    threads: int | None = None,
    loaded: Iterable[Encoder] = (),
) -> Encoder:
    """Load the encoder that a project was learned with; refuse another one.

    Of a project with views, a part that cannot be loaded is a `MissingEncoder`: its view is missing in new rows.

    `name` is the encoder that the user asked for, None for the one that the project names; of a project with views,
    some of its parts are enough. `weights` are by default in their usual place; `threads` of one batch are by default
    as many as cores. What is `loaded` already, encoders of one part each, is used again.
    """
    own = state.space.name
    if not own and not name:
        raise HyCalError(
            "This model does not say which encoder made its embeddings. Name it: --encoder NAME; "
            "`hycal encoders list` shows them."
        )
    known, asked = _parts(own), _parts(name or own)
    if own and name and not asked <= known:
        find_parts(name)  # a misspelt name is no other encoder
        lacking = views_to_add(state.space, asked)
        if lacking and not state.sealed:
            raise HyCalError(
                f"This model was learned with encoder {own!r} and lacks the view of {' and '.join(lacking)}. Add it "
                f"first: {adding_views('MODEL', lacking)}. Or leave --encoder out."
            )
        raise HyCalError(
            f"This model was learned with encoder {own!r}, so {name!r} cannot be used with it: their embeddings "
            f"cannot be compared. Leave --encoder out, or learn the images again into a new model."
        )
    here = {(part.name, part.fingerprint): part for part in loaded}

    def load(part: Space) -> Encoder:
        like = _fingerprint(part)
        again = here.get((part.name, like))
        return again or load_encoder(part.name or name or "", weights=weights, like=like, threads=threads)

    if own and state.space.views is not None:
        encoder: Encoder = _load_parts(state.space, None if name is None else asked, weights, load)
    else:
        encoder = load(state.space)
    check_encoder(state, encoder)
    return encoder


def _fingerprint(part: Space) -> str:
    """Return the fingerprint of the encoder of a space: that of the space without the version of the decoder."""
    return (part.fingerprint or "").partition("/")[0]


def _parts(name: str) -> set[str]:
    return {part.strip().lower() for part in name.split(JOINED_BY)}


def views_to_add(space: Space, names: Iterable[str]) -> list[str]:
    """Return which of these encoders a space lacks, if they are all of its own and more; [] if they are not."""
    own, asked = {part.name for part in space.parts}, set(names)
    return sorted(asked - own) if own < asked and "" not in asked else []


def adding_views(model: str, names: Iterable[str]) -> str:
    """Return the commands that add views to a model."""
    return ", then ".join(f"`hycal views {model} --add {name} --images FOLDER`" for name in names)


def _load_parts(
    space: Space, asked: set[str] | None, weights: Path | None, load: Callable[[Space], Encoder]
) -> CombinedEncoder:
    """Load the parts of a combined encoder. Those that were asked for by name must be there."""
    if weights is not None and len(asked or space.parts) > 1:
        raise HyCalError(
            f"--weights has the files of one encoder, and {space.name!r} has {len(space.parts)}. Name the one that "
            "they are for: --encoder NAME."
        )
    found: list[Encoder | MissingEncoder] = []
    for part in space.parts:
        missing = partial(MissingEncoder, part.name, part.dimension, _fingerprint(part))
        try:
            if asked is not None and part.name.lower() not in asked:
                found.append(missing("It is left out by --encoder."))
            else:
                found.append(load(part))
        except HyCalError as problem:
            if asked is not None:
                raise
            found.append(missing(str(problem)))
    return CombinedEncoder(found)


def missing_views(encoder: Encoder) -> dict[str, str]:
    """Return the views that the rows of an encoder lack here, each with the reason."""
    missing = encoder.missing if isinstance(encoder, CombinedEncoder) else ()
    return {part.name: part.reason for part in missing}


def encoder_if_any(
    state: State,
    name: str | None = None,
    weights: Path | None = None,
    *,
    threads: int | None = None,
    loaded: Iterable[Encoder] = (),
) -> tuple[Encoder | None, str]:
    """Return the encoder of a project, or None and the reason; refuse if the user named one. As `encoder_of`."""
    try:
        return encoder_of(state, name, weights, threads=threads, loaded=loaded), ""
    except HyCalError as problem:
        if name is not None or weights is not None:
            raise
        return None, str(problem)


def check_encoder(state: State, encoder: Encoder) -> None:
    """Refuse an encoder whose embeddings cannot be compared with those in the project."""
    here, theirs = state.space, encoder_space(encoder)
    if here.fingerprint not in (None, theirs.fingerprint, encoder.fingerprint) or (here.dimension, here.views) != (
        theirs.dimension,
        theirs.views,
    ):
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
    rows = unit_views(encoder.encode_texts(prompts), encoder_space(encoder).views)
    return dict(zip(wanted, rows, strict=True))
