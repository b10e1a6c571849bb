"""HyCal against its dense definition, at its edges, and on real cars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit

from hycal import HyCal, HyCalError
from hycal.testing.streams import Stream, learn
from tests.classifiers.dense_hycal import class_gaussian, condition, dense_scores, fuse, literal_scores, normalise, unit

OPTIONS = st.fixed_dictionaries(
    {
        "fusion": st.sampled_from(["sum", "concat", "image"]),
        "rule": st.sampled_from(["paper", "released"]),
        "metric": st.sampled_from(["dynamic", "cosine", "mahalanobis", "average"]),
        "alpha": st.sampled_from([1, 4, 10]),
        "beta": st.sampled_from([0, 1, 5]),
        "reg": st.sampled_from([1e-4, 1e-2, 1.0]),
        "gamma": st.sampled_from([1.0, 0.1]),
    }
)

OPTIONS_OF_NEAR_TIES = {
    "fusion": "sum",
    "rule": "paper",
    "metric": "dynamic",
    "alpha": 1,
    "beta": 0,
    "reg": 1e-4,
    "gamma": 0.1,
}


def learned_of(classifier, classes=None):
    """Samples and texts of the candidates, all classes or some, and of all classes."""
    table = classifier.records_
    records = [table.by_label[label] for label in table.labels if classes is None or label in classes]
    candidates, everything = (
        ([r.samples.rows for r in some], [r.text for r in some]) for some in (records, table.ordered)
    )
    return *candidates, everything


def dense_of(classifier, queries, classes=None):
    """The dense definition on what `classifier` has learned."""
    samples, texts, learned = learned_of(classifier, classes)
    return dense_scores(queries, samples, texts, learned=learned, **classifier.stored_parameters)


def tolerance(classifier, queries, classes=None):
    """What float32 may differ from the dense definition: more where a score multiplies the rounding of distances."""
    rounding = condition(queries, *learned_of(classifier, classes), **classifier.stored_parameters)
    return 1e-4 + 20 * np.finfo(np.float32).eps * rounding


@given(OPTIONS, st.integers(0, 2**31), st.sampled_from([6, 20, 33]))
def test_equals_the_dense_definition(options, seed, width):
    stream = Stream.synthetic(seed, shots=[[1, 3, 8], [2, 5, 5, 30]], width=width)
    classifier = learn(HyCal(**options), stream.steps)
    np.testing.assert_allclose(
        expit(classifier.decision_function(stream.queries)), dense_of(classifier, stream.queries), atol=1e-4
    )


@given(OPTIONS, st.integers(0, 2**31), st.integers(1, 6), st.sampled_from([6, 33]))
def test_announced_classes_equal_the_dense_definition(options, seed, announced, width):
    options["fusion"] = options["fusion"].replace("image", "sum")
    stream = Stream.synthetic(seed, shots=[[1, 3, 8], [2, 5, 5, 30]], width=width)
    text = {label: vector for step in stream.steps for label, vector in step.text.items()}
    classifier = HyCal(**options).announce(text)
    for step in stream.steps:
        kept = [row for row, label in enumerate(step.y) if label >= announced]
        if kept:
            part = step.rows(kept)
            classifier.partial_fit(part.X, list(part.y), domain=step.domain)
    assert list(classifier.counts_[:announced]) == [0] * announced
    for candidates in (None, [0, 2, 6]):
        scores = expit(classifier.decision_function(stream.queries, candidates))
        differences = np.abs(scores - dense_of(classifier, stream.queries, candidates))
        assert (differences <= tolerance(classifier, stream.queries, candidates)).all()


@given(OPTIONS, st.integers(0, 2**31), st.sampled_from([6, 20, 33]), st.integers(0, 3))
@example(OPTIONS_OF_NEAR_TIES, 0, 6, 1)
def test_the_literal_rule_equals_its_dense_definition(options, seed, width, announced):
    options |= {"rule": "literal"} | ({"fusion": "sum"} if announced and options["fusion"] == "image" else {})
    stream = Stream.synthetic(seed, shots=[[1, 3, 8], [2, 5, 5, 30]], width=width)
    classifier = HyCal(**options)
    if announced:
        classifier.announce({label: vector for step in stream.steps for label, vector in step.text.items()})
    for step in stream.steps:
        kept = [row for row, label in enumerate(step.y) if label >= announced]
        if kept:
            part = step.rows(kept)
            classifier.partial_fit(part.X, list(part.y), domain=step.domain, text=part.text)
    for candidates in (None, [0, 2, 6]):
        samples, texts, learned = learned_of(classifier, candidates)
        expected = literal_scores(stream.queries, samples, texts, learned=learned, **options)
        differences = np.abs(classifier.decision_function(stream.queries, candidates) - expected)
        assert (differences <= tolerance(classifier, stream.queries, candidates)).all()


def test_the_literal_rule_explains_its_scores():
    stream = Stream.synthetic(2, shots=[[3, 1, 4], [2, 12], [20]], width=10)
    model = learn(HyCal(rule="literal"), stream.steps)
    parts = model.explain(stream.queries)
    np.testing.assert_allclose(parts.score, model.decision_function(stream.queries), atol=1e-6)
    np.testing.assert_array_equal(parts.log_odds, model.decision_function(stream.queries))
    np.testing.assert_allclose(parts.cosine_level, parts.cosine, atol=1e-6)
    assert parts.distance_level.min() == pytest.approx(0) and parts.distance_level.max() == 1


def test_names_alone_are_told_by_the_cosine_with_the_text():
    stream = Stream.synthetic(0, shots=[[1] * 5], width=8)
    named = HyCal().announce(stream.steps[0].text)
    texts = np.stack([stream.steps[0].text[label] for label in named.classes_])
    np.testing.assert_array_equal(named.predict(stream.queries), (stream.queries @ texts.T).argmax(axis=1))
    with pytest.raises(HyCalError, match="recognises classes by their images"):
        HyCal(fusion="image").announce(stream.steps[0].text)


@given(OPTIONS, st.integers(0, 2**31))
def test_measures_are_what_is_blended(options, seed):
    stream = Stream.synthetic(seed, shots=[[1, 3, 8], [30, 2]], width=20)
    classifier = learn(HyCal(**options), stream.steps)
    cosine, distance = classifier.measures(stream.queries)
    for metric, measure in (("cosine", cosine), ("mahalanobis", -distance)):
        blended = normalise(measure)
        scores = expit(classifier.set_params(metric=metric).decision_function(stream.queries))
        np.testing.assert_allclose(scores, blended, atol=1e-4)
    one = classifier.records_.by_label[2]
    z = fuse(unit(stream.queries), None if one.text is None else np.float64(one.text), options["fusion"])
    samples = fuse(np.float64(one.samples.rows), np.float64(one.text), options["fusion"])
    mean, precision = class_gaussian(samples, options["reg"], options["gamma"], options["rule"])
    np.testing.assert_allclose(cosine[:, 2], z @ mean, atol=1e-5)
    expected = np.sum((z - mean) @ precision * (z - mean), axis=1)
    np.testing.assert_allclose(distance[:, 2], expected, rtol=1e-2, atol=1e-2 * expected.max())


@pytest.fixture(scope="module")
def learned_cars(cars):
    def learned(shots, classes=196, **options):
        rng = np.random.default_rng(0)
        X, y = cars["train_x"], cars["train_y"]
        rows = np.concatenate([rng.choice(np.flatnonzero(y == c), shots, replace=False) for c in range(classes)])
        text = dict(enumerate(cars["text"].astype(np.float32)))
        return HyCal(**options).partial_fit(X[rows], y[rows], domain="cars", text=text)

    return learned


@pytest.mark.parametrize(
    ("classes", "shots", "fusion"),
    [(196, 16, "sum"), (20, 1, "sum"), (20, 5, "concat"), (20, 16, "concat"), (20, 1, "image"), (20, 16, "image")],
)
def test_equals_the_dense_definition_on_cars(cars, learned_cars, classes, shots, fusion):
    classifier = learned_cars(shots, classes, fusion=fusion)
    queries = cars["val_x"].astype(np.float32)
    expected = dense_of(classifier, queries)
    np.testing.assert_allclose(expit(classifier.decision_function(queries)), expected, atol=1e-4)
    np.testing.assert_array_equal(classifier.predict(queries), expected.argmax(axis=1))


@pytest.mark.parametrize(
    ("shots", "options", "percent"),
    [
        (16, {"metric": "cosine", "fusion": "image"}, 63.5),
        (16, {"metric": "cosine"}, 65.5),
        (16, {"metric": "mahalanobis"}, 72.2),
        (16, {"metric": "average"}, 71.1),
        (16, {}, 72.7),
        (2, {}, 41.7),
    ],
)
def test_measured_accuracy_on_cars(cars, learned_cars, shots, options, percent):
    accuracy = 100 * learned_cars(shots, **options).score(cars["val_x"], cars["val_y"])
    assert accuracy == pytest.approx(percent, abs=0.3)


@pytest.mark.parametrize(("shots", "percent", "agree"), [(5, (57.5, 55.7), 88.6), (16, (72.0, 72.7), 94.0)])
def test_the_literal_rule_on_cars(cars, learned_cars, shots, percent, agree):
    answers = [learned_cars(shots, rule=rule).predict(cars["val_x"]) for rule in ("literal", "paper")]
    assert [100 * np.mean(given == cars["val_y"]) for given in answers] == pytest.approx(percent, abs=0.3)
    assert 100 * np.mean(answers[0] == answers[1]) == pytest.approx(agree, abs=0.5)


def test_a_one_shot_class_does_not_swallow_the_others(cars):
    """With the released code's 1e-3 I for K = 1, accuracy falls to 4.5%."""
    text = dict(enumerate(cars["text"].astype(np.float32)))
    few = cars["train_y"] < 48
    X, y = cars["train_x"][few], cars["train_y"][few]
    thinned = np.concatenate([np.flatnonzero(y != 0), np.flatnonzero(y == 0)[:1]])
    ask = (cars["val_y"] < 48) & (cars["val_y"] > 0)
    full = HyCal().fit(X, y, text=text).score(cars["val_x"][ask], cars["val_y"][ask])
    thin = HyCal().fit(X[thinned], y[thinned], text=text).score(cars["val_x"][ask], cars["val_y"][ask])
    assert thin > full - 0.02


def test_a_class_seen_again_is_updated():
    stream = Stream.synthetic(1, shots=[[4, 4]], width=8)
    classifier = learn(HyCal(), [stream.steps[0], stream.steps[0].rows([0, 1])])
    assert classifier.counts_.tolist() == [6, 4]


def test_rules_differ_below_alpha():
    stream = Stream.synthetic(2, shots=[[2, 3, 12], [4, 15]], width=12)
    paper, released = (learn(HyCal(rule=rule), stream.steps) for rule in ("paper", "released"))
    assert np.allclose(released.weights([2, 12])[0], 0)
    assert released.weights([12])[0] == paper.weights([12])[0] > paper.weights([2])[0] > 0


@pytest.mark.parametrize("classes", [1_000, 10_000])
def test_leaders_do_not_tie(classes):
    """Two near twins far ahead of thousands: Phi is 1 to the last bit for both, their log-odds are not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(classes, 64))
    X[1] = X[0] + 0.02 * rng.normal(size=64)
    classifier = HyCal(fusion="image").partial_fit(X, np.arange(classes))
    ahead = classifier.decision_function(X[:2])[:, :2]
    assert ahead[0, 0] > ahead[0, 1] and ahead[1, 1] > ahead[1, 0]
    assert classifier.predict(X[:200]).tolist() == list(range(200))


def test_equal_classes_score_equal():
    X = np.repeat(np.eye(5)[:2], 3, axis=0)
    classifier = HyCal(fusion="image").fit(np.concatenate([X[:3], X[:3], X[3:]]), np.repeat([0, 1, 2], 3))
    scores = classifier.decision_function(np.eye(5)[:1])[0]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert scores[0] > scores[2]


def test_candidates_change_the_normalisation_and_the_columns():
    stream = Stream.synthetic(3, shots=[[3, 4, 5], [2, 2]], width=10)
    classifier = learn(HyCal(), stream.steps)
    few = classifier.decision_function(stream.queries, classes=[4, 0])
    alone = learn(HyCal(), [step.rows([r for r, c in enumerate(step.y) if c in (0, 4)]) for step in stream.steps])
    np.testing.assert_allclose(few[:, ::-1], alone.decision_function(stream.queries), atol=1e-4)
    assert set(classifier.predict(stream.queries, classes=[4, 0])) <= {0, 4}


def test_missing_text_names_the_classes():
    X = np.eye(4)
    with pytest.raises(HyCalError, match=r"'b' has none.*fusion=\"image\""):
        HyCal().partial_fit(X[:2], ["a", "b"], text={"a": X[0]})


def test_parameters_are_checked():
    for bad in ({"beta": -1}, {"reg": 0}, {"fusion": "product"}, {"rule": "mine"}, {"metric": "euclid"}, {"gamma": 0}):
        with pytest.raises(HyCalError, match=next(iter(bad))):
            HyCal(**bad).fit(np.eye(3), [0, 1, 2])


def test_changed_parameters_take_effect_without_learning_again():
    stream = Stream.synthetic(4, shots=[[6, 2, 9]], width=9)
    changed = learn(HyCal(), stream.steps)
    changed.decision_function(stream.queries)
    changed.set_params(reg=0.1, metric="average")
    direct = learn(HyCal(reg=0.1, metric="average"), stream.steps)
    np.testing.assert_array_equal(changed.decision_function(stream.queries), direct.decision_function(stream.queries))


def test_an_update_computes_what_a_fresh_model_computes():
    """Unchanged classes are copied from the last bank; the result must not show it."""
    stream = Stream.synthetic(5, shots=[[6, 2, 9], [1, 4]], width=9)
    updated = HyCal()
    for step in stream.steps:
        learn(updated, [step]).decision_function(stream.queries)
    np.testing.assert_array_equal(
        updated.decision_function(stream.queries), learn(HyCal(), stream.steps).decision_function(stream.queries)
    )
