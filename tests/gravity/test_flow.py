"""Laws of the flow between domains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hycal.gravity import DomainFlow, relate

DOMAINS = ("a", "b", "c", "d")
answered = st.lists(st.tuples(st.sampled_from(DOMAINS), st.sampled_from(DOMAINS)), min_size=1, max_size=60)


def flow_of(pairs, domains=DOMAINS):
    truth, answers = zip(*pairs, strict=True)
    return DomainFlow.of(truth, answers, domains)


@given(answered)
def test_rows_sum_to_what_was_asked_and_nothing_is_lost_on_the_way(pairs):
    flow = flow_of(pairs)
    truth = [domain for domain, _ in pairs]
    assert flow.asked.tolist() == [truth.count(domain) for domain in DOMAINS]
    assert flow.counts.sum() == len(pairs)
    assert flow.net.sum() == 0
    assert flow.inflow.sum() == flow.outflow.sum() == sum(one != other for one, other in pairs)
    asked = flow.asked > 0
    np.testing.assert_allclose(flow.rates[asked].sum(axis=1), 1.0)
    np.testing.assert_allclose(flow.loss[asked], flow.outflow[asked] / flow.asked[asked])
    assert np.isnan(flow.rates[~asked]).all()


@given(st.lists(st.sampled_from(DOMAINS), min_size=1, max_size=40))
def test_never_wrong_across_domains_is_no_flow_and_no_pull(truth):
    flow = DomainFlow.of(truth, truth, DOMAINS)
    assert not flow.inflow.any()
    assert not flow.outflow.any()
    assert flow.crossing == 0.0
    assert not flow.pull([1, 2, 3, 4]).any()


@given(answered, st.permutations(DOMAINS))
def test_other_names_permute_the_matrix(pairs, names):
    renamed = dict(zip(DOMAINS, names, strict=True))
    other = flow_of([(renamed[one], renamed[two]) for one, two in pairs])
    order = [DOMAINS.index(name) for name in names]
    flow = flow_of(pairs)
    np.testing.assert_array_equal(other.counts[np.ix_(order, order)], flow.counts)
    shares = np.array([1.0, 2.0, 3.0, 4.0])
    moved = np.empty(4)
    moved[order] = shares
    np.testing.assert_allclose(other.pull(moved)[order], flow.pull(shares), atol=1e-12)


@given(answered, arrays(np.float64, 4, elements=st.floats(0.1, 10)))
def test_pull_is_excess_so_it_sums_to_zero(pairs, shares):
    assert flow_of(pairs).pull(shares).sum() == pytest.approx(0.0, abs=1e-9)


def test_images_lost_at_random_have_no_pull():
    """Every lost image spread exactly in proportion to the classes of the other domains."""
    classes = np.array([10, 20, 30])
    counts = np.where(np.eye(3, dtype=bool), 7, 5 * classes)
    assert DomainFlow(("a", "b", "c"), counts).pull(classes) == pytest.approx([0, 0, 0])


def test_pull_by_hand():
    """Three images cross, all to b; by chance a half of a's and of c's would have gone there."""
    flow = DomainFlow(("a", "b", "c"), np.array([[5, 2, 0], [0, 4, 0], [0, 1, 3]]))
    assert flow.pull([1, 1, 1]) == pytest.approx([-0.5 / 3, 1.5 / 3, -1.0 / 3])
    assert flow.taken.tolist() == pytest.approx([0, 3 / 11, 0])


def test_relation_is_exact_for_few_domains():
    assert relate([1, 2, 3, 4], [4, 3, 2, 1]).correlation == -1.0
    assert relate([1, 2, 3, 4], [4, 3, 2, 1]).p == pytest.approx(2 / 24)
    assert np.isnan(relate([1, 2, 3], [5, 5, 5]).correlation)
    assert np.isnan(relate([1, 2], [1, 2]).p)
    assert relate([1, np.nan, 3, 4], [1, 2, 3, 5]).domains == 3


def test_relation_of_chance_is_seldom_significant():
    rng = np.random.default_rng(0)
    seen = [relate(*rng.normal(size=(2, 10))).p for _ in range(200)]
    assert np.mean(np.array(seen) < 0.05) == pytest.approx(0.05, abs=0.04)
