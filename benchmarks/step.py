"""What one corrected image costs, beside learning everything: python -m benchmarks.step.

    python -m benchmarks.step                              1,000 classes of 10 images, every method
    python -m benchmarks.step --classes 10000 --shots 5    the larger size
    python -m benchmarks.step --only SLDA HyCal            some methods
    python -m benchmarks.step --growth 500 1000 2000       the same step in models of more classes, in eight domains
    python -m benchmarks.step --stream                     1,000 steps of one image each, against learning at once
    python -m benchmarks.step --page                       a correction of the page, with HierarchicalHyCal
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.step --clock cpu     seconds of one core, whatever else the machine does

"All" learns every image and answers one query with `predict_proba`. "Step" takes an image back from one class, learns
it in another and answers a query again; it is the median of a few. "Ratio" is all over step. "Apart" compares with a
model built anew from the same records: the largest difference of a probability over 200 queries, and how many of 200
best classes are the same. "Rebuilt" says why a method may build its model anew at a step. A stream learns half of 2,000
images of 200 classes at once, then one at a step, with a question after each (after every hundredth where the model is
rebuilt); "records" compares the bytes of the model file with those of a model that learned all at once.

Classes are made of the bundled embeddings of eight disciplines. The mean of a class lies between those of two real
classes of a discipline, and its samples deviate from it as real images of the discipline deviate from the mean of their
class. The text of a class is its mean with noise.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.synthetic import THUMBNAIL
from hycal import METHODS
from hycal.base import IncrementalClassifier
from hycal.data import load_xd8
from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.serve.service import Service
from hycal.validation import Floats

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
STEPS = 7
QUERIES = 200
TEXT_NOISE = 0.5
#: Random features as in the tables of the paper: the published widths take minutes to learn.
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "RanPAC": {"n_components": 1024, "ridge": "first-task"},
    "KLDA": {"n_components": 1024},
    "PrimalRAIL": {"n_components": 1024},
    "AnaCP": {"n_components": 1024},
    "LoRanPAC": {"n_components": 1024},
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Images of many classes, with a domain and a text for each, and queries."""

    X: Floats
    y: npt.NDArray[np.str_]
    domains: Mapping[str, str]
    text: Mapping[str, Floats]
    queries: Floats

    @classmethod
    def drawn(cls, classes: int, shots: int, seed: int = 0) -> Problem:
        """Draw classes in turn from the eight disciplines."""
        rng, real = np.random.default_rng(seed), list(load_xd8().items())
        spaces = [(name, *_real_classes(domain.train_x, domain.train_y)) for name, domain in real]
        X, queries, domains, text = [], [], {}, {}
        for number in range(classes):
            name, means, deviations = spaces[number % len(spaces)]
            one, two = means[rng.choice(len(means), 2, replace=False)]
            mean = one + rng.uniform() * (two - one)
            drawn = _unit(mean + deviations[rng.choice(len(deviations), shots + 1)])
            label = f"{name}/{number:05d}"
            X.append(drawn[:shots])
            queries.append(drawn[shots])
            domains[label] = name
            text[label] = _unit(_unit(mean[None]) + TEXT_NOISE * _unit(rng.normal(size=(1, len(mean)))))[0]
        labels = np.array(list(domains))
        asked = rng.permutation(classes)[:QUERIES]
        return cls(np.concatenate(X), np.repeat(labels, shots), domains, text, np.stack(queries)[asked])

    def confused(self, rng: np.random.Generator) -> tuple[int, int]:
        """Return an image, and one of another class of its domain: that is what corrections are about."""
        wrong = int(rng.integers(len(self.X)))
        domain = self.domains[str(self.y[wrong])]
        others = [row for row, label in enumerate(self.y.tolist()) if self.domains[label] == domain]
        return wrong, int(rng.choice([row for row in others if self.y[row] != self.y[wrong]]))

    def learned_by(self, classifier: IncrementalClassifier) -> IncrementalClassifier:
        """Learn everything, one domain after the other."""
        domain_of = np.array([self.domains[label] for label in self.y])
        for domain in dict.fromkeys(self.domains.values()):
            some = domain_of == domain
            text = {label: self.text[label] for label in set(self.y[some].tolist())}
            classifier.partial_fit(self.X[some], self.y[some], domain=domain, text=text)
        return classifier


def _real_classes(X: Floats, y: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the class means, and all deviations from them."""
    means = np.stack([X[y == label].mean(axis=0) for label in np.unique(y)])
    return means, X - means[np.searchsorted(np.unique(y), y)]


def _unit(rows: npt.NDArray[Any]) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True)
class Measured:
    """Seconds of learning everything and of each step, and how far answers are from those of a model built anew."""

    everything: float
    steps: Sequence[float]
    apart: float
    same: int

    @property
    def step(self) -> float:
        """The median of the steps."""
        return float(np.median(self.steps))


def measure(classifier: IncrementalClassifier, problem: Problem, now: Callable[[], float]) -> Measured:
    """Learn everything, then correct a few images."""
    began = now()
    problem.learned_by(classifier).predict_proba(problem.queries[:1])
    everything, rng, steps = now() - began, np.random.default_rng(1), []
    for _ in range(STEPS):
        wrong, right = problem.confused(rng)
        image = problem.X[wrong : wrong + 1]
        began = now()
        classifier.unlearn(image, problem.y[wrong : wrong + 1])
        classifier.partial_fit(image, problem.y[right : right + 1])
        classifier.predict_proba(problem.queries[:1])
        steps.append(now() - began)
        problem.y[wrong] = problem.y[right]
    found = classifier.predict_proba(problem.queries)
    fresh = classifier.with_parameters()
    fresh.install(classifier.records_)
    expected = fresh.predict_proba(problem.queries)
    same = int(np.sum(found.argmax(axis=1) == expected.argmax(axis=1)))
    return Measured(everything, steps, float(np.abs(found - expected).max()), same)


def table(names: Sequence[str], classes: int, shots: int, now: Callable[[], float]) -> None:
    """Print one row for each method."""
    print(f"{classes:,} classes of {shots} images in eight domains, seconds")
    print(f"{'method':18}{'all':>10}{'step':>10}{'ratio':>8}{'apart':>10}{'same':>6}  rebuilt because", flush=True)
    for name in names:
        method = METHODS[name](**PARAMETERS.get(name, {}))
        try:
            found = measure(method, Problem.drawn(classes, shots), now)
        except MemoryError:
            print(f"{name:18} not measured: out of memory", flush=True)
            continue
        reason = method.rebuilt_because
        print(
            f"{name:18}{found.everything:10.3f}{found.step:10.4f}{found.everything / found.step:8.0f}"
            f"{found.apart:10.1e}{found.same:6d}  {reason}",
            flush=True,
        )


def growth(names: Sequence[str], sizes: Sequence[int], shots: int, now: Callable[[], float]) -> None:
    """Print the milliseconds of a step in models of more and more classes."""
    print(f"milliseconds of a step, {shots} images of each class, eight domains")
    print(f"{'classes':18}" + "".join(f"{size:10,}" for size in sizes), flush=True)
    for name in names:
        method = METHODS[name](**PARAMETERS.get(name, {}))
        steps = [measure(method.with_parameters(), Problem.drawn(size, shots), now).step for size in sizes]
        print(f"{name:18}" + "".join(f"{1e3 * step:10.1f}" for step in steps), flush=True)


def stream(names: Sequence[str]) -> None:
    """Print whether 1,000 steps of one image end in the records and answers of a model that learned all at once."""
    print("1,000 steps of one image after 1,000 images at once, against 2,000 images at once; 200 classes")
    print(f"{'method':18}{'records':>12}{'apart':>10}{'same':>6}  differs because", flush=True)
    problem = Problem.drawn(200, 10)
    first = np.arange(len(problem.X)) % 2 == 0
    begun = replace(problem, X=problem.X[first], y=problem.y[first])
    for name in names:
        once = METHODS[name](**PARAMETERS.get(name, {}))
        many, every = begun.learned_by(once.with_parameters()), 100 if once.rebuilt_because else 1
        problem.learned_by(once)
        for number, row in enumerate(np.flatnonzero(~first).tolist()):
            many.partial_fit(problem.X[row : row + 1], problem.y[row : row + 1])
            if number % every == 0:
                many.predict_proba(problem.queries[:1])
        found, expected = (one.predict_proba(problem.queries) for one in (many, once))
        same = int(np.sum(found.argmax(axis=1) == expected.argmax(axis=1)))
        equal = "equal bytes" if _file(many) == _file(once) else "differ"
        reason = once.broken_laws.get("split_invariance", "")
        print(f"{name:18}{equal:>12}{np.abs(found - expected).max():10.1e}{same:6d}  {reason}", flush=True)


def _file(classifier: IncrementalClassifier) -> bytes:
    """Return the bytes of the model file."""
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(path := Path(folder, "m.hycal"))
        return path.read_bytes()


def page(classes: int, shots: int, now: Callable[[], float]) -> None:
    """Print the milliseconds of a correction as the page asks for it: the change, then the answer with evidence."""
    problem, rng = Problem.drawn(classes, shots), np.random.default_rng(1)
    examples = [
        Example(row, hashlib.sha256(str(number).encode()).digest(), f"{number}.jpg", rng.bytes(THUMBNAIL))
        for number, row in enumerate(problem.X)
    ]
    with tempfile.TemporaryDirectory() as folder:
        empty = empty_state(Space("none", None, problem.X.shape[1]), has_text=False, method="HierarchicalHyCal")
        project = Project(Path(folder, "m.hycal"), empty, journal=True)
        project.learn([Arrival(label, example) for label, example in zip(problem.y.tolist(), examples, strict=True)])
        service, spent = Service(project, None), []
        service.warm()
        for wrong, right in (problem.confused(rng) for _ in range(STEPS)):
            began = now()
            service.correct(examples[wrong].identity.hex(), str(problem.y[right]))
            service.answer_quickly(service.state, examples[wrong], top=5, why=True)
            spent.append(now() - began)
    print(
        f"a correction of the page, HierarchicalHyCal, {classes:,} classes of {shots} images: "
        f"median {1e3 * float(np.median(spent)):.0f} ms, most {1e3 * max(spent):.0f} ms"
    )


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=list(METHODS))
    parser.add_argument("--growth", nargs="*", type=int)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    options = parser.parse_args()
    now = CLOCKS[options.clock]
    if options.page:
        page(options.classes, options.shots, now)
    elif options.stream:
        stream(options.only)
    elif options.growth:
        growth(options.only, options.growth, options.shots, now)
    else:
        table(options.only, options.classes, options.shots, now)


if __name__ == "__main__":
    main()
