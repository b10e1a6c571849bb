"""The difference of two tables of records."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.state.changes import Changes, is_due
from hycal.state.records import Records
from hycal.state.steps import Step


def _table(classes=6, shots=3, width=4):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(classes * shots, width)).astype(np.float32)
    return Records({}).learn(Step.of(rows, [f"c{row // shots}" for row in range(len(rows))], "d", {})), rows


def test_a_sample_that_comes_and_one_that_goes():
    before, rows = _table()
    after = before.learn(Step({"c1": rows[:1]}, None, {})).remove(Step({"c4": rows[13:14]}, None, {}))
    changes = Changes.between(before, after)
    assert changes.fresh.tolist() == changes.gone.tolist() == [1, 4] and changes.same_columns
    assert changes.source.tolist() == [0, -1, 2, 3, -1, 5]
    one, four = changes.classes
    np.testing.assert_array_equal(one.added, rows[:1])
    np.testing.assert_array_equal(four.removed, rows[13:14])
    assert not len(one.removed) and not len(four.added) and changes.samples == 2


def test_a_sample_learned_twice_is_added_once_more():
    before, rows = _table()
    changes = Changes.between(before, before.learn(Step({"c0": rows[:1]}, None, {})))
    assert len(changes.classes[0].added) == 1


def test_classes_that_come_go_or_have_another_name():
    before, rows = _table()
    table = {("z" if label == "c0" else label): record for label, record in before.by_label.items()}
    after = Records(table).forget(["c2"]).learn(Step({"a": rows[:2]}, "d", {}))
    changes = Changes.between(before, after)
    assert [after.labels[column] for column in changes.fresh] == ["a"]
    assert [before.labels[column] for column in changes.gone] == ["c2"]
    assert changes.source.tolist() == [-1, 1, 3, 4, 5, 0]  # "c0" is now the last
    assert changes.samples == 5 and not changes.same_columns
    rows_of = changes.carried(np.arange(6), [99])
    assert rows_of.tolist() == [99, 1, 3, 4, 5, 0]


@pytest.mark.parametrize(("changed", "samples", "due"), [(0, 999, True), (20, 1000, False), (21, 1000, True)])
def test_what_is_fitted_to_all_samples_is_kept_while_one_in_fifty_changes(changed, samples, due):
    assert is_due(changed, samples) is due


def test_a_table_that_grows_keeps_the_order_of_its_labels():
    before, rows = _table()
    labels = before.labels
    assert before.learn(Step({"c1": rows[:1]}, None, {})).labels is labels
    assert before.learn(Step({"b": rows[:1]}, None, {})).labels == ("b", *labels)
