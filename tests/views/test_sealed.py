"""Sealed models of several views: they answer, learn, forget, merge and save as before, and hold no embedding."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hycal import NCM, SLDA, HierarchicalHyCal, HyCal, HyCalError, ModelFileError, load
from hycal.algebra.hierarchy_posterior import Posterior
from hycal.base import IncrementalClassifier
from hycal.classifiers import hierarchy_weights
from hycal.export.onnx_head import onnx_head
from hycal.storage.model_file import read
from hycal.testing.streams import LearningStep, Stream, learn
from hycal.views.models import View
from tests.support.files import rewrite
from tests.views.test_views import METHODS_OF_VIEWS, VIEWS, without_text, without_view

PARTS = (slice(0, VIEWS[0]), slice(VIEWS[0], None))
_ALL = Stream.synthetic(0, shots=[[9, 7, 8], [6, 9], [8, 5, 7], [5, 4]], width=sum(VIEWS), queries=40).in_views(VIEWS)
WHOLE = replace(_ALL, steps=tuple(step.rows(range(0, len(step.y), 2)) for step in _ALL.steps[:3]))
#: More images of the same classes, and one more domain.
MORE = replace(_ALL, steps=(*(step.rows(range(1, len(step.y), 2)) for step in _ALL.steps[:3]), _ALL.steps[3]))


@pytest.fixture(autouse=True)
def without_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed HierarchicalHyCal is the one that never used a regression."""
    monkeypatch.setattr(hierarchy_weights, "kernel_pays", lambda samples, classes: False)


def lacking(one: Stream) -> Stream:
    """The same, but every third image lacks the first view, and the first class the second."""
    first = one.steps[0].y[0]

    def changed(step: LearningStep) -> LearningStep:
        rows = np.where((np.arange(len(step.y)) % 3 == 1)[:, None], without_view(step.X, 0), step.X)
        rows = np.where((np.array(step.y) == first)[:, None], without_view(step.X, 1), rows)
        return LearningStep(rows, step.y, step.domain, step.text)

    return one.map(changed)


STREAMS = {"texts": WHOLE, "images": without_text(WHOLE), "views missing": lacking(without_text(WHOLE))}


def learned(name: str, *streams: Stream) -> IncrementalClassifier:
    method = METHODS_OF_VIEWS[name]
    texts = all(step.text for step in streams[0].steps)
    model = method.with_parameters(**({} if texts else method.without_text or {}))
    for one in streams:
        learn(model, one.steps)
    return model


def queries() -> np.ndarray:
    rows = WHOLE.queries
    return np.concatenate([rows[:20], without_view(rows[20:30], 0), without_view(rows[30:], 1)])


def evidence(view: View) -> np.ndarray:
    """The scores of a view; of HierarchicalHyCal, whose weights of evidence stay too, the evidence itself."""
    if isinstance(view.value, Posterior):
        q, e = view.value.hierarchy.evidence(WHOLE.queries[:, view.part])
        return np.concatenate([q, *(part for own in e for part in own)], axis=1).astype(float)
    return view.scores(WHOLE.queries).astype(float)


def assert_same_evidence(one: IncrementalClassifier, other: IncrementalClassifier) -> None:
    """Weights and temperatures of a sealed model stay; what each view says is that of all samples."""
    assert one.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_array_equal(one.counts_, other.counts_)
    for label, record in one.records_.by_label.items():
        mean = other.records_.by_label[label].mean
        np.testing.assert_allclose(mean, record.mean, atol=1e-6)
    for mine, theirs in zip(one.snapshot().value.views, other.snapshot().value.views, strict=True):
        scores, found = (evidence(view) for view in (mine, theirs))
        np.testing.assert_array_equal(mine.columns, theirs.columns)
        np.testing.assert_allclose(found, scores, atol=1e-4 * np.abs(scores).max())


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_a_sealed_model_answers_as_before(name: str, kind: str) -> None:
    model = learned(name, STREAMS[kind])
    sealed = model.seal()
    assert sealed.sealed_ and not model.sealed_ and sealed.seal().sealed_
    np.testing.assert_allclose(sealed.predict_proba(queries()), model.predict_proba(queries()), atol=1e-4)
    np.testing.assert_allclose(sealed.view_weights_, model.view_weights_, rtol=1e-5)
    sets, expected = (each.predict_set(queries()) for each in (sealed, model))
    assert all(set(each) >= set(fewer) for each, fewer in zip(sets, expected, strict=True))
    assert sealed.unknown(-WHOLE.queries).mean() > sealed.unknown(WHOLE.queries).mean()
    copied = pickle.loads(pickle.dumps(sealed))
    np.testing.assert_array_equal(copied.decision_function(queries()), sealed.decision_function(queries()))


def test_unknown_images_are_told_by_means_with_a_threshold_of_all_views() -> None:
    model = learned("NCM", WHOLE)
    assert np.mean(model.seal().unknown(WHOLE.queries) == model.unknown(WHOLE.queries)) > 0.9
    known, sealed = model.familiarity_, model.seal().familiarity_
    np.testing.assert_allclose(sealed.weights, known.weights, rtol=1e-6)
    assert set(np.round(10 * sealed.held_out, 6) % 1) == {0.0}


@pytest.mark.parametrize("kind", ["texts", "views missing"])
@pytest.mark.parametrize("precision", ["single", "half"])
@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_a_file_is_read_and_written_again_to_the_same_bytes(
    name: str, precision: str, kind: str, tmp_path: Path
) -> None:
    model = learned(name, STREAMS[kind])
    sealed = model.seal()
    sealed.save(tmp_path / "one", precision=precision)
    loaded = load(tmp_path / "one")
    loaded.save(tmp_path / "two", precision=precision)
    content = (tmp_path / "one").read_bytes()
    assert content == (tmp_path / "two").read_bytes() and loaded.views == VIEWS
    tolerance = 1e-6 if precision == "single" else 3e-2
    np.testing.assert_allclose(loaded.predict_proba(queries()), sealed.predict_proba(queries()), atol=tolerance)
    rows = [row for one in model.records_.ordered for row in one.samples.rows if one.count > 2]
    for row in rows:
        for dtype in (np.float16, np.float32, np.float64):
            assert not any(row[part].any() and row[part].astype(dtype).tobytes() in content for part in PARTS)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_it_learns_more_images_and_new_domains(name: str, kind: str, tmp_path: Path) -> None:
    more = {"texts": MORE, "images": without_text(MORE), "views missing": lacking(without_text(MORE))}[kind]
    sealed = learned(name, STREAMS[kind]).seal()
    weights = sealed.snapshot().value.weights
    learn(sealed, more.steps)
    if name != "domains found":  # groups that were found stay
        assert_same_evidence(learned(name, STREAMS[kind], more), sealed)
    after = sealed.snapshot().value.weights
    np.testing.assert_array_equal(after.classes, [*weights.classes, weights.shared])
    sealed.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_allclose(loaded.decision_function(queries()), sealed.decision_function(queries()), atol=1e-5)


@pytest.mark.parametrize("second", ["sealed", "open"])
@pytest.mark.parametrize("name", sorted(set(METHODS_OF_VIEWS) - {"domains found"}))
def test_it_merges_with_sealed_and_open_models(name: str, second: str) -> None:
    other = learned(name, lacking(MORE) if name in ("NCM", "SLDA", "FeCAM") else MORE)
    both = learned(name, WHOLE).merge(other)
    assert_same_evidence(both, learned(name, WHOLE).seal().merge(other.seal() if second == "sealed" else other))


def test_a_view_of_the_other_model_alone_comes_with_it() -> None:
    one, other = (without_text(one) for one in (WHOLE, MORE))
    alone = one.map(lambda step: LearningStep(without_view(step.X, 1), step.y, step.domain, {}))
    sealed = learned("SLDA", alone).seal()
    before = sealed.records_
    with pytest.raises(HyCalError, match="learn a view that none of its images had"):
        learn(sealed, other.steps)
    assert sealed.records_ is before
    assert_same_evidence(learned("SLDA", alone, other), sealed.merge(learned("SLDA", other)))


@pytest.mark.parametrize("name", ["NCM", "FeCAM", "HyCal"])
def test_it_forgets_classes_exactly_and_views_with_them(name: str) -> None:
    one = lacking(without_text(WHOLE))
    open_, sealed = learned(name, one), learned(name, one).seal()
    gone = [open_.classes_[1], open_.classes_[-1]]
    assert_same_evidence(open_.forget(gone), sealed.forget(gone))
    sealed.forget([label for label in sealed.classes_ if label != one.steps[0].y[0]])
    assert not sealed.records_.views[1].by_label and np.isfinite(sealed.decision_function(queries()[:30])).all()
    assert np.isfinite(sealed.familiarity(queries()[:20])).all()


def test_renamed_domains_keep_their_weights() -> None:
    sealed = learned("SLDA", WHOLE).seal()
    records = sealed.records_
    names = {label: f"{record.domain}/{label}" for label, record in records.by_label.items()}
    domains = {label: f"new {record.domain}" for label, record in records.by_label.items()}
    renamed = sealed.with_records(records.rename(names, domains))
    assert renamed.classes_.tolist() == sorted(names.values())
    assert set(renamed.records_.weights) == set(renamed.domains_) == set(renamed.records_.views[0].spreads)
    np.testing.assert_array_equal(renamed.view_weights_, sealed.view_weights_)
    own = {name: column for column, name in enumerate(renamed.classes_)}
    order = [own[names[label]] for label in sealed.classes_]
    found, scores = renamed.decision_function(queries())[:, order], sealed.decision_function(queries())
    np.testing.assert_allclose(found, scores, atol=1e-5)


def test_a_second_domain_is_told_from_the_first_by_the_weights_of_the_first() -> None:
    sealed = learn(SLDA(views=VIEWS), WHOLE.steps[:1]).seal()
    learn(sealed, WHOLE.steps[1:2])
    weights = sealed.snapshot().value.weights
    np.testing.assert_array_equal(weights.domains, weights.shared)


def test_regressions_are_left_out_in_every_view(monkeypatch: pytest.MonkeyPatch) -> None:
    without = learned("HierarchicalHyCal", WHOLE)
    expected = without.predict_proba(queries())
    monkeypatch.undo()
    model = learned("HierarchicalHyCal", WHOLE)
    assert any(kernel is not None for view in model.snapshot().value.views for kernel in view.value.kernels)
    assert "regression" in model.scorer.sealing.reason
    np.testing.assert_allclose(model.seal().predict_proba(queries()), expected, atol=1e-4)


def test_the_onnx_graph_answers_as_the_sealed_model() -> None:
    sealed = learned("NCM", without_text(WHOLE)).seal()
    session = pytest.importorskip("onnxruntime").InferenceSession(onnx_head(sealed))
    scores = session.run(None, {"embeddings": WHOLE.queries.astype(np.float32)})[0]
    np.testing.assert_allclose(scores, sealed.decision_function(WHOLE.queries), atol=1e-3)


REFUSED = {
    "single images": lambda model: model.unlearn(WHOLE.steps[0].X[:1], list(WHOLE.steps[0].y[:1])),
    "hold images out": lambda model: model.leave_one_out(),
    "be tuned": lambda model: model.tune(),
    "answer with other parameters": lambda model: model.set_params(metric="euclidean").predict(WHOLE.queries),
    "learn with other parameters": lambda model: learn(model.set_params(metric="euclidean"), MORE.steps),
    "other views": lambda model: model.merge(learn(NCM(views=(8, 8)), WHOLE.in_views((8, 8)).steps)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_needs_single_images_is_refused_with_the_reason(what: str) -> None:
    sealed = learned("NCM", WHOLE).seal()
    before = sealed.records_
    with pytest.raises(HyCalError, match=what if what != "other views" else "dimensions"):
        REFUSED[what](sealed)
    assert sealed.records_ is before


def test_texts_that_would_change_the_method_of_a_view_are_refused() -> None:
    """A view without texts uses images alone; its moments are not those of rows fused with a text."""

    def in_first(step: LearningStep) -> LearningStep:
        text = {label: np.append(row[: VIEWS[0]], np.zeros(VIEWS[1])) for label, row in step.text.items()}
        return LearningStep(step.X, step.y, step.domain, text)

    sealed = learn(HyCal(views=VIEWS), WHOLE.map(in_first).steps[:1]).seal()
    with pytest.raises(HyCalError, match="texts in other views"):
        sealed.merge(learn(HyCal(views=VIEWS), WHOLE.steps[1:2]))
    before = sealed.records_
    for steps in (WHOLE.steps[1:2], MORE.steps[:1]):  # some classes get a text in the second view, or all
        with pytest.raises(HyCalError, match="text"):
            learn(sealed, steps)
    assert sealed.records_ is before


def test_a_class_that_a_view_knows_by_its_text_alone_is_not_sealed() -> None:
    first = WHOLE.steps[0].y[0]

    def changed(step: LearningStep) -> LearningStep:
        own = np.array(step.y) == first
        return LearningStep(np.where(own[:, None], without_view(step.X, 1), step.X), step.y, step.domain, step.text)

    with pytest.raises(HyCalError, match="has a text and no image in one of the views"):
        learned("HyCal", WHOLE.map(changed)).seal()


def view(manifest: dict[str, Any], number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = manifest["sealed"]["views"][number]
    return found


def replaced(name: str, change: Any) -> Any:
    return lambda m, t: t.update({name: change(t[name])})


MALFORMED = {
    "no views": lambda m, t: m["sealed"].pop("views"),
    "views that are no list": lambda m, t: m["sealed"].update(views={}),
    "a view too few": lambda m, t: m["sealed"]["views"].pop(),
    "a view that is no object": lambda m, t: m["sealed"].update(views=[1, "a"]),
    "no view at all": lambda m, t: m["sealed"].update(views=[None, None]),
    "a view inside a view": lambda m, t: view(m).update(views=[None, None]),
    "views of another width": lambda m, t: m["parameters"].update(views=[6, 10]),
    "views of one encoder": lambda m, t: m["parameters"].pop("views"),
    "scatters of all views": lambda m, t: m["sealed"].update(spreads=[m["sealed"]["groups"][0]]),
    "another thing kept of all views": lambda m, t: m["sealed"].update(keeps="groups"),
    "another thing kept of a view": lambda m, t: view(m).update(keeps="means"),
    "a group too many": lambda m, t: view(m)["groups"].append("a"),
    "no counts of a view": lambda m, t: t.pop("view.1.counts"),
    "more images in a view than in all": replaced("view.1.counts", lambda counts: counts + 1),
    "fewer than none": replaced("view.1.counts", lambda counts: -counts),
    "images without a view": lambda m, t: t["counts"].fill(2**20),
    "no means of a view": lambda m, t: t.pop("view.0.sealed.means"),
    "means that are too long": replaced("view.0.sealed.means", lambda means: 3 * means),
    "means that are not finite": lambda m, t: t["view.0.sealed.means"].fill(np.nan),
    "no temperature of a view": lambda m, t: t.pop("view.0.sealed.number.calibration"),
    "a temperature of none": lambda m, t: t["view.1.sealed.number.calibration"].fill(0.0),
    "no calibration": lambda m, t: t.pop("sealed.number.calibration"),
    "no weights of views": lambda m, t: t.pop("sealed.number.shared"),
    "weights of one view": replaced("sealed.number.domains", lambda weights: weights[:1]),
    "weights of three views": replaced("sealed.weights", lambda weights: np.hstack([weights, weights[:, :1]])),
    "weights below zero": replaced("sealed.weights", np.negative),
    "weights of nothing": replaced("sealed.number.shared", np.zeros_like),
    "weights that no fit gives": replaced("sealed.number.domains", lambda weights: 1e300 + weights),
    "names of weights that are no groups": lambda m, t: m["sealed"].update(weighted=["nowhere"]),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_file_is_refused(fault: str, tmp_path: Path) -> None:
    learned("SLDA", WHOLE).seal().save(tmp_path / "model")
    rewrite(tmp_path / "model", MALFORMED[fault])
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_weights_of_evidence_are_checked_in_every_view(tmp_path: Path) -> None:
    learned("HierarchicalHyCal", WHOLE).seal().save(tmp_path / "model")
    rewrite(tmp_path / "model", replaced("view.1.sealed.weights", np.negative))
    with pytest.raises(ModelFileError, match="weights of evidence that are negative"):
        load(tmp_path / "model")


def test_the_file_has_no_means_but_those_of_views(tmp_path: Path) -> None:
    sealed = learned("NCM", WHOLE).seal()
    sealed.save(tmp_path / "model")
    means = {name for name in read(tmp_path / "model").tensors if name.endswith(("sealed.means", "sealed.centres"))}
    assert means == {"view.0.sealed.means", "view.1.sealed.means"}
    assert sealed.nbytes_ == sum(record.nbytes for own in sealed.records_.views for record in own.by_label.values())
    assert HierarchicalHyCal(views=VIEWS).scorer.sealing.keeps == "groups"


@pytest.mark.parametrize("name", METHODS_OF_VIEWS)
def test_a_model_that_forgot_everything_learns_and_merges_again(name: str, tmp_path: Path) -> None:
    sealed = learned(name, without_text(WHOLE)).seal()
    expected = sealed.predict_proba(queries())
    merged = copy.copy(sealed).forget(list(sealed.classes_)).merge(sealed)
    merged.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model").predict_proba(queries()), expected, atol=1e-5)
    again = copy.copy(sealed).forget(list(sealed.classes_))
    learn(again, without_text(WHOLE).steps)
    assert [own.labels for own in again.records_.views] == [own.labels for own in sealed.records_.views]
    for mine, before in zip(again.records_.views, sealed.records_.views, strict=True):
        np.testing.assert_allclose(mine.means, before.means, atol=1e-6)


def test_a_view_that_one_model_knows_has_its_weights_there() -> None:
    plain = without_text(WHOLE)
    first, second = (
        learned("NCM", plain.map(lambda step, view=view: replace(step, X=without_view(step.X, view)))).seal()
        for view in (1, 0)
    )
    one, other = (copy.copy(mine).merge(theirs).records_ for mine, theirs in ((first, second), (second, first)))
    for kept in ("shared", "domains"):
        expected = [first.records_.numbers[kept][0], second.records_.numbers[kept][1]]
        np.testing.assert_array_equal(one.numbers[kept], expected)
        np.testing.assert_array_equal(other.numbers[kept], expected)
    assert min(weight for own in one.weights.values() for weight in own) > 0.1


def test_what_is_left_does_not_depend_on_the_order_of_forgetting() -> None:
    for method in METHODS_OF_VIEWS:
        sealed = learned(method, WHOLE).seal()
        first, *others = sealed.classes_.tolist()
        at_once = copy.copy(sealed).forget([first, *others])
        in_steps = copy.copy(sealed).forget(others).forget([first])
        for emptied in (at_once, in_steps):
            learn(emptied, WHOLE.steps)
            assert emptied.predict_proba(WHOLE.queries).shape[1] == len(sealed.classes_)


def test_the_hash_has_weights_and_numbers_of_one_name() -> None:
    records = learned("SLDA", without_text(WHOLE)).seal().records_
    named = replace(records, weights={"shared": np.ones(2)})
    other = replace(records, weights={"shared": np.zeros(2)})
    assert b"".join(named.shared_bytes()) != b"".join(other.shared_bytes())


@pytest.mark.parametrize("name", ["HyCal", "HierarchicalHyCal"])
def test_score_parts_are_those_of_the_views(name: str) -> None:
    model = learned(name, without_text(WHOLE))
    parts = model.score_parts(queries())
    assert [part.name for part in parts.parts][:2] == ["view 1", "view 2"]
    np.testing.assert_allclose(parts.scores, model.decision_function(queries()), rtol=1e-5, atol=1e-5)


def test_explanations_of_measures_need_one_encoder() -> None:
    with pytest.raises(HyCalError, match="score_parts"):
        learned("HyCal", without_text(WHOLE)).explain(queries())
