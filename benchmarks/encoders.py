"""Few-shot accuracy for each discipline: `builtin` against `clip-vit-b16-w8`, in one table.

    python -m benchmarks.encoders [IMAGES] [--shots 5] [--draws 10]

IMAGES holds DOMAIN/{train,test}/CLASS/*.jpg: the images that the bundled embeddings were made of. Those are the row of
CLIP; `builtin` embeds the images itself, through the user's embedding cache, so that a run that was stopped goes on and
a second run is immediate. The classifier is the nearest class mean; the same shots are drawn for both.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from benchmarks.domains import data_folder
from hycal import NCM
from hycal.commands._output import embedding_progress
from hycal.data.bundled import load_xd8, xd8_provenance
from hycal.data.embedded import EmbeddedDomain, embed_sets, images_digest, in_order
from hycal.data.readers import read_folder
from hycal.data.samples import ImageSet
from hycal.embedding import EmbeddingCache
from hycal.embedding.cache import embeddings_folder
from hycal.encoders import Encoder, load_encoder
from hycal.validation import Doubles


def bundled_images(root: Path) -> Mapping[str, ImageSet]:
    """Return the images below `root`, if they are those of the bundled embeddings."""
    sets = read_folder(root)
    if images_digest(sets, root) != xd8_provenance()["images_sha256"]:
        raise SystemExit(f"{root} does not hold the images that the bundled embeddings were made of.")
    return sets


def embed_images(sets: Mapping[str, ImageSet], encoder: Encoder, console: Console) -> dict[str, EmbeddedDomain]:
    """Return the images embedded with `encoder`, through the user's cache."""
    with (
        EmbeddingCache.of(encoder, embeddings_folder()) as store,
        embedding_progress(console, total=len(in_order(sets))) as watch,
    ):
        domains, skipped = embed_sets(sets, encoder, store=store, watch=watch)
    if skipped:
        raise SystemExit(f"{skipped[0].name}: {skipped[0].reason}; the comparison needs every image")
    return domains


def accuracies(domain: EmbeddedDomain, *, shots: int, draws: int) -> Doubles:
    """Return the accuracy in percent of the nearest class mean for each draw of the shots."""
    answers = [nearest_means(domain, shots=shots, seed=seed) for seed in range(draws)]
    return np.array([100 * np.mean(answer == domain.test_y) for answer in answers])


def nearest_means(domain: EmbeddedDomain, *, shots: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the answers of the nearest class mean to the test images, for one draw of the shots."""
    random = np.random.default_rng(seed)
    pools = [np.flatnonzero(domain.train_y == label) for label in range(len(domain.class_names))]
    rows = np.concatenate([random.permutation(pool)[:shots] for pool in pools])
    answers: npt.NDArray[np.int64] = NCM().fit(domain.train_x[rows], domain.train_y[rows]).predict(domain.test_x)
    return answers


def show(encoded: Mapping[str, Mapping[str, EmbeddedDomain]], *, shots: int, draws: int, console: Console) -> None:
    """Print the table: a discipline in each row, an encoder in each column."""
    names = list(next(iter(encoded.values())))
    table = Table("discipline", "classes", "test images", *encoded, box=None)
    found = {
        encoder: np.stack([accuracies(domains[name], shots=shots, draws=draws) for name in names])
        for encoder, domains in encoded.items()
    }
    for row, name in enumerate(names):
        domain = next(iter(encoded.values()))[name]
        cells = [f"{values[row].mean():.1f} ± {values[row].std(ddof=1):.1f}" for values in found.values()]
        table.add_row(name, str(len(domain.class_names)), str(len(domain.test_y)), *cells)
    means = [values.mean(axis=0) for values in found.values()]
    table.add_row("mean", "", "", *(f"{value.mean():.1f} ± {value.std(ddof=1):.1f}" for value in means))
    console.print(
        f"{shots}-shot nearest class mean, accuracy in percent on all test images; mean and standard deviation of "
        f"{draws} draws of the shots, the same for both.",
        soft_wrap=True,
    )
    console.print(table)


def main() -> None:
    """Measure both encoders on every discipline, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    images = data_folder() / "xd8-images"
    parser.add_argument("images", type=Path, nargs="?", default=images)
    parser.add_argument("--shots", type=int, default=5)
    parser.add_argument("--draws", type=int, default=10)
    arguments = parser.parse_args()
    if not arguments.images.is_dir():
        parser.error(f"there is no folder {arguments.images}; pass one with DOMAIN/{{train,test}}/CLASS/*.jpg")
    encoded = {
        "builtin": embed_images(bundled_images(arguments.images), load_encoder("builtin"), Console(stderr=True)),
        xd8_provenance()["encoder"]: load_xd8(),
    }
    show(encoded, shots=arguments.shots, draws=arguments.draws, console=Console())


if __name__ == "__main__":
    main()
