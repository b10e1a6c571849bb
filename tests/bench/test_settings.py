from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from hycal import HyCalError
from hycal.bench.domains import load_domains
from hycal.bench.published import published
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import list_settings, load_setting, load_settings, read_setting
from hycal.data import find_dataset, list_datasets
from tests.support.paper_copies import published_shots

PAPER = ("balanced", "cross-scale", "high-scale")
SHUFFLES = {"I": 0, "II": 1, "III": 42, "IV": 1993}
SMALL = """
title = "small"
protocol = "CIL"
source = "xd8"
seeds = [0]
short = "all-available"
sampling = "own"
[orders]
back = ["b", "a"]
[[domains]]
name = "a"
classes = 2
shots = 3
[[domains]]
name = "b"
classes = 2
[domains.shots]
0 = [1, 2]
"""


@pytest.mark.parametrize("name", list_settings())
def test_every_setting_reads(name: str) -> None:
    setting = load_setting(name)
    assert setting.name == name
    assert setting.seeds == (0, 1, 42, 1993)


def test_shots_of_seed_42_are_the_papers_table_class_by_class() -> None:
    table = published_shots()
    setting = load_setting("cross-scale")
    assert set(table) == {domain.name for domain in setting.domains}
    for domain in setting.domains:
        assert domain.shots_for(42) == tuple(table[domain.name].values())
    assert sum(len(shots) for shots in table.values()) == 300


def test_cross_scale_has_the_published_totals_and_the_rule_for_aircraft() -> None:
    setting = load_setting("cross-scale")
    totals = [sum(sum(domain.shots_for(seed)) for domain in setting.domains) for seed in setting.seeds]
    assert totals == [8305, 8440, 8494, 8417]
    for seed in setting.seeds:
        draw = random.Random(seed)
        assert setting.domains[0].shots_for(seed) == tuple(draw.randint(5, 50) for _ in range(100))


@pytest.mark.parametrize("name", [*PAPER, "xd8-balanced", "xd8-cross-scale", "xd8-high-scale"])
@pytest.mark.parametrize("order", SHUFFLES)
def test_random_orders_are_shuffles_of_the_default(name: str, order: str) -> None:
    setting = load_setting(name)
    expected = [domain.name for domain in setting.domains]
    random.Random(SHUFFLES[order]).shuffle(expected)
    assert [domain.name for domain in setting.in_order(order)] == expected


@pytest.mark.parametrize("order", SHUFFLES)
def test_random_orders_are_those_of_the_papers_tables(order: str) -> None:
    row = [c for c in published("random-orders-domains") if (c.setting, c.method) == (f"high-scale@{order}", "HyCal")]
    printed = [c.column.removeprefix("last:") for c in row if c.column.startswith("last:")][:8]
    assert [domain.name for domain in load_setting("high-scale").in_order(order)] == printed


def test_a_setting_like_another_has_its_domains_orders_and_images() -> None:
    one, other = load_setting("high-scale"), load_setting("high-scale-datacomp")
    assert (other.name, other.like) == ("high-scale-datacomp", "high-scale")
    assert (one.domains, one.orders, one.seeds) == (other.domains, other.orders, other.seeds)
    pools = {domain.name: np.repeat(np.arange(domain.classes), 30) for domain in one.domains}
    assert draw_samples(one, 1, pools) == draw_samples(other, 1, pools)
    with pytest.raises(HyCalError, match="no setting 'nothing'"):
        read_setting("mine", 'like = "nothing"')


def test_class_counts_are_those_of_the_data_sets() -> None:
    known = {spec.name for spec in list_datasets()}
    for name in list_settings():
        for domain in load_setting(name).domains:
            if not name.startswith("xd8"):
                assert domain.name in known
                assert find_dataset(domain.name).classes == domain.classes


def test_xd8_cross_scale_follows_its_rule() -> None:
    most = {"aircraft": 25, "flower": 20}
    setting = load_setting("xd8-cross-scale")
    for domain in setting.domains:
        for seed in setting.seeds:
            draw = random.Random(f"{seed}/{domain.name}")
            expected = tuple(draw.randint(5, most.get(domain.name, 50)) for _ in range(domain.classes))
            assert domain.shots_for(seed) == expected


def test_balanced_settings_have_about_500_images_of_every_domain() -> None:
    for name in ("balanced", "xd8-balanced"):
        assert all(450 <= sum(domain.shots_for(0)) <= 515 for domain in load_setting(name).domains)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('protocol = "CIL"', 'protocol = "TIL"', "expected one of CIL, MTIL, X-TAIL"),
        ('short = "all-available"', "", "does not say 'short'"),
        ('short = "all-available"', 'short = "ignore"', "with-replacement, all-available"),
        ("0 = [1, 2]", "0 = [1]", "expected 2, one for each class"),
        ("0 = [1, 2]", "1 = [1, 2]", "no shots for seed 0"),
        ("shots = 3", "shots = 0", "at least one shot"),
        ('["b", "a"]', '["b", "b"]', "does not name each domain once"),
        ("seeds = [0]", "seeds = [0]\ncolour = 1", "unknown entry 'colour'"),
        ("seeds = [0]", "seeds =", "is not TOML"),
        ('title = "small"', "title = 5", "title = 5; expected a text"),
        ("shots = 3", "shots = [1, 2, 3]", "shots = [1, 2, 3]; expected a whole number"),
        ("shots = 3", "shots = 4.5", "expected a whole number"),
        ("shots = 3", 'shots = "4"', "expected a whole number"),
        ("shots = 3", "shots = true", "shots = True; expected a whole number"),
        ("shots = 3", "shots = {}", "expected a whole number"),
        ("0 = [1, 2]", "x = [1, 2]", "a list for each seed"),
        ("0 = [1, 2]", "0 = 1", "a list for each seed"),
        ("classes = 2\nshots", 'classes = "3"\nshots', "classes = '3'; expected a whole number"),
        ("classes = 2\nshots", 'colour = "3"\nclasses = 2\nshots', "domain 'a' has the unknown entry 'colour'"),
        ('name = "a"', "", "domain None does not say 'name'"),
        ('name = "a"', 'name = "b"', "each with a name of its own"),
        ("seeds = [0]", "seeds = 0", "seeds = 0; expected a list of different whole numbers"),
        ("seeds = [0]", 'seeds = ["0"]', "expected a list of different whole numbers"),
        ("seeds = [0]", "seeds = [-1]", "expected a list of different whole numbers"),
        ("seeds = [0]", "seeds = [0, 0]", "expected a list of different whole numbers"),
        ("seeds = [0]", "seeds = []", "expected a list of different whole numbers"),
        ("back =", "default =", "'default' is kept for the order of the file"),
        ('["b", "a"]', '"ba"', "expected lists of domain names"),
        ("[orders]", "[parameters.NCMM]\n[orders]", "expected [parameters.METHOD] for methods of"),
        ("shots = 3", "shots = 3\nsessions = 0", "sessions = 0; expected a whole number, at least one session"),
        ("shots = 3", "shots = 3\nsessions = 3", "3 sessions for 2 classes"),
        (
            "shots = 3",
            "shots = 3\nbase = { classes = 1, shots = 9 }",
            "0 sessions for 2 classes, 1 of them in the base",
        ),
        ("shots = 3", "shots = 3\nsessions = 2\nbase = { classes = 2, shots = 9 }", "2 of them in the base session"),
        ("shots = 3", "shots = 3\nsessions = 2\nbase = { classes = 1 }", "expected { classes = 60, shots = 20 }"),
        ("[domains.shots]", "sessions = 2\n[domains.shots]", "expected shots = a whole number"),
        ('title = "small"', 'title = "small"\ntests = "never"', "expected one of every-step, last-step"),
        (SMALL[SMALL.index("[orders]") :], "domains = 5", "domains = 5; expected [[domains]]"),
        (SMALL[SMALL.index("[orders]") :], "domains = []", "domains = []; expected [[domains]]"),
    ],
)
def test_a_wrong_setting_says_what_is_wrong(old: str, new: str, message: str) -> None:
    assert read_setting("small", SMALL).domains[1].shots_for(0) == (1, 2)
    with pytest.raises(HyCalError, match=re.escape(message)):
        read_setting("small", SMALL.replace(old, new))


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(HyCalError, match="high-scale"):
        load_setting("middle-scale")
    with pytest.raises(HyCalError, match="default, back"):
        read_setting("small", SMALL).in_order("IX")
    with pytest.raises(HyCalError, match="cannot be read"):
        load_setting("nowhere.toml")


def test_a_file_may_not_take_the_name_of_a_packaged_setting(tmp_path: Path) -> None:
    (tmp_path / "balanced.toml").write_text(SMALL, encoding="utf-8")
    with pytest.raises(HyCalError, match="Rename the file, or write balanced"):
        load_setting(tmp_path / "balanced.toml")


def test_two_files_of_one_name_do_not_share_a_run(tmp_path: Path) -> None:
    files = [tmp_path / folder / "mine.toml" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text(SMALL, encoding="utf-8")
    with pytest.raises(HyCalError, match="both called 'mine'"):
        load_settings(map(str, files))
    assert [setting.name for setting in load_settings([str(files[0]), str(files[0]), "balanced"])] == [
        "mine",
        "balanced",
    ]


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(SMALL.replace("small", "\xfc").encode("latin-1"))
    with pytest.raises(HyCalError, match="UTF-8"):
        load_setting(tmp_path / "mine.toml")


def test_the_bundled_embeddings_have_domains_of_their_own() -> None:
    with pytest.raises(HyCalError, match="no domain 'a'; expected some of aircraft"):
        load_domains(read_setting("small", SMALL))


def test_sessions_split_the_classes_once_as_equally_as_possible() -> None:
    sessions = load_setting("xd8-sessions").domains
    assert [session.classes for session in sessions] == [11, 11, *[10] * 8]
    assert [session.name for session in sessions][::9] == ["flower 01", "flower 10"]
    assert {session.shots for session in sessions} == {5}
    order = [number for session in sessions for number in session.members]
    assert order == np.random.RandomState(1993).permutation(102).tolist()


def test_a_base_session_comes_first_with_shots_of_its_own() -> None:
    base, *later = load_setting("xd8-fscil-base").domains
    assert (base.classes, base.shots) == (62, 20)
    assert [(session.classes, session.shots) for session in later] == [(5, 5)] * 8
    assert sorted(number for session in (base, *later) for number in session.members) == list(range(102))


def test_an_order_names_data_sets_and_keeps_their_sessions_in_order() -> None:
    setting = read_setting("small", SMALL.replace("shots = 3", "shots = 3\nsessions = 2"))
    assert [domain.name for domain in setting.in_order("back")] == ["b", "a 1", "a 2"]
    assert list(setting.data_sets) == ["a", "b"]
