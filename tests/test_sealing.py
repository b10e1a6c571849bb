"""Sealed models: they answer, learn, forget, merge and save as before, and hold no embedding of a single image."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from hycal import GDA, METHODS, NCM, SLDA, TEEN, FeCAM, HierarchicalHyCal, HyCal, HyCalError, ModelFileError, load
from hycal.classifiers import hierarchy_weights
from hycal.data.bundled import load_xd8
from hycal.state.moments import Moments, Spread, factor_of
from hycal.state.sealed import found_key
from hycal.storage import model_file
from hycal.testing.streams import Stream, learn
from hycal.uncertainty.unknown import Familiarity
from tests.support.files import rewrite

WHOLE = Stream.synthetic(0, shots=[[6, 3, 8], [4, 9], [10, 60], [8, 8]], width=16)
FIRST = replace(WHOLE, steps=tuple(step.rows(range(0, len(step.y), 2)) for step in WHOLE.steps[:3]))
MORE = replace(WHOLE, steps=(*(step.rows(range(1, len(step.y), 2)) for step in WHOLE.steps[:3]), *WHOLE.steps[3:]))
SEALABLE = {
    "HyCal": HyCal(),
    "HyCal image": HyCal(fusion="image", alpha=3),
    "HyCal concat": HyCal(fusion="concat", rule="literal"),
    "HierarchicalHyCal": HierarchicalHyCal(),
    "ZeroShot": METHODS["ZeroShot"](),
    "NCM": NCM(),
    "NCM euclidean": NCM(metric="euclidean"),
    "TEEN": TEEN(),
    "TEEN mahalanobis": TEEN(metric="mahalanobis", base="others"),
    "SLDA": SLDA(),
    "SLDA domain": SLDA(covariance="domain"),
    "GDA": GDA(),
    "GDA domain": GDA(covariance="domain", zero_shot="none"),
    "RanPAC": METHODS["RanPAC"](n_components=40, ridge=3.0),
    "RanPAC joint": METHODS["RanPAC"](n_components=40, ridge="joint"),
    "KLDA": METHODS["KLDA"](n_components=40),
    "PrimalRAIL": METHODS["PrimalRAIL"](n_components=40),
    "FeCAM": FeCAM(),
    "FeCAM few-shot": FeCAM(variant="few-shot"),
}
#: Their scatters are shared, so that of a forgotten class stays; their weights are fitted on samples.
SHARED = {name for name, method in SEALABLE.items() if method.sealing.keeps == "groups"}
#: One scatter of random features for all domains, and a number of bytes that their width decides.
ON_FEATURES = {"RanPAC", "RanPAC joint", "KLDA", "PrimalRAIL"}
#: A ridge that samples chose stays.
EXACT = sorted(set(SEALABLE) - {"HierarchicalHyCal", "RanPAC joint"})


@pytest.fixture(autouse=True)
def without_regression(monkeypatch):
    """A sealed HierarchicalHyCal is the one that never used a regression."""
    monkeypatch.setattr(hierarchy_weights, "kernel_pays", lambda samples, classes: False)


def learned(name, *streams):
    classifier = SEALABLE[name].with_parameters()
    for stream in streams:
        learn(classifier, stream.steps)
    return classifier


def assert_same_answers(one, other, *, atol=1e-4):
    assert one.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_array_equal(one.counts_, other.counts_)
    scores, found = (model.decision_function(WHOLE.queries).astype(float) for model in (one, other))
    np.testing.assert_allclose(found, scores, atol=atol * np.abs(scores).max())


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("name", SEALABLE)
def test_classes_without_any_scatter_are_sealed(name, copies):
    """One image of each class, or the same one again: there are degrees of freedom or none, and no scatter."""
    firsts = [np.unique(step.y, return_index=True)[1].tolist() * copies for step in FIRST.steps]
    single = replace(FIRST, steps=tuple(map(lambda step, rows: step.rows(rows), FIRST.steps, firsts)))
    model = learned(name, single)
    assert_same_answers(model, model.seal())


@pytest.mark.parametrize("name", SEALABLE)
def test_a_sealed_model_answers_as_before(name):
    model = learned(name, FIRST)
    sealed = model.seal()
    assert sealed.sealed_ and not model.sealed_
    assert_same_answers(model, sealed)
    np.testing.assert_allclose(sealed.predict_proba(WHOLE.queries), model.predict_proba(WHOLE.queries), atol=1e-4)
    sets, expected = (each.predict_set(WHOLE.queries) for each in (sealed, model))
    assert all(set(each) >= set(fewer) for each, fewer in zip(sets, expected, strict=True))
    assert sum(map(len, sets)) <= 1.1 * sum(map(len, expected))
    assert sealed.nbytes_ < model.nbytes_ or sealed.sealing.keeps == "classes" or name in ON_FEATURES


@pytest.mark.parametrize("name", EXACT)
def test_it_learns_more_images_and_new_classes(name):
    assert_same_answers(learned(name, FIRST, MORE), learn(learned(name, FIRST).seal(), MORE.steps))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("second", ["sealed", "open"])
def test_it_merges_with_sealed_and_open_models(name, second):
    one, two = learned(name, FIRST).seal(), learned(name, MORE)
    expected = learned(name, FIRST).merge(learned(name, MORE))
    assert_same_answers(expected, one.merge(two.seal() if second == "sealed" else two))


@pytest.mark.parametrize("name", sorted(set(EXACT) - SHARED))
def test_it_forgets_classes_exactly(name):
    assert_same_answers(learned(name, FIRST).forget([0, 5]), learned(name, FIRST).seal().forget([0, 5]))


@pytest.mark.parametrize("name", sorted(SHARED - {"HierarchicalHyCal"} - ON_FEATURES))
def test_a_forgotten_class_leaves_its_part_of_a_shared_scatter(name):
    sealed = learned(name, FIRST).seal()
    before = sealed.records_.spreads["domain 0"]
    sealed.forget(0)
    assert 0 not in sealed.classes_ and sealed.records_.spreads["domain 0"] is before
    sealed.forget([1, 2])
    assert "domain 0" not in sealed.records_.spreads
    assert_same_answers(learned(name, FIRST).forget([0, 1, 2]), sealed)


def test_the_hierarchy_of_a_sealed_model_is_that_of_its_samples():
    """Scores differ once weights are fitted anew; the Gaussians under them do not."""
    one = learned("HierarchicalHyCal", FIRST, MORE).snapshot().value.hierarchy
    for sealed in (
        learn(learned("HierarchicalHyCal", FIRST).seal(), MORE.steps),
        learned("HierarchicalHyCal", FIRST).seal().merge(learned("HierarchicalHyCal", MORE)),
    ):
        other = sealed.snapshot().value.hierarchy
        (q, e), (other_q, other_e) = one.evidence(WHOLE.queries), other.evidence(WHOLE.queries)
        for expected, found in zip((q, *e), (other_q, *other_e), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_a_regression_is_left_out_and_weights_are_fitted_without_it(monkeypatch):
    without = learned("HierarchicalHyCal", FIRST)
    without.decision_function(WHOLE.queries)
    monkeypatch.undo()
    model = learned("HierarchicalHyCal", FIRST)
    assert any(kernel is not None for kernel in model.snapshot().value.kernels)
    assert_same_answers(without, model.seal())
    np.testing.assert_allclose(model.seal().temperature_, without.temperature_, rtol=1e-4)


def test_groups_that_were_found_stay_and_new_classes_join_the_nearest():
    model, X = found_groups(np.arange(80))
    sealed = model.seal()
    assert len(sealed.records_.keys) == 4, "held-out samples chose groups"
    scores = model.decision_function(X[:9])
    np.testing.assert_allclose(sealed.decision_function(X[:9]), scores, atol=1e-4 * np.abs(scores).max())
    sealed.partial_fit(X[[0]], [99])
    assert sealed.records_.group_of[99] == sealed.records_.group_of[0]


def found_groups(labels):
    rng = np.random.default_rng(labels[0])
    corners = np.repeat(np.eye(16)[:4], 20, axis=0) + 0.1 * rng.normal(size=(80, 16))
    X = np.repeat(corners, 3, axis=0) + 0.02 * rng.normal(size=(240, 16))
    return HierarchicalHyCal().partial_fit(X, np.repeat(labels, 3)), X


def test_groups_that_were_found_in_both_models_stay_apart_unless_they_share_a_class():
    (one, X), (two, _) = found_groups(np.arange(80)), found_groups(np.arange(80, 160))
    sealed, other = one.seal().records_, two.seal().records_
    assert len(sealed.keys) == len(other.keys) == 4, "held-out samples chose groups"
    for joined, groups in ((sealed.merge(other), 8), (sealed.merge(sealed), 4)):
        assert len(joined.keys) == groups and set(joined.spreads) <= set(joined.keys)
        freedoms = sum(spread.freedom for spread in joined.group_spreads)
        assert freedoms == joined.counts.sum() - len(joined.labels)
        model = one.with_records(joined)
        assert np.isfinite(model.decision_function(X[:3])).all()


@pytest.mark.parametrize("name", SEALABLE)
@pytest.mark.parametrize("precision", ["single", "half"])
def test_a_file_is_read_and_written_again_to_the_same_bytes(name, precision, tmp_path):
    sealed = learned(name, FIRST).seal()
    sealed.save(tmp_path / "one", precision=precision)
    loaded = load(tmp_path / "one")
    loaded.save(tmp_path / "two", precision=precision)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert_same_answers(sealed, loaded, atol=1e-4 if precision == "single" else 1e-2)
    assert model_file.read(tmp_path / "one").manifest["version"] == 3
    learn(loaded, MORE.steps).forget(0)
    assert_same_answers(learn(sealed, MORE.steps).forget(0), loaded, atol=1e-4 if precision == "single" else 3e-2)


@pytest.mark.parametrize("name", SEALABLE)
@pytest.mark.parametrize("precision", ["single", "half"])
def test_no_embedding_is_in_the_file_nor_in_the_model(name, precision, tmp_path):
    model = learned(name, FIRST)
    model.save(tmp_path / "open")
    sealed = model.seal()
    sealed.save(tmp_path / "sealed", precision=precision)
    rows = [row for record in model.records_.ordered if record.count > 1 for row in record.samples.rows]
    opened, content, held = (tmp_path / "open").read_bytes(), (tmp_path / "sealed").read_bytes(), pickle.dumps(sealed)
    assert rows[0].tobytes() in opened
    for row in rows:
        for dtype in (np.float16, np.float32, np.float64):
            assert row.astype(dtype).tobytes() not in content and row.astype(dtype).tobytes() not in held


REFUSED = {
    "single images": lambda model: model.unlearn(FIRST.steps[0].X[:1], list(FIRST.steps[0].y[:1])),
    "hold images out": lambda model: model.leave_one_out(),
    "be tuned": lambda model: model.tune(),
    "no images yet": lambda model: model.announce({"a": np.eye(16)[0]}),
    "other parameters": lambda model: model.set_params(metric="euclidean").predict(WHOLE.queries),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_needs_single_images_is_refused_with_the_reason(what):
    sealed = learned("NCM", FIRST).seal()
    with pytest.raises(HyCalError, match=f"sealed: it has no embeddings of single images, so it cannot .*{what}"):
        REFUSED[what](sealed)
    assert_same_answers(learned("NCM", FIRST), sealed.set_params(metric="cosine"))


def test_an_open_model_does_not_take_in_a_sealed_one():
    with pytest.raises(HyCalError, match="Merge this one into the sealed one"):
        learned("NCM", FIRST).merge(learned("NCM", FIRST).seal())
    with pytest.raises(HyCalError, match="other parameters"):
        learned("NCM", FIRST).seal().merge(learned("NCM euclidean", FIRST))


@pytest.mark.parametrize("name", sorted(set(METHODS) - {type(method).__name__ for method in SEALABLE.values()}))
def test_methods_that_cannot_be_sealed_say_why(name):
    method = METHODS[name]()
    assert not method.sealing.keeps and method.sealing.reason
    with pytest.raises(HyCalError, match=f"cannot be sealed: {method.sealing.reason}"):
        learn(method, FIRST.steps).seal()


def test_a_class_without_the_text_that_the_method_fuses_is_refused():
    sealed = learned("HyCal", FIRST).seal()
    before = sealed.predict_proba(FIRST.queries)
    with pytest.raises(HyCalError, match="needs a text embedding for every class"):
        sealed.partial_fit(MORE.steps[3].X, [999] * len(MORE.steps[3].y), domain="other")
    np.testing.assert_array_equal(sealed.predict_proba(FIRST.queries), before)


@pytest.mark.parametrize("name", sorted(set(SEALABLE) - {"ZeroShot"}))
def test_a_model_that_forgot_everything_merges_again(name, tmp_path):
    sealed = learned(name, FIRST).seal()
    empty = copy.copy(sealed).forget(list(sealed.classes_))
    empty.merge(sealed).save(tmp_path / "model")
    assert_same_answers(load(tmp_path / "model"), sealed)


def test_a_group_whose_domain_is_gone_is_one_of_the_new_domain():
    sealed = learned("GDA domain", FIRST).seal()
    first, second, *_ = (step.domain for step in FIRST.steps)
    moved = {label: second for label, domain in zip(sealed.classes_, sealed.domains_, strict=True) if domain == first}
    records = sealed.records_.rename({}, moved)
    assert first not in records.keys
    assert {records.group_of[label] for label in moved} == {found_key(second, 0)}
    fresh = sealed.with_records(records)
    fresh.partial_fit(FIRST.steps[0].X, np.asarray(FIRST.steps[0].y) + 1000, domain=first)
    assert fresh.records_.spreads[first].freedom == sealed.records_.spreads[first].freedom


def test_announced_classes_are_not_sealed():
    model = learned("HyCal", FIRST).announce({99: np.eye(16)[0]})
    with pytest.raises(HyCalError, match="Only classes with images can be sealed"):
        model.seal()


def test_unknown_images_are_told_by_means_and_a_threshold_that_is_kept():
    model = learned("NCM", FIRST)
    sealed = model.seal()
    far = -WHOLE.queries
    assert sealed.unknown(far).all()
    assert sealed.unknown(WHOLE.queries).tolist() == model.unknown(WHOLE.queries).tolist()
    sealed.partial_fit(far[:1], [77])
    assert not sealed.unknown(far[:1]).any(), "a class that a sealed model learned is known"


def test_a_gram_matrix_is_bounded_whatever_the_number_of_images():
    sealed = learned("RanPAC", FIRST, MORE).seal()
    classes, features, width = len(sealed.classes_), 40, 16
    assert sealed.nbytes_ <= 4 * (classes * (features + width) + features * (features + width))
    (spread,) = sealed.records_.spreads.values()
    assert len(spread.factor) <= spread.factor.shape[1] == features


@pytest.mark.parametrize("options", [{"mode": "faithful"}, {"ensemble": 3}])
def test_a_kernel_discriminant_of_another_kind_says_why_it_cannot_be_sealed(options):
    model = learn(METHODS["KLDA"](n_components=40, **options), FIRST.steps)
    with pytest.raises(HyCalError, match=r"scatter is rounded|one Gram matrix for each"):
        model.seal()


def test_what_is_kept_of_held_out_samples_proves_no_membership():
    """Whoever has an embedding can compute its familiarity without itself, and look for it in the file."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(100, 32))
    X, others = (np.repeat(means, 10, axis=0) + rng.normal(size=(1000, 32)) for _ in range(2))
    y = np.repeat(np.arange(100), 10)
    model = NCM().fit(X, y)
    sealed = model.seal()
    kept = sealed.records_.numbers["familiarity"][2:]
    exact = Familiarity.of(model.records_, most=0.0).held_out
    assert np.abs(kept[:, None] - exact).min(axis=1).max() > 1e-6 and len(np.unique(kept)) < 0.1 * len(exact)
    strangers = Familiarity.of(NCM().fit(others, y).records_, most=0.0).held_out
    found = [float(np.mean(np.isin(np.round(values, 1), kept))) for values in (exact, strangers)]
    assert found[0] == 1.0 and found[1] > 0.95, "a stranger's rounded value is there as well as a member's"


def test_rounded_numbers_keep_thresholds_and_coverage():
    rng = np.random.default_rng(1)
    means = rng.normal(size=(60, 32))
    X, queries = (np.repeat(means, k, axis=0) + 0.8 * rng.normal(size=(60 * k, 32)) for k in (8, 20))
    model = NCM().fit(X, np.repeat(np.arange(60), 8))
    sealed, own = model.seal(), np.repeat(np.arange(60), 20)
    for coverage in (0.8, 0.9, 0.95):
        open_share, sealed_share = (
            np.mean([label in each for label, each in zip(own, one.predict_set(queries, coverage), strict=True)])
            for one in (model, sealed)
        )
        assert open_share <= sealed_share <= open_share + 0.02
    for error in (0.02, 0.05, 0.1):
        kept, before = (one.familiarity_.threshold(error) for one in (sealed, model))
        covariance_free = Familiarity.of(model.records_, most=0.0).threshold(error)
        assert abs(kept - covariance_free) < 0.05 and np.isfinite(before)


def test_near_duplicates_do_not_make_known_images_unknown(tmp_path):
    """Thresholds are of the samples that differ, so the measure that they were fitted to must be too."""
    rng = np.random.default_rng(0)
    means = rng.normal(scale=0.25, size=(20, 64)) + 2.0 * np.eye(64)[0]
    images, queries = (np.repeat(means, k, axis=0) + rng.normal(scale=0.12, size=(20 * k, 64)) for k in (2, 10))
    model = NCM().fit(np.repeat(images, 8, axis=0), np.repeat(np.arange(20), 16))
    model.seal().save(tmp_path / "sealed")
    assert model.unknown(queries).mean() < 0.05
    assert load(tmp_path / "sealed").unknown(queries).mean() < 0.05


def test_a_sealed_model_can_be_sealed_and_pickled():
    sealed = learned("SLDA", FIRST).seal()
    assert_same_answers(sealed, sealed.seal())
    assert_same_answers(sealed, pickle.loads(pickle.dumps(sealed)))


MALFORMED = {
    "no means": lambda m, t: t.pop("sealed.means"),
    "means that are too long": lambda m, t: t.update({"sealed.means": 2 * t["sealed.means"]}),
    "means that are not finite": lambda m, t: t["sealed.means"].fill(np.nan),
    "a factor of too many rows": lambda m, t: t.update({"sealed.factor_rows": t["sealed.factor_rows"] + 1}),
    "a count of none": lambda m, t: t["counts"].fill(0),
    "samples beside moments": lambda m, t: t.update(
        samples=t["sealed.means"][:1] / np.linalg.norm(t["sealed.means"][0])
    ),
    "a scatter of no group": lambda m, t: m["sealed"].update(spreads=["nowhere"]),
    "scatters of other freedoms": lambda m, t: t["sealed.spread_freedoms"].fill(0),
    "no calibration": lambda m, t: t.pop("sealed.number.calibration"),
    "a temperature of none": lambda m, t: t["sealed.number.calibration"].fill(0.0),
    "two numbers of what is common": lambda m, t: t.update({"sealed.number.common": np.zeros(2)}),
    "another thing kept": lambda m, t: m["sealed"].update(keeps="classes"),
    "nothing that is known": lambda m, t: m["sealed"].update(keeps="all"),
    "sealed by a list": lambda m, t: m.update(sealed=[1]),
    "a scatter of a list": lambda m, t: m["sealed"].update(spreads=[["flower"]]),
    "weights of more groups than are named": lambda m, t: (
        m["sealed"].update(weighted=m["sealed"]["spreads"][:1]),
        t.update({"sealed.weights": np.ones((2, 5))}),
    ),
    "more samples than can exist": lambda m, t: t["counts"].fill(2**62),
    "more degrees of freedom than can exist": lambda m, t: t["sealed.spread_freedoms"].fill(2**63 - 1),
    "means wider than embeddings": lambda m, t: t.update(
        {"sealed.centres": t["sealed.means"]}
        | {name: np.tile(t[name], 2) for name in ("sealed.means", "sealed.factors", "sealed.spreads")}
    ),
    "views without a table of each": lambda m, t: (
        m["parameters"].update(views=[1, t["samples"].shape[1] - 1]),
        t.update(texts=t["samples"], has_text=0 * t["has_text"]),
    ),
    "embeddings of another width": lambda m, t: t.update(
        samples=np.zeros((0, 3), np.float32), texts=np.zeros((0, 3), np.float32), has_text=0 * t["has_text"]
    ),
    "a group too few": lambda m, t: m["sealed"]["groups"].pop(),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_file_is_refused(fault, tmp_path):
    learned("SLDA", FIRST).seal().save(tmp_path / "model")
    rewrite(tmp_path / "model", MALFORMED[fault])
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


@pytest.mark.parametrize("name", ["sealed.weights", "sealed.number.domain"])
@pytest.mark.parametrize("weight", [1e300, -1.0])
def test_weights_that_no_fit_gives_are_refused(tmp_path, name, weight):
    learned("HierarchicalHyCal", FIRST).seal().save(tmp_path / "model")
    rewrite(tmp_path / "model", lambda m, t: t.update({name: np.full_like(t[name], weight)}))
    with pytest.raises(ModelFileError, match="negative, or above"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "name, place, value",
    [("calibration", 0, 5e-324), ("calibration", 0, 1e300), ("calibration", -1, 1.5), ("familiarity", 1, 5e-324)],
)
def test_numbers_that_no_calibration_gives_are_refused(tmp_path, name, place, value):
    def forge(manifest, tensors):
        tensors[f"sealed.number.{name}"] = numbers = tensors[f"sealed.number.{name}"].copy()
        numbers[place] = value

    learned("SLDA", FIRST).seal().save(tmp_path / "model")
    rewrite(tmp_path / "model", forge)
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_weights_of_another_method_are_refused(tmp_path):
    learned("HierarchicalHyCal", FIRST).seal().save(tmp_path / "model")
    rewrite(tmp_path / "model", lambda m, t: t.update({"sealed.weights": t["sealed.weights"][:, :2]}))
    with pytest.raises(ModelFileError, match="weights of evidence"):
        load(tmp_path / "model")


def test_moments_are_those_of_all_samples():
    rows = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    parts = [Moments.of(part, part, part - part.mean(axis=0)) for part in (rows[:1], rows[1:4], rows[4:])]
    joined = parts[0].join(parts[1]).join(parts[2])
    scatter = np.cov(rows.T, bias=True) * len(rows)
    np.testing.assert_allclose(joined.mean, rows.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(joined.factor.T @ joined.factor, scatter, rtol=1e-4, atol=1e-4)
    assert joined.count == 40 and joined.factor.shape == (6, 6), "bounded by the width"
    stand_ins = joined.rows()
    np.testing.assert_allclose(stand_ins.mean(axis=0), joined.mean, atol=1e-6)
    np.testing.assert_allclose(np.cov(stand_ins.T), np.cov(rows.T), rtol=1e-4, atol=1e-5)
    assert len(parts[1].rows()) == 3


def test_a_factor_depends_on_the_scatter_alone():
    rows = np.random.default_rng(0).normal(size=(5, 9))
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0] @ rows
    np.testing.assert_allclose(factor_of(turned, 5), factor_of(rows, 5), atol=1e-6)
    np.testing.assert_allclose(Spread.of(9).plus(rows.T @ rows, 5).factor, factor_of(rows, 5), atol=1e-5)


def test_a_file_from_before_evidence_by_counts_opens_without_it(tmp_path):
    sealed = learned("HierarchicalHyCal", FIRST).seal()
    sealed.save(tmp_path / "model")
    rewrite(tmp_path / "model", lambda m, t: t.update({"sealed.weights": t["sealed.weights"][:, :-1]}))
    older = load(tmp_path / "model")
    assert not older.snapshot().value.weights.classes[:, -1].any()
    np.testing.assert_array_equal(older.classes_, sealed.classes_)
    assert np.isfinite(older.decision_function(WHOLE.queries)).all()


@pytest.mark.parametrize("name", ["NCM", "SLDA", "GDA domain", "HyCal image"])
def test_the_temperature_follows_the_scale_of_scores(name):
    whole, first = SEALABLE[name].with_parameters(), SEALABLE[name].with_parameters()
    parts, queries = [], []
    for domain in (load_xd8()[each] for each in ("satellite", "texture", "digit")):
        rows = [np.flatnonzero(domain.train_y == label)[:12] for label in np.unique(domain.train_y)]
        X, y = (np.concatenate([part[own] for own in rows]) for part in (domain.train_x, domain.train_y))
        names = np.array([f"{domain.name}/{label}" for label in y])
        early = np.arange(len(y)) % 12 < 3
        whole.partial_fit(X, names, domain=domain.name)
        first.partial_fit(X[early], names[early], domain=domain.name)
        parts.append((X[~early], names[~early], domain.name))
        queries.append(domain.test_x)
    sealed = first.seal()
    for X, names, domain in parts:
        sealed.partial_fit(X, names, domain=domain)
    numbers = {name: number for name, number in sealed.records_.numbers.items() if name != "scale"}
    frozen = sealed.with_records(replace(sealed.records_, numbers=numbers))
    queries = np.concatenate(queries)
    expected, found, stale = (m.predict_proba(queries).max(axis=1).mean() for m in (whole, sealed, frozen))
    assert abs(found - expected) < 0.5 * abs(stale - expected)


def test_half_precision_moves_no_temperature():
    stream = Stream.synthetic(5, shots=[[3] * 260], width=12)
    sealed = learned("NCM", stream).seal()
    records = sealed.records_
    rounded = {
        label: replace(record, moments=replace(record.moments, mean=_half(record.mean), centre=_half(record.mean)))
        for label, record in records.by_label.items()
    }
    half = sealed.with_records(replace(records, by_label=rounded))
    assert half.calibration_.temperature == pytest.approx(sealed.calibration_.temperature, rel=1e-9)


def _half(mean):
    return mean.astype(np.float16).astype(np.float32)
