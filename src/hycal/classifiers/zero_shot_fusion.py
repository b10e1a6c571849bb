"""What methods share that set their scores beside CLIP's own: the zero-shot logits, and who needs text."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from hycal.base import IncrementalClassifier
from hycal.state.records import Records
from hycal.validation import Doubles

LOGIT_SCALE = 100.0  # CLIP's temperature, as trained
ZERO_SHOT: list[Any] = [StrOptions({"fuse", "none"})]


def text_weights(records: Records) -> Doubles:
    """Return the weights of the zero-shot classifier, 100 t_c, shape (C, d)."""
    return LOGIT_SCALE * np.stack([np.asarray(record.text, dtype=np.float64) for record in records.ordered])


class ZeroShotFusion(IncrementalClassifier):
    """A method with a parameter `zero_shot`: "fuse" needs the text of every class, "none" uses images alone."""

    zero_shot: str

    @property
    def _fuses(self) -> bool:
        return self.zero_shot == "fuse"

    @property
    def _scores_unseen(self) -> bool:
        return self._fuses

    def _check_records(self, records: Records) -> None:
        super()._check_records(records)
        if self._fuses:
            records.check_text(f'{type(self).__name__}(zero_shot="fuse")', 'use images alone (zero_shot="none")')
