"""Which files hold the features of which domain and split, and the reader of each format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hycal.data.features import arrow, tensors
from hycal.data.features.columns import Columns, part_of
from hycal.data.samples import Split, split_of
from hycal.errors import HyCalError, MissingExtraError
from hycal.storage.npz import load_arrays
from hycal.validation import normal_name

_SHARD = re.compile(r"-\d{1,6}-of-\d{1,6}$")
_SPLIT_LAST = re.compile(r"(?P<name>.+)[-_. ](?P<split>[A-Za-z]+)")
_SPLIT_FIRST = re.compile(r"(?P<split>[A-Za-z]+)[-_. ](?P<name>.+)")
_DEPTH = 3  # of folders in folders
_NO_NAME = ("data", "features", "embeddings")  # folders that say nothing of what is in them

Reader = Callable[[Path, arrow.Wanted], Columns]
#: The reader of each format, by the suffix of its files; a folder that `datasets` saved has none.
READERS: Mapping[str, Reader] = {
    ".npz": lambda path, wanted: Columns(load_arrays(path)),
    ".parquet": arrow.read_parquet,
    ".arrow": arrow.read_arrow,
    ".safetensors": lambda path, wanted: tensors.read_safetensors(path),
    ".pt": lambda path, wanted: tensors.read_torch(path),
    ".pth": lambda path, wanted: tensors.read_torch(path),
    "": arrow.read_saved_dataset,
}
FORMATS = ", ".join(suffix for suffix in READERS if suffix)


@dataclass(frozen=True)
class Source:
    """A file, or a folder that `datasets` saved, with the domain and split that its name tells."""

    path: Path
    domain: str
    split: Split = ""
    shard: bool = False

    def read(self, chosen: Mapping[str, str]) -> Columns:
        """Return its columns; `chosen` names columns that have other names than the usual."""
        wanted = set(chosen.values())
        try:
            return READERS[self.path.suffix.lower() if self.path.is_file() else ""](
                self.path, lambda name: bool(part_of(name)) or name in wanted
            )
        except HyCalError as error:
            if isinstance(error, MissingExtraError):
                raise
            raise HyCalError(f"{self.path}: {error}") from None
        except Exception as error:  # each library has errors of its own for a damaged file
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise HyCalError(f"{self.path} does not hold an embedded domain: {reason}. Make it again.") from None


def find_sources(paths: Sequence[Path], names: Collection[str] = ()) -> dict[str, list[Source]]:
    """Return the sources of each domain in files and folders, in the order of `paths` and of names.

    A file that is called as one of `names` is that domain, even if its name ends in that of a split.
    """
    found: dict[str, list[Source]] = {}
    for path in paths:
        listed = [
            Source(source.path, own) if (own := normal_name(source.path.stem)) in names else source
            for source in _sources(path, 0)
        ]
        if not listed:
            raise HyCalError(
                f"{path} has no features; expected files that end in {FORMATS}, or a folder that the library "
                "`datasets` saved."
            )
        for source in listed:
            found.setdefault(source.domain, []).append(source)
    for domain, sources in found.items():
        single = [source.split for source in sources if not source.shard]
        if len(set(single)) < len(single):
            both = ", ".join(str(source.path) for source in sources)
            raise HyCalError(f"The domain {domain!r} is in several files: {both}. Pass or keep one of them.")
    return found


def _sources(path: Path, depth: int) -> Iterator[Source]:
    """Yield the sources in a file or folder; other files of a folder are left alone."""
    if not path.exists():
        raise HyCalError(f"There is no {path}; expected a file or folder of features.")
    if path.is_dir():
        yield from _in_folder(path, depth)
    elif path.suffix.lower() in READERS and path.suffix:
        yield _named(path)
    elif depth == 0:
        raise HyCalError(f"{path} is of no format that is known; expected a name that ends in {FORMATS}.")


def _in_folder(folder: Path, depth: int) -> Iterator[Source]:
    if (folder / arrow.SPLITS).is_file():
        for split in arrow.split_folders(folder):
            if (known := split_of(split)) is not None:
                yield Source(folder / split, _folder_name(folder), known)
    elif (folder / arrow.STATE).is_file():
        yield Source(folder, _folder_name(folder))
    elif depth < _DEPTH:
        for path in sorted(folder.iterdir()):
            if not path.name.startswith("."):
                yield from _sources(path, depth + 1)


def _named(path: Path) -> Source:
    """Return the source of a file: `birds.npz`, `birds-train.npz`, `birds/train.npz`, `train-00000-of-00002.npz`."""
    stem = _SHARD.sub("", path.stem)
    shard = stem != path.stem
    if split := split_of(stem):
        return Source(path, _folder_name(path.parent), split, shard)
    for pattern in (_SPLIT_LAST, _SPLIT_FIRST):
        if (match := pattern.fullmatch(stem)) and (split := split_of(match["split"])):
            return Source(path, normal_name(match["name"]), split, shard)
    return Source(path, normal_name(stem), "", shard)


def _folder_name(folder: Path) -> str:
    folder = folder.resolve()
    named = folder.parent if folder.name.lower() in _NO_NAME and folder.parent.name else folder
    return normal_name(named.name or "features")
