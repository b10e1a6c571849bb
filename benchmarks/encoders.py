"""Few-shot accuracy for each discipline: `builtin` against `clip-vit-b16-w8`, in one table.

    python -m benchmarks.encoders [IMAGES] [--shots 5] [--draws 5] [--pool 10] [--tests 5] [--clip-embeddings FOLDER]

IMAGES holds DOMAIN/{train,test}/CLASS/*.jpg. The classifier is the nearest class mean on unit embeddings. To stay
short, only the first `pool` training images of a class (from which the shots are drawn) and its first `tests` test
images are embedded; the sample is printed with the table. Embeddings are kept in the user's embedding cache, so that a
second run is immediate. On a slow machine, `--clip-embeddings` reads the embeddings of CLIP ViT-B/16 instead of
computing them, from one DOMAIN.npz each (train_x, train_y, test_x, test_y; in name order within a class).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from hycal.embedding import EmbeddingCache, ImageFile
from hycal.embedding import embed as embed_sources
from hycal.encoders import Encoder, load_encoder
from hycal.encoders.files import cache_dir
from hycal.validation import Floats

CLIP = "clip-vit-b16-w8"
ENCODERS = ("builtin", CLIP)
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Image files and the number of the class of each."""

    files: list[Path]
    labels: Ints


def read_split(folder: Path, per_class: int) -> Split:
    """Take the first images, in name order, of each class folder."""
    files, labels = [], []
    for number, name in enumerate(sorted(path for path in folder.iterdir() if path.is_dir())):
        chosen = sorted(name.iterdir())[:per_class]
        files += chosen
        labels += [number] * len(chosen)
    return Split(files, np.array(labels))


def embed(encoder: Encoder, split: Split) -> Floats:
    """Return the embeddings of a split, by way of the embedding cache."""
    sources = [ImageFile(path) for path in split.files]
    with EmbeddingCache.of(encoder, cache_dir() / "embeddings") as store:
        result = embed_sources(sources, encoder, store=store)
    if result.skipped:
        raise SystemExit(f"{result.skipped[0]}: this benchmark needs every image of the sample")
    return result.rows


def read_kept(path: Path, counts: dict[str, int]) -> tuple[Floats, Floats]:
    """Return the first rows of each class of the training and test embeddings in an npz file."""
    parts = []
    with np.load(path) as file:
        for split, count in counts.items():
            labels = file[f"{split}_y"]
            rows = np.concatenate([np.flatnonzero(labels == label)[:count] for label in np.unique(labels)])
            parts.append(file[f"{split}_x"][rows].astype(np.float32))
    return parts[0], parts[1]


def accuracy(rows: tuple[Floats, Floats], labels: Ints, truth: Ints, *, shots: int, draws: int) -> float:
    """Return the mean accuracy in percent of the nearest class mean over several draws of the shots."""
    train, test = rows
    scores = []
    for seed in range(draws):
        random = np.random.default_rng(seed)
        chosen = [random.permutation(np.flatnonzero(labels == label))[:shots] for label in np.unique(labels)]
        means = np.stack([train[rows].mean(axis=0) for rows in chosen])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        scores.append(np.mean((test @ means.T).argmax(axis=1) == truth))
    return 100 * float(np.mean(scores))


def main() -> None:
    """Measure every encoder on every discipline, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    images = Path(os.environ.get("HYCAL_DATA", BESIDE)) / "xd8-images"
    parser.add_argument("images", type=Path, nargs="?", default=images)
    for name, value in {"shots": 5, "draws": 5, "pool": 10, "tests": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--clip-embeddings", type=Path, help="folder of DOMAIN.npz")
    arguments = parser.parse_args()
    if not arguments.images.is_dir():
        parser.error(f"there is no folder {arguments.images}; pass one with DOMAIN/{{train,test}}/CLASS/*.jpg")
    domains = sorted(path for path in arguments.images.iterdir() if path.is_dir())
    splits = {
        path.name: (read_split(path / "train", arguments.pool), read_split(path / "test", arguments.tests))
        for path in domains
    }
    columns = {name: measure(name, splits, arguments) for name in ENCODERS}
    table = Table("discipline", "classes", "test images", *ENCODERS, box=None)
    for domain, (_, test) in splits.items():
        cells = [f"{columns[name][domain]:.1f}" for name in ENCODERS]
        table.add_row(domain, str(len(np.unique(test.labels))), str(len(test.files)), *cells)
    table.add_row("mean", "", "", *(f"{np.mean(list(columns[name].values())):.1f}" for name in ENCODERS))
    console = Console()
    console.print(
        f"{arguments.shots}-shot nearest class mean, accuracy in percent, mean of {arguments.draws} draws from the "
        f"first {arguments.pool} training images of a class; the first {arguments.tests} test images of a class."
    )
    if arguments.clip_embeddings:
        console.print(f"{CLIP}: embeddings read from {arguments.clip_embeddings}, not computed in this run.")
    console.print(table)


def measure(name: str, splits: dict[str, tuple[Split, Split]], arguments: argparse.Namespace) -> dict[str, float]:
    """Return the accuracy of an encoder by discipline."""
    kept: Path | None = arguments.clip_embeddings if name == CLIP else None
    encoder = None if kept else load_encoder(name)
    result = {}
    for domain, (train, test) in splits.items():
        if kept:
            counts = {"train": arguments.pool, "test": arguments.tests}
            rows = read_kept(kept / f"{domain}.npz", counts)
        elif encoder:
            rows = embed(encoder, train), embed(encoder, test)
        result[domain] = accuracy(rows, train.labels, test.labels, shots=arguments.shots, draws=arguments.draws)
    return result


if __name__ == "__main__":
    main()
