"""Write the golden vectors of an encoder from the weights at hand.

Run it only after those weights were compared with independent embeddings (tests/encoders/test_w8.py).

    python tools/make_golden.py clip-vit-b16-w8 --weights FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from hycal.encoders import load_encoder
from hycal.encoders.golden import embed_golden

TARGET = Path(__file__).parent.parent / "src" / "hycal" / "encoders" / "golden"


def main() -> None:
    """Embed the golden images and store the vectors as float16."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--weights", type=Path)
    arguments = parser.parse_args()
    encoder = load_encoder(arguments.name, weights=arguments.weights, backend="onnx")
    TARGET.mkdir(exist_ok=True)
    np.save(TARGET / f"{encoder.name}.npy", embed_golden(encoder).astype(np.float16))


if __name__ == "__main__":
    main()
