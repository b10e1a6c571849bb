"""Features that any tool made, as embedded domains: .npz, Parquet, Arrow, safetensors, torch, saved `datasets`.

`hycal.datasets` and `bench` use it; it uses `storage` and the samples of `data`.
It never executes anything that a file holds, and never makes features itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.data.embedded import EmbeddedDomain, domain_of
from hycal.data.features.columns import Array, Piece, check_places, join_coded, parse_choice, pieces_of
from hycal.data.features.sources import Source, find_sources
from hycal.data.samples import Split
from hycal.errors import HyCalError

_EXTRAS = ("class_names", "text", "space", "examples", "images")  # of a file with arrays by split

_HELD_OUT = 3  # one in so many is tested on, where a file has no split
_LONGEST_NAME = 1000


def load_features(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    columns: str = "",
    only: Iterable[str] | None = None,
) -> dict[str, EmbeddedDomain]:
    """Return the embedded domains in files or folders, by name.

    Parameters
    ----------
    paths : path, or sequence of paths
        A file of one domain (`birds.npz`), of one split of it (`birds-train.parquet`, `birds/test.safetensors`), a
        folder that `datasets` saved, or a folder of these.
    columns : str, default=""
        Which columns are which, where they have other names than the usual: "features=vec labels=species split=fold
        domain=source".
    only : iterable of str, optional
        Names of the domains to return; files of other names are read only if one of these is in none of its own.

    Notes
    -----
    Where there is no split, every third image of each class, drawn at random but always the same, is for testing. A
    validation split is for testing if there is no other.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/birds.npz", features=rng.normal(size=(6, 4)), labels=["owl", "tit"] * 3)
    ...     birds = load_features(folder)["birds"]
    >>> birds.class_names, len(birds.train_y), len(birds.test_y)
    (('owl', 'tit'), 4, 2)
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    chosen = parse_choice(columns)
    wanted = None if only is None else list(only)
    sources = find_sources([Path(path).expanduser() for path in listed], wanted or ())
    first = sources if wanted is None else {name: sources[name] for name in wanted if name in sources}
    domains = _read(first, chosen)
    if wanted is None or set(wanted) <= set(domains):
        return domains if wanted is None else {name: domains[name] for name in wanted}
    domains |= _read({name: sources[name] for name in sources if name not in first}, chosen)
    missing = [name for name in wanted if name not in domains]
    if missing:
        raise HyCalError(
            f"There are no features of {missing[0]!r} in {', '.join(map(str, listed))}; expected "
            f"{missing[0]}.npz or another file of that name. Found: {', '.join(domains)}."
        )
    return {name: domains[name] for name in wanted}


def _read(sources: Mapping[str, Sequence[Source]], chosen: Mapping[str, str]) -> dict[str, EmbeddedDomain]:
    """Return the domains of some sources, under the names in their columns, or else of their files."""
    domains: dict[str, EmbeddedDomain] = {}
    for name, files in sources.items():
        pieces: dict[str, list[Piece]] = {}
        extras: dict[str, Array] = {}
        for source in files:
            content = source.read(chosen)
            _add_extras(extras, content.arrays, str(source.path))
            for piece in pieces_of(content, chosen, str(source.path)):
                own = Piece(piece.x, piece.y, piece.names, piece.split or source.split, piece.domain or name)
                pieces.setdefault(own.domain, []).append(own)
        where = ", ".join(str(source.path) for source in files)
        if len(pieces) > 1 and "class_names" in extras:  # of all domains together, so that no one has all of them
            named = tuple(map(str, np.ravel(extras.pop("class_names")).tolist()))
            pieces = {key: [replace(part, names=named) for part in parts] for key, parts in pieces.items()}
        if not pieces:
            raise HyCalError(f"{where} has no labelled rows; expected features with a label each.")
        for domain, parts in pieces.items():
            if domain in domains:
                raise HyCalError(f"{where}: the domain {domain!r} is in another file, too. Pass or keep one of them.")
            domains[domain] = domain_of(domain, arrays_of(parts, extras, where), where)
    return domains


def _add_extras(extras: dict[str, Array], arrays: Mapping[str, Array], where: str) -> None:
    """Add what a file says of its whole domain; the files of one domain must say the same."""
    found = {key: arrays[key] for key in _EXTRAS if key in arrays}
    if "fingerprint" in arrays:  # what `hycal embed` calls the space
        found["space"] = arrays["fingerprint"]
    for key, value in found.items():
        if key in extras and not np.array_equal(extras[key], value):
            raise HyCalError(f"{where}: its {key} are not those of the other files of this domain. Make them again.")
        extras[key] = value


def arrays_of(pieces: Sequence[Piece], extras: Mapping[str, Array], where: str) -> dict[str, Any]:
    """Return the arrays of one domain: train_x, train_y, test_x, test_y, class_names, and what else is known."""
    by_split: dict[Split, list[Piece]] = {}
    for piece in pieces:
        by_split.setdefault(piece.split, []).append(piece)
    joined = {split: _joined(parts, where) for split, parts in by_split.items()}
    if "test" not in joined and "val" in joined:
        joined["test"] = joined["val"]
    if "" in joined and not {"train", "test"} & set(joined):
        joined["train"], joined["test"] = _held_out(joined[""], where)
    parts = [joined.get(split, Piece(None, None)) for split in ("train", "test")]
    labels, names = _labels(parts, extras.get("class_names"), where)
    return {
        **extras,
        "class_names": names,
        **{f"{split}_x": piece.x for split, piece in zip(("train", "test"), parts, strict=True)},
        **{f"{split}_y": y for split, y in zip(("train", "test"), labels, strict=True)},
    }


def _joined(pieces: Sequence[Piece], where: str) -> Piece:
    """Return the rows of several files of one split and domain, one below the other."""
    if len(pieces) == 1:
        return pieces[0]
    known = [(piece.x, (piece.y, piece.names)) for piece in pieces if piece.x is not None and piece.y is not None]
    try:
        if len(known) < len(pieces):
            raise ValueError("one of its files lacks features or labels")
        x, (y, names) = np.concatenate([x for x, _ in known]), join_coded([y for _, y in known])
    except ValueError as error:
        raise HyCalError(f"{where}: the files of one split do not fit together: {error}. Make them again.") from None
    return Piece(x, y, names)


def _held_out(piece: Piece, where: str) -> tuple[Piece, Piece]:
    """Return the rows to learn from and the rows to test on, of a domain that has no split."""
    x, y = piece.x, piece.y
    if x is None or y is None or y.ndim != 1 or x.shape[:1] != y.shape:
        raise HyCalError(f"{where}: features and labels are not of equal length; expected one label for each row.")
    rows, test = np.random.default_rng(0).permutation(len(y)), np.zeros(len(y), dtype=np.bool_)
    _, label, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    order = np.argsort(label, kind="stable")
    place = np.arange(len(y)) - (np.cumsum(counts) - counts)[label[order]]  # of each row in its class
    test[rows[order]] = place < (counts // _HELD_OUT)[label[order]]
    return Piece(x[~test], y[~test], piece.names), Piece(x[test], y[test], piece.names)


def _labels(pieces: Sequence[Piece], class_names: Array | None, where: str) -> tuple[list[Array | None], Array]:
    """Return the labels of each piece as places in the list of classes, and that list.

    A file that lists its classes under `class_names` is taken at its word. Else the classes are those that occur.
    """
    if class_names is not None:
        return [piece.y for piece in pieces], class_names
    coded = [None if piece.y is None or piece.y.ndim != 1 else _coded(piece, where) for piece in pieces]
    found = dict.fromkeys(word for part in coded if part for word in part[0])
    lists = {piece.names for piece in pieces if piece.y is not None}
    if lists == {()} and all(piece.y is None or piece.y.dtype.kind != "U" for piece in pieces):
        names = sorted(found, key=int)
    else:
        names = [name for name in dict.fromkeys(lists.pop()) if name in found] if len(lists) == 1 else []
        names = names or sorted(found)
    place = {name: number for number, name in enumerate(names)}
    labels = [
        piece.y if part is None else np.array([place[word] for word in part[0]], dtype=np.int64)[part[1]]
        for piece, part in zip(pieces, coded, strict=True)
    ]
    return labels, np.array(names, dtype=np.str_)


def _coded(piece: Piece, where: str) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the names of the classes that occur, and the place of each row in them; numbers are their own names."""
    assert piece.y is not None
    values, places = np.unique(piece.y, return_inverse=True)
    if piece.names:
        try:
            check_places(values, piece.names)
        except ValueError as error:
            raise HyCalError(f"{where} has no sound labels: {error}. Make it again.") from None
        words = [piece.names[value] for value in values.tolist()]
    elif values.dtype.kind == "U":
        words = values.tolist()
    elif values.dtype.kind in "iu" or (
        values.dtype.kind == "f" and np.isfinite(values).all() and np.array_equal(values, np.round(values))
    ):
        words = [str(int(value)) for value in values.tolist()]
    else:
        raise HyCalError(f"{where}: labels are of type {values.dtype}; expected whole numbers or names.")
    if longest := next((word for word in words if len(word) > _LONGEST_NAME), ""):
        raise HyCalError(f"{where}: the class {longest[:20]!r}... has {len(longest):,} characters; expected a name.")
    return words, places
