"""Columns of Arrow data: Parquet files, and folders that the Hugging Face library `datasets` saved.

A file may come from anywhere: nothing in it is executed, and what it unpacks to is counted batch after batch. Columns
of pictures, texts and so on are not read.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hycal.data.features.columns import FEATURES, Array, Columns, join_coded
from hycal.errors import HyCalError, load_extra
from hycal.storage.npz import check_unpacked

Wanted = Callable[[str], bool]

_ROWS_AT_ONCE = 1024
_NUMBERED = re.compile(r"[a-z]{0,12}_?\d{1,6}", re.IGNORECASE)
_MOST_JSON = 2**24
_MOST_THRIFT = 2**26
SPLITS, INFO, STATE = "dataset_dict.json", "dataset_info.json", "state.json"


def _arrow() -> Any:
    return load_extra("pyarrow", extra="features", why="Reading Parquet and Arrow files")


def read_parquet(path: Path, wanted: Wanted) -> Columns:
    """Return the wanted columns of a Parquet file; ValueError if it is damaged."""
    pa = _arrow()
    load = load_extra("pyarrow.parquet", extra="features", why="Reading Parquet files")
    packed = path.stat().st_size
    limits = {"thrift_string_size_limit": _MOST_THRIFT, "thrift_container_size_limit": _MOST_THRIFT}
    with load.ParquetFile(path, **limits) as file:
        schema, about = file.schema_arrow, file.metadata
        names = _wanted_fields(pa, schema, wanted)
        # What a group claims, then what comes out. pyarrow ends the program at some damaged entries of single columns,
        # so they are not asked for, and one row is counted only once it is unpacked.
        check_unpacked(packed, sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups)))
        batches = file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=names, use_threads=False)
        return _columns(pa, batches, names, packed, _class_names(schema))


def read_arrow(path: Path, wanted: Wanted) -> Columns:
    """Return the wanted columns of a file in Arrow's streaming format; ValueError if it is damaged."""
    pa = _arrow()
    packed = path.stat().st_size
    with pa.memory_map(str(path)) as source:
        _refuse_compressed(pa.ipc.MessageReader.open_stream(source))
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        names = _wanted_fields(pa, stream.schema, wanted)
        return _columns(pa, (batch.select(names) for batch in stream), names, packed, _class_names(stream.schema))


def read_saved_dataset(folder: Path, wanted: Wanted) -> Columns:
    """Return the wanted columns of a folder that `datasets.Dataset.save_to_disk` wrote; ValueError if it is damaged."""
    state = _json(folder / STATE)
    if state.get("_indices_data_files") or state.get("_indices"):
        raise ValueError("it is a selection of another dataset; save dataset.flatten_indices() instead")
    files = [entry["filename"] for entry in state["_data_files"]]
    if not files or any(not isinstance(name, str) or Path(name).name != name for name in files):
        raise ValueError(f"{STATE} does not list files of this folder")
    names = named_classes(_json(folder / INFO).get("features")) if (folder / INFO).is_file() else {}
    content = _joined([read_arrow(folder / name, wanted) for name in files])
    return Columns(content.arrays, {**{key: names[key] for key in names if key in content.arrays}, **content.names})


def _joined(files: list[Columns]) -> Columns:
    """Return the columns of several files of one table, one below the other."""
    if len(files) == 1:
        return files[0]
    if any(set(file.arrays) != set(files[0].arrays) for file in files):
        raise ValueError("its files have different columns")
    both = {
        name: join_coded([(one.arrays[name], one.names.get(name, ())) for one in files]) for name in files[0].arrays
    }
    return Columns(
        {name: array for name, (array, _) in both.items()}, {name: names for name, (_, names) in both.items() if names}
    )


def _json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_JSON:
        raise ValueError(f"{path.name} has more than {_MOST_JSON:,} bytes")
    content = json.loads(path.read_bytes())
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return content


def split_folders(folder: Path) -> list[str]:
    """Return the splits of a saved `DatasetDict`, each of which has a folder of its name."""
    try:
        splits = _json(folder / SPLITS).get("splits")
    except (ValueError, RecursionError):  # no JSON, or nested without end
        splits = None
    if not isinstance(splits, list) or any(not isinstance(one, str) or Path(one).name != one for one in splits):
        raise HyCalError(f"{folder / SPLITS} does not list splits. Save the dataset again with save_to_disk.")
    return splits


def named_classes(features: object) -> dict[str, tuple[str, ...]]:
    """Return the class names of columns, from the features of a dataset as its JSON has them."""
    named = {}
    for name, feature in features.items() if isinstance(features, dict) else ():
        if (
            isinstance(feature, dict)
            and feature.get("_type") == "ClassLabel"
            and isinstance(feature.get("names"), list)
        ):
            named[name] = tuple(map(str, feature["names"]))
    return named


def _class_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the class names that `datasets` keeps in the metadata of the files it writes."""
    try:
        return named_classes(json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"])
    except (KeyError, ValueError, TypeError):
        return {}


def _refuse_compressed(messages: Iterable[Any]) -> None:
    """Refuse compressed batches, which could unpack to anything: `datasets` writes none.

    A message is a flatbuffer; field 2 is its header, and field 3 of a record batch its compression.
    """
    for message in messages:
        if message.type != "record batch":
            continue
        content = message.metadata.to_pybytes()
        try:
            header = _flat_field(content, struct.unpack_from("<I", content)[0], 2)
            compressed = header and _flat_field(content, header + struct.unpack_from("<I", content, header)[0], 3)
        except struct.error:
            raise ValueError("a batch has no sound header") from None
        if compressed:
            raise ValueError("its batches are compressed; save it again without compression, or as Parquet")


def _flat_field(content: bytes, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table begins, 0 if the table has none."""
    vtable = table - struct.unpack_from("<i", content, table)[0]
    place = 4 + 2 * number
    if vtable < 0 or struct.unpack_from("<H", content, vtable)[0] <= place:
        return 0
    offset: int = struct.unpack_from("<H", content, vtable + place)[0]
    return table + offset if offset else 0


def _wanted_fields(pa: Any, schema: Any, wanted: Wanted) -> list[str]:
    """Return the columns to read: those with a wanted name, and what may be the features.

    These are lists of numbers; if there are none, columns of numbers called by a number, as pandas writes a matrix.
    """
    vectors = {field.name for field in schema if _is_vector(pa, field.type)}
    digits = {field.name for field in schema if pa.types.is_floating(field.type) and _NUMBERED.fullmatch(field.name)}
    names = [name for name in schema.names if wanted(name) or name in (vectors or digits)]
    if len(set(names)) < len(names):
        raise ValueError("two of its columns have the same name")
    return names


def _is_vector(pa: Any, kind: Any) -> bool:
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(lists and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)))


def _columns(
    pa: Any, batches: Iterator[Any], names: list[str], packed: int, named: dict[str, tuple[str, ...]]
) -> Columns:
    """Return the columns of all batches; stop where they grow beyond what such a file can be worth."""
    kept: list[Any] = []
    total = 0
    for batch in batches:
        batch.validate(full=True)
        total += batch.nbytes
        check_unpacked(packed, total)
        kept.append(batch)
    if not kept:
        raise ValueError("it has no rows")
    table = pa.Table.from_batches(kept)
    arrays, known = {}, {}
    numbered = [
        name for name in names if _NUMBERED.fullmatch(name) and not _is_vector(pa, table.schema.field(name).type)
    ]
    for name in names:
        arrays[name], words = _array(pa, name, table.column(name))
        if words or name in named:
            known[name] = words or named[name]
    if numbered:
        arrays[FEATURES] = np.stack([arrays.pop(name) for name in numbered], axis=1)
    return Columns(arrays, known)


def _array(pa: Any, name: str, column: Any) -> tuple[Array, tuple[str, ...]]:
    """Return a column as an array; texts as places in the sorted list of different texts, and that list."""
    if column.null_count:
        raise ValueError(f"{name!r} has {column.null_count:,} empty values; drop or fill those rows")
    if _is_vector(pa, column.type):
        return np.concatenate([_matrix(name, chunk) for chunk in column.chunks]), ()
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(kind) else column
        coded = coded.unify_dictionaries().combine_chunks() if pa.types.is_dictionary(kind) else coded
        words = [str(word) for word in coded.dictionary.to_pylist()]
        order = sorted(range(len(words)), key=words.__getitem__)
        return np.argsort(order)[coded.indices.to_numpy()], tuple(words[place] for place in order)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.to_numpy(), ()
    raise ValueError(f"{name!r} is of type {kind}; expected numbers, texts or lists of numbers")


def _matrix(name: str, chunk: Any) -> Array:
    """Return lists of one length as a matrix."""
    width = getattr(chunk.type, "list_size", None)  # of a list of fixed size
    lengths = np.unique(chunk.value_lengths().to_numpy()).tolist() if width is None else [width]
    if len(lengths) > 1:
        raise ValueError(f"{name!r} has rows of {lengths[0]} to {lengths[-1]} numbers; expected one width")
    values: Array = chunk.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(chunk), *lengths)
