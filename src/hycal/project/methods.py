"""What a new project learns with: the only place that knows the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.classifiers.profiles import check_method, images_alone
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
    check_method(method)
    classifier = _method(method, {**({} if has_text else images_alone(method)), **(parameters or {})})
    classifier.encoder_ = space.fingerprint
    return State(classifier.knowing(Records({})), {}, space)


def _method(name: str, parameters: Mapping[str, Any]) -> IncrementalClassifier:
    try:
        classifier = METHODS[name](**parameters)
    except TypeError as error:
        raise HyCalError(f"{name} does not take these parameters: {error}.") from None
    classifier._check_params()
    return classifier
