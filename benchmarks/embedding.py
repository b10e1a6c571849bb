"""Images per second of the pipeline, from files to rows, against the bare encoder on preloaded tensors.

    python -m benchmarks.embedding --images DIR --size 240

Both run in turns on the same images in the same process, so that a busy machine slows both. The pipeline
reads, hashes, decodes, preprocesses, encodes and writes its cache; the bare loop only encodes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from hycal.embedding import EmbeddingCache, ImageFile, embed
from hycal.embedding.decoding import decode
from hycal.embedding.pipeline import BATCH
from hycal.embedding.sources import image_files
from hycal.encoders import load_encoder
from hycal.encoders.protocol import Encoder
from hycal.validation import Floats

ROUNDS = 3
TARGET = 0.8


def bare(encoder: Encoder, tensors: Floats) -> float:
    """Return images per second of the encoder alone."""
    began = time.perf_counter()
    for start in range(0, len(tensors), BATCH):
        encoder.encode(tensors[start : start + BATCH])
    return len(tensors) / (time.perf_counter() - began)


def pipeline(encoder: Encoder, paths: list[Path]) -> float:
    """Return images per second of the whole way, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder, EmbeddingCache.of(encoder, folder) as cache:
        began = time.perf_counter()
        result = embed([ImageFile(path) for path in paths], encoder, store=cache)
        return result.encoded / (time.perf_counter() - began)


def main() -> None:
    """Measure, print, and fail below the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=Path("../shared/data/xd8-images"), help="folder of images")
    parser.add_argument("--encoder", default="clip-vit-b16-w8")
    parser.add_argument("--size", type=int, default=240, help="how many images, evenly over the folder")
    options = parser.parse_args()
    found = image_files(options.images)
    paths = found[:: max(1, len(found) // options.size)][: options.size]
    encoder = load_encoder(options.encoder)
    tensors = np.stack([encoder.preprocess(decode(path.read_bytes())) for path in paths])
    encoder.encode(tensors[:BATCH])
    rates = []
    part = -(-len(paths) // ROUNDS)
    for start in range(0, len(paths), part):
        chunk = slice(start, start + part)
        rates.append((pipeline(encoder, paths[chunk]), bare(encoder, tensors[chunk])))
        print(f"pipeline {rates[-1][0]:6.2f} images/s   bare {rates[-1][1]:6.2f} images/s")
    ratio = float(np.median([whole / alone for whole, alone in rates]))
    print(f"{options.encoder}, {len(paths)} images: the pipeline runs at {ratio:.0%} of the bare loop")
    if ratio < TARGET:
        raise SystemExit(f"below the target of {TARGET:.0%}")


if __name__ == "__main__":
    main()
