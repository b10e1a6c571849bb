"""Piles for `benchmarks.pile`: images of one discipline without labels, and rivals that choose what to label.

A balanced pile has 80% of the images of each class, drawn by seed. In a Zipf pile the class of rank r, by seed, has 1/r
of the images of the first, and at least one. A person labels images in rounds of C/4, C being the number of classes,
and the model learns after each. Test images are those of the discipline, about as many of each class.

Two oracles know the label of every image before they choose: they take each class in turn, any image of it or its most
typical ones. They show what a choice without labels can hope for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.domains import Domain, disciplines, missing, stream
from hycal import HierarchicalHyCal
from hycal.base import IncrementalClassifier
from hycal.pile.discovery import discover
from hycal.pile.suggestion import suggest
from hycal.validation import Floats

SEEDS = (0, 1, 2, 3)
LABELS = (1, 2, 3, 4, 6, 8)  # for each class on average
KINDS = ("balanced", "zipf")
SHARED = ("dtd", "flowers")
_KEPT = 0.8
_MOST = 0.5  # of the pile is labelled
_SHARE = 0.9  # of the accuracy of all labels

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pile:
    """A pile with the labels that a person would give, and the test images of its discipline."""

    name: str
    X: Floats
    y: npt.NDArray[np.str_]
    domain: Domain
    seed: int

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.y))

    def learned(self, rows: Sequence[int] | Rows) -> IncrementalClassifier:
        """Return the default method after learning some rows with their labels."""
        chosen = np.asarray(rows, np.intp)
        return HierarchicalHyCal().fit(self.X[chosen], self.y[chosen])

    def found(self, rows: Sequence[int] | Rows) -> float:
        """Return the share of classes that have a label, in percent."""
        return 100.0 * len(np.unique(self.y[np.asarray(rows, np.intp)])) / self.classes

    def budgets(self) -> list[int]:
        """Return the labels for each class on average that leave half of the pile unlabelled."""
        return [labels for labels in LABELS if labels * self.classes <= _MOST * len(self.y)]


def domains() -> list[Domain]:
    """Return the bundled disciplines, and two ViT-B/32 sets where they are there."""
    found = disciplines()
    if complaint := missing():
        print(f"ViT-B/32 is skipped: {complaint}")
        return found
    return found + stream(SHARED, shots=None, queries=800)


def pile(domain: Domain, kind: str, seed: int) -> Pile:
    """Return the pile of a discipline."""
    rng = np.random.default_rng([seed, KINDS.index(kind), *domain.name.encode()])
    names = rng.permutation(np.unique(domain.y))
    most = max(int(np.sum(domain.y == name)) for name in names)
    rows = []
    for rank, name in enumerate(names, start=1):
        own = rng.permutation(np.flatnonzero(domain.y == name))
        rows.append(own[: round(_KEPT * len(own)) if kind == "balanced" else max(1, round(most / rank))])
    chosen = rng.permutation(np.concatenate(rows))
    return Pile(f"{kind}/{domain.name}/{seed}", domain.X[chosen], domain.y[chosen], domain, seed)


Strategy = Callable[[Pile, list[int], int], list[int]]  # pile, rows labelled so far, all to have: the rows then


def ours(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """`hycal.suggest`, round by round."""
    for count in _rounds(pile, labelled, labels):
        classifier = pile.learned(labelled) if labelled else None
        labelled = labelled + suggest(pile.X, count, classifier).tolist()
    return labelled


def at_random(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """Images drawn evenly."""
    return np.random.default_rng([pile.seed, 99]).permutation(len(pile.y))[:labels].tolist()


def k_means_medoids(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """The image nearest to each centre of scikit-learn's k-means, with all labels chosen anew."""
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = KMeans(labels, n_init=1, random_state=pile.seed).fit(pile.X)
    distance = found.transform(pile.X)
    return [int(np.where(found.labels_ == k, distance[:, k], np.inf).argmin()) for k in range(labels)]


def margin(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """The least margin of the two best classes, in the same rounds; the first is drawn evenly."""
    for count in _rounds(pile, labelled, labels):
        if not labelled:
            labelled = at_random(pile, [], count)
            continue
        chances = np.sort(pile.learned(labelled).predict_proba(pile.X), axis=1)
        margins = chances[:, -1] - chances[:, -2] if chances.shape[1] > 1 else chances[:, -1]
        margins[labelled] = np.inf
        labelled = labelled + np.argsort(margins, kind="stable")[:count].tolist()
    return labelled


def core_set(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """The image farthest from all chosen ones, again and again (k-centre greedy)."""
    chosen = list(labelled) or at_random(pile, [], 1)
    nearest = (pile.X @ pile.X[chosen].T).max(axis=1)
    while len(chosen) < labels:
        chosen.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, pile.X @ pile.X[chosen[-1]])
    return chosen


def _rounds(pile: Pile, labelled: list[int], labels: int) -> Iterator[int]:
    have = len(labelled)
    while have < labels:
        count = min(max(1, pile.classes // 4), labels - have)
        yield count
        have += count


def any_of_each_class(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """Each class in turn, any image of it."""
    rng = np.random.default_rng([pile.seed, 98])
    return [int(row) for own, count in _in_turn(pile, labels) for row in rng.permutation(own)[:count]]


def typical_of_each_class(pile: Pile, labelled: list[int], labels: int) -> list[int]:
    """Each class in turn, the images of it that cover it best."""
    return [int(own[at]) for own, count in _in_turn(pile, labels) for at in suggest(pile.X[own], count)]


def _in_turn(pile: Pile, labels: int) -> Iterator[tuple[Rows, int]]:
    """Yield the rows of each class, and how many of them are labelled if classes take turns, the largest first."""
    names, counts = np.unique(pile.y, return_counts=True)
    turns = np.concatenate([np.arange(count) for count in counts])
    classes = np.repeat(np.arange(len(names)), counts)
    taken = classes[np.lexsort((-counts[classes], turns))[:labels]]
    for name, count in zip(names, np.bincount(taken, minlength=len(names)), strict=True):
        if count:
            yield np.flatnonzero(pile.y == name), int(count)


ORACLES: Mapping[str, Strategy] = {
    "oracle: any of each": any_of_each_class,
    "oracle: typical": typical_of_each_class,
}
STRATEGIES: Mapping[str, Strategy] = {
    "hycal.suggest": ours,
    "random": at_random,
    "k-means medoids": k_means_medoids,
    "margin": margin,
    "core-set": core_set,
    **ORACLES,
}


def cells(pile: Pile, strategy: Strategy) -> list[float]:
    """Return accuracy and share of classes found at each number of labels."""
    measured: list[float] = []
    labelled: list[int] = []
    for labels in pile.budgets():
        labelled = strategy(pile, labelled, labels * pile.classes)
        measured += [pile.domain.accuracy(pile.learned(labelled)), pile.found(labelled)]
    return measured


def all_labels(pile: Pile) -> list[float]:
    """Return the accuracy after all labels of the pile."""
    return [pile.domain.accuracy(pile.learned(np.arange(len(pile.y))))]


def labels_needed(pile: Pile, strategy: Strategy) -> list[float]:
    """Return how many labels for each class give 90% of the accuracy of all labels, by linear interpolation."""
    wanted = _SHARE * all_labels(pile)[0]
    labelled: list[int] = []
    last = 0.0
    for labels in range(1, len(pile.y) // pile.classes + 1):
        labelled = strategy(pile, labelled, labels * pile.classes)
        accuracy = pile.domain.accuracy(pile.learned(labelled))
        if accuracy >= wanted:
            return [labels - 1 + (wanted - last) / (accuracy - last)]
        last = accuracy
    return [len(pile.y) / pile.classes]


@dataclass(frozen=True, eq=False)
class Unlearned:
    """A discipline with 30% of its classes unlearned: the model of the others, and the pile of all other images."""

    classifier: IncrementalClassifier
    X: Floats
    y: npt.NDArray[np.str_]
    new: npt.NDArray[np.bool_]


_SHOTS, _UNLEARNED = 8, 0.3


def unlearned(domain: Domain, seed: int, shots: int = _SHOTS) -> Unlearned:
    """Return a discipline of which some images of 70% of the classes were learned."""
    rng = np.random.default_rng([seed, 2, *domain.name.encode()])
    names = rng.permutation(np.unique(domain.y))
    new = names[: max(1, round(_UNLEARNED * len(names)))]
    taught, rest = [], []
    for name in names:
        own = rng.permutation(np.flatnonzero(domain.y == name))
        count = 0 if name in new else shots
        taught.append(own[:count])
        rest.append(own[count:])
    rows, pile = np.concatenate(taught), np.concatenate(rest)
    classifier = HierarchicalHyCal().fit(domain.X[rows], domain.y[rows])
    return Unlearned(classifier, domain.X[pile], domain.y[pile], np.isin(domain.y[pile], new))


def discovery_cells(domain: Domain, seed: int) -> list[float]:
    """Return known images left alone, unlearned images grouped, AMI of ours and of k-means, groups and new classes.

    k-means has the true number of unlearned classes, and the same images: those that we group.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_mutual_info_score

    problem = unlearned(domain, seed)
    groups = discover(problem.X, problem.classifier)
    grouped, classes = groups >= 0, len(np.unique(problem.y[problem.new]))
    y, ours = problem.y[grouped], groups[grouped]
    rival = KMeans(min(classes, len(y)), n_init=10, random_state=seed).fit_predict(problem.X[grouped])
    left, found = 100.0 * np.mean(~grouped[~problem.new]), 100.0 * np.mean(grouped[problem.new])
    information = [100.0 * adjusted_mutual_info_score(y, each) for each in (ours, rival)]
    return [left, found, *information, float(ours.max(initial=-1) + 1), float(classes)]
