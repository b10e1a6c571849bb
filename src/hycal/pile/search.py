"""Search in a pile: the images nearest to one embedding, those of one class, and groups of near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.pile.distances import mean_distance, near_distance
from hycal.uncertainty.near_duplicates import groups_within
from hycal.uncertainty.unknown import rejected
from hycal.validation import Doubles, Floats, Label, unit_queries

_AT_ONCE = 4096  # rows
_SIDE = 32  # pixels of a small picture
PIXELS = _SIDE**2
_SAME_PICTURE = 0.015  # 1 - correlation of small pictures; different images of one kind are seldom nearer than 0.02
_STRANGERS = 0.8  # of the mean distance of two rows: farther apart, equal small pictures are chance


def nearest_rows(
    rows: Floats, query: Floats, most: int, views: Sequence[slice]
) -> tuple[npt.NDArray[np.intp], Doubles]:
    """Return the rows with the largest cosine to a query, best first, and their cosines.

    `views` are the columns of each view. Those that the query lacks do not count: words have the views of encoders with
    a text tower alone.
    """
    shared = np.concatenate([np.arange(view.start, view.stop) for view in views if query[view].any()])
    similarity = (unit_queries(rows[:, shared]) @ unit_queries(query[None, shared])[0]).astype(np.float64)
    best = np.argsort(-similarity, kind="stable")[:most]
    return best, similarity[best]


def rows_of_class(
    rows: Floats, classifier: IncrementalClassifier, label: Label, most: int
) -> tuple[npt.NDArray[np.intp], Doubles]:
    """Return the rows that most probably show a class, best first, and the probability of the class for each."""
    column = classifier.records_.column_of[label]
    chances = np.concatenate(
        [classifier.predict_proba(rows[at : at + _AT_ONCE])[:, column] for at in range(0, len(rows), _AT_ONCE)]
    )
    best = np.argsort(-chances, kind="stable")[:most]
    return best, chances[best]


def unlike_anything(rows: Floats, classifier: IncrementalClassifier, *, error: float = 0.05) -> npt.NDArray[np.bool_]:
    """Return which rows fit no learned class, where the share `error` of learned images would be called so."""
    familiarity = classifier.familiarity_
    if not len(familiarity.held_out) or not len(rows):
        return np.zeros(len(rows), bool)
    return rejected(familiarity(classifier.check_queries(rows)), familiarity.threshold(error))


def small_picture(picture: Image.Image) -> Floats:
    """Return 32 x 32 grey values as a unit vector of mean 0; zeros for a picture of one shade."""
    grey = np.asarray(picture.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BICUBIC), np.float32).ravel()
    grey = grey - grey.mean()
    return grey / np.float32(max(float(np.linalg.norm(grey)), 1.0))


def duplicates(rows: Floats, *, distance: float | None = None, pictures: Floats | None = None) -> list[list[int]]:
    """Return the groups of two rows or more that are near-duplicates, each in the order of the rows.

    What is nearer (1 - cosine) than `distance` to the first of its group belongs to it: by default a twentieth of the
    mean distance of two rows. `pictures` has each image by `small_picture`. A smaller or coarser copy is farther away
    for an encoder, and still the same picture: it belongs to a group too if their correlation is above 0.985, and the
    embeddings are not strangers.

    >>> duplicates(np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 1]])
    [[0, 2], [1, 4]]
    """
    near = near_distance(rows) if distance is None else distance
    if not 0.0 < near < 1.0:
        raise HyCalError(f"The distance is {near}; expected one between 0 (equal) and 1, such as 0.02.")
    first = _first_of_group(groups_within(rows, near))
    if pictures is None:
        return _parts(first)
    same = _first_of_group(groups_within(pictures, _SAME_PICTURE))
    stranger = 1.0 - np.einsum("nd,nd->n", rows, rows[same]) > _STRANGERS * mean_distance(rows)
    same[stranger] = np.flatnonzero(stranger)
    from scipy.sparse import coo_array  # takes 0.2 s to import, and `hycal find` needs none
    from scipy.sparse.csgraph import connected_components

    each = np.arange(len(rows))
    pairs = coo_array((np.ones(2 * len(rows)), (np.tile(each, 2), np.concatenate([first, same]))), (len(rows),) * 2)
    return _parts(connected_components(pairs, directed=False)[1].astype(np.intp))


def _first_of_group(groups: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the first row of the group of each row."""
    return np.unique(groups, return_index=True)[1][np.unique(groups, return_inverse=True)[1]]


def _parts(groups: npt.NDArray[np.intp]) -> list[list[int]]:
    """Return the rows of each group of two or more."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return [part.tolist() for part in parts if len(part) > 1]
