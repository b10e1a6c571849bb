"""Standard output that is full, closed or of another encoding: the exit code says whether the model changed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hycal.project import Project
from tests.support.commands import hycal, hycal_error, hycal_json
from tests.support.projects import pets_and_cars

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="/dev/full, and streams closed by a shell")


@pytest.fixture
def pets(tmp_path):
    return pets_and_cars(tmp_path / "pets.hycal").path


def in_a_shell(line, *arguments):
    command = ["bash", "-c", f'set -o pipefail; "$0" -c "from hycal.cli import app; app()" "$@" {line}']
    variables = {**os.environ, "PYTHONIOENCODING": "ascii"}
    return subprocess.run([*command, sys.executable, *map(str, arguments)], env=variables, capture_output=True)


@pytest.mark.parametrize("line", [">/dev/full", ">&-", "| true", ">/dev/full 2>/dev/full", ">&- 2>&-"])
def test_a_change_that_was_made_ends_with_0_and_is_told(line, pets):
    done = in_a_shell(line, "rename", pets, "pets/cat", "löwe", "--json")
    after = Project(pets).state
    assert done.returncode == 0 and "pets/löwe" in after.labels
    assert "2>" in line or (b"this was done" in done.stderr and after.hash.encode() in done.stderr)


def test_another_encoding_gets_escapes(pets):
    done = in_a_shell("", "rename", pets, "pets/cat", "löwe")
    assert done.returncode == 0 and not done.stderr and Project(pets).state.hash[:12].encode() in done.stdout


@pytest.mark.parametrize("line", [">/dev/full", ">&-", "| true"])
def test_answers_that_nobody_got_are_an_error(line, pets):
    assert in_a_shell(line, "classes", pets).returncode == 1


def test_an_undo_and_a_redo_that_name_their_change_happen_once(pets):
    made = hycal_json("rename", pets, "pets/cat", "lion")
    undone = hycal_json("undo", pets, made["after"][:12])
    assert "nothing was taken back" in hycal_error("undo", pets, made["after"][:12])
    assert "pets/cat" in Project(pets).state.labels
    before = hycal_json("undo", pets)
    hycal("redo", pets, before["change"])
    assert "nothing was taken back" in hycal_error("redo", pets, before["change"]), "the first undo can be redone still"
    hycal("redo", pets, undone["after"][:8])
    assert Project(pets).state.hash == made["after"]


def test_the_name_of_a_change_is_not_its_number_or_a_few_digits(pets):
    made = hycal_json("rename", pets, "pets/cat", "lion")
    for part in (made["after"][:7], made["change"].partition("-")[0], ""):
        assert "nothing was taken back" in hycal_error("undo", pets, part)


def test_the_same_model_by_another_change_is_not_taken_back(pets):
    pairs = [("pets/cat", "lion"), ("pets/lion", "cat"), ("pets/cat", "lion")]
    names = [hycal_json("rename", pets, *pair)["change"] for pair in pairs]
    assert "nothing was taken back" in hycal_error("undo", pets, names[0])
    hycal("undo", pets, names[2])


def test_an_undo_whose_receipt_got_lost_is_told_and_can_be_sent_again(pets):
    made = hycal_json("rename", pets, "pets/cat", "lion")["change"]
    done = in_a_shell(">/dev/full", "undo", pets, made)
    assert done.returncode == 0 and b"this was done" in done.stderr and b"renaming of" in done.stderr
    again = in_a_shell("| true", "undo", pets, made)
    assert again.returncode == 1 and b"nothing was taken back" in again.stderr
    assert "pets/cat" in Project(pets).state.labels
