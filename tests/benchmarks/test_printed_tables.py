"""Tables of benchmarks whose figures stand in documents: `tools.tables` reads them as they are kept there."""

from __future__ import annotations

import numpy as np

from benchmarks.gravity import print_sheets
from benchmarks.views import MODELS, SETTINGS, SHOTS, print_column, print_gains, print_means, print_weights
from hycal.data.bundled import load_xd8
from hycal.gravity.tables import Sheet
from tools.tables import Table, printed_tables, read


def test_the_tables_of_views_have_the_titles_columns_and_rows_of_the_documents(capsys):
    names, columns = list(load_xd8()), [*map(str, SHOTS), *SETTINGS]
    rng = np.random.default_rng(0)
    cells = {
        (model, column): rng.uniform(1, 99, (2, 3 + len(names) * (1 + (len(parts) > 1) * len(parts))))
        for model, parts in MODELS.items()
        for column in columns
    }
    for column in columns:
        print_column(cells, MODELS, column, names)
    print_means(cells, MODELS, columns, names)
    print_gains(cells, MODELS, columns, names)
    print_weights(cells, MODELS, columns, names)
    printed, kept = dict(printed_tables(capsys.readouterr().out)), read("views")
    assert [(title, table.columns) for title, table in printed.items()] == [
        (title, table.columns) for title, table in kept.items()
    ]
    for title, table in kept.items():
        assert [row[0] for row in printed[title].rows] == [row[0] for row in table.rows]
    means = cells["CLIP", "5"][:, 3:11].mean(axis=0)
    assert printed["5 shots"].rows[0][1:9] == [f"{value:.1f}" for value in means]


def test_a_sheet_of_gravity_is_read_as_it_is(capsys):
    sheet = Sheet("NCM: flow", "A note.", ("domain", "art", "lost %"), (("art", "7", "0.0"), ("taken", "0", "")))
    print_sheets([sheet, sheet])
    said = capsys.readouterr().out
    assert said.count("A note.") == 2
    assert list(printed_tables(said)) == [("NCM: flow", Table(list(sheet.head), list(map(list, sheet.rows))))] * 2
