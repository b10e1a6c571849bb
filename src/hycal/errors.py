"""The errors that hycal raises on purpose."""


class HyCalError(ValueError):
    """Input that hycal cannot use: says what happened, what was expected and what to do.

    Whatever raised it left its object, or its file, as it was.
    """


class ModelFileError(HyCalError):
    """A model file that is missing, malformed, or from a newer hycal."""
