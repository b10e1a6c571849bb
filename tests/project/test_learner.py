"""The learner: hashes, thumbnails and texts of images, and the encoder of a model."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from hycal.embedding import EmbeddingCache, ImageBytes, ImageFile
from hycal.embedding.decoding import THUMBNAIL_SIDE, decode, thumbnail
from hycal.errors import HyCalError
from hycal.project import Project, empty_state
from hycal.project.answers import answer
from hycal.project.encoder import check_encoder, encoder_space, text_embeddings
from hycal.project.learner import Learner
from hycal.validation import unit_rows
from tests.support.encoders import TinyEncoder
from tests.support.images import make_folder, picture


class Reader(TinyEncoder):
    """A tiny encoder that embeds names, too."""

    has_text = True

    def encode_texts(self, texts):
        self.read = list(texts)
        return np.stack([np.random.default_rng(list(text.encode())).normal(size=self.dimension) for text in texts])


def learner(folder, encoder=None):
    """Return a learner of an empty project."""
    encoder = TinyEncoder() if encoder is None else encoder
    empty = empty_state(encoder_space(encoder), has_text=encoder.has_text)
    return Learner(Project(folder / "zoo.hycal", empty), encoder)


def content(seed: int = 0, size: tuple[int, int] = (300, 200)) -> bytes:
    buffer = io.BytesIO()
    picture(seed, size=size).save(buffer, "PNG")
    return buffer.getvalue()


def test_each_problem_belongs_to_its_image(tmp_path):
    cut = content(2)[:-400]
    sources = [ImageBytes(str(number), data) for number, data in enumerate([cut, content(), b"nothing", b""])]
    problems = learner(tmp_path).embed(sources).problems
    assert list(problems) == [0, 2, 3] and len(set(problems.values())) == 3
    for number in problems:
        assert problems[number] == learner(tmp_path).embed([sources[number]]).problems[0]


def test_images_are_seen_with_their_hashes_and_thumbnails(tmp_path):
    good = content()
    sources = [ImageBytes("a.png", good), ImageBytes("b.png", b"nothing"), ImageBytes("c.png", content(1))]
    embed = learner(tmp_path).embed
    seen = embed(sources, names=["one", "two", "three"])
    assert sorted(seen.examples) == [0, 2] and [item.name for item in seen.skipped] == ["b.png"]
    first = seen.examples[0]
    assert first.key == hashlib.sha256(good).digest() and first.name == "one"
    assert abs(float(first.row @ first.row) - 1) < 1e-6 and first.row.dtype == np.float32
    small = Image.open(io.BytesIO(first.thumbnail))
    assert max(small.size) == THUMBNAIL_SIDE and small.format == "JPEG"
    assert embed(sources, known={first.key}).examples[0].thumbnail == b""
    assert embed(sources, thumbnails=False).examples[2].thumbnail == b""


def test_each_image_is_read_and_decoded_once(tmp_path, monkeypatch):
    class Counted:
        def __init__(self, seed: int) -> None:
            self.name, self.content, self.reads = f"{seed}.png", content(seed), 0

        def read(self) -> bytes:
            self.reads += 1
            return self.content

    opened, open_image = [], Image.open
    monkeypatch.setattr(
        Image, "open", lambda *arguments, **options: opened.append(1) or open_image(*arguments, **options)
    )
    new = learner(tmp_path)
    with EmbeddingCache.of(new.encoder, tmp_path / "cache") as store:
        for encoded in (True, False):  # the second time, every embedding is in the cache
            sources = [Counted(seed) for seed in range(3)]
            new.encoder.calls.clear()
            opened.clear()
            found = new.embed(sources, store=store)
            assert bool(new.encoder.calls) == encoded
            assert [source.reads for source in sources] == [1, 1, 1] and len(opened) == 3
            assert all(example.thumbnail.startswith(b"\xff\xd8") for example in found.examples.values())
        sources = [Counted(seed) for seed in range(3)]
        opened.clear()
        new.embed(sources, store=store, known={example.key for example in found.examples.values()})
        assert [source.reads for source in sources] == [1, 1, 1] and not opened


def test_a_file_that_changes_meanwhile_has_the_thumbnail_of_what_was_embedded(tmp_path):
    class Changing:
        name = "changing.png"
        reads = 0

        def read(self) -> bytes:
            self.reads += 1
            return content(self.reads)

    seen = learner(tmp_path).embed([Changing()])
    assert seen.examples[0].key == hashlib.sha256(content(1)).digest()
    assert seen.examples[0].thumbnail == thumbnail(decode(content(1)))


def test_an_encoder_of_another_space_is_refused():
    state = empty_state(encoder_space(TinyEncoder()), has_text=False)
    check_encoder(state, TinyEncoder())
    for other in (TinyEncoder(seed=1), TinyEncoder(dimension=13)):
        with pytest.raises(HyCalError, match="cannot be compared"):
            check_encoder(state, other)


def test_names_are_learned_with_the_images_where_the_encoder_reads(tmp_path):
    encoder = Reader()
    files = sorted(make_folder(tmp_path / "zoo").rglob("*.png"))
    new = learner(tmp_path, encoder)
    seen = new.embed([ImageFile(file) for file in files])
    arrivals = seen.labelled([f"zoo/{file.parent.name}" for file in files])
    texts = text_embeddings(["zoo/class_0", "zoo/class_1"], encoder)
    assert encoder.read == ["a photo of a class 0.", "a photo of a class 1."]
    with pytest.raises(HyCalError, match="needs a text embedding"):
        new.project.learn(arrivals)
    new.learn(arrivals)
    assert new.project.state.classifier.get_params()["fusion"] == "sum"
    again = Project(tmp_path / "zoo.hycal")
    np.testing.assert_array_equal(again.state.classes["zoo/class_0"].text, texts["zoo/class_0"])
    (best, *_), *_ = answer(again.state, [seen.examples[0].row], why=True)
    assert best.evidence.parts is not None and best.evidence.nearest[0].example.key == seen.examples[0].key
    again.forget("zoo/class_0")
    again.undo()
    np.testing.assert_array_equal(again.state.classes["zoo/class_0"].text, texts["zoo/class_0"])
    again.rename("zoo/class_0", "lion")
    np.testing.assert_array_equal(again.state.classes["zoo/lion"].text, texts["zoo/class_0"])
    assert text_embeddings(["zoo/x"], TinyEncoder()) == {}
    np.testing.assert_allclose(unit_rows(texts["zoo/class_0"][None])[0], texts["zoo/class_0"], atol=1e-7)


def test_without_an_encoder_nothing_is_embedded_and_embedded_images_are_learned_all_the_same(tmp_path):
    images = learner(tmp_path).embed([ImageBytes("a.png", content())])
    project = Project(tmp_path / "zoo.hycal", empty_state(encoder_space(TinyEncoder()), has_text=False))
    blind = Learner(project, None, why_no_encoder="Its weights are missing.")
    with pytest.raises(HyCalError, match=r"cannot be embedded here\. Its weights are missing\."):
        blind.embed([ImageBytes("a.png", content())])
    assert blind.learn(images.labelled(["zoo/cat"])).images == {"zoo/cat": 1}
    assert blind.correct(images.examples[0], "zoo/dog").touched == ("zoo/cat", "zoo/dog")
    assert project.state.labels == ("zoo/dog",)
