"""Embeddings that the benchmark runs on: the bundled ones, or one .npz per domain in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hycal.atomic import replacing
from hycal.bench.settings import Setting
from hycal.data.bundled import EmbeddedDomain, load_xd8
from hycal.embedding.arrays import load_arrays
from hycal.errors import HyCalError
from hycal.validation import Floats, unit_rows


@dataclass(frozen=True, eq=False)
class BenchDomain(EmbeddedDomain):
    """An embedded domain with the text embedding of each class, where there is one.

    Attributes
    ----------
    text : ndarray of shape (classes, d), or None
    space : str
        What `hycal.embedding.store.space_of` calls the space of the embeddings; "" if it is not known.
    """

    text: Floats | None = None
    space: str = ""

    @property
    def labels(self) -> list[str]:
        """One label per class, unlike those of every other domain."""
        return [f"{self.name}/{name}" for name in self.class_names]

    def text_by_label(self) -> dict[str, Floats] | None:
        """Return the text embedding of each label, or None."""
        return None if self.text is None else dict(zip(self.labels, self.text, strict=True))

    def digest(self) -> str:
        """Return a hash of everything: equal hashes mean equal embeddings."""
        total = hashlib.sha256(repr((self.name, self.class_names)).encode())
        for name in ("train_x", "train_y", "test_x", "test_y", "text"):
            array = getattr(self, name)
            if array is not None:
                total.update(f"{name}{array.shape}{array.dtype.str}".encode())
                total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()


def load_domains(setting: Setting, folder: Path | None = None) -> dict[str, BenchDomain]:
    """Return the embedded domains of a setting.

    Parameters
    ----------
    setting : Setting
    folder : path, optional
        Holds DOMAIN.npz for each domain. Without it a setting for "xd8" uses the bundled embeddings.
    """
    names = [domain.name for domain in setting.domains]
    if folder is not None:
        return _one_space(folder, {name: read_domain(folder, name) for name in names})
    if setting.source != "xd8":
        raise HyCalError(
            f"Setting {setting.name!r} needs embeddings of {', '.join(names)}, which do not come with the package. "
            "Make them with `hycal bench embed`, then pass their folder with --embeddings."
        )
    bundled = load_xd8()
    return {
        name: BenchDomain(**{f.name: getattr(bundled[name], f.name) for f in fields(bundled[name])}) for name in names
    }


def _one_space(folder: Path, domains: dict[str, BenchDomain]) -> dict[str, BenchDomain]:
    spaces = {name: domain.space for name, domain in domains.items() if domain.space}
    if len(set(spaces.values())) > 1:
        listed = ", ".join(f"{name}.npz of {value}" for name, value in spaces.items())
        raise HyCalError(f"{folder} holds embeddings of different spaces: {listed}. Make all with the same encoder.")
    return domains


def read_domain(folder: Path, name: str) -> BenchDomain:
    """Return the domain in FOLDER/NAME.npz: train_x, train_y, test_x, test_y, class_names; text, space if known."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise HyCalError(f"There is no {path}; expected the embeddings of {name!r} there. See `hycal bench embed`.")
    try:
        arrays = load_arrays(path)
        text = arrays.get("text")
        domain = BenchDomain(
            name=name,
            train_x=unit_rows(arrays["train_x"]),
            train_y=arrays["train_y"].astype(np.int64),
            test_x=unit_rows(arrays["test_x"]),
            test_y=arrays["test_y"].astype(np.int64),
            class_names=tuple(str(label) for label in arrays["class_names"]),
            text=None if text is None else unit_rows(text),
            space=str(arrays.get("space", "")),
        )
    except (ValueError, KeyError) as error:
        raise HyCalError(f"{path} does not hold an embedded domain: {error}. Make it again.") from None
    _check(domain, path)
    return domain


def _check(domain: BenchDomain, path: Path) -> None:
    classes = len(domain.class_names)
    for split in ("train", "test"):
        rows, labels = getattr(domain, f"{split}_x"), getattr(domain, f"{split}_y")
        if rows.ndim != 2 or len(rows) != len(labels) or not len(rows):
            raise HyCalError(
                f"{path}: {split}_x has shape {rows.shape} for {len(labels)} labels; expected as many rows."
            )
        if labels.min() < 0 or labels.max() >= classes:
            raise HyCalError(f"{path}: {split}_y goes up to {labels.max()}; expected less than {classes}, the classes.")
    if domain.text is not None and domain.text.shape != (classes, domain.train_x.shape[1]):
        raise HyCalError(f"{path}: text has shape {domain.text.shape}; expected one row of the same width per class.")


def write_domain(folder: Path, domain: BenchDomain) -> Path:
    """Write `domain` to FOLDER/NAME.npz in half precision; returns the path."""
    arrays: Mapping[str, Any] = {
        "train_x": domain.train_x.astype(np.float16),
        "train_y": domain.train_y,
        "test_x": domain.test_x.astype(np.float16),
        "test_y": domain.test_y,
        "class_names": np.array(domain.class_names, dtype=np.str_),
        **({} if domain.text is None else {"text": domain.text}),
        **({"space": np.array(domain.space)} if domain.space else {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{domain.name}.npz"
    with replacing(path) as file:
        np.savez(file, **arrays)
    return path
