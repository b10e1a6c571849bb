"""Getting a published data set: download, verify, unpack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hycal.data.catalog import DataSetSpec, Download
from hycal.data.download import Watch, download
from hycal.data.unpacking import is_archive, unpack
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
            f"{spec.title} is no longer published at an address that can be fetched. Get it by hand, "
            "starting "
            f"from {spec.home}, and check it with `hycal data check {spec.name} --root {folder}`."
        )
    for item in spec.files:
        say(f"{item.url}")
        path = download(item, folder, watch=watch)
        size = f"{path.stat().st_size:,} bytes"
        if item.checksum is None:
            say(f"{path}: {size}; its publisher states no checksum, so it cannot be verified")
        else:
            say(f"{path}: {size}, {item.checksum[0]} verified")
        _unpack_once(item, path, folder, say)


def _unpack_once(item: Download, path: Path, folder: Path, say: Callable[[str], None]) -> None:
    """Unpack, unless an earlier run did and finished: the mark is written last."""
    mark = path.with_name(f".{path.name}.unpacked")
    if not is_archive(path.name) or mark.exists():
        return
    count = unpack(path, folder)
    if item.inside:
        count += unpack(folder / item.inside, (folder / item.inside).parent)
    mark.touch()
    say(f"{path}: {count:,} files unpacked; the archive itself is no longer needed")
