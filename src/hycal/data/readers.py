"""Readers of a user's labelled images: folders of class folders, files of labels, .npz files of arrays.

`read_folder`, `read_csv`, `read_jsonl` and `read_npz` return image sets. `list_images` lists the images of any of them,
labelled or not; `manifests` has the files of labels. No image is read here.

| folder | domain | split | class |
|---|---|---|---|
| CLASS/* | name of the folder | | CLASS |
| SPLIT/CLASS/*, CLASS/SPLIT/* | name of the folder | SPLIT | CLASS |
| DOMAIN/CLASS/* | DOMAIN | | CLASS |
| SPLIT/DOMAIN/CLASS/*, DOMAIN/SPLIT/CLASS/*, DOMAIN/CLASS/SPLIT/* | DOMAIN | SPLIT | CLASS |

Folders below these belong to the class. A folder with files and folders is a class if half of its files or more lie in
it directly; else it is a domain.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hycal.data.annotations import SUFFIXES, ImageLabel
from hycal.data.annotations.rows import read_csv_labels, read_json_lines
from hycal.data.manifests import list_labelled
from hycal.data.samples import ImageSet, ListedImage, NamedSample, Sample, Split, from_names, split_of
from hycal.embedding.sources import ImageFile, ImageRow, walk
from hycal.errors import HyCalError
from hycal.storage.npz import load_arrays
from hycal.validation import normal_name

Folders: TypeAlias = tuple[str, ...]  # the names of the folders between a root and a file

_PREFIXES: tuple[tuple[str, Split], ...] = (("train_", "train"), ("val_", "val"), ("test_", "test"), ("", ""))


@dataclass(frozen=True)
class Place:
    """Domain, split and class of a file, from the folders above it; "" where the folders do not tell."""

    domain: str
    split: Split
    label: str


def place_of(folders: tuple[str, ...], *, root_name: str) -> Place:
    """Return the place of a file, from the names of the folders between the root and the file.

    >>> place_of(("cats",), root_name="pets")
    Place(domain='pets', split='', label='cats')
    >>> place_of(("digit", "test", "7"), root_name="xd8") == place_of(("test", "digit", "7"), root_name="xd8")
    True
    """
    return places_of({folders: 1}, root_name=root_name)[folders]


def places_of(files: Mapping[Folders, int], *, root_name: str) -> dict[Folders, Place]:
    """Return the place of the files in each folder below a root, given how many files each folder has."""
    root_name, found = normal_name(root_name), {folders: _without_split(folders) for folders in files}
    own: Counter[str] = Counter()
    for folders, (_, names) in found.items():
        if names:
            own[names[0]] += files[folders] if len(names) == 1 else -files[folders]

    def place(split: Split, names: Folders) -> Place:
        if len(names) < 2 or own[names[0]] >= 0:
            return Place(root_name, split, names[0] if names else "")
        return Place(names[0], split, names[1])

    return {folders: place(*parts) for folders, parts in found.items()}


def places_of_drop(files: Mapping[Folders, int]) -> dict[Folders, Place]:
    """Return the place of the files in each folder of a drop on the page, given how many files each has.

    The first name is the folder that was dropped, whose own place is unknown. With folders in it, it is a root, else a
    class. Splits that were dropped side by side have a root without a name, and so has a split that was dropped alone.
    """
    roots: dict[str, dict[Folders, int]] = defaultdict(dict)
    for folders, count in files.items():
        roots[folders[0] if folders else ""][folders] = count
    found: dict[Folders, Place] = {}
    for root, inside in roots.items():
        flat = all(len(folders) < 2 for folders in inside)
        cut = 0 if flat or (len(roots) > 1 and split_of(root)) else 1
        places = places_of(
            {folders[cut:]: count for folders, count in inside.items()},
            root_name="" if cut == 0 or split_of(root) else root,
        )
        found |= {folders: places[folders[cut:]] for folders in inside}
    return found


def _without_split(folders: Folders) -> tuple[Split, Folders]:
    """Return the first split among the first three folders, and the other folders; a folder alone is not a split."""
    names = tuple(map(normal_name, folders))
    for position, name in enumerate(names[:3]):
        split = split_of(name)
        if split and len(names) > 1:
            return split, names[:position] + names[position + 1 :]
    return "", names


def read_folder(root: str | os.PathLike[str]) -> dict[str, ImageSet]:
    """Return the image sets below `root`, by domain; a folder of class folders is one set with the name of the folder.

    A folder called train, val or test (or training, validation, ...) is a split; the table above says where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("rose", "tulip"):
    ...         (Path(folder) / "flower" / name).mkdir(parents=True)
    ...         Image.new("RGB", (8, 8)).save(Path(folder) / "flower" / name / "1.png")
    ...     {name: images.class_names for name, images in read_folder(folder).items()}
    {'flower': ('rose', 'tulip')}
    """
    base = Path(root)
    listed = list_images(base)
    found = _labelled_sets(listed)
    if not found:
        raise HyCalError(
            f"The folder {base} has {len(listed)} files but no class folders. Put the images of each class in "
            f"a folder named after the class: {base / 'cat' / '1.jpg'}."
        )
    return found


def read_csv(path: str | os.PathLike[str], *, outside: bool = False) -> dict[str, ImageSet]:
    """Return the image sets of a CSV manifest, by domain.

    The columns are `file`, relative to the manifest, `label`, and where wanted `split` and `domain`. Files outside the
    folder of the manifest are refused, unless `outside` allows them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest = Path(folder) / "pets.csv"
    ...     _ = manifest.write_text("file,label,split\\ncat/1.jpg,cat,train\\ndog/1.jpg,dog,test\\n")
    ...     pets = read_csv(manifest)["pets"]
    >>> [(pets.class_names[sample.label], sample.split) for sample in pets.samples]
    [('cat', 'train'), ('dog', 'test')]
    """
    return _sets(Path(path), outside, read_csv_labels)


def read_jsonl(path: str | os.PathLike[str], *, outside: bool = False) -> dict[str, ImageSet]:
    """Return the image sets of a JSONL manifest, by domain: one object per line, otherwise as `read_csv`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest = Path(folder) / "pets.jsonl"
    ...     _ = manifest.write_text('{"file": "cat/1.jpg", "label": "cat"}')
    ...     read_jsonl(manifest)["pets"].class_names
    ('cat',)
    """
    return _sets(Path(path), outside, read_json_lines)


def _sets(path: Path, outside: bool, read: Callable[[Path], list[ImageLabel]]) -> dict[str, ImageSet]:
    return _labelled_sets(list_labelled(path, outside=outside, read=read))


def _labelled_sets(images: Iterable[ListedImage]) -> dict[str, ImageSet]:
    found: dict[str, list[NamedSample]] = defaultdict(list)
    for image in images:
        if image.label:
            found[image.domain].append((image.source, image.label, image.split))
    return {domain: from_names(domain, entries) for domain, entries in sorted(found.items())}


def read_npz(path: str | os.PathLike[str]) -> ImageSet:
    """Return the images of an .npz: `images` and `labels`, or the same after train_, val_ and test_.

    Images are uint8 of shape (n, height, width) or (n, height, width, 3); labels are text, or positions in
    `class_names`, or without `class_names` any whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "pets.npz", images=np.zeros((2, 8, 8), np.uint8), labels=["cat", "dog"])
    ...     read_npz(Path(folder) / "pets.npz").class_names
    ('cat', 'dog')
    """
    source = Path(path)
    try:
        arrays = load_arrays(source)
    except ValueError as error:
        raise HyCalError(f"{source} is not a readable .npz of plain arrays: {error}.") from None
    parts = [(prefix, split) for prefix, split in _PREFIXES if f"{prefix}images" in arrays]
    if not parts or any(f"{prefix}labels" not in arrays for prefix, _ in parts):
        raise HyCalError(
            f"{source} has the arrays {sorted(arrays)}; expected images and labels, or train_images, "
            "train_labels, test_images and test_labels."
        )
    labels = {prefix: arrays[f"{prefix}labels"].reshape(-1) for prefix, _ in parts}
    names, positions = _classes(source, arrays.get("class_names"), labels)
    samples = []
    for prefix, split in parts:
        images = arrays[f"{prefix}images"]
        if len(images) != len(labels[prefix]):
            raise HyCalError(f"{source} has {len(images)} {prefix}images but {len(labels[prefix])} labels.")
        for index, label in enumerate(labels[prefix].tolist()):
            samples.append(Sample(ImageRow(images, index, f"{source.name}:{prefix}images"), positions[label], split))
    return ImageSet(source.stem, names, tuple(samples))


def _classes(
    source: Path, listed: np.ndarray | None, labels: dict[str, np.ndarray]
) -> tuple[tuple[str, ...], dict[str | int, int]]:
    """Return the class names, and the position in them of each label that occurs."""
    occurring = {label for part in labels.values() for label in part.tolist()}
    if len({isinstance(label, str) for label in occurring}) > 1:
        raise HyCalError(f"{source} labels one part by text and another by numbers; expected one kind in both.")
    values = sorted(occurring)
    if any(isinstance(value, float) for value in values):
        raise HyCalError(f"{source} has fractional labels, such as {values[0]}; expected text or whole numbers.")
    if listed is None:
        return tuple(str(value) for value in values), {value: at for at, value in enumerate(values)}
    names = tuple(str(name) for name in listed.tolist())
    known: dict[str | int, int] = {name: at for at, name in enumerate(names)}
    known |= {at: at for at in range(len(names))}
    strange = [value for value in values if value not in known]
    if strange:
        raise HyCalError(f"{source} has the label {strange[0]!r}, which is none of its {len(names)} class_names.")
    return names, {value: known[value] for value in values}


def list_images(
    source: str | os.PathLike[str], *, outside: bool = False, images: Path | None = None
) -> list[ListedImage]:
    """Return the images of a folder, with or without class folders, of a file of labels, or of an .npz.

    `images` is the folder of the images that a file of labels names, by default its own. `outside` allows it to name
    others.
    """
    path = Path(source)
    if path.is_file():
        return _list_file(path, outside, images)
    if images is not None:
        raise HyCalError(f"--images says where the images of a file of labels are, and {path} is not a file.")
    walked = walk(path)
    # A folder that cannot be opened is listed itself, in place of its images.
    folders = {
        file: relative.parts if file in walked.shut else relative.parts[:-1]
        for file, relative in ((file, file.relative_to(path)) for file in sorted((*walked.files, *walked.shut)))
    }
    if not folders:
        raise HyCalError(f"The folder {path} has no files in it. Expected images, in class folders or without.")
    places = places_of(Counter(folders.values()), root_name=path.resolve().name)
    return [
        ListedImage(ImageFile(file), file.relative_to(path).as_posix(), place.label, place.domain, place.split)
        for file, place in ((file, places[above]) for file, above in folders.items())
    ]


def _list_file(path: Path, outside: bool, images: Path | None) -> list[ListedImage]:
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return list_labelled(path, images=images, outside=outside)
    if suffix != ".npz":
        expected = ", ".join((*SUFFIXES, ".npz"))
        raise HyCalError(f"{path} is a file; expected a folder of images, or one of {expected}.")
    found = read_npz(path)
    return [
        ListedImage(sample.source, sample.source.name, found.class_names[sample.label], found.name, sample.split)
        for sample in found.samples
    ]
