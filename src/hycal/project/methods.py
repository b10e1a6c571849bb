"""What a new project learns with: the only place that knows the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.errors import HyCalError
from hycal.project.state import Space, State
from hycal.state.records import Records

DEFAULT_METHOD = "HyCal"


def empty_state(
    space: Space, *, has_text: bool, method: str = DEFAULT_METHOD, parameters: Mapping[str, Any] | None = None
) -> State:
    """Return a project that has learned nothing.

    Parameters
    ----------
    space : Space
    has_text : bool
        Whether the encoder embeds class names too; if not, methods that use texts beside images do without.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method, its defaults where not given.
    """
    kind = METHODS.find(method)
    classifier = _method(kind, {**({} if has_text else kind.without_text or {}), **(parameters or {})})
    classifier.encoder_ = space.fingerprint
    return State(classifier.knowing(Records({})), {}, space)


def _method(kind: type[IncrementalClassifier], parameters: Mapping[str, Any]) -> IncrementalClassifier:
    try:
        classifier = kind(**parameters)
    except TypeError as error:
        raise HyCalError(f"{kind.__name__} does not take these parameters: {error}.") from None
    classifier.check_parameters()
    return classifier
