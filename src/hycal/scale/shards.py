"""Learning from many shards of samples in parallel: each gives a model, and the exact merge of models joins them.

A model keeps the set of samples of each class in one canonical order. So it does not depend on which shard had a
sample, nor on the order in which the shards came back: it is the model of one process, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TypeVar

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.parallel.cluster import LOCAL, run_each
from hycal.state.records import Records
from hycal.state.steps import LearningStep

Classifier = TypeVar("Classifier", bound=IncrementalClassifier)


Shard = LearningStep | Callable[[], LearningStep]


def learn_shards(classifier: Classifier, shards: Sequence[Shard], *, cluster: str = LOCAL) -> Classifier:
    """Learn every shard, as `partial_fit` would one after the other; an error leaves the classifier as it was.

    Parameters
    ----------
    classifier : IncrementalClassifier
        Of a method that keeps the law of merging.
    shards : sequence of LearningStep, or of callables that return one
        A callable is called where the shard is learned, so that a worker reads its own samples; it must be picklable,
        such as a partial of a function that reads a file. Shards of one class name the same domain.
    cluster : str
        See `hycal.parallel.cluster`.

    Examples
    --------
    >>> from hycal import HyCal
    >>> from hycal.testing.streams import Stream
    >>> steps = Stream.synthetic(0, shots=[[3, 2], [4]], width=8).steps
    >>> learn_shards(HyCal(), steps, cluster="local:1").counts_
    array([3, 2, 4])
    """
    reason = classifier.broken_laws.get("merging")
    if reason is not None:
        raise HyCalError(
            f"{type(classifier).__name__} cannot learn shards apart: {reason}. Learn them one after the other with "
            "partial_fit, or choose parameters under which models merge."
        )
    if not shards:
        raise HyCalError("There is no shard to learn. Pass at least one step.")
    known = classifier.records_ if classifier.__sklearn_is_fitted__() else Records({})
    found = dict(run_each(partial(_learned, classifier.with_parameters()), shards, cluster=cluster))
    tables = [found[number] for number in sorted(found)]
    _check_widths({table.width for table in [known, *tables] if table.by_label})
    classifier.install(reduce(Records.merge, tables, known))
    return classifier


def _learned(classifier: IncrementalClassifier, shard: Shard) -> Records:
    step = shard() if callable(shard) else shard
    return Records({}).learn(classifier.check_step(step.X, step.y, step.domain, step.text))


def _check_widths(widths: set[int]) -> None:
    if len(widths) > 1:
        raise HyCalError(
            f"The shards have embeddings of {' and '.join(map(str, sorted(widths)))} dimensions; expected one width. "
            "Embed all of them with the same encoder. Nothing was changed."
        )
