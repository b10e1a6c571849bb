"""Settings of the benchmark: which domains, how many shots of each class, in which order.

A setting is data: one TOML file in `hycal/bench/settings`, or any file of the same form:

    title, protocol ("CIL", "MTIL" or "X-TAIL"), source ("xd8" or "embeddings"), seeds
    short      what to do where a class has fewer images than shots: "with-replacement" draws all of them again and
               again, as the released code does; "all-available" takes each image once
    sampling   "own": every (setting, seed, domain) has its generator; "released": the released code's draws
    like       another setting: its entries are used where this one has none, and its images are drawn
    [views]    encoders and the widths of their unit vectors, side by side in a row, by name; else there is one
    tests      "every-step": all domains learned so far are tested after each step; "last-step": all in the end alone
    [orders]              other orders of learning, by name; the order of the file is called "default"
    [parameters.METHOD]   parameters of a method in this setting
    [[domains]]           name, classes, shots (a number, or a list by seed), draws ("random" or "numpy": the generator
                          of the released code, and with it the order of the classes in a list of shots)
        sessions          the classes are learned in so many steps, as equal as possible
        base              { classes, shots } of the first session; the other sessions share the other classes

Classes are split into sessions in the order of `numpy.random.RandomState(1993).permutation`, as peers do, whatever the
seed.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hycal.bench.setting_form import DOMAIN_FORM, SETTING_FORM, check_entry, check_form
from hycal.errors import HyCalError

DEFAULT_ORDER = "default"
_CLASS_ORDER = 1993  # seed of the order of classes in sessions


@dataclass(frozen=True)
class DomainShots:
    """How many images of each class of a domain are learned."""

    name: str
    classes: int
    # The same number for every class, or by seed one for each class, in the order of `draws`.
    shots: int | Mapping[int, tuple[int, ...]]
    # Which generator the released code draws this domain with, and which class comes first: the one whose image is the
    # first of the training images ("random"), or the one with the lowest label ("numpy")
    draws: str = "random"
    whole: str = ""  # the data set that a session is a part of; "" for a domain that is learned in one step
    members: tuple[int, ...] = ()  # the numbers of the classes of a session in that data set

    @property
    def data_set(self) -> str:
        """The data set that the classes are of."""
        return self.whole or self.name

    def shots_for(self, seed: int) -> tuple[int, ...]:
        """Return the number of shots of each class."""
        if isinstance(self.shots, int):
            return (self.shots,) * self.classes
        if seed not in self.shots:
            known = ", ".join(map(str, self.shots))
            raise HyCalError(f"Domain {self.name!r} has no shots for seed {seed}; expected one of {known}.")
        return self.shots[seed]


@dataclass(frozen=True)
class Setting:
    """One setting; the docstring of the module describes its fields."""

    name: str
    title: str
    protocol: str
    source: str
    seeds: tuple[int, ...]
    short: str
    sampling: str
    domains: tuple[DomainShots, ...]
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    like: str = ""
    tests: str = "every-step"
    views: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, followed by the sampling where that is not "own"."""
        return self.name if self.sampling == "own" else f"{self.name}+{self.sampling}"

    def in_order(self, order: str = DEFAULT_ORDER) -> tuple[DomainShots, ...]:
        """Return the domains in the order of learning called `order`.

        >>> [domain.name for domain in load_setting("high-scale").in_order("II")][:3]
        ['eurosat', 'organ', 'artbench']
        """
        if order == DEFAULT_ORDER:
            return self.domains
        if order not in self.orders:
            known = ", ".join((DEFAULT_ORDER, *self.orders))
            raise HyCalError(f"Setting {self.name!r} has no order {order!r}; expected one of {known}.")
        return tuple(session for name in self.orders[order] for session in self.data_sets[name])

    @property
    def data_sets(self) -> dict[str, tuple[DomainShots, ...]]:
        """The domains of each data set: its sessions, or the one domain that it is."""
        names = dict.fromkeys(domain.data_set for domain in self.domains)
        return {name: tuple(domain for domain in self.domains if domain.data_set == name) for name in names}

    def sampled(self, sampling: str) -> Setting:
        """Return the setting with another way of drawing the shots."""
        check_entry(f"Setting {self.name!r}", "sampling", sampling, SETTING_FORM)
        return replace(self, sampling=sampling)


def list_settings() -> list[str]:
    """Return the names of the settings that come with the package.

    >>> [name for name in list_settings() if name.endswith("scale")]
    ['cross-scale', 'high-scale', 'xd8-cross-scale', 'xd8-high-scale']
    """
    folder = resources.files("hycal.bench") / "settings"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_setting(name: str | os.PathLike[str]) -> Setting:
    """Return a setting by its name, or from a file that ends in .toml.

    >>> setting = load_setting("high-scale")
    >>> [sum(domain.shots_for(0)) for domain in setting.domains]
    [1000, 50, 940, 50, 50, 50, 55, 1020]
    """
    path = Path(name)
    if path.suffix == ".toml":
        if path.stem in list_settings():
            raise HyCalError(
                f"{path} has the name of a setting of the package, whose published numbers are not for it. "
                f"Rename the file, or write {path.stem} for the package's own."
            )
        try:
            return read_setting(path.stem, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise HyCalError(f"The setting {path} cannot be read: {error}. Expected a file of UTF-8 text.") from None
    return read_setting(str(name), _packaged(str(name)))


def load_settings(names: Iterable[str]) -> list[Setting]:
    """Return the settings for one run, each once. Results are stored by name, so equal names are an error."""
    by_name: dict[str, str] = {}
    settings = []
    for given in dict.fromkeys(names):
        setting = load_setting(given)
        if setting.name in by_name:
            raise HyCalError(
                f"{by_name[setting.name]} and {given} are both called {setting.name!r}; expected different names, "
                "as results lie under them. Rename one of the files."
            )
        by_name[setting.name] = given
        settings.append(setting)
    return settings


def few_shot_settings(name: str, classes: Mapping[str, int], shots: Iterable[int]) -> list[Setting]:
    """Return one setting for each number of shots: domains learned one after the other, four seeds.

    A class with fewer images gives all it has.

    Settings are called NAME-K-shot. `classes` has the number of classes of each domain, in the order of learning.

    >>> [setting.name for setting in few_shot_settings("birds", {"owls": 3}, [1, 5])]
    ['birds-1-shot', 'birds-5-shot']
    """
    return [
        Setting(
            name=f"{name}-{count}-shot",
            title=f"{name}, {count} images of each class",
            protocol="CIL",
            source="embeddings",
            seeds=(0, 1, 2, 3),
            short="all-available",
            sampling="own",
            domains=tuple(DomainShots(domain, number, count) for domain, number in classes.items()),
        )
        for count in dict.fromkeys(shots)
    ]


def _packaged(name: str) -> str:
    """Return the text of a setting of the package."""
    if name not in list_settings():
        known = ", ".join(list_settings())
        raise HyCalError(f"There is no setting {name!r}; expected a file ending in .toml, or one of {known}.")
    return (resources.files("hycal.bench") / "settings" / f"{name}.toml").read_text(encoding="utf-8")


def read_setting(name: str, text: str) -> Setting:
    """Return the setting that a TOML text describes, or raise an error that says what is wrong with it."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HyCalError(f"Setting {name!r} is not TOML: {error}.") from None
    if "like" in content:
        content = {**tomllib.loads(_packaged(content["like"])), **content}
    check_form(f"Setting {name!r}", content, SETTING_FORM)
    listed = tuple(domain for entry in content.pop("domains") for domain in _domains_of(name, entry))
    orders = {key: tuple(value) for key, value in content.pop("orders", {}).items()}
    content["views"] = dict(sorted(content.get("views", {}).items()))  # as encoders joined by "+" are
    setting = Setting(name=name, domains=listed, orders=orders, seeds=tuple(content.pop("seeds")), **content)
    _check(setting)
    return setting


def _domains_of(setting: str, entry: dict[str, Any]) -> list[DomainShots]:
    """Return the domain that an entry describes, or one for each of its sessions."""
    where = f"Setting {setting!r}, domain {entry.get('name')!r}"
    check_form(where, entry, DOMAIN_FORM)
    if "sessions" in entry or "base" in entry:
        return _sessions(where, entry)
    return [_domain(where, entry)]


def _domain(where: str, entry: dict[str, Any]) -> DomainShots:
    if isinstance(entry["shots"], int):
        return DomainShots(**entry)
    shots = {int(seed): tuple(counts) for seed, counts in entry["shots"].items()}
    for seed, counts in shots.items():
        if len(counts) != entry["classes"]:
            raise HyCalError(
                f"{where}, seed {seed}: {len(counts)} shots are listed; "
                f"expected {entry['classes']}, one for each class."
            )
    return DomainShots(**{**entry, "shots": shots})


def _sessions(where: str, entry: dict[str, Any]) -> list[DomainShots]:
    """Return one domain for each session: the base session, if there is one, then the others, as equal as possible."""
    total, count, shots = entry["classes"], entry.get("sessions", 0), entry["shots"]
    base = entry.get("base", {"classes": 0, "shots": 1})
    later = count - bool(base["classes"])
    if not isinstance(shots, int) or not 0 < later <= total - base["classes"]:
        raise HyCalError(
            f"{where} has {count} sessions for {total} classes, {base['classes']} of them in the base session; "
            "expected shots = a whole number, a base session for some of the classes or none, and sessions of one "
            "class at least for the others."
        )
    order: list[int] = np.random.RandomState(_CLASS_ORDER).permutation(total).tolist()
    parts = [part.tolist() for part in np.array_split(order[base["classes"] :], later)]
    if base["classes"]:
        parts.insert(0, order[: base["classes"]])
    return [
        DomainShots(
            name=f"{entry['name']} {number:0{len(str(count))}}",
            classes=len(members),
            shots=base["shots"] if base["classes"] and number == 1 else shots,
            draws=entry.get("draws", "random"),
            whole=entry["name"],
            members=tuple(members),
        )
        for number, members in enumerate(parts, start=1)
    ]


def _check(setting: Setting) -> None:
    names = sorted(setting.data_sets)
    for domain in setting.domains:
        for seed in setting.seeds:
            domain.shots_for(seed)
    for order, listed in setting.orders.items():
        if order == DEFAULT_ORDER:
            raise HyCalError(
                f"Setting {setting.name!r}: the name {order!r} is kept for the order of the file. Choose another name."
            )
        if sorted(listed) != names:
            raise HyCalError(f"Setting {setting.name!r}: order {order!r} does not name each domain once.")
