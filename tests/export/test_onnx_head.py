"""The exported head gives the model's answers in ONNX Runtime, which knows nothing of hycal."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest

from hycal import KLDA, NCM, SLDA, HierarchicalHyCal, HyCal, HyCalError
from hycal.data import load_xd8
from hycal.export.onnx_head import export_onnx, onnx_head
from hycal.testing.streams import Stream, learn


def run(content, X):
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session, session.run(None, {"embeddings": np.asarray(X, np.float32)})


def expect_same(model, X, content):
    session, (scores, chances, labels) = run(content, X)
    expected = model.class_scores(X)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(labels, model.predict(X).astype(str))
    np.testing.assert_allclose(chances, model.predict_proba(X), rtol=1e-3, atol=1e-5)
    assert json.loads(session.get_modelmeta().custom_metadata_map["labels"]) == model.classes_.tolist()


@pytest.fixture(scope="module", params=[HyCal(fusion="image"), HierarchicalHyCal()], ids=["HyCal", "Hierarchical"])
def disciplines(request):
    """All 223 classes of the bundled embeddings with 1 to 40 shots, and 1,000 queries."""
    model, queries = request.param, []
    for name, domain in load_xd8().items():
        shots = {label: 1 + (7 * label) % 40 for label in range(len(domain.class_names))}
        chosen = np.concatenate([np.flatnonzero(domain.train_y == label)[:n] for label, n in shots.items()])
        labels = [f"{name}/{domain.class_names[label]}" for label in domain.train_y[chosen]]
        model.partial_fit(domain.train_x[chosen], labels, domain=name)
        queries.append(domain.test_x[:125])
    return model, np.concatenate(queries)


def test_a_thousand_queries(disciplines, tmp_path):
    model, queries = disciplines
    assert len(queries) == 1000 and len(model.classes_) == 223
    model.encoder_ = "some space"
    export_onnx(model, tmp_path / "head.onnx")
    expect_same(model, queries, (tmp_path / "head.onnx").read_bytes())
    session, _ = run((tmp_path / "head.onnx").read_bytes(), queries[:1])
    assert session.get_modelmeta().custom_metadata_map["encoder"] == "some space"


@pytest.mark.parametrize("fusion", ["image", "sum", "concat"])
@pytest.mark.parametrize("metric", ["dynamic", "cosine", "mahalanobis"])
@pytest.mark.parametrize("shots", [[[3, 1, 4], [2, 6], [5]], [[1, 1], [1]], [[4]]])
def test_every_shape(fusion, metric, shots):
    stream = Stream.synthetic(5, shots=shots, width=9)
    model = learn(HyCal(fusion=fusion, metric=metric, alpha=3, beta=1), stream.steps)
    expect_same(model, stream.queries, onnx_head(model))


def test_far_beyond_eight_standard_deviations():
    """Among 2,000 classes a query that equals one stands some 40 deviations out."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 64))
    model = HyCal(fusion="image").fit(rows, np.arange(2000))
    expect_same(model, rows[:20], onnx_head(model))


@pytest.mark.parametrize("text", ["auto", "none"])
@pytest.mark.parametrize("shots", [[[3, 1, 4], [2, 6], [5]], [[1, 1], [1]], [[4, 3]], [[4]]])
def test_every_shape_of_the_hierarchy(text, shots):
    stream = Stream.synthetic(5, shots=shots, width=9)
    model = learn(HierarchicalHyCal(text=text), stream.steps)
    expect_same(model, stream.queries, onnx_head(model))


def test_kernel_evidence():
    stream = Stream.synthetic(5, shots=[[4] * 8, [3] * 8], width=9)
    model = learn(HierarchicalHyCal(), stream.steps)
    assert all(kernel is not None for kernel in model.snapshot().value.kernels)
    expect_same(model, stream.queries, onnx_head(model))


def test_covariance_evidence():
    stream = Stream.synthetic(1, shots=[[8] * 4, [8] * 3], width=4)
    model = learn(HierarchicalHyCal(), stream.steps)
    assert all(covariances is not None for covariances in model.snapshot().value.covariances)
    expect_same(model, stream.queries, onnx_head(model))


def test_lengths_do_not_matter_and_linear_methods_are_linear():
    stream = Stream.synthetic(5, shots=[[3, 2], [4]], width=9)
    for method in (NCM(), NCM(metric="euclidean"), SLDA()):
        model = learn(method, stream.steps)
        expect_same(model, 7.5 * stream.queries, onnx_head(model))


@pytest.mark.parametrize("scale", [1e20, 1e-30, 3e37])
def test_very_long_and_very_short_queries_have_the_same_answers(scale):
    stream = Stream.synthetic(5, shots=[[3, 2], [4]], width=9)
    model = learn(HyCal(fusion="image"), stream.steps)
    expect_same(model, (scale * stream.queries).astype(np.float32), onnx_head(model))


def test_what_cannot_be_exported(tmp_path):
    model = learn(KLDA(n_components=16), Stream.synthetic(5, shots=[[3, 2], [4]], width=9).steps)
    with pytest.raises(HyCalError, match="KLDA cannot be exported"):
        onnx_head(model)
    with pytest.raises(HyCalError, match="does not exist"):
        export_onnx(NCM().fit([[1, 0], [0, 1]], ["a", "b"]), tmp_path / "no" / "x.onnx")


def test_the_literal_rule_is_not_exported():
    model = learn(HyCal(rule="literal"), Stream.synthetic(5, shots=[[3, 4]], width=9).steps)
    with pytest.raises(HyCalError, match='Set rule="paper"'):
        onnx_head(model)
