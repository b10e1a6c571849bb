"""How many images of a pile belong to no learned class, and how probable that is of each.

Held-out samples of learned classes say how familiar images of them are. An image gets the share u of them that is less
familiar. Where all images are of learned classes, u is spread evenly over 0 to 1; images of other classes crowd near 0.
So the density g of u in the pile, which falls, and its level a where hardly any stranger is, give

    p(learned | u) = min(1, a / g(u))

This is the local false discovery rate with Storey's estimate of a, and Grenander's of g. A few held-out samples are a
rough measure: it is used only where the pile is less familiar than they are by a test of Smirnov, and is 1 otherwise.

    symbol    shape   meaning
    u         (n,)    share of held-out samples that are less familiar: by Student's t, by their ranks as they are many
    g         (n,)    density of u: the slope of the least concave curve above its distribution
    a         scalar  share of images with u > 0.8, divided by 0.2
"""

from __future__ import annotations

import numpy as np

from hycal.validation import Doubles

_LEVEL = 0.8  # of u; hardly any stranger is above
_CHANCE = 0.2  # of a less familiar pile without strangers
_MANY = 10.0  # held-out samples on the shorter side at which ranks count as much as Student's t
_NARROW = 1e-9


def chance_learned(familiarity: Doubles, held_out: Doubles) -> Doubles:
    """Return for each image of a pile the probability that it is of a learned class, (n,), from its familiarity.

    `held_out` is that of held-out samples of learned classes, sorted; with fewer than two nothing can be said.

    >>> known = np.linspace(-2, 2, 50)
    >>> chance_learned(known, known).min()
    np.float64(1.0)
    >>> mixed = chance_learned(np.concatenate([known, known - 4]), known)
    >>> bool(mixed[:50].mean() > 0.8), bool(mixed[50:].mean() < 0.2)
    (True, True)
    """
    if not len(familiarity) or len(held_out) < 2 or not _less_familiar(familiarity, held_out):
        return np.ones(len(familiarity))
    u = _shares_below(familiarity, held_out)
    level = float(np.mean(u > _LEVEL)) / (1.0 - _LEVEL)
    return np.minimum(1.0, level / np.maximum(_density(u), _NARROW))


def _less_familiar(familiarity: Doubles, held_out: Doubles) -> bool:
    """Whether so many unfamiliar images are rarer than `_CHANCE` among learned classes, by Smirnov's test."""
    n, m = len(familiarity), len(held_out)
    places = np.searchsorted(np.sort(familiarity), held_out, side="left") / n
    excess = float(np.max(places - np.arange(m) / m, initial=0.0))
    return bool(excess > np.sqrt(-np.log(_CHANCE) / 2.0 * (n + m) / (n * m)))


def _shares_below(familiarity: Doubles, held_out: Doubles) -> Doubles:
    """Return u."""
    from scipy.special import stdtr  # takes longer to import than an answer

    m = len(held_out)
    spread = max(float(held_out.std(ddof=1)), _NARROW) * np.sqrt(1.0 + 1.0 / m)
    normal = stdtr(m - 1, (familiarity - held_out.mean()) / spread)
    ranks = (np.searchsorted(held_out, familiarity, side="right") + 0.5) / (m + 1.0)
    shorter = m * np.minimum(normal, 1.0 - normal)
    weight = shorter / (shorter + _MANY)
    return weight * ranks + (1.0 - weight) * normal


def _density(u: Doubles) -> Doubles:
    """Return Grenander's estimate of a density on 0 to 1 that falls, at `u`."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(u, kind="stable")
    widths = np.maximum(np.diff(u[order], prepend=0.0), _NARROW)
    slopes = isotonic_regression(1.0 / (len(u) * widths), sample_weight=widths, increasing=False)
    density = np.empty(len(u))
    density[order] = slopes
    return density
