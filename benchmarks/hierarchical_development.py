"""The data on which the constants of HierarchicalHyCal's kernel, groups and covariances were fixed.

Other tables of `benchmarks.hierarchical` never ask these images: the validation images of aircraft and flowers, the
training images of sun397, the training images of the eight disciplines in ViT-B/16 and of two of them as pixels, and
the digits that come before the queries of the table of pixels. Each is split into shots and queries. In uneven streams
a half of the classes, by seed, has many shots and the others few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

from benchmarks.domains import Domain, all_queries, data_folder
from benchmarks.hierarchical_ablation import WITHOUT
from benchmarks.hierarchical_streams import SEEDS, learned, measured
from hycal import HierarchicalHyCal
from hycal.validation import Floats, unit_rows

_DISCIPLINES = ("aircraft", "art", "digit", "flower", "galaxy", "medical", "satellite", "texture")
_LARGE = ("art", "digit", "galaxy", "medical", "texture")  # 30 training images of a class
_ASKED = 10  # queries of a class
Draw = Callable[[int], list[Domain]]


def _split(name: str, X: Floats, y: npt.NDArray[np.int64], shots: int | tuple[int, int], seed: int) -> Domain:
    """Draw shots, or uneven ones, and queries of each class; three images of a class are asked at least."""
    rng, learn, ask = np.random.default_rng([seed, *np.atleast_1d(shots)]), [], []
    names = np.unique(y)
    wanted = np.full(len(names), shots) if isinstance(shots, int) else rng.permutation(np.resize(shots, len(names)))
    for label, own in zip(names, wanted.tolist(), strict=True):
        rows = rng.permutation(np.flatnonzero(y == label))
        count = min(own, len(rows) - 3)
        learn.append(rows[:count])
        ask.append(rows[count:][:_ASKED])
    labels, drawn, asked = np.array([f"{name}/{label:03d}" for label in y]), np.concatenate(learn), np.concatenate(ask)
    return Domain(name, X[drawn], labels[drawn], X[asked], labels[asked], None)


def _stored(path: str, split: str, shots: int | tuple[int, int], seed: int) -> Domain:
    with np.load(data_folder() / f"{path}.npz") as file:
        X, y = file[f"{split}_x"].astype(np.float32), file[f"{split}_y"]
    return _split(Path(path).name, X, y, shots, seed)


def _pixels(shots: int, seed: int) -> Domain:
    X, y = load_digits(return_X_y=True)
    return _split("digits", unit_rows(X[:797]), y[:797], shots, seed)


def _by_writer(shots: int, seed: int) -> Domain:
    """Draw shots from one half of the digits and ask the other; neighbours are by the same writer."""
    X, y = load_digits(return_X_y=True)
    X, halves = unit_rows(X[:797]), (np.arange(400), np.arange(400, 797))
    learn, ask = halves if seed % 2 == 0 else halves[::-1]
    drawn = _split("digits", X[learn], y[learn], shots, seed)
    return replace(drawn, queries=X[ask], answers=np.array([f"digits/{label:03d}" for label in y[ask]]))


def _as_pixels(discipline: str, side: int, shots: int, seed: int) -> Domain:
    """Return the training images of a discipline, side x side grey pixels each."""
    classes = sorted((data_folder() / "xd8-images" / discipline / "train").iterdir())
    files = [(file, number) for number, folder in enumerate(classes) for file in sorted(folder.iterdir())]
    small = [Image.open(file).convert("L").resize((side, side), Image.Resampling.BOX) for file, _ in files]
    X = unit_rows(np.stack([np.asarray(image, np.float32).reshape(-1) for image in small]))
    return _split(discipline, X, np.array([number for _, number in files]), shots, seed)


#: Streams by name; each draws its domains by a seed.
STREAMS: Mapping[str, Draw] = {
    "aircraft 16": lambda seed: [_stored("clip-vitb32/aircraft", "val", 16, seed)],
    "flowers 5": lambda seed: [_stored("clip-vitb32/flowers", "val", 5, seed)],
    "sun397 5": lambda seed: [_stored("clip-vitb32/sun397", "train", 5, seed)],
    "pixels 10": lambda seed: [_pixels(10, seed)],
    "writers 25": lambda seed: [_by_writer(25, seed)],
    "MNIST 8x8 30": lambda seed: [_as_pixels("digit", 8, 30, seed)],
    "medical 8x8 30": lambda seed: [_as_pixels("medical", 8, 30, seed)],
    "eight 3": lambda seed: [_stored(f"clip-vitb16/{name}", "train", 3, seed) for name in _DISCIPLINES],
    "uneven 2, 4": lambda seed: [_stored("clip-vitb32/sun397", "train", (2, 4), seed)],
    "uneven 2, 16": lambda seed: [_stored(f"clip-vitb16/{name}", "train", (2, 16), seed) for name in _LARGE],
    "uneven 8, 20": lambda seed: [_stored(f"clip-vitb16/{name}", "train", (8, 20), seed) for name in _LARGE],
    "eight 12": lambda seed: [_stored(f"clip-vitb16/{name}", "train", 12, seed) for name in _DISCIPLINES],
}


def _nameless(domains: Sequence[Domain]) -> list[Domain]:
    return [replace(domain, name="all") for domain in domains]


def development_table() -> None:
    """Print accuracy and calibration error with and without each part, and log likelihoods, means of seeds."""
    print(f"\nDevelopment data: accuracy, and calibration error, means of seeds {SEEDS[:2]}")
    print(f"{'':22}" + "".join(f"{name:>16}{'ECE':>6}" for name in STREAMS), flush=True)
    rows: Mapping[str, Callable[[Draw, int], tuple[float, float]]] = {
        "whole": partial(_cell, part="whole"),
        "without kernel": partial(_cell, part="without kernel"),
        "without covariances": partial(_cell, part="without covariances"),
        "without counts": partial(_cell, part="without counts"),
        "identity: a half": partial(_cell, part="identity: a half"),
        "one domain": partial(_cell, told=_nameless),
        "domains found": partial(_cell, domains="found"),
    }
    for row, cell in rows.items():
        means = [np.mean([cell(draw, seed) for seed in SEEDS[:2]], axis=0) for draw in STREAMS.values()]
        print(f"{row:22}" + "".join(f"{accuracy:16.1f}{error:6.1f}" for accuracy, error in means), flush=True)
    print(f"\nDevelopment data: mean log likelihood of queries in nats, means of seeds {SEEDS}")
    print(f"{'':22}" + "".join(f"{name:>16}" for name in STREAMS), flush=True)
    for row in ("whole", "one temperature", "without counts"):
        likely = [np.mean([_log_likelihood(draw, seed, row) for seed in SEEDS]) for draw in STREAMS.values()]
        print(f"{row:22}" + "".join(f"{mean:16.4f}" for mean in likely), flush=True)


def _log_likelihood(draw: Draw, seed: int, part: str) -> float:
    drawn = draw(seed)
    with WITHOUT[part]():
        classifier = learned(HierarchicalHyCal, drawn)
        queries, answers = all_queries(drawn)
        own = np.searchsorted(classifier.classes_, answers)
        return float(np.mean(np.log(classifier.predict_proba(queries)[np.arange(len(own)), own])))


def _cell(
    draw: Draw,
    seed: int,
    *,
    part: str = "whole",
    told: Callable[[Sequence[Domain]], Sequence[Domain]] = lambda domains: domains,
    domains: str = "named",
) -> tuple[float, float]:
    drawn = draw(seed)
    with WITHOUT[part]():
        return measured(learned(partial(HierarchicalHyCal, domains=domains), told(drawn)), drawn)
