"""What scikit-learn expects of an estimator, without importing scikit-learn.

The import takes longer than most commands on a model. scikit-learn asks for methods and not for its own base class, so
`clone`, pipelines, cross-validation, grid search and its conformance checks work on these classes.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.validation import as_numpy

_CONTAINERS = ("default", "pandas", "polars")
_LARGEST, _SMALLEST = 1e100, 1e-100  # of any parameter: its square and its inverse are still numbers


@dataclass(frozen=True)
class Interval:
    """Numbers of a kind, `Real` or `Integral`, between two limits; None is 1e100 or -1e100.

    >>> from numbers import Real
    >>> print(Interval(Real, 0, 1, closed="right"))
    a number in (0, 1]
    """

    kind: type
    low: float | None
    high: float | None
    closed: str

    def is_satisfied_by(self, value: Any, /) -> bool:
        """Whether the value is of the kind and between the limits."""
        right_kind = isinstance(value, self.kind) and not isinstance(value, bool)
        return right_kind and self._is_between(value)

    def __str__(self) -> str:
        left, right = "[" if self._holds("left") else "(", "]" if self._holds("right") else ")"
        low, high = self._limits
        return f"{'a whole number' if self.kind is Integral else 'a number'} in {left}{low}, {high}{right}"

    def _is_between(self, value: Any) -> bool:
        low, high = self._limits
        at_limit = (value == low and self._holds("left")) or (value == high and self._holds("right"))
        between = bool(low < value < high or at_limit)  # NaN is between no limits
        return between and not 0 < abs(value) < _SMALLEST

    @property
    def _limits(self) -> tuple[float, float]:
        return -_LARGEST if self.low is None else self.low, _LARGEST if self.high is None else self.high

    def _holds(self, side: str) -> bool:
        """Whether the limit of a side is itself a valid value."""
        limit = self.low if side == "left" else self.high
        return limit is not None and self.closed in (side, "both")


@dataclass(frozen=True)
class StrOptions:
    """Strings of a set.

    >>> print(StrOptions({"sum", "image"}))
    one of 'image', 'sum'
    """

    options: Set[str]

    def is_satisfied_by(self, value: Any, /) -> bool:
        """Whether the value is one of the strings."""
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(option) for option in sorted(self.options))


class Estimator:
    """Parameters that `__init__` stores under their own names, and the rest of the contract of a classifier."""

    #: Valid values of each parameter: one entry of the list must be satisfied by it (`is_satisfied_by`), and `str` says
    #: it in words; None in the list allows None. scikit-learn's own constraints fit too.
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {}
    _parameter_defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # read once: `inspect` would take longer than an answer
        arguments = inspect.signature(cls).parameters.values()
        single = [one for one in arguments if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        cls._parameter_defaults = {one.name: one.default for one in sorted(single, key=lambda one: one.name)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is of no effect, since no parameter is an estimator."""
        return {name: getattr(self, name) for name in self._parameter_defaults}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name."""
        for name, value in parameters.items():
            if name not in self._parameter_defaults:
                known = ", ".join(self._parameter_defaults) or "none"
                raise HyCalError(f"{type(self).__name__} has no parameter {name!r}; its parameters are: {known}.")
            setattr(self, name, value)
        return self

    def with_parameters(self, **changes: Any) -> Self:
        """Return an estimator with the same parameters, but for `changes`, that has learned nothing."""
        return type(self)(**{**self.get_params(), **changes})

    def check_parameters(self) -> None:
        """Refuse parameters outside their valid values."""
        for name, constraints in self._parameter_constraints.items():
            value = getattr(self, name)
            if not any(value is None if one is None else one.is_satisfied_by(value) for one in constraints):
                expected = " or ".join(str(one) for one in constraints)
                raise HyCalError(f"{name!r} of {type(self).__name__} must be {expected}, but it is {value!r}.")

    @abstractmethod
    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the best label for each query."""

    @abstractmethod
    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return class probabilities, shape (n, C)."""

    def transform(self, X: npt.ArrayLike) -> Any:
        """Return class probabilities as features for a next step; as a data frame after `set_output`."""
        return self._contained(self.predict_proba(X), X)

    def fit_transform(self, X: npt.ArrayLike, y: Any, **options: Any) -> Any:
        """Fit, then `transform` the same samples; options as for `fit`."""
        return self.fit(X, y, **options).transform(X)  # type: ignore[attr-defined]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns of `transform`: the classes; `input_features` is of no effect."""
        return np.array([str(label) for label in self.classes_], dtype=np.object_)  # type: ignore[attr-defined]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `transform` return "pandas" or "polars" data frames, or arrays ("default"); None changes nothing."""
        if transform not in (None, *_CONTAINERS):
            raise HyCalError(f"transform is {transform!r}; expected one of {', '.join(_CONTAINERS)}.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # `clone` copies what has this name
        return self

    def _contained(self, values: npt.NDArray[Any], X: Any) -> Any:
        """Return columns of numbers in the container that was asked for, of this estimator or of all."""
        from sklearn import get_config

        chosen = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        names = self.get_feature_names_out().tolist()
        if chosen == "pandas":
            return import_module("pandas").DataFrame(values, columns=names, index=getattr(X, "index", None))
        return import_module("polars").DataFrame(values, schema=names) if chosen == "polars" else values

    def score(self, X: npt.ArrayLike, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy: the share, or weighted share, of queries whose best label is that of `y`."""
        weights = None if sample_weight is None else np.asarray(as_numpy(sample_weight), np.float64)
        return float(np.average(self.predict(X) == np.asarray(as_numpy(y)), weights=weights))

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not self._parameter_defaults[name] and value != self._parameter_defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_records", None) is not None

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn that this is a classifier, whose probabilities may be features."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            transformer_tags=TransformerTags(preserves_dtype=[]),
        )
