import pytest

from hycal.errors import MissingExtraError, load_extra, load_package


def test_absent_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"needs the package 'no_such_thing'.*pip install 'hycal\[clip\]'"):
        load_extra("no_such_thing.inner", extra="clip", why="Flying")
    with pytest.raises(MissingExtraError, match=r"'no_such_thing'.*pip install --force-reinstall no_such_thing\.$"):
        load_package("no_such_thing", why="Flying")
