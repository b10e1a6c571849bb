"""Search in a pile: the images nearest to one embedding, those of one class, and groups of near-duplicates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.pile.clusters import near_distance
from hycal.uncertainty.near_duplicates import groups_within
from hycal.uncertainty.unknown import rejected
from hycal.validation import Doubles, Floats, Label

_AT_ONCE = 4096  # rows


def nearest_rows(rows: Floats, query: Floats, most: int) -> tuple[npt.NDArray[np.intp], Doubles]:
    """Return the rows with the largest cosine to a unit query, best first, and their cosines."""
    similarity = (rows @ query).astype(np.float64)
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


def duplicates(rows: Floats, *, distance: float | None = None) -> list[list[int]]:
    """Return the groups of two rows or more that are nearer than `distance` (1 - cosine) to the first of their group.

    By default it is a twentieth of the mean distance of two rows.

    Examples
    --------
    >>> duplicates(np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 1]])
    [[0, 2], [1, 4]]
    """
    near = near_distance(rows) if distance is None else distance
    if not 0.0 < near < 1.0:
        raise HyCalError(f"The distance is {near}; expected one between 0 (equal) and 1, such as 0.02.")
    groups = groups_within(rows, near)
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return [part.tolist() for part in parts if len(part) > 1]
