"""Sealing: a model without embeddings of single images, and what a method says about it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords, refuse
from hycal.state.snapshot import Snapshot
from hycal.state.steps import Step
from hycal.uncertainty.calibration import Calibration, TemperaturePrior
from hycal.uncertainty.carried import Carried
from hycal.uncertainty.unknown import ClassSimilarity, Familiarity
from hycal.validation import Doubles, Floats, Label

Model = TypeVar("Model")
_SCALE = "scale"  # number: that of the scores at sealing
_ROUNDING = 1e-3  # of its logarithm, also where a file rounds to half precision


@dataclass(frozen=True)
class Sealing:
    """How a method is sealed."""

    # "means" of classes alone, also the scatter of "groups" of classes, or also that of "classes"; "" if the method
    # cannot be sealed.
    keeps: str = ""
    reason: str = ""  # why it cannot be sealed; or what a sealed model leaves out, "" where that is nothing


@dataclass(frozen=True, eq=False)
class SealPlan:
    """What is sealed."""

    value: Any  # what `derive` would return if it used no more than a sealed model keeps: calibration is fitted to it
    group_of: Mapping[Label, str]
    own: frozenset[str] = frozenset()  # groups whose classes need scatters of their own
    # As in `SealedRecords`.
    weights: Mapping[str, Doubles] = field(default_factory=dict)
    numbers: Mapping[str, Doubles] = field(default_factory=dict)

    def table(self, method: Any, records: Records, numbers: Mapping[str, Doubles]) -> SealedRecords:
        """Return the sealed table of `records`, with `numbers` that were fitted on held-out samples."""
        table = replace(
            SealedRecords.of(records, method.seal_rows, method.sealing.keeps, self.group_of, self.own),
            weights=self.weights,
            numbers={**self.numbers, **numbers},
            parameters=method.get_params(deep=False),
        )
        return replace(table, numbers={**table.numbers, _SCALE: np.array([_scale(method, self.value, table)])})


class Sealable:
    """What a method may say about sealing, and the part of a classifier that knows of it."""

    #: What a sealed model of the method keeps, as `Sealing.keeps`; "" if it cannot be sealed.
    seals: ClassVar[str] = ""
    #: Why the method cannot be sealed, where it cannot.
    unsealable: ClassVar[str] = "it does not say which moments of a class it needs"

    @property
    def sealing(self) -> Sealing:
        """What a sealed model keeps under the present parameters."""
        return Sealing(self.seals, "" if self.seals else self.unsealable)

    def seal_rows(self, rows: Floats, text: Floats | None) -> npt.NDArray[np.floating]:
        """Return the rows that the method computes on, of embeddings of one class; those themselves by default."""
        return rows

    def seal_plan(self, value: Any, records: Records) -> SealPlan:
        """Return what is sealed of a model that derived `value`: the classes of a domain are a group by default."""
        return SealPlan(value, {label: record.domain for label, record in records.by_label.items()})

    def derive_sealed(self, table: SealedRecords) -> Any:
        """Return what `score_rows` needs, from moments; by default as from samples."""
        model: Any = self
        return model.derive(table, None)

    def check_sealed(self, table: SealedRecords) -> None:
        """Refuse a sealed table that the method cannot use: one that it never made."""
        sealing = self.sealing
        if not sealing.keeps:
            raise HyCalError(f"It is sealed, and {self} cannot be: {sealing.reason}.")
        if table.keeps != sealing.keeps:
            raise HyCalError(f"It keeps the {table.keeps} of samples, and {self} needs their {sealing.keeps}.")
        wide = self.seal_rows(np.eye(1, table.width, dtype=np.float32), table.ordered[0].text).shape[1]
        if table.means.shape[1] != wide:
            raise HyCalError(f"Its means are {table.means.shape[1]} numbers wide, and those of {self} are {wide}.")

    def adopted(self, table: SealedRecords) -> SealedRecords:
        """Return a sealed table of a file as one of this method, with its parameters; refuse one that it never made."""
        model: Any = self
        self.check_sealed(table)
        return replace(table, parameters=model.get_params(deep=False))

    def sealed_table(self, snapshot: Snapshot) -> SealedRecords:
        """Return what is kept of a snapshot."""
        model: Any = self
        records = snapshot.records
        plan = self.seal_plan(snapshot.value, records)
        same = plan.value is snapshot.value
        known = model.calibration_ if same else Calibration.of(model, plan.value, records, model.fixed_temperature)
        return plan.table(self, records, kept_numbers(known, Familiarity.of(records, most=0.0)))

    def seal(self: Model) -> Model:
        """Return a model without embeddings: classes keep counts, means, and scatters where the method needs them.

        It answers as this one does, learns and forgets classes and merges. What needs single images is refused.
        """
        model: Any = self
        records, sealing = model.records_, model.scorer.sealing
        if isinstance(records, SealedRecords):
            return copy.copy(self)
        if not sealing.keeps:
            raise HyCalError(
                f"{model} cannot be sealed: {sealing.reason}. Nothing was changed. `hycal remake` makes a model of the "
                "same images with another method."
            )
        if records.unseen or not records.by_label:
            raise HyCalError(
                "Only classes with images can be sealed. Nothing was changed. Learn images of every class, or forget "
                "those without."
            )
        sealed = copy.copy(model)
        sealed.install(model.scorer.sealed_table(model.snapshot()))
        return sealed

    @property
    def sealed_(self) -> bool:
        """Whether the model is sealed."""
        model: Any = self
        return isinstance(model.records_, SealedRecords)

    def derived(self, records: Records, previous: Any) -> tuple[Any, dict[str, Any]]:
        """Return what `score_rows` needs, and what else of a sealed model is known already."""
        model: Any = self
        if not isinstance(records, SealedRecords):
            return model.scorer.derive(records, previous), {}
        self._check_same(records, "answer")
        value = model.scorer.derive_sealed(records)
        return value, {"familiarity": model.scorer.kept_familiarity(value, records)}

    def kept_calibration(self, value: Any, table: SealedRecords) -> Calibration:
        """Return what a sealed table keeps of the calibration, with the temperature that the scores have now."""
        model: Any = self
        temperature, *own = table.numbers["calibration"].tolist()
        if _SCALE in table.numbers:
            growth = _scale(self, value, table) / float(table.numbers[_SCALE][0])
            temperature *= growth if abs(np.log(growth)) > _ROUNDING else 1.0
        return Calibration.known(temperature, np.array(own), table, model.fixed_temperature)

    def kept_familiarity(self, value: Any, table: SealedRecords) -> Any:
        """Return the measure of how well queries fit the classes, as a snapshot has it."""
        return Carried(familiarity_in(table), 0)

    def learned(self, records: Records, step: Step) -> Records:
        """Return the records with `step` learned."""
        if not isinstance(records, SealedRecords):
            return records.learn(step)
        self._check_same(records, "learn")
        model: Any = self
        return model.scorer.learned_moments(records, step)

    def learned_moments(self, table: SealedRecords, step: Step) -> SealedRecords:
        """Return a sealed table with `step` learned."""
        return table.learn_rows(step, self.seal_rows)

    def _check_same(self, table: SealedRecords, what: str) -> None:
        model: Any = self
        if model.get_params(deep=False) != table.parameters:
            refuse(f"{what} with other parameters")

    def merged(self, mine: Records, other: Any) -> Records:
        """Return `mine` merged with the records of another model, which is sealed for that if `mine` are."""
        theirs: Records = other.records_
        if isinstance(mine, SealedRecords):
            theirs = other.seal().records_
            if not isinstance(theirs, SealedRecords) or theirs.parameters != mine.parameters:
                refuse("be merged with a model of other parameters")
        elif isinstance(theirs, SealedRecords):
            raise HyCalError(
                "The other model is sealed and this one is not, so this one cannot take it in. Nothing was changed. "
                "Merge this one into the sealed one, or seal it first."
            )
        return mine.merge(theirs)


def kept_numbers(calibration: Calibration, familiarity: Familiarity) -> dict[str, Doubles]:
    """Return the numbers that were fitted on held-out samples."""
    known = rounded_numbers(calibration, familiarity.centre, familiarity.spread, familiarity.held_out)
    return {**known, "common": np.array([familiarity.similarity.common])}


def rounded_numbers(calibration: Calibration, centre: float, spread: float, held_out: Doubles) -> dict[str, Doubles]:
    """Return a calibration, and the familiarities of held-out samples with their centre and spread.

    Numbers of single samples are rounded, so that many samples that were never learned have the same: probabilities
    down to two digits, which makes prediction sets no smaller; familiarities to a tenth of a standard deviation.
    """
    return {
        "calibration": np.array([calibration.temperature, *_two_digits(calibration.own)]),
        "familiarity": np.array([centre, spread, *np.round(held_out, 1)]),
    }


def _two_digits(values: Doubles) -> Doubles:
    """Return positive numbers rounded down to two digits.

    >>> _two_digits(np.array([0.00567, 0.999, 1.0]))
    array([0.0056, 0.99  , 1.    ])
    """
    unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-300))) - 1.0)
    return np.asarray(np.floor(values / unit + 1e-9) * unit)


def _scale(method: Any, value: Any, table: SealedRecords) -> float:
    """Return the scale of the scores of a sealed model, as its class means tell it: the centre of the temperature.

    It is 1 where there is one class, as the temperature is.
    """
    return TemperaturePrior().centre(method, value, table) if len(table.labels) > 1 else 1.0


def familiarity_in(table: SealedRecords) -> Familiarity:
    """Return the measure that the numbers of a sealed table say."""
    centre, spread, *held_out = table.numbers["familiarity"]
    similarity = ClassSimilarity.of(table)
    if "common" in table.numbers:  # that of the samples that were held out, which are fewer than all
        similarity = replace(similarity, common=float(table.numbers["common"][0]))
    return Familiarity(similarity, float(centre), float(spread), None, 0.0, np.array(held_out))
