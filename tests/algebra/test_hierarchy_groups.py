"""Domains that are found: groups of classes with similar means."""

from __future__ import annotations

import numpy as np

from hycal.algebra.hierarchy_groups import domain_candidates, ward_groups
from hycal.state.records import Records
from hycal.state.steps import Step
from hycal.validation import unit_rows

WIDTH = 12


def records(centres, *, domain="", labels=None, known=None):
    rng = np.random.default_rng(3)
    labels = labels or [f"c{number:02d}" for number in range(len(centres))]
    samples = {
        label: unit_rows(centre + 0.1 * rng.normal(size=(3, WIDTH)))
        for label, centre in zip(labels, centres, strict=True)
    }
    return (known or Records({})).learn(Step(samples, domain, {}))


def centres(groups, each=6):
    rng = np.random.default_rng(1)
    return (np.eye(groups, WIDTH)[:, None] + 0.2 * rng.normal(size=(groups, each, WIDTH))).reshape(-1, WIDTH)


def same_partition(a, b):
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


def test_classes_without_a_domain_are_one_or_grouped_by_their_means():
    one, grouped = domain_candidates(records(centres(4, each=16)), "named")
    assert not one.any()
    assert same_partition(grouped, np.repeat(np.arange(4), 16))


def test_groups_do_not_depend_on_labels():
    shuffled = np.random.default_rng(0).permutation(64)
    one = records(centres(4, each=16))
    other = records(centres(4, each=16), labels=[f"d{number:02d}" for number in shuffled])
    assert same_partition(domain_candidates(one, "named")[1], domain_candidates(other, "named")[1][shuffled])


def test_there_are_half_as_many_groups_as_the_root_of_the_classes():
    means = np.random.default_rng(0).normal(size=(100, 4))
    assert [len(np.unique(ward_groups(means[:count]))) for count in (64, 100)] == [4, 5]
    assert len(domain_candidates(records(centres(3, each=21)), "found")) == 1


def test_named_domains_stay_unless_groups_are_wanted():
    named = records(centres(2, each=35), domain="a", labels=[f"a{number:02d}" for number in range(70)])
    both = records(centres(4, each=16), known=named)
    one, grouped = domain_candidates(both, "named")
    assert same_partition(one, np.repeat([0, 1], [70, 64]))
    assert same_partition(grouped, np.concatenate([np.zeros(70), 1 + np.repeat(np.arange(4), 16)]))
    assert len(domain_candidates(named, "named")) == 1
    assert [len(np.unique(numbers)) for numbers in domain_candidates(named, "found")] == [1, 4]
