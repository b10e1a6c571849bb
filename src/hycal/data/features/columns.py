"""What a file of features holds, by column, and which column is which.

Tools name the same things differently. A column is found by one of its usual names, in any case: `features`, `x`,
`embeddings` and so on. Two layouts are known:

    one table    features, labels, and perhaps split and domain, of equal length
    by split     train_x, train_y, test_x, test_y, in any of these orders: train_features, features_train, X_train
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.data.samples import Split, split_of
from hycal.errors import HyCalError

FEATURES, LABELS, SPLIT, DOMAIN = "features", "labels", "split", "domain"
#: The usual names of each part, the first of which is also the name that `--columns` calls it by.
USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    FEATURES: (
        *("features", "feature", "embeddings", "embedding", "x", "rows", "vectors", "vector", "feats"),
        *("image_features", "image_embeddings", "image_embeds", "image_embedding", "emb"),
    ),
    LABELS: ("labels", "label", "y", "targets", "target", "class", "class_name", "category"),
    SPLIT: ("split", "splits"),
    DOMAIN: ("domain", "domains"),
}
_BETWEEN = r"[_./ -]"
_SPLIT_FIRST = re.compile(rf"(?P<split>[a-z]+){_BETWEEN}(?P<part>.+)")
_SPLIT_LAST = re.compile(rf"(?P<part>.+){_BETWEEN}(?P<split>[a-z]+)")

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """What a file holds."""

    arrays: Mapping[str, Array]
    # For columns that hold places in a list of names, that list.
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of one split and domain, "" where the file does not say; None where a part is missing.

    `names` is the list that the labels are places in, () where the labels are the classes themselves.
    """

    x: Array | None
    y: Array | None
    names: tuple[str, ...] = ()
    split: Split = ""
    domain: str = ""


def part_of(name: str) -> str:
    """Return which part of a table a column of this name usually is, or "".

    >>> part_of("Image_Features"), part_of("target"), part_of("caption")
    ('features', 'labels', '')
    """
    return next((part for part, usual in USUAL_NAMES.items() if name.lower() in usual), "")


def split_part_of(name: str) -> tuple[Split, str]:
    """Return the split and the part that an array of this name usually is, "" for neither.

    >>> split_part_of("train_x"), split_part_of("features_test"), split_part_of("class_names")
    (('train', 'features'), ('test', 'features'), ('', ''))
    """
    for pattern in (_SPLIT_FIRST, _SPLIT_LAST):
        if (match := pattern.fullmatch(name.lower())) and (split := split_of(match["split"])):
            return split, part_of(match["part"])
    return "", ""


def parse_choice(text: str) -> dict[str, str]:
    """Return which column is which part, from words such as "features=vec labels=species".

    >>> parse_choice("features=vec labels=species")
    {'features': 'vec', 'labels': 'species'}
    """
    chosen = {}
    for word in text.split():
        part, equals, name = word.partition("=")
        if part not in USUAL_NAMES or not equals or not name:
            raise HyCalError(
                f"--columns has {word!r}; expected PART=COLUMN with a part of {', '.join(USUAL_NAMES)}, such as "
                "'features=vec labels=species'."
            )
        chosen[part] = name
    return chosen


def pieces_of(columns: Columns, chosen: Mapping[str, str], where: str) -> list[Piece]:
    """Return the rows of a file by split and domain; `chosen` names columns of parts, as `parse_choice` does."""
    by_split: dict[Split, dict[str, str]] = {}
    for name in columns.arrays:
        split, part = split_part_of(name)
        if part in (FEATURES, LABELS):
            by_split.setdefault(split, {}).setdefault(part, name)
    if not chosen and any(FEATURES in parts for parts in by_split.values()):
        return [_piece(columns, parts.get(FEATURES), parts.get(LABELS), split) for split, parts in by_split.items()]
    return _pieces_of_table(columns, _parts_of_table(columns, chosen, where), where)


def _piece(columns: Columns, x: str | None, y: str | None, split: Split) -> Piece:
    arrays = columns.arrays
    return Piece(arrays.get(x or ""), arrays.get(y or ""), columns.names.get(y or "", ()), split)


def _parts_of_table(columns: Columns, chosen: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the column of each part of one table; the features may have any name, if they are the only matrix."""
    usual = {part: name for name in reversed(list(columns.arrays)) if (part := part_of(name))}
    found = {**usual, **chosen}
    matrices = [name for name, array in columns.arrays.items() if array.ndim == 2]
    if FEATURES not in found and len(matrices) == 1:
        found[FEATURES] = matrices[0]
    for part in (FEATURES, LABELS, *chosen):
        if found.get(part) not in columns.arrays:
            listed = ", ".join(map(repr, columns.arrays)) or "nothing"
            lacking = f"no column {found[part]!r}" if part in found else f"no column that is known as {part}"
            raise HyCalError(
                f"{where} has {lacking}; it has {listed}. Say which it is: --columns '{part}=NAME'; usual names are "
                f"{', '.join(USUAL_NAMES[part][:5])}."
            )
    return found


def _pieces_of_table(columns: Columns, parts: Mapping[str, str], where: str) -> list[Piece]:
    x, y = columns.arrays[parts[FEATURES]], columns.arrays[parts[LABELS]]
    names = columns.names.get(parts[LABELS], ())
    rows = len(x) if x.ndim else 0
    for part, name in parts.items():
        if part != FEATURES and columns.arrays[name].shape != (rows,):
            raise HyCalError(
                f"{where}: {name!r} has shape {columns.arrays[name].shape}; expected ({rows},), one value for each "
                f"row of {parts[FEATURES]!r}."
            )
    unlabelled = y == "" if y.dtype.kind == "U" else np.zeros(rows, dtype=np.bool_)
    try:
        splits, split_names = _coded(columns, parts.get(SPLIT), rows)
        domains, domain_names = _coded(columns, parts.get(DOMAIN), rows)
    except ValueError as error:
        raise HyCalError(f"{where} has no sound split or domain: {error}. Make it again.") from None
    known = [_known_split(name, where) for name in split_names]
    group = domains * len(known) + splits
    rows_of = np.argsort(group, kind="stable")
    rows_of = rows_of[~unlabelled[rows_of]]
    parted = np.split(rows_of, np.flatnonzero(np.diff(group[rows_of])) + 1) if len(rows_of) else []
    return [Piece(x[mine], y[mine], names, known[splits[mine[0]]], domain_names[domains[mine[0]]]) for mine in parted]


def _coded(columns: Columns, name: str | None, rows: int) -> tuple[Array, tuple[str, ...]]:
    """Return the places of a column's values in the list of its different values, and that list."""
    if name is None:
        return np.zeros(rows, dtype=np.intp), ("",)
    if name in columns.names:
        return check_places(columns.arrays[name], columns.names[name]), columns.names[name]
    values, places = np.unique(columns.arrays[name], return_inverse=True)
    return places, tuple(str(value) for value in values)


def join_coded(parts: Sequence[tuple[Array, tuple[str, ...]]]) -> tuple[Array, tuple[str, ...]]:
    """Return the rows of several files in one array, and the list of names that they are places in.

    >>> join_coded([(np.array([0, 1]), ("owl", "tit")), (np.array([0]), ("emu",))])
    (array([1, 2, 0]), ('emu', 'owl', 'tit'))
    """
    lists = [names for _, names in parts]
    if all(names == lists[0] for names in lists):
        return np.concatenate([array for array, _ in parts]), lists[0]
    if not all(lists):
        raise ValueError("its files have names in a column that others have numbers in")
    names = sorted({name for one in lists for name in one})
    place = {name: number for number, name in enumerate(names)}
    joined = [np.array([place[name] for name in own], dtype=np.intp)[check_places(array, own)] for array, own in parts]
    return np.concatenate(joined), tuple(names)


def check_places(values: Array, names: Sequence[str]) -> Array:
    """Return numbers that are places in a list of names; a file may claim a list that its numbers do not fit."""
    if len(values) and (values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= len(names)):
        raise ValueError(
            f"it goes from {values.min()} to {values.max()}; expected places in a list of {len(names)} names"
        )
    return values


def _known_split(name: str, where: str) -> Split:
    split = split_of(name)
    if split is None:
        raise HyCalError(f"{where} has the split {name!r}; expected train, test or val. Rename it.")
    return split
