"""The table of a sealed model: moments of classes in place of their samples.

Every operation on `Records` that needs no single sample works here too. A class keeps its own scatter, or shares that
of its group of classes, or keeps none: as its method needs. A class that is forgotten leaves its part of a shared
scatter behind, until the last class of its group is forgotten: its part is not known apart.

A group is a domain, or one of several that the method found in a domain. Its key is the name of the domain, followed by
a line break and a number where it was found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, Never, Self

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.state.moments import Moments, Scatters, Spread
from hycal.state.records import ClassRecord, Records, grown
from hycal.state.samples import ClassSamples
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats, Label

#: What is kept of the spread of samples: nothing, one scatter for each group of classes, or one for each class.
KEPT = ("means", "groups", "classes")
#: From embeddings of a class, and its text, to the rows that a method computes on.
RowsOf = Callable[[Floats, Floats | None], npt.NDArray[np.floating]]
_FOUND = "\n"


@dataclass(frozen=True, eq=False)
class SealedRecords(Records):
    """Moments by label."""

    keeps: str = "means"  # one of `KEPT`
    group_of: Mapping[Label, str] = field(default_factory=dict)  # key of the group of each class
    # The scatter of each group whose classes share one. In other groups the classes have their own, or none.
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    weights: Mapping[str, Doubles] = field(default_factory=dict)  # what the method fitted for each group, if anything
    # Other numbers that were fitted before sealing: those of calibration, of unknown queries, and of the method.
    numbers: Mapping[str, Doubles] = field(default_factory=dict)
    # The parameters of the method; a sealed model keeps them.
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, records: Records, rows_of: RowsOf, keeps: str, group_of: Mapping[Label, str], own: Iterable[str] = ()
    ) -> Self:
        """Return the moments of `records`; the classes of the groups in `own` keep scatters of their own."""
        first = records.ordered[0]
        nothing = Spread.of(rows_of(first.samples.rows, first.text).shape[1])
        shared = sorted(set(group_of.values()) - set(own)) if keeps == "groups" else []
        table = cls({}, records.memo, keeps, group_of, dict.fromkeys(shared, nothing))
        empty = ClassSamples(first.samples.rows[:0])
        return table._absorbed(
            {
                label: (record.samples.rows, replace(record, samples=empty))
                for label, record in records.by_label.items()
            },
            rows_of,
        )

    # What methods compute on

    @cached_property
    def moments(self) -> list[Moments]:
        """Moments in the order of `labels`."""
        return [moments for record in self.ordered if (moments := record.moments) is not None]

    @cached_property
    def means(self) -> Doubles:
        """Means of the method's rows, (C, D)."""
        return np.stack([moments.mean for moments in self.moments]).astype(np.float64)

    @cached_property
    def keys(self) -> list[str]:
        """Keys of all groups, sorted."""
        return sorted(set(self.group_of.values()))

    @cached_property
    def grouping(self) -> npt.NDArray[np.intp]:
        """Position in `keys` of the group of each class, (C,)."""
        place = {key: number for number, key in enumerate(self.keys)}
        return np.array([place[self.group_of[label]] for label in self.labels], dtype=np.intp)

    @cached_property
    def group_spreads(self) -> list[Spread]:
        """Scatter of the samples of each group around their class means, in the order of `keys`."""
        return [self.spreads.get(key) or self._own_spread(key) for key in self.keys]

    @property
    def width(self) -> int:
        """Embedding dimension."""
        return len(self.moments[0].centre)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(record.nbytes for record in self.ordered) + sum(each.factor.nbytes for each in self.spreads.values())

    def shared_bytes(self) -> Iterator[bytes]:
        """Yield what the table has beside its classes, for a hash."""
        for key, spread in sorted(self.spreads.items()):
            yield f"{key}\n{spread.freedom}\n".encode() + spread.factor.tobytes()
        named = [*self.weights.items(), *self.numbers.items()]
        for name, numbers in sorted(named, key=lambda each: each[0]):
            yield f"{name}\n".encode() + np.asarray(numbers, np.float64).tobytes()

    # Changes

    def learn_rows(self, step: Step, rows_of: RowsOf) -> Self:
        """Return the table with `step` learned; `rows_of` makes the method's rows of embeddings."""
        self._check_kind(step.samples)
        return self.learn_classes(
            {label: (rows, self._grown(label, step, rows.shape[1])) for label, rows in step.samples.items()}, rows_of
        )

    def learn_classes(self, classes: Mapping[Label, tuple[Floats, ClassRecord]], rows_of: RowsOf) -> Self:
        """Return the table with samples of new or known classes, each with its domain and its text from now on."""
        new = {label: self._group_for(*of) for label, of in classes.items() if label not in self.group_of}
        fresh = set(new.values()) - set(self.keys) if self.keeps == "groups" else set[str]()
        samples, record = next(iter(classes.values()))
        nothing = dict.fromkeys(sorted(fresh), Spread.of(rows_of(samples[:1], record.text).shape[1]))
        table = replace(self, group_of={**self.group_of, **new}, spreads={**self.spreads, **nothing})
        return table._absorbed(classes, rows_of)

    def merge(self, other: Records) -> Self:
        """Return the table of both models' moments; calibration and other fitted numbers stay those of this one."""
        if not isinstance(other, SealedRecords) or other.keeps != self.keeps:
            refuse("be merged with the samples of a model that is not sealed in the same way")
        self._check_kind(other.by_label)
        theirs = other._with_keys_of(self)
        mine = self
        for key in sorted({*mine.keys} & {*theirs.keys}):
            if (key in mine.spreads) != (key in theirs.spreads):
                mine, theirs = mine._shared(key), theirs._shared(key)
        both = {
            key: mine.spreads[key].plus(spread.scatter, spread.freedom) if key in mine.spreads else spread
            for key, spread in theirs.spreads.items()
        }
        table = replace(
            mine,
            memo={**theirs.memo, **mine.memo},
            group_of={**theirs.group_of, **mine.group_of},
            spreads={**mine.spreads, **both},
            weights={**theirs.weights, **mine.weights},
        )
        added = {}
        for label, record in theirs.by_label.items():
            step = Step({}, record.domain or None, _text(label, record))
            if record.moments is not None:
                added[label] = record.moments, self._grown(label, step, theirs.width)
        return table._joined(added, Scatters(table.spreads))

    def forget(self, labels: Iterable[Label]) -> Self:
        """Return the table without `labels`; a group without classes is gone."""
        kept = super().forget(labels).by_label
        group_of = {label: self.group_of[label] for label in kept}
        left = set(group_of.values())
        spreads = {key: spread for key, spread in self.spreads.items() if key in left}
        weights = {key: each for key, each in self.weights.items() if key in left}
        return replace(self, by_label=kept, group_of=group_of, spreads=spreads, weights=weights)

    def rename(self, names: Mapping[Label, Label], domains: Mapping[Label, str]) -> Self:
        """Return the table with new labels, and new names of domains by old label.

        A group whose domain got a new name follows it; a class that moves to another domain stays in its group. A group
        that has no class of its domain left, and whose new domain is a group, is another one of that domain.
        """
        by_label = {
            names.get(label, label): replace(record, domain=domains.get(label, record.domain))
            for label, record in self.by_label.items()
        }
        moved: defaultdict[str, set[str]] = defaultdict(set)
        for label, record in self.by_label.items():
            moved[self.group_of[label]].add(domains.get(label, record.domain))
        free = _free_numbers(moved)
        keys = {key: key for key in moved}
        for key, to in moved.items():
            if _FOUND not in key and key not in to:
                new = min(to)
                keys[key] = new if len(to) == 1 and new not in {*keys, *keys.values()} else found_key(new, next(free))
        return replace(
            self,
            by_label=by_label,
            group_of={names.get(label, label): keys[key] for label, key in self.group_of.items()},
            spreads={keys[key]: spread for key, spread in self.spreads.items()},
            weights={keys[key]: each for key, each in self.weights.items()},
        )

    def _grown(self, label: Label, step: Step, width: int) -> ClassRecord:
        """Return the class with the domain and the text of a step, and without moments."""
        nothing = np.empty((0, width), np.float32)
        return replace(grown(label, self.by_label.get(label), nothing, step), moments=None)

    def _absorbed(self, classes: Mapping[Label, tuple[Floats, ClassRecord]], rows_of: RowsOf) -> Self:
        """Return the table with samples added to classes, which have their domain and their text."""
        changed, added = {}, Scatters(self.spreads)
        for label, (samples, record) in classes.items():
            rows = rows_of(samples, record.text)
            deviations = rows - rows.mean(axis=0, dtype=np.float64)
            added.add(self.group_of[label], deviations, len(samples) - 1)
            own = deviations if self._is_apart(label) else deviations[:0]
            changed[label] = Moments.of(samples, rows, own), record
        return self._joined(changed, added)

    def _joined(self, changed: Mapping[Label, tuple[Moments, ClassRecord]], added: Scatters) -> Self:
        """Return the table with moments added to classes, and scatters to groups."""
        by_label = dict(self.by_label)
        for label, (moments, record) in changed.items():
            old = self.by_label.get(label)
            if old is not None and old.moments is not None:
                moments = old.moments.join(moments)
                added.add(self.group_of[label], moments.factor.astype(np.float64), 1)  # of both means to the common one
            by_label[label] = replace(record, moments=moments if self._is_apart(label) else moments.without_spread())
        return replace(self, by_label=by_label, spreads=added.total())

    # Groups

    def _is_apart(self, label: Label) -> bool:
        """Whether a class has a scatter of its own."""
        return self.keeps != "means" and self.group_of[label] not in self.spreads

    def _group_for(self, samples: Floats, record: ClassRecord) -> str:
        """Return the group of a new class: its domain, or that of the nearest class where groups were found in it."""
        found = {label for label, key in self.group_of.items() if key.startswith((_FOUND, record.domain + _FOUND))}
        if record.domain in self.keys or not found:
            return record.domain
        centre = samples.mean(axis=0)
        return self.group_of[min(sorted(found), key=lambda label: _distance(self.by_label[label].mean, centre))]

    def _with_keys_of(self, other: SealedRecords) -> Self:
        """Return the table with the keys that its groups have in `other`: those of a class that both know.

        A group that was found, and is another one than that of the same key in `other`, gets a number of its own.
        """
        free = _free_numbers({*other.keys, *self.keys})
        names = {self.group_of[label]: other.group_of[label] for label in self.labels[::-1] if label in other.group_of}
        for key in self.keys:
            clash = _FOUND in key and key in other.keys
            names.setdefault(key, found_key(key.partition(_FOUND)[0], next(free)) if clash else key)
        table, spreads = self, dict[str, Spread]()
        for key in self.keys:
            if sum(name == names[key] for name in names.values()) > 1:
                table = table._shared(key)
        for key, spread in table.spreads.items():
            old = spreads.get(names[key])
            spreads[names[key]] = spread if old is None else old.plus(spread.scatter, spread.freedom)
        return replace(
            table,
            group_of={label: names[key] for label, key in self.group_of.items()},
            spreads=spreads,
            weights={names[key]: each for key, each in self.weights.items()},
        )

    def _own_spread(self, key: str) -> Spread:
        """Return the scatter of a group whose classes have their own."""
        own = [moments for label, moments in zip(self.labels, self.moments, strict=True) if self.group_of[label] == key]
        return Spread(sum(part.count - 1 for part in own), np.concatenate([part.factor for part in own]))

    def _shared(self, key: str) -> Self:
        """Return the table with one scatter for all classes of a group."""
        if key in self.spreads or self.keeps != "groups":
            return self
        whole = self._own_spread(key)
        by_label = {
            label: replace(record, moments=record.moments.without_spread())
            if self.group_of[label] == key and record.moments is not None
            else record
            for label, record in self.by_label.items()
        }
        spread = Spread.of(self.means.shape[1]).plus(whole.scatter, whole.freedom)
        return replace(self, by_label=by_label, spreads={**self.spreads, key: spread})

    # What needs single samples

    def learn(self, step: Step) -> Never:
        """Refuse: `learn_rows` learns."""
        refuse("learn without its method")

    def announce(self, text: Mapping[Label, Floats], domain: str | None) -> Never:
        """Refuse: a class has moments."""
        refuse("name classes that have no images yet")

    def remove(self, step: Step) -> Never:
        """Refuse: no sample is left to take back."""
        refuse("take back single images; it can forget a whole class")

    def check_samples(self, needed_to: str) -> Never:
        """Refuse what needs samples."""
        refuse(needed_to)

    def stacked(self) -> Never:
        """Refuse: there are no samples."""
        refuse("hold images out, be tuned, or be changed to another method")


def refuse(what: str) -> Never:
    """Raise the error that says what a sealed model cannot do, and why."""
    raise HyCalError(
        f"This model is sealed: it has no embeddings of single images, so it cannot {what}. Nothing was changed. Use "
        "the model that it was sealed from."
    )


def found_key(domain: str, number: int) -> str:
    """Return the key of a group that was found in a domain, or among all domains: ""."""
    return f"{domain}{_FOUND}{number}"


def _free_numbers(taken: Iterable[str]) -> Iterator[int]:
    """Yield numbers that no key of a group has."""
    keys = [*taken]
    return (number for number in count() if not any(key.endswith(f"{_FOUND}{number}") for key in keys))


def _text(label: Label, record: ClassRecord) -> dict[Label, Floats]:
    return {} if record.text is None else {label: record.text}


def _distance(one: Doubles, other: npt.NDArray[np.floating]) -> float:
    return float(np.sum((one - other) ** 2))
