"""The law of small steps: after a few samples a model answers as one that is built anew from the same records.

It needs a model that is large enough to follow changes instead of being built again, so it draws a stream of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.state.records import Records
from hycal.testing.streams import Stream, learn
from hycal.validation import Label

_SAME = 1e-4  # of the largest score
_STALE = 0.02  # of a probability, through what was fitted to all samples and is kept
_SHOTS = ((30,) * 12, (40,) * 10, (25,) * 12)  # 1,060 samples
_WIDTH = 16
_QUERIES = 60

Change = Callable[[IncrementalClassifier], IncrementalClassifier]


def small_steps(classifier: IncrementalClassifier) -> list[str]:
    """Take small steps, ask after each, and return what differs from a model built anew; nothing if the law is kept.

    The steps learn, take back, merge, rename and forget. Probabilities must be the same to 0.02, and scores to 1e-4 of
    the largest unless the method keeps what it fitted to all samples (`kept_in_steps`). A method that follows changes
    must really do so where one sample changes.
    """
    stream = Stream.synthetic(0, shots=_SHOTS, width=_WIDTH, queries=_QUERIES).in_views(classifier.views)
    fitted, complaints = learn(classifier.with_parameters(), stream.steps), []
    fitted.predict_proba(stream.queries)
    for name, change in _changes(stream).items():
        fitted = change(fitted)
        fitted.predict_proba(stream.queries[:1])
        found = _complaint(fitted, stream, follows=name.startswith("one ") and not fitted.scorer.rebuilt_because)
        if found:
            complaints.append(f"after {name}: {found}")
    return complaints


def _changes(stream: Stream) -> Mapping[str, Change]:
    """Return the steps: each takes a classifier to the next."""
    first, second, third = stream.steps
    known, new = first.y[0], len(stream.labels)
    text = {new: third.text[third.y[-1]]}
    rng = np.random.default_rng(0)

    def merged(one: IncrementalClassifier) -> IncrementalClassifier:
        return one.merge(learn(one.with_parameters(), [second.rows([0, 50])]))

    def renamed(one: IncrementalClassifier) -> IncrementalClassifier:
        names: dict[Label, Label] = {second.y[0]: new + 7}
        records = one.records_
        table = {names.get(label, label): record for label, record in records.by_label.items()}
        return one.with_records(Records(table, one.rename_memo(records.memo, names)))

    def learned(one: IncrementalClassifier) -> IncrementalClassifier:
        return one.partial_fit(first.X[:1] + 0.01 * rng.normal(size=(1, _WIDTH)), [known])

    return {
        "one more sample": learned,
        "one sample less": lambda one: one.unlearn(second.X[5:6], [second.y[5]]),
        "a new class": lambda one: one.partial_fit(third.X[-2:], [new] * 2, domain=third.domain, text=text),
        "merging": merged,
        "renaming": renamed,
        "forgetting": lambda one: one.forget([new]),
    }


def _complaint(fitted: IncrementalClassifier, stream: Stream, *, follows: bool) -> str:
    """Say how the answers differ from those of a model built anew, or that the model was built anew itself."""
    anew = fitted.with_parameters()
    anew.install(fitted.records_)
    found, expected = (one.decision_function(stream.queries) for one in (fitted, anew))
    value = fitted.snapshot().value
    part = value[0] if isinstance(value, tuple | list) else value
    if follows and not getattr(part, "changed", 1):
        return "the model was built anew"
    gap, scale = float(np.abs(found - expected).max()), 1.0 + float(np.abs(expected).max())
    if gap > _SAME * scale and not fitted.scorer.kept_in_steps:
        return f"scores differ by {gap:.3g}, where {_SAME * scale:.3g} is allowed"
    chances, right = (one.predict_proba(stream.queries) for one in (fitted, anew))
    stale = float(np.abs(chances - right).max())
    return "" if stale <= _STALE else f"probabilities differ by {stale:.3g}, where {_STALE} is allowed"
