"""From images to what a project learns: hashes, thumbnails, texts, and the encoder that belongs to a model."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from hycal.embedding import ImageBytes, ImageFile
from hycal.errors import HyCalError
from hycal.project import Arrival, Project, empty_state
from hycal.project.answers import answer
from hycal.project.images import MOST_BYTES, SIDE, check_encoder, see, space, text_embeddings, thumbnail
from hycal.validation import unit_rows
from tests.embedding.tiny import TinyEncoder, make_folder, picture


class Reader(TinyEncoder):
    """A tiny encoder that embeds names, too."""

    has_text = True

    def encode_texts(self, texts):
        self.read = list(texts)
        return np.stack([np.random.default_rng(list(text.encode())).normal(size=self.dimension) for text in texts])


def content(seed: int = 0, size: tuple[int, int] = (300, 200)) -> bytes:
    buffer = io.BytesIO()
    picture(seed, size=size).save(buffer, "PNG")
    return buffer.getvalue()


def test_images_are_seen_with_their_hashes_and_thumbnails():
    good = content()
    sources = [ImageBytes("a.png", good), ImageBytes("b.png", b"nothing"), ImageBytes("c.png", content(1))]
    seen = see(sources, TinyEncoder(), names=["one", "two", "three"])
    assert sorted(seen.examples) == [0, 2] and [item.name for item in seen.skipped] == ["b.png"]
    first = seen.examples[0]
    assert first.key == hashlib.sha256(good).digest() and first.name == "one"
    assert abs(float(first.row @ first.row) - 1) < 1e-6 and first.row.dtype == np.float32
    small = Image.open(io.BytesIO(first.thumbnail))
    assert max(small.size) == SIDE and small.format == "JPEG"
    assert see(sources, TinyEncoder(), known={first.key}).examples[0].thumbnail == b""
    assert see(sources, TinyEncoder(), thumbnails=False).examples[2].thumbnail == b""


def test_thumbnails_are_small_whatever_the_image(tmp_path):
    noise = thumbnail(content(size=(500, 500)))
    assert len(noise) <= MOST_BYTES
    flat = io.BytesIO()
    Image.new("RGB", (1900, 20), "red").save(flat, "JPEG")
    assert Image.open(io.BytesIO(thumbnail(flat.getvalue()))).size == (96, 1)
    upright = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by a quarter
    Image.new("RGB", (400, 200), "red").save(upright, "JPEG", exif=exif)
    assert Image.open(io.BytesIO(thumbnail(upright.getvalue()))).size == (48, 96)


def test_a_file_that_changes_meanwhile_gets_no_thumbnail_of_its_new_content(tmp_path):
    class Changing:
        name = "changing.png"
        reads = 0

        def read(self) -> bytes:
            self.reads += 1
            return content(self.reads)

    seen = see([Changing()], TinyEncoder())
    assert seen.examples[0].key == hashlib.sha256(content(1)).digest() and seen.examples[0].thumbnail == b""


def test_an_encoder_of_another_space_is_refused():
    state = empty_state(space(TinyEncoder()), has_text=False)
    check_encoder(state, TinyEncoder())
    for other in (TinyEncoder(seed=1), TinyEncoder(dimension=13)):
        with pytest.raises(HyCalError, match="cannot be compared"):
            check_encoder(state, other)


def test_names_are_learned_with_the_images_where_the_encoder_reads(tmp_path):
    encoder = Reader()
    files = sorted(make_folder(tmp_path / "zoo").rglob("*.png"))
    seen = see([ImageFile(file) for file in files], encoder)
    arrivals = [Arrival(f"zoo/{files[n].parent.name}", example) for n, example in seen.examples.items()]
    texts = text_embeddings(["zoo/class_0", "zoo/class_1"], encoder)
    assert encoder.read == ["a photo of a class 0.", "a photo of a class 1."]
    project = Project(tmp_path / "zoo.hycal", empty_state(space(encoder), has_text=True))
    with pytest.raises(HyCalError, match="needs a text embedding"):
        project.learn(arrivals)
    project.learn(arrivals, texts)
    assert project.state.classifier.get_params()["fusion"] == "sum"
    again = Project(tmp_path / "zoo.hycal")
    np.testing.assert_array_equal(again.state.shelves["zoo/class_0"].text, texts["zoo/class_0"])
    (best, *_), *_ = answer(again.state, [seen.examples[0].row], why=True)
    assert best.evidence.parts is not None and best.evidence.nearest[0].example.key == seen.examples[0].key
    again.forget("zoo/class_0")
    again.undo()
    np.testing.assert_array_equal(again.state.shelves["zoo/class_0"].text, texts["zoo/class_0"])
    again.rename("zoo/class_0", "lion")
    np.testing.assert_array_equal(again.state.shelves["zoo/lion"].text, texts["zoo/class_0"])
    assert text_embeddings(["zoo/x"], TinyEncoder()) == {}
    np.testing.assert_allclose(unit_rows(texts["zoo/class_0"][None])[0], texts["zoo/class_0"], atol=1e-7)
