"""HyCal the way the released code runs it: one class at a time, a d x d pseudo-inverse for each, float32."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from hycal.algebra.scores import shot_weights
from hycal.validation import Floats


def _unit(x: Floats) -> Floats:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _fuse(images: Floats, text: Floats) -> Floats:
    """Return the unit sums; the released code scales both parts to length one at every call."""
    return _unit(_unit(images) + _unit(text))


def learn_class(samples: Floats, text: Floats, reg: float) -> tuple[Floats, Floats]:
    """Return the unit mean and the dense precision of one class."""
    fused = _fuse(samples, text)
    mean = _unit(fused.mean(axis=0))
    deviations = fused - mean
    covariance = deviations.T @ deviations / (len(fused) - 1)
    identity = np.eye(len(mean), dtype=np.float32)
    return mean, np.linalg.pinv((1 - reg) * covariance + reg * identity).astype(np.float32)


def measure_class(queries: Floats, mean: Floats, precision: Floats, text: Floats) -> tuple[Floats, Floats]:
    """Return cosine and negative Mahalanobis distance of every query to one class."""
    fused = _fuse(queries, text)
    deviations = fused - mean
    return fused @ mean, -np.einsum("nd,nd->n", deviations @ precision, deviations)


def blend(cosine: Floats, closeness: Floats, counts: list[int], alpha: float, beta: float) -> Floats:
    """Return the paper's scores of (n, C) measures."""
    weights = shot_weights(counts, alpha, beta)
    parts = [
        ndtr((s - s.mean(axis=1, keepdims=True)) / s.std(axis=1, ddof=1, keepdims=True)) for s in (cosine, closeness)
    ]
    return (1 - weights) * parts[0] + weights * parts[1]
