"""Whether another encoder would pay: both encoders on the same learned images, each judged by a model without it.

A model keeps embeddings and no images, so the images must be at hand again, in the folder that was learned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hycal.embedding.sources import ImageError, ImageSource, content_hash
from hycal.errors import HyCalError
from hycal.project.changes import Arrival, learn
from hycal.project.evaluation import Score
from hycal.project.examples import Example
from hycal.project.methods import empty_state, is_beyond_chance
from hycal.project.space import Space
from hycal.project.state import State
from hycal.uncertainty.cross_validation import cross_validate
from hycal.validation import Floats, Label

SAMPLE = 200  # images, evenly over the classes
_FEWEST = 2  # of a class: one is judged by the others


def sample_learned(state: State, sources: Iterable[ImageSource]) -> dict[bytes, ImageSource]:
    """Return at most `SAMPLE` of the sources that the model has learned, by content hash, evenly over its classes.

    Sources that cannot be read are left out, and so are classes with one image.
    """
    classes = [label for label in state.labels if len(state.classes[label].examples) >= _FEWEST]
    most = SAMPLE // _FEWEST
    chosen = {classes[at] for at in np.linspace(0, len(classes) - 1, min(most, len(classes))).astype(int)}
    quota = max(_FEWEST, SAMPLE // max(len(chosen), 1))
    found: dict[Label, dict[bytes, ImageSource]] = defaultdict(dict)
    for source in sources:
        try:
            key = content_hash(source.read())
        except ImageError:
            continue
        label = state.label_of.get(key)
        if label is not None and label in chosen and len(found[label]) < quota:
            found[label][key] = source
    usable = [images for images in found.values() if len(images) >= _FEWEST]
    if len(usable) < 2:
        raise HyCalError(
            "Too few of these images were learned by the model to compare encoders on them; expected two images of two "
            "classes at least. Name the folder that was learned."
        )
    return {key: source for images in usable for key, source in images.items()}


@dataclass(frozen=True)
class EncoderTrial:
    """Two encoders on the same images, by the model's method on images alone.

    Attributes
    ----------
    encoder : str
    own, other : Score
        Images that are right under the model's encoder, and under `encoder`.
    better, worse : bool
        Whether `encoder` is better, or worse, beyond chance; near-duplicates count as one image.
    """

    encoder: str
    own: Score
    other: Score
    better: bool
    worse: bool


def try_encoder(state: State, space: Space, rows: Mapping[bytes, Floats]) -> EncoderTrial:
    """Compare the model's encoder with that of `space`, given its embeddings of learned images by content hash."""
    own_rows = {example.identity: example.row for example in state.examples if example.identity in rows}
    ours, groups = _judge(state, state.space, own_rows)
    theirs, _ = _judge(state, space, rows)
    both = [key for key in ours if key in theirs]
    first = list({groups[key]: key for key in reversed(both)}.values())  # one of each group of near-duplicates
    won, lost = (sum(a[key] and not b[key] for key in first) for a, b in ((theirs, ours), (ours, theirs)))
    own, other = (Score(sum(hits[key] for key in both), len(both)) for hits in (ours, theirs))
    return EncoderTrial(space.name, own, other, is_beyond_chance(won, lost), is_beyond_chance(lost, won))


def _judge(state: State, space: Space, rows: Mapping[bytes, Floats]) -> tuple[dict[bytes, bool], dict[bytes, int]]:
    """Return whether each image is right by a model without it, and the number of its group of near-duplicates."""
    empty = empty_state(space, has_text=False, method=type(state.classifier).__name__)
    arrivals = [Arrival(str(state.label_of[key]), Example(row, key)) for key, row in rows.items()]
    model = learn(empty, arrivals)[0]
    judged = cross_validate(model.classifier.scorer, model.classifier.records_)
    keys = [model.examples[row].identity for row in judged.rows]
    return dict(zip(keys, judged.hits.tolist(), strict=True)), dict(zip(keys, judged.groups.tolist(), strict=True))
