"""Linear heads whose weights of a class depend on that class alone: after a small change, few are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hycal.algebra.features import Identity, LinearHead
from hycal.state.changes import ChangedClass, Changes
from hycal.state.records import ClassRecord, Records, texts_of
from hycal.validation import Doubles

#: The weights and biases of some classes.
Rows = Callable[[Sequence[ClassRecord]], tuple[Doubles, Doubles]]


@dataclass(frozen=True, eq=False)
class ClasswiseHead(LinearHead):
    """A head that knows the `records` it is from; `changed` is 0 where all classes were computed."""

    records: Records
    changed: int = 0

    @classmethod
    def of(cls, records: Records, rows: Rows, previous: Any, part: Callable[[ClassRecord], object]) -> ClasswiseHead:
        """Return the head of `records`, from `previous`, if that is one of nearly the same classes.

        `rows` computes classes, and `part` is what it reads of a class.
        """
        changes = Changes.between(previous.records, records) if isinstance(previous, ClasswiseHead) else None
        if changes is None or not changes.few:
            return cls(Identity(records.width), *rows(records.ordered), records)
        weights, bias = previous.weights, previous.bias
        if not changes.same_columns or any(_differs(one, part) for one in changes.classes):
            fresh = [records.ordered[column] for column in changes.fresh.tolist()]
            fresh_weights, fresh_bias = rows(fresh) if fresh else (weights[:0], bias[:0])
            weights, bias = changes.carried(weights, fresh_weights), changes.carried(bias, fresh_bias)
        return cls(previous.features, weights, bias, records, previous.changed + 1)


def _differs(one: ChangedClass, part: Callable[[ClassRecord], object]) -> bool:
    return one.old is None or one.new is None or part(one.old) is not part(one.new)


def text_head(records: Records, scale: float, previous: Any = None) -> ClasswiseHead:
    """Return CLIP's zero-shot classifier, scale x.t_c; every class must have a text."""

    def rows(classes: Sequence[ClassRecord]) -> tuple[Doubles, Doubles]:
        return scale * texts_of(classes), np.zeros(len(classes))

    return ClasswiseHead.of(records, rows, previous, lambda record: record.text)
