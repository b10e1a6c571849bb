"""What is said of a sealed project: what it holds, and what can be found out from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hycal import METHODS, NCM, SLDA, HyCal
from hycal.project import Project
from hycal.project.sealed import describe

WIDTH = 8
KNOWN = "images of {} of {} classes could be computed from that, and in {} whoever has an image could check"
FEW, MANY, PAIR = 4, 12, 2  # images; four of one class have a scatter of three degrees of freedom
CASES: dict[str, tuple[Any, Mapping[str, int], str]] = {
    "means tell nothing": (NCM(), {"a/x": FEW, "a/y": MANY}, KNOWN.format(0, 2, "0 of 2 classes")),
    "the mean of two": (NCM(), {"a/x": PAIR, "a/y": MANY}, KNOWN.format(0, 2, "1 of 2 classes")),
    "one domain has few": (
        SLDA(),
        {"a/x": MANY, "a/y": MANY, "b/x": FEW, "b/y": FEW},
        KNOWN.format(0, 4, "1 of 2 domains"),
    ),
    "both have many": (SLDA(), {"a/x": MANY, "b/x": MANY}, KNOWN.format(0, 2, "0 of 2 domains")),
    "two among many": (SLDA(), {"a/x": MANY, "a/y": PAIR}, KNOWN.format(0, 2, "1 of 1 domains")),
    "one class has few": (HyCal(fusion="image"), {"a/x": MANY, "a/y": 7}, KNOWN.format(0, 2, "1 of 2 classes")),
    "more features than images": (
        METHODS["RanPAC"](n_components=40, ridge=3.0),
        {"a/x": MANY, "b/x": MANY},
        KNOWN.format(0, 2, "2 of 2 domains"),
    ),
}


def images(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, WIDTH))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def learned(method: Any, counts: Mapping[str, int], **more: Any) -> Any:
    for seed, (label, count) in enumerate(counts.items()):
        method = method.partial_fit(images(count, seed), [label] * count, domain=label.partition("/")[0], **more)
    return method


def described(method: Any, path: Any) -> str:
    method.seal().save(path)
    return describe(Project(path).state)


@pytest.mark.parametrize("case", CASES)
def test_it_always_says_what_can_be_found_out(case, tmp_path):
    method, counts, said = CASES[case]
    assert said in described(learned(method.with_parameters(), counts), tmp_path / "m.hycal")


def test_images_that_count_twice_fill_no_plane(tmp_path):
    few = learned(SLDA(), {"a/x": FEW})
    sealed = few.seal()
    for _ in range(3):
        sealed.merge(few)
    assert sealed.counts_.tolist() == [4 * FEW] and sealed.records_.spreads["a"].freedom > WIDTH
    assert "in 1 of 1 domains" in described(sealed, tmp_path / "m.hycal")


def test_rows_that_a_text_makes_wider_tell_no_more(tmp_path):
    text = {"a/x": images(1, 9)[0]}
    method = HyCal(fusion="concat").partial_fit(images(MANY), ["a/x"] * MANY, domain="a", text=text)
    assert "in 0 of 1 classes" in described(method, tmp_path / "m.hycal")


def test_one_view_is_enough(tmp_path):
    X = np.concatenate([images(MANY), images(MANY, 1)], axis=1)
    X[FEW:, WIDTH:] = 0.0
    method = SLDA(views=(WIDTH, WIDTH)).partial_fit(X, ["a/x"] * MANY, domain="a")
    assert "in 1 of 1 domains" in described(method, tmp_path / "m.hycal")
    method.partial_fit(np.concatenate([images(MANY, 2), images(MANY, 3)], axis=1), ["a/x"] * MANY, domain="a")
    assert "in 0 of 1 domains" in described(method, tmp_path / "more.hycal")


def test_the_mean_of_two_images_shows_them_to_whoever_has_one():
    pair, others = images(2), images(50, 1)
    mean = NCM().partial_fit(pair, ["x", "x"], domain="a").seal().records_.by_label["x"].mean
    np.testing.assert_allclose(2 * mean - pair[0], pair[1], atol=1e-6)
    assert np.abs(np.linalg.norm(2 * mean - others, axis=1) - 1.0).min() > 1e-3
