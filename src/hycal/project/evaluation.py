"""The accuracy of a model on a test: overall, by domain, by class, and by the number of learned images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hycal.project.state import State
from hycal.validation import Floats, Label

T = TypeVar("T", str, Label)

_ROWS_AT_ONCE = 1024
SHOTS = (0, 1, 2, 5, 10, 20, 50)


@dataclass(frozen=True)
class Score:
    """Number of right answers and number of images."""

    right: int
    total: int

    @property
    def accuracy(self) -> float:
        """Share of right answers; NaN if there are no images."""
        return self.right / self.total if self.total else float("nan")


@dataclass(frozen=True)
class Confusion:
    """Number of images of class `truth` that were classified as `answer`."""

    truth: Label
    answer: Label
    count: int


@dataclass(frozen=True)
class Evaluation:
    """The result of a test."""

    overall: Score
    # `by_shots` by range of learned images, as in "5-9".
    by_domain: Mapping[str, Score]
    by_class: Mapping[Label, Score]
    by_shots: Mapping[str, Score]
    shots: Mapping[Label, int]  # number of learned images of each tested class
    confusions: tuple[Confusion, ...]  # most frequent first


def best_labels(
    state: State, rows: Floats, *, watch: Callable[[int, int], None] = lambda done, total: None
) -> list[Label]:
    """Return the best class for each embedding; scores are computed for a few rows at a time.

    `watch` is called with the number of rows that are done, and of all.
    """
    found: list[Label] = []
    while len(found) < len(rows):
        found += state.classifier.predict(rows[len(found) : len(found) + _ROWS_AT_ONCE]).tolist()
        watch(len(found), len(rows))
    return found


def evaluate(state: State, answers: Iterable[tuple[Label, Label]]) -> Evaluation:
    """Compare (truth, answer) pairs, all labels of the model."""
    found = Counter(answers)
    shots = {label: state.classes[label].count for label, _ in found}
    return Evaluation(
        overall=_score(found),
        by_domain=_grouped(found, lambda label: state.classes[label].domain),
        by_class=_grouped(found, lambda label: label),
        by_shots=dict(
            sorted(_grouped(found, lambda label: bucket(shots[label])).items(), key=lambda item: _first(item[0]))
        ),
        shots=shots,
        confusions=confusions(found),
    )


def confusions(found: Mapping[tuple[Label, Label], int]) -> tuple[Confusion, ...]:
    """Return the wrong answers by class and answer, most frequent first."""
    wrong = [Confusion(truth, answer, count) for (truth, answer), count in found.items() if truth != answer]
    return tuple(sorted(wrong, key=lambda item: (-item.count, str(item.truth), str(item.answer))))


def bucket(shots: int) -> str:
    """Return the range of shots that a class belongs to.

    >>> bucket(1), bucket(7), bucket(300)
    ('1', '5-9', '50 or more')
    """
    edges = [edge for edge in SHOTS if edge <= shots]
    first, rest = edges[-1], SHOTS[len(edges) :]
    if not rest:
        return f"{first} or more"
    return str(first) if rest[0] == first + 1 else f"{first}-{rest[0] - 1}"


def _first(name: str) -> int:
    return int(name.split("-")[0].split()[0])


def _score(found: Mapping[tuple[Label, Label], int]) -> Score:
    return Score(sum(count for (truth, answer), count in found.items() if truth == answer), sum(found.values()))


def _grouped(found: Mapping[tuple[Label, Label], int], group: Callable[[Label], T]) -> dict[T, Score]:
    groups: dict[T, dict[tuple[Label, Label], int]] = {}
    for pair, count in found.items():
        groups.setdefault(group(pair[0]), {})[pair] = count
    return {name: _score(groups[name]) for name in sorted(groups)}
