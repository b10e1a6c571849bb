from __future__ import annotations

import random

import numpy as np
import pytest

from hycal import HyCalError
from hycal.bench.sampling import draw_samples, sample_csv, sample_hash
from hycal.bench.settings import Setting, load_setting
from tests.support.paper_copies import published_shots

SETTING = load_setting("high-scale")


def pools(setting: Setting, images: int = 40) -> dict[str, np.ndarray]:
    return {domain.name: np.repeat(np.arange(domain.classes), images) for domain in setting.domains}


def test_samples_are_distinct_images_of_the_right_class() -> None:
    have = pools(SETTING)
    for domain in SETTING.domains:
        sample = draw_samples(SETTING, 42, have)[domain.name]
        assert len(set(sample.rows)) == len(sample.rows) == sum(domain.shots_for(42))
        assert have[domain.name][list(sample.rows)].tolist() == list(sample.labels)
        assert not sample.shortages


def test_our_samples_do_not_depend_on_the_order_of_domains() -> None:
    one, other = (draw_samples(SETTING, 1, pools(SETTING), order=order) for order in ("default", "III"))
    assert one == other
    assert sample_hash(list(one.values())) == sample_hash(list(other.values()))


def test_seeds_and_settings_have_samples_of_their_own() -> None:
    fscil = load_setting("fscil-5")
    hashes = {sample_hash(list(draw_samples(SETTING, seed, pools(SETTING)).values())) for seed in SETTING.seeds}
    assert len(hashes) == 4
    assert draw_samples(fscil, 0, pools(fscil))["mnist"] != draw_samples(SETTING, 0, pools(SETTING))["mnist"]


def test_released_draws_follow_one_stream() -> None:
    setting = SETTING.sampled("released")
    have = pools(setting)
    stream, numbers = random.Random(42), np.random.RandomState(42)
    drawn = draw_samples(setting, 42, have)
    for domain in setting.domains:
        expected: list[int] = []
        for label in range(domain.classes):
            items = list(range(label * 40, label * 40 + 40))
            k = domain.shots_for(42)[0]
            if domain.draws == "numpy":
                expected += numbers.choice(items, k, replace=False).tolist()
            else:
                expected += stream.sample(items, k)
        assert list(drawn[domain.name].rows) == expected
    assert drawn["dtd"] != draw_samples(setting, 42, have, order="II")["dtd"]
    assert {domain.name for domain in setting.domains if domain.draws == "numpy"} == {"mnist", "artbench"}


@pytest.mark.parametrize(("policy", "count"), [("with-replacement", 10), ("all-available", 4)])
def test_missing_shots_follow_the_named_policy_and_are_recorded(policy: str, count: int) -> None:
    from dataclasses import replace

    setting = replace(SETTING, short=policy)
    sample = draw_samples(setting, 0, pools(setting, images=4))["aircraft"]
    assert len(sample.rows) == 100 * count
    assert len(sample.shortages) == 100
    assert (sample.shortages[0].asked, sample.shortages[0].available) == (10, 4)


def test_released_shortage_draws_all_again_or_fills_up() -> None:
    setting = SETTING.sampled("released")
    drawn = draw_samples(setting, 0, pools(setting, images=4))
    assert len(drawn["aircraft"].rows) == 1000
    first = drawn["mnist"].rows[:5]
    numbers = np.random.RandomState(0)
    expected = [
        [*numbers.choice(items, 4, replace=False), *numbers.choice(items, 1, replace=True)]
        for items in np.arange(40).reshape(10, 4).tolist() * 2  # ArtBench, then MNIST
    ]
    assert list(first) == expected[10]


@pytest.mark.parametrize("sampling", ["own", "released"])
def test_shots_follow_first_appearance_but_for_mnist_and_artbench_the_label(sampling: str) -> None:
    setting = load_setting("cross-scale").sampled(sampling)
    have = {name: labels[::-1] for name, labels in pools(setting, images=50).items()}
    drawn = draw_samples(setting, 42, have)
    for domain in setting.domains:
        listed = list(domain.shots_for(42))
        by_label = listed if domain.name in ("mnist", "artbench") else listed[::-1]
        assert np.bincount(drawn[domain.name].labels).tolist() == by_label


def test_shots_of_digits_and_styles_are_those_of_the_published_table() -> None:
    setting = load_setting("cross-scale")
    first_digits = [5, 0, 4, 1, 9, 2, 3, 6, 7, 8]  # in which the digits first appear in MNIST
    have = pools(setting) | {"mnist": np.repeat(first_digits, 40)}
    drawn = draw_samples(setting, 42, have)
    for name in ("mnist", "artbench"):
        assert np.bincount(drawn[name].labels).tolist() == list(published_shots()[name].values())


def test_lists_export_and_wrong_pools_are_errors() -> None:
    drawn = draw_samples(SETTING, 0, pools(SETTING))
    lines = sample_csv(list(drawn.values())).splitlines()
    assert lines[0] == "domain,label,row"
    assert len(lines) == 1 + 3215
    with pytest.raises(HyCalError, match="no images of domain 'organ'"):
        draw_samples(SETTING, 0, {k: v for k, v in pools(SETTING).items() if k != "organ"})
    with pytest.raises(HyCalError, match="the setting expects 10"):
        draw_samples(SETTING, 0, {**pools(SETTING), "mnist": np.zeros(5, dtype=int)})
