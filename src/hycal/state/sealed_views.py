"""The table of a sealed model of several views: a sealed table for each view, and the weights of views as numbers.

A class has the number of its images here, and its moments in the table of each view, where only images that have the
view count. The mean of its rows, in which a missing view is zeros, follows from these:

    m = (K_1 m_1 / K, K_2 m_2 / K, ...),    with K_v of K images in view v, and m_v their mean there

So a file has no means but those of the views. Groups are the domains, and `weights` those of the views in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from hycal.state.moments import Moments
from hycal.state.records import ClassRecord, Records
from hycal.state.sealed import RowsOf, SealedRecords, refuse
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats, Label, view_slices

SHARED, DOMAINS = "shared", "domains"  # numbers: weights of views in all domains, and for telling domains


@dataclass(frozen=True, eq=False)
class SealedViews(SealedRecords):
    """Moments by label, in each view."""

    widths: tuple[int, ...] = ()
    views: tuple[SealedRecords | None, ...] = ()  # None for a view that no image ever had

    @classmethod
    def of_views(cls, records: Records, widths: Sequence[int], views: tuple[SealedRecords | None, ...]) -> Self:
        """Return the table of `records`, of which `views` are the sealed tables."""
        domains = {label: record.domain for label, record in records.by_label.items()}
        table = replace(cls.of(records, _as_they_are, "means", domains), widths=tuple(widths))
        return table._with_views(views, table.labels)

    def view(self, part: slice) -> Records:
        """Return the table of one view."""
        own = self.views[[each.start for each in view_slices(self.widths)].index(part.start)]
        return Records({}) if own is None else own

    @cached_property
    def nbytes(self) -> int:
        """Bytes of state: means follow from the views."""
        return sum(own.nbytes for own in self.views if own is not None)

    def shared_bytes(self) -> Iterator[bytes]:
        """Yield what the table has beside its classes, for a hash: all that the views have."""
        yield from super().shared_bytes()
        for number, own in enumerate(self.views):
            if own is not None and own.by_label:
                yield f"view {number}\n".encode()
                for label, one in zip(own.labels, own.moments, strict=True):
                    yield f"{label}\n{one.count}\n".encode()
                    yield from (part.tobytes() for part in (one.centre, one.mean, one.factor))
                yield from own.shared_bytes()

    # Changes

    def learn_views(self, step: Step, rows_of: Sequence[RowsOf]) -> Self:
        """Return the table with `step` learned; `rows_of` makes the method's rows of embeddings, for each view."""
        learned, views = self.learn_rows(step, _as_they_are), []
        for part, own, rows in zip(view_slices(self.widths), self.views, rows_of, strict=True):
            classes = {
                label: (has, learned.by_label[label].view(part))
                for label, samples in step.samples.items()
                if len(has := _having(samples[:, part]))
            }
            if own is None and classes:
                refuse("learn a view that none of its images had")
            views.append(own.learn_classes(classes, rows) if own is not None and classes else own)
        return learned._with_views(views, step.samples)

    def merge(self, other: Records) -> Self:
        """Return the table of both models' moments, with the fitted numbers of this one.

        A view that only one of them knows has the weights that it has there.
        """
        if not isinstance(other, SealedViews) or other.widths != self.widths:
            refuse("be merged with a model of other views")
        merged = super().merge(other)
        views = (_merged(*both) for both in zip(self.views, other.views, strict=True))
        weights = {key: self._filled(other, SHARED, own) for key, own in self.weights.items()}
        weights |= {key: other._filled(self, SHARED, own) for key, own in other.weights.items() if key not in weights}
        numbers = {name: self._filled(other, name, self.numbers[name]) for name in (SHARED, DOMAINS)}
        merged = replace(merged, weights=weights, numbers={**merged.numbers, **numbers})
        return merged._with_views(tuple(views), other.by_label)

    def _filled(self, other: SealedViews, name: str, weights: Doubles) -> Doubles:
        """Return weights of views, those that this model does not know from the number `name` of the other."""
        unknown = [mine is None and theirs is not None for mine, theirs in zip(self.views, other.views, strict=True)]
        return np.where(unknown, other.numbers[name], weights)

    def forget(self, labels: Iterable[Label]) -> Self:
        """Return the table without `labels`; a view without classes stays until the model is saved."""
        unwanted = list(labels)
        views = (None if own is None else own.forget(own.by_label.keys() & unwanted) for own in self.views)
        return replace(super().forget(unwanted), views=tuple(views))

    def rename(self, names: Mapping[Label, Label], domains: Mapping[Label, str]) -> Self:
        """Return the table with new labels, and new names of domains by old label."""
        views = tuple(None if own is None else own.rename(names, domains) for own in self.views)
        return replace(super().rename(names, domains), views=views)

    def _with_views(self, views: Sequence[SealedRecords | None], changed: Iterable[Label]) -> Self:
        """Return the table with these tables of views, which take over the domains and texts of `changed` classes."""
        classes = {
            label: replace(record, moments=joint_moments(label, record.count, self.widths, views))
            for label, record in ((label, self.by_label[label]) for label in changed)
        }
        parts = zip(view_slices(self.widths), views, strict=True)
        following = tuple(None if own is None else _described(own, classes, part) for part, own in parts)
        return replace(self, by_label={**self.by_label, **classes}, views=following)


def joint_moments(label: Label, count: int, widths: Sequence[int], views: Sequence[SealedRecords | None]) -> Moments:
    """Return the moments of a class of so many images: the mean of its rows, and no scatter."""
    own = [None if table is None or label not in table.by_label else table.by_label[label] for table in views]
    parts = [
        np.zeros(width) if record is None else record.count / count * record.mean
        for width, record in zip(widths, own, strict=True)
    ]
    mean = np.concatenate(parts).astype(np.float32)
    return Moments(count, mean, mean, np.empty((0, len(mean)), np.float32))


def _merged(mine: SealedRecords | None, theirs: SealedRecords | None) -> SealedRecords | None:
    """Return the table of a view of both models; one of them alone may have the view."""
    if mine is None or theirs is None:
        return mine or theirs
    if mine.parameters != theirs.parameters:
        refuse("be merged with a model that has texts in other views")
    return mine.merge(theirs)


def _described(own: SealedRecords, classes: Mapping[Label, ClassRecord], part: slice) -> SealedRecords:
    """Return the table of a view in which the classes it knows have the domain and the text that they have in all."""
    known = {
        label: replace(record.view(part), moments=own.by_label[label].moments)
        for label, record in classes.items()
        if label in own.by_label
    }
    return replace(own, by_label={**own.by_label, **known})


def _having(rows: Floats) -> Floats:
    """Return the rows that have a view."""
    return rows[rows.any(axis=1)]


def _as_they_are(rows: Floats, text: Floats | None) -> Floats:
    """Return the rows of all views."""
    return rows
