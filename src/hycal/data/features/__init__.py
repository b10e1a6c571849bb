"""Features that any tool made, as embedded domains: .npz, Parquet, Arrow, safetensors, torch, saved `datasets`.

`hycal.datasets` and `bench` use it; it uses `storage` and the samples of `data`.
It never executes anything that a file holds, and never makes features itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from hycal.data.embedded import EmbeddedDomain, domain_of
from hycal.data.features.assembly import arrays_of
from hycal.data.features.columns import Array, Piece, parse_choice, pieces_of
from hycal.data.features.sources import Source, find_sources
from hycal.errors import HyCalError

_EXTRAS = ("class_names", "text", "space", "examples", "images")  # of a file with arrays by split


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
