"""Families of methods: those that are linear in the embedding, those that add to CLIP's zero-shot scores, and those
with random features."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from hycal.algebra.features import LinearHead
from hycal.base import IncrementalClassifier
from hycal.state.records import Records
from hycal.state.snapshot import Snapshot
from hycal.validation import Doubles, Floats

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder

LOGIT_SCALE = 100.0  # CLIP's temperature, as trained
ZERO_SHOT: list[Any] = [StrOptions({"fuse", "none"})]
# A model file names these numbers: without a bound, a small file could ask for more than any machine holds.
N_COMPONENTS: list[Any] = [Interval(Integral, 1, 2**16, closed="both")]
ENSEMBLE: list[Any] = [Interval(Integral, 1, 2**7, closed="both")]
RANDOM_STATE: list[Any] = [Interval(Integral, 0, 2**64, closed="left")]


class LinearClassifier(IncrementalClassifier):
    """A method whose `derive` returns a `LinearHead` on the embeddings themselves."""

    def score_rows(self, derived: LinearHead, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the products with the weights, plus the bias."""
        return derived(X, columns)

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add one matrix product and one sum."""
        return graph.affine(rows, snapshot.value.weights, snapshot.value.bias)


def text_weights(records: Records) -> Doubles:
    """Return the weights of the zero-shot classifier, 100 t_c, shape (C, d)."""
    return LOGIT_SCALE * np.stack([np.asarray(record.text, dtype=np.float64) for record in records.ordered])


class ZeroShotFusion(IncrementalClassifier):
    """A method with a parameter `zero_shot`: "fuse" needs the text of every class, "none" uses images alone."""

    without_text: ClassVar[Mapping[str, Any]] = {"zero_shot": "none"}
    zero_shot: str

    @property
    def fuses(self) -> bool:
        """Whether zero-shot scores are added."""
        return self.zero_shot == "fuse"

    @property
    def scores_announced(self) -> bool:
        """Whether the text of a class alone can score it."""
        return self.fuses

    def check_records(self, records: Records) -> None:
        """Refuse classes without text where zero-shot scores are added."""
        super().check_records(records)
        if self.fuses:
            records.check_text(f'{type(self).__name__}(zero_shot="fuse")', 'use images alone (zero_shot="none")')


def feature_bytes(records: Records, size: int, *, draws: int = 1) -> int:
    """Return the bytes of random feature maps of this size, and of a linear head on each."""
    return 8 * draws * size * (records.width + len(records.by_label))
