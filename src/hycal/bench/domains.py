"""Embedded domains that the benchmark runs on: the bundled ones, or one .npz file for each domain in a folder.

`write_domain` and `read_domain` are the file of a domain; `hycal.bench.embedding` makes it from a copy of a data set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.bench.settings import DomainShots, Setting
from hycal.data.bundled import load_xd8
from hycal.data.embedded import EmbeddedDomain
from hycal.errors import HyCalError
from hycal.storage.atomic import replacing
from hycal.storage.npz import load_arrays
from hycal.validation import Floats, unit_rows


@dataclass(frozen=True, eq=False)
class BenchDomain(EmbeddedDomain):
    """An embedded domain with the text embedding of each class, where there is one.

    Attributes
    ----------
    text : ndarray of shape (classes, d), or None
    space : str
        Name of the embedding space, as `hycal.embedding.store.space_fingerprint` gives it; "" if it is not known.
    examples : tuple of str
        Thumbnails of some training images, as JPEG files in base64, for the report.
    images : str
        A hash of the list of images, with their classes and splits, that was embedded; "" if it is not known.
    told : str
        The domain that a method is told; "" if that is the name.
    """

    text: Floats | None = None
    space: str = ""
    examples: tuple[str, ...] = ()
    images: str = ""
    told: str = ""

    @property
    def labels(self) -> list[str]:
        """One label for each class; no two domains share a label."""
        return [f"{self.name}/{name}" for name in self.class_names]

    def text_by_label(self) -> dict[str, Floats] | None:
        """Return the text embedding of each label, or None."""
        return None if self.text is None else dict(zip(self.labels, self.text, strict=True))

    def session(self, part: DomainShots) -> BenchDomain:
        """Return the part of the domain that has some of its classes, in the order of the part."""
        place = np.full(len(self.class_names), -1)
        place[list(part.members)] = np.arange(part.classes)
        train, test = place[self.train_y] >= 0, place[self.test_y] >= 0
        return replace(
            self,
            name=part.name,
            told=self.name,
            train_x=self.train_x[train],
            train_y=place[self.train_y[train]],
            test_x=self.test_x[test],
            test_y=place[self.test_y[test]],
            class_names=tuple(self.class_names[number] for number in part.members),
            text=None if self.text is None else self.text[list(part.members)],
        )

    def digest(self) -> str:
        """Return a hash of names and arrays: equal hashes mean equal domains."""
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
    whole = _load_whole(setting, list(setting.data_sets), folder)
    width = next(iter(whole.values())).train_x.shape[1]
    if setting.views and width != sum(setting.views.values()):
        raise HyCalError(
            f"Setting {setting.name!r} has the views {dict(setting.views)}, and rows of {width} numbers were found; "
            "expected their widths together."
        )
    for name, sessions in setting.data_sets.items():
        found, expected = len(whole[name].class_names), sum(session.classes for session in sessions)
        if sessions[0].members and found != expected:
            raise HyCalError(
                f"Domain {name!r} has {found} classes; setting {setting.name!r} splits {expected} into sessions. Check "
                "that the embeddings are those of this data set."
            )
    return {
        domain.name: whole[domain.data_set].session(domain) if domain.members else whole[domain.name]
        for domain in setting.domains
    }


def _load_whole(setting: Setting, names: list[str], folder: Path | None) -> dict[str, BenchDomain]:
    """Return the data sets of a setting, not split into sessions."""
    if folder is not None:
        return _check_alike(folder, {name: read_domain(folder, name) for name in names})
    if setting.source != "xd8":
        raise HyCalError(
            f"Setting {setting.name!r} needs embeddings of {', '.join(names)}, which do not come with the package. "
            "Make them with `hycal bench embed`, then pass their folder with --embeddings."
        )
    bundled = load_xd8(tuple(setting.views))
    unknown = [name for name in names if name not in bundled]
    if unknown:
        raise HyCalError(
            f"Setting {setting.name!r}: the bundled embeddings have no domain {unknown[0]!r}; expected some of "
            f"{', '.join(bundled)}, or your own embeddings, passed with --embeddings."
        )
    return {
        name: BenchDomain(**{f.name: getattr(bundled[name], f.name) for f in fields(bundled[name])}) for name in names
    }


def _check_alike(folder: Path, domains: dict[str, BenchDomain]) -> dict[str, BenchDomain]:
    """Return the domains; raise an error if their widths differ, or their spaces where those are known."""
    widths = {name: str(domain.train_x.shape[1]) for name, domain in domains.items()}
    spaces = {name: domain.space for name, domain in domains.items() if domain.space}
    for what, values in (("widths", widths), ("spaces", spaces)):
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{name}.npz of {value}" for name, value in values.items())
            raise HyCalError(
                f"{folder} holds embeddings of different {what}: {listed}. Make all with the same encoder."
            )
    return domains


def read_domain(folder: Path, name: str) -> BenchDomain:
    """Return the domain in FOLDER/NAME.npz: train_x, train_y, test_x, test_y, class_names; what else is known."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise HyCalError(f"There is no {path}; expected the embeddings of {name!r} there. See `hycal bench embed`.")
    try:
        arrays = load_arrays(path)
    except ValueError as error:
        raise HyCalError(f"{path} does not hold an embedded domain: {error}. Make it again.") from None
    _check_forms(arrays, path)
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
        examples=tuple(arrays.get("examples", np.array([], dtype=np.str_)).tolist()),
        images=str(arrays.get("images", "")),
    )
    _check(domain, path)
    return domain


@dataclass(frozen=True)
class _Form:
    """Expected form of an array: a description, the number of axes, the kinds of its values."""

    words: str
    ndim: int
    kinds: str
    optional: bool = False

    def check(self, array: npt.NDArray[Any] | None, where: str) -> None:
        if array is None and self.optional:
            return
        found = "missing" if array is None else f"of shape {array.shape} and type {array.dtype}"
        if array is None or array.ndim != self.ndim or array.dtype.kind not in self.kinds or not array.size:
            raise HyCalError(f"{where} is {found}; expected {self.words}. Make the file again.")
        if self.ndim == 2 and not (usable := np.isfinite(array).all(axis=1) & array.any(axis=1)).all():
            raise HyCalError(f"{where}: row {usable.argmin()} is not finite or all zeros. Drop it, or make it again.")


_ROWS = _Form("finite numbers of shape (images, width)", 2, "fiu")
_LABELS = _Form("whole numbers of shape (images,), places in class_names", 1, "iu")
_FORMS = {
    "train_x": _ROWS,
    "train_y": _LABELS,
    "test_x": _ROWS,
    "test_y": _LABELS,
    "class_names": _Form("names of shape (classes,)", 1, "USiu"),
    "text": _Form("finite numbers of shape (classes, width)", 2, "fiu", optional=True),
    "examples": _Form("JPEG files in base64, of shape (examples,)", 1, "U", optional=True),
}


def _check_forms(arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    for part, form in _FORMS.items():
        form.check(arrays.get(part), f"{path}: {part}")


def _check(domain: BenchDomain, path: Path) -> None:
    classes, width = len(domain.class_names), domain.train_x.shape[1]
    for split in ("train", "test"):
        rows, labels = getattr(domain, f"{split}_x"), getattr(domain, f"{split}_y")
        if rows.shape != (len(labels), width):
            raise HyCalError(
                f"{path}: {split}_x has shape {rows.shape}; expected {(len(labels), width)}, one row for each label, "
                "as wide as train_x."
            )
        if labels.min() < 0 or labels.max() >= classes:
            found = f"goes from {labels.min()} to {labels.max()}"
            raise HyCalError(f"{path}: {split}_y {found}; expected 0 to {classes - 1}, places in class_names.")
    if len(set(domain.class_names)) < classes:
        twice = next(name for name in domain.class_names if domain.class_names.count(name) > 1)
        raise HyCalError(f"{path}: class_names has {twice!r} twice; expected a name of its own for each class.")
    unseen = set(range(classes)) - set(domain.train_y.tolist())
    if unseen:
        name = domain.class_names[min(unseen)]
        raise HyCalError(f"{path}: train_y has no image of class {name!r}; expected at least one of every class.")
    if domain.text is not None and domain.text.shape != (classes, width):
        raise HyCalError(f"{path}: text has shape {domain.text.shape}; expected {(classes, width)}, a row per class.")


def write_domain(folder: Path, domain: BenchDomain) -> Path:
    """Write `domain` to FOLDER/NAME.npz in half precision; returns the path.

    A domain that could not be read back, such as one without images, is refused.
    """
    path = folder / f"{domain.name}.npz"
    arrays: Mapping[str, Any] = {
        "train_x": domain.train_x.astype(np.float16),
        "train_y": domain.train_y,
        "test_x": domain.test_x.astype(np.float16),
        "test_y": domain.test_y,
        "class_names": np.array(domain.class_names, dtype=np.str_),
        **({} if domain.text is None else {"text": domain.text}),
        **({"space": np.array(domain.space)} if domain.space else {}),
        **({"examples": np.array(domain.examples)} if domain.examples else {}),
        **({"images": np.array(domain.images)} if domain.images else {}),
    }
    _check_forms(arrays, path)
    _check(domain, path)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path, mark=b"train_x.npy") as file:  # the first array of the file
        np.savez(file, **arrays)
    return path
