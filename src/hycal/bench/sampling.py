"""Few-shot sampling: which training images of each domain are learned.

Under "own" sampling every (setting, seed, domain) has a generator of its own, so the images of a domain depend neither
on the other domains nor on their order. "released" follows the released code: one `random` stream and one NumPy stream
for the whole run, used domain after domain; missing shots are drawn with replacement, whatever the setting's policy.
Uses of the streams that are not public cannot be followed. Under both, a list of shots goes to the classes in the order
of `DomainShots.draws`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.bench.settings import DEFAULT_ORDER, DomainShots, Setting
from hycal.errors import HyCalError
from hycal.escaping import csv_line

SAMPLES_HEAD = "domain,label,row\n"
Rows = tuple[int, ...]
Draw = Callable[[list[int], int], list[int]]


@dataclass(frozen=True)
class Shortage:
    """A class that has fewer images than shots."""

    label: int
    asked: int
    available: int


@dataclass(frozen=True)
class SampleList:
    """The training rows of one domain, class after class, with every class that was short of images."""

    domain: str
    rows: Rows
    labels: tuple[int, ...]
    shortages: tuple[Shortage, ...]


def draw_samples(
    setting: Setting, seed: int, pools: Mapping[str, npt.ArrayLike], *, order: str = DEFAULT_ORDER
) -> dict[str, SampleList]:
    """Return the samples of every domain.

    `pools` has the labels of the training images of each domain, in the order of the published lists. "released"
    sampling depends on the order of the domains, "own" sampling does not.
    """
    stream, numbers = random.Random(seed), np.random.RandomState(seed)
    drawn = {}
    for domain in setting.in_order(order):
        if domain.name not in pools:
            raise HyCalError(f"There are no images of domain {domain.name!r}; found {', '.join(pools) or 'none'}.")
        pool = _by_class(domain, pools[domain.name])
        if setting.sampling == "own":
            once, short = _own(setting, seed, domain)
        elif domain.draws == "numpy":
            once, short = _released_numpy(numbers)
        else:
            once, short = stream.sample, lambda rows, k: stream.choices(rows, k=k)
        drawn[domain.name] = _draw(domain, seed, pool, once, short)
    return drawn


def _draw(domain: DomainShots, seed: int, pool: dict[int, list[int]], once: Draw, short: Draw) -> SampleList:
    """Draw class after class: `once` where there are enough images, `short` where there are not."""
    rows: list[int] = []
    labels: list[int] = []
    shortages = []
    for asked, (label, available) in zip(domain.shots_for(seed), pool.items(), strict=True):
        if asked > len(available):
            shortages.append(Shortage(label, asked, len(available)))
        taken = (short if asked > len(available) else once)(available, asked)
        rows += taken
        labels += [label] * len(taken)
    return SampleList(domain.name, tuple(rows), tuple(labels), tuple(shortages))


def _by_class(domain: DomainShots, labels: npt.ArrayLike) -> dict[int, list[int]]:
    """Return the rows of each class, classes in the order of `domain.draws`."""
    pool: dict[int, list[int]] = {}
    for row, label in enumerate(np.asarray(labels).tolist()):
        pool.setdefault(label, []).append(row)
    if len(pool) != domain.classes:
        raise HyCalError(
            f"Domain {domain.name!r} has training images of {len(pool)} classes; the setting expects {domain.classes}. "
            "Check that the embeddings are those of this data set."
        )
    return dict(sorted(pool.items())) if domain.draws == "numpy" else pool


def _own(setting: Setting, seed: int, domain: DomainShots) -> tuple[Draw, Draw]:
    key = f"{setting.like or setting.name}/{seed}/{domain.name}".encode()
    generator = np.random.default_rng(list(hashlib.sha256(key).digest()))

    def once(rows: list[int], k: int) -> list[int]:
        return sorted(generator.permutation(rows)[:k].tolist())

    def again(rows: list[int], k: int) -> list[int]:
        return sorted(generator.choice(rows, size=k, replace=True).tolist())

    return once, again if setting.short == "with-replacement" else lambda rows, k: list(rows)


def _released_numpy(numbers: np.random.RandomState) -> tuple[Draw, Draw]:
    def once(rows: list[int], k: int) -> list[int]:
        return list(numbers.choice(rows, k, replace=False).tolist())

    def rest_again(rows: list[int], k: int) -> list[int]:
        return once(rows, len(rows)) + list(numbers.choice(rows, k - len(rows), replace=True).tolist())

    return once, rest_again


def sample_csv(samples: Sequence[SampleList]) -> str:
    """Return sample lists as CSV: domain, label, row. The same lists give the same text."""
    rows: list[tuple[object, ...]] = []
    for sample in sorted(samples, key=lambda sample: sample.domain):
        rows += [(sample.domain, label, row) for label, row in zip(sample.labels, sample.rows, strict=True)]
    return SAMPLES_HEAD + "".join(f"{csv_line(row)}\n" for row in rows)


def sample_hash(samples: Sequence[SampleList]) -> str:
    """Return the SHA-256 of `sample_csv`: equal hashes mean equal training images."""
    return hashlib.sha256(sample_csv(samples).encode()).hexdigest()
