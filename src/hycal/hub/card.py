"""The card of a model, made from the model: what it is, how good it is, what it holds, and what it cannot do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hycal._version import __version__
from hycal.errors import HyCalError
from hycal.escaping import markdown_text, visible
from hycal.project import State
from hycal.project.evaluation import Score
from hycal.project.sealed import describe
from hycal.uncertainty.cross_validation import CrossValidation, Estimate, cross_validate

_MOST_CLASSES = 500  # that the card lists
_OPEN = (
    "This file is **not sealed**: it holds the embedding of every learned image, and, where the model was made from "
    "image files, their names, small thumbnails and content hashes. Who has the file can look at all of that. "
    "`hycal seal` makes a copy without it."
)
_SEALED = (
    "This file is sealed: it holds no image, thumbnail, file name or history, but {holds}. Elsewhere that may "
    "still be guessed: a class mean is nearer to its own images than to others."
)
_LIMITS = (
    "- It knows the classes listed below and no others. `predict` says of an image whether it is unlike anything "
    "learned; of images of unknown classes some pass.",
    "- Probabilities and estimates hold for new images like the learned ones: the same kind of camera, place and "
    "selection. For other images nothing is promised.",
    "- Embeddings must come from the encoder named above; those of any other give meaningless answers, and are refused "
    "where the difference is known.",
    "- Biases of the encoder and of the learned images are biases of the model. It was not examined for any use in "
    "which an error harms a person.",
)
_USE = """## Use

```
pip install 'hycal[hub]'
hycal hub load THIS_REPOSITORY --out model.hycal
hycal predict model.hycal photos
hycal serve model.hycal
```
"""


@dataclass(frozen=True)
class CardFacts:
    """What a card says that the model file does not.

    Attributes
    ----------
    name, licence : str
        Licence as the hub calls it, such as "mit" or "cc-by-4.0"; "" if its author chose none.
    judged : CrossValidation or None
        Answers to the learned images by models without them; None where they are not known, or cannot be.
    test : Score or None
        Right answers on images that were kept for testing.

    Examples
    --------
    >>> from hycal.project.evaluation import Score
    >>> CardFacts("pets", "mit", test=Score(9, 10)).test.accuracy
    0.9
    """

    name: str
    licence: str = ""
    judged: CrossValidation | None = None
    test: Score | None = None


def judge(state: State) -> CrossValidation | None:
    """Return what `CardFacts.judged` wants, of a model that is not sealed and has two classes at least."""
    if state.sealed or len(state.labels) < 2:
        return None
    return cross_validate(state.classifier.scorer, state.classifier.records_)


def model_card(state: State, facts: CardFacts) -> str:
    """Return the card of a model as Markdown below front matter in YAML; `state` is the model as it is shared.

    Examples
    --------
    >>> import numpy as np
    >>> from hycal.project import Arrival, Example, Space, empty_state
    >>> from hycal.project.changes import learn
    >>> pets = [Arrival("pets/cat", Example(np.float32([1, 0]))), Arrival("pets/dog", Example(np.float32([0, 1])))]
    >>> state, receipt = learn(empty_state(Space("none", None, 2), has_text=False), pets)
    >>> model_card(state, CardFacts("pets", "mit")).splitlines()[1:3]
    ['license: "mit"', 'library_name: "hycal"']
    """
    if not state.labels:
        raise HyCalError("The model has no classes yet, so there is nothing to share. Learn a folder first.")
    # JSON is YAML; no character of a name is syntax.
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in _front_matter(state, facts).items())
    return f"---\n{''.join(lines)}---\n\n" + "\n".join(_body(state, facts)) + "\n"


def _front_matter(state: State, facts: CardFacts) -> dict[str, Any]:
    method, encoder = type(state.classifier).__name__, state.space.name or "unknown-encoder"
    front: dict[str, Any] = {
        "license": facts.licence or "other",
        "library_name": "hycal",
        "pipeline_tag": "image-classification",
        "tags": ["hycal", "few-shot", "class-incremental", "image-classification", method, visible(encoder)],
    }
    metrics = _metrics(facts)
    if metrics:
        front["model-index"] = [
            {
                "name": visible(facts.name),
                "results": [
                    {
                        "task": {"type": "image-classification"},
                        "dataset": {"name": data, "type": "private"},
                        "metrics": [{"type": "accuracy", "value": round(value, 4), "name": words}],
                    }
                    for data, value, words in metrics
                ],
            }
        ]
    return front


def _metrics(facts: CardFacts) -> list[tuple[str, float, str]]:
    """Return data, accuracy and its interval in words, of every measurement that there is."""
    found = []
    estimate = facts.judged.estimate() if facts.judged is not None else None
    if estimate is not None and estimate.total:
        words = f"accuracy expected on new images like the learned ones, {_interval(estimate)}"
        found.append(("learned images, each held out in turn", estimate.accuracy, words))
    if facts.test is not None and facts.test.total:
        tested = Estimate(facts.test.right, facts.test.total)
        words = f"accuracy on {facts.test.total:,} test images, {_interval(tested)}"
        found.append(("test images", tested.accuracy, words))
    return found


def _interval(estimate: Estimate) -> str:
    return f"90% interval {estimate.low:.1%} to {estimate.high:.1%}"


def _body(state: State, facts: CardFacts) -> Iterator[str]:
    method, encoder = type(state.classifier).__name__, markdown_text(state.space.name or "unknown")
    space = markdown_text(state.space.fingerprint or "unknown")
    made = f"made by [hycal](https://pypi.org/project/hycal/) {__version__}"
    yield f"# {markdown_text(facts.name)}\n"
    yield (
        f"A few-shot image classifier {made}: {len(state.labels):,} classes, learned from {state.n_images:,} images on "
        "the embeddings of a frozen encoder. Nothing was trained, and it can learn more.\n"
    )
    yield from ("| | |", "|---|---|", f"| method | {method} |", f"| encoder | {encoder} |")
    yield f"| space of its embeddings | {space}, {state.space.dimension} dimensions |"
    yield f"| licence | {markdown_text(facts.licence) or 'its author chose none: ask before you use it'} |\n"
    yield _USE
    yield from ("## How good it is\n", *_how_good(facts), "")
    yield from ("## Limits\n", *_LIMITS, "")
    holds = describe(state)
    yield f"## What the file holds\n\n{_OPEN if holds == 'no' else _SEALED.format(holds=holds)}\n"
    yield from ("## Classes\n", *_classes(state, facts))


def _how_good(facts: CardFacts) -> Iterator[str]:
    metrics = _metrics(facts)
    for data, value, words in metrics:
        yield f"- {data}: {value:.1%}; {words}."
    if not metrics:
        yield "Nobody measured it. `hycal evaluate` tests it on labelled images."
    if facts.judged is not None and metrics:
        yield "\nEach learned image was answered by a model without it; a sealed model was judged before it was sealed."


def _classes(state: State, facts: CardFacts) -> Iterator[str]:
    yield from ("| class | learned images | accuracy expected |", "|---|---|---|")
    for column, label in enumerate(state.labels[:_MOST_CLASSES]):
        estimate = facts.judged.estimate(column) if facts.judged is not None else Estimate(0, 0)
        known = f"{estimate.accuracy:.0%}, {estimate.low:.0%} to {estimate.high:.0%}" if estimate.total else "not known"
        yield f"| {markdown_text(str(label))} | {state.classes[label].count:,} | {known} |"
    if len(state.labels) > _MOST_CLASSES:
        yield from ("", f"... and {len(state.labels) - _MOST_CLASSES:,} more.")
