"""A method of your own: what scoring needs, and the scores. Learning, forgetting, merging and saving come with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hycal import NCM
from hycal.base import IncrementalClassifier
from hycal.data import load_xd8
from hycal.state.records import Records
from hycal.validation import Doubles, Floats


class NearestImage(IncrementalClassifier):
    """The class of the most similar learned image."""

    def derive(self, records: Records, previous: Any) -> list[Floats]:
        """Return the images of each class."""
        return [record.samples.rows for record in records.ordered]

    def score_rows(self, derived: list[Floats], X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the largest cosine to an image of each class."""
        chosen = derived if columns is None else [derived[column] for column in columns]
        return np.stack([(X @ rows.T).max(axis=1) for rows in chosen], axis=1).astype(np.float64)


texture = load_xd8()["texture"]
for method in (NearestImage, NCM):
    accuracy = method().fit(texture.train_x, texture.train_y).score(texture.test_x, texture.test_y)
    print(f"{method.__name__:13} {100 * accuracy:.1f}%")
# To save it, and to check the laws by `hycal.testing.check_laws`, name it in an entry point: docs/how-to/method.md.
