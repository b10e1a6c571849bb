"""Three ways to pair a unit image embedding v with the unit text embedding t of a class.

Each fusion says how to fuse, and how an inner product with a fused query splits into one product with v alone:
<fuse(v, t), x> = (v . image_part(x) + constant(x, t)) / length. That split is what lets a whole batch of queries meet
every class in one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

SHORTEST = 1e-12  # squared length below which v + t has no direction (v = -t)


@dataclass(frozen=True)
class Fusion:
    """One way to fuse, as data.

    Parameters
    ----------
    needs_text : bool
    fuse : callable
        (v, t) -> z, over the last axis.
    image_part : callable
        x -> the part of x that meets v.
    text_part : callable
        x -> the part of x that meets t.
    fixed_length : float or None
        What the fused pair is divided by; None where that depends on the pair and is |v + t|.
    """

    needs_text: bool
    fuse: Callable[[Doubles, Doubles], Doubles]
    image_part: Callable[[Doubles], Doubles]
    text_part: Callable[[Doubles], Doubles]
    fixed_length: float | None

    def constant(self, x: Doubles, t: Doubles) -> Doubles:
        """Return the part of the inner product that does not depend on v."""
        total: Doubles = np.sum(self.text_part(x) * t, axis=-1)
        return total


def _half(x: Doubles) -> int:
    return x.shape[-1] // 2


def root_length(squares: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turn |v + t|^2 = 2 v . t + 2 of unit vectors into |v + t|, in place; one without direction gets a tiny length."""
    np.clip(squares, SHORTEST, 4.0, out=squares)
    return np.sqrt(squares, out=squares)


def pair_length(vt: Doubles) -> Doubles:
    """Return |v + t| of unit vectors from their inner product."""
    return root_length(2.0 * vt + 2.0)


def _fuse_sum(v: Doubles, t: Doubles) -> Doubles:
    return (v + t) / pair_length(np.sum(v * t, axis=-1, keepdims=True))


def _fuse_concat(v: Doubles, t: Doubles) -> Doubles:
    return np.concatenate([v, np.broadcast_to(t, v.shape)], axis=-1) / math.sqrt(2.0)


FUSIONS: Mapping[str, Fusion] = {
    "sum": Fusion(
        needs_text=True,
        fuse=_fuse_sum,
        image_part=lambda x: x,
        text_part=lambda x: x,
        fixed_length=None,
    ),
    "concat": Fusion(
        needs_text=True,
        fuse=_fuse_concat,
        image_part=lambda x: x[..., : _half(x)],
        text_part=lambda x: x[..., _half(x) :],
        fixed_length=math.sqrt(2.0),
    ),
    "image": Fusion(
        needs_text=False,
        fuse=lambda v, t: v,
        image_part=lambda x: x,
        text_part=np.zeros_like,
        fixed_length=1.0,
    ),
}
