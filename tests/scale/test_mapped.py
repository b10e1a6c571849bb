"""Class means that are scored from a mapped file."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, SLDA, HyCalError, ModelFileError, load
from hycal.scale import mapped
from hycal.scale.mapped import MappedMeans


@pytest.fixture(params=["cosine", "euclidean"])
def model(request):
    rng = np.random.default_rng(0)
    return NCM(metric=request.param).fit(rng.normal(size=(60, 8)), np.repeat(np.arange(20), 3)).seal()


@pytest.mark.parametrize("precision", ["single", "half"])
def test_the_answers_are_those_of_the_loaded_model(model, precision, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_AT_ONCE", 7)
    model.save(tmp_path / "model", precision=precision)
    queries = np.random.default_rng(1).normal(size=(9, 8))
    found, loaded = MappedMeans(tmp_path / "model").best(queries, top=3), load(tmp_path / "model")
    chances = loaded.predict_proba(queries)
    order = np.argsort(-loaded.class_scores(queries), axis=1, kind="stable")[:, :3]
    assert found.labels == loaded.classes_[order].tolist()
    np.testing.assert_allclose(found.probabilities, np.take_along_axis(chances, order, axis=1), rtol=1e-6)


def test_a_damaged_file_and_another_model_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    content = bytearray((tmp_path / "model").read_bytes())
    content[-40] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        MappedMeans(tmp_path / "damaged")
    SLDA().fit(np.eye(3), [1, 2, 3]).seal().save(tmp_path / "other")
    with pytest.raises(HyCalError, match="not a sealed NCM"):
        MappedMeans(tmp_path / "other")
