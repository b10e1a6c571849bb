"""The hierarchy against dense matrices, and its left-out samples against hierarchies fitted again."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import HierarchicalHyCal
from hycal.algebra.hierarchy_fit import fit_hierarchy
from hycal.algebra.hierarchy_held_out import held_out_evidence
from hycal.data.bundled import load_xd8
from hycal.state.selection import Selection
from hycal.state.steps import LearningStep, Step
from hycal.testing.streams import Stream, learn

STREAM = Stream.synthetic(3, shots=[[3, 1, 4], [2, 6, 7], [5, 5]], width=12)


def dense(records, *, strength=1.0, ridge=0.5, pseudo=0.25):
    """The hierarchy as its module states it, with d x d matrices and explicit inverses."""
    d = records.width
    groups = {name: [r for r in records.ordered if r.domain == name] for name in sorted(set(records.domains))}
    samples = {name: [r.samples.rows.astype(float) for r in group] for name, group in groups.items()}
    means = {name: np.stack([x.mean(axis=0) for x in group]) for name, group in samples.items()}
    scatter = {n: sum((x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) for x in g) for n, g in samples.items()}
    freedom = {name: sum(map(len, group)) - len(group) for name, group in samples.items()}
    S, v = sum(scatter.values()), sum(freedom.values())
    W0 = (1 - ridge) * S / v + ridge * np.trace(S) / v / d * np.eye(d)
    root = np.linalg.cholesky(W0)
    white = np.concatenate([(m - m.mean(axis=0)) @ np.linalg.inv(root).T for m in means.values()])
    counts = records.counts
    dof = len(counts) - len(groups)
    between = white.T @ white - np.sum(1 / counts) * dof / len(counts) * np.eye(d)
    level = max(np.trace(between) / d / dof, 1e-3)
    e, V = np.linalg.eigh((between + pseudo * d * level * np.eye(d)) / (dof + pseudo * d))
    B = root @ (V * np.maximum(e, 1e-3)) @ V.T @ root.T
    for name, group in samples.items():
        W = (scatter[name] + strength * d * W0) / (freedom[name] + strength * d)
        centre = means[name].mean(axis=0)
        posterior = [B @ np.linalg.inv(B + W0 / len(x)) @ (x.mean(axis=0) - centre) for x in group]
        yield centre, W, np.array(posterior), means[name] - centre


@pytest.mark.parametrize("width", [12, 6])  # more dimensions than classes, and fewer
def test_evidence_is_that_of_the_dense_matrices(width):
    stream = Stream.synthetic(3, shots=[[3, 1, 4], [2, 6, 7], [5, 5]], width=width)
    records = learn(HierarchicalHyCal(), stream.steps).snapshot().records
    X = stream.queries
    densities, evidence = fit_hierarchy(records, strength=1.0, ridge=0.5).evidence(X)
    for q, (distance, direction), (centre, W, s, m) in zip(densities.T, evidence, dense(records), strict=True):
        P = np.linalg.inv(W)
        y = X - centre
        np.testing.assert_allclose(
            q, -0.5 * np.einsum("nd,de,ne->n", y, P, y) - 0.5 * np.linalg.slogdet(W)[1], rtol=1e-5, atol=1e-5
        )
        squares = np.einsum("cd,de,ce->c", s, P, s)
        np.testing.assert_allclose(distance, y @ P @ s.T - 0.5 * squares, rtol=1e-5, atol=1e-5)
        lengths = np.sqrt(np.einsum("cd,de,ce->c", m, P, m))
        np.testing.assert_allclose(direction, np.sqrt(squares.mean()) * (y @ P @ m.T) / lengths, rtol=1e-5, atol=1e-5)


def test_left_out_samples_leave_no_trace_in_their_class():
    """Against hierarchies built again without the sample, on real embeddings with fewer classes than dimensions.

    What all data say moves a little with the sample, so this agrees to a few percent. A sample that stayed in the
    covariance of the class means would make its own class stand out by many times that.
    """
    records = learn(HierarchicalHyCal(), real_steps(shots=8)).snapshot().records
    samples = Selection.of(records)
    chosen = np.arange(0, len(samples.rows), 19)
    q, e = held_out_evidence(fit_hierarchy(records, strength=1.0, ridge=0.5), samples.at(chosen))
    for row, at in enumerate(chosen):
        label, x = records.labels[samples.own[at]], samples.X[at : at + 1]
        again = fit_hierarchy(records.remove(Step({label: x}, None, {})), strength=1.0, ridge=0.5)
        expected_q, expected_e = again.evidence(x)
        assert np.all(np.abs(q[row] - expected_q[0]) < 0.05 * np.abs(expected_q[0]))
        for found, expected in zip(e, expected_e, strict=True):
            assert np.abs(found[:, row] - expected[:, 0]).max() < 0.15 * np.abs(expected).max()


def real_steps(shots):
    for name in ("texture", "digit"):
        domain = load_xd8()[name]
        rows = np.concatenate([np.flatnonzero(domain.train_y == c)[:shots] for c in range(len(domain.class_names))])
        yield LearningStep(domain.train_x[rows], tuple(f"{name}/{c}" for c in domain.train_y[rows]), name, {})
