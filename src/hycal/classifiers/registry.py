"""Which methods there are: this package's, and those that installed packages offer.

A package offers a method by an entry point of the group `hycal.methods`, whose name is that of the class:

    [project.entry-points."hycal.methods"]
    NearestMedian = "nearest_median:NearestMedian"

The method can then be listed, benchmarked, served, checked by the laws, and loaded from a model file. A model file
names a method; it never says where to find code. Only what is installed is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError, did_you_mean

GROUP = "hycal.methods"
Method = type[IncrementalClassifier]


class MethodRegistry(Mapping[str, Method]):
    """Methods by name: those given with their modules, then those of other packages. A method is imported at use."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own

    @cached_property
    def _offered(self) -> Mapping[str, EntryPoint]:
        return {point.name: point for point in sorted(entry_points(group=GROUP)) if point.name not in self._own}

    def __getitem__(self, name: str) -> Method:
        if name in self._own:
            return getattr(import_module(self._own[name]), name)
        return _offered(self._offered[name])

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._offered

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._offered

    def __len__(self) -> int:
        return len(self._own) + len(self._offered)

    def find(self, name: str) -> Method:
        """Return the method called `name`, in any case, or say which there are."""
        found = name if name in self else next((own for own in self if own.lower() == name.lower()), None)
        if found is None:
            guess = did_you_mean(name, {own.lower(): own for own in self}) or " Check the spelling."
            raise HyCalError(f"There is no method {name!r}; expected one of {', '.join(self)}.{guess}")
        return self[found]

    def build(self, name: str, *, profile: str = "official", **overrides: Any) -> IncrementalClassifier:
        """Return an unfitted classifier.

        Parameters
        ----------
        name : str
        profile : str, default="official"
            One of the method's `profiles`.
        **overrides
            Parameters that differ from the profile's.

        Raises
        ------
        HyCalError
            There is no such method, profile or parameter; it says which there are.

        Examples
        --------
        >>> from hycal import METHODS
        >>> METHODS.build("RanPAC", profile="hycal-paper").n_components
        1024
        """
        method = self.find(name)
        chosen = profile_parameters(method, profile)
        expected = method().get_params()
        unknown = sorted(set(overrides) - set(expected))
        if "views" in unknown:
            raise HyCalError(f"{name} takes one encoder: {method.one_view_because}. Choose another method.")
        if unknown:
            raise HyCalError(
                f"{name} has no parameter {unknown[0]!r}; expected one of {', '.join(expected) or 'none'}."
            )
        return method(**{**chosen, **overrides})


def profile_parameters(method: Method, profile: str) -> dict[str, Any]:
    """Return the parameters that a profile sets; the others keep the method's defaults.

    >>> from hycal import HyCal
    >>> profile_parameters(HyCal, "official")
    {'rule': 'released'}
    """
    if profile not in method.profiles:
        raise HyCalError(
            f"{method.__name__} has no profile {profile!r}; expected one of {', '.join(method.profiles)}. Choose one "
            "of these, or pass parameters to the class itself."
        )
    return dict(method.profiles[profile])


def import_method(place: str) -> Method:
    """Return the method at "MODULE:CLASS", a module that Python finds or one in the working directory.

    Only what a person writes in a command or a script leads here; a model file names methods of the registry.

    >>> import_method("hycal.classifiers.ncm:NCM").__name__
    'NCM'
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # last: a file in the folder replaces no package
    return _loaded(
        EntryPoint(place.rpartition(":")[2], place, GROUP),
        f"The method {place} was asked for",
        "Check its name, and that its module is installed or in the working directory.",
    )


def _offered(point: EntryPoint) -> Method:
    """Return the method of another package."""
    package = point.dist.name if point.dist else point.module
    return _loaded(point, f"The package {package} offers the method {point.name}", "Mend or uninstall that package.")


def _loaded(point: EntryPoint, whence: str, advice: str) -> Method:
    """Return a method of other code, or say what is wrong with it: `whence` says who named it, `advice` what to do."""
    try:
        method = point.load()
    except Exception as error:  # whatever other code raises at its import
        raise HyCalError(f"{whence}, but importing {point.value} failed: {error!r}. {advice}") from error
    if not (isinstance(method, type) and issubclass(method, IncrementalClassifier) and method.__name__ == point.name):
        raise HyCalError(
            f"{whence}: {point.value} is not a subclass of hycal.base.IncrementalClassifier called "
            f"{point.name}. {advice}"
        )
    return method
