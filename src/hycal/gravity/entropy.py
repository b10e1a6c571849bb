r"""Visual entropy of a domain: the entropy of the spectrum of its embeddings.

With S the covariance of a domain's embeddings and p its eigenvalues divided by their sum, the Rényi entropy of order
two is

.. math:: H_2 = -\log \sum p^2 = \log \frac{(\mathrm{tr}\, S)^2}{\mathrm{tr}\, S^2},

and exp(H_2) the number of directions the domain uses, its effective rank. Of the spectral entropies it is the one that
can be compared between domains of different size: numerator and denominator have estimators without bias for any
distribution (Himeno and Yamada, 2014). A plug-in Shannon entropy grows with the number of samples, so it is too low for
sparse domains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hycal.validation import Floats

FEWEST = 4


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
