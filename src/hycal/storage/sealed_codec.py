"""A sealed model to the content of a file, and back; `docs/reference/model-file.md` has the tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.state.moments import Moments, Spread
from hycal.state.records import ClassRecord, text_in
from hycal.state.samples import ClassSamples
from hycal.state.sealed import KEPT, SealedRecords
from hycal.state.sealed_views import SealedViews, joint_moments
from hycal.storage.model_file import Content, Tensors, expect, integers, is_list_of
from hycal.validation import Floats, Label, view_slices

_NUMBER = "sealed.number."
_VIEW = "view.{}."  # what the names of the tensors of a view begin with
_MOST = 2**40  # samples of a class: sums of counts stay whole numbers
_LEAST_SCALE = 1e-15  # of scores and familiarities
_LONGEST = 1.001  # of a mean of unit rows, with the rounding of half precision


def sealed_manifest(table: SealedRecords) -> dict[str, Any]:
    """Return what the manifest of a sealed model says beside that of any model."""
    found: dict[str, Any] = {
        "keeps": table.keeps,
        "groups": [table.group_of[label] for label in table.labels],
        "spreads": sorted(table.spreads),
        "weighted": sorted(table.weights),
    }
    if isinstance(table, SealedViews):
        found["views"] = [sealed_manifest(own) if own is not None and own.by_label else None for own in table.views]
    return found


def sealed_tensors(table: SealedRecords) -> dict[str, npt.NDArray[Any]]:
    """Return the moments, scatters and numbers of a table that has classes."""
    found = _tensors_of_views(table) if isinstance(table, SealedViews) else _tensors_of_moments(table)
    if table.weights:
        found["sealed.weights"] = np.stack([table.weights[key] for key in sorted(table.weights)])
    return found | {_NUMBER + name: numbers for name, numbers in table.numbers.items()}


def _tensors_of_views(table: SealedViews) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    for number, own in enumerate(table.views):
        if own is not None and own.by_label:
            counts = [own.by_label[label].count if label in own.by_label else 0 for label in table.labels]
            tensors = {"counts": np.array(counts, dtype=np.int64), **sealed_tensors(own)}
            found |= {_VIEW.format(number) + name: array for name, array in tensors.items()}
    return found


def _tensors_of_moments(table: SealedRecords) -> dict[str, npt.NDArray[Any]]:
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
    return found


def sealed_records(
    content: Content,
    labels: Sequence[Label],
    domains: Sequence[str],
    texts: Sequence[Floats | None],
    widths: Sequence[int] | None = None,
) -> SealedRecords:
    """Return the table of a sealed model; every field is checked. `widths` are those of the views of its method."""
    sealed, tensors = content.manifest["sealed"], content.tensors
    groups, keys, weighted = _groups(sealed, len(labels))
    expect(("views" in sealed) == (widths is not None), "a table for each view of the method")
    counts = integers(tensors, "counts", np.int64)
    expect(len(counts) == len(labels) > 0, "a count for each class")
    expect(bool(np.all((counts > 0) & (counts <= _MOST))), "a positive count for each class, of samples that can exist")
    table_of: Callable[..., SealedRecords] = SealedRecords
    if widths is None:
        moments = _moments(tensors, counts)
        spreads = _spreads(tensors, keys, len(moments[0].mean))
    else:
        expect(sealed["keeps"] == "means" and not keys, "scatters in the tables of views alone")
        views = _views(content, counts, labels, domains, texts, widths)
        moments = [
            joint_moments(each, count, widths, views) for each, count in zip(labels, counts.tolist(), strict=True)
        ]
        table_of, spreads = partial(SealedViews, widths=tuple(widths), views=views), {}
    width = len(moments[0].centre)
    expect(all(text is None or len(text) == width for text in texts), f"texts to be {width} numbers wide")
    numbers = _numbers(tensors)
    expect(widths is None or "scale" not in numbers, "scales of scores in the tables of views alone")
    empty = ClassSamples(np.empty((0, width), np.float32))
    classes = map(ClassRecord, [empty] * len(labels), domains, texts, moments)
    return table_of(
        dict(zip(labels, classes, strict=True)),
        content.manifest.get("memo", {}),
        sealed["keeps"],
        dict(zip(labels, groups, strict=True)),
        spreads,
        _weights(tensors, weighted),
        numbers,
    )


def _groups(sealed: Any, classes: int) -> tuple[list[str], list[str], list[str]]:
    """Return the group of each class, the groups that have a scatter, and those that have weights."""
    expect(isinstance(sealed, dict) and sealed.get("keeps") in KEPT, "a sealed model to say what it keeps")
    groups, keys, weighted = (sealed.get(name) for name in ("groups", "spreads", "weighted"))
    expect(is_list_of(groups, str, classes), "one group per class")
    for name, given in (("spreads", keys), ("weighted", weighted)):
        known = isinstance(given, list) and is_list_of(given, str, len(given)) and set(given) <= set(groups)
        expect(known and given == sorted(set(given)), f"{name} of groups")
    return groups, keys, weighted


def _views(
    content: Content,
    counts: npt.NDArray[np.int64],
    labels: Sequence[Label],
    domains: Sequence[str],
    texts: Sequence[Floats | None],
    widths: Sequence[int],
) -> tuple[SealedRecords | None, ...]:
    """Return the table of each view: that of a sealed model of the classes that have images in it."""
    manifests = content.manifest["sealed"]["views"]
    expect(isinstance(manifests, list) and len(manifests) == len(widths), f"a table for each of {len(widths)} views")
    views, shown = list[SealedRecords | None](), np.zeros(len(labels))
    for number, (manifest, part) in enumerate(zip(manifests, view_slices(widths), strict=True)):
        if manifest is None:
            views.append(None)
            continue
        start = _VIEW.format(number)
        tensors = {name[len(start) :]: array for name, array in content.tensors.items() if name.startswith(start)}
        own = integers(tensors, "counts", np.int64)
        expect(len(own) == len(labels) and bool(np.all((own >= 0) & (own <= counts))), "counts of images in each view")
        known, shown = np.flatnonzero(own).tolist(), shown + own
        table = sealed_records(
            Content({"sealed": manifest}, {**tensors, "counts": own[known]}),
            [labels[place] for place in known],
            [domains[place] for place in known],
            [text_in(texts[place], part) for place in known],
        )
        expect(table.width == part.stop - part.start, "means of each view as wide as the view")
        views.append(table)
    expect(bool(np.all(shown >= counts)), "every image in a view")
    return tuple(views)


def _numbers(tensors: Tensors) -> dict[str, npt.NDArray[np.float64]]:
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
        all(
            _LEAST_SCALE <= scale <= 1.0 / _LEAST_SCALE
            for scale in (temperature, float(numbers["familiarity"][1]), *numbers.get("scale", ()))
        ),
        f"scales between {_LEAST_SCALE} and {1.0 / _LEAST_SCALE}",
    )
    expect(all(0.0 <= chance <= 1.0 for chance in chances), "probabilities of held-out samples")
    single = {"common": "what is common to all classes", "scale": "the scale of the scores"}
    expect(
        all(len(numbers.get(name, (0.0,))) == 1 for name in single), f"one number for {' and '.join(single.values())}"
    )
    return numbers


def _moments(tensors: Tensors, counts: npt.NDArray[np.int64]) -> list[Moments]:
    means = _finite(tensors.get("sealed.means"), "sealed.means", 2)
    centres = means
    if "sealed.centres" in tensors:
        centres = _finite(tensors["sealed.centres"], "sealed.centres", 2)
    factors, rows = _finite(tensors.get("sealed.factors"), "sealed.factors", 2), integers(tensors, "sealed.factor_rows")
    expect(len(counts) == len(means) == len(centres) == len(rows), "a mean and a factor for each class")
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
