"""ZeroShot: CLIP's own classifier, from the names of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hycal.algebra.classwise_head import text_head
from hycal.algebra.cost import Addition
from hycal.algebra.features import LinearHead
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.classifiers.families import LinearClassifier, TextClassifier
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles


class ZeroShot(LinearClassifier, TextClassifier):
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

    instead: ClassVar[str] = "use a method that learns from images, such as NCM"
    seals: ClassVar[str] = "means"
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {"official": {}, "hycal-paper": {}, "robust": {}}

    rebuilt_because = ""

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count nothing: images teach it nothing."""
        return 0.0

    def derive(self, records: Records, previous: Any) -> LinearHead:
        """Return the scaled texts as weights."""
        return text_head(records, LOGIT_SCALE, previous)

    def scores_without_each(self, derived: LinearHead, records: Records, samples: Selection) -> Doubles:
        """Return the scores as they are: no sample has part in them."""
        return derived(samples.X)
