"""Getting a published data set: download, verify, unpack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hycal.data.archives import is_archive, unpack
from hycal.data.catalog import DataSetSpec, Download
from hycal.data.download import Watch, download
from hycal.errors import HyCalError


def fetch(spec: DataSetSpec, folder: Path, *, say: Callable[[str], None], watch: Watch | None = None) -> None:
    """Get every file of `spec` into `folder` and unpack the archives there.

    Parameters
    ----------
    spec : DataSetSpec
    folder : Path
    say : callable
        Called with one line for each step.
    watch : callable, optional
        Called with the bytes so far and the total of the current download.
    """
    if not spec.files:
        raise HyCalError(
            f"{spec.title} is no longer published at an address that can be fetched. Get it by hand, starting "
            f"from {spec.home}, and check it with `hycal data check {spec.name} --root {folder}`."
        )
    for item in spec.files:
        mark = folder / f".{item.filename}.unpacked"
        if mark.exists():
            say(f"{item.filename} was fetched and unpacked before; delete {mark} to do it again")
            continue
        say(item.url)
        path = download(item, folder, watch=watch)
        size = f"{path.stat().st_size:,} bytes"
        if item.checksum is None:
            say(f"{path}: {size}; its publisher states no checksum, so it cannot be verified")
        else:
            say(f"{path}: {size}, {item.checksum[0]} verified")
        if is_archive(path.name):
            count = _unpack(item, path, folder)
            mark.touch()  # last: a run that is killed before unpacks again
            say(f"{path}: {count:,} files unpacked; the archive itself is no longer needed")


def _unpack(item: Download, path: Path, folder: Path) -> int:
    count = unpack(path, folder)
    if item.inside:
        inner = folder / item.inside
        count += unpack(inner, inner.parent)
    return count
