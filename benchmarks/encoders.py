"""Few-shot accuracy of encoders for each discipline, in one table.

    python -m benchmarks.encoders [IMAGES] [--encoder builtin] [--encoder dinov2-s] [--method NCM] [--most 10]

IMAGES holds DOMAIN/{train,test}/CLASS/*.jpg: the images that the bundled embeddings were made of. Those are the column
of CLIP; another encoder, by default each one that is installed, embeds the images itself, through the user's embedding
cache, so that a run that was stopped goes on and a second run is immediate. NAME:flip and NAME:crops are encoders like
others. The same shots are drawn for all. --most takes only the first images of each class, for training and for
testing, which is enough to compare encoders in a fraction of the time.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from benchmarks.domains import data_folder
from benchmarks.printed import PrintedTable
from hycal.classifiers import METHODS
from hycal.commands._output import embedding_progress
from hycal.data.bundled import load_xd8, xd8_provenance
from hycal.data.embedded import EmbeddedDomain, embed_sets, in_order
from hycal.data.readers import read_folder
from hycal.data.samples import ImageSet
from hycal.embedding import EmbeddingCache
from hycal.embedding.cache import embeddings_folder
from hycal.encoders import Encoder, list_encoders, load_encoder
from hycal.encoders.files import locate
from hycal.validation import Doubles
from tools.build_xd8 import images_digest


def bundled_images(root: Path) -> Mapping[str, ImageSet]:
    """Return the images below `root`, if they are those of the bundled embeddings."""
    sets = read_folder(root)
    if images_digest(sets, root) != xd8_provenance()["images_sha256"]:
        raise SystemExit(f"{root} does not hold the images that the bundled embeddings were made of.")
    return sets


def first_images(images: ImageSet, most: int) -> ImageSet:
    """Return at most `most` training images and as many test images of each class."""
    return replace(images, samples=tuple(images.samples[at] for at in _first(_places(images), most)))


def _places(images: ImageSet) -> list[tuple[str, int]]:
    return [(sample.split, sample.label) for sample in images.samples]


def _first(groups: Sequence[Hashable], most: int) -> list[int]:
    """Return the positions of the first `most` members of each group."""
    counts: Counter[Hashable] = Counter()
    kept = []
    for at, group in enumerate(groups):
        counts[group] += 1
        if counts[group] <= most:
            kept.append(at)
    return kept


def first_rows(domain: EmbeddedDomain, most: int) -> EmbeddedDomain:
    """Return the rows of the images that `first_images` keeps."""
    train, test = (_first(y.tolist(), most) for y in (domain.train_y, domain.test_y))
    return replace(
        domain,
        train_x=domain.train_x[train],
        train_y=domain.train_y[train],
        test_x=domain.test_x[test],
        test_y=domain.test_y[test],
    )


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


def accuracies(domain: EmbeddedDomain, *, shots: int, draws: int, method: str = "NCM") -> Doubles:
    """Return the accuracy in percent of a method for each draw of the shots."""
    found = [answers(domain, shots=shots, seed=seed, method=method) for seed in range(draws)]
    return np.array([100 * np.mean(answer == domain.test_y) for answer in found])


def answers(domain: EmbeddedDomain, *, shots: int, seed: int, method: str = "NCM") -> npt.NDArray[np.int64]:
    """Return the answers of a method, on images alone, to the test images, for one draw of the shots."""
    random = np.random.default_rng(seed)
    pools = [np.flatnonzero(domain.train_y == label) for label in range(len(domain.class_names))]
    rows = np.concatenate([random.permutation(pool)[:shots] for pool in pools])
    kind = METHODS.find(method)
    model = kind(**(kind.without_text or {})).fit(domain.train_x[rows], domain.train_y[rows])
    return model.predict(domain.test_x)


def show(encoded: Mapping[str, Mapping[str, EmbeddedDomain]], *, shots: int, draws: int, method: str) -> None:
    """Print the table: an encoder in each row, a discipline in each column."""
    first, *_ = encoded.values()
    title = f"{shots}-shot {method}, accuracy in percent; mean and standard deviation of {draws} draws"
    table = PrintedTable(title, "encoder", *first, "mean", "gain")
    table.row("test images", *(str(len(domain.test_y)) for domain in first.values()), "", "")
    base = None
    for encoder, domains in encoded.items():
        found = np.stack([accuracies(one, shots=shots, draws=draws, method=method) for one in domains.values()])
        mean = found.mean(axis=0)
        base = mean if base is None else base
        gain, error = (mean - base).mean(), (mean - base).std(ddof=1) / np.sqrt(draws)
        cells = [f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" for values in (*found, mean)]
        table.row(encoder, *cells, f"{gain:+.2f} (s.e. {error:.2f})" if mean is not base else "")


def installed() -> list[str]:
    """Return the encoders whose files are here, without the one of the bundled embeddings."""
    bundled = xd8_provenance()["encoder"]
    return [spec.name for spec in list_encoders() if spec.name != bundled and not locate(spec).missing]


def main() -> None:
    """Measure the encoders on every discipline, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, nargs="?", default=data_folder() / "xd8-images")
    parser.add_argument("--encoder", action="append", help="again for more; by default all that are installed")
    parser.add_argument("--method", default="NCM")
    parser.add_argument("--shots", type=int, default=5)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--most", type=int, help="images of each class, for training and for testing")
    parser.add_argument("--only", nargs="+", help="disciplines; by default all")
    arguments = parser.parse_args()
    if not arguments.images.is_dir():
        parser.error(f"there is no folder {arguments.images}; pass one with DOMAIN/{{train,test}}/CLASS/*.jpg")
    sets, bundled = dict(bundled_images(arguments.images)), load_xd8()
    sets = {name: images for name, images in sets.items() if name in (arguments.only or sets)}
    if arguments.most is not None:
        sets = {name: first_images(images, arguments.most) for name, images in sets.items()}
        bundled = {name: first_rows(domain, arguments.most) for name, domain in bundled.items()}
    encoded = {
        name: embed_images(sets, load_encoder(name), Console(stderr=True)) for name in arguments.encoder or installed()
    }
    encoded[xd8_provenance()["encoder"]] = {name: bundled[name] for name in sets}
    show(encoded, shots=arguments.shots, draws=arguments.draws, method=arguments.method)


if __name__ == "__main__":
    main()
