"""What every back end shares: shapes, unit rows, refusal of what cannot be an embedding, texts in small parts."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from hycal.encoders import Encoder
from hycal.encoders.encoder import Rows, TowerEncoder, Towers
from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError
from hycal.validation import Floats


def encoder(
    image: Callable[[Floats], Rows] = lambda pixels: pixels[:, :, 0, 0],
    text: Callable[[Sequence[str]], Rows] | None = None,
) -> TowerEncoder:
    return TowerEncoder(
        name="toy",
        dimension=3,
        fingerprint="f",
        preprocessing=Preprocessing(size=2),
        towers=Towers(image, text),
        no_text="toy has no words",
    )


def batch(*pixels: tuple[float, float, float]) -> Floats:
    return np.tile(np.array(pixels, dtype=np.float32).reshape(-1, 3, 1, 1), (1, 1, 2, 2))


def test_rows_are_unit() -> None:
    toy = encoder()
    assert isinstance(toy, Encoder) and not toy.has_text
    np.testing.assert_allclose(toy.encode(batch((3, 0, 4), (0, 2, 0))), [[0.6, 0, 0.8], [0, 1, 0]], atol=1e-7)
    assert toy.encode(batch()).shape == (0, 3)


def test_other_batches_are_refused() -> None:
    for shape in [(3, 2, 2), (1, 3, 2, 3), (1, 1, 2, 2)]:
        with pytest.raises(HyCalError, match=r"expected \(n, 3, 2, 2\). Stack the results of `preprocess`"):
            encoder().encode(np.ones(shape, dtype=np.float32))


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_vectors_without_a_direction_are_refused(value: float) -> None:
    with pytest.raises(HyCalError, match="zero or not finite"):
        encoder(lambda pixels: np.full((len(pixels), 3), value)).encode(batch((1, 1, 1)))


@pytest.mark.parametrize("shape", [(1, 4), (1, 3, 1), (3,)])
def test_another_dimension_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(HyCalError, match=r"expected \(n, 3\)"):
        encoder(lambda pixels: np.ones(shape)).encode(batch((1, 1, 1)))


def test_texts_come_in_small_parts_and_their_order() -> None:
    sizes: list[int] = []

    def tower(texts: Sequence[str]) -> Rows:
        sizes.append(len(texts))
        return np.array([[float(text), 1.0, 0.0] for text in texts])

    toy = encoder(text=tower)
    rows = toy.encode_texts([str(number) for number in range(150)])
    np.testing.assert_allclose(rows[:, 0] / rows[:, 1], np.arange(150), rtol=1e-4)
    assert max(sizes) <= 64 and sum(sizes) == 150
    assert toy.has_text and toy.encode_texts([]).shape == (0, 3)
    with pytest.raises(HyCalError, match="no words"):
        encoder().encode_texts([])
