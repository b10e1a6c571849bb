"""What a method is: two functions that it implements, and what it may say about itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition, machine_bytes
from hycal.algebra.evidence import ScoreParts
from hycal.errors import HyCalError
from hycal.estimator import Estimator
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.state.snapshot import Snapshot
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats, Label

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder


class Method(Estimator):
    """From records to scores. `hycal.base.IncrementalClassifier` adds learning, questions and files."""

    #: Values that `tune` tries for each parameter, in this order.
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    #: Named parameters: "official", the authors' code; "hycal-paper", the paper's tables; "robust", for few shots.
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {"official": {}, "robust": {}}
    #: Parameters under which it compares directions alone, the state before calibration; None: the nearest class mean.
    direction_only: ClassVar[Mapping[str, Any] | None] = None
    #: Parameters under which the method uses images alone; None if it always needs the text of a class.
    without_text: ClassVar[Mapping[str, Any] | None] = {}
    #: The temperature of scores that are log probabilities, where samples are many; None: it is fitted.
    fixed_temperature: ClassVar[float | None] = None
    #: What `derive` fitted to all samples and keeps while few of them change; "": a step is exact up to rounding.
    kept_in_steps: ClassVar[str] = ""

    # What a method implements

    @abstractmethod
    def derive(self, records: Records, previous: Any) -> Any:
        """Return what `score_rows` needs. `previous` is what the last call returned under equal parameters, or None."""

    @abstractmethod
    def score_rows(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
        """Return (n, classes) scores of unit rows, larger is better, for the classes at `columns`; None means all."""

    # What a method may say

    @property
    def broken_laws(self) -> Mapping[str, str]:
        """Laws this method cannot keep under its parameters, with the reason. See `hycal.testing`."""
        return {}

    @property
    def rebuilt_because(self) -> str:
        """Why every step builds the model anew; "" where `derive` follows small changes of many samples."""
        return "its `derive` does not follow changes"

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Return the operations from `partial_fit` to the first answer, see `hycal.algebra.cost`; NaN if not stated."""
        return math.nan

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add the nodes that score unit `rows` to an ONNX graph; return the name of the (n, C) scores."""
        raise HyCalError(
            f"{type(self).__name__} cannot be exported to ONNX: it defines no `onnx_scores`. docs/reference/methods.md "
            "says which methods can. `hycal remake` makes a model of the same images with another method."
        )

    def parts_of(self, X: npt.ArrayLike) -> ScoreParts | None:
        """Return the scores of queries by one view with the kinds of evidence behind them; None if it cannot say."""
        return None

    def scores_without_each(self, derived: Any, records: Records, samples: Selection) -> npt.NDArray[Any] | None:
        """Return the scores of `samples`, each by the model without it; None if there is no closed form.

        The samples are of classes of two or more. Parameters that the method chose itself stay as they are.
        """
        return None

    def scores_inside(
        self, derived: Any, records: Records, samples: Selection, columns: npt.NDArray[np.intp]
    ) -> npt.NDArray[Any] | None:
        """Return `scores_without_each` of samples of one domain for its classes, at `columns`, if it costs less."""
        return None

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return `scores_without_each` for each value of a parameter, where sharing work pays; None: one by one."""
        return None

    def uses_texts(self, derived: Any) -> bool:
        """Whether the text of every class is part of its score."""
        return False

    @property
    def scores_announced(self) -> bool:
        """Whether a class that has a text and no images yet can be a candidate."""
        return False

    def check_records(self, records: Records) -> None:
        """Refuse records that the method cannot use, such as classes without text, or a memo that it never wrote."""
        if not self.scores_announced:
            records.check_seen(type(self).__name__)
        needed = self.least_bytes(records) if records.by_label else 0
        if needed and needed > machine_bytes():
            raise HyCalError(
                f"{self} needs {needed / 2**30:,.0f} GiB at least for this model; this machine has "
                f"{machine_bytes() / 2**30:,.0f}. Nothing was computed; choose smaller parameters."
            )
        if records.memo:
            raise HyCalError(f"{type(self).__name__} remembers samples alone, but found the memo {records.memo}.")

    def least_bytes(self, records: Records) -> int:
        """Return how much `derive` allocates at least, where a parameter decides it and not the records alone."""
        return 0

    def remember(self, memo: Mapping[str, Any], step: Step) -> Mapping[str, Any]:
        """Return what to remember beside the samples, as JSON values, once `step` is learned after `memo`."""
        return memo

    def rename_memo(self, memo: Mapping[str, Any], names: Mapping[Label, Label]) -> Mapping[str, Any]:
        """Return `memo` once classes are renamed; `names` has the new label of each old one."""
        return memo
