"""What a classifier can be asked: scores, labels, probabilities, and what it would say of its own samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.scores import probabilities
from hycal.memory import Derived
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.uncertainty.calibration import Calibration
from hycal.uncertainty.leave_one_out import HeldOut, has_closed_form, held_out
from hycal.uncertainty.unknown import Familiarity, check_share, rejected
from hycal.validation import Doubles, Floats


class Answers:
    """The questions; a classifier provides scores of its present model."""

    @abstractmethod
    def _answer(
        self, current: Derived, X: npt.ArrayLike, classes: Iterable[Any] | None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the scores and the labels of their columns, both of one and the same model."""

    @abstractmethod
    def _queries(self, X: npt.ArrayLike) -> Floats:
        """Return queries as unit rows of the model's width."""

    @abstractmethod
    def _current(self) -> Derived:
        """Return what is derived from the present records and parameters."""

    @abstractmethod
    def _derive(self, records: Records, previous: Any) -> Any:
        """Return what `_score` needs. `previous` is what the last call returned under equal parameters, or None."""

    @abstractmethod
    def _score(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
        """Return (n, classes) scores, larger is better, for the classes at `columns`; None means all of them."""

    def _leave_one_out(self, derived: Any, records: Records, samples: Selection) -> npt.NDArray[Any] | None:
        """Return the scores of `samples`, of classes of two or more, each by the model without it; None: derive again.

        Parameters that the method chose itself on the samples stay as they are.
        """
        return None

    def _held_out_by(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the same under each value of a parameter, where values share much of the work; None: one by one."""
        return None

    @property
    def _temperature(self) -> float | None:
        """The temperature of scores that are log probabilities already; None where it is to be fitted."""
        return None

    def decision_function(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> npt.NDArray[Any]:
        """Return one score per query and class, larger is better.

        Parameters
        ----------
        X : array-like of shape (n, d)
        classes : iterable of labels, optional
            Candidates; the columns follow them. All learned classes by default, in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n, C)
        """
        return self._answer(self._current(), X, classes)[0]

    def predict(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> npt.NDArray[Any]:
        """Return the best label for each query, out of `classes` if given; the first of equals."""
        scores, labels = self._answer(self._current(), X, classes)
        return labels[scores.argmax(axis=1)]

    def predict_proba(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> Doubles:
        """Return class probabilities, shape (n, C), calibrated on held-out training samples.

        They are the softmax of `decision_function` divided by `temperature_`. The first call after a change holds out
        up to 1,000 samples; where a method has no closed form for that, 30, and derives a model for each.
        """
        current = self._current()
        return probabilities(self._answer(current, X, classes)[0], self._calibration(current).temperature)

    def predict_set(
        self, X: npt.ArrayLike, coverage: float = 0.9, classes: Iterable[Any] | None = None
    ) -> list[npt.NDArray[Any]]:
        """Return for each query the labels among which the right one is, with a chance of `coverage` or more.

        Conformal prediction from leave-one-out probabilities. The chance is that of queries drawn as the held-out
        samples are, about as many of every class; a query of a class never learned, or of images of another kind,
        has no such promise.

        Returns
        -------
        list of arrays of labels
            The most probable first. Never empty.
        """
        check_share("coverage", coverage)
        current = self._current()
        scores, labels = self._answer(current, X, classes)
        calibration = self._calibration(current)
        chances = probabilities(scores, calibration.temperature)
        sizes = calibration.sets(chances, coverage).sum(axis=1)
        return [labels[np.argsort(-row, kind="stable")[:size]] for row, size in zip(chances, sizes, strict=True)]

    @property
    def temperature_(self) -> float:
        """What scores are divided by in `predict_proba`: maximises the likelihood of held-out samples."""
        return self._calibration(self._current()).temperature

    def familiarity(self, X: npt.ArrayLike) -> Doubles:
        """Return how well queries fit what was learned, shape (n,): 0 for a typical sample."""
        return self._familiarity(self._current())(self._queries(X))

    def unknown(self, X: npt.ArrayLike, error: float = 0.05) -> npt.NDArray[np.bool_]:
        """Return which queries belong to no learned class.

        Parameters
        ----------
        X : array-like of shape (n, d)
        error : float, default=0.05
            Share of learned images that may be rejected, measured on held-out samples.
        """
        check_share("error", error)
        known = self._familiarity(self._current())
        return rejected(known(self._queries(X)), known.threshold(error))

    def leave_one_out(self, rows: npt.ArrayLike | None = None) -> HeldOut:
        """Return the score of every learned sample by the model that never saw it.

        Exact, but for what a method says it keeps: parameters it chose itself, and in HierarchicalHyCal the weights of
        evidence and some of what all data say.

        Parameters
        ----------
        rows : array-like of int, optional
            Which samples, or a mask of all, counted class after class in the order of `classes_`; all by default.
        """
        current = self._current()
        wanted = None if rows is None else np.arange(int(current.records.counts.sum()))[np.asarray(rows)]
        return held_out(self, current.value, current.records, Selection.of(current.records, wanted))

    def leaves_out_in_closed_form(self) -> bool:
        """Whether `leave_one_out` costs about as much as answers do; if not, it derives one model for each sample."""
        current = self._current()
        records = current.records
        rows = spread_rows(records, np.arange(len(records.counts)), 1)
        return not len(rows) or has_closed_form(self, current.value, records, Selection.of(records, rows))

    @staticmethod
    def _familiarity(current: Derived) -> Familiarity:
        def fit() -> Familiarity:
            return Familiarity.of(current.records.seen)  # of what was only announced there is no image to be like

        return current.once("familiarity", fit)

    def _calibration(self, current: Derived) -> Calibration:
        return current.once(
            "calibration", lambda: Calibration.of(self, current.value, current.records, self._temperature)
        )
