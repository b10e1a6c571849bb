"""A map of the classes in two dimensions: the plane in which their mean embeddings differ most (PCA)."""

from __future__ import annotations

import numpy as np

from hycal.project.state import State
from hycal.validation import Label

_NOTHING = 1e-9


def class_map(state: State) -> dict[Label, tuple[float, float]]:
    """Return a point for each class that has images, centred, with the farthest coordinate at 1.

    Equal models have equal maps. It takes O(C d² + d³), whatever the number of images.
    """
    labels = [label for label in state.labels if state.shelves[label].examples]
    if not labels:
        return {}
    means = np.stack([state.shelves[label].rows.mean(axis=0, dtype=np.float64) for label in labels])
    means -= means.mean(axis=0)
    _, axes = np.linalg.eigh(means.T @ means)
    points = means @ axes[:, :-3:-1]
    points *= np.sign(points[np.abs(points).argmax(axis=0), (0, 1)])  # eigenvectors come with either sign
    farthest = np.abs(points).max()
    points = points / farthest if farthest > _NOTHING else np.zeros_like(points)
    return {label: (float(x), float(y)) for label, (x, y) in zip(labels, points, strict=True)}
