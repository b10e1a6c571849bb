"""`hycal forget`: the model becomes the one that never saw a class, a domain or an image."""

from __future__ import annotations

import pytest

from hycal.embedding import EmbeddingCache
from hycal.embedding.sources import content_hash
from hycal.encoders import load_encoder
from tests.support.commands import hycal, hycal_error, hycal_json


@pytest.fixture
def first(photos):
    """A learned image."""
    return min((photos / "low" / "0").iterdir())


def test_a_forgotten_domain_was_never_learned(model, low_model):
    forgotten = hycal_json("forget", model, "tall")
    assert forgotten["after"] == hycal_json("info", low_model)["hash"] and forgotten["undoable"]
    assert hycal_json("diff", model, low_model)["equal"]


def test_people_are_told_that_undo_can_bring_it_back(model):
    assert "`hycal undo` reverses this; after --for-good nothing can" in hycal("forget", model, "tall/7")


def test_an_image_is_forgotten_by_its_file(model, first):
    assert hycal_json("forget", model, first)["images"] == {"low/0": 1}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache that this test alone clears."""
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


def test_for_good_clears_the_undo_and_the_cache(own_cache, photos, tmp_path, first):
    model, encoder = tmp_path / "m.hycal", load_encoder("builtin")
    hycal("learn", model, photos / "low")
    hycal("learn", model, photos / "high")
    hycal("forget", model, "high")
    with EmbeddingCache.of(encoder, own_cache) as store:
        cached = store.known()
        assert content_hash(first.read_bytes()) in cached
    lost = hycal_json("forget", model, first, "--for-good")
    high = list((photos / "high").rglob("*.png"))
    assert lost["images"] == {"low/0": 1} and lost["removed_from_cache"] == 1 + len(high), "held by the undo until now"
    with EmbeddingCache.of(encoder, own_cache) as store:
        assert store.known() == cached - {content_hash(path.read_bytes()) for path in (first, *high)}
    hycal("undo", model, code=1)


def test_people_are_told_how_many_embeddings_left_the_cache(own_cache, photos, tmp_path, first):
    hycal("learn", tmp_path / "m.hycal", photos / "low")
    said = hycal("forget", tmp_path / "m.hycal", first, "--for-good")
    assert "Nothing of what was forgotten is left in the file; the undo is empty." in said
    assert f"1 embeddings were removed from the cache {own_cache}." in said


def test_a_cache_that_cannot_be_cleared_leaves_the_model_as_it_was(model, first, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "index.sqlite").write_text("no database")
    before = model.read_bytes()
    hycal("forget", model, first, "--for-good", "--cache", damaged, code=1)
    assert model.read_bytes() == before


def test_an_error_says_what_to_do(low_model, photos):
    before = low_model.read_bytes()
    assert "Did you mean 'low/1'" in hycal_error("forget", low_model, "low/11")
    assert "does not know the image" in hycal_error("forget", low_model, next((photos / "high" / "7").glob("*.png")))
    assert low_model.read_bytes() == before
