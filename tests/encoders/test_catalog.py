from __future__ import annotations

from pathlib import Path

import pytest

from hycal.encoders import catalog, installation
from hycal.encoders.catalog import find_encoder, find_parts, list_encoders
from hycal.encoders.files import layouts, locate
from hycal.encoders.golden import embed_golden
from hycal.encoders.installation import install
from hycal.encoders.loader import fingerprint, load_encoder
from hycal.encoders.preprocessing import Preprocessing
from hycal.encoders.status import check_files
from hycal.errors import HyCalError
from tests.encoders import small_clip
from tests.support.contributing import table_entry

SPECS = list_encoders()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_entries_are_complete(spec) -> None:
    assert (spec.repo is not None) == (spec.kind == "hub")
    assert (spec.wheel is not None) == (spec.kind == "wheel")
    assert spec.dimension > 0
    assert spec.licence
    assert set(spec.files) - {"tokenizer"} in ({"image"}, {"image", "text"}, {"weights", "config"})
    assert ("text" in spec.files) <= spec.has_text
    assert spec.wheel is None or spec.wheel.rewrite in (None, *installation._REWRITES)
    assert all(set(layout) for layout in layouts(spec))


def test_dimensions_of_the_published_encoders() -> None:
    names = ("clip-vit-b16", "clip-vit-b32", "datacomp-vit-b16", "clip-vit-b16-w8", "builtin")
    assert {spec.name: spec.dimension for spec in SPECS}.items() >= dict.fromkeys(names, 512).items()


def test_an_encoder_is_added_by_one_entry(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog._table()
    added = table_entry("Add an encoder")["encoder"]
    monkeypatch.setattr(catalog, "_table", lambda: {"encoder": [*table["encoder"], *added]})
    name = list_encoders()[-1].name
    assert not check_files(find_encoder(name)).ready
    install(name, weights=small_clip.write_transformers(tmp_path, activation="quick_gelu"))
    assert check_files(find_encoder(name)).ready
    encoder = load_encoder(name)
    assert encoder.has_text and encoder.encode_texts(["a cat"]).shape == embed_golden(encoder)[:1].shape


def test_names_are_unique() -> None:
    assert len({spec.name for spec in SPECS}) == len(SPECS)


def test_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(HyCalError, match=r"no encoder 'clip-vitb16'.*Did you mean 'clip-vit-b16'\?"):
        find_encoder("clip-vitb16")
    with pytest.raises(HyCalError, match="is empty"):
        find_parts("builtin+")


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.kind != "bundled"], ids=lambda spec: spec.name)
def test_missing_files_are_named_with_place_and_two_ways(spec, empty_cache: Path) -> None:
    with pytest.raises(HyCalError) as caught:
        load_encoder(spec.name)
    message = str(caught.value)
    for name in spec.files.values():
        assert Path(name).name in message
    assert str(empty_cache / "encoders" / spec.name) in message
    assert f"hycal encoders get {spec.name}" in message
    assert "--weights" in message


def test_a_folder_may_be_flat(tmp_path: Path) -> None:
    (tmp_path / "text_model.onnx").touch()
    assert locate(find_encoder("clip-vit-b16"), weights=tmp_path).found["text"] == tmp_path / "text_model.onnx"


def test_backend_that_an_encoder_does_not_have() -> None:
    with pytest.raises(HyCalError, match="'builtin' has no back end 'open_clip'; expected one of onnx"):
        load_encoder("builtin", backend="open_clip")


def test_fingerprint_changes_with_each_part() -> None:
    seen = {
        fingerprint(parts=parts, preprocessing=preprocessing)
        for parts in ({"image": "a"}, {"image": "b"}, {"image": "a", "tokenizer": "c"})
        for preprocessing in (Preprocessing(), Preprocessing(interpolation="bilinear"), Preprocessing(resize=256))
    }
    assert len(seen) == 9
