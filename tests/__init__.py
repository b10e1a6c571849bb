"""Tests of hycal: a folder for each room of the package, and `support` with the helpers that they share."""

import pytest

pytest.register_assert_rewrite("tests.support")
