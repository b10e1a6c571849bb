"""Features of any tool become the same domain; files that are damaged or hostile are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from hycal import NCM, HyCalError
from hycal.data import features as loading
from hycal.data.embedded import EmbeddedDomain
from hycal.data.features.tensors import check_own_numbers
from hycal.datasets import load_features, load_xd8
from tests.support.commands import hycal

SAVED = Path(__file__).parents[1] / "golden" / "datasets-5.2"


@pytest.fixture(scope="module")
def texture() -> EmbeddedDomain:
    return load_xd8()["texture"]


def whole_table(domain: EmbeddedDomain) -> dict[str, Any]:
    """The domain as one table of features, labels and splits."""
    (train, train_names), (test, test_names) = domain.train, domain.test
    return {
        "embedding": np.concatenate([train, test]),
        "label": np.concatenate([train_names, test_names]),
        "split": np.array(["train"] * len(train) + ["test"] * len(test)),
    }


def frame(domain: EmbeddedDomain, vectors: str = "embedding") -> pd.DataFrame:
    table = whole_table(domain)
    return pd.DataFrame({vectors: list(table["embedding"]), "label": table["label"], "split": table["split"]})


def write_npz_by_split(domain: EmbeddedDomain, path: Path) -> Path:
    arrays = {"X_train": domain.train_x, "y_train": domain.train_y, "X_test": domain.test_x, "y_test": domain.test_y}
    np.savez(path / "texture.npz", **arrays, class_names=np.array(domain.class_names))
    return path


def write_npz_table(domain: EmbeddedDomain, path: Path) -> Path:
    np.savez_compressed(path / "texture.npz", **whole_table(domain))
    return path / "texture.npz"


def write_parquet(domain: EmbeddedDomain, path: Path) -> Path:
    frame(domain).to_parquet(path / "texture.parquet")
    return path / "texture.parquet"


def write_wide_parquet(domain: EmbeddedDomain, path: Path) -> Path:
    table = whole_table(domain)
    wide = pd.DataFrame(table["embedding"], columns=[f"f{number}" for number in range(512)])
    wide.assign(label=table["label"], split=table["split"]).to_parquet(path / "texture.parquet")
    return path


def write_shards(domain: EmbeddedDomain, path: Path) -> Path:
    folder = path / "texture" / "data"
    folder.mkdir(parents=True)
    for split, (rows, names) in (("train", domain.train), ("test", domain.test)):
        for shard, part in enumerate((slice(0, 99), slice(99, None))):
            lists = pa.FixedSizeListArray.from_arrays(pa.array(rows[part].ravel()), 512)
            file = folder / f"{split}-{shard:05}-of-00002.parquet"
            pq.write_table(pa.table({"vec": lists, "label": pa.array(names[part]).dictionary_encode()}), file)
    return path / "texture"


def write_safetensors(domain: EmbeddedDomain, path: Path) -> Path:
    for split, rows, labels in (("train", domain.train_x, domain.train_y), ("test", domain.test_x, domain.test_y)):
        names = {"class_names": json.dumps(domain.class_names)}
        save_file({"features": rows, "labels": labels}, path / f"texture-{split}.safetensors", metadata=names)
    return path


def save_dataset(table: pa.Table, folder: Path) -> Path:
    """Write a table as `datasets.Dataset.save_to_disk` does."""
    folder.mkdir(parents=True)
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=1000)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    return folder


def write_saved_dataset(domain: EmbeddedDomain, path: Path) -> Path:
    return save_dataset(pa.Table.from_pandas(frame(domain)), path / "texture")


def write_arrow(domain: EmbeddedDomain, path: Path) -> Path:
    table = pa.Table.from_pandas(frame(domain))
    with pa.ipc.new_stream(path / "texture.arrow", table.schema) as file:
        file.write_table(table)
    return path / "texture.arrow"


WRITERS = (
    write_npz_by_split,
    write_npz_table,
    write_parquet,
    write_wide_parquet,
    write_shards,
    write_safetensors,
    write_saved_dataset,
    write_arrow,
)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.removeprefix("write_"))
def test_every_format_gives_the_same_domain(
    write: Callable[[EmbeddedDomain, Path], Path], texture: EmbeddedDomain, tmp_path: Path
) -> None:
    found = load_features(write(texture, tmp_path))
    assert list(found) == ["texture"]
    domain = found["texture"]
    assert domain.class_names == texture.class_names
    for part in ("train_x", "train_y", "test_x", "test_y"):
        np.testing.assert_allclose(getattr(domain, part), getattr(texture, part), atol=1e-6)
    assert NCM().fit(*domain.train).score(*domain.test) == NCM().fit(*texture.train).score(*texture.test)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.removeprefix("write_"))
def test_every_format_goes_through_bench_run(
    write: Callable[[EmbeddedDomain, Path], Path], texture: EmbeddedDomain, tmp_path: Path
) -> None:
    options = ("--shots", "1", "--methods", "NCM", "--seeds", "0", "--jobs", "1", "--out", tmp_path / "out")
    ran = hycal("bench", "run", "--features", write(texture, tmp_path), *options)
    assert "1 run in" in ran and "NCM" in ran


def test_a_folder_that_datasets_itself_saved() -> None:
    domain = load_features(SAVED)["datasets-5.2"]
    assert domain.class_names == ("tit", "owl")
    assert (domain.train_y.tolist(), domain.test_y.tolist()) == ([0, 1, 0, 1], [0, 1])
    assert domain.train_x.shape == (4, 4)


def test_a_column_of_domains_makes_several(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(24, 5))
    labels, domains = ["a", "b", "c"] * 8, ["sea"] * 12 + ["sky"] * 12
    np.savez(tmp_path / "table.npz", features=rows, labels=labels, domain=domains)
    found = load_features(tmp_path)
    assert {name: (len(one.train_y), len(one.test_y)) for name, one in found.items()} == {"sea": (9, 3), "sky": (9, 3)}
    assert list(load_features(tmp_path, only=["sky"])) == ["sky"]
    with pytest.raises(HyCalError, match=r"no features of 'land' .* Found: sea, sky"):
        load_features(tmp_path, only=["land"])


def test_names_of_classes_are_those_of_all_domains_and_files(tmp_path: Path) -> None:
    rows, numbers = np.random.default_rng(0).normal(size=(12, 4)), np.repeat([0, 1], 6)
    names, domains = np.array(["shark", "owl"]), np.array(["sea", "sky"])[numbers]
    np.savez(tmp_path / "both.npz", features=rows, labels=numbers, domain=domains, class_names=names)
    found = load_features(tmp_path)
    assert {name: one.class_names for name, one in found.items()} == {"sea": ("shark",), "sky": ("owl",)}
    for split, listed in (("train", names), ("test", names[::-1])):
        np.savez(tmp_path / f"fish-{split}.npz", features=rows, labels=numbers, class_names=listed)
    with pytest.raises(HyCalError, match="its class_names are not those of the other files"):
        load_features([tmp_path / "fish-train.npz", tmp_path / "fish-test.npz"])


def test_a_table_of_hycal_embed_is_read_without_its_unlabelled_rows(tmp_path: Path) -> None:
    from hycal.embedding.table import EmbeddingTable, write_table

    names = {"labels": ["x", "y", "x", "y", "", "x"], "splits": ["train"] * 3 + ["test"] * 2 + ["test"]}
    columns = {"files": ["f"] * 6, "domains": ["d"] * 6, **names}
    rows = np.eye(6, dtype=np.float32)
    arrays = {name: np.array(column) for name, column in columns.items()}
    write_table(tmp_path / "t.npz", EmbeddingTable(rows, **arrays, encoder="tiny", fingerprint="tiny-space"))
    domain = load_features(tmp_path / "t.npz")["d"]
    assert (len(domain.train_y), len(domain.test_y), domain.space) == (3, 2, "tiny-space")


def test_a_dataset_in_two_files_has_all_rows(tmp_path: Path) -> None:
    for number, (label, folder) in enumerate((("owl", "a"), ("tit", "b"))):
        rows = np.random.default_rng(number).normal(size=(6, 3)).tolist()
        save_dataset(pa.table({"embedding": rows, "label": [label] * 6}), tmp_path / folder)
    shutil.copy(tmp_path / "b" / "data-00000-of-00001.arrow", tmp_path / "a" / "second.arrow")
    files = [{"filename": name} for name in ("data-00000-of-00001.arrow", "second.arrow")]
    (tmp_path / "a" / "state.json").write_text(json.dumps({"_data_files": files}))
    domain = load_features(tmp_path / "a")["a"]
    assert domain.class_names == ("owl", "tit")
    assert (np.bincount(domain.train_y).tolist(), np.bincount(domain.test_y).tolist()) == ([4, 4], [2, 2])


def test_columns_of_other_names_are_named(tmp_path: Path, texture: EmbeddedDomain) -> None:
    table = frame(texture, "vec").rename(columns={"label": "species", "split": "fold"})
    table.assign(other=table["vec"]).to_parquet(tmp_path / "texture.parquet")
    with pytest.raises(HyCalError, match=r"no column that is known as features; it has 'vec', 'other'"):
        load_features(tmp_path)
    chosen = "features=vec labels=species split=fold"
    assert load_features(tmp_path, columns=chosen)["texture"].class_names == texture.class_names
    with pytest.raises(HyCalError, match="no column 'nothing'"):
        load_features(tmp_path, columns="features=nothing labels=species")
    with pytest.raises(HyCalError, match="--columns has 'species'; expected PART=COLUMN"):
        load_features(tmp_path, columns="species")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": np.ones((3, 2))}, "known as labels"),
        ({"features": np.ones((3, 2)), "labels": [0, 1]}, r"'labels' has shape \(2,\); expected \(3,\)"),
        ({"features": np.ones((3, 2)), "labels": [0.5, 1, 1]}, "labels are of type float64; expected whole numbers"),
        ({"features": np.ones((3, 2)), "labels": [0, 1, np.inf]}, "labels are of type float64; expected whole numbers"),
        ({"features": np.ones((0, 2)), "labels": np.zeros(0, int)}, "has no labelled rows"),
        (
            {"features": np.ones((4, 2)), "labels": [0] * 4, "domain": list("aabb"), "class_names": np.array(5)},
            "test_x is",
        ),
        ({"features": np.full((3, 2), np.nan), "labels": [0, 0, 0]}, "row 0 is not finite"),
        ({"features": np.ones((4, 2)), "labels": list("aabb"), "split": ["train", "x", "test", "x"]}, "the split 'x'"),
        (
            {"features": np.ones((4, 2)), "labels": list("aabb"), "split": ["train"] * 2 + ["test"] * 2},
            "no image of class 'b'",
        ),
        ({"features": np.ones((4, 2)), "labels": ["n" * 2000] * 4}, "has 2,000 characters"),
        ({"features": np.ones((3, 2)), "labels": list("abc")}, "test_x is"),
        ({"features": np.array([{}]), "labels": [0]}, "Object arrays cannot be loaded"),
    ],
)
def test_a_table_that_does_not_fit_says_why(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(HyCalError, match=message) as failed:
        load_features(tmp_path)
    assert "x.npz" in str(failed.value)


def test_what_is_not_there_or_there_twice(tmp_path: Path, texture: EmbeddedDomain) -> None:
    with pytest.raises(HyCalError, match="There is no"):
        load_features(tmp_path / "nothing")
    with pytest.raises(HyCalError, match=r"has no features; expected files that end in \.npz"):
        load_features(tmp_path)
    (tmp_path / "notes.txt").write_text("features")
    with pytest.raises(HyCalError, match="of no format that is known"):
        load_features(tmp_path / "notes.txt")
    write_npz_table(texture, tmp_path)
    write_parquet(texture, tmp_path)
    with pytest.raises(HyCalError, match="'texture' is in several files"):
        load_features(tmp_path)


def test_a_dataset_that_points_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    shutil.copytree(SAVED / "train", folder)
    shutil.move(folder / "data-00000-of-00001.arrow", tmp_path / "secret.arrow")
    for name in ("../secret.arrow", str(tmp_path / "secret.arrow")):
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
        with pytest.raises(HyCalError, match="does not list files of this folder"):
            load_features(folder)
    (folder / "state.json").write_text('{"_data_files": [], "_indices_data_files": [{"filename": "x"}]}')
    with pytest.raises(HyCalError, match="flatten_indices"):
        load_features(folder)


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [0, -1, 0, 0], [0.0, 1.0, 0.0, 1.0], [2**62] * 4])
@pytest.mark.parametrize("column", ["split", "domain"])
def test_numbers_that_are_no_places_in_a_claimed_list_are_refused(
    tmp_path: Path, column: str, values: list[float]
) -> None:
    features = {column: {"_type": "ClassLabel", "names": ["train", "test"]}}
    claim = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    table = pa.table({"features": [[1.0, 0.0]] * 4, "labels": [0, 0, 1, 1], column: values})
    pq.write_table(table.replace_schema_metadata(claim), tmp_path / "x.parquet")
    with pytest.raises(HyCalError, match="expected places in a list of 2 names"):
        load_features(tmp_path)


def test_shards_whose_labels_do_not_fit_their_lists_are_refused(tmp_path: Path) -> None:
    for number, names in enumerate((["owl"], ["tit"])):
        claim = {"info": {"features": {"labels": {"_type": "ClassLabel", "names": names}}}}
        table = pa.table({"features": [[1.0, 0.0]] * 2, "labels": [0, 1]})
        table = table.replace_schema_metadata({b"huggingface": json.dumps(claim).encode()})
        pq.write_table(table, tmp_path / f"train-0000{number}-of-00002.parquet")
    with pytest.raises(HyCalError, match="do not fit together: it goes from 0 to 1"):
        load_features(tmp_path)


@pytest.mark.parametrize("content", [b"no JSON", b"[" * 100_000, b"\xff\xfe", b"[]", b'{"splits": 5}'])
def test_a_list_of_splits_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "dataset_dict.json").write_bytes(content)
    with pytest.raises(HyCalError, match="does not list splits"):
        load_features(tmp_path)


def test_a_tensor_that_claims_more_numbers_than_it_has_is_refused() -> None:
    """In a torch file, four bytes can be a matrix of any size: its strides are a claim of the file."""
    check_own_numbers("x", np.ones((3, 4), np.float32).T)
    check_own_numbers("x", np.ones((0, 4), np.float32))
    for shape in ((10**7, 10**6), (4, 4)):
        with pytest.raises(ValueError, match="save a contiguous tensor"):
            check_own_numbers(
                "x", np.lib.stride_tricks.as_strided(np.ones(8, np.float32), shape, (0, 4 * (shape[0] < 9)))
            )


def test_what_would_fill_the_memory_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hycal.storage.npz.MOST_BYTES", 2**20)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2**23, np.float32)), 512)
    table = pa.table({"embedding": lists, "label": pa.array(["a"] * len(lists))})
    pq.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    assert (tmp_path / "bomb.parquet").stat().st_size < 2**17
    before = pa.total_allocated_bytes()
    with pytest.raises(HyCalError, match="more than 100 times as many"):
        load_features(tmp_path / "bomb.parquet")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(tmp_path / "bomb.arrow", table.schema, options=options) as file:
        file.write_table(table)
    with pytest.raises(HyCalError, match="batches are compressed"):
        load_features(tmp_path / "bomb.arrow")
    assert pa.total_allocated_bytes() - before < 2**20


def test_a_parquet_that_understates_its_rows_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of the footer is a claim: what is unpacked is counted, too."""
    monkeypatch.setattr("hycal.storage.npz.MOST_BYTES", 2**20)
    text = pa.array(["x" * 2**16] * 2**10)
    pq.write_table(pa.table({"embedding": [[1.0, 2.0]] * 2**10, "label": text}), tmp_path / "x.parquet")
    with pytest.raises(HyCalError, match="more than 100 times as many"):
        load_features(tmp_path / "x.parquet")


def test_formats_of_torch_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    (tmp_path / "x.pt").write_bytes(b"PK")
    with pytest.raises(HyCalError, match=r"Reading x\.pt, which torch wrote, needs .*hycal\[torch\]"):
        load_features(tmp_path / "x.pt")


def test_public_names() -> None:
    assert loading.load_features is load_features
