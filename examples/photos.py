"""Writes real images to try hycal on: scans of handwritten digits, from scikit-learn, as folders of PNG files.

    python examples/photos.py [FOLDER]

FOLDER/low and FOLDER/high are to learn from, FOLDER/test to test on, FOLDER/new is without labels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

SIDE = 64


def write_digits(folder: Path, digits: Iterable[int], *, first: int, images: int) -> None:
    """Write `images` scans of each digit, after the `first` in a fixed shuffle, each digit in a folder of its own."""
    data = load_digits()
    shuffled = np.random.default_rng(0).permutation(len(data.target))  # they come writer by writer
    for digit in digits:
        (folder / str(digit)).mkdir(parents=True, exist_ok=True)
        for number in shuffled[data.target[shuffled] == digit][first : first + images]:
            pixels = (data.images[number] * (255 / 16)).astype(np.uint8)
            picture = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
            picture.save(folder / str(digit) / f"{number:04}.png")


def main() -> None:
    """Write the four folders."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "photos")
    write_digits(root / "low", range(4), first=0, images=12)
    write_digits(root / "high", range(6, 10), first=0, images=12)
    write_digits(root / "test" / "low", range(4), first=60, images=5)
    write_digits(root / "test" / "high", range(6, 10), first=60, images=5)
    write_digits(root / "new", [3, 8], first=100, images=1)
    print(f"{root}: {len(list(root.rglob('*.png')))} images")


if __name__ == "__main__":
    main()
