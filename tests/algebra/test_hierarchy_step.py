"""A domain after small changes, against the same domain computed from its samples under the same prior."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra import hierarchy_fit
from hycal.algebra.hierarchy_kernel import KernelRegression
from hycal.algebra.hierarchy_kernel_step import SteppedKernel
from hycal.algebra.hierarchy_step import changes_by_domain, domains_after, hierarchy_after
from hycal.algebra.low_rank import LowRank
from hycal.state.changes import Changes
from hycal.state.records import Records
from hycal.state.steps import Step
from hycal.testing.streams import Stream

WIDTH = 12


@pytest.fixture
def stream():
    return Stream.synthetic(3, shots=[[6, 5, 9, 6, 7, 3], [4, 8, 5, 6, 5]], width=WIDTH)


def _records(stream):
    records = Records({})
    for step in stream.steps:
        records = records.learn(Step.of(step.X.astype(np.float32), list(step.y), step.domain, {}))
    return records


def _changed(records, stream):
    """Learn in one class, take back in another, add a class, forget one, and give one another name."""
    first = stream.steps[0]
    unit = np.float32(first.X)
    records = records.learn(Step({0: unit[-2:]}, None, {})).remove(
        Step({2: records.by_label[2].samples.rows[:2]}, None, {})
    )
    yield records
    records = records.learn(Step({50: unit[:3]}, "domain 0", {})).forget([4])
    yield records
    names = {1: 70}
    yield Records({names.get(label, label): record for label, record in records.by_label.items()})


def _fitted(records):
    return hierarchy_fit.fit_hierarchy(records, strength=1.0, ridge=0.5)


def _dense(hierarchy, records, columns):
    prior = hierarchy.prior
    moments = hierarchy_fit._Moments.of([records.ordered[column] for column in columns])
    within = hierarchy_fit._Within(prior.within, prior.strength, prior.ridge, 0.0)
    space = hierarchy_fit._WhiteSpace.of(moments, within)
    shrunk = prior.posterior(moments.offsets, moments.counts)
    return hierarchy_fit._domain_gaussians(columns, moments, space, shrunk)


def test_a_domain_follows_changes(stream):
    records = _records(stream)
    hierarchy = hierarchy_fit.fit_hierarchy(records, strength=1.0, ridge=0.5)
    for following in _changed(records, stream):
        hierarchy = hierarchy_after(hierarchy, Changes.between(records, following), named=True)
        records = following
        np.testing.assert_allclose(hierarchy.prior.within, _fitted(records).prior.within, atol=1e-12)
        np.testing.assert_allclose(hierarchy.means, [one.samples.mean for one in records.ordered], atol=1e-6)
        domain = hierarchy.domains[0]  # the other one did not change, and keeps its W0
        dense = _dense(hierarchy, records, domain.columns)
        q, e = hierarchy.evidence(stream.queries.astype(np.float32))
        Z, (A, c) = dense.white(stream.queries), dense.linear
        np.testing.assert_allclose(q[:, 0], -0.5 * np.sum(Z**2, axis=1) - dense.log_det, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(e[0], Z @ A.transpose(0, 2, 1) + c[:, None], rtol=1e-4, atol=1e-3)
        assert domain.radius == pytest.approx(dense.radius, rel=1e-4)


def test_a_new_domain_is_not_followed(stream):
    records = _records(stream)
    hierarchy = hierarchy_fit.fit_hierarchy(records, strength=1.0, ridge=0.5)
    other = records.learn(Step({99: np.float32(stream.queries[:2])}, "elsewhere", {}))
    assert hierarchy_after(hierarchy, Changes.between(records, other), named=True) is None
    assert domains_after(hierarchy, Changes.between(records, other), named=False) is not None


def test_a_regression_follows_changes(stream):
    records = _records(stream)
    hierarchy = hierarchy_fit.fit_hierarchy(records, strength=1.0, ridge=0.5)
    columns = hierarchy.domains[0].columns
    rows = np.concatenate([records.ordered[column].samples.rows for column in columns])
    base = KernelRegression.fit(rows, np.repeat(np.arange(len(columns)), records.counts[columns]))
    kernel = SteppedKernel.of(base)
    for following in _changed(records, stream):
        changes = Changes.between(records, following)
        domain_of = domains_after(hierarchy, changes, named=True)
        step = changes_by_domain(hierarchy, changes, domain_of)[0]
        kernel, hierarchy, records = kernel.after(step), hierarchy_after(hierarchy, changes, named=True), following
        expected = _dense_regression(base, kernel, records, step.columns, stream.queries.astype(np.float32))
        np.testing.assert_allclose(kernel(stream.queries.astype(np.float32)), expected, atol=2e-4)
        rows, own, without = _dense_without_each(base, kernel, records, step.columns)
        np.testing.assert_allclose(kernel.without_each(rows, own), without, atol=5e-4)


def _dense_regression(base, kernel, records, columns, queries):
    """Solve the regression of what is there now, with the variance of the fit and its ridge of each class."""
    rows, own, A = _dense_system(base, kernel, records, columns)
    return base.between(queries, rows) @ np.linalg.solve(A, np.eye(len(columns))[own])


def _dense_system(base, kernel, records, columns):
    """Return the samples of the classes, the place of the class of each, and K + r D."""
    members = [records.ordered[column] for column in columns]
    rows = np.concatenate([member.samples.rows for member in members])
    own = np.repeat(np.arange(len(members)), [member.count for member in members])
    A = base.between(rows, rows).astype(np.float64)
    A.flat[:: len(A) + 1] += kernel._ridges[kernel.source[own]]
    return rows, own, A


def _dense_without_each(base, kernel, records, columns):
    """Solve the same without each sample in turn, and predict it."""
    rows, own, A = _dense_system(base, kernel, records, columns)
    targets, found = np.eye(len(columns))[own], []
    for i, row in enumerate(rows):
        kept = np.flatnonzero(np.arange(len(rows)) != i)
        found.append(base.between(row[None], rows[kept])[0] @ np.linalg.solve(A[np.ix_(kept, kept)], targets[kept]))
    return rows, own, np.array(found)


def test_a_scatter_follows_changes(stream):
    records = _records(stream)
    for following in _changed(records, stream):
        found = LowRank.of_scatter(Changes.between(records, following).classes, WIDTH).added_to(_scatter(records))
        np.testing.assert_allclose(found, _scatter(following), atol=1e-10)


def _scatter(records):
    deviations = [one.samples.rows - one.samples.mean for one in records.ordered]
    return sum(part.T @ part for part in deviations)
