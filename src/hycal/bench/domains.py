"""Embedded domains that the benchmark runs on: the bundled ones, or features that any tool made.

`write_domain` and `read_domain` are the file of a domain; `hycal.bench.embedding` makes it from a copy of a data set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.bench.settings import DomainShots, Setting
from hycal.data.bundled import load_xd8
from hycal.data.embedded import EmbeddedDomain, check_arrays, check_domain
from hycal.data.features import load_features
from hycal.errors import HyCalError
from hycal.storage.atomic import replacing
from hycal.validation import Floats


@dataclass(frozen=True, eq=False)
class BenchDomain(EmbeddedDomain):
    """An embedded domain, and what a method is told of it."""

    told: str = ""  # the domain that a method is told; "" if that is the name

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


def have_text(domains: Iterable[BenchDomain]) -> bool:
    """Return whether every domain has the text embeddings of its classes."""
    return all(domain.text is not None for domain in domains)


def queries_of(domains: Sequence[BenchDomain]) -> tuple[Floats, npt.NDArray[np.str_]]:
    """Return the test images of all domains, and their labels."""
    queries = np.concatenate([domain.test_x for domain in domains])
    return queries, np.concatenate([np.array(domain.labels)[domain.test_y] for domain in domains])


def load_domains(
    setting: Setting, features: Path | Sequence[Path] | None = None, *, columns: str = ""
) -> dict[str, BenchDomain]:
    """Return the embedded domains of a setting.

    `features` are files or folders with the domains of the setting, by name; without them a setting for "xd8" uses the
    bundled embeddings. `columns` is that of `hycal.datasets.load_features`.
    """
    whole = _load_whole(setting, list(setting.data_sets), features, columns)
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


def read_domains(
    features: Path | Sequence[Path], *, names: Sequence[str] | None = None, columns: str = ""
) -> dict[str, BenchDomain]:
    """Return the domains in files or folders, all or those of `names`; they must be of one width and space."""
    found = load_features(features, only=names, columns=columns)
    return _check_alike({name: _benched(domain) for name, domain in found.items()})


def _load_whole(
    setting: Setting, names: list[str], features: Path | Sequence[Path] | None, columns: str
) -> dict[str, BenchDomain]:
    """Return the data sets of a setting, not split into sessions."""
    if features:
        return read_domains(features, names=names, columns=columns)
    if setting.source != "xd8":
        raise HyCalError(
            f"Setting {setting.name!r} needs embeddings of {', '.join(names)}, which do not come with the package. "
            "Make them with `hycal bench embed`, then pass their folder with --features."
        )
    bundled = load_xd8(tuple(setting.views))
    unknown = [name for name in names if name not in bundled]
    if unknown:
        raise HyCalError(
            f"Setting {setting.name!r}: the bundled embeddings have no domain {unknown[0]!r}; expected some of "
            f"{', '.join(bundled)}, or your own embeddings, passed with --features."
        )
    return {name: _benched(bundled[name]) for name in names}


def _check_alike(domains: dict[str, BenchDomain]) -> dict[str, BenchDomain]:
    """Return the domains; raise an error if their widths differ, or their spaces where those are known."""
    widths = {name: str(domain.train_x.shape[1]) for name, domain in domains.items()}
    spaces = {name: domain.space for name, domain in domains.items() if domain.space}
    for what, values in (("widths", widths), ("spaces", spaces)):
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{name} of {value}" for name, value in values.items())
            raise HyCalError(f"The domains have different {what}: {listed}. Make all with the same encoder.")
    return domains


def read_domain(folder: Path, name: str) -> BenchDomain:
    """Return the domain in FOLDER/NAME.npz: train_x, train_y, test_x, test_y, class_names; what else is known."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise HyCalError(f"There is no {path}; expected the embeddings of {name!r} there. See `hycal bench embed`.")
    return read_domains(path, names=[name])[name]


def _benched(domain: EmbeddedDomain) -> BenchDomain:
    return BenchDomain(**vars(domain))


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
    check_arrays(arrays, path)
    check_domain(domain, path)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path, mark=b"train_x.npy") as file:  # the first array of the file
        np.savez(file, **arrays)
    return path
