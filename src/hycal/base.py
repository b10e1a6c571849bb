"""The base of every method: what a classifier learns, answers, forgets and saves.

A classifier's state is its parameters and its `Records`, which are never changed in place: each operation checks
everything, builds the next table and installs it in one assignment. So a failed call changes nothing, and a concurrent
reader sees the old model or the new one. What scoring needs is derived from the records at the first question.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.method import Method
from hycal.sealing import Sealable
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.state.snapshot import Memory, Snapshot
from hycal.state.steps import Step
from hycal.storage import model_file
from hycal.storage.atomic import check_replaceable
from hycal.storage.codec import content_of, rounded
from hycal.uncertainty.calibration import Calibration
from hycal.uncertainty.carried import calibration_of
from hycal.uncertainty.leave_one_out import SCORES_AT_ONCE, HeldOutScores, leaves_out_quickly, score_held_out
from hycal.uncertainty.tuning import choose_parameters
from hycal.uncertainty.unknown import check_share, rejected
from hycal.validation import (
    Doubles,
    Floats,
    ModelKind,
    check_expected,
    check_label,
    check_labels,
    check_mergeable,
    check_queries,
    check_samples,
    check_text,
)
from hycal.views.scorer import Viewed

TextByLabel = Mapping[Any, npt.ArrayLike] | None
_MODEL_MARK = b'"hycal":"{'  # in the header of every model file


class IncrementalClassifier(Viewed, Sealable, Method):
    """Base of all methods: learns any number of samples of any classes at any call.

    A method stores its parameters in `__init__`, declares their valid values in `_parameter_constraints` as
    scikit-learn's estimators do, and implements `derive` and `score_rows`. All else is inherited, and the laws in
    `hycal.testing` hold as long as `derive` depends on the records alone. CONTRIBUTING.md shows how to write a method.

    Attributes
    ----------
    n_features_in_ : int
        Embedding dimension.
    encoder_ : str or None
        Fingerprint of the encoder that made the embeddings, if the caller set it. Kept in the model file; models of
        different encoders do not merge.
    """

    encoder_: str | None = None
    _records: Records | None = None
    _memory: Memory

    # Learning

    def fit(self, X: npt.ArrayLike, y: Any, *, domain: str | None = None, text: TextByLabel = None) -> Self:
        """Forget everything, then learn. Parameters as `partial_fit`."""
        self._learn(Records({}), self.check_step(X, y, domain, text))
        return self

    def partial_fit(
        self, X: npt.ArrayLike, y: Any, *, domain: str | None = None, text: TextByLabel = None, classes: Any = None
    ) -> Self:
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
        classes : iterable of labels, optional
            The labels that y may have, as scikit-learn passes them. Not needed: a new class may come at any call.
        """
        step = self.check_step(X, y, domain, text, width=self._width)
        check_expected(step.samples, classes)
        self._learn(self._records or Records({}), step)
        return self

    def announce(self, text: Mapping[Any, npt.ArrayLike], *, domain: str | None = None) -> Self:
        """Name classes to come: from now on they are candidates, scored by their text until images are learned.

        Only for methods that can score a class by its text alone. A class that is known already keeps its images; a
        domain that is not given here is that of the first `partial_fit`.
        """
        self.check_parameters()
        vectors = check_text(text, width=self._width, views=self.views)
        if not vectors:
            raise HyCalError("No classes were announced. Pass text={label: vector} with at least one label.")
        check_label(domain or "")
        self.install((self._records or Records({})).announce(vectors, domain))
        return self

    def forget(self, labels: Any) -> Self:
        """Forget one label, or several: afterwards the model is the one that never saw them.

        Records and saved files are so at once. Of many samples, what was fitted to all follows later, or by `refresh`.
        """
        wanted = [labels] if isinstance(labels, str | int | float | np.generic) else labels
        self.install(self.records_.forget(map(check_label, wanted)))
        return self

    def unlearn(self, X: npt.ArrayLike, y: Any) -> Self:
        """Take back single samples: afterwards the model is the one that never saw them.

        X holds embeddings exactly as they were learned, y their labels. A class that loses its last sample is gone.
        """
        self.install(self.records_.remove(self.check_step(X, y, width=self._width)))
        return self

    def merge(self, other: IncrementalClassifier) -> Self:
        """Learn all that `other` learned: afterwards the model is the one that saw both streams."""
        pair = (self, other)
        check_mergeable(*(ModelKind(type(one).__name__, one._width, one.encoder_, "", one.views) for one in pair))
        self.install(self.merged(self.records_, other))
        self.encoder_ = self.encoder_ or other.encoder_
        return self

    def tune(self) -> Self:
        """Set the parameters to those of `tuning_grid` under which learned samples, left out in turn, are most likely.

        Uses training samples alone, and changes none of them.
        """
        return self.set_params(**choose_parameters(self, self.snapshot().records.seen))

    def with_records(self, records: Records) -> Self:
        """Return a classifier of the same parameters that knows `records`; this one stays as it is.

        What was derived from classes that both know is used again, so a small step from a large model stays cheap.
        """
        other = copy.copy(self)
        other.install(records)
        if self._records is not None:
            other._memory.last = self._memory.last
        return other

    def install(self, records: Records) -> None:
        """Replace all that was learned by `records`, in one step."""
        self.scorer.check_records(records)
        self._memory = Memory() if self._records is None else self._memory
        self._records = records
        if records.by_label:
            self.n_features_in_ = records.width

    def check_step(
        self, X: npt.ArrayLike, y: Any, domain: str | None = None, text: TextByLabel = None, *, width: int | None = None
    ) -> Step:
        """Return the arguments of `partial_fit` as a validated step; `width` is the expected dimension, if any."""
        self.check_parameters()
        wide = width or sum(self.views or ()) or None
        embeddings = check_samples(X, width=wide, owner=type(self).__name__, views=self.views)
        labels = check_labels(y, rows=len(embeddings))
        check_label(domain or "")
        return Step.of(embeddings, labels, domain, check_text(text, width=embeddings.shape[1], views=self.views))

    def _learn(self, records: Records, step: Step) -> None:
        learned = self.learned(records, step)
        self.scorer.check_records(learned)
        self.install(learned.with_memo(self.remember(records.memo, step)))

    # Questions

    def decision_function(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> npt.NDArray[Any]:
        """Return one score per query and class, shape (n, C), larger is better.

        Parameters
        ----------
        X : array-like of shape (n, d)
        classes : iterable of labels, optional
            Candidates; the columns follow them. All learned classes by default, in the order of `classes_`.
        """
        return self._answer(self.snapshot(), self.check_queries(X), classes)[0]

    def predict(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> npt.NDArray[Any]:
        """Return the best label for each query, out of `classes` if given; the first of equals."""
        snapshot, queries, wanted = self.snapshot(), self.check_queries(X), None if classes is None else list(classes)
        step = max(SCORES_AT_ONCE // len(snapshot.records.labels), 1)
        parts = (self._answer(snapshot, queries[i : i + step], wanted) for i in range(0, len(queries), step))
        return np.concatenate([labels[scores.argmax(axis=1)] for scores, labels in parts])

    def predict_proba(self, X: npt.ArrayLike, classes: Iterable[Any] | None = None) -> Doubles:
        """Return class probabilities, shape (n, C), calibrated on held-out training samples and on small problems.

        They are the softmax of `decision_function` divided by `temperature_`, or an average over temperatures around it
        (`hycal.uncertainty.calibration`). A share of 1/(2 (n + 1)), with n the number of learned samples, is spread
        evenly over the classes: n samples cannot show that there are no errors. The first call holds out up to 1,000
        samples, of more than 10,000 classes fewer, or 30 where a method has no closed form for that.
        """
        snapshot, queries = self.snapshot(), self.check_queries(X)
        return calibration_of(self.scorer, snapshot).probabilities(self._answer(snapshot, queries, classes)[0])

    def predict_set(
        self, X: npt.ArrayLike, coverage: float = 0.9, classes: Iterable[Any] | None = None
    ) -> list[npt.NDArray[Any]]:
        """Return for each query the labels among which the right one is, with a chance of `coverage` or more.

        The most probable label comes first; no set is empty. Conformal prediction from leave-one-out probabilities. The
        chance is that of queries drawn as the held-out samples are, about as many of every class; a query of a class
        never learned, or of images of another kind, has no such promise. With two images of each class the held-out
        probabilities are too good: for five such classes and a coverage of 90%, `benchmarks.small` measures 83 to 89%.
        """
        check_share("coverage", coverage)
        snapshot = self.snapshot()
        scores, labels = self._answer(snapshot, self.check_queries(X), classes)
        calibration = calibration_of(self.scorer, snapshot)
        sizes = calibration.sets(chances := calibration.probabilities(scores), coverage).sum(axis=1)
        return [labels[np.argsort(-row, kind="stable")[:size]] for row, size in zip(chances, sizes, strict=True)]

    def familiarity(self, X: npt.ArrayLike) -> Doubles:
        """Return how well queries fit what was learned, shape (n,): 0 for a typical sample."""
        return self.familiarity_(self.check_queries(X))

    def unknown(self, X: npt.ArrayLike, error: float = 0.05) -> npt.NDArray[np.bool_]:
        """Return which queries belong to no learned class; `error` is the share of held-out samples to reject."""
        check_share("error", error)
        known = self.familiarity_
        return rejected(known(self.check_queries(X)), known.threshold(error))

    def leave_one_out(self, rows: npt.ArrayLike | None = None) -> HeldOutScores:
        """Return the score of every learned sample by the model that never saw it.

        Exact, except for what a method keeps as it is: parameters that it chose itself, and in HierarchicalHyCal the
        weights of evidence and part of the global prior. A method without a closed form may leave out up to a tenth of
        each class at once; its notes say so. `rows` are positions of samples, or a mask of all, counted
        class after class in the order of `classes_`; all by default.
        """
        snapshot = self.snapshot()
        wanted = None if rows is None else np.arange(int(snapshot.records.counts.sum()))[np.asarray(rows)]
        return score_held_out(self.scorer, snapshot.value, snapshot.records, Selection.of(snapshot.records, wanted))

    def leaves_out_quickly(self) -> bool:
        """Whether `leave_one_out` has a closed form or derives a few models; if not, it derives one for each sample."""
        value, records = self.snapshot().value, self.records_
        one = spread(records, np.arange(len(records.counts)), 1)
        return not len(one.rows) or leaves_out_quickly(self.scorer, value, records, one)

    def check_queries(self, X: npt.ArrayLike) -> Floats:
        """Return queries as unit rows of the model's width, or say what is wrong with them."""
        return check_queries(X, width=self.records_.width, owner=type(self).__name__, views=self.views)

    def snapshot(self) -> Snapshot:
        """Return what is derived from the present records and parameters, deriving it if they changed."""
        parameters = self.get_params()
        last = None if self._records is None else self._memory.last
        usable = last if last is not None and last.parameters == parameters else None
        if usable is not None and usable.records is self._records:
            return usable  # derived under parameters that were checked
        self.check_parameters()
        records = self.records_
        if not records.by_label:
            raise HyCalError("Every class was forgotten, so there is nothing to choose from. Learn a class first.")
        self.scorer.check_records(records)
        value, known = self.derived(records, None if usable is None else usable.value)
        earlier = {} if usable is None else usable.passed_on()
        snapshot = self._memory.last = Snapshot(records, parameters, value, known, earlier)
        return snapshot

    def refresh(self) -> Self:
        """Drop all that was computed: the next answer is that of a model built anew. Nothing learned is lost."""
        self._memory = Memory()
        return self

    def _answer(
        self, snapshot: Snapshot, queries: Floats, classes: Iterable[Any] | None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the scores and the labels of their columns, both of one and the same model."""
        columns = None if classes is None else snapshot.records.columns(classes)
        scores = self.scorer.score_rows(snapshot.value, queries, columns)
        return scores, snapshot.records.classes if columns is None else snapshot.records.classes[columns]

    # What was learned

    @property
    def records_(self) -> Records:
        """Everything that was learned: an immutable table."""
        if self._records is None:
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)
        assert self._records is not None
        return self._records

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Labels, sorted; columns of scores follow it."""
        return self.records_.classes

    @property
    def counts_(self) -> npt.NDArray[np.int64]:
        """Samples learned of each class."""
        return self.records_.counts

    @property
    def domains_(self) -> npt.NDArray[Any]:
        """Domain of each class, "" where none was named."""
        return self.records_.domains

    @property
    def nbytes_(self) -> int:
        """Bytes of state: what a model file stores."""
        return self.records_.nbytes

    @property
    def calibration_(self) -> Calibration:
        """What turns scores into probabilities."""
        return calibration_of(self.scorer, self.snapshot())

    @property
    def temperature_(self) -> float:
        """What scores are divided by in `predict_proba`: fitted to held-out samples, with a prior."""
        return self.calibration_.temperature

    def save(self, path: str | PathLike[str], *, precision: str = "single") -> None:
        """Write the model to `path`, or over a model that is there; `load` reads it. "half" rounds to three digits."""
        check_replaceable(Path(path), _MODEL_MARK)
        content = content_of(self.records_, type(self).__name__, self.stored_parameters, self.encoder_)
        model_file.write(path, rounded(content, precision))

    @property
    def _width(self) -> int | None:
        return getattr(self, "n_features_in_", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_memory"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._memory = Memory()
