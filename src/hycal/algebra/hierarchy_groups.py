"""Domains where no names of domains were given: groups of classes with similar means.

Ward's method merges, step by step, the two groups whose merging adds least to the squared distances of class means from
the mean of their group. It stops at sqrt(C)/2 groups for C classes. The groups depend on the samples alone. Classes of
many kinds gain by groups, classes of one kind lose: held-out samples decide. Fewer than 64 classes stay one group.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
import numpy.typing as npt

from hycal.state.records import Records
from hycal.validation import Doubles

_FEWEST = 64  # classes that are divided into groups


def domain_candidates(records: Records, domains: str) -> list[npt.NDArray[np.intp]]:
    """Return one or two ways to number the domains of classes, (C,) each: as they are named, and with groups.

    `domains` "named" groups the classes that have no domain name; "found" forgets all names.
    """
    names = records.domains if domains == "named" else np.full(len(records.counts), "")
    numbers, nameless = np.unique(names, return_inverse=True)[1], np.flatnonzero(names == "")
    if len(nameless) < _FEWEST:
        return [numbers]
    means = np.stack([records.ordered[column].samples.mean for column in nameless])
    grouped = numbers.copy()
    grouped[nameless] = len(numbers) + ward_groups(means)
    return [numbers, np.unique(grouped, return_inverse=True)[1]]


def ward_groups(means: Doubles) -> npt.NDArray[np.intp]:
    """Return the number of the group of each class, (C,), from class means, (C, d).

    >>> np.bincount(ward_groups(np.repeat(np.eye(4), 16, axis=0))).tolist()
    [16, 16, 16, 16]
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # takes 0.1 s to import, and few models need it

    order = np.lexsort(means.T)  # so that ties do not depend on labels
    groups = np.empty(len(means), np.intp)
    groups[order] = fcluster(linkage(means[order], "ward"), isqrt(len(means)) // 2, "maxclust") - 1
    return groups
