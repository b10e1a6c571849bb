"""The default gamma of KLDA, chosen on training embeddings alone: half of the shots fit, the other half validates.

    python -m benchmarks.klda_gamma

Published values belong to embeddings of other lengths; on unit vectors gammas between 0.1 and 1 do the same. The
training parts of aircraft, flowers, cars and sun397 (CLIP ViT-B/32) are learned as one stream; no query is touched.
"""

from __future__ import annotations

import numpy as np

from benchmarks.domains import folder, missing
from hycal import KLDA
from hycal.validation import Floats

DOMAINS = ("aircraft", "flowers", "cars", "sun397")
GAMMAS = (0.1, 0.3, 1.0)


def halves(domain: str) -> tuple[tuple[Floats, list[str]], tuple[Floats, list[str]]]:
    """Return the training embeddings of a domain and their labels, in two halves of every class."""
    with np.load(folder() / f"{domain}.npz") as file:
        X, y = file["train_x"].astype(np.float32), file["train_y"]
    rng = np.random.default_rng(0)
    parts: tuple[list[int], list[int]] = ([], [])
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label)).tolist()
        parts[0].extend(rows[: len(rows) // 2])
        parts[1].extend(rows[len(rows) // 2 :])
    fit, validate = ((X[rows], [f"{domain}/{label}" for label in y[rows]]) for rows in parts)
    return fit, validate


def main() -> None:
    """Print one row per gamma."""
    absent = missing()
    if absent:
        raise SystemExit(absent)
    split = {domain: halves(domain) for domain in DOMAINS}
    print("gamma " + "".join(f"{domain:>10}" for domain in DOMAINS) + "      mean")
    for gamma in GAMMAS:
        classifier = KLDA(n_components=2000, gamma=gamma)
        for domain, (fit, _) in split.items():
            classifier.partial_fit(*fit, domain=domain)
        row = [100 * classifier.score(*validate) for _, validate in split.values()]
        print(f"{gamma:5.1f} " + "".join(f"{accuracy:10.1f}" for accuracy in row) + f"{np.mean(row):10.1f}", flush=True)


if __name__ == "__main__":
    main()
