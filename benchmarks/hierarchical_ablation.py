"""What each part of HierarchicalHyCal adds: the same streams without it.

A part is taken away by replacing what the classifier is built from: the hierarchy, or the fit of its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.domains import Domain
from benchmarks.hierarchical_streams import SEEDS, CellCache, cars, five_domains, learned, measured, xd8
from hycal import HierarchicalHyCal
from hycal.algebra import hierarchy_held_out, hierarchy_posterior
from hycal.algebra.hierarchy import DomainGaussians, Hierarchy, Prior, Reals
from hycal.algebra.hierarchy_fit import fit_hierarchy
from hycal.classifiers import hierarchical, hierarchy_weights
from hycal.uncertainty import calibration
from hycal.uncertainty.temperature import Penalty, fit_weights
from hycal.validation import Doubles

_MUCH = 1e9
_SETTINGS: Mapping[str, Callable[[int, int], list[Domain]]] = {
    "xd8 balanced": lambda seed, queries: xd8("balanced", seed),
    "xd8 cross": lambda seed, queries: xd8("cross-scale", seed),
    "xd8 high": lambda seed, queries: xd8("high-scale", seed),
    "five balanced": lambda seed, queries: five_domains("balanced", seed, queries),
}
_SHOTS = (2, 5, 10, 16)


def _plain_means(hierarchy: Hierarchy) -> Hierarchy:
    prior = replace(hierarchy.prior, between=np.full_like(hierarchy.prior.between, _MUCH))
    return replace(hierarchy, prior=prior, domains=tuple(map(_plain, hierarchy.domains)))


def _plain(domain: DomainGaussians) -> DomainGaussians:
    return replace(domain, posterior=domain.plain, radius=float(np.sqrt(np.mean(np.sum(domain.plain**2, axis=1)))))


def _posterior_with(prior: Prior, whole: Reals, offsets: Reals, counts: Any) -> Reals:
    """Return the posterior of a sample that is left out and stays in B."""
    return prior.posterior(offsets, counts)


def _without_evidence(place: int) -> Any:
    """Fit without distance (0) or direction (1); the other is pulled to what both together are. Domains stay."""

    def fit(evidence: Doubles, own: Any, penalty: Penalty, *further: Any) -> Doubles:
        if len(evidence) == 1:
            return fit_weights(evidence, own, penalty)
        rest = np.arange(len(evidence)) != place
        centre = penalty.centre * np.where(np.arange(len(evidence)) < 2, 2.0, 1.0)
        return rest * fit_weights(evidence * rest[:, None, None], own, Penalty(centre, penalty.strength))

    return _replaced(fit_weights=fit)


def _fixed(evidence: Doubles, own: Any, penalty: Penalty, *further: Any) -> Doubles:
    return penalty.centre.copy()


@contextmanager
def _replaced(**parts: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for name, part in parts.items():
            owner = hierarchical if hasattr(hierarchical, name) else hierarchy_weights
            stack.enter_context(patch.object(owner, name, part))
        yield


@contextmanager
def _without_counts() -> Iterator[None]:
    with ExitStack() as stack:
        for owner in (hierarchy_posterior, hierarchy_weights):
            stack.enter_context(patch.object(owner, "count_evidence", lambda counts: np.zeros(len(counts))))
        yield


def _hierarchy(change: Callable[[Hierarchy], Hierarchy]) -> Any:
    return _replaced(fit_hierarchy=lambda *args, **kwargs: change(fit_hierarchy(*args, **kwargs)))


#: What is taken away, and how.
WITHOUT: Mapping[str, Callable[[], Any]] = {
    "whole": nullcontext,
    "without direction": lambda: _without_evidence(1),
    "without distance to classes": lambda: _without_evidence(0),
    "without kernel": lambda: _replaced(kernel_pays=lambda samples, classes: False),
    "without covariances": lambda: _replaced(covariances_pay=lambda counts, width: False),
    "without counts": _without_counts,
    "identity: a half": lambda: _replaced(identity_share=lambda records, ridge: ridge),
    "without shrinking of means": lambda: _hierarchy(_plain_means),
    "without fitted weights": lambda: _replaced(fit_weights=_fixed),
    "one temperature": lambda: patch.object(calibration, "_deviation", lambda fixed, held_out: 0.0),
    "left-out samples stay in B": lambda: patch.object(hierarchy_held_out, "posterior_without", _posterior_with),
}
#: The same by what W0 is worth: W_g = W0, and W_g of the domain's samples with hardly any W0.
_STRENGTHS: Mapping[str, float] = {
    "without covariance of domains": _MUCH,
    "W0 worth d/20 samples": 0.05,
}
_ONE_DOMAIN = "without domains"


def ablation_table(queries: int, kept: CellCache) -> None:
    """Print accuracy and calibration error without each part, and accuracy on cars with text."""
    print(f"\nWithout each part: accuracy after the last step, and calibration error, means of seeds {SEEDS}")
    print(f"{'':31}" + "".join(f"{name:>16}{'ECE':>6}" for name in _SETTINGS), flush=True)
    for row in (*WITHOUT, *_STRENGTHS, _ONE_DOMAIN):
        means = [
            np.mean(
                [
                    kept(f"{row}, {queries} queries/{name}/{seed}", partial(_cell, row, name, queries, seed))
                    for seed in SEEDS
                ],
                axis=0,
            )
            for name in _SETTINGS
        ]
        print(f"{row:31}" + "".join(f"{accuracy:16.1f}{error:6.1f}" for accuracy, error in means), flush=True)
    _text_table()


def _cell(row: str, setting: str, queries: int, seed: int) -> tuple[float, float]:
    domains = _SETTINGS[setting](seed, queries)
    method = partial(HierarchicalHyCal, strength=_STRENGTHS.get(row, 1.0))
    told = [replace(domain, name="all") for domain in domains] if row == _ONE_DOMAIN else domains
    with WITHOUT.get(row, nullcontext)():
        return measured(learned(method, told), domains)


def _text_table() -> None:
    print(f"\nCars, first shots of each class: accuracy\n{'':31}" + "".join(f"{k:>8}" for k in _SHOTS), flush=True)
    rows: Mapping[str, tuple[str, str]] = {
        "whole": ("auto", "whole"),
        "without text": ("none", "whole"),
        **{
            name: ("auto", name)
            for name in ("without direction", "without kernel", "without shrinking of means", "without fitted weights")
        },
    }
    for row, (text, part) in rows.items():
        cells = []
        for shots in _SHOTS:
            domain = cars(shots)
            with WITHOUT[part]():
                cells.append(domain.accuracy(learned(partial(HierarchicalHyCal, text=text), [domain])))
        print(f"{row:31}" + "".join(f"{cell:8.1f}" for cell in cells), flush=True)
