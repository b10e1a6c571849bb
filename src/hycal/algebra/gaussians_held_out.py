"""Each sample of a class against the Gaussian of the other samples, without building those Gaussians.

Without a sample x, a class of K samples has the regularised covariance

    R_x = a/(K-2) (T - K/(K-1) (x - m)(x - m)') + a kappa_x mu_x mu_x' + delta I
        = A + p_1 u_1 u_1' + p_2 u_2 u_2',          kappa_x = (K-1)/(K-2) (1 - |m_x|)^2.

Around the plain mean there is no term of mu_x, so p_2 = 0, and y = x - m_x.

A belongs to the whole class and needs one factorisation. The Woodbury identity adds the two terms of rank one. All K
distances of a class cost O(K^2 d), instead of K factorisations.

    symbol      shape         meaning (one class of K samples, fused pairs of width D)
    x           (K, D)        fused samples
    m           (D,)          their mean
    m_x, mu_x   (K, D)        mean without each sample, and its direction
    T           (D, D)        scatter of x around m; not built
    A           (D, D)        a/(K-2) T + delta I; not built
    W           (r, D)        A^-1 = (I - W'W)/delta
    y           (K, D)        x - mu_x or x - m_x: the vector whose length in R_x^-1 is the distance
    U           (2, K, D)     u_1 = x - m and u_2 = mu_x
    p           (K, 2)        -a K/((K-1)(K-2)) and a kappa_x, over delta
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hycal.algebra.covariance import covariance_factors, directions
from hycal.algebra.gaussians import GaussianOptions
from hycal.parallel.threads import run_parallel
from hycal.state.records import ClassRecord
from hycal.validation import Doubles, Floats


def own_without_each(
    members: Sequence[ClassRecord], options: GaussianOptions, *, wanted: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return cosine, and -delta times the squared Mahalanobis distance, of each sample to its class without it.

    Both have shape (N,), class after class, and are 0 for classes that are not `wanted`. A wanted class must have two
    samples or more.
    """
    ends = np.cumsum([member.count for member in members])
    cosines, closeness = np.zeros(ends[-1], np.float32), np.zeros(ends[-1], np.float32)

    def fill(column: int) -> None:
        rows = slice(ends[column] - members[column].count, ends[column])
        cosines[rows], closeness[rows] = _class_without_each(members[column], options)

    run_parallel(fill, wanted.tolist())
    return cosines, closeness


def _class_without_each(member: ClassRecord, options: GaussianOptions) -> tuple[Doubles, Doubles]:
    K = member.count
    v = member.samples.rows.astype(np.float64)
    t = np.zeros(v.shape[1]) if member.text is None else member.text.astype(np.float64)
    x = options.fusion.fuse(v, t)
    m = x.mean(axis=0)
    m_x = (K * m - x) / (K - 1)
    mu_x = directions(m_x)
    cosines = np.sum(x * mu_x, axis=1)
    y = x - (m_x if options.centre == "mean" else mu_x)
    if K == 2:  # the one sample that is left has no covariance
        return cosines, -np.sum(y**2, axis=1)
    length = np.ones(K) if options.centre == "mean" else np.linalg.norm(m_x, axis=1)  # 1 makes p_2 = 0
    return cosines, -_scaled_distances(y, np.stack([x - m, mu_x]), length, options)


def _scaled_distances(y: Doubles, U: Doubles, length: Doubles, options: GaussianOptions) -> Doubles:
    """Return delta y' R_x^-1 y of each row of y; kappa_x depends on `length`."""
    K, a, delta = len(y), options.a, options.delta
    W = covariance_factors(U[:1], a * (K - 1) / (K - 2), delta)[0]
    W_U, W_y = U @ W.T, y @ W.T
    # Inner products in delta A^-1 = I - W'W.
    y_y = np.sum(y**2, axis=1) - np.sum(W_y**2, axis=1)
    U_y = np.einsum("snd,nd->ns", U, y) - np.einsum("snr,nr->ns", W_U, W_y)
    U_U = np.einsum("snd,tnd->nst", U, U) - np.einsum("snr,tnr->nst", W_U, W_U)
    p = np.empty((K, 2))
    p[:, 0] = -a / (K - 2) * K / (K - 1) / delta
    p[:, 1] = a * (K - 1) / (K - 2) * (1.0 - length) ** 2 / delta
    solved = np.linalg.solve(np.eye(2) + U_U * p[:, None, :], U_y[:, :, None])[:, :, 0]
    return y_y - np.sum(U_y * p * solved, axis=1)
