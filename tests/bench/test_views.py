"""A setting of several views: rows side by side, methods that can, and those that cannot."""

from __future__ import annotations

import pytest

from hycal import HyCalError
from hycal.bench.domains import load_domains
from hycal.bench.methods import parse_variant
from hycal.bench.settings import load_setting, read_setting
from hycal.encoders.catalog import find_parts


def test_a_setting_names_its_views() -> None:
    setting = load_setting("xd8-balanced-two-views")
    assert list(setting.views) == ["builtin", "clip-vit-b16-w8"]
    assert setting.domains == load_setting("xd8-balanced").domains
    domains = load_domains(setting)
    assert {domain.train_x.shape[1] for domain in domains.values()} == {1024}
    assert parse_variant("NCM").build(setting, text=False).views == (512, 512)
    assert "views" not in parse_variant("NCM").parameters(load_setting("xd8-balanced"), text=False)
    assert parse_variant("NCM").why_not(setting, text=False) == ""
    assert "takes one encoder" in parse_variant("RanPAC").why_not(setting, text=False)


def test_views_stand_in_the_order_of_their_names() -> None:
    """As encoders that are joined by "+" do, so that embedded folders and bundled rows have the same columns."""
    text = 'title = "mine"\nlike = "xd8-balanced"\n\n[views]\nclip-vit-b16-w8 = 512\nbuiltin = 512\n'
    mine, packaged = read_setting("mine", text), load_setting("xd8-balanced-two-views")
    assert list(mine.views) == list(packaged.views) == [spec.name for spec in find_parts("clip-vit-b16-w8+builtin")]


def test_widths_that_do_not_fit_are_named() -> None:
    text = 'title = "mine"\nlike = "xd8-balanced"\n\n[views]\nclip-vit-b16-w8 = 512\nbuiltin = 384\n'
    with pytest.raises(HyCalError, match="rows of 1024 numbers"):
        load_domains(read_setting("mine", text))
    with pytest.raises(HyCalError, match="two or more"):
        read_setting("mine", text.replace("builtin = 384\n", ""))
