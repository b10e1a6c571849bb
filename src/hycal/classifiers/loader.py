"""From a model file back to a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.classifiers.registry import Method
from hycal.errors import HyCalError, ModelFileError
from hycal.state.sealed import SealedRecords
from hycal.storage import model_file
from hycal.storage.codec import records_of
from hycal.storage.model_file import Content


def load_classifier(path: str | PathLike[str], *, methods: Mapping[str, Method] = METHODS) -> IncrementalClassifier:
    """Return the classifier saved at `path`, of a method that is looked up in `methods`, by default all installed ones.

    A file that is missing, malformed or of a newer format is a ModelFileError. Nothing in it is executed.
    """
    return model_file.read_as(path, partial(model_of, methods=methods))


def model_of(content: Content, methods: Mapping[str, Method] = METHODS) -> IncrementalClassifier:
    """Return the classifier that a model file holds; every claim is checked."""
    classifier = named_method(content.manifest.get("method"), content.manifest.get("parameters"), methods)
    encoder = content.manifest.get("encoder")
    if encoder is not None and not isinstance(encoder, str):
        raise ModelFileError(
            "The model file is malformed: the encoder fingerprint is not text. Restore it from a copy."
        )
    try:
        records = records_of(content, classifier.views)
        if isinstance(records, SealedRecords):
            records = classifier.scorer.adopted(records)
        classifier.install(records)
    except ModelFileError:
        raise
    except HyCalError as error:
        raise ModelFileError(f"The model file is malformed: {error}") from None
    classifier.encoder_ = encoder
    return classifier


def _plain(value: Any) -> Any:
    """Return a parameter as the method has it: JSON has lists in place of tuples."""
    return tuple(value) if isinstance(value, list) else value


def named_method(method: Any, parameters: Any, methods: Mapping[str, Method] = METHODS) -> IncrementalClassifier:
    """Return the method that a file names, with its parameters, having learned nothing; both are checked."""
    if not isinstance(method, str) or method not in methods:
        raise ModelFileError(f"The model file names the method {method!r}; this hycal has {sorted(methods)}.")
    if not isinstance(parameters, dict) or not set(parameters) <= set(methods[method]().get_params()):
        raise ModelFileError(f"The model file's parameters do not fit {method}: {parameters!r}.")
    try:
        classifier = methods[method](**{name: _plain(value) for name, value in parameters.items()})
        classifier.check_parameters()
    except (HyCalError, TypeError) as error:
        raise ModelFileError(f"The model file's parameters do not fit {method}: {error}") from None
    return classifier
