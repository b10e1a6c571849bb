"""Learn eight visual disciplines one after another from a few unequal images, and print how accuracy develops.

Real CLIP embeddings that come with the package. Nothing is trained, and a step never looks at an earlier one.
"""

from __future__ import annotations

import numpy as np

from hycal import HyCal
from hycal.data import EmbeddedDomain, load_xd8
from hycal.validation import Floats

SHOTS = {  # images of each class: two disciplines have plenty, the others a handful
    "aircraft": 10,
    "art": 5,
    "digit": 5,
    "flower": 10,
    "galaxy": 5,
    "medical": 5,
    "satellite": 20,
    "texture": 5,
}


def few(domain: EmbeddedDomain, shots: int) -> tuple[Floats, list[str]]:
    """Return `shots` images of every class, and their labels."""
    rng = np.random.default_rng(0)
    classes = range(len(domain.class_names))
    rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:shots] for c in classes])
    return domain.train_x[rows], labels(domain, domain.train_y[rows])


def labels(domain: EmbeddedDomain, positions: np.ndarray) -> list[str]:
    """Return labels that differ between disciplines: DOMAIN/CLASS."""
    return [f"{domain.name}/{domain.class_names[position]}" for position in positions]


def main() -> None:
    """Run the stream."""
    disciplines = load_xd8()
    classifier = HyCal(fusion="image")
    learned: list[EmbeddedDomain] = []
    print("HyCal on CLIP ViT-B/16 embeddings; candidates are all classes learned so far (CIL); accuracy in %")
    print(" " * 24 + "".join(f"{name:>10}" for name in SHOTS) + "      mean")
    for name, shots in SHOTS.items():
        domain = disciplines[name]
        classifier.partial_fit(*few(domain, shots), domain=name)
        learned.append(domain)
        row = [100 * classifier.score(past.test_x, labels(past, past.test_y)) for past in learned]
        cells = "".join(f"{accuracy:10.1f}" for accuracy in row) + " " * 10 * (len(SHOTS) - len(row))
        print(f"+ {name:<10}{shots:3d} shots   " + cells + f"{np.mean(row):10.1f}")
    images, megabytes = classifier.counts_.sum(), classifier.nbytes_ / 1e6
    print(f"{len(classifier.classes_)} classes, {images} images, {megabytes:.1f} MB of state")


if __name__ == "__main__":
    main()
