"""Make the package data of `hycal.data.load_xd8` from the images: a few hours once, resumable at any moment.

    python tools/build_xd8.py --images DIR --out src/hycal/data/xd8

DIR holds DOMAIN/{train,test}/CLASS/*.jpg. The encoder `clip-vit-b16-w8` must be there: `hycal encoders get
clip-vit-b16-w8`. Only embeddings, labels and names are written, no image.
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console

from hycal._version import __version__
from hycal.commands._output import embedding_progress
from hycal.data.bundled import write_domains
from hycal.data.embedded import embed_sets, images_digest, in_order
from hycal.data.readers import read_folder
from hycal.embedding import EmbeddingCache
from hycal.embedding.store import EmbeddingStore, space_fingerprint
from hycal.encoders.encoder import Encoder

ENCODER = "clip-vit-b16-w8"
MOST_BYTES = 12_000_000
LICENCE = (
    "Embeddings computed with OpenAI CLIP ViT-B/16 (MIT licence). The images come from research and open "
    "data sets (FGVC-Aircraft, paintings by style, DTD, UC Merced, EFIGI, MNIST, medical image collections, "
    "Oxford Flowers 102) and keep the licences of their sets; no image is distributed here."
)


def build(images: Path, out: Path, *, encoder: Encoder, store: EmbeddingStore, console: Console) -> None:
    """Embed every image below `images` and write the package data to `out`."""
    sets = read_folder(images)
    total = len(in_order(sets))
    with embedding_progress(console, total=total) as watch:
        domains, skipped = embed_sets(sets, encoder, store=store, watch=watch)
    if skipped:
        listing = "\n".join(f"  {skip.name}: {skip.reason}" for skip in skipped)
        raise SystemExit(f"{len(skipped)} images cannot be used; nothing is written:\n{listing}")
    write_domains(out, domains, provenance=_provenance(images_digest(sets, images), encoder))
    size = sum(path.stat().st_size for path in out.iterdir())
    console.print(f"{out}: {total:,} embeddings, {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"The package data is larger than {MOST_BYTES:,} bytes.")


def _provenance(digest: str, encoder: Encoder) -> dict[str, Any]:
    return {
        "encoder": encoder.name,
        "fingerprint": space_fingerprint(encoder),
        "dimension": encoder.dimension,
        "stored_as": "float16, bytes split into planes, deflate",
        "order": "train then test of each domain, classes and files in name order",
        "images_sha256": digest,
        "images_sha256_of": "lines '<sha256 of file>  <path>' in that order, as sha256sum prints them",
        "versions": {name: _version(name) for name in ("numpy", "pillow", "onnxruntime")}
        | {"hycal": __version__, "python": platform.python_version()},
        "licence": LICENCE,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder DOMAIN/{train,test}/CLASS/*.jpg")
    parser.add_argument("--out", type=Path, default=Path("src/hycal/data/xd8"), help="folder for the package data")
    parser.add_argument("--cache", type=Path, help="embedding cache (default: the user's)")
    options = parser.parse_args()
    from hycal.embedding.cache import embeddings_folder
    from hycal.encoders import load_encoder

    encoder = load_encoder(ENCODER, backend="onnx")
    with EmbeddingCache.of(encoder, options.cache or embeddings_folder()) as cache:
        build(options.images, options.out, encoder=encoder, store=cache, console=Console(stderr=True))


if __name__ == "__main__":
    main()
