from __future__ import annotations

import pytest

from hycal import METHODS, HyCalError
from hycal.bench.methods import find_study, parse_methods, parse_variant, shown_apart, studies
from hycal.bench.settings import load_setting


@pytest.mark.parametrize("name", studies())
def test_every_study_can_be_built_and_written_and_read(name: str) -> None:
    setting = load_setting("xd8-high-scale")
    for variant in find_study(name).variants:
        assert parse_variant(variant.label) == variant
        variant.build(setting, text=True)


def test_grids_are_the_papers() -> None:
    sweep = find_study("alpha-beta")
    assert sweep.vary == {"alpha": [1, 10, 20, 40, 60, 80], "beta": [0, 5, 10]}
    assert sweep.labels[:4] == tuple(f"HyCal[alpha={a},beta={b}]" for a, b in ((1, 0), (1, 5), (1, 10), (10, 0)))
    assert len(find_study("lambda-gamma").variants) == 20


def test_methods_are_listed_once_in_the_order_named() -> None:
    labels = [variant.label for variant in parse_methods("KLDA study:fusion all KLDA")]
    assert labels[:3] == ["KLDA", "HyCal[fusion=concat]", "HyCal"]
    assert set(labels) == {*METHODS, "HyCal[fusion=concat]"}


def test_the_study_of_tuned_methods_has_every_method_with_a_tuning_grid() -> None:
    assert find_study("tuned").labels == tuple(f"{name}+tuned" for name in METHODS if METHODS[name].tuning_grid)
    assert "HyCal+tuned" in find_study("tuned").labels


def test_only_studies_with_tables_of_their_own_are_apart() -> None:
    assert shown_apart("HyCal[metric=cosine]")
    assert shown_apart("HyCal[alpha=3]+tuned")
    assert not any(shown_apart(label) for label in ("HyCal", "KLDA:hycal-paper", "HyCal[alpha=3]"))


@pytest.mark.parametrize(("text", "message"), [("study:magic", "no study 'magic'"), (" ", "No methods were named")])
def test_wrong_lists_say_so(text: str, message: str) -> None:
    with pytest.raises(HyCalError, match=message):
        parse_methods(text)


def test_spaces_inside_brackets_end_no_method() -> None:
    listed = parse_methods("NCM  HyCal[metric=cosine, alpha=20] KLDA:hycal-paper[ n_components = 64 ]+tuned")
    labels = ["NCM", "HyCal[alpha=20,metric=cosine]", "KLDA:hycal-paper[n_components=64]+tuned"]
    assert [variant.label for variant in listed] == labels
    with pytest.raises(HyCalError, match=r"'HyCal\[' is not a method"):
        parse_methods("HyCal[ NCM")


def test_one_domain_is_written_before_tuned_and_read_back() -> None:
    variant = parse_variant("HierarchicalHyCal[strength=2]+one-domain+tuned")
    assert variant.one_domain
    assert variant.tuned
    assert variant.label == "HierarchicalHyCal[strength=2]+one-domain+tuned"
    assert shown_apart("HierarchicalHyCal+one-domain")
    with pytest.raises(HyCalError, match=r"then \+one-domain, then \+tuned"):
        parse_variant("NCM+tuned+one-domain")


def test_the_fair_study_has_every_method_as_it_is_and_tuned() -> None:
    labels = find_study("fair").labels
    for method in METHODS:
        own = [parse_variant(label) for label in labels if parse_variant(label).method == method]
        assert any(not variant.tuned for variant in own), method
        assert any(variant.tuned for variant in own) == bool(METHODS[method].tuning_grid), method
