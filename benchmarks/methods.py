"""Cost of every method on real embeddings, each in a process of its own: python -m benchmarks.methods.

8,500 samples of 300 classes in 512 dimensions, one `partial_fit`, default parameters. "learn" is that call and whatever
the first answer derives; "cpu" the processor time of it, which other work on the machine does not change; "query" the
time of 1,000 queries; "state" what a model file stores; "peak" the most memory the process ever held, data included.
Text stands in for real text (class means): it costs the same.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.domains import folder, missing
from hycal import METHODS
from hycal.validation import Floats, unit_rows

SAMPLES, CLASSES = 8500, 300
_POOLS = {"aircraft": ("train", "val"), "flowers": ("train", "val"), "dtd": ("val",), "cars": ("train",)}


def largest() -> tuple[Floats, list[str]]:
    """Return real embeddings of the benchmark's largest setting."""
    rows, labels = [], []
    for name, splits in _POOLS.items():
        with np.load(folder() / f"{name}.npz") as file:
            for split in splits:
                rows.append(file[f"{split}_x"].astype(np.float32))
                labels += [f"{name}/{label:03d}" for label in file[f"{split}_y"]]
    kept = sorted(set(labels))[:CLASSES]
    known = np.flatnonzero(np.isin(labels, kept))
    wanted = np.sort(np.random.default_rng(0).permutation(known)[:SAMPLES])
    return np.concatenate(rows)[wanted], [labels[row] for row in wanted]


def measure(method: str, profile: str) -> None:
    """Print the row of one method."""
    X, y = largest()
    names, where = np.unique(y, return_inverse=True)
    means = unit_rows(np.stack([X[where == label].mean(axis=0) for label in range(len(names))]))
    classifier = METHODS.build(method, profile=profile) if profile != "default" else METHODS[method]()
    start, cpu = time.perf_counter(), time.process_time()
    classifier.partial_fit(X, y, text=dict(zip(names, means, strict=True)))
    classifier.predict(X[:1])
    learn, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    classifier.class_scores(X[:1000])
    query = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    state = classifier.nbytes_ / 2**20
    print(f"{method:12} {learn:8.2f} s {cpu:8.2f} s {1000 * query:8.0f} ms {state:7.1f} MB {peak:7.0f} MB", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--profile", default="default", choices=["default", "official", "hycal-paper", "robust"])
    parser.add_argument("--here", action="store_true", help="measure in this process")
    options = parser.parse_args()
    if missing():
        raise SystemExit(missing())
    if options.here:
        measure(options.only[0], options.profile)
        return
    print(f"{SAMPLES} samples, {CLASSES} classes, 512 dimensions, profile {options.profile}")
    print(f"{'':12} {'learn':>10} {'cpu':>10} {'query':>11} {'state':>10} {'peak':>10}", flush=True)
    for method in options.only:
        if options.profile in ("default", *METHODS[method].profiles):
            command = [sys.executable, "-m", "benchmarks.methods", "--here", "--only", method]
            subprocess.run([*command, "--profile", options.profile], check=True)


if __name__ == "__main__":
    main()
