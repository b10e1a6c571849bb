"""The table of published data sets, `datasets.toml`, and the prompts for their classes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from hycal.errors import HyCalError


@dataclass(frozen=True)
class Download:
    """One file to download."""

    url: str
    checksum: tuple[str, str] | None  # "md5" or "sha256", and the hex digits; None if none is published
    inside: str = ""  # an archive inside the archive, which is unpacked too; "" for none
    name: str = ""  # of the file; "" for the last part of the URL

    @property
    def filename(self) -> str:
        """The name of the file, once it is there."""
        return self.name or self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class DataSetSpec:
    """One entry of `datasets.toml`; the file explains the fields.

    Examples
    --------
    >>> spec = find_dataset("eurosat")
    >>> spec.title, spec.classes
    ('EuroSAT, RGB', 10)
    """

    name: str
    title: str
    layout: str
    classes: int
    images: Mapping[str, int]
    text: str
    home: str
    files: tuple[Download, ...] = ()
    official_images: Mapping[str, int] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    edition: str = ""
    split_file: str = ""
    split_url: str = ""
    split_images: str = ""
    folder: str = ""
    ignore: tuple[str, ...] = ()

    def words(self, class_name: str) -> str:
        """Return the words for a class in a prompt, in the form that the data set uses."""
        plain = self.names.get(class_name, class_name).replace("_", " ")
        return self.text.format(plain)


def _table() -> dict[str, Any]:
    text = (resources.files("hycal.data") / "datasets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def list_datasets() -> list[DataSetSpec]:
    """Return every data set, in the order of the table.

    Examples
    --------
    >>> "eurosat" in [spec.name for spec in list_datasets()]
    True
    """
    return [_spec(name, entry) for name, entry in _table().items() if isinstance(entry, dict)]


def find_dataset(name: str) -> DataSetSpec:
    """Return the entry `name`, or raise an error that lists the known ones.

    Examples
    --------
    >>> find_dataset("eurosat").classes
    10
    """
    known = {spec.name: spec for spec in list_datasets()}
    if name not in known:
        raise HyCalError(f"There is no data set called {name!r}; expected one of {', '.join(known)}.")
    return known[name]


def prompts(spec: DataSetSpec, class_names: Sequence[str]) -> list[str]:
    """Return one prompt per class.

    Examples
    --------
    >>> prompts(find_dataset("eurosat"), ["AnnualCrop", "Forest"])
    ['a photo of a Annual Crop Land satellite location.', 'a photo of a Forest satellite location.']
    >>> prompts(find_dataset("mnist"), ["0 - zero"])
    ['a photo of a number: "0 - zero".']
    """
    template: str = _table()["prompt"]
    return [template.format(spec.words(name)) for name in class_names]


def _spec(name: str, entry: dict[str, Any]) -> DataSetSpec:
    plain = dict(entry)
    plain["files"] = tuple(_download(file) for file in entry.get("files", ()))
    for key in ("aliases", "class_names", "ignore"):
        plain[key] = tuple(entry.get(key, ()))
    return DataSetSpec(name=name, **plain)


def _download(entry: dict[str, str]) -> Download:
    kind = next((kind for kind in ("sha256", "md5") if kind in entry), None)
    return Download(entry["url"], None if kind is None else (kind, entry[kind]), entry.get("inside", ""))
