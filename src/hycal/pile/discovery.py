"""Groups among the images of a pile that fit no learned class. Their number is found.

What was learned says what a class is. Distances are measured in the white space of the learned classes, where variation
within classes is small. Images that fit no class are joined by average linkage, as long as the distance of two groups
is below the middle between that of two images of one class and that of two classes. A group of three images or more is
a new class. In the end every image that points clearly more to a new class than to a learned one belongs to it, and all
others belong to none.

Without a model, the pile is joined in the same way, and the cut is the one with the best silhouette.

    symbol    shape   meaning
    z         (n, d)  directions in the white space: W^(-1/2) (x - m), scaled to length 1
    W         (d, d)  covariance within learned classes, shrunk to a sphere by d/(v + d), v its degrees of freedom
    m         (d,)    mean of the C class means and of one more, that of the images that fit no class
    w, b      scalar  mean distance 1 - z.z' of two images of one class, and of two class means
    u         (k, d)  directions of the means of classes and of groups
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.pile.distances import canonical_order
from hycal.state.records import Records
from hycal.uncertainty.unknown import check_share, rejected
from hycal.validation import Doubles, Floats, check_samples, unit_queries

ERROR = 0.05  # share of images of learned classes that may be called unknown
_LEAST = 3  # images of a group
_MIDDLE = 0.5  # of the way from w to b
_CLEARLY = 0.2  # cosine by which an image points more to a group than to a learned class
_DOUBTFUL = 0.4  # quantile of the familiarity of learned images; only images below it join a group
_LINKED = 4096  # images that are joined two by two; the others join the groups of these
_CUTS = 24
_AT_ONCE = 4096  # rows
_TINY = 1e-12

Groups = npt.NDArray[np.intp]


def discover(X: npt.ArrayLike, classifier: IncrementalClassifier | None = None, *, error: float = ERROR) -> Groups:
    """Return the group of each image, (n,), the largest first; -1 for what is known, or like too few others.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Embeddings of a pile of images.
    classifier : IncrementalClassifier, optional
        What was learned so far. Without it, all images are grouped.
    error : float
        Share of images of learned classes that may be called unknown.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.repeat(np.eye(3), 10, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(30, 3))
    >>> discover(rows)[[0, 9, 10, 19, 20, 29]]
    array([0, 0, 1, 1, 2, 2])
    """
    check_share("error", error)
    learned = None if classifier is None or not classifier.records_.by_label else classifier
    rows = check_samples(X, width=None if learned is None else learned.records_.width, owner="discover")
    order = canonical_order(rows)
    groups = np.empty(len(rows), np.intp)
    groups[order] = _all_groups(rows[order]) if learned is None else _new_groups(rows[order], learned, error)
    return _by_size(groups)


@dataclass(frozen=True)
class ImageGroup:
    """A group: its number, its rows, the most typical first, and the mean cosine of two of its images."""

    number: int
    rows: tuple[int, ...]
    similarity: float


def describe_groups(X: npt.ArrayLike, groups: Groups) -> list[ImageGroup]:
    """Return the groups with their rows, in order of their numbers."""
    rows, found = check_samples(X, width=None, owner="describe_groups"), []
    for number in range(int(groups.max(initial=-1)) + 1):
        own = np.flatnonzero(groups == number)
        total = rows[own].sum(axis=0, dtype=np.float64)
        n = len(own)
        alike = (float(total @ total) - n) / (n * (n - 1)) if n > 1 else 1.0
        typical = own[np.argsort(-(rows[own] @ total), kind="stable")]
        found.append(ImageGroup(number, tuple(typical.tolist()), alike))
    return found


def _by_size(groups: Groups) -> Groups:
    """Number groups by size, the largest first, then by their first row."""
    numbers, first, counts = np.unique(groups, return_index=True, return_counts=True)
    kept = numbers >= 0
    place = np.full(len(numbers), -1, np.intp)
    place[np.flatnonzero(kept)[np.lexsort((first[kept], -counts[kept]))]] = np.arange(int(kept.sum()))
    return place[np.searchsorted(numbers, groups)]


def _new_groups(rows: Floats, classifier: IncrementalClassifier, error: float) -> Groups:
    familiarity = classifier.familiarity_
    queries = classifier.check_queries(rows)
    found = np.concatenate([familiarity(queries[at : at + _AT_ONCE]) for at in range(0, len(rows), _AT_ONCE)])
    strange = np.flatnonzero(rejected(found, familiarity.threshold(error)))
    groups = np.full(len(rows), -1, np.intp)
    if len(strange) < _LEAST:
        return groups
    space = _LearnedSpace.of(classifier.records_.seen, rows[strange].mean(axis=0, dtype=np.float64))
    linked = _some(strange)
    z = space(rows[linked])
    cut = _cut(_linkage(z), space.cut)
    new = _means(z, cut)
    if not len(new):
        return groups
    may_join = np.flatnonzero(found < familiarity.threshold(max(error, _DOUBTFUL)))
    for at in range(0, len(may_join), _AT_ONCE):
        part = may_join[at : at + _AT_ONCE]
        to_new, to_known = (space(rows[part]) @ means.T for means in (new, space.classes))
        joins = to_new.max(axis=1) > to_known.max(axis=1) + _CLEARLY
        groups[part[joins]] = to_new.argmax(axis=1)[joins]
    return groups


def _all_groups(rows: Floats) -> Groups:
    """Return groups of all images, at the cut of the linkage with the best silhouette."""
    if len(rows) < 2 * _LEAST:
        return np.zeros(len(rows), np.intp)
    z = _directions(rows - rows.mean(axis=0))
    linked = _some(np.arange(len(rows)))
    tree = _linkage(z[linked])
    heights = np.unique(np.quantile(tree[:, 2], np.linspace(0.0, 1.0, _CUTS)))
    cuts = [_means(z[linked], _cut(tree, height)) for height in heights[:-1]]
    wide = [means for means in cuts if len(means) > 1]
    if not wide:
        return np.zeros(len(rows), np.intp)
    best = max(wide, key=lambda means: _silhouette(z[linked], means))
    return np.concatenate([(z[at : at + _AT_ONCE] @ best.T).argmax(axis=1) for at in range(0, len(z), _AT_ONCE)])


def _silhouette(z: Doubles, means: Doubles) -> float:
    """Return the mean silhouette, with distances to the means of groups in place of those to their images."""
    distance = np.sort(1.0 - z @ means.T, axis=1)
    return float(np.mean(1.0 - distance[:, 0] / np.maximum(distance[:, 1], _TINY)))


def _some(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return all rows, or as many as are joined two by two, spread evenly."""
    return rows if len(rows) <= _LINKED else rows[np.linspace(0, len(rows) - 1, _LINKED).astype(np.intp)]


def _means(z: Doubles, cut: npt.NDArray[np.int32]) -> Doubles:
    """Return the direction of the mean of each group of three images or more."""
    numbers, counts = np.unique(cut, return_counts=True)
    sums = [z[cut == number].sum(axis=0) for number in numbers[counts >= _LEAST]]
    return _directions(np.stack(sums)) if sums else np.empty((0, z.shape[1]))


def _directions(rows: npt.NDArray[np.floating]) -> Doubles:
    long = np.asarray(rows, np.float64)
    return long / np.maximum(np.linalg.norm(long, axis=1, keepdims=True), _TINY)


@dataclass(frozen=True, eq=False)
class _LearnedSpace:
    """The white space of the learned classes: centre m, matrix W^(-1/2), directions of the class means, and the cut."""

    centre: Doubles
    matrix: Doubles
    classes: Doubles
    cut: float

    @classmethod
    def of(cls, records: Records, strange: Doubles) -> _LearnedSpace:
        """Return the space of learned classes; `strange` is the mean of the images that fit none."""
        records.check_samples("compare groups with learned images")
        samples = [unit_queries(record.samples.rows).astype(np.float64) for record in records.ordered]
        deviations = np.concatenate([own - own.mean(axis=0) for own in samples])
        v, d = len(deviations) - len(samples), records.width
        scatter, share = deviations.T @ deviations / max(v, 1), d / (v + d)
        W = (1.0 - share) * scatter + share * max(np.trace(scatter) / d, _TINY) * np.eye(d)
        values, vectors = np.linalg.eigh(W)
        centre = np.mean([*(own.mean(axis=0) for own in samples), strange], axis=0)
        matrix = vectors / np.sqrt(values)
        white = [_directions((own - centre) @ matrix) for own in samples]
        means = np.stack([own.mean(axis=0) for own in white])
        return cls(centre, matrix, _directions(means), _middle(white, means))

    def __call__(self, rows: Floats) -> Doubles:
        """Return the directions of rows in this space."""
        return _directions((rows - self.centre) @ self.matrix)


def _linkage(z: Doubles) -> Doubles:
    """Return the tree of average linkage of directions; a row without a direction is at distance 1 from all."""
    from scipy.cluster.hierarchy import linkage  # takes 0.2 s to import, and a server starts without
    from scipy.spatial.distance import squareform

    distance = np.maximum(1.0 - z @ z.T, 0.0)
    np.fill_diagonal(distance, 0.0)
    return linkage(squareform(distance, checks=False), "average")


def _cut(tree: Doubles, height: float) -> npt.NDArray[np.int32]:
    """Return the group of each leaf of a tree that is cut at a height, from 1."""
    from scipy.cluster.hierarchy import fcluster

    return np.asarray(fcluster(tree, height, "distance"))


def _middle(white: Sequence[Doubles], means: Doubles) -> float:
    """Return the distance at which two groups are no longer joined."""
    several = [own for own in white if len(own) > 1]
    sums = [own.sum(axis=0) for own in several]
    w = np.mean([1.0 - (s @ s - len(o)) / (len(o) * (len(o) - 1)) for s, o in zip(sums, several, strict=True)])
    n, total = len(means), means.sum(axis=0)
    b = 1.0 - (total @ total - np.sum(means**2)) / (n * (n - 1)) if n > 1 else 1.0
    return float(w + _MIDDLE * (max(b, w) - w))
