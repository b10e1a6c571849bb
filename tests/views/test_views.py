"""Models of several views: the laws, missing views, weights, and that one view is as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hycal import GDA, NCM, SLDA, FeCAM, HierarchicalHyCal, HyCal, HyCalError, RanPAC, load
from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.data import load_xd8
from hycal.export.onnx_head import onnx_head
from hycal.testing.laws import check_laws
from hycal.testing.streams import Stream, learn
from hycal.validation import unit_rows

VIEWS = (10, 6)
METHODS_OF_VIEWS = {
    "HierarchicalHyCal": HierarchicalHyCal(views=VIEWS),
    "domains found": HierarchicalHyCal(views=VIEWS, domains="found"),
    "NCM": NCM(views=VIEWS),
    "SLDA": SLDA(views=VIEWS),
    "GDA": GDA(views=VIEWS),
    "HyCal": HyCal(views=VIEWS),
    "FeCAM": FeCAM(views=VIEWS),
}
SHOTS = [[5, 4, 6], [3, 6], [5, 2, 4]]


def stream(seed: int = 0, queries: int = 40) -> Stream:
    return Stream.synthetic(seed, shots=SHOTS, width=sum(VIEWS), queries=queries).in_views(VIEWS)


def without_text(one: Stream) -> Stream:
    return one.map(lambda step: type(step)(step.X, step.y, step.domain, {}))


def without_view(rows: np.ndarray, view: int) -> np.ndarray:
    changed = rows.copy()
    changed[:, slice(0, VIEWS[0]) if view == 0 else slice(VIEWS[0], None)] = 0.0
    return changed


@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_laws(name: str) -> None:
    check_laws(METHODS_OF_VIEWS[name])


@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_steps_give_the_bytes_of_one_step(name: str, tmp_path: Path) -> None:
    whole, parts = stream(), METHODS_OF_VIEWS[name].with_parameters()
    one = learn(METHODS_OF_VIEWS[name].with_parameters(), whole.steps)
    for step in reversed(whole.steps):
        for row in range(len(step.y)):
            learn(parts, [step.rows([row])])
    extra = whole.steps[0].rows([0, 1])
    learn(parts, [extra]).unlearn(extra.X, list(extra.y))
    for model, file in ((one, "one"), (parts, "parts")):
        model.save(tmp_path / file)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "parts").read_bytes()
    loaded = load(tmp_path / "one")
    assert loaded.views == VIEWS
    np.testing.assert_array_equal(loaded.decision_function(whole.queries), one.decision_function(whole.queries))


@pytest.mark.parametrize("method", [HierarchicalHyCal, NCM, SLDA, GDA, HyCal, FeCAM])
def test_one_view_is_stored_as_before(method: type[IncrementalClassifier], tmp_path: Path) -> None:
    model = learn(method(), Stream.synthetic(0, shots=SHOTS, width=16).steps)
    model.save(tmp_path / "model")
    assert b"views" not in (tmp_path / "model").read_bytes()
    with pytest.raises(AttributeError, match="one view"):
        model.view_weights_  # noqa: B018


def test_each_view_of_a_row_has_length_one() -> None:
    one = stream()
    model = learn(HierarchicalHyCal(views=VIEWS), one.steps)
    rows = model.records_.stacked()
    for part in (rows[:, : VIEWS[0]], rows[:, VIEWS[0] :]):
        np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1.0, atol=1e-6)
    scaled = one.queries * np.repeat([3.0, 0.01], VIEWS)
    np.testing.assert_allclose(model.decision_function(scaled), model.decision_function(one.queries), atol=1e-4)


@pytest.mark.parametrize("name", ["HierarchicalHyCal", "NCM", "SLDA"])
@pytest.mark.parametrize("view", [0, 1])
def test_a_query_of_one_view_is_answered_by_the_model_of_that_view(name: str, view: int) -> None:
    one, method = without_text(stream()), METHODS_OF_VIEWS[name]
    part = slice(0, VIEWS[0]) if view == 0 else slice(VIEWS[0], None)
    both = learn(method.with_parameters(), one.steps)
    alone = learn(
        method.with_parameters(views=None),
        one.map(lambda step: type(step)(step.X[:, part], step.y, step.domain, {})).steps,
    )
    queries = without_view(one.queries, 1 - view)
    assert np.mean(both.predict(queries) == alone.predict(one.queries[:, part])) > 0.95
    mixed = np.concatenate([queries[:5], one.queries[5:]])
    np.testing.assert_allclose(both.decision_function(mixed)[:5], both.decision_function(queries)[:5], atol=1e-5)


@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_a_class_that_lacks_a_view_neither_wins_nor_loses_by_that(name: str) -> None:
    one = without_text(stream(queries=200))
    lacking = one.steps[0].y[0]

    def changed(step: object) -> object:
        own = np.array(step.y) == lacking
        return type(step)(np.where(own[:, None], without_view(step.X, 1), step.X), step.y, step.domain, {})

    method = METHODS_OF_VIEWS[name]
    method = method.with_parameters(**(method.without_text or {}))
    full, partly = learn(method.with_parameters(), one.steps), learn(method.with_parameters(), one.map(changed).steps)
    wanted, found = full.predict(one.queries), partly.predict(one.queries)
    assert np.isfinite(partly.decision_function(one.queries)).all()
    assert np.mean(found[wanted == lacking] == lacking) >= 0.5
    assert np.mean(found[wanted != lacking] == wanted[wanted != lacking]) >= 0.85
    assert np.isfinite(partly.leave_one_out().scores).all() and partly.predict_proba(one.queries).max() <= 1.0
    partly.unknown(one.queries)


def test_a_view_of_noise_has_little_weight_and_costs_little() -> None:
    rng, xd8 = np.random.default_rng(0), load_xd8()
    clip, both = HierarchicalHyCal(), HierarchicalHyCal(views=(512, 64))
    asked = []
    for name in ("satellite", "texture"):
        domain = xd8[name]
        rows = np.concatenate([np.flatnonzero(domain.train_y == label)[:5] for label in np.unique(domain.train_y)])
        labels = [f"{name}/{label}" for label in domain.train_y[rows]]
        train, test = (unit_rows(rng.normal(size=(n, 64))) for n in (len(rows), len(domain.test_y)))
        clip.partial_fit(domain.train_x[rows], labels, domain=name)
        both.partial_fit(np.hstack([domain.train_x[rows], train]), labels, domain=name)
        asked.append((domain.test_x, np.hstack([domain.test_x, test]), [f"{name}/{label}" for label in domain.test_y]))
    hits = np.array([(clip.score(x, y), both.score(z, y)) for x, z, y in asked])
    assert abs(np.subtract(*hits.mean(axis=0))) < 0.01
    assert np.all(both.view_weights_[:, 1] < 0.25 * both.view_weights_[:, 0])


def test_what_an_answer_rests_on_adds_up() -> None:
    one = stream()
    model = learn(HierarchicalHyCal(views=VIEWS), one.steps)
    found = model.score_parts(one.queries)
    assert [part.name for part in found.parts] == ["view 1", "view 2", "domain"]
    total = sum(part.share for part in found.parts)
    np.testing.assert_allclose(total, found.scores - found.scores.mean(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(found.scores, model.decision_function(one.queries), atol=1e-4)


def test_texts_stay_with_the_view_that_has_them() -> None:
    one = stream()
    first = one.map(
        lambda step: type(step)(
            step.X, step.y, step.domain, {k: np.append(v[: VIEWS[0]], np.zeros(VIEWS[1])) for k, v in step.text.items()}
        )
    )
    for method in (GDA(views=VIEWS), HyCal(views=VIEWS), HierarchicalHyCal(views=VIEWS)):
        model = learn(method, first.steps)
        assert np.isfinite(model.decision_function(one.queries)).all()
        fusing, plain = model.snapshot().value.views
        assert fusing.table.ordered[0].text is not None and plain.table.ordered[0].text is None


def test_unknown_and_sets_and_tuning() -> None:
    one = without_text(stream(queries=200))
    model = learn(HierarchicalHyCal(views=VIEWS), one.steps)
    strange = -one.queries
    assert model.unknown(strange).mean() > model.unknown(one.queries).mean()
    assert model.familiarity(without_view(one.queries, 1)).shape == (200,)
    assert all(len(labels) for labels in model.predict_set(one.queries))
    assert learn(NCM(views=VIEWS), one.steps).tune().views == VIEWS


def test_what_is_known_is_finite_where_few_samples_have_all_views() -> None:
    """One sample with both views has no deviation; a view of texts alone has no samples to compare with."""
    one = stream()
    X, y = np.concatenate([step.X for step in one.steps]), [label for step in one.steps for label in step.y]
    lacking = without_view(X, 0)
    lacking[0] = X[0]
    model = NCM(views=VIEWS).fit(lacking, y)
    assert np.isfinite(model.familiarity(one.queries)).all()
    with pytest.raises(HyCalError, match="none can be held out"):
        model.unknown(one.queries)
    fusing = HyCal(views=VIEWS)
    for step in one.steps:
        fusing.partial_fit(without_view(step.X, 0), step.y, domain=step.domain, text=step.text)
    assert fusing.snapshot().value.views[0] is None or not fusing.snapshot().value.views[0].table.counts.any()
    assert np.isfinite(fusing.familiarity(one.queries)).all() and fusing.unknown(one.queries).shape == (
        len(one.queries),
    )


def test_errors_say_what_to_do() -> None:
    one = stream()
    model = learn(HierarchicalHyCal(views=VIEWS), one.steps)
    with pytest.raises(HyCalError, match="16 features"):
        HierarchicalHyCal(views=VIEWS).partial_fit(one.steps[0].X[:, 1:], list(one.steps[0].y))
    with pytest.raises(HyCalError, match="two to 16 widths"):
        HierarchicalHyCal(views=(16,)).partial_fit(one.steps[0].X, list(one.steps[0].y))
    with pytest.raises(HyCalError, match="10 \\+ 6 dimensions"):
        model.merge(learn(HierarchicalHyCal(views=(6, 10)), one.in_views((6, 10)).steps))
    with pytest.raises(HyCalError, match="takes one encoder"):
        METHODS.build("RanPAC", views=VIEWS)
    with pytest.raises(HyCalError, match="as wide as its views"):
        learn(NCM(), [without_text(one).steps[0].rows([0, 1])]).set_params(views=(4, 4)).predict(one.queries)
    assert RanPAC.one_view_because


@pytest.mark.parametrize("name", ["HierarchicalHyCal", "NCM", "HyCal"])
def test_the_onnx_graph_answers_as_the_model(name: str) -> None:
    one = without_text(stream())
    method = METHODS_OF_VIEWS[name]
    model = learn(method.with_parameters(**(method.without_text or {})), one.steps)
    session = pytest.importorskip("onnxruntime").InferenceSession(onnx_head(model))
    scores, chances, labels = session.run(None, {"embeddings": one.queries.astype(np.float32)})
    np.testing.assert_allclose(scores, model.decision_function(one.queries), atol=1e-3)
    np.testing.assert_allclose(chances, model.predict_proba(one.queries), atol=1e-3)
    assert labels.tolist() == [str(label) for label in model.predict(one.queries)]
    model.partial_fit(without_view(one.steps[0].X[:2], 1), [99, 99], domain="domain 0")
    with pytest.raises(HyCalError, match="no image in one of the views"):
        onnx_head(model)


def test_models_merge_forget_and_follow_small_steps() -> None:
    one = stream()
    halves = [
        learn(HierarchicalHyCal(views=VIEWS), one.steps[:2]),
        learn(HierarchicalHyCal(views=VIEWS), one.steps[2:]),
    ]
    whole = learn(HierarchicalHyCal(views=VIEWS), one.steps)
    merged = halves[0].merge(halves[1])
    np.testing.assert_array_equal(merged.decision_function(one.queries), whole.decision_function(one.queries))
    assert merged.view_weights_.shape == (3, 2)
    label = one.steps[2].y[0]
    merged.forget(label)
    assert label not in merged.classes_ and np.isfinite(merged.decision_function(one.queries)).all()
