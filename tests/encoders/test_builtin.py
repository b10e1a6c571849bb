from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from hycal.encoders import Encoder
from hycal.encoders.catalog import find_encoder
from hycal.encoders.files import encoder_dir
from hycal.encoders.golden import check_golden, embed_golden, golden_images
from hycal.errors import HyCalError


def test_follows_the_protocol(builtin) -> None:
    assert isinstance(builtin, Encoder)
    assert not builtin.has_text
    rows = embed_golden(builtin)
    assert rows.shape == (4, 512)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_golden_vectors(builtin) -> None:
    assert check_golden(builtin, tolerance=0.999) > 0.9999


def test_rows_do_not_depend_on_their_neighbours(builtin) -> None:
    pixels = np.stack([builtin.preprocess(image) for image in golden_images()])
    alone = np.concatenate([builtin.encode(row[None]) for row in pixels])
    np.testing.assert_array_equal(builtin.encode(pixels), alone)


def test_no_texts(builtin) -> None:
    with pytest.raises(HyCalError, match="fusion='image'"):
        builtin.encode_texts(["a cat"])


def test_golden_vectors_notice_another_model(builtin) -> None:
    class Mirrored:
        name = "builtin"
        preprocess = staticmethod(builtin.preprocess)

        def encode(self, batch):
            return builtin.encode(-batch)

    with pytest.raises(HyCalError, match="disagrees with its golden vectors: the smallest cosine is"):
        check_golden(Mirrored(), tolerance=0.999)


def test_size() -> None:
    spec = find_encoder("builtin")
    assert (encoder_dir(spec) / spec.files["image"]).stat().st_size < 13e6


def test_the_runtime_reports_to_nobody(tmp_path) -> None:
    """Where it would report, ONNX Runtime keeps a number of the machine and a database of events in the home folder."""
    environment = dict(os.environ, HOME=str(tmp_path))
    for name in ("XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY"):
        environment.pop(name, None)
    code = "from hycal.encoders import load_encoder; load_encoder('builtin')"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
