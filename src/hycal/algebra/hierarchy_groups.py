"""Domains where no names of domains were given: groups of classes with similar means.

Ward's method merges, step by step, the two groups whose merging adds least to the squared distances of class means from
the mean of their group. It stops at sqrt(C)/2 groups for C classes. Fewer than 64 classes are one group: a small set
is usually of one kind, and its probabilities are better undivided. The groups depend on the samples alone.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
import numpy.typing as npt

from hycal.state.records import Records
from hycal.validation import Doubles

_FEWEST = 64  # classes that are divided into groups


def domain_numbers(records: Records, domains: str) -> npt.NDArray[np.intp]:
    """Return the number of the domain of each class, (C,).

    Parameters
    ----------
    records : Records
    domains : {"named", "found"}
        "named" groups the classes that have no domain name; "found" groups all classes.
    """
    numbers = np.unique(records.domains, return_inverse=True)[1]
    nameless = np.flatnonzero((records.domains == "") | (domains == "found"))
    if len(nameless):
        means = np.stack([records.ordered[column].samples.mean for column in nameless])
        numbers[nameless] = len(numbers) + ward_groups(means)
    return np.unique(numbers, return_inverse=True)[1]


def ward_groups(means: Doubles) -> npt.NDArray[np.intp]:
    """Return the number of the group of each class, (C,), from class means, (C, d).

    >>> np.bincount(ward_groups(np.repeat(np.eye(4), 16, axis=0))).tolist()
    [16, 16, 16, 16]
    """
    if len(means) < _FEWEST:
        return np.zeros(len(means), np.intp)
    from scipy.cluster.hierarchy import fcluster, linkage  # takes 0.1 s to import, and few models need it

    order = np.lexsort(means.T)  # so that ties do not depend on labels
    groups = np.empty(len(means), np.intp)
    groups[order] = fcluster(linkage(means[order], "ward"), isqrt(len(means)) // 2, "maxclust") - 1
    return groups
