"""Images per second of `hycal embed`, from files to rows, against ONNX Runtime alone on preloaded tensors.

    python -m benchmarks.embedding [IMAGES] [--encoder builtin] [--size 800] [--block 512]

Every image of the folder without --size. Block by block, first the pipeline reads, hashes, decodes, preprocesses,
encodes and writes its cache, then a bare loop of ONNX Runtime runs the same graph on the same images, decoded in
between: both see the same noise of the machine, and memory holds one block of tensors (0.6 MB an image). The pipeline
comes first, so it also pays for reading the disk. Ends with code 1 if the median of the blocks' ratios is below 80%.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.domains import data_folder
from hycal.embedding import EmbeddingCache, ImageFile, embed
from hycal.embedding.decoding import decode
from hycal.embedding.pipeline import BATCH
from hycal.embedding.sources import image_files
from hycal.encoders import load_encoder
from hycal.encoders.catalog import find_encoder
from hycal.encoders.encoder import Encoder
from hycal.encoders.files import locate, require
from hycal.validation import Floats

TARGET = 0.8


@dataclass(frozen=True)
class Timed:
    """So many images in so many seconds."""

    images: int
    seconds: float

    def __add__(self, other: Timed) -> Timed:
        return Timed(self.images + other.images, self.seconds + other.seconds)

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.images / self.seconds


class BareLoop:
    """ONNX Runtime on the graph of an encoder, with nothing around it: the better of two ways to wait for threads."""

    def __init__(self, name: str) -> None:
        spec = find_encoder(name)
        graph = require(spec, locate(spec)).found["image"]
        self._sessions = [_session(graph, spinning) for spinning in ("1", "0")]
        self._input = self._sessions[0].get_inputs()[0].name

    def run(self, tensors: Floats) -> Timed:
        """Run the graph on all of `tensors`, batch by batch; spinning wins on an idle machine, not on a busy one."""
        return Timed(len(tensors), min(self._seconds(session, tensors) for session in self._sessions))

    def _seconds(self, session: Any, tensors: Floats) -> float:
        began = time.perf_counter()
        for start in range(0, len(tensors), BATCH):
            session.run(None, {self._input: tensors[start : start + BATCH]})
        return time.perf_counter() - began


def _session(graph: Path, spinning: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def run_pipeline(paths: list[Path], encoder: Encoder, cache: EmbeddingCache) -> Timed:
    """Take `paths` the whole way; a copy of an image that the cache knows does not count as one."""
    began = time.perf_counter()
    result = embed([ImageFile(path) for path in paths], encoder, store=cache)
    return Timed(result.encoded, time.perf_counter() - began)


def preloaded(paths: list[Path], encoder: Encoder) -> Floats:
    """Return the tensors of `paths`, in one array from the start: two copies would double the memory."""
    first = encoder.preprocess(decode(paths[0].read_bytes()))
    tensors = np.empty((len(paths), *first.shape), dtype=np.float32)
    for row, path in enumerate(paths):
        tensors[row] = encoder.preprocess(decode(path.read_bytes()))
    return tensors


def measure(paths: list[Path], name: str, size: int) -> Iterator[tuple[Timed, Timed]]:
    """Yield the times of pipeline and bare loop for each block of `size` images, after a batch to warm up."""
    encoder, bare = load_encoder(name, backend="onnx"), BareLoop(name)
    warm = preloaded(paths[:BATCH], encoder)
    encoder.encode(warm)
    bare.run(warm)
    with tempfile.TemporaryDirectory() as folder, EmbeddingCache.of(encoder, folder) as cache:
        for start in range(0, len(paths), size):
            block = paths[start : start + size]
            pipeline = run_pipeline(block, encoder, cache)
            yield pipeline, bare.run(preloaded(block, encoder))


def main() -> None:
    """Measure, print, and fail below the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    images = data_folder() / "xd8-images"
    parser.add_argument("images", type=Path, nargs="?", default=images, help="folder of images")
    parser.add_argument("--encoder", default="builtin")
    parser.add_argument("--size", type=int, help="how many images, evenly over the folder; all without it")
    parser.add_argument("--block", type=int, default=512, help="images in a block")
    options = parser.parse_args()
    paths = image_files(options.images)
    if options.size:
        paths = paths[:: max(1, len(paths) // options.size)][: options.size]
    ratios, whole, alone = [], Timed(0, 0.0), Timed(0, 0.0)
    for pipeline, bare in measure(paths, options.encoder, options.block):
        ratios.append(pipeline.rate / bare.rate)
        whole, alone = whole + pipeline, alone + bare
        rates = f"pipeline {pipeline.rate:6.1f}   bare {bare.rate:6.1f} images/s   {ratios[-1]:.0%}"
        print(f"{alone.images:6,} of {len(paths):,}   {rates}", flush=True)
    median = float(np.median(ratios))
    print(
        f"{options.encoder}, {len(paths):,} images: pipeline {whole.rate:.1f} images/s, bare {alone.rate:.1f}; "
        f"{whole.rate / alone.rate:.0%} in total, {median:.0%} in the median of {len(ratios)} blocks"
    )
    if median < TARGET:
        raise SystemExit(f"below the target of {TARGET:.0%}")


if __name__ == "__main__":
    main()
