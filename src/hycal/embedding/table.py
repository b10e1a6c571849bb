"""A table of embeddings in one .npz file: the rows, the origin of each row, and their encoder; and what it lacks."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.embedding.store import Skipped
from hycal.errors import HyCalError
from hycal.escaping import csv_line
from hycal.storage.atomic import TO_REPLACE, check_folder, check_replaceable, replacing, write_whole
from hycal.storage.npz import load_arrays
from hycal.validation import Floats

Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class EmbeddingTable:
    """Embeddings with their origin.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Unit float32 embeddings.
    files, labels, domains, splits : ndarray of shape (n,)
        For each row: its file relative to the folder, class, domain and split; "" where there is none.
    encoder, fingerprint : str
        The encoder and the space of the rows.

    Examples
    --------
    >>> names = np.array(["rose"])
    >>> table = EmbeddingTable(np.ones((1, 1), np.float32), names, names, names, names, "builtin", "0123")
    >>> table.labels
    array(['rose'], dtype='<U4')
    """

    rows: Floats
    files: Names
    labels: Names
    domains: Names
    splits: Names
    encoder: str
    fingerprint: str


_COLUMNS = ("files", "labels", "domains", "splits")
_REPORT_HEAD = b"file,reason\r\n"


def write_table(path: str | os.PathLike[str], table: EmbeddingTable, *, force: bool = False) -> None:
    """Write `table` to `path`, and replace an old table in one step. Equal tables give equal bytes.

    `force` replaces a file that is not a table.

    Examples
    --------
    >>> from hycal.embedding import read_table
    >>> names = np.array(["rose"])
    >>> table = EmbeddingTable(np.ones((1, 1), np.float32), names, names, names, names, "builtin", "0123")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "flowers.npz", table)
    ...     read_table(Path(folder) / "flowers.npz", fingerprint="0123").encoder
    'builtin'
    """
    target = Path(path)
    _check_target(target, force)
    columns: dict[str, Any] = {name: getattr(table, name) for name in _COLUMNS}
    with replacing(target) as file:
        np.savez(
            file,
            rows=table.rows,
            encoder=np.array(table.encoder),
            fingerprint=np.array(table.fingerprint),
            **columns,
        )


def check_table_target(path: Path, *, force: bool = False) -> None:
    """Raise if `write_table` or `write_skipped` could not write beside `path`: before hours of work."""
    _check_target(path, force)
    check_replaceable(skipped_report(path), b"" if force else _REPORT_HEAD)
    try:
        tempfile.TemporaryFile(dir=path.absolute().parent).close()
    except OSError as error:
        raise HyCalError(
            f"Cannot write to the folder {path.parent}: {error.strerror}. Choose a folder that may be written."
        ) from None


def _check_target(path: Path, force: bool) -> None:
    check_folder(path)
    check_replaceable(path)
    if path.exists() and path.stat().st_size and not force and not is_table(path):
        raise HyCalError(f"{path} exists and is not a table of embeddings, so it is not replaced. {TO_REPLACE}")


def skipped_report(table: Path) -> Path:
    """Return the path of the report that lists the files missing in a table."""
    return table.with_name(f"{table.name}.skipped.csv")


def write_skipped(table: Path, skipped: Sequence[Skipped], *, force: bool = False) -> Path | None:
    """Write the report beside the table and return its path; if no file was skipped, remove an old report.

    `force` replaces or removes a file that is not such a report.
    """
    report, mark = skipped_report(table), b"" if force else _REPORT_HEAD
    if not skipped:
        check_replaceable(report, mark)
        report.unlink(missing_ok=True)
        return None
    rows = (csv_line((skip.name, skip.reason)) for skip in skipped)
    write_whole(report, _REPORT_HEAD + "".join(f"{row}\r\n" for row in rows).encode(), mark=mark)
    return report


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether the file at `path` is a table of embeddings, by the names of its arrays.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "other.npz", x=[1])
    ...     is_table(Path(folder) / "other.npz")
    False
    """
    try:
        with zipfile.ZipFile(path) as file:
            return {"rows.npy", "encoder.npy", "fingerprint.npy"} <= set(file.namelist())
    except Exception:  # zipfile raises errors of any type for a file that is not a zip
        return False


def read_table(path: str | os.PathLike[str], *, fingerprint: str | None = None) -> EmbeddingTable:
    """Return the table at `path`.

    Parameters
    ----------
    path : path
    fingerprint : str, optional
        The space of the caller; a table from another space is an error.

    Examples
    --------
    >>> from hycal import HyCalError
    >>> try:
    ...     read_table("missing.npz")
    ... except HyCalError as error:
    ...     print("missing.npz" in str(error))
    True
    """
    try:
        file = load_arrays(path)
        columns = {name: np.asarray(file[name], dtype=np.str_) for name in _COLUMNS}
        rows = np.asarray(file["rows"], dtype=np.float32)
        table = EmbeddingTable(rows, **columns, encoder=str(file["encoder"]), fingerprint=str(file["fingerprint"]))
    except (ValueError, TypeError, KeyError) as error:
        raise HyCalError(f"{path} is not a table of embeddings: {error}. Make one with `hycal embed`.") from None
    if rows.ndim != 2 or any(column.shape != (len(rows),) for column in columns.values()):
        raise HyCalError(f"{path} has columns of different lengths. Make it again with `hycal embed`.")
    if fingerprint is not None and table.fingerprint != fingerprint:
        raise HyCalError(
            f"{path} was made by encoder {table.encoder!r}, space {table.fingerprint!r}; expected space "
            f"{fingerprint!r}. Rows of two encoders cannot be compared: embed the images again with one of them. "
            "Two back ends of one encoder may have two spaces: `hycal embed --backend` chooses."
        )
    return table
