"""Which encoder suits these images: each on the same sample, every image judged by a model without it.

A model keeps embeddings and no images, so the images must be at hand again, in the folder that was learned.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hycal.embedding.decoding import decode
from hycal.embedding.sources import ImageError, ImageSource, content_hash
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project.changes import Arrival, learn
from hycal.project.evaluation import Score
from hycal.project.examples import Example, Space
from hycal.project.inputs import LabelledImage
from hycal.project.methods import empty_state, is_beyond_chance
from hycal.project.state import State
from hycal.state.sealed import refuse
from hycal.uncertainty.cross_validation import Estimate, cross_validate
from hycal.validation import Floats, Label

SAMPLE = 200  # images, evenly over the classes
_FEWEST = 2  # of a class: one is judged by the others
_TIMED = 5  # images


@dataclass(frozen=True, eq=False)
class TrialSample:
    """A sample of labelled images, by content hash."""

    labels: Mapping[bytes, Label]
    sources: Mapping[bytes, ImageSource]


def sample_learned(state: State, sources: Iterable[ImageSource]) -> TrialSample:
    """Return at most `SAMPLE` of the sources that the model has learned, evenly over its classes.

    Sources that cannot be read are left out, and so are classes with one image.
    """
    if state.sealed:
        refuse("tell which images it learned")
    counts = {label: len(state.classes[label].examples) for label in state.labels}
    sample = _sample(((source, None) for source in sources), counts, state.label_of)
    if len(set(sample.labels.values())) < 2:
        raise HyCalError(
            "Too few of these images were learned by the model to compare encoders on them; expected two images of two "
            "classes at least. Name the folder that was learned: --images FOLDER."
        )
    return sample


def sample_labelled(images: Sequence[LabelledImage]) -> TrialSample:
    """Return at most `SAMPLE` of labelled images, evenly over the classes; as `sample_learned`."""
    counts: dict[Label, int] = defaultdict(int)
    for image in images:
        counts[image.label] += 1
    spread = sorted(range(len(images)), key=lambda at: at % 7)  # not only the first images of each class
    sample = _sample(((images[at].source, images[at].label) for at in spread), counts, {})
    if len(set(sample.labels.values())) < 2:
        raise HyCalError(
            "There are too few images to compare encoders on them; expected two images of two classes at least, each "
            "class in a folder of its own."
        )
    return sample


def _sample(
    images: Iterable[tuple[ImageSource, Label | None]], counts: Mapping[Label, int], known: Mapping[bytes, Label]
) -> TrialSample:
    """Take images with their labels, or of `known` content, until each chosen class has its share."""
    classes = [label for label, count in counts.items() if count >= _FEWEST]
    most = SAMPLE // _FEWEST
    chosen = {classes[at] for at in np.linspace(0, len(classes) - 1, min(most, len(classes))).astype(int)}
    share = max(_FEWEST, SAMPLE // max(len(chosen), 1))
    found: dict[Label, dict[bytes, ImageSource]] = defaultdict(dict)
    taken: set[bytes] = set()
    for source, label in images:
        if label is not None and (label not in chosen or len(found[label]) >= share):
            continue
        try:
            key = content_hash(source.read())
        except ImageError:
            continue
        own = known.get(key) if label is None else label
        if own is not None and own in chosen and len(found[own]) < share and key not in taken:
            found[own][key] = source
            taken.add(key)
    usable = {label: images for label, images in found.items() if len(images) >= _FEWEST}
    labels = {key: label for label, images in usable.items() for key in images}
    return TrialSample(labels, {key: source for images in usable.values() for key, source in images.items()})


@dataclass(frozen=True, eq=False)
class SampleRows:
    """A sample embedded by one encoder."""

    space: Space
    rows: Mapping[bytes, Floats]  # (d,): unit rows by content hash
    seconds: float = 0.0  # processor time to embed one image, from its file


def join(parts: Sequence[SampleRows]) -> SampleRows:
    """Return the rows of several encoders side by side, as views, of the images that all of them could embed."""
    ordered = sorted(parts, key=lambda part: part.space.name)
    keys = [key for key in ordered[0].rows if all(key in part.rows for part in ordered)]
    rows = {key: np.concatenate([part.rows[key] for part in ordered]) for key in keys}
    return SampleRows(Space.joined(part.space for part in ordered), rows, sum(part.seconds for part in ordered))


def singles_and_pairs(parts: Sequence[SampleRows]) -> list[SampleRows]:
    """Return each of the encoders, and each two of them."""
    return [*parts, *(join(pair) for pair in combinations(parts, 2))]


def seconds_for_each(encoder: Encoder, sources: Iterable[ImageSource]) -> float:
    """Return the processor time to embed one image, from its file: the least of a few, one after the other.

    Processor time, because what else a machine does must not decide which of two encoders is the cheaper one.
    """
    spent = []
    for source in sources:
        try:
            content = source.read()
            began = time.process_time()
            encoder.encode(encoder.preprocess(decode(content))[None])
        except HyCalError:
            continue
        spent.append(time.process_time() - began)
        if len(spent) == _TIMED:
            break
    return min(spent, default=float("nan"))


@dataclass(frozen=True, eq=False)
class Judged:
    """The answers to a sample by models that did not see the image, in the space of one encoder or of several."""

    encoder: str
    hits: Mapping[bytes, bool]  # whether each image is right
    groups: Mapping[bytes, int]  # near-duplicates have the same number
    estimate: Estimate  # of the accuracy on new images
    seconds: float  # processor time to embed one image

    @property
    def score(self) -> Score:
        """Images that are right."""
        return Score(sum(self.hits.values()), len(self.hits))


def judge(embedded: SampleRows, labels: Mapping[bytes, Label], *, method: str) -> Judged:
    """Judge each image of a sample by models of `method`, on images alone, that were learned without it."""
    empty = empty_state(embedded.space, has_text=False, method=method)
    arrivals = [Arrival(str(labels[key]), Example(row, key)) for key, row in embedded.rows.items()]
    model = learn(empty, arrivals)[0]
    judged = cross_validate(model.classifier.scorer, model.classifier.records_)
    keys = [model.examples[row].identity for row in judged.rows]
    hits = dict(zip(keys, judged.hits.tolist(), strict=True))
    groups = dict(zip(keys, judged.groups.tolist(), strict=True))
    return Judged(embedded.space.name, hits, groups, judged.estimate(), embedded.seconds)


def surpasses(one: Judged, other: Judged, *, groups: Mapping[bytes, int]) -> bool:
    """Whether one is right where the other is wrong more often than by chance; one image of each group counts."""
    both = [key for key in one.hits if key in other.hits and key in groups]
    first = {groups[key]: key for key in reversed(both)}.values()
    won, lost = (sum(a.hits[key] and not b.hits[key] for key in first) for a, b in ((one, other), (other, one)))
    return is_beyond_chance(won, lost)


def recommend(found: Sequence[Judged]) -> Judged:
    """Return the cheapest of those that the most accurate one does not surpass beyond chance."""
    best = max(found, key=lambda judged: (judged.score.accuracy, -judged.seconds))
    equals = [judged for judged in found if not surpasses(best, judged, groups=best.groups)]
    return min(equals, key=lambda judged: judged.seconds)


@dataclass(frozen=True)
class EncoderTrial:
    """Two encoders on the same images, by the model's method on images alone."""

    encoder: str
    # Images that are right under the model's encoder, and under `encoder`.
    own: Score
    other: Score
    # Whether `encoder` is better, or worse, beyond chance; near-duplicates count as one image.
    better: bool
    worse: bool


def try_encoder(state: State, space: Space, rows: Mapping[bytes, Floats]) -> EncoderTrial:
    """Compare the model's encoder with that of `space`, given its embeddings of learned images by content hash."""
    method = type(state.classifier).__name__
    own_rows = {example.identity: example.row for example in state.examples if example.identity in rows}
    ours = judge(SampleRows(state.space, own_rows), state.label_of, method=method)
    theirs = judge(SampleRows(space, rows), state.label_of, method=method)
    both = [key for key in ours.hits if key in theirs.hits]
    own, other = (Score(sum(judged.hits[key] for key in both), len(both)) for judged in (ours, theirs))
    better, worse = (surpasses(one, two, groups=ours.groups) for one, two in ((theirs, ours), (ours, theirs)))
    return EncoderTrial(space.name, own, other, better, worse)
