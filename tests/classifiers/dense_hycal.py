"""HyCal written for reading: one d x d matrix and one loop step per class, everything in float64.

This is the definition the fast path is compared with. It follows the equations line by line and optimises nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def fuse(v, t, fusion):
    if fusion == "sum":
        return unit(v + t)
    if fusion == "concat":
        return unit(np.concatenate([v, np.broadcast_to(t, v.shape)], axis=-1))
    return v


def class_gaussian(z, reg, gamma, rule):
    mean = unit(z.mean(axis=0))
    deviations = z - mean
    covariance = deviations.T @ deviations / (len(z) - 1) if len(z) > 1 else np.zeros((z.shape[1], z.shape[1]))
    identity = np.eye(z.shape[1])
    a, delta = (1 - reg, reg * gamma) if rule == "paper" else (1, reg)
    return mean, np.linalg.inv(a * covariance + delta * identity)


def _exact(rows):
    return [None if x is None else unit(np.asarray(x, dtype=np.float64)) for x in rows]


def background_distance(v, candidates, samples, texts, *, reg, gamma, fusion, rule):
    """Squared distance of every query from all samples as one Gaussian, mean over the candidates it is fused with.

    The second value is the largest term in the sum that the distance is.
    """
    if all(len(x) for x in samples) or not any(len(x) for x in samples):
        return 0.0, 0.0
    pairs = np.concatenate([fuse(x, t, fusion) for x, t in zip(samples, texts, strict=True) if len(x)])
    covariance = np.cov(pairs, rowvar=False) if len(pairs) > 1 else np.zeros((pairs.shape[1], pairs.shape[1]))
    a, delta = (1 - reg, reg * gamma) if rule == "paper" else (1, reg)
    precision = np.linalg.inv(a * covariance + delta * np.eye(pairs.shape[1]))
    away = [fuse(v, t, fusion) - pairs.mean(axis=0) for t in candidates]
    terms = np.max([np.sum(y**2, axis=1) / delta for y in away], axis=0)
    return np.mean([np.sum(y @ precision * y, axis=1) for y in away], axis=0), terms


def normalise(scores):
    """z-score over the candidates (columns), then the Gaussian CDF."""
    if scores.shape[1] == 1:
        return np.full_like(scores, 0.5)
    spread = np.maximum(scores.std(axis=1, ddof=1, keepdims=True), 1e-6)
    return ndtr((scores - scores.mean(axis=1, keepdims=True)) / spread)


def weight(count, alpha, beta, metric, rule):
    if metric == "cosine":
        return 0.0
    if metric == "mahalanobis":
        return 1.0
    if count == 0:
        return 0.0
    if rule == "released" and count < alpha:
        return 0.0
    if metric == "average":
        return 0.5
    if beta == 0:
        return float(np.heaviside(count - alpha, 0.5))
    return float(expit((count - alpha) / beta))


def dense_scores(
    queries,
    samples,
    texts,
    *,
    learned=None,
    alpha=10,
    beta=5,
    reg=1e-4,
    gamma=1.0,
    fusion="sum",
    rule="paper",
    metric="dynamic",
):
    """Return the paper's scores in [0, 1], shape (n, C).

    queries: (n, d); samples: list of (K_c, d), one per class; texts: list of (d,), or of None for image fusion.
    A class without samples has its text for a prototype and the relative distance 0. learned: samples and texts of all
    classes where those scored are only some of them.
    """
    cosine, closeness, _ = dense_measures(
        queries, samples, texts, learned, reg=reg, gamma=gamma, fusion=fusion, rule=rule
    )
    w = np.array([weight(len(x), alpha, beta, metric, rule) for x in samples])
    return w * normalise(closeness) + (1 - w) * normalise(cosine)


def dense_measures(queries, samples, texts, learned=None, *, reg, gamma, fusion, rule):
    """Return cosine, closeness, and the largest term in the sum that the distance is, (n, C) each."""
    v = unit(np.asarray(queries, dtype=np.float64))
    samples, texts = _exact(samples), _exact(texts)
    pool = (samples, texts) if learned is None else (_exact(learned[0]), _exact(learned[1]))
    far, far_terms = background_distance(v, texts, *pool, reg=reg, gamma=gamma, fusion=fusion, rule=rule)
    cosine, closeness, terms, ridge = [], [], [], reg * gamma if rule == "paper" else reg
    for x, t in zip(samples, texts, strict=True):
        pairs = fuse(x if len(x) else t[None], t, fusion)
        mean, precision = class_gaussian(pairs, reg, gamma, rule)
        z = fuse(v, t, fusion)
        cosine.append(z @ mean)
        away = z - mean
        closeness.append(far - np.sum(away @ precision * away, axis=1) if len(x) else np.zeros(len(v)))
        terms.append(np.sum(away**2, axis=1) / ridge if len(x) else far_terms * np.ones(len(v)))
    return tuple(np.stack(part, axis=1) for part in (cosine, closeness, terms))


def condition(queries, samples, texts, learned, *, reg, gamma, fusion, rule, **_):
    """Return (n, 1): by how much the z-score or the range of a query multiplies the rounding of its distances.

    Where all candidates are equally far, it is without bound: the sign of a rounding error decides the score.
    """
    literal = rule == "literal"
    _, closeness, terms = dense_measures(
        queries, samples, texts, learned, reg=reg, gamma=gamma, fusion=fusion, rule="paper" if literal else rule
    )
    spread = np.ptp(closeness, axis=1) if literal else closeness.std(axis=1, ddof=1)
    return (terms.max(axis=1) / np.maximum(spread, 1e-6))[:, None]


def literal_scores(queries, samples, texts, *, learned, alpha, beta, reg, gamma, fusion, metric, rule):
    """Return w (1 - d) + (1 - w) cos, shape (n, C): the text of the paper, and nothing of the released code.

    The mean is the plain mean, the covariance lies around it, the cosine is taken as it is, and the distance is scaled
    to [0, 1] over the candidates. The text says neither that near is good (d is subtracted from 1) nor what stands for
    a class without samples: as under the other rules, its text and the distance from all samples.
    """
    v = unit(np.asarray(queries, dtype=np.float64))
    samples, texts = _exact(samples), _exact(texts)
    pool = _exact(learned[0]), _exact(learned[1])
    far, _ = background_distance(v, texts, *pool, reg=reg, gamma=gamma, fusion=fusion, rule="paper")
    cosine, distance = [], []
    for x, t in zip(samples, texts, strict=True):
        pairs, z = fuse(x if len(x) else t[None], t, fusion), fuse(v, t, fusion)
        mean = pairs.mean(axis=0)
        covariance = np.cov(pairs, rowvar=False) if len(pairs) > 1 else np.zeros((len(mean), len(mean)))
        precision = np.linalg.inv((1 - reg) * covariance + reg * gamma * np.eye(len(mean)))
        cosine.append(z @ mean / (np.linalg.norm(z, axis=1) * np.linalg.norm(mean)))
        distance.append(np.sum((z - mean) @ precision * (z - mean), axis=1) if len(x) else far * np.ones(len(v)))
    cosine, distance = np.stack(cosine, axis=1), np.stack(distance, axis=1)
    nearest, farthest = distance.min(axis=1, keepdims=True), distance.max(axis=1, keepdims=True)
    scaled = (distance - nearest) / np.maximum(farthest - nearest, 1e-6 / (reg * gamma))
    w = np.array([weight(len(x), alpha, beta, metric, rule) for x in samples])
    return w * (1 - scaled) + (1 - w) * cosine
