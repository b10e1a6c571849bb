"""KLDA: linear discriminant analysis on random Fourier features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from hycal.algebra.cost import Addition, regression_on_features
from hycal.algebra.covariance import class_means
from hycal.algebra.discriminant import Precision, WithinClass, sealed_within
from hycal.algebra.discriminant_step import SteppedDiscriminant
from hycal.algebra.features import Fourier, LinearHead
from hycal.algebra.softmax import log_softmax
from hycal.classifiers.families import ENSEMBLE, N_COMPONENTS, RANDOM_STATE, feature_bytes, fewer_samples
from hycal.classifiers.sealed_features import SealedOnFeatures
from hycal.estimator import Interval, StrOptions
from hycal.sealing import Sealing
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats

_RCOND = 1e-15
_NOISE = "the pseudo-inverse inverts rounding noise while N - C < D, and {} differently"


class KLDA(SealedOnFeatures):
    r"""Class means under one shared scatter, in the feature space of an RBF kernel.

    .. math::
        s_c = -(\phi(x) - \mu_c)^\top P (\phi(x) - \mu_c), \quad
        \phi(x) = \sqrt{2/D} \cos(\Omega^\top x + b), \quad P = (S + r I)^{-1}

    with Omega drawn from N(0, 2 gamma), b from U(0, 2 pi), and S the within-class scatter of the features, not divided
    by anything. The term of s_c that all classes share is left out. An ensemble averages the softmax of its members;
    its score is the logarithm of that average.

    Parameters
    ----------
    n_components : int, default=5000
        D, the number of Fourier features.
    gamma : float, default=0.1
        Of the kernel exp(-gamma |x - y|^2). The published values belong to embeddings of other lengths.
    mode : {"regularised", "faithful"}, default="regularised"
        "regularised" adds r to the scatter, as the author's later code does. "faithful" is the published form: the
        scatter in float32, and its pseudo-inverse with a cut-off of 1e-15, which cuts nothing. While N - C < D the
        scatter is singular, so rounding noise is inverted and accuracy falls to chance.
    reg : float, default=1e-3
        r; not used by the faithful mode.
    ensemble : int, default=1
        Number of independent draws.
    random_state : int, default=0
        Seed of the first draw; the next ones count up from it.

    Notes
    -----
    The regularised mode needs no (D, D) matrix where samples are fewer than features. Learning costs
    O(N D min(N, D)) per draw, in faithful mode O(D^3) always: an eigendecomposition, minutes for D = 5000. A query
    costs 2 D (d + C) operations per draw.

    References
    ----------
    Momeni et al., Continual learning using a kernel-based method over foundation models, AAAI 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import KLDA
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(KLDA(n_components=1000).fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "n_components": N_COMPONENTS,
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "mode": [StrOptions({"regularised", "faithful"})],
        "reg": [Interval(Real, 0, None, closed="neither")],
        "ensemble": ENSEMBLE,
        "random_state": RANDOM_STATE,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "gamma": (0.03, 0.1, 0.3, 1.0),
        "reg": (1e-4, 1e-3, 1e-2, 1e-1),
    }
    # gamma is published per backbone, none of them CLIP. The collapse in the paper's tables fixes 1024 features.
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"n_components": 5000, "ensemble": 5, "mode": "faithful"},
        "hycal-paper": {"n_components": 1024, "ensemble": 1, "mode": "faithful"},
        "robust": {"n_components": 5000, "mode": "regularised", "reg": 1e-3},
    }

    def __init__(
        self,
        *,
        n_components: int = 5000,
        gamma: float = 0.1,
        mode: str = "regularised",
        reg: float = 1e-3,
        ensemble: int = 1,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.mode = mode
        self.reg = reg
        self.ensemble = ensemble
        self.random_state = random_state

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the discriminant on features of all samples."""
        return regression_on_features(addition)

    @property
    def broken_laws(self) -> Mapping[str, str]:
        """Those that rounding noise cannot keep: some in faithful mode, none otherwise."""
        if self.mode == "regularised":
            return {}
        return {
            "label_permutation": _NOISE.format("classes in another order round"),
            "precision": _NOISE.format("an embedding rounded before may round"),
        }

    def least_bytes(self, records: Records) -> int:
        """Return the bytes of the draws, of the features of all samples, and in faithful mode of the scatter."""
        scatter = 8 * self.n_components**2 if self.mode == "faithful" else 0
        features = 8 * self.n_components * int(records.counts.sum())
        return feature_bytes(records, self.n_components, draws=self.ensemble) + features + scatter

    @property
    def rebuilt_because(self) -> str:
        """Fewer samples than features; and always in faithful mode."""
        if self.mode == "faithful":
            return "the pseudo-inverse of a scatter in float32 has no update"
        return fewer_samples(self, self.n_components)

    def derive(self, records: Records, previous: Any) -> list[Any]:
        """Return one discriminant for each draw of features."""
        if previous is not None and isinstance(previous[0], SteppedDiscriminant):
            heads = [head.after(records, self._regularisation) for head in previous]
            if None not in heads:
                return heads
        X, seeds = records.stacked(), range(self.random_state, self.random_state + self.ensemble)
        draws = [self._features(records.width, seed) for seed in seeds]
        if self.mode == "faithful":
            return [_faithful(draw, X, records.counts) for draw in draws]
        stepped = [SteppedDiscriminant.built(records, self._regularisation, draw, fixed=True) for draw in draws]
        return [self._regularised(draw, X, records.counts) for draw in draws] if None in stepped else stepped

    def _features(self, width: int, seed: int) -> Fourier:
        return Fourier.draw(width, self.n_components, self.gamma, seed)

    def _regularisation(self, samples: int, classes: int, trace: float) -> tuple[float, float]:
        """Return the ridge r, whatever the samples, and the gain."""
        return self.reg, 2.0

    def _regularised(self, features: Fourier, X: Floats, counts: npt.NDArray[np.int64]) -> LinearHead:
        within = WithinClass.of(features(X.astype(np.float64)), counts)
        return within.discriminant(features, ridge=self.reg, gain=2.0)

    @property
    def sealing(self) -> Sealing:
        """One Gram matrix; several draws would need one each, and the published form needs samples in float32."""
        if self.mode == "faithful":
            return Sealing(reason="its scatter is rounded sample by sample")
        return (
            Sealing(reason="it has one Gram matrix for each draw of features") if self.ensemble > 1 else super().sealing
        )

    def features_of(self, width: int) -> Fourier:
        """Draw the features."""
        return self._features(width, self.random_state)

    def derive_sealed(self, table: SealedRecords) -> list[Any]:
        """Return the discriminant from the scatter of features."""
        return [sealed_within(table).discriminant(self.features_of(table.width), ridge=self.reg, gain=2.0)]

    def scores_without_each(self, derived: list[Any], records: Records, samples: Selection) -> Doubles | None:
        """Return the closed form, which one regularised draw has."""
        return None if self.mode != "regularised" or self.ensemble > 1 else self._held_out(records, samples)

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the same under each value; features are drawn again, no head is built."""
        if self.mode != "regularised" or self.ensemble > 1:
            return None
        return (self.with_parameters(**{name: value})._held_out(records, samples) for value in values)

    def _held_out(self, records: Records, samples: Selection) -> Doubles:
        """Return held-out scores, which need the features but no head."""
        phi = self._features(records.width, self.random_state)(records.stacked().astype(np.float64))
        within = WithinClass.of(phi, records.counts)
        P = Precision(within.deviations, float(self.reg))
        return 2.0 * within.leave_one_out(phi[samples.rows], samples.own, samples.counts, P)

    def score_rows(self, derived: list[Any], X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the scores of one draw, or the log of the mean probability of several."""
        if len(derived) == 1:
            return derived[0](X, columns)
        members = np.stack([log_softmax(head(X)) for head in derived])
        scores: Doubles = logsumexp(members, axis=0) - np.log(len(derived))
        return scores if columns is None else scores[:, columns]


def _faithful(features: Fourier, X: Floats, counts: npt.NDArray[np.int64]) -> LinearHead:
    """Return the published classifier, rounding where it rounds: features, means and scatter in float32."""
    phi = features(X.astype(np.float64)).astype(np.float32)
    means = class_means(phi, counts).astype(np.float32)
    phi -= np.repeat(means, counts, axis=0)
    e, V = np.linalg.eigh(phi.T @ phi)
    kept = np.abs(e) > _RCOND * np.abs(e).max()
    inverse = np.divide(1.0, e, out=np.zeros(len(e)), where=kept)
    basis, centres = V.astype(np.float64), means.astype(np.float64)
    weights = 2.0 * ((centres @ basis) * inverse) @ basis.T
    return LinearHead(features, weights, -0.5 * np.einsum("cd,cd->c", weights, centres))
