"""A map of the classes in two dimensions: the plane in which their mean embeddings differ most (PCA)."""

from __future__ import annotations

import numpy as np

from hycal.project.state import State
from hycal.validation import Doubles

_NOTHING = 1e-9


def class_map(state: State) -> Doubles:
    """Return one point for each label, shape (C, 2), centred, with the farthest coordinate at 1.

    Equal models have equal maps. It takes O(C d² + d³), whatever the number of images.
    """
    if not state.labels:
        return np.zeros((0, 2))
    means = np.stack(
        [
            np.mean([example.row for example in state.shelves[label].examples], axis=0, dtype=np.float64)
            for label in state.labels
        ]
    )
    means -= means.mean(axis=0)
    _, axes = np.linalg.eigh(means.T @ means)
    points = means @ axes[:, :-3:-1]
    points *= np.sign(points[np.abs(points).argmax(axis=0), (0, 1)])  # eigenvectors come with either sign
    farthest = np.abs(points).max()
    return points / farthest if farthest > _NOTHING else np.zeros_like(points)
