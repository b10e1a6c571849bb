"""Progress on a terminal: what takes a while says so, and `--quiet` hides it."""

from __future__ import annotations

import pytest

from tests.support.commands import hycal_error, hycal_json, run_hycal

HIDDEN_CURSOR = "\x1b[?25l"  # while a bar or a spinner moves
ASKED = {
    "scoring": ("evaluate", "MODEL", "TEST"),
    "measuring the pull": ("gravity", "MODEL", "TEST", "--json"),
    "trying methods": ("methods", "MODEL", "--only", "NCM"),
    "judging each image": ("advise", "MODEL"),
    "preparing the model": ("predict", "MODEL", "TEST"),
    "embedding": ("embed", "TEST", "--out", "OUT"),
    "runs": ("bench", "run", "xd8-balanced", "--methods", "NCM", "--seeds", "0", "--jobs", "1", "--out", "RESULTS"),
}


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no progress


@pytest.mark.parametrize("shown", ASKED)
@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_what_takes_a_while_unless_it_should_be_quiet(learned, photos, tmp_path, shown):
    names = {"MODEL": learned.path, "TEST": photos / "test", "OUT": tmp_path / "rows.npz", "RESULTS": tmp_path / "r"}
    asked = [names.get(word, word) for word in ASKED[shown]]
    loud, quiet = run_hycal(*asked), run_hycal(*asked, "--quiet")
    assert loud.exit_code == quiet.exit_code == 0
    assert shown in loud.output and HIDDEN_CURSOR in loud.output
    assert HIDDEN_CURSOR not in quiet.output


def test_without_another_encoder_the_way_to_one_is_told(learned, photos):
    assert "hycal encoders get clip-vit-b16-w8" in hycal_error("methods", learned.path, "--images", photos / "low")


def test_the_same_encoder_is_not_better_on_the_learned_images(learned, photos):
    found = hycal_json("methods", learned.path, "--images", photos / "low", "--encoder", "builtin")
    assert found["encoder"] == "builtin" and found["encoders"] == [
        {
            "encoder": "builtin",
            "own": found["encoders"][0]["other"],
            "other": found["encoders"][0]["own"],
            "better": False,
            "worse": False,
        }
    ]
    assert found["encoders"][0]["own"]["total"] == 18
    said = run_hycal("methods", learned.path, "--images", photos / "low", "--encoder", "builtin").stdout
    assert "100.0% (18 of 18) on learned images that were left out, by HierarchicalHyCal without texts" in said
    assert "builtin is not better beyond chance" in said
