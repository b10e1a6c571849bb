"""Layouts: readers of the data sets as they are published; `READERS` has them by the name of the layout.

`data.check`, `bench` and `commands` may import it. It never downloads, never unpacks, and reads labels but no image.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hycal.data.catalog import DataSetSpec, find_dataset
from hycal.data.layouts import arrays, files
from hycal.data.layouts.arrays import edition_files
from hycal.data.layouts.files import find_split_file, read_split_file
from hycal.data.layouts.lookup import Reader, dataset_folder, fetch_command, how_to_get
from hycal.data.samples import ImageSet
from hycal.errors import HyCalError

READERS: Mapping[str, Reader] = {**files.LAYOUTS, **arrays.LAYOUTS}


def read_dataset(name: str, root: str | os.PathLike[str]) -> ImageSet:
    """Return the data set `name`, whose files are somewhere below `root`.

    CoOp's split is used where its file is below `root`, as in the paper; else the split of the publisher.

    Examples
    --------
    >>> import tempfile
    >>> from hycal import HyCalError
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     try:
    ...         read_dataset("eurosat", empty)
    ...     except HyCalError as error:
    ...         print("hycal data fetch" in str(error))
    True
    """
    spec = find_dataset(name)
    base = Path(root)
    if not base.is_dir():
        raise HyCalError(
            f"The folder {base} does not exist; expected the files of {spec.title}. "
            f"Check the path; {how_to_get(spec, base)}."
        )
    if find_split_file(spec, base) is not None:
        return read_split_file(spec, base)
    return READERS[spec.layout](spec, base)


def unlike_paper(spec: DataSetSpec, root: Path) -> str:
    """Return which file of the paper the copy below `root` lacks, and how to get it; "" if it lacks none.

    `read_dataset` reads such a copy, with other images or under another split than the paper's.
    """
    if spec.split_file and find_split_file(spec, root) is None:
        return (
            f"{spec.title}: there is no {spec.split_file} below {root}; the paper uses this split, CoOp's. Save it "
            f"there from {spec.split_url}, or run {fetch_command(spec, root)}"
        )
    if spec.edition and not edition_files(root, spec.edition):
        return (
            f"{spec.title}: there is no {spec.edition} below {root}; the paper uses this edition, and others have "
            f"smaller images. To get it, run {fetch_command(spec, root)}"
        )
    return ""


__all__ = ["READERS", "dataset_folder", "read_dataset", "unlike_paper"]
