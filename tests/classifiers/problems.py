"""Small problems whose embeddings are unit float32 rows already, so that textbook and library see the same numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hycal.testing.streams import Stream
from hycal.validation import unit_rows


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples of each class (K, d), texts (C, d) and queries (n, d), in float64."""

    samples: list
    texts: np.ndarray
    queries: np.ndarray

    @classmethod
    def draw(cls, *counts, width=12, seed=0):
        stream = Stream.synthetic(seed, shots=[list(counts)], width=width, queries=25)
        step = stream.steps[0]
        y = np.array(step.y)
        return cls(
            [exact(step.X[y == label]) for label in range(len(counts))],
            exact(np.stack([step.text[label] for label in range(len(counts))])),
            exact(stream.queries),
        )

    @property
    def X(self):  # noqa: N802
        return np.concatenate(self.samples)

    @property
    def y(self):
        return np.repeat(np.arange(len(self.samples)), [len(x) for x in self.samples])

    @property
    def targets(self):
        return np.eye(len(self.samples))[self.y]

    @property
    def means(self):
        return np.stack([x.mean(axis=0) for x in self.samples])

    @property
    def scatter(self):
        return sum((x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) for x in self.samples)

    def scores(self, classifier):
        """What `classifier` answers after learning all of it with text."""
        return self.learn(classifier).class_scores(self.queries)

    def learn(self, classifier):
        order = np.random.default_rng(0).permutation(len(self.X))
        return classifier.fit(self.X[order], self.y[order], text=dict(enumerate(self.texts)))


def exact(rows):
    return unit_rows(np.asarray(rows)).astype(np.float64)


#: Fewer samples than dimensions, more, one shot among many, one shot only.
PROBLEMS = [
    Problem.draw(3, 1, 4),
    Problem.draw(9, 20, 7, width=6),
    Problem.draw(1, 40, 2, 5, seed=1),
    Problem.draw(1, 1, 1, seed=2),
]


def assert_agree(got, expected):
    """To 1e-6 of the largest score."""
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= 1e-6 * (1.0 + np.abs(expected).max())


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def in_domains(problem, classifier, domains):
    """`classifier` after it learned class c of the problem in the domain `domains[c]`, one class after the other."""
    for label, rows in enumerate(problem.samples):
        text = {label: problem.texts[label]}
        classifier.partial_fit(rows, [label] * len(rows), domain=domains[label], text=text)
    return classifier


def domain_covariances(problem, domains, strength):
    """Sigma of the domain of every class."""
    scatters = [(x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) for x in problem.samples]
    pooled = sum(scatters) / max(len(problem.X) - len(scatters), 1)
    found = []
    for domain in domains:
        own = [label for label, other in enumerate(domains) if other == domain]
        freedom = sum(len(problem.samples[label]) - 1 for label in own)
        found.append((sum(scatters[label] for label in own) + strength * pooled) / (freedom + strength))
    return found
