"""A sealed model to the content of a file, and back; `docs/reference/model-file.md` has the tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.state.moments import Moments, Spread
from hycal.state.records import ClassRecord
from hycal.state.samples import ClassSamples
from hycal.state.sealed import KEPT, SealedRecords
from hycal.storage.model_file import Content, Tensors, expect, integers, is_list_of
from hycal.validation import Floats, Label

_NUMBER = "sealed.number."
_MOST = 2**40  # samples of a class: sums of counts stay whole numbers
_LEAST_SCALE = 1e-15  # of scores and familiarities
_LONGEST = 1.001  # of a mean of unit rows, with the rounding of half precision


def sealed_manifest(table: SealedRecords) -> dict[str, Any]:
    """Return what the manifest of a sealed model says beside that of any model."""
    return {
        "keeps": table.keeps,
        "groups": [table.group_of[label] for label in table.labels],
        "spreads": sorted(table.spreads),
        "weighted": sorted(table.weights),
    }


def sealed_tensors(table: SealedRecords) -> dict[str, npt.NDArray[Any]]:
    """Return the moments, scatters and numbers of a table that has classes."""
    moments, spreads = table.moments, [table.spreads[key] for key in sorted(table.spreads)]
    D = len(moments[0].mean)
    found: dict[str, npt.NDArray[Any]] = {
        "sealed.means": np.stack([each.mean for each in moments]),
        "sealed.factors": _stacked([each.factor for each in moments], D),
        "sealed.factor_rows": np.array([len(each.factor) for each in moments], dtype=np.int64),
        "sealed.spreads": _stacked([each.factor for each in spreads], D),
        "sealed.spread_rows": np.array([len(each.factor) for each in spreads], dtype=np.int64),
        "sealed.spread_freedoms": np.array([each.freedom for each in spreads], dtype=np.int64),
    }
    if any(each.mean is not each.centre for each in moments):
        found["sealed.centres"] = np.stack([each.centre for each in moments])
    if table.weights:
        found["sealed.weights"] = np.stack([table.weights[key] for key in sorted(table.weights)])
    return found | {_NUMBER + name: numbers for name, numbers in table.numbers.items()}


def sealed_records(
    content: Content, labels: Sequence[Label], domains: Sequence[str], texts: Sequence[Floats | None]
) -> SealedRecords:
    """Return the table of a sealed model; every field is checked."""
    manifest, tensors = content.manifest, content.tensors
    sealed: Any = manifest["sealed"]
    expect(isinstance(sealed, dict) and sealed.get("keeps") in KEPT, "a sealed model to say what it keeps")
    groups, keys, weighted = (sealed.get(name) for name in ("groups", "spreads", "weighted"))
    expect(is_list_of(groups, str, len(labels)), "one group per class")
    for name, given in (("spreads", keys), ("weighted", weighted)):
        known = isinstance(given, list) and is_list_of(given, str, len(given)) and set(given) <= set(groups)
        expect(known and given == sorted(set(given)), f"{name} of groups")
    moments = _moments(tensors, integers(tensors, "counts", np.int64), len(labels))
    width = len(moments[0].centre)
    empty = ClassSamples(np.empty((0, width), np.float32))
    expect(all(text is None or len(text) == width for text in texts), f"texts to be {width} numbers wide")
    classes = map(ClassRecord, [empty] * len(labels), domains, texts, moments)
    numbers = {
        name[len(_NUMBER) :]: _finite(tensors[name], name, 1, np.float64)
        for name in tensors
        if name.startswith(_NUMBER)
    }
    least = {"calibration": 1, "familiarity": 2}
    expect(
        all(len(numbers.get(name, ())) >= size for name, size in least.items()), f"the numbers of {' and '.join(least)}"
    )
    temperature, *chances = numbers["calibration"].tolist()
    expect(
        all(_LEAST_SCALE <= scale <= 1.0 / _LEAST_SCALE for scale in (temperature, float(numbers["familiarity"][1]))),
        f"scales between {_LEAST_SCALE} and {1.0 / _LEAST_SCALE}",
    )
    expect(all(0.0 <= chance <= 1.0 for chance in chances), "probabilities of held-out samples")
    expect(len(numbers.get("common", (0.0,))) == 1, "one number for what is common to all classes")
    return SealedRecords(
        dict(zip(labels, classes, strict=True)),
        manifest.get("memo", {}),
        sealed["keeps"],
        dict(zip(labels, groups, strict=True)),
        _spreads(tensors, keys, len(moments[0].mean)),
        _weights(tensors, weighted),
        numbers,
    )


def _moments(tensors: Tensors, counts: npt.NDArray[np.int64], classes: int) -> list[Moments]:
    means = _finite(tensors.get("sealed.means"), "sealed.means", 2)
    centres = means
    if "sealed.centres" in tensors:
        centres = _finite(tensors["sealed.centres"], "sealed.centres", 2)
    factors, rows = _finite(tensors.get("sealed.factors"), "sealed.factors", 2), integers(tensors, "sealed.factor_rows")
    expect(
        len(counts) == len(means) == len(centres) == len(rows) == classes > 0, "a count, a mean and a factor per class"
    )
    expect(bool(np.all((counts > 0) & (counts <= _MOST))), "a positive count for each class, of samples that can exist")
    expect(factors.shape[1] == means.shape[1], "factors as wide as means")
    expect(bool(np.all(np.einsum("cd,cd->c", centres, centres) <= _LONGEST**2)), "means of unit rows")
    most = np.minimum(counts - 1, means.shape[1])
    expect(
        bool(np.all((rows >= 0) & (rows <= most))) and int(rows.sum()) == len(factors), "factors of at most K - 1 rows"
    )
    parts = np.split(factors, np.cumsum(rows)[:-1])
    own = zip(counts.tolist(), centres, means, parts, strict=True)
    if centres is means:
        return [Moments(count, mean, mean, factor) for count, _, mean, factor in own]
    return [Moments(*each) for each in own]


def _weights(tensors: Tensors, keys: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    if not keys:
        return {}
    weights = _finite(tensors.get("sealed.weights"), "sealed.weights", 2, np.float64)
    expect(len(weights) == len(keys), "weights for each group that has some")
    return dict(zip(keys, weights, strict=True))


def _spreads(tensors: Tensors, keys: Sequence[str], width: int) -> dict[str, Spread]:
    factors = _finite(tensors.get("sealed.spreads"), "sealed.spreads", 2)
    rows, freedoms = integers(tensors, "sealed.spread_rows"), integers(tensors, "sealed.spread_freedoms")
    expect(len(rows) == len(freedoms) == len(keys) and factors.shape[1] == width, "one scatter per group that has one")
    expect(bool(np.all(freedoms <= _MOST)), "degrees of freedom of samples that can exist")
    sound = bool(np.all((rows >= 0) & (rows <= np.minimum(freedoms, width)))) and int(rows.sum()) == len(factors)
    expect(sound, "scatters of at most as many rows as degrees of freedom")
    parts = np.split(factors, np.cumsum(rows)[:-1]) if keys else []
    return dict(zip(keys, map(Spread, freedoms.tolist(), parts), strict=True))


def _finite(array: npt.NDArray[Any] | None, name: str, ndim: int, dtype: Any = np.float32) -> npt.NDArray[Any]:
    expect(
        array is not None and array.dtype == dtype and array.ndim == ndim, f"{ndim} dimensions of numbers in {name!r}"
    )
    assert array is not None
    expect(bool(np.isfinite(array).all()), f"finite numbers in {name!r}")
    return array


def _stacked(parts: Sequence[Floats], width: int) -> Floats:
    return np.concatenate([np.empty((0, width), np.float32), *parts])
