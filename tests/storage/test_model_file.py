"""The model file: round trip, golden file, atomic write, and refusal of everything malformed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from hycal import HyCal, HyCalError, ModelFileError, load
from hycal.errors import StorageError
from hycal.storage import model_file
from hycal.testing.streams import Stream, learn
from tests.support.files import rewrite

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def model():
    stream = Stream.synthetic(0, shots=[[3, 1], [4]], width=8)
    model = learn(HyCal(alpha=4), stream.map(lambda step: step.relabelled(lambda label: f"kind {label} é")).steps)
    model.encoder_ = "sha256:abc"
    return model


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_round_trip(model, path):
    loaded = load(path)
    assert type(loaded) is HyCal
    assert loaded.get_params() == model.get_params()
    assert loaded.encoder_ == "sha256:abc"
    for name in ("classes_", "counts_", "domains_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    queries = np.random.default_rng(0).normal(size=(5, 8))
    np.testing.assert_array_equal(loaded.decision_function(queries), model.decision_function(queries))


def test_equal_models_are_equal_files(model, path, tmp_path):
    """Whatever the order of learning; so a hash of the file is a hash of what was learned."""
    X = np.random.default_rng(1).normal(size=(2, 8))
    model.partial_fit(X, ["kind 0 é", "kind 2 é"]).unlearn(X[::-1], ["kind 2 é", "kind 0 é"])
    model.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("version", range(1, model_file.VERSION + 1))
def test_golden_files_of_every_version_load(version):
    loaded = load(GOLDEN / f"model-v{version}.safetensors")
    expected = json.loads((GOLDEN / f"model-v{version}.json").read_text())
    assert loaded.stored_parameters == expected["parameters"]
    assert loaded.classes_.tolist() == expected["classes"]
    assert loaded.counts_.tolist() == expected["counts"]
    assert loaded.domains_.tolist() == expected["domains"]
    assert loaded.encoder_ == expected["encoder"]
    np.testing.assert_allclose(loaded.decision_function(expected["queries"]), expected["scores"], atol=1e-3)


def test_saved_bytes_are_the_state(model, path):
    header = struct.unpack("<Q", path.read_bytes()[:8])[0]
    state = model.nbytes_ + model.counts_.nbytes + len(model.classes_)
    assert path.stat().st_size == 8 + header + state + 5 * 32, "and the checksums of the header and of four arrays"


def test_a_failed_save_keeps_the_old_file(model, path, monkeypatch):
    before = path.read_bytes()
    model.forget("kind 0 é")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(StorageError, match="No space"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_mode_is_kept(model, path):
    path.chmod(0o640)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_missing_folder_and_missing_file_say_so(model, tmp_path):
    with pytest.raises(HyCalError, match="does not exist"):
        model.save(tmp_path / "no" / "model.safetensors")
    with pytest.raises(ModelFileError, match="no model file at"):
        load(tmp_path / "none.safetensors")
    with pytest.raises(ModelFileError, match="no model file at"):
        load(tmp_path)


MALFORMED = {
    "another format": lambda m, t: m.update(format="zip"),
    "a newer version": lambda m, t: m.update(version=4),
    "no version": lambda m, t: m.pop("version"),
    "a version that is no number": lambda m, t: m.update(version=[1]),
    "an unknown method": lambda m, t: m.update(method="os.system"),
    "a method that is no text": lambda m, t: m.update(method=["HyCal"]),
    "an unknown parameter": lambda m, t: m["parameters"].update(shell="rm"),
    "a bad parameter": lambda m, t: m["parameters"].update(beta=-1),
    "parameters that are no object": lambda m, t: m.update(parameters=[1]),
    "an encoder that is no text": lambda m, t: m.update(encoder=7),
    "no labels": lambda m, t: m.update(labels=[]),
    "a label too few": lambda m, t: m["labels"].pop(),
    "labels in another order": lambda m, t: (
        m["labels"].reverse(),
        m["domains"].reverse(),
        t.update(samples=t["samples"][::-1], counts=t["counts"][::-1], texts=t["texts"][::-1]),
    ),
    "a parameter that is no number": lambda m, t: m["parameters"].update(alpha=float("nan")),
    "labels that repeat": lambda m, t: m.update(labels=[m["labels"][0]] * 3),
    "labels of two kinds": lambda m, t: m.update(labels=["a", 1, "b"]),
    "a label that is a list": lambda m, t: m.update(labels=[["a"], "b", "c"]),
    "a domain too few": lambda m, t: m["domains"].pop(),
    "a domain that is no text": lambda m, t: m.update(domains=[1, 2, 3]),
    "no samples": lambda m, t: t.pop("samples"),
    "samples of another type": lambda m, t: t.update(samples=t["samples"].astype(np.float64)),
    "samples that are not unit": lambda m, t: t.update(samples=2 * t["samples"]),
    "samples that are not finite": lambda m, t: t["samples"].fill(np.nan),
    "a sample too few": lambda m, t: t.update(samples=t["samples"][1:]),
    "a negative count": lambda m, t: t.update(counts=np.array([-1, 4, 5])),
    "a count of zero where images are needed": lambda m, t: (
        m.update(method="NCM", parameters={}),
        t.update(counts=np.array([0, 4, 4])),
    ),
    "a count of zero without a text": lambda m, t: (
        m.update(method="NCM", parameters={}),
        t.update(counts=np.array([0, 4, 4]), has_text=np.array([0, 1, 1], np.uint8), texts=t["texts"][1:]),
    ),
    "a count of zero where names are enough, without a text": lambda m, t: (
        m.update(method="ZeroShot", parameters={}),
        t.update(counts=np.array([0, 4, 4]), has_text=np.array([0, 1, 1], np.uint8), texts=t["texts"][1:]),
    ),
    "a memo that is no object": lambda m, t: m.update(memo=[1]),
    "a memo that the method never wrote": lambda m, t: m.update(memo={"ridge": 1.0}),
    "a count that overflows": lambda m, t: t.update(counts=np.array([2**62, 2**62, 8])),
    "counts of another type": lambda m, t: t.update(counts=t["counts"].astype(np.float32)),
    "texts of another width": lambda m, t: t.update(texts=t["texts"][:, 1:]),
    "a text too few": lambda m, t: t.update(texts=t["texts"][1:]),
    "a text mark that is no mark": lambda m, t: t.update(has_text=np.array([3, 0, 0], np.uint8)),
    "a class without the text it needs": lambda m, t: t.update(
        has_text=np.array([1, 1, 0], np.uint8), texts=t["texts"][:2]
    ),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_content_is_one_clear_error(path, fault):
    rewrite(path, MALFORMED[fault])
    with pytest.raises(ModelFileError):
        load(path)


TOO_LARGE = {
    "features": ("RanPAC", {"n_components": 10**9}),
    "more features": ("PrimalRAIL", {"n_components": 10**9}),
    "draws": ("KLDA", {"n_components": 1, "ensemble": 10**7}),
    "draws of features": ("KLDA", {"n_components": 2**16, "ensemble": 2**7}),
    "a matrix of features": ("KLDA", {"n_components": 2**16, "mode": "faithful"}),
}


@pytest.mark.parametrize(("method", "parameters"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_no_machine_holds_is_refused_before_it_is_allocated(path, monkeypatch, method, parameters):
    monkeypatch.setattr("hycal.method.machine_bytes", lambda: 2**29)
    rewrite(path, lambda m, t: m.update(method=method, parameters=parameters))
    with pytest.raises(ModelFileError, match=r"must be a whole number in|needs \d+ GiB at least"):
        load(path)


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e308, 1e-320], ids=["huge", "negative", "large", "tiny"])
@pytest.mark.parametrize(("method", "name"), [("HyCal", "gamma"), ("HierarchicalHyCal", "strength"), ("GDA", "alpha")])
def test_a_parameter_beyond_all_reckoning_is_refused(path, method, name, number):
    rewrite(path, lambda m, t: m.update(method=method, parameters={name: number}))
    with pytest.raises(ModelFileError, match="must be a number in"):
        load(path)


def test_other_files_are_refused(tmp_path):
    for name, content in {
        "empty": b"",
        "text": b"not a model",
        "pickle": b"\x80\x04cos\nsystem\n(S'true'\ntR.",
        "huge header": struct.pack("<Q", 2**60) + b"{}",
        "deep": struct.pack("<Q", 200_000) + b"[" * 200_000,
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError):
            load(tmp_path / name)
    save_file({"weights": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="not a hycal model"):
        load(tmp_path / "other.safetensors")


def test_every_flipped_bit_is_noticed(path):
    sound = path.read_bytes()
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(path)


def test_a_large_array_is_checked_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "_PIECE", 64)
    body = np.arange(1000, dtype=np.int64)
    model_file.write(tmp_path / "m", model_file.Content({}, {"body": body}))
    pieces = [hashlib.sha256(body.tobytes()[start : start + 64]).digest() for start in range(0, body.nbytes, 64)]
    assert (tmp_path / "m").read_bytes().endswith(hashlib.sha256(b"".join(pieces)).digest())
    assert np.array_equal(model_file.read(tmp_path / "m").tensors["body"], body)


def test_a_large_file_is_parsed_while_it_is_checked_and_refused_all_the_same(path, monkeypatch):
    content = model_file.read(path)
    monkeypatch.setattr(model_file, "_PIECE", 64)
    model_file.write(path, content)
    assert model_file.read_as(path, lambda content: content.manifest["method"]) == "HyCal"
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)

    def fail(content):
        raise ModelFileError("a fault that follows from the damage")

    for parse in (lambda content: content, fail):
        with pytest.raises(ModelFileError, match="does not fit its checksums"):
            model_file.read_as(path, parse)


def test_a_file_without_its_checksums_is_refused(path):
    tensors, header = load_file(path), safe_open(path, "numpy").metadata()
    del tensors["checksums"]
    save_file(tensors, path, header)
    with pytest.raises(ModelFileError, match="does not fit its checksums"):
        load(path)


@given(st.data())
def test_flipped_bytes_never_do_anything_but_load_or_refuse(data):
    raw = bytearray((GOLDEN / "model-v1.safetensors").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(ModelFileError):
        (Path(folder) / "model").write_bytes(bytes(raw))
        load(Path(folder) / "model").decision_function(np.eye(8))


def test_arrays_are_mapped_and_the_file_may_be_replaced_or_removed(path):
    model = load(path)
    kept = model.records_.ordered[0].samples.rows
    assert not kept.flags.owndata and not kept.flags.writeable
    before = model.decision_function(np.eye(8))
    model.partial_fit(np.eye(8)[:1], ["new"], text={"new": np.eye(8)[0]}).forget("new").save(path)
    path.unlink()
    assert np.array_equal(model.decision_function(np.eye(8)), before)


def test_rows_out_of_order_are_put_in_order(path):
    whole = load(path)
    rewrite(path, lambda m, t: t.update(samples=np.concatenate([t["samples"][:3][::-1], t["samples"][3:]])))
    again = load(path)
    for one, other in zip(whole.records_.ordered, again.records_.ordered, strict=True):
        assert one.samples == other.samples


def test_a_file_replaced_while_it_is_read_is_never_a_mixture(tmp_path, monkeypatch):
    path, rows = tmp_path / "model", np.eye(4, dtype=np.float32)
    HyCal(fusion="image").fit(rows[:2], ["a", "b"]).save(path)
    honest = model_file.safe_open

    def replaced_behind_it(name, **options):
        monkeypatch.undo()
        found = honest(name, **options)
        HyCal(fusion="image").fit(rows, ["a", "b", "c", "d"]).save(path)
        return found

    monkeypatch.setattr(model_file, "safe_open", replaced_behind_it)
    assert load(path).classes_.tolist() == ["a", "b", "c", "d"]
