"""Make the package data of `hycal.data.load_xd8` from the images: a few hours once, resumable at any moment.

    python tools/build_xd8.py --images DIR --out src/hycal/data/xd8
    python tools/build_xd8.py --images DIR --out src/hycal/data/xd8 --view builtin
    python tools/build_xd8.py --images DIR --out src/hycal/data/xd8 --view dinov2-s

DIR holds DOMAIN/{train,test}/CLASS/*.jpg. The encoder must be there: `hycal encoders get clip-vit-b16-w8`. The second
and third command add the same images by another encoder. Only embeddings, labels and names are written, no image.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from hycal._version import __version__
from hycal.commands._output import embedding_progress
from hycal.data.bundled import PROVENANCE, VIEWS
from hycal.data.embedded import EmbeddedDomain, embed_sets, in_order
from hycal.data.readers import read_folder
from hycal.data.samples import ImageSet
from hycal.embedding import EmbeddingCache
from hycal.embedding.store import EmbeddingStore, space_fingerprint
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.storage.atomic import replacing, write_whole
from hycal.validation import Floats

ENCODER = "clip-vit-b16-w8"
MOST_BYTES = 25_000_000
_MOST_LABELS = 2**16
_LEVELS = 127  # of an entry in 8 bits
VIEW_LICENCES = {
    "builtin": "Embeddings computed with TinyViT (MIT licence) and EfficientNet-Lite (Apache licence 2.0).",
    "dinov2-s": "Embeddings computed with DINOv2 ViT-S/14 (Apache licence 2.0).",
}
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
    provenance = _provenance(images_digest(sets, images), encoder)
    if encoder.name in VIEW_LICENCES:
        _add_view(out, encoder.name, domains, provenance)
    else:
        write_domains(out, domains, provenance=provenance)
    size = sum(path.stat().st_size for path in out.rglob("*.*"))
    console.print(f"{out}: {total:,} embeddings, {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"The package data is larger than {MOST_BYTES:,} bytes.")


def _add_view(out: Path, encoder: str, domains: Mapping[str, EmbeddedDomain], provenance: dict[str, Any]) -> None:
    """Write the rows of another encoder beside those of the same images."""
    written = json.loads((out / PROVENANCE).read_text(encoding="utf-8"))
    if written["images_sha256"] != provenance["images_sha256"]:
        raise SystemExit("These are not the images of the package data; nothing is written.")
    about = {key: provenance[key] for key in ("fingerprint", "dimension", "versions")}
    stored = "8 bits, each row divided by its largest entry; deflate"
    write_view(out, encoder, domains, provenance={**about, "stored_as": stored, "licence": VIEW_LICENCES[encoder]})


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


def images_digest(sets: Mapping[str, ImageSet], root: Path) -> str:
    """Return the hash of the lines `<sha256 of file>  <path below root>` of all files, train then test of each set."""
    listing = hashlib.sha256()
    for _, sample in in_order(sets):
        path = Path(sample.source.name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        listing.update(f"{digest}  {path.relative_to(root).as_posix()}\n".encode())
    return listing.hexdigest()


def write_domains(folder: Path, domains: Mapping[str, EmbeddedDomain], *, provenance: dict[str, Any]) -> None:
    """Write `domains`, then their provenance, without which the folder is not readable."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROVENANCE).unlink(missing_ok=True)
    counts = {}
    for name, domain in domains.items():
        if len(domain.class_names) > _MOST_LABELS:
            raise HyCalError(f"Domain {name!r} has {len(domain.class_names)} classes; 65,536 fit the format.")
        arrays: dict[str, Any] = {
            **_split_planes("train_x", domain.train_x),
            **_split_planes("test_x", domain.test_x),
            "train_y": domain.train_y.astype(np.uint16),
            "test_y": domain.test_y.astype(np.uint16),
            "class_names": np.array(domain.class_names),
        }
        with replacing(folder / f"{name}.npz") as file:
            np.savez_compressed(file, **arrays)
        counts[name] = {
            "classes": len(domain.class_names),
            "train": len(domain.train_y),
            "test": len(domain.test_y),
        }
    _write_provenance(folder, {**provenance, "domains": counts})


def write_view(folder: Path, encoder: str, domains: Mapping[str, EmbeddedDomain], *, provenance: Any) -> None:
    """Write the rows of the same images by another encoder, and add its provenance to that of the folder."""
    arrays: dict[str, Any] = {}
    for name, domain in domains.items():
        arrays[f"{name}.train_x"], arrays[f"{name}.test_x"] = map(_eight_bits, (domain.train_x, domain.test_x))
    (folder / VIEWS).mkdir(exist_ok=True)
    with replacing(folder / VIEWS / f"{encoder}.npz") as file:
        np.savez_compressed(file, **arrays)
    content = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    content["views"] = {**content.get("views", {}), encoder: provenance}
    _write_provenance(folder, content)


def _write_provenance(folder: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    write_whole(folder / PROVENANCE, (text + "\n").encode())


def _eight_bits(rows: Floats) -> npt.NDArray[np.int8]:
    """Return rows as whole numbers up to 127; their length is lost."""
    return np.round(_LEVELS * rows / np.abs(rows).max(axis=1, keepdims=True)).astype(np.int8)


def _split_planes(name: str, rows: npt.NDArray[np.floating[Any]]) -> dict[str, npt.NDArray[np.uint8]]:
    """Return `rows` as two named byte planes of float16."""
    planes = np.ascontiguousarray(rows, dtype="<f2").view(np.uint8).reshape(*rows.shape, 2)
    return {f"{name}_low": planes[..., 0].copy(), f"{name}_high": planes[..., 1].copy()}


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder DOMAIN/{train,test}/CLASS/*.jpg")
    parser.add_argument("--out", type=Path, default=Path("src/hycal/data/xd8"), help="folder for the package data")
    parser.add_argument("--view", choices=list(VIEW_LICENCES), default=ENCODER, help="another encoder to add")
    parser.add_argument("--cache", type=Path, help="embedding cache (default: the user's)")
    options = parser.parse_args()
    from hycal.embedding.cache import embeddings_folder
    from hycal.encoders import load_encoder

    encoder = load_encoder(options.view, backend="onnx")
    with EmbeddingCache.of(encoder, options.cache or embeddings_folder()) as cache:
        build(options.images, options.out, encoder=encoder, store=cache, console=Console(stderr=True))


if __name__ == "__main__":
    main()
