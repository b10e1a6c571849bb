"""Runs that share a table must share their inputs: a folder may hold runs of before, of other embeddings or shots."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from hycal.bench.cells import read_manifest
from hycal.errors import HyCalError

_TABLE = ("setting", "order", "protocol")
#: Entries of a manifest that are the same in all runs of a table, or in those of a seed or of a method.
#: The hash of the embeddings covers their text, the name of the setting its sampling.
_SAME = {
    "domains": _TABLE,
    "embeddings": _TABLE,
    "short": _TABLE,
    "sample_list": (*_TABLE, "seed"),
    "parameters": (*_TABLE, "method"),
}
_NAMED = 5  # files that a message lists


def check_agreement(paths: Iterable[Path]) -> None:
    """Raise an error that names the odd files, if runs of one table were made from different inputs.

    Versions may differ: a report of results of before is still a report.
    """
    manifests = {path: about for path in paths if (about := read_manifest(path)) is not None}
    for entry, among in _SAME.items():
        found: dict[tuple[object, ...], dict[str, list[Path]]] = {}
        for path, about in manifests.items():
            by_value = found.setdefault(tuple(about.get(name) for name in among), {})
            by_value.setdefault(json.dumps(about.get(entry), sort_keys=True), []).append(path)
        for by_value in found.values():
            if len(by_value) > 1:
                raise HyCalError(_disagreement(entry, list(by_value.values())))


def _disagreement(entry: str, agreeing: list[list[Path]]) -> str:
    usual = max(agreeing, key=len)
    odd = sorted(path for paths in agreeing if paths is not usual for path in paths)
    more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
    return (
        f"Runs of one table were made from different inputs ({entry}): {', '.join(map(str, odd[:_NAMED]))}{more} "
        f"unlike {usual[0]}. Delete those that are out of date and run again, or use a folder of its own for each."
    )
