"""ZeroShot: CLIP's own classifier, from the names of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.features import LinearHead
from hycal.base import IncrementalClassifier
from hycal.classifiers.zero_shot_fusion import text_weights
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats


class ZeroShot(IncrementalClassifier):
    r"""Nearest text: images teach it nothing.

    .. math:: s_c = 100 \, x^\top t_c

    with x the unit image embedding and t_c the unit text embedding of class c. Classes are named by `announce`, or come
    with `partial_fit`, whose images count but change no score.

    Notes
    -----
    A query costs 2 d C operations.

    References
    ----------
    Radford et al., Learning transferable visual models from natural language supervision, ICML 2021.

    Examples
    --------
    >>> from hycal import ZeroShot
    >>> clf = ZeroShot().announce({"cat": [1.0, 0.0], "dog": [0.0, 1.0]})
    >>> clf.predict([[0.9, 0.2]]).tolist()
    ['cat']
    """

    @property
    def _scores_unseen(self) -> bool:
        return True

    def _check_records(self, records: Records) -> None:
        super()._check_records(records)
        records.check_text("ZeroShot", "use a method that learns from images, such as NCM")

    def _derive(self, records: Records, previous: Any) -> LinearHead:
        return LinearHead.on_embeddings(text_weights(records))

    def _leave_one_out(self, derived: LinearHead, records: Records, samples: Selection) -> Doubles:
        return derived(samples.X)

    def _score(self, derived: LinearHead, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        return derived(X, columns)
