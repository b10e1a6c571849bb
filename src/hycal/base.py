"""What every incremental classifier shares: validation, the records and the algebra on them, the model file.

A classifier's state is its parameters and its `Records`, which are never changed in place: each operation checks
everything, builds the next table and installs it in one assignment. So a failed call changes nothing, and a concurrent
reader sees the old model or the new one. What scoring needs is derived from the records on first use.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

from hycal.answers import Answers
from hycal.errors import HyCalError
from hycal.memory import Derived, Memory
from hycal.state.records import Records
from hycal.state.steps import Step
from hycal.storage import model_file
from hycal.storage.codec import content_of
from hycal.uncertainty.tuning import chosen
from hycal.validation import Floats, check_label, check_labels, check_queries, check_samples, check_text

TextByLabel = Mapping[Any, npt.ArrayLike] | None


class IncrementalClassifier(Answers, ClassifierMixin, BaseEstimator):
    """Base of all methods: learns any number of samples of any classes at any call.

    A subclass stores its parameters in `__init__`, declares their valid values in `_parameter_constraints`, and
    implements `_derive` (what scoring needs, from the records) and `_score`. Everything else is inherited, and the laws
    in `hycal.testing.laws` hold by construction as long as `_derive` depends on the records alone.

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

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {}
    encoder_: str | None = None
    _records: Records | None = None
    _memory: Memory
    _parameter_names: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._parameter_names = cls._get_param_names()  # scikit-learn would read the signature again at every answer

    def _check_records(self, records: Records) -> None:
        """Refuse records that the method cannot use, such as classes without text, or a memo it never wrote."""
        if not self._scores_unseen:
            records.check_seen(type(self).__name__)
        if records.memo:
            raise HyCalError(f"{type(self).__name__} remembers nothing beside the samples, but found {records.memo}.")

    def _remember(self, memo: Mapping[str, Any], step: Step) -> Mapping[str, Any]:
        """Return what to remember beside the samples, as JSON values, once `step` is learned after `memo`."""
        return memo

    @property
    def _scores_unseen(self) -> bool:
        """Whether a class that has a text and no images yet can be a candidate."""
        return False

    @property
    def broken_laws(self) -> Mapping[str, str]:
        """Laws this method cannot keep under its parameters, with the reason. See `hycal.testing.laws`."""
        return {}

    # Learning

    def fit(self, X: npt.ArrayLike, y: Any, *, domain: str | None = None, text: TextByLabel = None) -> Self:
        """Forget everything, then learn. Parameters as `partial_fit`."""
        self._learn(Records({}), self._step(X, y, domain, text, width=None))
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
        self._learn(self._records or Records({}), self._step(X, y, domain, text, width=self._width))
        return self

    def announce(self, text: Mapping[Any, npt.ArrayLike], *, domain: str | None = None) -> Self:
        """Name classes to come: candidates from now on, told by their text until images of them are learned.

        Only for methods that can score a class by its text alone. A class that is known already keeps its images; a
        domain that is not given here is that of the first `partial_fit`.
        """
        self._check_params()
        vectors = check_text(text, width=self._width)
        if not vectors:
            raise HyCalError("No classes were announced. Pass text={label: vector} with at least one label.")
        check_label(domain or "")
        self._install((self._records or Records({})).announce(vectors, domain))
        return self

    def forget(self, labels: Any) -> Self:
        """Forget one label, or several: afterwards the model is the one that never saw them."""
        wanted = [labels] if isinstance(labels, str | int | float | np.generic) else list(labels)
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
        mine = self._table
        _check_alike(self, other)
        self._install(mine.merge(other._table))
        self.encoder_ = self.encoder_ or other.encoder_
        return self

    def tune(self) -> Self:
        """Set the parameters to those under which learned samples, each left out in turn, are most likely.

        Uses training samples alone, and changes none of them.
        """
        return self.set_params(**chosen(self, self._current().records.seen))

    def knowing(self, records: Records) -> Self:
        """Return a classifier of the same parameters that knows `records`; this one stays as it is.

        What was derived from classes that both know is used again, so a small step from a large model stays cheap.
        """
        other = copy.copy(self)
        other._install(records)
        if self._records is not None:
            other._memory.last = self._memory.last
        return other

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
        model_file.write(path, content_of(self._table, type(self).__name__, parameters, self.encoder_))

    # Inside

    @property
    def _table(self) -> Records:
        if self._records is None:
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
        self._memory = Memory()

    def _step(self, X: npt.ArrayLike, y: Any, domain: str | None, text: TextByLabel, *, width: int | None) -> Step:
        self._check_params()
        embeddings = check_samples(X, width=width, owner=type(self).__name__)
        labels = check_labels(y, rows=len(embeddings))
        check_label(domain or "")
        return Step.of(embeddings, labels, domain, check_text(text, width=embeddings.shape[1]))

    def _check_params(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise HyCalError(str(error)) from None

    def _learn(self, records: Records, step: Step) -> None:
        learned = records.learn(step)
        self._check_records(learned)
        self._install(learned.remembering(self._remember(records.memo, step)))

    def _install(self, records: Records) -> None:
        self._check_records(records)
        if self._records is None:
            self._memory = Memory()
        self._records = records
        if records.by_label:
            self.n_features_in_ = records.width

    def _answer(
        self, current: Derived, X: npt.ArrayLike, classes: Iterable[Any] | None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the scores and the labels of their columns, both of one and the same model."""
        columns = None if classes is None else current.records.columns(classes)
        queries = self._queries(X)
        labels = current.records.classes
        return self._score(current.value, queries, columns), labels if columns is None else labels[columns]

    def _queries(self, X: npt.ArrayLike) -> Floats:
        return check_queries(X, width=self._table.width, owner=type(self).__name__)

    def _current(self) -> Derived:
        """Return what is derived from the present records and parameters, building it if they changed."""
        parameters = {name: getattr(self, name) for name in self._parameter_names}
        last = None if self._records is None else self._memory.last
        usable = last if last is not None and last.parameters == parameters else None
        if usable is not None and usable.records is self._records:
            return usable  # derived under parameters that were checked
        self._check_params()
        records = self._table
        if not records.by_label:
            raise HyCalError("Every class was forgotten, so there is nothing to choose from. Learn a class first.")
        self._check_records(records)
        value = self._derive(records, None if usable is None else usable.value)
        current = self._memory.last = Derived(records, parameters, value)
        return current


def _check_alike(one: IncrementalClassifier, other: IncrementalClassifier) -> None:
    """Refuse to merge models of two methods, widths or encoders."""
    if type(other) is not type(one):
        raise HyCalError(
            f"Cannot merge a {type(other).__name__} into a {type(one).__name__}; expected the same method. "
            "Nothing was changed."
        )
    if other._width != one._width:
        raise HyCalError(
            f"Cannot merge: this model has {one._width} dimensions and the other {other._width}. "
            "Both must be learned with the same encoder."
        )
    if None not in (one.encoder_, other.encoder_) and one.encoder_ != other.encoder_:
        raise HyCalError(
            f"Cannot merge: this model was learned with encoder {one.encoder_} and the other with "
            f"{other.encoder_}. Their spaces have nothing in common; encode the images of one again."
        )
