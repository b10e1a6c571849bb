"""HierarchicalHyCal on large problems, and at an older commit: python -m benchmarks.large [--before COMMIT].

The three settings of the bundled disciplines and of the five domains in ViT-B/32, four seeds, after the last step.
Printed are the accuracy (the mean over domains), the calibration error (ECE) over all queries, and "by domain": how far
the mean probability of the answers of a domain is from its accuracy, the mean over domains; then the domain that is
farthest, positive where it is too sure. Errors of domains that are too sure and of others that are too cautious cancel
in the second and not in the third. With --before, the same streams are learned and asked by the code of a commit, in a
process of its own; the last column is the difference in ECE with its standard error over test images, drawn again 200
times.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_DRAWS = 200
_PARTS = ("X", "y", "queries", "answers")
Stream = list[tuple[str, Any, Any, Any, Any]]


@dataclass(frozen=True, eq=False)
class Answers:
    """The probability of each answer, whether it is right, and the domain of its query."""

    chances: npt.NDArray[np.float64]
    right: npt.NDArray[np.bool_]
    domain: npt.NDArray[np.str_]

    @classmethod
    def of(cls, stream: Stream) -> Answers:
        """Learn a stream and answer its queries. Nothing but the public interface is used: older code has it too."""
        from hycal import HierarchicalHyCal

        classifier = HierarchicalHyCal()
        for name, X, y, _, _ in stream:
            classifier.partial_fit(X, y, domain=name)
        found = []
        for name, _, _, queries, answers in stream:
            chances = classifier.predict_proba(queries)
            right = classifier.classes_[chances.argmax(axis=1)] == answers
            found.append((chances.max(axis=1), right, np.full(len(right), name)))
        return cls(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def accuracy(self) -> float:
        """Return the mean accuracy of the domains in percent."""
        return 100.0 * float(np.mean([self.right[self.domain == name].mean() for name in np.unique(self.domain)]))

    def too_sure(self) -> dict[str, float]:
        """Return by how many points the mean probability of each domain is above its accuracy."""
        gaps = self.chances - self.right
        return {str(name): 100.0 * float(gaps[self.domain == name].mean()) for name in np.unique(self.domain)}

    def error(self, rows: npt.NDArray[np.intp] | slice = slice(None)) -> float:
        """Return the calibration error of some answers."""
        from hycal.bench.metrics import calibration_error

        return calibration_error(self.chances[rows], self.right[rows])


def _streams(folder: Path) -> dict[str, list[Path]]:
    """Write every stream to a file of its own; return the files of each setting, one for each seed."""
    from benchmarks.hierarchical_streams import SEEDS, SHOTS, five_domains, xd8

    sources: Mapping[str, Callable[[str, int], Sequence[Any]]] = {
        "xd8": xd8,
        "five": lambda setting, seed: five_domains(setting, seed, None),
    }
    files: dict[str, list[Path]] = {}
    for source, draw in sources.items():
        for setting in SHOTS:
            for seed in SEEDS:
                stream = [(one.name, *(getattr(one, part) for part in _PARTS)) for one in draw(setting, seed)]
                path = folder / f"{source}-{setting}-{seed}.pkl"
                path.write_bytes(pickle.dumps(stream))
                files.setdefault(f"{source} {setting}", []).append(path)
    return files


def _answer(files: Sequence[Path], source: Path) -> list[Answers]:
    """Answer streams with the package in `source`, in a process of its own."""
    settings = {"PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).resolve().parents[1])])}
    command = [sys.executable, "-m", "benchmarks.large", "--answer", *map(str, files)]
    done = subprocess.run(command, env=os.environ | settings, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"The streams could not be answered by {source}; the error stands above.")
    return [Answers(*parts) for parts in pickle.loads(done.stdout)]


def _difference(now: Sequence[Answers], before: Sequence[Answers]) -> tuple[float, float]:
    """Return the difference in ECE, the mean over seeds, and its standard error over test images."""
    rng, n = np.random.default_rng(0), len(now[0].right)
    whole = np.mean([a.error() - b.error() for a, b in zip(now, before, strict=True)])
    drawn = [
        np.mean([a.error(rows) - b.error(rows) for a, b in zip(now, before, strict=True)])
        for rows in rng.integers(n, size=(_DRAWS, n))
    ]
    return float(whole), float(np.std(drawn))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="COMMIT", help="compare with the code of this commit")
    parser.add_argument("--answer", nargs="+", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        found = [Answers.of(pickle.loads(path.read_bytes())) for path in options.answer]
        sys.stdout.buffer.write(pickle.dumps([(one.chances, one.right, one.domain) for one in found]))
        return
    with tempfile.TemporaryDirectory() as folder:
        _print_table(_streams(Path(folder)), options.before)


def _print_table(files: Mapping[str, Sequence[Path]], commit: str | None) -> None:
    from benchmarks.printed import PrintedTable
    from tools.commits import ROOT, source_at

    names = ["accuracy", "ECE", "by domain", "farthest"]
    older = [f"{name} at {commit}" for name in names] + ["ECE: difference"] if commit else []
    table = PrintedTable("Large problems", "setting", *names, *older)
    for setting, paths in files.items():
        now = _answer(paths, ROOT / "src")
        cells = _cells(now)
        if commit:
            with source_at(commit) as source:
                before = _answer(paths, source)
            mean, error = _difference(now, before)
            cells += [*_cells(before), f"{mean:+.2f} ± {error:.2f}"]
        table.row(setting, *cells)


def _cells(answers: Sequence[Answers]) -> list[str]:
    """Return accuracy, ECE, the mean distance of domains and the farthest one, means over seeds."""
    gaps = [one.too_sure() for one in answers]
    distances = [float(np.mean(np.abs(list(by_name.values())))) for by_name in gaps]
    mean_gaps = {name: float(np.mean([by_name[name] for by_name in gaps])) for name in gaps[0]}
    farthest = max(mean_gaps, key=lambda name: abs(mean_gaps[name]))
    values = [one.accuracy() for one in answers], [one.error() for one in answers], distances
    return [*(f"{np.mean(each):.2f}" for each in values), f"{farthest} {mean_gaps[farthest]:+.1f}"]


if __name__ == "__main__":
    main()
