"""A combined encoder in the pipeline: one decoding, a cache by part, and parts that are not here."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from hycal.embedding import EmbeddingCache, ImageBytes, ImageFile, embed, embed_sharded, pipeline
from hycal.embedding.cache import open_cache
from hycal.embedding.pipeline import stream
from hycal.embedding.preparation import Workers, prepare
from hycal.encoders.encoder import CombinedEncoder, MissingEncoder
from hycal.errors import HyCalError
from tests.support.encoders import ColourEncoder, TinyEncoder
from tests.support.images import file_of, make_folder, picture


@pytest.fixture
def sources(tmp_path):
    return [ImageFile(path) for path in sorted(make_folder(tmp_path / "images").rglob("*")) if path.is_file()]


def encoded(tiny: TinyEncoder) -> int:
    """How many images a tiny encoder has encoded so far."""
    return sum(shape[0] for shape in tiny.calls)


def test_rows_are_those_of_the_parts_side_by_side_and_images_are_decoded_once(sources):
    tiny, colour = TinyEncoder(), ColourEncoder()
    decoded = []

    def counting(content, order):
        decoded.append(content)
        return prepare(content, order)

    both = embed(sources, CombinedEncoder([tiny, colour]), preparing=counting)
    assert len(decoded) == len(sources)
    alone = [embed(sources, one) for one in (colour, tiny)]
    np.testing.assert_array_equal(both.rows, np.hstack([one.rows for one in alone]))
    assert both.keys == alone[0].keys and both.skipped == alone[0].skipped
    assert both.encoded == len(set(both.keys)) == alone[0].encoded
    streamed = list(stream(sources, CombinedEncoder([tiny, colour])))
    np.testing.assert_array_equal([one.row for one in streamed if one.row is not None], both.rows)


def test_adding_a_part_embeds_that_part_alone(sources, tmp_path):
    first, second = TinyEncoder(seed=1), TinyEncoder(seed=2, dimension=5)
    with EmbeddingCache.of(first, tmp_path / "cache") as store:
        alone = embed(sources, first, store=store)
    before = encoded(first)
    both = CombinedEncoder([first, second])
    with open_cache(both, tmp_path / "cache") as store:
        joined = embed(sources, both, store=store)
        assert len(store) == alone.encoded
    assert encoded(first) == before and encoded(second) == alone.encoded == joined.encoded
    np.testing.assert_array_equal(joined.rows[:, :12], alone.rows)
    with open_cache(both, tmp_path / "cache") as store:
        again = embed(sources, both, store=store)
    assert (again.encoded, encoded(first), encoded(second)) == (0, before, alone.encoded)
    np.testing.assert_array_equal(again.rows, joined.rows)


def test_each_part_goes_on_where_it_was(sources, tmp_path):
    first, second = TinyEncoder(seed=1), TinyEncoder(seed=2)
    with EmbeddingCache.of(first, tmp_path) as store:
        embed(sources[:3], first, store=store)
    with EmbeddingCache.of(second, tmp_path) as store:
        embed(sources[2:], second, store=store)
    known = encoded(first) + encoded(second)
    both = CombinedEncoder([first, second])
    with open_cache(both, tmp_path) as store:
        result = embed(sources, both, store=store)
    distinct = len(set(result.keys))
    assert encoded(first) + encoded(second) == 2 * distinct and known < 2 * distinct
    assert result.encoded < distinct  # the images that both had are not counted


def test_a_part_that_is_not_here_is_zeros_and_the_cache_of_the_others_is_used(sources, tmp_path):
    tiny = TinyEncoder()
    partial = CombinedEncoder([tiny, MissingEncoder("absent", 4, "f-absent", "It is not here.")])
    with open_cache(partial, tmp_path) as store:
        rows = embed(sources, partial, store=store).rows
    assert not rows[:, :4].any()
    with EmbeddingCache.of(tiny, tmp_path) as store:
        assert embed(sources, tiny, store=store).encoded == 0
        np.testing.assert_array_equal(embed(sources, tiny, store=store).rows, rows[:, 4:])


def test_workers_prepare_the_inputs_of_all_parts(sources):
    made, both = Workers(), CombinedEncoder([TinyEncoder(), ColourEncoder()])
    try:
        found = embed(sources, both, preparing=made.prepare)
    finally:
        made.close()
    np.testing.assert_array_equal(found.rows, embed(sources, both).rows)


def test_on_a_cluster_each_part_comes_in_turn(sources, tmp_path):
    both = CombinedEncoder([TinyEncoder(seed=1), TinyEncoder(seed=2)])
    with open_cache(both, tmp_path) as store:
        found = embed_sharded(sources, Loader(), store=store, cluster="local:1")
    expected = embed(sources, both)
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert (found.keys, set(found.skipped)) == (expected.keys, set(expected.skipped))
    assert found.kept.tolist() == expected.kept.tolist()


class Loader:
    """Loads a combined encoder in a worker."""

    def __call__(self):
        return CombinedEncoder([TinyEncoder(seed=1), TinyEncoder(seed=2)])


class PickyEncoder(TinyEncoder):
    """Refuses bright images."""

    def encode(self, batch):
        if (batch.mean(axis=(1, 2, 3)) > 0.4).any():
            raise HyCalError("too bright")
        return super().encode(batch)


def test_an_image_that_one_part_refuses_is_skipped_once():
    white, noise = (file_of(image, "PNG") for image in (Image.new("RGB", (9, 9), "white"), picture(1)))
    images = [ImageBytes("white", white), ImageBytes("noise", noise)]
    found = embed(images, CombinedEncoder([PickyEncoder(seed=1), TinyEncoder()]))
    assert [skip.name for skip in found.skipped] == ["white"] and "too bright" in found.skipped[0].reason
    assert (len(found.rows), found.encoded) == (1, 1)


def test_a_store_of_other_parts_is_refused(sources, tmp_path):
    both = CombinedEncoder([TinyEncoder(seed=1), TinyEncoder(seed=2)])
    with open_cache(both, tmp_path) as store, pytest.raises(HyCalError, match="open the cache with `open_cache"):
        pipeline.embed(sources, CombinedEncoder([TinyEncoder(seed=1), TinyEncoder(seed=3)]), store=store)
