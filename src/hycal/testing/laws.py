"""The laws of an incremental classifier, as checks that any classifier can run.

Each law is a function of an unfitted classifier and a stream; it raises `BrokenLawError` where the law does not hold.
Methods that cannot keep a law say so, with the reason, in their `broken_laws`.

>>> from hycal import HyCal
>>> from hycal.testing.laws import check_laws
>>> check_laws(HyCal())
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.classifiers.loader import load_classifier
from hycal.errors import HyCalError
from hycal.state.records import Records
from hycal.state.steps import LearningStep
from hycal.testing.streams import Stream, learn
from hycal.validation import Label

_SAME = 1e-4  # of the largest score: float32 scoring leaves 1e-6 or so
_ROUNDED = 1e-2  # likewise, for embeddings that were themselves rounded
_STALE = 0.02  # of a probability, through what was fitted to all samples and is kept
_SHOTS = ((30,) * 12, (40,) * 10, (25,) * 12)  # 1,060 samples
_WIDTH = 16
_QUERIES = 60

Change = Callable[[IncrementalClassifier], IncrementalClassifier]


class BrokenLawError(AssertionError):
    """A classifier does not keep a law.

    Examples
    --------
    >>> issubclass(BrokenLawError, AssertionError)
    True
    """


def check_laws(classifier: IncrementalClassifier, stream: Stream | None = None) -> None:
    """Check every law that `classifier` does not declare broken.

    Parameters
    ----------
    classifier : IncrementalClassifier
        Its parameters are used; it is cloned, never fitted.
    stream : Stream, optional
        Three domains with 1 to 6 shots by default, 16 numbers wide; those of views must add up to that.

    Examples
    --------
    >>> from hycal import NCM
    >>> check_laws(NCM())
    """
    stream = (stream or Stream.synthetic(0, shots=[[3, 1, 4], [2, 6], [5]], width=16)).in_views(classifier.views)
    for name, law in LAWS.items():
        if name not in classifier.broken_laws:
            law(classifier, stream)
    complaints = small_steps(classifier)
    _expect(not complaints, "; ".join(complaints))


def split_invariance(classifier: IncrementalClassifier, stream: Stream) -> None:
    """One call learns what many calls learn."""
    rowwise = [step.rows([row]) for step in stream.steps for row in range(len(step.y))]
    _expect_same(_learned(classifier, stream), learn(classifier.with_parameters(), rowwise), stream.queries)


def order_invariance(classifier: IncrementalClassifier, stream: Stream) -> None:
    """The order of steps, and of samples in a step, does not matter."""
    backwards = [step.rows(range(len(step.y) - 1, -1, -1)) for step in reversed(stream.steps)]
    _expect_same(_learned(classifier, stream), learn(classifier.with_parameters(), backwards), stream.queries)


def label_permutation(classifier: IncrementalClassifier, stream: Stream) -> None:
    """Renaming the classes renames the answers and changes nothing else."""
    labels = stream.labels
    renamed = dict(zip(labels, reversed(labels), strict=True))
    plain = _learned(classifier, stream).decision_function(stream.queries)
    other = _learned(classifier, stream.map(lambda step: step.relabelled(renamed.__getitem__)))
    _expect_close(plain, other.decision_function(stream.queries, classes=[renamed[label] for label in labels]), _SAME)


def merging(classifier: IncrementalClassifier, stream: Stream) -> None:
    """merge(a, b) is the model that saw both, also where both know a class."""
    halves = [
        [step.rows(range(start, len(step.y), 2)) for step in stream.steps if len(step.y) > start] for start in (0, 1)
    ]
    if not halves[1]:  # every step has one sample: there is no second model
        return
    one, two = (learn(classifier.with_parameters(), half) for half in halves)
    _expect_same(_learned(classifier, stream), one.merge(two), stream.queries)


def forgetting(classifier: IncrementalClassifier, stream: Stream) -> None:
    """A forgotten class, and an unlearned sample, leave no trace."""
    unwanted = stream.labels[0]
    kept = [rest for step in stream.steps if (rest := _without(step, unwanted)).y]
    if kept:
        _expect_same(
            learn(classifier.with_parameters(), kept), _learned(classifier, stream).forget(unwanted), stream.queries
        )
    extra = stream.steps[0].rows([0])
    again = learn(_learned(classifier, stream), [extra]).unlearn(extra.X, list(extra.y))
    _expect_same(_learned(classifier, stream), again, stream.queries)


def saving(classifier: IncrementalClassifier, stream: Stream) -> None:
    """Save, load and continue is continue."""
    *before, last = [step.rows([row]) for step in stream.steps for row in range(len(step.y))]
    if not before:
        return
    started = learn(classifier.with_parameters(), before)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        started.save(path)
        loaded = load_classifier(path, methods={type(started).__name__: type(started)})
    _expect(loaded.get_params() == started.get_params(), "a loaded model has other parameters")
    _expect_same(learn(started, [last]), learn(loaded, [last]), stream.queries)


def label_kinds(classifier: IncrementalClassifier, stream: Stream) -> None:
    """String labels and integer labels give the same answers."""
    named = _learned(classifier, stream.map(lambda step: step.relabelled(lambda label: f"class {label:05d}")))
    plain = _learned(classifier, stream)
    _expect_close(plain.decision_function(stream.queries), named.decision_function(stream.queries), _SAME)
    _expect(plain.classes_.dtype.kind == "i", "integer labels came back as something else")
    _expect(named.classes_.dtype.kind == "U", "string labels came back as something else")


def small_cases(classifier: IncrementalClassifier, stream: Stream) -> None:
    """One sample, one class and duplicates are ordinary data."""
    first = stream.steps[0]
    single = learn(classifier.with_parameters(), [first.rows([0])])
    _expect(set(single.predict(stream.queries)) == {first.y[0]}, "a model of one class answered something else")
    _expect_finite(single, stream.queries)
    doubled = learn(_learned(classifier, stream), stream.steps)
    _expect(
        list(doubled.counts_) == [2 * count for count in _learned(classifier, stream).counts_], "duplicates were lost"
    )
    _expect_finite(doubled, stream.queries)
    one_shot = [step.rows([step.y.index(label) for label in dict.fromkeys(step.y)]) for step in stream.steps]
    _expect_finite(learn(classifier.with_parameters(), one_shot), stream.queries)


def precision(classifier: IncrementalClassifier, stream: Stream) -> None:
    """Embeddings in float32 give the scores of embeddings in float64."""
    double = _learned(classifier, stream).decision_function(stream.queries)
    single = _learned(classifier, stream.map(lambda step: step.cast(np.float32)))
    _expect_close(double, single.decision_function(stream.queries.astype(np.float32)), _ROUNDED)


def determinism(classifier: IncrementalClassifier, stream: Stream) -> None:
    """The same data and parameters give the same bytes."""
    one, two = (_learned(classifier, stream).decision_function(stream.queries) for _ in range(2))
    _expect(one.tobytes() == two.tobytes(), "two equal runs differ")


def finite_scores(classifier: IncrementalClassifier, stream: Stream) -> None:
    """Huge, tiny and opposite embeddings get finite scores, and probabilities that sum to one."""
    scale = np.array([1e300, 1e-300, 1.0])[np.arange(len(stream.queries)) % 3][:, None]
    extreme = np.concatenate([stream.queries * scale, -stream.queries, np.eye(stream.queries.shape[1])])
    fitted = _learned(classifier, stream.map(lambda step: LearningStep(step.X * 1e200, step.y, step.domain, step.text)))
    _expect_finite(fitted, extreme)
    _expect_close(fitted.predict_proba(extreme).sum(axis=1), np.ones(len(extreme)), 1e-9)


def failed_calls(classifier: IncrementalClassifier, stream: Stream) -> None:
    """A call that fails raises a HyCalError and changes nothing."""
    fitted = _learned(classifier, stream)
    before = fitted.decision_function(stream.queries)
    X, y, text = stream.steps[0].X, list(stream.steps[0].y), stream.steps[0].text
    fresh = {"new": X[0] / np.linalg.norm(X[0])}
    calls: Mapping[str, Callable[[], Any]] = {
        "wrong width": lambda: fitted.partial_fit(X[:, 1:], y, text=text),
        "NaN": lambda: fitted.partial_fit(np.full_like(X, np.nan), y, text=text),
        "infinity": lambda: fitted.partial_fit(np.full_like(X, np.inf), y, text=text),
        "a zero row": lambda: fitted.partial_fit(np.zeros_like(X), y, text=text),
        "no rows": lambda: fitted.partial_fit(X[:0], [], text=text),
        "too few labels": lambda: fitted.partial_fit(X, y[:-1], text=text),
        "a fractional label": lambda: fitted.partial_fit(X[:1], [0.5], text=text),
        "str among int labels": lambda: fitted.partial_fit(X[:1], ["new"], text=fresh),
        "a label in two domains": lambda: fitted.partial_fit(X, y, domain="elsewhere", text=text),
        "text that is not unit": lambda: fitted.partial_fit(X, y, text={y[0]: 3.0 * text[y[0]]}),
        "an unknown label to forget": lambda: fitted.forget(10**6),
        "a sample never learned": lambda: fitted.unlearn(-X[:1], y[:1]),
        "an unknown candidate": lambda: fitted.predict(X, classes=[10**6]),
        "no candidates": lambda: fitted.predict(X, classes=[]),
    }
    for what, call in calls.items():
        with _expect_error(what):
            call()
        _expect(np.array_equal(before, fitted.decision_function(stream.queries)), f"{what}: the model changed")


LAWS: Mapping[str, Callable[[IncrementalClassifier, Stream], None]] = {
    law.__name__: law
    for law in (
        split_invariance,
        order_invariance,
        label_permutation,
        merging,
        forgetting,
        saving,
        label_kinds,
        small_cases,
        precision,
        determinism,
        finite_scores,
        failed_calls,
    )
}


def _learned(classifier: IncrementalClassifier, stream: Stream) -> IncrementalClassifier:
    return learn(classifier.with_parameters(), stream.steps)


def _without(step: LearningStep, label: Any) -> LearningStep:
    return step.rows([row for row, other in enumerate(step.y) if other != label])


def _expect(condition: bool, complaint: str) -> None:
    if not condition:
        raise BrokenLawError(complaint)


def _expect_same(one: IncrementalClassifier, two: IncrementalClassifier, queries: npt.NDArray[Any]) -> None:
    for name in ("classes_", "counts_", "domains_"):
        _expect(np.array_equal(getattr(one, name), getattr(two, name)), f"{name} differ")
    _expect_close(one.decision_function(queries), two.decision_function(queries), _SAME)


def _expect_close(one: npt.NDArray[Any], two: npt.NDArray[Any], tolerance: float) -> None:
    _expect(one.shape == two.shape, f"shapes differ: {one.shape} and {two.shape}")
    gap, scale = float(np.abs(one - two).max()), 1.0 + float(np.abs(one).max())
    _expect(gap <= tolerance * scale, f"scores differ by {gap:.3g}, where {tolerance * scale:.3g} is allowed")


def _expect_finite(fitted: IncrementalClassifier, queries: npt.NDArray[Any]) -> None:
    _expect(bool(np.isfinite(fitted.decision_function(queries)).all()), "a score is not finite")


@contextmanager
def _expect_error(what: str) -> Iterator[None]:
    try:
        yield
    except HyCalError:
        return
    except Exception as error:
        raise BrokenLawError(f"{what} raised {type(error).__name__}, not HyCalError: {error}") from error
    raise BrokenLawError(f"{what} was accepted")


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
