"""Left-out evidence against dense matrices from which the sample was taken by hand."""

from __future__ import annotations

import numpy as np

from hycal.algebra.hierarchy_held_out import held_out_energies, held_out_evidence, posterior_without


def dense_evidence(hierarchy, domain, number, x, own, count):
    """q and both kinds of evidence in one domain for one sample that was taken from W_g and from its class."""
    prior, T = hierarchy.prior, hierarchy.prior.to_basis.astype(float)
    W = np.linalg.inv(domain.whitening.astype(float) @ domain.whitening.astype(float).T)
    gap = x - hierarchy.means[own]
    inside = hierarchy.domain_of[own] == number
    influence, weight = (prior.influence, domain.weight - 1) if inside else (prior.influence - 1, domain.weight)
    W = (domain.weight * W - count / (count - 1) * influence * np.outer(gap, gap)) / weight
    P, y = np.linalg.inv(W), x - domain.centre
    back = np.linalg.inv(domain.whitening.astype(float))
    means, posterior = domain.plain @ back, domain.posterior @ back
    if inside:
        at = int(np.searchsorted(domain.columns, own))
        before = means[at].copy()
        means[at] = (count * before - y) / (count - 1)
        in_basis = np.stack([before, means[at]]) @ T
        B = np.diag(prior.between) + (np.outer(in_basis[1], in_basis[1]) - np.outer(in_basis[0], in_basis[0])) / (
            prior.freedom
        )
        m = count - 1
        posterior[at] = (m * B @ np.linalg.inv(m * B + np.eye(len(B))) @ in_basis[1]) @ np.linalg.inv(T)
    q = -0.5 * y @ P @ y - 0.5 * np.linalg.slogdet(W)[1]
    distance = posterior @ P @ y - 0.5 * np.einsum("cd,de,ce->c", posterior, P, posterior)
    direction = domain.radius * (means @ P @ y) / np.sqrt(np.einsum("cd,de,ce->c", means, P, means))
    return q, distance, direction


def test_evidence_is_that_of_the_dense_matrices(hierarchy, samples):
    q, e = held_out_evidence(hierarchy, samples)
    energies = held_out_energies(hierarchy, samples)
    for row, (x, own, count) in enumerate(zip(samples.X.astype(float), samples.own, samples.counts, strict=True)):
        for number, domain in enumerate(hierarchy.domains):
            dense_q, distance, direction = dense_evidence(hierarchy, domain, number, x, own, count)
            np.testing.assert_allclose(q[row, number], dense_q, rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(e[number][0, row], distance, rtol=1e-4, atol=2e-3)
            np.testing.assert_allclose(e[number][1, row], direction, rtol=1e-4, atol=2e-3)
            np.testing.assert_allclose(energies[row, number], dense_q + distance.max(), rtol=1e-4, atol=3e-3)


def test_a_posterior_whose_mean_does_not_change_is_the_plain_posterior(hierarchy, records):
    domain = hierarchy.domains[0]
    counts = records.counts[domain.columns]
    same = posterior_without(hierarchy.prior, domain.offsets, domain.offsets, counts)
    np.testing.assert_allclose(same, hierarchy.prior.posterior(domain.offsets, counts), atol=1e-5)
