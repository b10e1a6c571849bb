"""Speed, memory, accuracy and calibration in one file, compared with the one that is kept: python -m benchmarks.perf.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.perf            measure, write perf.json, compare; code 1 on a loss
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.perf --keep     the same, and keep it as benchmarks/perf.json
    python -m benchmarks.perf --only memory accuracy            some kinds

Times are processor seconds of one core, each compared with something measured in the same run: the dense loop, a bare
matrix product, learning everything, the bare imports. Whatever else the machine does can only add to a time, so the
least of several rounds counts; rounds go on until the least times have settled. A loss counts if it is larger than the
tolerance of its kind. Accuracy and calibration are those of the bundled disciplines, up to 16 images of each class:
they are here to be watched, not to be tuned.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import dense_comparison, seal, start, step
from benchmarks.domains import Domain, all_queries, disciplines, learn_in_order
from hycal import METHODS, __version__
from hycal.base import IncrementalClassifier
from hycal.bench.metrics import calibration_error

KEPT = Path(__file__).with_name("perf.json")
FOUND = Path("perf.json")
ROUNDS, MOST_ROUNDS = 3, 10
SETTLED = 0.02  # least times that fall by less in a round have settled
SHOTS = 16
Values = dict[str, float]
Times = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Kind:
    """A kind of entry: whether more is better, and the loss that is noise, as a share of the value and by itself."""

    better: str
    share: float = 0.0
    absolute: float = 0.0

    def is_lost(self, before: float, now: float) -> bool:
        """Whether `now` is worse than `before` beyond noise.

        >>> Kind("higher", share=0.1).is_lost(10.0, 9.5), Kind("lower", absolute=0.1).is_lost(1.0, 1.2)
        (False, True)
        """
        loss = before - now if self.better == "higher" else now - before
        return loss > max(self.share * abs(before), self.absolute)


KINDS: Mapping[str, Kind] = {
    "speed": Kind("higher", share=0.15),
    "memory": Kind("lower", share=0.02),
    "accuracy": Kind("higher", absolute=0.003),
    "calibration": Kind("lower", absolute=0.005),
}


def speed() -> Values:
    """Return how many times faster each job is than its yardstick."""
    return {name: yardstick / own for name, (yardstick, own) in least_times(lambda: dict(_times())).items()}


def least_times(measured: Callable[[], Times]) -> Times:
    """Return the least times of as many rounds as it takes until they have settled.

    >>> rounds = iter([(9.0, 3.0), (8.0, 2.0), (8.5, 2.5)])
    >>> least_times(lambda: {"x": next(rounds)})
    {'x': (8.0, 2.0)}
    """
    least = measured()
    for number in range(2, MOST_ROUNDS + 1):
        before, now = least, measured()
        least = {name: (min(old[0], now[name][0]), min(old[1], now[name][1])) for name, old in before.items()}
        fall = max(1 - new / old for name in least for new, old in zip(least[name], before[name], strict=True))
        if number >= ROUNDS and fall < SETTLED:
            break
    return least


def _times() -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the processor seconds of each yardstick and of its job."""
    found = dense_comparison.compare(20, rounds=1, now=time.process_time)
    yield "learn 300 classes against the dense loop", (found.dense_learn, found.learn)
    yield "score 2,000 queries against the dense loop", (found.dense_score, found.score)
    yield "score 2,000 queries against the bare product", (found.own_product, found.score)
    for method in ("HyCal", "HierarchicalHyCal", "SLDA"):
        one = step.measure(METHODS[method](), step.Problem.drawn(300, 10), time.process_time)
        yield f"correct one image of 3,000 against learning all, {method}", (one.everything, min(one.steps))
    bare, asked = (start.processor_seconds(words) for words in (start.BASE, (*start.HYCAL, "predict", "--help")))
    yield "hycal predict --help against importing numpy and onnxruntime", (bare, asked)


def memory() -> Values:
    """Return bytes as a share of what they are compared with."""
    found = dense_comparison.compare(20, rounds=1, now=time.process_time)
    values = {
        "file of 300 classes against dense matrices": found.stored / found.dense_bytes,
        "held to score 300 classes against dense matrices": found.held / found.dense_bytes,
    }
    for method in ("HierarchicalHyCal", "NCM"):
        model = learn_in_order(_without_text(method), _few())
        size, _ = seal.saved(model, "single")
        for precision in ("single", "half"):
            values[f"sealed file, {precision} precision, {method}"] = seal.saved(model.seal(), precision)[0] / size
    return values


def accuracy() -> Values:
    """Return the share of right answers of each method."""
    return {name: right for name, (right, _) in _judged().items()}


def calibration() -> Values:
    """Return the calibration error of each method."""
    return {name: error for name, (_, error) in _judged().items()}


@cache
def _judged() -> Mapping[str, tuple[float, float]]:
    """Return accuracy and calibration error of every method that learns from images alone."""
    domains, found = _few(), {}
    X, y = all_queries(domains)
    for name in [name for name, method in METHODS.items() if method.without_text is not None]:
        model = learn_in_order(_without_text(name), domains)
        chances = model.predict_proba(X)
        right = model.classes_[chances.argmax(axis=1)] == y
        found[name] = float(right.mean()), calibration_error(chances.max(axis=1), right) / 100
    return found


def _without_text(method: str) -> IncrementalClassifier:
    """Return a method as it learns from images alone, with random features as wide as in the tables of the paper."""
    return METHODS[method](**{**step.PARAMETERS.get(method, {}), **(METHODS[method].without_text or {})})


def _few() -> list[Domain]:
    """Return the bundled disciplines with the first images of each class."""

    def first(domain: Domain) -> Domain:
        rows = np.concatenate([np.flatnonzero(domain.y == label)[:SHOTS] for label in np.unique(domain.y)])
        return replace(domain, X=domain.X[rows], y=domain.y[rows])

    return [first(domain) for domain in disciplines()]


MEASURES: Mapping[str, Callable[[], Values]] = {
    "speed": speed,
    "memory": memory,
    "accuracy": accuracy,
    "calibration": calibration,
}


def measure(kinds: Sequence[str]) -> dict[str, Values]:
    """Return every value of these kinds."""
    found = {}
    for kind in kinds:
        began = time.process_time()
        found[kind] = {name: float(f"{value:.4g}") for name, value in MEASURES[kind]().items()}
        print(f"{kind}: {len(found[kind])} values, {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def compare(before: Mapping[str, Values], now: Mapping[str, Values]) -> list[str]:
    """Print every value beside the one that is kept; return what was lost."""
    lost = []
    for kind, values in now.items():
        for name in dict.fromkeys([*before.get(kind, {}), *values]):
            old, new = before.get(kind, {}).get(name), values.get(name)
            worse = new is None or (old is not None and KINDS[kind].is_lost(old, new))
            told = f"{kind:12}{_cell(old)}{_cell(new)}  {name}"
            print(told + ("  LOST" if worse else ""))
            lost += [told] if worse else []
    return lost


def _cell(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.4g}':>10}"


def main() -> None:
    """Measure, write, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the result as the one to compare with")
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    if options.keep and set(options.only) != set(KINDS):
        parser.error("--keep keeps all kinds; leave --only out")
    if options.keep and os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("--keep needs OPENBLAS_NUM_THREADS=1, as `make perf` has: ratios differ with threads")
    values = measure(options.only)
    document = {"hycal": __version__, "python": platform.python_version(), "numpy": np.__version__, "values": values}
    text = json.dumps(document, indent=1) + "\n"
    FOUND.write_text(text)
    print(
        f"{'':12}{'kept':>10}{'now':>10}  tolerance: "
        + ", ".join(f"{k} {v.share or v.absolute}" for k, v in KINDS.items())
    )
    lost = compare(json.loads(KEPT.read_text())["values"] if KEPT.exists() else {}, values)
    if options.keep:
        KEPT.write_text(text)
    elif lost:
        raise SystemExit(
            f"{len(lost)} of these are worse than what is kept, beyond noise. Find out why, or keep the new."
        )
    print("ok: nothing is lost beyond noise")


if __name__ == "__main__":
    main()
