"""Several encoders as one: order, widths, fingerprints, rows, texts, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from PIL import Image

from hycal.encoders import CombinedEncoder, Encoder, load_encoder
from hycal.encoders.catalog import find_parts
from hycal.encoders.encoder import MissingEncoder
from hycal.encoders.golden import golden_images
from hycal.errors import HyCalError
from tests.encoders.small_clip import write_transformers
from tests.support.encoders import TinyEncoder

ABSENT = MissingEncoder("absent", 3, "f-absent", "It is not here.")


@pytest.fixture
def clip(tmp_path, monkeypatch):
    """A small CLIP with a text tower, where the user's clip-vit-b32 would be."""
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path))
    write_transformers(tmp_path / "encoders" / "clip-vit-b32", activation="quick_gelu")
    return load_encoder("clip-vit-b32", threads=1)


def test_a_row_has_the_unit_vectors_of_its_parts_in_the_order_of_their_names(clip, builtin):
    combined = load_encoder("clip-vit-b32 + builtin", threads=1)
    assert isinstance(combined, Encoder) and isinstance(combined, CombinedEncoder)
    assert combined.name == load_encoder("builtin+clip-vit-b32").name == "builtin+clip-vit-b32"
    assert (combined.views, combined.dimension, combined.has_text) == ((512, 512), 1024, True)
    assert combined.fingerprint == f"{builtin.fingerprint}+{clip.fingerprint}"
    images = golden_images()
    rows = combined.encode(np.stack([combined.preprocess(image) for image in images]))
    for part, own in ((builtin, rows[:, :512]), (clip, rows[:, 512:])):
        np.testing.assert_array_equal(own, part.encode(np.stack([part.preprocess(image) for image in images])))


def test_texts_are_embedded_by_the_part_with_a_text_tower_alone(clip):
    combined = load_encoder("builtin+clip-vit-b32")
    texts = combined.encode_texts(["a cat", "a photo"])
    assert not texts[:, :512].any()
    np.testing.assert_array_equal(texts[:, 512:], clip.encode_texts(["a cat", "a photo"]))
    assert combined.encode_texts([]).shape == (0, 1024)
    with pytest.raises(HyCalError, match="No part of the encoder 'builtin\\+tiny-0' has a text tower"):
        CombinedEncoder([load_encoder("builtin"), TinyEncoder()]).encode_texts(["a cat"])


def test_parts_of_any_input_size_are_preprocessed_from_one_image_and_can_be_pickled(builtin):
    tiny = TinyEncoder()
    combined = CombinedEncoder([tiny, builtin])
    image = Image.new("RGB", (50, 40), "teal")
    flat = pickle.loads(pickle.dumps(combined.preprocess))(image)
    assert flat.shape == (3 * 224 * 224 + 3 * 8 * 8,)
    np.testing.assert_array_equal(flat[-192:], tiny.preprocess(image).ravel())
    with pytest.raises(HyCalError, match="expected 150720 numbers for each image"):
        combined.encode(flat[None, 1:])


def test_a_part_that_is_not_here_is_zeros(builtin):
    combined = CombinedEncoder([builtin, ABSENT])
    assert (combined.name, combined.views, combined.missing) == ("absent+builtin", (3, 512), (ABSENT,))
    row = combined.encode(combined.preprocess(golden_images()[0])[None])[0]
    assert not row[:3].any() and np.linalg.norm(row[3:]) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(HyCalError, match=r"^It is not here\.$"):
        CombinedEncoder([ABSENT, MissingEncoder("other", 4, "f", "It is not here.")])


@pytest.mark.parametrize("parts", [[], [TinyEncoder()], [TinyEncoder(), TinyEncoder()]])
def test_two_different_parts_are_needed(parts):
    with pytest.raises(HyCalError, match="expected two or more different ones"):
        CombinedEncoder(parts)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("builtin+builtin", "'builtin' stands twice in"),
        ("BUILTIN+ builtin", "'builtin' stands twice in"),
        ("builtin+clip-vit-b61", "no encoder 'clip-vit-b61'.*Did you mean"),
        ("builtin+", "name of an encoder is empty"),
        ("+", "name of an encoder is empty"),
    ],
)
def test_a_name_is_refused_that_names_a_part_twice_or_one_that_there_is_not(name, said):
    with pytest.raises(HyCalError, match=said):
        load_encoder(name)


def test_a_part_that_is_not_installed_is_named_with_what_to_do(empty_cache):
    with pytest.raises(HyCalError, match=r"of encoder 'clip-vit-b16'.*hycal encoders get clip-vit-b16"):
        load_encoder("builtin+clip-vit-b16")
    with pytest.raises(
        HyCalError, match=r"--weights has the files of one encoder, and 'builtin\+clip-vit-b16' names 2"
    ):
        load_encoder("builtin+clip-vit-b16", weights=empty_cache)


def test_one_name_is_one_part():
    assert [spec.name for spec in find_parts("builtin")] == ["builtin"]
