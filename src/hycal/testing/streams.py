"""Small synthetic streams of labelled embeddings, for checks that need data of a known shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hycal.state.steps import LearningStep
from hycal.validation import Doubles, Label, unit_views


@dataclass(frozen=True, eq=False)
class Stream:
    """Learning steps, one domain each, and queries from the same classes.

    Examples
    --------
    >>> stream = Stream.synthetic(0, shots=[[2, 3], [4]], width=8)
    >>> [len(step.y) for step in stream.steps]
    [5, 4]
    """

    steps: tuple[LearningStep, ...]
    queries: Doubles

    @classmethod
    def synthetic(
        cls, seed: int, *, shots: Sequence[Sequence[int]], width: int, queries: int = 12, spread: float = 0.4
    ) -> Self:
        """Draw clusters in a cone, as CLIP's embeddings lie.

        Parameters
        ----------
        seed : int
        shots : sequence of sequences of int
            Sample count of each class of each domain.
        width : int
            Embedding dimension, at least 4.
        queries : int
            How many queries to draw.
        spread : float
            Of the samples of a class.
        """
        rng = np.random.default_rng(seed)
        steps, centres, label = [], [], 0
        for number, counts in enumerate(shots):
            labels = list(range(label, label + len(counts)))
            label += len(counts)
            means = _unit(np.full(width, 1.5) + rng.normal(size=(len(counts), width)))
            centres.append(means)
            rows = np.repeat(np.arange(len(counts)), counts)
            X = _unit(means[rows] + spread / np.sqrt(width) * rng.normal(size=(len(rows), width)))
            text = _unit(means + 2.0 / np.sqrt(width) * rng.normal(size=means.shape))
            steps.append(
                LearningStep(
                    X, tuple(labels[row] for row in rows), f"domain {number}", dict(zip(labels, text, strict=True))
                )
            )
        picked = np.concatenate(centres)[rng.integers(label, size=queries)]
        return cls(tuple(steps), _unit(picked + spread / np.sqrt(width) * rng.normal(size=picked.shape)))

    @property
    def labels(self) -> list[Label]:
        """Every label, sorted."""
        return sorted({label for step in self.steps for label in step.y})

    def in_views(self, views: Sequence[int] | None) -> Stream:
        """Return the stream for a model of several views: the part of each view in a text has length one."""
        if views is None:
            return self

        def scaled(step: LearningStep) -> LearningStep:
            rows = unit_views(np.stack(list(step.text.values())), views).astype(np.float64)
            return replace(step, text=dict(zip(step.text, rows, strict=True)))

        return self.map(scaled)

    def map(self, change: Callable[[LearningStep], LearningStep]) -> Stream:
        """Return the stream with every step changed."""
        return replace(self, steps=tuple(change(step) for step in self.steps))


def learn(classifier: Any, steps: Sequence[LearningStep]) -> Any:
    """Have `classifier` learn the steps in order; returns it.

    Examples
    --------
    >>> from hycal import NCM
    >>> stream = Stream.synthetic(0, shots=[[2, 3], [4]], width=8)
    >>> len(learn(NCM(), stream.steps).classes_)
    3
    """
    for step in steps:
        classifier.partial_fit(step.X, list(step.y), domain=step.domain, text=step.text)
    return classifier


def _unit(rows: Doubles) -> Doubles:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
