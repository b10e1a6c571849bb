"""Families of methods: linear in the embedding, beside CLIP's zero-shot scores, with a cache, with random features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition, regression
from hycal.algebra.discriminant_step import SteppedDiscriminant
from hycal.algebra.features import LinearHead
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.estimator import Interval, StrOptions
from hycal.state.records import Records, texts_of
from hycal.state.selection import Selection
from hycal.state.snapshot import Snapshot
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder

ZERO_SHOT: list[Any] = [StrOptions({"fuse", "none"})]
#: Of a covariance that all classes share, or those of a domain.
DOMAIN_CONSTRAINTS: Mapping[str, list[Any]] = {
    "covariance": [StrOptions({"pooled", "domain"})],
    "strength": [Interval(Real, 0, None, closed="neither")],
}
STRENGTHS = (50.0, 150.0, 500.0, 1500.0, 5000.0)
# A model file names these numbers: without a bound, a small file could ask for more than any machine holds.
N_COMPONENTS: list[Any] = [Interval(Integral, 1, 2**17, closed="both")]
ENSEMBLE: list[Any] = [Interval(Integral, 1, 2**7, closed="both")]
# Why methods cannot be sealed.
NEEDS_IMAGES = "it compares a query with every learned image"
RANDOM_STATE: list[Any] = [Interval(Integral, 0, 2**64, closed="left")]


class LinearClassifier(IncrementalClassifier):
    """A method whose `derive` returns a `LinearHead` on the embeddings themselves, or one of its kind."""

    def score_rows(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return what the head says."""
        return derived(X, columns)

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add one matrix product and one sum."""
        if not hasattr(snapshot.value, "weights"):
            raise HyCalError(f"{self!r} is not linear, so it cannot be exported to ONNX. Use its default parameters.")
        return graph.affine(rows, snapshot.value.weights, snapshot.value.bias)


class Discriminant(LinearClassifier):
    """A linear discriminant of classes that share a covariance: all of them, or those of a domain."""

    seals: ClassVar[str] = "groups"
    covariance: str
    strength: float

    @abstractmethod
    def regularisation(self, width: int, samples: int, classes: int, trace: float) -> tuple[float, float]:
        """Return the ridge and the gain of the pooled discriminant, given the trace of the scatter."""

    @property
    def rebuilt_because(self) -> str:
        """Covariances of domains are built anew."""
        return "covariances of domains are built anew" if self.covariance == "domain" else ""

    def followed(self, records: Records, previous: Any) -> SteppedDiscriminant | None:
        """Return the pooled discriminant of many samples, from that of a little before if possible; else None."""
        if self.covariance == "domain":
            return None
        rule = partial(self.regularisation, records.width)
        last = previous.after(records, rule) if isinstance(previous, SteppedDiscriminant) else None
        return SteppedDiscriminant.built(records, rule) if last is None else last

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the discriminant of all samples."""
        return regression(addition.samples, addition.width, addition.classes)


def text_weights(records: Records) -> Doubles:
    """Return the weights of the zero-shot classifier, 100 t_c, shape (C, d)."""
    return LOGIT_SCALE * texts_of(records.ordered)


class TextClassifier(IncrementalClassifier):
    """A method that always needs the text of a class, and can score a class by it alone."""

    without_text: ClassVar[None] = None
    #: What to use where there is no text.
    instead: ClassVar[str]

    @property
    def scores_announced(self) -> bool:
        """Every class is scored by its text."""
        return True

    def check_records(self, records: Records) -> None:
        """Refuse classes without text."""
        super().check_records(records)
        records.check_text(type(self).__name__, self.instead)


class ZeroShotFusion(IncrementalClassifier):
    """A method with a parameter `zero_shot`: "fuse" needs the text of every class, "none" uses images alone."""

    without_text: ClassVar[Mapping[str, Any]] = {"zero_shot": "none"}
    zero_shot: str

    @property
    def fuses(self) -> bool:
        """Whether zero-shot scores are added."""
        return self.zero_shot == "fuse"

    @property
    def scores_announced(self) -> bool:
        """Whether the text of a class alone can score it."""
        return self.fuses

    def check_records(self, records: Records) -> None:
        """Refuse classes without text where zero-shot scores are added."""
        super().check_records(records)
        if self.fuses:
            records.check_text(f'{type(self).__name__}(zero_shot="fuse")', 'use images alone (zero_shot="none")')


class CacheClassifier(IncrementalClassifier):
    """A method whose `derive` returns a head on the stored images, and the zero-shot head to add or None."""

    def score_rows(
        self, derived: tuple[Any, LinearHead | None], X: Floats, columns: npt.NDArray[np.intp] | None
    ) -> Doubles:
        """Return the scores of the images plus the zero-shot scores."""
        cache, names = derived
        scores: Doubles = cache(X, columns)
        if names is not None:
            scores += names(X, columns)
        return scores


def folds(records: Records, samples: Selection) -> Iterator[tuple[npt.NDArray[np.intp], Records]]:
    """Yield positions in `samples` and the records without these samples, until every sample was left out once.

    A fold has a tenth of a class, rounded up, so there are at most ten. The samples are of classes of two or more.
    """
    order = np.argsort(samples.own, kind="stable")
    starts = np.searchsorted(samples.own[order], samples.own[order])
    fold_of = np.empty(len(order), np.intp)
    fold_of[order] = (samples.each - starts) // -(-samples.counts[order] // 10)
    for fold in np.unique(fold_of):
        positions = np.flatnonzero(fold_of == fold)
        some = samples.at(positions)
        removed = {records.labels[own]: some.X[some.own == own] for own in np.unique(some.own)}
        yield positions, records.remove(Step(removed, None, {}))


def score_in_folds(method: IncrementalClassifier, records: Records, samples: Selection) -> Doubles:
    """Return the scores of `samples`, each by a model that saw neither it nor the others of its fold.

    For a method without a closed form of leave-one-out.
    """
    scores = np.empty((len(samples.rows), len(records.counts)))
    for positions, fewer in folds(records, samples):
        scores[positions] = method.score_rows(method.derive(fewer, None), samples.X[positions], None)
    return scores


def feature_bytes(records: Records, size: int, *, draws: int = 1) -> int:
    """Return the bytes of random feature maps of this size, and of a linear head on each."""
    return 8 * draws * size * (records.width + len(records.by_label))


def fewer_samples(method: IncrementalClassifier, size: int) -> str:
    """Say why a regression on `size` features is solved anew, where the samples learned are fewer than features."""
    fewer = method.__sklearn_is_fitted__() and int(method.counts_.sum()) < size
    return "samples are fewer than features, and the regression is solved in sample space" if fewer else ""


class FoldedClassifier(IncrementalClassifier):
    """A method whose `derive` returns a `LinearHead`, and whose leave-one-out has no closed form."""

    def score_rows(self, derived: LinearHead, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return what the head says."""
        return derived(X, columns)

    def scores_without_each(self, derived: LinearHead, records: Records, samples: Selection) -> Doubles:
        """Leave out samples in folds."""
        return score_in_folds(self, records, samples)
