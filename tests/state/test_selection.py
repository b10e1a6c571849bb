"""The order of classes depends on their samples alone; a table that follows from another is the one built anew."""

from __future__ import annotations

import numpy as np

from hycal import NCM
from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.state.selection import by_first_sample
from hycal.state.steps import Step
from hycal.testing.streams import Stream, learn


def _records():
    return learn(NCM(), Stream.synthetic(0, shots=[[3] * 20, [2] * 20], width=16).steps).records_


def test_classes_are_in_the_order_of_their_first_samples():
    records = _records()
    rows = records.ordered[3].samples.rows.copy()
    rows[:, -1] += np.float32(1e-3)  # the first numbers are those of another class
    alike = Records({**records.by_label, 99: ClassRecord(ClassSamples.of(rows), "")})
    for table in (records, alike):
        columns = list(range(len(table.counts)))
        expected = sorted(columns, key=lambda column: table.ordered[column].samples.rows[0].tobytes())
        assert by_first_sample(table, columns[::-1]) == expected


def test_a_table_that_follows_another_is_that_built_anew():
    rows = np.eye(4, 16, dtype=np.float32)
    found = _records()
    for change in (
        lambda table: table.learn(Step({0: rows[:1], 21: rows[1:2]}, None, {})),
        lambda table: table.remove(Step({0: rows[:1]}, None, {})),
        lambda table: table.announce({99: rows[2]}, None),
        lambda table: table.learn(Step({99: rows[3:]}, "a domain with a long name", {})),
    ):
        assert len(found.groups) == len(found.domains)  # known, so that the next table may take them over
        found = change(found)
        anew = Records(dict(found.by_label))
        for name in ("labels", "ordered", "column_of", "nbytes"):
            assert getattr(found, name) == getattr(anew, name)
        for name in ("counts", "domains", "groups", "classes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(anew, name))
