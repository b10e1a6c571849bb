"""Layouts: readers of the data sets as they are published; `READERS` has them by the name of the layout.

`data.check`, `bench` and `commands` may import it. It never downloads, never unpacks, and reads labels but no image.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hycal.data.catalog import find_dataset
from hycal.data.layouts import arrays, files
from hycal.data.layouts.files import find_split_file, read_split_file
from hycal.data.layouts.lookup import Reader, how_to_get
from hycal.data.samples import ImageSet
from hycal.errors import HyCalError

READERS: Mapping[str, Reader] = {**files.LAYOUTS, **arrays.LAYOUTS}


def read_dataset(name: str, root: str | os.PathLike[str]) -> ImageSet:
    """Return the data set `name`, whose files are somewhere below `root`.

    CoOp's split is used where its file is below `root`, as in the paper; else the split of the publisher.
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


__all__ = ["READERS", "read_dataset"]
