import io
import os
import shutil
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hycal.embedding import EmbeddingCache, ImageBytes, ImageFile, ImageRow, embed
from hycal.embedding.sources import ImageSource, image_files
from hycal.embedding.store import Tick
from hycal.errors import HyCalError
from hycal.validation import Floats
from tests.support.encoders import TinyEncoder
from tests.support.images import file_of, giant_png, make_folder, make_mixed_folder, picture


def sources_in(folder: Path) -> list[ImageSource]:
    return [ImageFile(path) for path in image_files(folder)]


def test_rows_are_the_encoders_rows_in_order(tmp_path: Path) -> None:
    sources = sources_in(make_folder(tmp_path))
    encoder = TinyEncoder()
    result = embed(sources, encoder, batch=4)
    alone = [encoder.encode(encoder.preprocess(picture(1000 * c + i))[None])[0] for c in range(2) for i in range(5)]
    assert np.allclose(result.rows, alone, atol=1e-6)
    assert result.kept.tolist() == list(range(10)) and result.encoded == 10 and not result.skipped


def test_a_row_does_not_depend_on_the_rest_of_the_run(tmp_path: Path) -> None:
    sources = sources_in(make_folder(tmp_path, images=20))
    whole = embed(sources, TinyEncoder()).rows
    order = np.random.default_rng(0).permutation(len(sources))
    assert embed([sources[i] for i in order], TinyEncoder()).rows.tobytes() == whole[order].tobytes()
    assert embed(sources[17:18], TinyEncoder()).rows.tobytes() == whole[17:18].tobytes()


def test_batches_are_full_except_the_last(tmp_path: Path) -> None:
    encoder = TinyEncoder()
    embed(sources_in(make_folder(tmp_path)), encoder, batch=4)
    assert [shape[0] for shape in encoder.calls] == [4, 4, 2]


class Threaded(TinyEncoder):
    """Notes the threads that prepare images for it."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def preprocess(self, image: Image.Image) -> Floats:
        self.threads.add(threading.get_ident())
        return super().preprocess(image)


def test_threads_are_kept_from_run_to_run(tmp_path: Path) -> None:
    sources, encoder = sources_in(make_folder(tmp_path, classes=2, images=8)), Threaded()
    for _ in range(20):
        embed(sources, encoder, threads=2)
    assert len(encoder.threads) <= 2


def test_a_run_that_ends_early_leaves_nothing_to_do(tmp_path: Path) -> None:
    begun: list[str] = []

    class Slow:
        def __init__(self, name: str) -> None:
            self.name = name

        def read(self) -> bytes:
            begun.append(self.name)
            return file_of(picture(len(begun)), "PNG")

    def refuse(tick: Tick) -> None:
        raise KeyboardInterrupt

    sources = [Slow(str(number)) for number in range(500)]
    with pytest.raises(KeyboardInterrupt):
        embed(sources, TinyEncoder(), threads=1, batch=2, watch=refuse)
    left = len(begun)
    assert left < 20
    assert len(embed(sources_in(make_folder(tmp_path)), TinyEncoder(), threads=1).rows) == 10
    assert len(begun) == left


def test_a_second_run_encodes_nothing_even_after_renaming(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "images")
    encoder = TinyEncoder()
    with EmbeddingCache.of(encoder, tmp_path / "cache") as cache:
        first = embed(sources_in(folder), encoder, store=cache)
    (folder / "class_0").rename(folder / "class_9")
    shutil.copy(folder / "class_9" / "000.png", folder / "class_9" / "copy.png")
    with EmbeddingCache.of(encoder, tmp_path / "cache") as cache:
        second = embed(sources_in(folder), encoder, store=cache)
    assert second.encoded == 0
    assert np.array_equal(second.rows, first.rows[[5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 0]])


def test_duplicates_are_encoded_once(tmp_path: Path) -> None:
    sources = sources_in(make_folder(tmp_path)) * 7
    result = embed(sources, TinyEncoder(), batch=4)
    assert result.encoded == 10 and len(result.rows) == 70


def test_a_cache_of_another_encoder_is_refused(tmp_path: Path) -> None:
    with (
        EmbeddingCache.of(TinyEncoder(seed=1), tmp_path) as cache,
        pytest.raises(HyCalError, match="two encoders cannot be compared"),
    ):
        embed([], TinyEncoder(seed=2), store=cache)


def test_no_sources_give_no_rows() -> None:
    result = embed([], TinyEncoder())
    assert result.rows.shape == (0, 12) and result.kept.shape == (0,)


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    ticks: list[Tick] = []
    embed(sources_in(make_folder(tmp_path, images=100)), TinyEncoder(), watch=ticks.append)
    assert ticks[-1] == Tick(done=200, total=200, encoded=200, skipped=0)
    assert [tick.done for tick in ticks] == sorted(tick.done for tick in ticks) and len(ticks) > 5


def test_rows_of_arrays(tmp_path: Path) -> None:
    pixels = np.stack([np.asarray(picture(i)) for i in range(3)])
    sources: list[ImageSource] = [ImageRow(pixels, i, "train.h5") for i in range(3)]
    sources.append(ImageRow(pixels.astype(np.float64), 1, "bad.h5"))
    result = embed(sources, TinyEncoder())
    assert len(result.rows) == 3
    assert [(skip.name, "uint8" in skip.reason) for skip in result.skipped] == [("bad.h5[1]", True)]


class BlindEncoder(TinyEncoder):
    """Gives nothing for dark images, as an overflowing network might."""

    def encode(self, batch: np.ndarray) -> np.ndarray:
        rows = super().encode(batch)
        rows[batch.mean(axis=(1, 2, 3)) < -0.4] = np.nan
        return rows


def test_rows_that_are_not_finite_are_reported(tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "dark.png")
    picture(1).save(tmp_path / "good.png")
    result = embed(sources_in(tmp_path), BlindEncoder())
    assert result.kept.tolist() == [1] and "finite" in result.skipped[0].reason


class StrictEncoder(TinyEncoder):
    """Refuses a batch with a dark image in it, as ONNX encoders refuse one with a row that is not finite."""

    def encode(self, batch: np.ndarray) -> np.ndarray:
        if (batch.mean(axis=(1, 2, 3)) < -0.4).any():
            raise HyCalError("not finite")
        return super().encode(batch)


def test_an_image_that_spoils_its_batch_is_reported_alone(tmp_path: Path) -> None:
    make_folder(tmp_path)
    Image.new("RGB", (9, 9)).save(tmp_path / "dark.png")
    result = embed(sources_in(tmp_path), StrictEncoder())
    assert len(result.rows) == 10 and [Path(skip.name).name for skip in result.skipped] == ["dark.png"]


def make_dark_folder(root: Path) -> None:
    for red in range(2):
        Image.new("RGB", (9, 9), (red, 0, 0)).save(root / f"{red}.png")


def test_images_are_skipped_also_where_the_encoder_refuses_them_all(tmp_path: Path) -> None:
    make_dark_folder(tmp_path)
    result = embed(sources_in(tmp_path), StrictEncoder())
    assert len(result.skipped) == 2 and "the encoder refused it: not finite" in result.skipped[0].reason


class BrokenEncoder(TinyEncoder):
    def encode(self, batch: np.ndarray) -> np.ndarray:
        raise HyCalError("no weights")


def test_an_encoder_that_refuses_everything_stops_the_run(tmp_path: Path) -> None:
    make_dark_folder(tmp_path)
    with pytest.raises(HyCalError, match="no weights"):
        embed(sources_in(tmp_path), BrokenEncoder())


def test_what_was_encoded_before_a_failure_is_kept(tmp_path: Path) -> None:
    class Failing(TinyEncoder):
        def encode(self, batch: np.ndarray) -> np.ndarray:
            if len(self.calls) == 2:
                raise RuntimeError("out of memory")
            return super().encode(batch)

    sources = sources_in(make_folder(tmp_path / "images", images=10))
    encoder = Failing()
    with EmbeddingCache.of(encoder, tmp_path / "cache") as cache:
        with pytest.raises(RuntimeError, match="out of memory"):
            embed(sources, encoder, store=cache, batch=4)
        assert len(cache) == 8


def test_a_folder_of_everything_ends_with_every_good_image_and_every_reason(tmp_path: Path) -> None:
    good, bad = make_mixed_folder(tmp_path)
    sources = sources_in(tmp_path)
    result = embed(sources, TinyEncoder(), batch=4)
    assert {Path(sources[i].name).name for i in result.kept} == good
    assert {Path(skip.name).name for skip in result.skipped} == bad
    assert all(skip.reason for skip in result.skipped)
    reasons = {Path(skip.name).name: skip.reason for skip in result.skipped}
    assert reasons["empty.jpg"] == "empty file (0 bytes)"
    assert reasons["giant.png"] == "more pixels than the limit of 100,000,000"
    assert "truncated" in reasons["truncated.jpg"] and "regular file" in reasons["pipe.jpg"]


def test_an_image_beyond_the_limit_has_one_reason_and_no_warning() -> None:
    """Pillow warns of a picture of 108 million pixels, and names the line of its caller."""
    with warnings.catch_warnings(record=True) as raw:
        warnings.simplefilter("always")
        result = embed([ImageBytes("phone.png", giant_png(10_400))], TinyEncoder())
    assert [skip.reason for skip in result.skipped] == ["10400 x 10400 is 108,160,000 pixels; the limit is 100,000,000"]
    assert not raw


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="does not exist"):
        image_files(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(io.BytesIO().getvalue())
    with pytest.raises(HyCalError, match="is a file"):
        image_files(tmp_path / "file")


def test_a_folder_that_may_not_be_opened_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder(tmp_path)
    scan = os.scandir

    def closed(path: Path) -> object:
        if Path(path).name == "class_1":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    result = embed(sources_in(tmp_path), TinyEncoder())
    assert len(result.rows) == 5
    assert [(Path(skip.name).name, skip.reason) for skip in result.skipped] == [
        ("class_1", "a folder that may not be opened")
    ]


def test_a_row_that_cannot_be_read_is_reported() -> None:
    class Damaged:
        def __getitem__(self, index: int) -> None:
            raise OSError("can't read data (inflate() failed)")

    result = embed([ImageRow(Damaged(), 3, "x.h5")], TinyEncoder())
    assert result.skipped[0].name == "x.h5[3]" and "inflate" in result.skipped[0].reason
