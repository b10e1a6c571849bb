"""Near-duplicates are found by their distance relative to what is usual in their domain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hycal import NCM
from hycal.data.bundled import load_xd8
from hycal.state.records import Records
from hycal.state.samples import ClassSamples
from hycal.uncertainty.near_duplicates import Distinct, duplicate_groups
from hycal.validation import unit_rows


def learned(X, y):
    return NCM().fit(X, y).records_


def burst(rows, times, rng):
    """Each row `times` times, with a little noise."""
    noise = unit_rows(rng.standard_normal((times * len(rows), rows.shape[1])))
    return unit_rows(np.repeat(rows, times, axis=0) + 0.04 * noise)


@pytest.mark.parametrize("discipline", ["digit", "flower", "art"])
def test_images_drawn_at_random_are_hardly_ever_near_duplicates(discipline):
    domain = load_xd8()[discipline]
    rows = np.concatenate([np.flatnonzero(domain.train_y == c)[:10] for c in range(10)])
    groups = duplicate_groups(learned(domain.train_x[rows], domain.train_y[rows]))
    assert groups.max() + 1 >= 94  # of 100


@pytest.mark.parametrize("discipline", ["digit", "flower", "art"])
@pytest.mark.parametrize("shots", [1, 3])
def test_bursts_are_one_group_each_even_if_there_is_nothing_else(discipline, shots):
    domain = load_xd8()[discipline]
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:shots] for c in range(4)])
    X = burst(domain.train_x[rows], 3, rng)
    records = learned(X, np.repeat(domain.train_y[rows], 3))
    assert duplicate_groups(records).max() + 1 == len(rows)
    assert Distinct.of(records).records.counts.tolist() == [shots] * 4


def test_groups_are_counted_in_order():
    angles = np.array([0.0, 0.3, 0.6, 60.0, 90.0])  # degrees
    X = np.stack([np.cos(np.deg2rad(angles)), np.sin(np.deg2rad(angles))], axis=1)
    records = learned(np.concatenate([X, -X]), ["a"] * 5 + ["b"] * 5)
    groups = duplicate_groups(records)
    assert sorted(np.bincount(groups).tolist()) == [1, 1, 1, 1, 3, 3] and groups[5] == groups[:5].max() + 1
    assert Distinct.of(records).records.counts.tolist() == [3, 3]


def test_nothing_is_changed_where_all_samples_differ():
    records = learned(np.eye(4), ["a", "a", "b", "b"])
    assert Distinct.of(records).records is records and duplicate_groups(records).tolist() == [0, 1, 2, 3]


def test_rows_of_two_views_have_the_groups_of_their_mean_distance():
    domain = load_xd8()["texture"]
    rows = domain.train_x[:120]
    one = NCM().fit(rows, domain.train_y[:120]).records_
    twice = {
        label: replace(record, samples=ClassSamples(np.hstack([record.samples.rows] * 2)))
        for label, record in one.by_label.items()
    }
    np.testing.assert_array_equal(duplicate_groups(Records(twice)), duplicate_groups(one))
    assert len(set(duplicate_groups(Records(twice)))) > 100
