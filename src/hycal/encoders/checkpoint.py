"""A published checkpoint as named tensors and a few numbers, from which graphs are built.

The tensors have the names of CLIP in transformers, whatever the model and the library that wrote them. What a model
does not have, for example a class token or a text tower, is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hycal.errors import HyCalError
from hycal.validation import Floats

Activation = Literal["quick_gelu", "gelu", "gelu_pytorch_tanh"]
Tensors = dict[str, Floats]
_ACTIVATIONS: Mapping[str, Activation] = {name: name for name in ("quick_gelu", "gelu", "gelu_pytorch_tanh")}


@dataclass(frozen=True)
class TowerShape:
    """Heads, layers, activation and layer-norm epsilon of one tower."""

    heads: int
    layers: int
    activation: Activation
    epsilon: float = 1e-5


@dataclass(frozen=True)
class TextShape:
    """What a text tower is beside its transformer."""

    tower: TowerShape
    context: int  # number of tokens of a text, with its padding
    attention: Literal["causal", "full"] = "causal"
    pooling: Literal["end", "last"] = "end"  # the token that is read: the first end token, or the last of the row
    padding: str = "<|endoftext|>"  # the token that fills a row
    case: Literal["kept", "lower"] = "kept"  # what happens to capital letters before the tokenizer sees them


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The image tower of a model, and its text tower if it has one."""

    image: TowerShape
    image_size: int
    text: TextShape | None
    tensors: Tensors


def activation(name: str) -> Activation:
    """Return the activation `name`, or raise an error that lists the known ones."""
    if name not in _ACTIVATIONS:
        raise HyCalError(f"The checkpoint uses the activation {name!r}; expected one of {sorted(_ACTIVATIONS)}.")
    return _ACTIVATIONS[name]


def split_in_three(prefix: str, leaf: str, value: Floats) -> Tensors:
    """Return the query, key and value projections that torch stores as one tensor."""
    return {f"{prefix}.{letter}_proj.{leaf}": part for letter, part in zip("qkv", np.split(value, 3), strict=True)}


def count_layers(tensors: Mapping[str, Any], prefix: str) -> int:
    """Return how many numbered layers have tensors below `prefix`."""
    return len({name.removeprefix(prefix).partition(".")[0] for name in tensors if name.startswith(prefix)})
