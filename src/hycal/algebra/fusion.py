"""Three ways to fuse a unit image embedding v with the unit text embedding t of a class.

A fusion defines z = fuse(v, t), and how an inner product with z splits into a product with v and a constant:

    fuse(v, t).x = (v.image_part(x) + t.text_part(x)) / length = [v, 1].extended(x, t) / length

The split lets a batch of queries meet all classes in one matrix product.
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
    """One way to fuse."""

    needs_text: bool
    fuse: Callable[[Doubles, Doubles], Doubles]  # (v, t) -> z, over the last axis
    image_part: Callable[[Doubles], Doubles]  # x -> the part of x that is multiplied with v
    text_part: Callable[[Doubles], Doubles]  # x -> the part of x that is multiplied with t
    fixed_length: float | None  # the length by which a fused pair is divided; None where the length is |v + t|
    parts: int = 1  # the width of z in units of the width of v

    def width(self, d: int) -> int:
        """Return the width of z for embeddings of width d."""
        return self.parts * d

    def constant(self, x: Doubles, t: Doubles) -> Doubles:
        """Return t.text_part(x): the part of the inner product that does not depend on v."""
        return np.sum(self.text_part(x) * t, axis=-1)

    def extended(self, x: Doubles, t: Doubles) -> Doubles:
        """Return [image_part(x), constant(x, t)], the vector that is multiplied with [v, 1]."""
        return np.concatenate([self.image_part(x), self.constant(x, t)[..., None]], axis=-1)


def _half(x: Doubles) -> int:
    return x.shape[-1] // 2


def root_length(squares: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turn |v + t|^2 into |v + t| in place; the least result is the root of `SHORTEST`."""
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
        parts=2,
    ),
    "image": Fusion(
        needs_text=False,
        fuse=lambda v, t: v,
        image_part=lambda x: x,
        text_part=np.zeros_like,
        fixed_length=1.0,
    ),
}
