"""Small problems for `benchmarks.small`: 2 to 20 classes of one discipline, 1 to 10 images of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.domains import Domain, disciplines, missing, stream
from hycal.validation import Floats, unit_rows

CLASSES, SHOTS = (2, 5, 10, 20), (1, 2, 3, 5, 10)
_OTHERS = 100  # queries of other disciplines, and of classes of the discipline that were not learned


@dataclass(frozen=True, eq=False)
class Problem:
    """What to learn, and three kinds of queries.

    Attributes
    ----------
    discipline : str
    X, y : ndarrays of shape (n, d) and (n,)
    queries, answers : ndarrays
        Test images of the learned classes.
    unlearned, others : ndarrays of shape (m, d)
        Test images of other classes of the same discipline, and of other disciplines.
    """

    discipline: str
    X: Floats
    y: npt.NDArray[np.str_]
    queries: Floats
    answers: npt.NDArray[np.str_]
    unlearned: Floats
    others: Floats

    def with_duplicates(self, seed: int) -> Problem:
        """Return the same number of images, of which every second one is a near-duplicate of the one before it."""
        rng = np.random.default_rng(seed)
        X = self.X.copy()
        for label in np.unique(self.y):
            rows = np.flatnonzero(self.y == label)
            originals = X[rows[::2]][: len(rows) // 2]
            noise = unit_rows(rng.standard_normal(originals.shape).astype(np.float32))
            X[rows[1::2]] = unit_rows(originals + np.float32(0.05) * noise)
        return Problem(self.discipline, X, self.y, self.queries, self.answers, self.unlearned, self.others)


def suites() -> dict[str, list[Domain]]:
    """Return the disciplines of the bundled embeddings, and the ViT-B/32 sets where they are there."""
    found = {"xd8": disciplines()}
    if complaint := missing():
        print(f"ViT-B/32 is skipped: {complaint}")
    else:
        found["ViT-B/32"] = stream(shots=None)
    return found


def problems(domains: Sequence[Domain], classes: int, shots: int, *, draws: int, seed: int = 0) -> Iterator[Problem]:
    """Yield problems of disciplines that have enough classes of enough images, each in turn."""
    able = [(domain, names) for domain in domains if len(names := _classes(domain, shots)) >= classes]
    for number in range(draws):
        domain, names = able[number % len(able)]
        rng = np.random.default_rng([seed, classes, shots, number])
        yield _problem(domain, domains, rng.permutation(names)[:classes], shots, rng)


def _classes(domain: Domain, shots: int) -> npt.NDArray[np.str_]:
    names, counts = np.unique(domain.y, return_counts=True)
    return names[counts >= shots]


def _problem(
    domain: Domain, domains: Sequence[Domain], chosen: npt.NDArray[np.str_], shots: int, rng: np.random.Generator
) -> Problem:
    rows = np.concatenate([rng.permutation(np.flatnonzero(domain.y == name))[:shots] for name in np.sort(chosen)])
    known = np.isin(domain.answers, chosen)
    others = np.concatenate([other.queries for other in domains if other is not domain])
    return Problem(
        domain.name,
        domain.X[rows],
        domain.y[rows],
        domain.queries[known],
        domain.answers[known],
        _some(domain.queries[~known], rng),
        _some(others, rng),
    )


def _some(rows: Floats, rng: np.random.Generator) -> Floats:
    return rows[rng.permutation(len(rows))[:_OTHERS]]
