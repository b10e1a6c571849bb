r"""Statistics of domains: visual entropy, the entropy of the spectrum of the embeddings of a domain; rank correlation.

With S the covariance of a domain's embeddings and p its eigenvalues divided by their sum, the Rényi entropy of order
two is

.. math:: H_2 = -\log \sum p^2 = \log \frac{(\mathrm{tr}\, S)^2}{\mathrm{tr}\, S^2},

and exp(H_2) the number of directions the domain uses, its effective rank. Of the spectral entropies it is the one that
can be compared between domains of different size: numerator and denominator have estimators without bias for any
distribution (Himeno and Yamada, 2014). A plug-in Shannon entropy grows with the number of samples, so it is too low for
sparse domains.

The p-value of a rank correlation is exact for few domains. All orders are one matrix product here:
`scipy.stats.permutation_test` takes about forty times as long, and where ranks are tied its rounding counts equal
correlations as weaker ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from hycal.validation import Floats

_EXACT_UP_TO = 8  # domains: all their orders are tried
_DRAWS = 20_000  # orders of more domains
FEWEST = 4  # embeddings that have a shape


@dataclass(frozen=True)
class Relation:
    """Spearman's rank correlation over `domains` domains.

    Attributes
    ----------
    correlation : float
        NaN with fewer than three domains, or where one side is constant.
    p : float
        Share of permutations with a correlation at least as strong, of either sign: all permutations of up to eight
        domains; 20,000 random ones and the true one for more.

    Examples
    --------
    >>> relation = relate([1, 2, 3, 4], [10, 20, 30, 40])
    >>> relation.correlation, relation.domains
    (1.0, 4)
    """

    correlation: float
    p: float
    domains: int


def relate(one: npt.ArrayLike, other: npt.ArrayLike) -> Relation:
    """Return the relation of `one` and `other`, over the domains that have both.

    Examples
    --------
    >>> relate([1, 2, 3, 4, 5], [1, 4, 9, 16, 25])
    Relation(correlation=1.0, p=0.016666666666666666, domains=5)
    """
    pair = np.stack([np.asarray(one, np.float64), np.asarray(other, np.float64)])
    pair = pair[:, np.isfinite(pair).all(axis=0)]
    count = pair.shape[1]
    if count < 3:
        return Relation(np.nan, np.nan, count)
    ranks = rankdata(pair, axis=1) - (count + 1) / 2
    lengths = np.linalg.norm(ranks, axis=1)
    if not lengths.all():
        return Relation(np.nan, np.nan, count)
    by_chance = ranks[1][_orders(count)] @ ranks[0] / lengths.prod()
    found = float(by_chance[0])
    p = float(np.mean(np.abs(by_chance) >= abs(found) - 1e-9))
    return Relation(round(found, 12), p, count)


@cache
def _orders(count: int) -> npt.NDArray[np.intp]:
    """Return permutations of `count` items, the identity first."""
    if count <= _EXACT_UP_TO:
        return np.array(list(permutations(range(count))), dtype=np.intp)
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(count) for _ in range(_DRAWS)]
    return np.array([np.arange(count), *drawn], dtype=np.intp)


@dataclass(frozen=True)
class Variety:
    """Shape and size of a cloud of embeddings; NaN where there are fewer than four.

    Attributes
    ----------
    entropy : float
        Rényi entropy of order two of the spectrum, in nats.
    spread : float
        Trace of the covariance: mean squared distance to the mean; n/(n - 1) at most for unit embeddings.

    Examples
    --------
    >>> Variety(entropy=1.5, spread=0.3).spread
    0.3
    """

    entropy: float
    spread: float


def variety(X: Floats) -> Variety:
    """Return entropy and spread of the embeddings `X`; neither grows with their number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ball = rng.normal(size=(60, 30)).astype(np.float32)
    >>> bool(abs(np.exp(variety(ball).entropy) - 30) < 2)
    True
    """
    n = len(X)
    if n < FEWEST:
        return Variety(np.nan, np.nan)
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    gram = centred @ centred.T if n <= X.shape[1] else centred.T @ centred
    squares = np.einsum("nd,nd->n", centred, centred)
    trace = squares.sum() / (n - 1)
    trace_of_square = (gram**2).sum() / (n - 1) ** 2
    kurtosis = n * (squares**2).sum() / (n - 1)
    # The common factor of both estimators cancels in their ratio.
    square_of_trace = 2 * trace_of_square + (n * n - 3 * n + 1) * trace**2 - kurtosis
    unbiased_square = (n - 1) * (n - 2) * trace_of_square + trace**2 - kurtosis
    if not (square_of_trace > 0 and unbiased_square > 0):  # nearly equal embeddings have no shape
        return Variety(np.nan, float(trace))
    return Variety(float(np.log(square_of_trace / unbiased_square)), float(trace))
