"""What a classifier can be asked: scores, labels, probabilities, and what it would say of its own samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.leave_one_out import HeldOut, Samples, held_out
from hycal.memory import Derived
from hycal.records import Records
from hycal.scoring import probabilities
from hycal.validation import Doubles, Floats


class Answers:
    """The questions; a classifier provides scores of its present model."""

    @abstractmethod
    def _answer(self, X: npt.ArrayLike, classes: Iterable[Any] | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the scores and the labels of their columns, both of one and the same model."""

    @abstractmethod
    def _current(self) -> Derived:
        """Return what is derived from the present records and parameters."""

    @abstractmethod
    def _derive(self, records: Records, previous: Any) -> Any:
        """Return what `_score` needs. `previous` is what the last call returned under equal parameters, or None."""

    @abstractmethod
    def _score(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
        """Return (n, classes) scores, larger is better, for the classes at `columns`; None means all of them."""

    def _leave_one_out(self, derived: Any, records: Records, samples: Samples) -> npt.NDArray[Any] | None:
        """Return the scores of `samples`, of classes of two or more, each by the model without it; None: derive again.

        Parameters that the method chose itself on the samples stay as they are.
        """
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
        return self._answer(X, classes)[0]

    def predict(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> npt.NDArray[Any]:
        """Return the best label for each query, out of `classes` if given; the first of equals."""
        scores, labels = self._answer(X, classes)
        return labels[scores.argmax(axis=1)]

    def predict_proba(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> Doubles:
        """Return class probabilities, shape (n, C): the softmax of `decision_function`, not calibrated."""
        return probabilities(self.decision_function(X, classes))

    def leave_one_out(self, rows: npt.ArrayLike | None = None) -> HeldOut:
        """Return the score of every learned sample by the model that never saw it; exact.

        Parameters
        ----------
        rows : array-like of int, optional
            Which samples, counted class after class in the order of `classes_`; all by default.
        """
        current = self._current()
        wanted = None if rows is None else np.asarray(rows, dtype=np.intp)
        return held_out(self, current.value, current.records, Samples.of(current.records, wanted))
