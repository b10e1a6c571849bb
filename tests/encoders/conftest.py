from __future__ import annotations

from pathlib import Path

import pytest

from hycal.encoders.catalog import find_encoder
from hycal.encoders.files import locate
from hycal.encoders.loader import load_encoder


@pytest.fixture(scope="session")
def w8():
    spec = find_encoder("clip-vit-b16-w8")
    if locate(spec).missing:
        pytest.skip("needs clip-vit-b16-w8: run `hycal encoders get clip-vit-b16-w8`")
    return load_encoder("clip-vit-b16-w8", backend="onnx", threads=2)


@pytest.fixture(scope="session")
def builtin():
    return load_encoder("builtin", threads=1)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
