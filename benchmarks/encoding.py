"""OpenVINO against ONNX Runtime: images per second of `hycal embed`, agreement of rows, accuracy by discipline.

    python -m benchmarks.encoding [IMAGES] [--size 192] [--block 64] [--train 10] [--shots 5] [--draws 200]

IMAGES holds DOMAIN/{train,test}/CLASS/*.jpg: the images that the bundled embeddings were made of. Block by block, both
back ends take the same images the whole way, from files to rows, in alternating order: both see the same noise of the
machine. Then the nearest class mean answers all test images of each discipline, learned from shots that are drawn from
the first images of each class. ONNX Runtime made the bundled rows; OpenVINO embeds the images through the user's
embedding cache, so that a run that was stopped goes on. Ends with code 1 if OpenVINO is less than twice as fast in the
median of the blocks, or the accuracies of a discipline differ by more than 0.3 points.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from benchmarks.domains import data_folder
from benchmarks.embedding import Timed
from benchmarks.encoders import answers, bundled_images, embed_images
from benchmarks.printed import PrintedTable
from hycal.data.bundled import load_xd8
from hycal.data.embedded import EmbeddedDomain, in_order
from hycal.data.samples import ImageSet
from hycal.embedding import EmbeddingCache, ImageFile, embed
from hycal.encoders import Encoder, load_encoder
from hycal.validation import Floats

NAME = "clip-vit-b16-w8"
FASTER = 2.0
POINTS = 0.3


class Contestant:
    """A back end with an empty embedding cache of its own."""

    def __init__(self, encoder: Encoder, folder: str) -> None:
        self.encoder = encoder
        self.total = Timed(0, 0.0)
        self._folder = folder

    def run(self, paths: list[Path]) -> tuple[Timed, Floats]:
        """Take `paths` the whole way; return the time, and a row for each path."""
        began = time.perf_counter()
        with EmbeddingCache.of(self.encoder, self._folder) as cache:
            result = embed([ImageFile(path) for path in paths], self.encoder, store=cache)
        timed = Timed(result.encoded, time.perf_counter() - began)
        self.total += timed
        return timed, result.rows


def race(paths: list[Path], encoders: list[Encoder], block: int) -> tuple[list[float], Floats]:
    """Print each block; return the ratio of the rates in each, and the cosine of the rows of each image."""
    ratios, cosines = [], []
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        old, new = (Contestant(*pair) for pair in zip(encoders, (first, second), strict=True))
        for number, part in enumerate(_blocks(paths, block)):
            order = (old, new) if number % 2 == 0 else (new, old)
            found = {contestant: contestant.run(part) for contestant in order}
            (slow, before), (fast, after) = found[old], found[new]
            ratios.append(fast.rate / slow.rate)
            cosines.append((before * after).sum(axis=1))
            print(
                f"{new.total.images:6,} of {len(paths):,}   onnx {slow.rate:5.2f}   openvino {fast.rate:5.2f} "
                f"images/s   {ratios[-1]:.2f} times",
                flush=True,
            )
        print(
            f"{NAME}, {len(paths):,} images: onnx {old.total.rate:.2f} images/s, openvino {new.total.rate:.2f}; "
            f"{new.total.rate / old.total.rate:.2f} times in total, {np.median(ratios):.2f} in the median of "
            f"{len(ratios)} blocks"
        )
    return ratios, np.concatenate(cosines)


def _blocks(paths: list[Path], size: int) -> Iterator[list[Path]]:
    return (paths[start : start + size] for start in range(0, len(paths), size))


def first_of_each(labels: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.intp]:
    """Return the rows of the first `count` samples of each label, in order."""
    return np.sort(np.concatenate([np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]))


def shortened(sets: Mapping[str, ImageSet], count: int) -> dict[str, ImageSet]:
    """Return the test images, and the first `count` training images of each class."""
    short = {}
    for name, images in sets.items():
        train = images.of("train")
        kept = first_of_each(np.array([sample.label for sample in train]), count)
        short[name] = replace(images, samples=(*(train[row] for row in kept), *images.of("test")))
    return short


def shortened_rows(domain: EmbeddedDomain, count: int) -> EmbeddedDomain:
    """Return the same choice of the embeddings of a domain."""
    kept = first_of_each(domain.train_y, count)
    return replace(domain, train_x=domain.train_x[kept], train_y=domain.train_y[kept])


def compare(
    old: Mapping[str, EmbeddedDomain], new: Mapping[str, EmbeddedDomain], *, shots: int, draws: int
) -> list[float]:
    """Print the accuracy of both by discipline; return the differences in points, which have their standard error."""
    columns = ("test images", "onnx", "openvino", "difference", "other answers", "mean cosine", "least")
    title = f"{shots}-shot nearest class mean, accuracy in percent, mean of {draws} draws"
    table, differences = PrintedTable(title, "discipline", *columns), []
    for name, domain in old.items():
        before, after = (
            np.stack([answers(each, shots=shots, seed=seed) for seed in range(draws)]) for each in (domain, new[name])
        )
        right, then = (100 * np.mean(answers == domain.test_y, axis=1) for answers in (before, after))
        difference, error = (then - right).mean(), (then - right).std(ddof=1) / draws**0.5
        differences.append(float(difference))
        cosines = (domain.test_x * new[name].test_x).sum(axis=1)
        cells = [f"{right.mean():.2f}", f"{then.mean():.2f}", f"{difference:+.2f} ± {error:.2f}"]
        cells.append(f"{np.mean(before != after):.1%}")
        table.row(name, str(len(domain.test_y)), *cells, f"{cosines.mean():.5f}", f"{cosines.min():.5f}")
    return differences


def main() -> None:
    """Measure both, print, and fail where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, nargs="?", default=data_folder() / "xd8-images")
    parser.add_argument("--size", type=int, default=192, help="images to time, evenly over all")
    parser.add_argument("--block", type=int, default=64, help="images in a block")
    parser.add_argument("--train", type=int, default=10, help="training images of a class to draw the shots from")
    parser.add_argument("--shots", type=int, default=5)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    encoders: list[Encoder] = [load_encoder(NAME, backend=backend) for backend in ("onnx", "openvino")]
    sets = bundled_images(options.images)
    paths = [Path(sample.source.name) for _, sample in in_order(sets)]
    ratios, cosines = race(paths[:: max(1, len(paths) // options.size)][: options.size], encoders, options.block)
    print(f"cosine of their rows: {cosines.mean():.5f} in the mean, {cosines.min():.5f} at the least")
    new = embed_images(shortened(sets, options.train), encoders[1], Console(stderr=True))
    old = {name: shortened_rows(domain, options.train) for name, domain in load_xd8().items()}
    differences = compare(old, new, shots=options.shots, draws=options.draws)
    if np.median(ratios) < FASTER or max(map(abs, differences)) > POINTS:
        raise SystemExit(f"missed: at least {FASTER} times as fast, and every discipline within {POINTS} points")


if __name__ == "__main__":
    main()
