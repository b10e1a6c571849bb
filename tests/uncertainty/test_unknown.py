"""Rejection keeps what it promises on real embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from hycal import NCM, HierarchicalHyCal, HyCal, HyCalError
from hycal.data.bundled import load_xd8
from hycal.state.selection import Selection
from hycal.uncertainty.unknown import ClassSimilarity, Familiarity, student_quantile
from hycal.validation import unit_rows
from tests.uncertainty.knowledge import SAME, same_knowledge


def test_known_images_are_rejected_as_often_as_stated_and_others_more():
    xd8 = {name: load_xd8()[name] for name in ("texture", "digit", "art", "galaxy")}
    fitted = HierarchicalHyCal()
    for name in ("texture", "digit"):
        domain = xd8[name]
        fitted.partial_fit(domain.train_x, [f"{name}/{c}" for c in domain.train_y], domain=name)
    X = np.concatenate([domain.test_x[::2] for domain in xd8.values()])
    truth = np.array([f"{name}/{c}" for name, domain in xd8.items() for c in domain.test_y[::2]])
    known = np.isin(truth, fitted.classes_)
    for error in (0.05, 0.2):
        unknown = fitted.unknown(X, error)
        assert abs(unknown[known].mean() - error) < 0.05
        assert unknown[~known].mean() > 0.9
    assert fitted.familiarity(X[known]).mean() > fitted.familiarity(X[~known]).mean() + 3.0


def test_few_images_are_enough_to_tell_other_disciplines():
    xd8, known, others = load_xd8(), [], []
    elsewhere = np.concatenate([xd8[name].test_x[::20] for name in ("digit", "medical", "art")])
    for name in ("aircraft", "galaxy", "satellite", "flower"):
        domain = xd8[name]
        for seed in range(5):
            rng = np.random.default_rng(seed)
            chosen = rng.permutation(len(domain.class_names))[:3]
            rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:3] for c in chosen])
            fitted = NCM().fit(domain.train_x[rows], domain.train_y[rows])
            known.append(fitted.unknown(domain.test_x[np.isin(domain.test_y, chosen)]).mean())
            others.append(fitted.unknown(elsewhere).mean())
    assert np.mean(known) < 0.1 and np.mean(others) > 0.9


def similarity_of(means, x, common):
    """The similarity by its definition."""
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    centre = means.sum(axis=0) / np.linalg.norm(means.sum(axis=0))
    return max(unit @ x) - common * centre @ x


def test_each_held_out_similarity_is_that_of_records_without_the_sample():
    X = unit_rows(np.random.default_rng(0).normal(size=(12, 6)) + 1.0)
    y = np.repeat(["a", "b", "c"], [2, 4, 6])
    records = NCM().fit(X, y).records_
    similarity, samples = ClassSimilarity.of(records), Selection.of(records)
    expected = []
    for row, own in zip(samples.rows, samples.own, strict=True):
        parts = [record.samples.rows.astype(float) for record in records.ordered]
        start = sum(len(part) for part in parts[:own])
        parts[own] = np.delete(parts[own], row - start, axis=0)
        means = np.stack([part.mean(axis=0) for part in parts])
        expected.append(similarity_of(means, samples.X[row].astype(float), similarity.common))
    np.testing.assert_allclose(similarity.held_out(samples), expected, atol=1e-6)
    means = np.stack([record.samples.mean for record in records.ordered])
    queries = unit_rows(np.random.default_rng(1).normal(size=(5, 6))).astype(float)
    told = [similarity_of(means, query, similarity.common) for query in queries]
    np.testing.assert_allclose(similarity(queries), told, atol=1e-6)


def test_the_threshold_goes_from_student_s_t_to_the_quantile():
    rng = np.random.default_rng(0)
    for n, weight in ((10, 0.5 / 10.5), (10_000, 500 / 510)):
        held_out = np.sort(rng.exponential(size=n))
        known = Familiarity(ClassSimilarity(np.eye(2), 0.0), 0.0, 1.0, None, 0.0, held_out)
        normal = held_out.mean() - t.ppf(0.95, n) * held_out.std(ddof=1)
        expected = (1 - weight) * normal + weight * np.quantile(held_out, 0.05)
        assert known.threshold(0.05) == pytest.approx(expected)


def test_near_duplicates_do_not_raise_the_threshold():
    domain = load_xd8()["texture"]
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:4] for c in range(3)])
    X, y = domain.train_x[rows], domain.train_y[rows]
    burst = unit_rows(np.repeat(X, 3, axis=0) + 0.001 * rng.standard_normal((3 * len(X), X.shape[1])))
    asked = domain.test_x[domain.test_y < 3]
    plain, planted = NCM().fit(X, y).unknown(asked), NCM().fit(burst, np.repeat(y, 3)).unknown(asked)
    assert abs(plain.mean() - planted.mean()) < 0.03


def test_what_cannot_be_held_out_cannot_be_rejected():
    one = NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    with pytest.raises(HyCalError, match="No class has two samples"):
        one.unknown([[1.0, 0.0]])
    for share in (0.0, 1.0, 5.0):
        with pytest.raises(HyCalError, match="expected a share"):
            one.unknown([[1.0, 0.0]], share)


@pytest.mark.parametrize("method", [HyCal, HierarchicalHyCal, NCM])
def test_familiarity_does_not_depend_on_calls_or_names(method):
    one, *others = same_knowledge(method)
    for other in others:
        familiar = one.familiarity(SAME.queries)  # scored in float32, of seven digits
        np.testing.assert_allclose(other.familiarity(SAME.queries), familiar, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 50, 999, 1000])
def test_quantiles_of_student_are_those_of_scipy(freedom):
    """By its distribution function: the quantiles of SciPy 1.11 are wrong in the ninth digit."""
    shares = np.array([0.01, 0.4, 0.5, 0.95, 0.9999])
    found = [student_quantile(freedom, share) for share in shares]
    np.testing.assert_allclose(t.cdf(found, freedom), shares, rtol=1e-9)
    np.testing.assert_allclose(t.sf(found, freedom), 1.0 - shares, rtol=1e-9)
