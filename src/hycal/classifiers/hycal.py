"""HyCal: hybrid prototype calibration, the method of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.background import Background
from hycal.algebra.cost import Addition, covariance_factor
from hycal.algebra.evidence import Explanation, ScorePart, ScoreParts
from hycal.algebra.fusion import FUSIONS
from hycal.algebra.gaussians import GaussianOptions
from hycal.algebra.gaussians_held_out import own_without_each
from hycal.algebra.patched_bank import Bank, bank_of
from hycal.algebra.scores import BY_RANGE, BY_Z_SCORES, Blend, shot_weights
from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.estimator import Interval, StrOptions
from hycal.export.onnx_gaussians import gaussian_scores
from hycal.parallel.threads import run_in_chunks
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.state.snapshot import Snapshot
from hycal.validation import Doubles, Floats
from hycal.views.scorer import VIEWS

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder


@dataclass(frozen=True)
class _Rule:
    """One reading of the method: the regularised covariance R = a S + delta I, and who may use the distance.

    `centre` is the centre of a class, `blend` how both measures become comparable and one score.
    """

    scale: float
    ridge: float
    gated: bool = False
    centre: str = "direction"
    blend: Blend = BY_Z_SCORES


_MOST_NUMBERS = 2**21  # of a measure of all classes, in a chunk of queries; three such arrays are held

_RULES: Mapping[str, Callable[[float, float], _Rule]] = {
    "paper": lambda reg, gamma: _Rule(1.0 - reg, reg * gamma),
    "released": lambda reg, gamma: _Rule(1.0, reg, gated=True),
    "literal": lambda reg, gamma: _Rule(1.0 - reg, reg * gamma, centre="mean", blend=BY_RANGE),
}

_METRICS: Mapping[str, Callable[[npt.NDArray[Any], float, float], Doubles]] = {
    "dynamic": shot_weights,
    "cosine": lambda counts, alpha, beta: np.zeros(len(counts)),
    "mahalanobis": lambda counts, alpha, beta: np.ones(len(counts)),
    "average": lambda counts, alpha, beta: np.full(len(counts), 0.5),
}
_BLENDS = ("dynamic", "average")


@dataclass(frozen=True, eq=False)
class _Model:
    """Every class's Gaussian, and that of all samples together where some classes were only announced."""

    bank: Bank
    background: Background | None


class HyCal(IncrementalClassifier):
    r"""Cosine similarity and Mahalanobis distance, blended by how many samples a class has.

    With z the query fused with the text of class c, mu_c the unit mean of the class's fused samples, S_c their
    covariance around it and K_c their number,

    .. math::
        s_c = w_c \Phi(-m_c) + (1 - w_c) \Phi(z^\top \mu_c), \quad
        m_c = (z - \mu_c)^\top (a S_c + \delta I)^{-1} (z - \mu_c), \quad
        w_c = \sigma((K_c - \alpha) / \beta),

    where Phi stands for a z-score over the candidates followed by the Gaussian CDF. `decision_function` returns the
    log-odds of s_c, which rank the same and do not tie where the CDF saturates; `scipy.special.expit` gives s_c back.

    Parameters
    ----------
    alpha : float, default=10
        Sample count at which both measures weigh the same.
    beta : float, default=5
        Width of the transition; 0 is a step.
    reg : float in (0, 1], default=1e-4
        Lambda of the regularised covariance. Queries are scored in float32: below 1e-5, distances to a class of more
        samples than dimensions lose digits.
    gamma : float, default=1.0
        Scale of its identity part; only the paper's rule has it.
    fusion : {"sum", "concat", "image"}, default="sum"
        How image and text embedding are paired; "image" needs no text.
    rule : {"paper", "released", "literal"}, default="paper"
        Paper: a = 1 - reg, delta = reg gamma, and every class is blended. Released code: a = 1, delta = reg, and
        classes with fewer than alpha samples use the cosine alone. Literal: the paper's text without what it takes
        from the code; mu_c is the plain mean, and s_c = w_c (1 - d_c) + (1 - w_c) cos(z, mu_c) with d_c the distance
        scaled to [0, 1] over the candidates. A class of one sample has S = 0 under all.
    metric : {"dynamic", "cosine", "mahalanobis", "average"}, default="dynamic"
        The blend, or one of the paper's ablations.
    views : tuple of int, optional
        Widths of the unit vectors of several encoders, side by side in a row; see `hycal.views`. None is one encoder.

    Notes
    -----
    A class that was only announced has its text for a prototype. Its distance is that of the background, one Gaussian
    of all samples learned, averaged over the candidates that the query is fused with, and it takes no part in the
    blend: w = 0. As released, but that the released code takes the background of the query fused with its first
    candidate, and so depends on the order of classes, and adds lambda to it again at every step.

    No d x d matrix is built for a class of at most d samples. Learning costs O(K^2 d) per class; a query costs
    2 d (sum of K + C) operations; a model stores (sum of K + C) d numbers.

    References
    ----------
    HyCal: A Training-Free Prototype Calibration Method for Cross-Discipline Few-Shot Class-Incremental Learning.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import HyCal
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = HyCal(fusion="image")
    >>> clf = clf.partial_fit(X[:200][y[:200] < 5], y[:200][y[:200] < 5])
    >>> clf = clf.partial_fit(X[:200][y[:200] >= 5], y[:200][y[:200] >= 5])
    >>> clf.classes_
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> bool(clf.score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "alpha": [Interval(Real, None, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "reg": [Interval(Real, 0, 1, closed="right")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "fusion": [StrOptions(set(FUSIONS))],
        "rule": [StrOptions(set(_RULES))],
        "metric": [StrOptions(set(_METRICS))],
        "views": VIEWS,
    }
    direction_only: ClassVar[Mapping[str, Any] | None] = {"metric": "cosine"}
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "reg": (1e-4, 1e-3, 1e-2, 3e-2, 1e-1),
        "alpha": (1, 5, 10, 20, 40),
        "beta": (1, 5, 10),
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"rule": "released"},
        "hycal-paper": {"rule": "paper"},
        "robust": {},
    }
    seals: ClassVar[str] = "classes"
    without_text: ClassVar[Mapping[str, Any]] = {"fusion": "image"}

    rebuilt_because = ""

    def __init__(
        self,
        *,
        alpha: float = 10,
        beta: float = 5,
        reg: float = 1e-4,
        gamma: float = 1.0,
        fusion: str = "sum",
        rule: str = "paper",
        metric: str = "dynamic",
        views: tuple[int, ...] | None = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.reg = reg
        self.gamma = gamma
        self.fusion = fusion
        self.rule = rule
        self.metric = metric
        self.views = views

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count a covariance factor for each class that is added."""
        return addition.added * covariance_factor(addition.shots, addition.width)

    def weights(self, counts: npt.ArrayLike) -> Doubles:
        """Return the weight of the distance for classes of these sample counts."""
        counts = np.asarray(counts)
        weights: Doubles = _METRICS[self.metric](counts, self.alpha, self.beta)
        if self.metric in _BLENDS:
            fewest = max(self.alpha, 1) if self._rule.gated else 1
            weights = np.where(counts >= fewest, weights, 0.0)
        return weights

    def measures(self, X: npt.ArrayLike) -> tuple[Doubles, Doubles]:
        """Return the measures that are blended, (n, C) each: cosine similarity and squared Mahalanobis distance."""
        found = self.explain(X)
        return found.cosine, found.distance

    def explain(self, X: npt.ArrayLike) -> Explanation:
        """Return what `decision_function(X)` is made of.

        Examples
        --------
        >>> from hycal import HyCal
        >>> clf = HyCal(fusion="image").fit([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "a", "b"])
        >>> parts = clf.explain([[1.0, 0.2]])
        >>> parts.cosine.round(2), bool(parts.score[0, 0] > parts.score[0, 1])
        (array([[0.99, 0.2 ]]), True)
        """
        if self.views is not None:
            raise HyCalError("These measures are of one encoder. `score_parts` says what each of several views adds.")
        snapshot = self.snapshot()
        queries = self.check_queries(X)
        bank = snapshot.value.bank
        weights, order = self.weights(bank.counts), bank.order
        shape = len(queries), len(order)
        found = Explanation(
            cosine=np.empty(shape),
            distance=np.empty(shape),
            z_cosine=np.empty(shape, np.float32),
            z_closeness=np.empty(shape, np.float32),
            log_odds=np.empty(shape, np.float32),
            weight=self.weights(snapshot.records.counts),
            blend=self._rule.blend,
        )

        def measure(rows: slice) -> None:
            cosines, closeness = self._evaluate(snapshot.value, bank, queries[rows], None)
            found.cosine[rows, order] = cosines.T
            found.distance[rows, order] = -closeness.T / self._rule.ridge
            found.z_cosine[rows, order] = found.blend.of_cosine(cosines).T
            found.z_closeness[rows, order] = found.blend.of_closeness(closeness).T
            found.log_odds[rows, order] = found.blend.combine(cosines, closeness, weights).T

        run_in_chunks(measure, len(queries), numbers_per_row=len(order))
        return found

    def parts_of(self, X: npt.ArrayLike) -> ScoreParts:
        """Return what direction and distance add to s_c."""
        found = self.explain(X)
        parts = (
            ScorePart("direction", (1.0 - found.weight) * found.cosine_level, found.cosine, 1.0 - found.weight),
            ScorePart("distance", found.weight * found.distance_level, found.distance, found.weight),
        )
        return ScoreParts(found.log_odds, parts, "score")

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add both measures and their blend."""
        if self.rule == "literal":
            raise HyCalError('A model with rule="literal" cannot be exported to ONNX. Set rule="paper" first.')
        if snapshot.records.unseen:
            raise HyCalError(
                "Classes that were only announced have no Gaussian to export. Learn images of them, or forget them."
            )
        return gaussian_scores(graph, rows, snapshot.value.bank.whole, self.weights(snapshot.records.counts))

    @property
    def _rule(self) -> _Rule:
        return _RULES[self.rule](self.reg, self.gamma)

    def check_records(self, records: Records) -> None:
        """Refuse classes without text where it is fused."""
        super().check_records(records)
        if FUSIONS[self.fusion].needs_text:
            records.check_text(
                f'{type(self).__name__}(fusion="{self.fusion}")', 'use image embeddings alone (fusion="image")'
            )

    @property
    def scores_announced(self) -> bool:
        """Whether the fusion has a text that can stand for a class."""
        return FUSIONS[self.fusion].needs_text

    def derive(self, records: Records, previous: _Model | None) -> _Model:
        """Return the bank of Gaussians; only classes that changed are built again."""
        rule = self._rule
        options = GaussianOptions(FUSIONS[self.fusion], rule.scale, rule.ridge, rule.centre)
        bank = bank_of(records.ordered, options, None if previous is None else previous.bank)
        return _Model(bank, Background.of(records.ordered, options) if records.unseen else None)

    def seal_rows(self, rows: Floats, text: Floats | None) -> npt.NDArray[np.floating]:
        """Return rows fused with the text where that is not linear; their moments are not those of the embeddings."""
        fusion = FUSIONS[self.fusion]
        if fusion.fixed_length is not None:
            return rows
        if text is None:
            raise HyCalError(
                f'HyCal(fusion="{self.fusion}") needs a text embedding for every class, and a class to learn has none. '
                "Nothing was changed. Give its text with its images: text={label: vector}."
            )
        return fusion.fuse(rows.astype(np.float64), np.asarray(text, np.float64))

    def scores_without_each(self, derived: _Model, records: Records, samples: Selection) -> Floats | None:
        """Only the class of a sample changes without it: its measures and its weight are replaced, then all blended.

        With announced classes everything changes, since their measures are those of all samples together.
        """
        if records.unseen:
            return None
        bank = derived.bank
        own_cosines, own_closeness = own_without_each(records.ordered, bank.options, wanted=np.unique(samples.own))
        weights, own_weights = self.weights(records.counts)[bank.order], self.weights(samples.counts - 1)
        place, blend = np.argsort(bank.order), self._rule.blend
        scores = np.empty((len(samples.rows), len(weights)), np.float32)

        def score(rows: slice) -> None:
            part = samples.at(samples.each[rows])
            own = place[part.own], part.each
            cosines, closeness = bank.evaluate(part.X)
            cosines[own], closeness[own] = own_cosines[part.rows], own_closeness[part.rows]
            blend.of_cosine(cosines)
            blend.of_closeness(closeness)
            scores[rows, bank.order] = blend.combine(cosines, closeness, weights).T
            of_own = cosines[own][None], closeness[own][None], own_weights[rows][None]
            scores[samples.each[rows], part.own] = blend.combine(*of_own)[0]

        run_in_chunks(score, len(samples.rows), numbers_per_row=len(weights), most_numbers=_MOST_NUMBERS)
        return scores

    def score_rows(self, derived: _Model, X: Floats, columns: npt.NDArray[np.intp] | None) -> Floats:
        """Return the log-odds of the blended measures."""
        bank = derived.bank if columns is None else derived.bank.subset(columns)
        weights = self.weights(bank.counts)
        scores = np.empty((len(weights), len(X)), np.float32)

        def score(rows: slice) -> None:
            cosines, closeness = self._evaluate(derived, bank, X[rows], columns)
            scores[bank.order, rows] = self._rule.blend.scores(cosines, closeness, weights)

        run_in_chunks(score, len(X), numbers_per_row=len(weights), most_numbers=_MOST_NUMBERS)
        return scores.T

    @staticmethod
    def _evaluate(
        derived: _Model, bank: Bank, X: Floats, columns: npt.NDArray[np.intp] | None
    ) -> tuple[Floats, Floats]:
        """Return cosine and -delta times the squared distance of the candidates, as `GaussianBank.evaluate` does."""
        cosines, closeness = bank.evaluate(X)
        unseen = np.flatnonzero(bank.counts == 0)
        if len(unseen):
            closeness[unseen] = 0.0 if derived.background is None else -derived.background(X, columns)
        return cosines, closeness
