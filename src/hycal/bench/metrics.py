r"""The numbers of the benchmark's tables, each with one definition.

A is the accuracy matrix of one run, shape (T, T): A[t, j] is the top-1 accuracy in percent on the test split of domain
j after step t, both counted in the order of learning. K_t is the number of training samples of domain t, Z_t the
zero-shot accuracy on it, R_t the accuracy on it of the same method that learned it alone, n_t the number of its test
images. What was not measured is NaN, and what depends on it is NaN too: missing stays missing.

>>> import numpy as np
>>> nan = np.nan
>>> A = np.array([[80.0, nan, nan], [70.0, 60.0, nan], [76.0, 50.0, 90.0]])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from hycal.errors import HyCalError
from hycal.validation import Doubles

_BINS = 15  # of the calibration error


def accuracy_matrix(A: npt.ArrayLike) -> Doubles:
    """Return A as a square array of floats, or say what is wrong with it."""
    matrix = np.asarray(A, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise HyCalError(f"The accuracy matrix has shape {matrix.shape}; expected one row and one column per domain.")
    return matrix


def average(A: npt.ArrayLike) -> float:
    r"""Return the Average accuracy: over steps, of the mean over the domains learned so far.

    .. math:: \frac1T \sum_t \frac1t \sum_{j \le t} A_{tj}

    >>> round(average([[80.0, np.nan], [70.0, 60.0]]), 2)
    72.5
    """
    matrix = accuracy_matrix(A)
    return float(np.mean([row[: step + 1].mean() for step, row in enumerate(matrix)]))


def average_per_domain(A: npt.ArrayLike) -> Doubles:
    r"""Return the Average accuracy of each domain: over the steps since it was learned.

    .. math:: \frac1{T - j + 1} \sum_{t \ge j} A_{tj}

    >>> average_per_domain([[80.0, np.nan], [70.0, 60.0]])
    array([75., 60.])
    """
    matrix = accuracy_matrix(A)
    return np.array([matrix[domain:, domain].mean() for domain in range(len(matrix))])


def last_per_domain(A: npt.ArrayLike) -> Doubles:
    r"""Return the Last accuracy of each domain, :math:`A_{Tj}`.

    >>> last_per_domain([[80.0, np.nan], [70.0, 60.0]])
    array([70., 60.])
    """
    return accuracy_matrix(A)[-1].copy()


def last(A: npt.ArrayLike) -> float:
    r"""Return the Last accuracy: the mean over domains after the last step.

    .. math:: \frac1T \sum_j A_{Tj}

    >>> last([[80.0, np.nan], [70.0, 60.0]])
    65.0
    """
    return float(last_per_domain(A).mean())


def sigma(values: npt.ArrayLike) -> float:
    r"""Return the sample standard deviation over domains.

    .. math:: \sqrt{\frac1{T - 1} \sum_j (a_j - \bar a)^2}

    The published zero-shot row:

    >>> round(sigma([23.91, 50.88, 41.90, 37.58, 9.80, 44.01, 17.97, 67.40]), 2)
    18.76
    """
    row = np.asarray(values, dtype=np.float64)
    return float(row.std(ddof=1)) if row.size > 1 else float("nan")


def scarcity_weights(K: npt.ArrayLike) -> Doubles:
    r"""Return the weights of the domains, larger where samples are scarcer.

    .. math:: w_t = K_t^{-1/2} / \sum_s K_s^{-1/2}

    >>> scarcity_weights([100, 25]).round(3)
    array([0.333, 0.667])
    """
    counts = np.asarray(K, dtype=np.float64)
    if counts.ndim != 1 or not counts.size or not (counts > 0).all():
        raise HyCalError(f"The sample counts of the domains are {counts.tolist()}; expected positive numbers.")
    return counts**-0.5 / (counts**-0.5).sum()


def s_adapt(A: npt.ArrayLike, K: npt.ArrayLike, Z: npt.ArrayLike) -> float:
    r"""Return how well domains are learned when they come, scarce ones counting more.

    .. math:: S_{adapt} = \sum_t w_t \frac{Z_t + A_{tt}}2

    >>> round(s_adapt([[80.0, np.nan], [70.0, 60.0]], K=[100, 25], Z=[40.0, 20.0]), 2)
    46.67
    >>> s_adapt([[80.0, np.nan], [70.0, 60.0]], K=[100, 25], Z=[40.0, np.nan])
    nan
    """
    learned = np.diagonal(accuracy_matrix(A))
    return float(scarcity_weights(K) @ ((np.asarray(Z, dtype=np.float64) + learned) / 2.0))


def s_last(A: npt.ArrayLike, K: npt.ArrayLike) -> float:
    r"""Return how well domains are known in the end, scarce ones counting more.

    .. math:: S_{last} = \sum_t w_t A_{Tt}

    >>> round(s_last([[80.0, np.nan], [70.0, 60.0]], K=[100, 25]), 2)
    63.33
    """
    return float(scarcity_weights(K) @ last_per_domain(A))


def s_cde(adapt: float, final: float) -> float:
    r"""Return the harmonic mean of S_adapt and S_last, 0 if both are 0.

    .. math:: S_{CDE} = \frac{2 S_{adapt} S_{last}}{S_{adapt} + S_{last}}

    >>> round(s_cde(53.63, 70.49), 2)
    60.91
    >>> s_cde(0.0, 0.0), s_cde(float("nan"), 70.0)
    (0.0, nan)
    """
    return harmonic_mean(adapt, final)


def harmonic_mean(one: float, other: float) -> float:
    r"""Return the harmonic mean of two numbers, such as base and novel accuracy; 0 if both are 0.

    .. math:: \frac{2 a b}{a + b}

    >>> harmonic_mean(60.0, 30.0)
    40.0
    """
    total = one + other
    return 0.0 if total == 0.0 else 2.0 * one * other / total


def base_accuracy(A: npt.ArrayLike) -> float:
    r"""Return the accuracy on the classes of the first step, the base session, after the last step: :math:`A_{T1}`.

    >>> base_accuracy([[80.0, np.nan], [70.0, 60.0]])
    70.0
    """
    return float(last_per_domain(A)[0])


def novel_accuracy(A: npt.ArrayLike, asked: npt.ArrayLike) -> float:
    r"""Return the accuracy on the classes of all later steps, after the last step; NaN if there is one step.

    .. math:: \sum_{j > 1} n_j A_{Tj} / \sum_{j > 1} n_j

    >>> novel_accuracy([[80.0, np.nan, np.nan], [70.0, 60.0, np.nan], [76.0, 50.0, 90.0]], asked=[500, 30, 10])
    60.0
    """
    later, weights = last_per_domain(A)[1:], np.asarray(asked, dtype=np.float64)[1:]
    return float(weights @ later / weights.sum()) if later.size else float("nan")


def final_forgetting(A: npt.ArrayLike) -> Doubles:
    r"""Return what each domain lost from when it was learned to the end.

    .. math:: F_j = A_{jj} - A_{Tj}

    >>> final_forgetting([[80.0, np.nan, np.nan], [70.0, 60.0, np.nan], [76.0, 50.0, 90.0]])
    array([ 4., 10.,  0.])
    """
    matrix = accuracy_matrix(A)
    return np.diagonal(matrix) - matrix[-1]


def worst_forgetting(A: npt.ArrayLike) -> Doubles:
    r"""Return what each domain lost from its best step to the end.

    .. math:: F_j = \max_{t \ge j} A_{tj} - A_{Tj}

    >>> worst_forgetting([[70.0, np.nan, np.nan], [80.0, 60.0, np.nan], [76.0, 50.0, 90.0]])
    array([ 4., 10.,  0.])
    """
    matrix = accuracy_matrix(A)
    best = np.array([matrix[domain:, domain].max() for domain in range(len(matrix))])
    return best - matrix[-1]


def forgetting(per_domain: npt.ArrayLike) -> float:
    r"""Return the mean forgetting of the domains before the last, which cannot have lost anything.

    .. math:: \frac1{T - 1} \sum_{j < T} F_j

    >>> forgetting([4.0, 10.0, 0.0])
    7.0
    """
    lost = np.asarray(per_domain, dtype=np.float64)[:-1]
    return float(lost.mean()) if lost.size else float("nan")


def backward_transfer(A: npt.ArrayLike) -> float:
    r"""Return what later steps did to the domains before the last; negative where they forget.

    .. math:: \frac1{T - 1} \sum_{j < T} (A_{Tj} - A_{jj})

    >>> backward_transfer([[80.0, np.nan, np.nan], [70.0, 60.0, np.nan], [76.0, 50.0, 90.0]])
    -7.0
    """
    return -forgetting(final_forgetting(A))


def forward_transfer(A: npt.ArrayLike, R: npt.ArrayLike) -> float:
    r"""Return what earlier steps do for a new domain, against the method that learns this domain alone.

    .. math:: \frac1{T - 1} \sum_{j > 1} (A_{jj} - R_j)

    Under CIL the classes of earlier domains are candidates for A and not for R, so it is usually negative; under MTIL
    the candidates are the same.

    >>> forward_transfer([[80.0, np.nan, np.nan], [70.0, 60.0, np.nan], [76.0, 50.0, 90.0]], R=[80.0, 64.0, 88.0])
    -1.0
    """
    gained = (np.diagonal(accuracy_matrix(A)) - np.asarray(R, dtype=np.float64))[1:]
    return float(gained.mean()) if gained.size else float("nan")


def transfer(A: npt.ArrayLike) -> float:
    r"""Return the accuracy on domains before they are learned, as X-TAIL measures it.

    .. math:: \frac1{T - 1} \sum_{j > 1} \frac1{j - 1} \sum_{t < j} A_{tj}

    >>> transfer([[80.0, 30.0, 10.0], [70.0, 60.0, 20.0], [76.0, 50.0, 90.0]])
    22.5
    >>> transfer([[80.0, np.nan], [70.0, 60.0]])
    nan
    """
    matrix = accuracy_matrix(A)
    before = [matrix[:domain, domain].mean() for domain in range(1, len(matrix))]
    return float(np.mean(before)) if before else float("nan")


def average_x_tail(A: npt.ArrayLike) -> float:
    r"""Return X-TAIL's Average: over all cells, before and after learning.

    .. math:: \frac1{T^2} \sum_t \sum_j A_{tj}

    >>> average_x_tail([[80.0, 30.0], [70.0, 60.0]])
    60.0
    """
    return float(accuracy_matrix(A).mean())


def gap(values: npt.ArrayLike) -> float:
    r"""Return how far the best domain is ahead of the worst.

    .. math:: \max_j a_j - \min_j a_j

    >>> round(gap([69.38, 60.58]), 2)
    8.8
    """
    row = np.asarray(values, dtype=np.float64)
    return float(row.max() - row.min())


def interval(values: npt.ArrayLike) -> float:
    r"""Return the half width of the t interval of the mean over seeds; NaN for a single seed.

    .. math:: t_{0.975, n - 1} \, s / \sqrt n

    Four seeds have 3.182 s/2:

    >>> round(interval([1.0, 2.0, 3.0, 4.0]), 3)
    2.054
    """
    runs = np.asarray(values, dtype=np.float64)
    if runs.size < 2:
        return float("nan")
    return float(student.ppf(0.975, runs.size - 1) * runs.std(ddof=1) / np.sqrt(runs.size))


def calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float:
    r"""Return the expected calibration error in percent, over equal bins of the probability of the answer.

    .. math:: \sum_b \frac{n_b}{n} \, | \text{right}_b - \text{confidence}_b |

    with the shares of right answers and the mean probabilities of the n_b answers in each bin.

    >>> round(calibration_error([0.9, 0.9, 0.9, 0.9], [True, True, True, False]), 6)
    15.0
    """
    chance, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if chance.ndim != 1 or chance.shape != hit.shape or not chance.size:
        raise HyCalError(f"{chance.shape} probabilities came with {hit.shape} answers; expected one of each per query.")
    bin_of = np.minimum((chance * _BINS).astype(np.intp), _BINS - 1)
    gaps = np.bincount(bin_of, weights=hit - chance, minlength=_BINS)
    return float(100.0 * np.abs(gaps).sum() / chance.size)
