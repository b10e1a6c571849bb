"""`python -m benchmarks.attacks`: what held, what was broken, and what was not tried."""

from __future__ import annotations

from benchmarks.attacks.__main__ import NUMBERS, all_cases, run
from benchmarks.attacks.case import Case
from tools.tables import printed_tables


def test_a_row_for_each_number_and_no_success_unless_every_promise_held(capsys):
    def fails(folder):
        raise OSError("no room")

    cases = [
        Case(1, "nothing is lost", lambda folder: (folder.is_dir(), "0 lost")),
        Case(2, "it is quick", lambda folder: (False, "9 s")),
        Case(3, "it is small", fails),
    ]
    assert run(cases, [1]) and not run(cases, [2]) and not run(cases, [3]) and not run(cases, [4])
    rows = [row for _, table in printed_tables(capsys.readouterr().out) for row in table.rows]
    assert rows == [
        ["nothing is lost", "1", "held", "0 lost"],
        ["it is quick", "2", "BROKEN", "9 s"],
        ["it is small", "3", "BROKEN", "the attack ended in OSError('no room')"],
        ["", "4", "NOT TRIED", ""],
    ]


def test_cases_are_found_in_every_module():
    numbers = {case.number for case in all_cases()}
    assert {4, 10, 13, 17, 19, 20, 21} <= numbers <= set(NUMBERS)
    assert len({case.attack for case in all_cases()}) == len(all_cases())


def test_an_attack_of_the_package_runs():
    assert run(all_cases(), [20])
