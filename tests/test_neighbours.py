"""Arrays and files of other libraries come in as they are. `make test-neighbours` has torch, JAX and `datasets`."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import array_api_strict
import numpy as np
import pytest

from hycal import NCM, HyCal, HyCalError
from hycal.datasets import load_features, load_xd8
from hycal.validation import as_numpy
from tests.support.commands import hycal

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _imported: dict[str, ModuleType] = {}
    for _name in ("torch", "jax", "datasets"):
        try:
            _imported[_name] = __import__(_name)
        except ImportError:
            continue


def needs(name: str) -> ModuleType:
    if name not in _imported:
        pytest.skip(f"needs {name}; run make test-neighbours")
    return _imported[name]


def array_of(library: str, values: Any) -> Any:
    if library == "array-api-strict":
        return array_api_strict.asarray(np.asarray(values))
    if library == "torch":
        return needs("torch").tensor(np.asarray(values))
    return needs("jax").numpy.asarray(np.asarray(values))


@pytest.mark.parametrize("library", ["array-api-strict", "torch", "jax"])
def test_arrays_of_another_library_are_learned_and_classified(library: str) -> None:
    digit = load_xd8()["digit"]
    X, y = digit.train_x[:60], digit.train_y[:60]
    plain = NCM().fit(X, y)
    foreign = NCM().fit(array_of(library, X), array_of(library, y))
    queries = array_of(library, digit.test_x)
    np.testing.assert_array_equal(foreign.decision_function(queries), plain.decision_function(digit.test_x))
    assert foreign.predict(queries).tolist() == plain.predict(digit.test_x).tolist()
    assert foreign.score(queries, array_of(library, digit.test_y)) == plain.score(digit.test_x, digit.test_y)
    text = {number: array_of(library, row) for number, row in enumerate(np.eye(10, 512, dtype=np.float32))}
    HyCal().fit(array_of(library, X), array_of(library, y), text=text).unlearn(
        array_of(library, X[:1]), array_of(library, y[:1])
    )


def test_wrong_arrays_of_another_library_are_refused_as_ours_are() -> None:
    with pytest.raises(HyCalError, match="NaN"):
        NCM().fit(array_of("array-api-strict", [[np.nan, 1.0]]), ["a"])
    with pytest.raises(HyCalError, match="2D array"):
        NCM().fit(array_of("array-api-strict", [1.0, 2.0]), ["a", "b"])


def test_memory_is_handed_over_and_not_copied() -> None:
    array = array_api_strict.asarray(np.ones((4, 3)))
    assert np.shares_memory(as_numpy(array), array._array)
    rows = [[1.0, 0.0]]
    assert as_numpy(rows) is rows


def test_a_tensor_with_a_gradient_or_of_half_the_width() -> None:
    torch = needs("torch")
    rows = torch.eye(3, requires_grad=True)
    assert NCM().fit(rows, ["a", "b", "c"]).predict(rows).tolist() == ["a", "b", "c"]
    brief = torch.eye(3, dtype=torch.bfloat16)
    assert NCM().fit(brief, ["a", "b", "c"]).predict(brief).tolist() == ["a", "b", "c"]


def test_an_array_of_jax_of_half_the_width() -> None:
    jax = needs("jax")
    brief = jax.numpy.eye(3, dtype=jax.numpy.bfloat16)
    assert NCM().fit(brief, ["a", "b", "c"]).predict(brief).tolist() == ["a", "b", "c"]


def saved_by_torch(path: Path) -> Path:
    torch, digit = needs("torch"), load_xd8()["digit"]
    parts = {
        "train": {"features": torch.tensor(digit.train_x), "labels": torch.tensor(digit.train_y)},
        "test": {"features": torch.tensor(digit.test_x).to(torch.bfloat16), "labels": torch.tensor(digit.test_y)},
        "class_names": list(digit.class_names),
    }
    torch.save(parts, path)
    return path


def test_a_file_of_torch_is_read_by_weights_only(tmp_path: Path) -> None:
    digit, found = load_xd8()["digit"], load_features(saved_by_torch(tmp_path / "digit.pt"))["digit"]
    np.testing.assert_allclose(found.train_x, digit.train_x, atol=1e-6)
    assert (found.class_names, found.test_y.tolist()) == (digit.class_names, digit.test_y.tolist())
    needs("torch").save((needs("torch").eye(6), [0, 1] * 3), tmp_path / "pair.pth")
    assert load_features(tmp_path / "pair.pth")["pair"].class_names == ("0", "1")
    options = ("--shots", "1", "--methods", "NCM", "--seeds", "0", "--jobs", "1", "--out", tmp_path / "out")
    assert "1 run in" in hycal("bench", "run", "--features", tmp_path / "digit.pt", *options)


class _Exploit:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_file_of_torch_that_runs_code_is_refused(tmp_path: Path) -> None:
    needs("torch").save({"features": _Exploit(tmp_path / "ran")}, tmp_path / "x.pt")
    with pytest.raises(HyCalError, match="does not hold an embedded domain: Weights only load failed"):
        load_features(tmp_path / "x.pt")
    assert not (tmp_path / "ran").exists()


def test_damaged_files_of_torch_are_refused(tmp_path: Path) -> None:
    content = saved_by_torch(tmp_path / "digit.pt").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(30):
        damaged = bytearray(content)
        for place in rng.integers(0, 2000, size=8):
            damaged[-int(place) - 1] = int(rng.integers(0, 256))
        (tmp_path / "digit.pt").write_bytes(damaged[: int(rng.integers(len(content) // 2, len(content) + 1))])
        try:
            load_features(tmp_path / "digit.pt")
        except HyCalError:
            continue


def test_an_old_torch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_by_torch(tmp_path / "digit.pt")
    monkeypatch.setattr(needs("torch"), "__version__", "2.5.1+cpu")
    with pytest.raises(HyCalError, match=r"torch 2\.5\.1\+cpu can be made to run code .* expected 2\.6"):
        load_features(tmp_path / "digit.pt")


def test_what_datasets_saves_is_read(tmp_path: Path) -> None:
    datasets, digit = needs("datasets"), load_xd8()["digit"]
    kinds = {
        "vec": datasets.Sequence(datasets.Value("float32")),
        "label": datasets.ClassLabel(names=list(digit.class_names)),
    }
    splits = {"train": (digit.train_x, digit.train_y), "validation": (digit.test_x, digit.test_y)}
    saved = {
        split: datasets.Dataset.from_dict({"vec": X, "label": y}, features=datasets.Features(kinds))
        for split, (X, y) in splits.items()
    }
    datasets.DatasetDict(saved).save_to_disk(tmp_path / "digit", num_shards={"train": 3, "validation": 1})
    found = load_features(tmp_path / "digit")["digit"]
    np.testing.assert_allclose(found.train_x, digit.train_x, atol=1e-6)
    assert (found.class_names, found.test_y.tolist()) == (digit.class_names, digit.test_y.tolist())
    (tmp_path / "hub").mkdir()
    for split, one in saved.items():
        one.to_parquet(tmp_path / "hub" / f"{split}-00000-of-00001.parquet")
    assert load_features(tmp_path / "hub")["hub"].class_names == digit.class_names
