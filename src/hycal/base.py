"""What every incremental classifier shares: validation, the records and the algebra on them, the model file.

A classifier's state is its parameters and its `Records`, which are never changed in place: each operation checks
everything, builds the next table and installs it in one assignment. So a failed call changes nothing, and a concurrent
reader sees the old model or the new one. What scoring needs is derived from the records on first use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

from hycal import modelfile
from hycal.contents import content_of
from hycal.errors import HyCalError
from hycal.records import Records, Step
from hycal.scoring import probabilities
from hycal.validation import (
    Doubles,
    Floats,
    Label,
    check_embeddings,
    check_label,
    check_labels,
    check_text,
    unit_queries,
    unit_rows,
)

TextByLabel = Mapping[Any, npt.ArrayLike] | None


@dataclass(frozen=True, eq=False)
class _Derived:
    """What scoring needs, with the records and parameters it was derived from."""

    records: Records
    parameters: Mapping[str, Any]
    value: Any


class _Memory:
    """Holds the last `_Derived`, so that answering changes nothing of the classifier itself."""

    last: _Derived | None = None


class IncrementalClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: learns any number of samples of any classes at any call.

    A subclass stores its parameters in `__init__`, declares their valid values in `_parameter_constraints`, and
    implements `_derive` (what scoring needs, from the records) and `_score`. Everything else is inherited, and the laws
    in `hycal.laws` hold by construction as long as `_derive` depends on the records alone.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, sorted; columns of scores follow it.
    counts_ : ndarray of shape (C,)
        Samples learned of each class.
    domains_ : ndarray of shape (C,)
        Domain of each class, "" where none was named.
    nbytes_ : int
        Bytes of state: what a model file stores.
    n_features_in_ : int
        Embedding dimension.
    encoder_ : str or None
        Fingerprint of the encoder that made the embeddings, if the caller set it. Kept in the model file; models of
        different encoders do not merge.
    """

    #: Laws this method cannot keep, with the reason. See `hycal.laws`.
    broken_laws: ClassVar[Mapping[str, str]] = {}
    encoder_: str | None = None
    _records: Records | None = None
    _memory: _Memory

    @abstractmethod
    def _derive(self, records: Records, previous: Any) -> Any:
        """Return what `_score` needs. `previous` is what the last call returned under equal parameters, or None."""

    @abstractmethod
    def _score(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
        """Return (n, classes) scores, larger is better, for the classes at `columns`; None means all of them."""

    def _check_records(self, records: Records) -> None:
        """Refuse records that the method cannot use, such as classes without text."""

    # Learning

    def fit(self, X: npt.ArrayLike, y: Any, *, domain: str | None = None, text: TextByLabel = None) -> Self:
        """Forget everything, then learn. Parameters as `partial_fit`."""
        self._install(Records({}).learn(self._step(X, y, domain, text, width=None)))
        return self

    def partial_fit(self, X: npt.ArrayLike, y: Any, *, domain: str | None = None, text: TextByLabel = None) -> Self:
        """Learn samples of new or known classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Image embeddings. Rows are scaled to unit length.
        y : array-like of shape (n,)
            Labels, str or int. A label that comes again is an update.
        domain : str, optional
            Domain of these classes. The same label in two domains is an error.
        text : mapping, optional
            Unit text embedding by label. Needed once for each class where the method uses text.

        Returns
        -------
        self
        """
        records = self._records or Records({})
        self._install(records.learn(self._step(X, y, domain, text, width=self._width)))
        return self

    def forget(self, labels: Any) -> Self:
        """Forget one label, or several: afterwards the model is the one that never saw them."""
        wanted = [labels] if isinstance(labels, str | int | np.generic) else list(labels)
        self._install(self._table.forget(check_label(label) for label in wanted))
        return self

    def unlearn(self, X: npt.ArrayLike, y: Any) -> Self:
        """Take back single samples: afterwards the model is the one that never saw them.

        Parameters
        ----------
        X, y
            Embeddings exactly as they were learned, with their labels. A class that loses its last sample is gone.
        """
        table = self._table
        self._install(table.remove(self._step(X, y, None, None, width=self._width)))
        return self

    def merge(self, other: IncrementalClassifier) -> Self:
        """Learn all that `other` learned: afterwards the model is the one that saw both streams."""
        if type(other) is not type(self):
            raise HyCalError(
                f"Cannot merge a {type(other).__name__} into a {type(self).__name__}; expected the same method. "
                "Nothing was changed."
            )
        mine, theirs = self._table, other._table
        if other._width != self._width:
            raise HyCalError(
                f"Cannot merge: this model has {self._width} dimensions and the other {other._width}. "
                "Both must be learned with the same encoder."
            )
        if None not in (self.encoder_, other.encoder_) and self.encoder_ != other.encoder_:
            raise HyCalError(
                f"Cannot merge: this model was learned with encoder {self.encoder_} and the other with "
                f"{other.encoder_}. Their spaces have nothing in common; encode the images of one again."
            )
        self._install(mine.merge(theirs))
        self.encoder_ = self.encoder_ or other.encoder_
        return self

    # Answering

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

    # What was learned

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Labels, sorted."""
        return self._table.classes

    @property
    def counts_(self) -> npt.NDArray[np.int64]:
        """Samples learned of each class."""
        return self._table.counts

    @property
    def domains_(self) -> npt.NDArray[Any]:
        """Domain of each class."""
        return self._table.domains

    @property
    def nbytes_(self) -> int:
        """Bytes of state."""
        return self._table.nbytes

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to `path`; read it back with `hycal.load`."""
        parameters = self.get_params(deep=False)
        modelfile.write(path, content_of(self._table, type(self).__name__, parameters, self.encoder_))

    # Inside

    @property
    def _table(self) -> Records:
        check_is_fitted(self)
        assert self._records is not None
        return self._records

    @property
    def _width(self) -> int | None:
        return getattr(self, "n_features_in_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return self._records is not None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_memory"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._memory = _Memory()

    def _step(self, X: npt.ArrayLike, y: Any, domain: str | None, text: TextByLabel, *, width: int | None) -> Step:
        self._check_params()
        embeddings = unit_rows(check_embeddings(X, width=width, owner=type(self).__name__))
        labels = check_labels(y, rows=len(embeddings))
        if domain is not None:
            check_label(domain)
        return Step.of(embeddings, labels, domain, check_text(text, width=embeddings.shape[1]))

    def _check_params(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise HyCalError(str(error)) from None

    def _install(self, records: Records) -> None:
        self._check_records(records)
        if self._records is None:
            self._memory = _Memory()
        self._records = records
        if records.by_label:
            self.n_features_in_ = records.width

    def _answer(self, X: npt.ArrayLike, classes: Iterable[Any] | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the scores and the labels of their columns, both of one and the same model."""
        current = self._current()
        columns = _columns(current.records, classes)
        queries = unit_queries(check_embeddings(X, width=current.records.width, owner=type(self).__name__))
        labels = current.records.classes
        return self._score(current.value, queries, columns), labels if columns is None else labels[columns]

    def _current(self) -> _Derived:
        """Return what is derived from the present records and parameters, building it if they changed."""
        self._check_params()
        records, parameters = self._table, self.get_params(deep=False)
        last = self._memory.last
        usable = last if last is not None and last.parameters == parameters else None
        if usable is not None and usable.records is records:
            return usable
        if not records.by_label:
            raise HyCalError("Every class was forgotten, so there is nothing to choose from. Learn a class first.")
        self._check_records(records)
        value = self._derive(records, None if usable is None else usable.value)
        current = self._memory.last = _Derived(records, parameters, value)
        return current


def _columns(records: Records, classes: Iterable[Any] | None) -> npt.NDArray[np.intp] | None:
    if classes is None:
        return None
    labels: list[Label] = [check_label(label) for label in classes]
    if not labels:
        raise HyCalError("No candidate classes were given. Pass at least one label, or None for all.")
    records.check_known(labels)
    return np.array([records.column_of[label] for label in labels], dtype=np.intp)
