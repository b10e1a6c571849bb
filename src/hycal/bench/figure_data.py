"""Data for figures that need the embeddings, which cells do not hold.

There is one JSON file for each setting that HyCal was run on, with the manifest of that run. It holds positions of
class means among test images (t-SNE), the cosine similarity and Mahalanobis distance of test images, the rank of their
class by each, and example images where the embeddings came with some.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.manifold import TSNE

from hycal.algebra.features import Identity, Relu
from hycal.bench.cells import Cell
from hycal.bench.domains import BenchDomain, have_text, queries_of
from hycal.bench.methods import Variant
from hycal.bench.protocol import learn_domain
from hycal.bench.sampling import SampleList
from hycal.classifiers import HyCal
from hycal.errors import HyCalError
from hycal.escaping import file_name
from hycal.validation import Doubles

FORMAT = 2
FIGURE_MARK = b'{"agreement":'  # how such a file begins
_IMAGES = 600  # test images drawn among the class means
_POINTS = 2000  # test images in the scatter of both measures
_NO_SPREAD = 1e-6
_METRICS = ("cosine", "mahalanobis", "dynamic")


@dataclass(frozen=True, eq=False)
class Projection:
    """Class means and test images, projected to two dimensions."""

    places: Doubles  # (n, 2)
    domains: npt.NDArray[np.int64]  # (n,): number of the domain of each point
    means: npt.NDArray[np.bool_]  # (n,): whether the point is a class mean


@dataclass(frozen=True, eq=False)
class FigureData:
    """The content of a file of figure data."""

    setting: str
    seed: int
    domains: tuple[str, ...]
    maps: Mapping[str, Projection]  # by the method whose space is projected
    # (n,): both measures between a test image and its own class, for some test images.
    cosine: Doubles
    distance: Doubles
    ranks: npt.NDArray[np.int64]  # (n, 2): place of the own class among all, by cosine and by distance; 1 is the best
    right: npt.NDArray[np.bool_]  # (n, 3): whether cosine, distance and the blend of both are right
    # Number of test images, of all, by the measures that are right: "cosine mahalanobis dynamic", "" for none.
    agreement: Mapping[str, int]
    examples: Mapping[str, Sequence[str]]  # some training images of each domain that has them, as JPEG files in base64
    manifest: Mapping[str, Any]  # everything that the data depend on


def figure_place(cell: Cell) -> str:
    """Return the path of the figure data of a cell, below their folder."""
    return f"{file_name(cell.setting.label)}/{file_name(f'{cell.order}.{cell.setting.protocol}.{cell.seed}.json')}"


def figure_manifest(of_cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of figure data, from that of its cell."""
    return {**of_cell, "figure": FORMAT}


def make_figure_data(
    cell: Cell, domains: Sequence[BenchDomain], samples: Mapping[str, SampleList], content: Mapping[str, Any]
) -> bytes:
    """Return the bytes of a file of figure data."""
    width = domains[0].train_x.shape[1]
    ranpac = Variant("RanPAC").parameters(cell.setting, text=False, seed=cell.seed)
    features = Relu.gaussian(width, ranpac["n_components"], ranpac["random_state"])
    document = {
        "manifest": content,
        "maps": {"HyCal": _map(Identity(width), domains, samples), "RanPAC": _map(features, domains, samples)},
        "examples": {domain.name: domain.examples for domain in domains if domain.examples},
        **_measures(cell, domains, samples),
    }
    return (json.dumps(document, sort_keys=True) + "\n").encode()


def _map(
    features: Callable[[Doubles], Doubles], domains: Sequence[BenchDomain], samples: Mapping[str, SampleList]
) -> Any:
    """Return places, domain numbers and kinds of class means and of evenly many test images of each domain."""
    rows, numbers, means = [], [], []
    for number, domain in enumerate(domains):
        sample = samples[domain.name]
        learned, labels = features(domain.train_x[list(sample.rows)].astype(np.float64)), np.array(sample.labels)
        centres = np.stack([learned[labels == label].mean(axis=0) for label in np.unique(labels)])
        tested = domain.test_x[:: -(-len(domain.test_x) // (_IMAGES // len(domains)))].astype(np.float64)
        rows += [centres, features(tested)]
        numbers += [number] * (len(centres) + len(tested))
        means += [True] * len(centres) + [False] * len(tested)
    return [_flat(np.concatenate(rows)).round(2).tolist(), numbers, means]


def _flat(points: Doubles) -> Doubles:
    """Return t-SNE of the points, (n, 2); zeros if all points are the same."""
    if points.std(axis=0).max() < _NO_SPREAD:
        return np.zeros((len(points), 2))
    perplexity = min(30.0, (len(points) - 1) / 3)
    flat = TSNE(metric="cosine", init="pca", max_iter=500, perplexity=perplexity, random_state=0)
    return flat.fit_transform(points).astype(np.float64)


def _measures(cell: Cell, domains: Sequence[BenchDomain], samples: Mapping[str, SampleList]) -> dict[str, Any]:
    classifier = Variant("HyCal").build(cell.setting, text=have_text(domains))
    assert isinstance(classifier, HyCal)
    for domain in domains:
        learn_domain(classifier, domain, samples[domain.name])
    queries, truth = queries_of(domains)
    right = np.stack([classifier.set_params(metric=metric).predict(queries) == truth for metric in _METRICS], axis=1)
    who = [" ".join(name for name, yes in zip(_METRICS, row, strict=True) if yes) for row in right]
    shown = slice(None, None, -(-len(queries) // _POINTS))
    cosine, distance = classifier.measures(queries[shown])
    own = np.searchsorted(classifier.classes_, truth[shown])[:, None]
    own_cosine, own_distance = (np.take_along_axis(measure, own, axis=1) for measure in (cosine, distance))
    ranks = 1 + np.stack([(cosine > own_cosine).sum(axis=1), (distance < own_distance).sum(axis=1)], axis=1)
    return {
        "cosine": own_cosine[:, 0].round(4).tolist(),
        "distance": own_distance[:, 0].round(1).tolist(),
        "ranks": ranks.tolist(),
        "right": right[shown].tolist(),
        "agreement": {name: who.count(name) for name in sorted(set(who))},
    }


def read_figure_data(path: Path) -> FigureData:
    """Return the content of a file of figure data."""
    try:
        document = json.loads(path.read_bytes())
        about = document["manifest"]
        return FigureData(
            setting=about["setting"],
            seed=about["seed"],
            domains=tuple(about["domains"]),
            maps={
                name: Projection(np.array(places), np.array(numbers), np.array(means, dtype=np.bool_))
                for name, (places, numbers, means) in document["maps"].items()
            },
            cosine=np.array(document["cosine"]),
            distance=np.array(document["distance"]),
            ranks=np.array(document["ranks"], dtype=np.int64).reshape(-1, 2),
            right=np.array(document["right"], dtype=np.bool_),
            agreement=document["agreement"],
            examples={name: [_base64(image) for image in images] for name, images in document["examples"].items()},
            manifest=about,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HyCalError(f"{path} is not figure data of `hycal bench run`: {error!r}. Delete it, run again.") from None


def _base64(text: str) -> str:
    """Return the text, which is written into a page as it is; an error if it is not base64."""
    return base64.b64encode(base64.b64decode(text, validate=True)).decode()
