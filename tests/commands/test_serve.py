"""`hycal serve` before it listens: what it refuses, and how it says so."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.support.commands import hycal_error


def said(*arguments: str) -> str:
    return " ".join(hycal_error("serve", *arguments).split())


def test_a_short_token_is_refused(tmp_path):
    assert "expected 16 ASCII characters or more" in said(str(tmp_path / "m.hycal"), "--token", "short")


def test_a_missing_extra_is_explained(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'hycal[serve]'" in said(str(tmp_path / "m.hycal"))


def test_a_folder_that_is_missing_is_told_at_once(tmp_path):
    assert "does not exist. Make it first" in said(str(tmp_path / "none" / "m.hycal"))


def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert f"Cannot listen on 127.0.0.1, port {port}" in said(str(tmp_path / "m.hycal"), "--port", port)


def test_another_method_than_the_model_has_is_refused(model):
    assert "is a HierarchicalHyCal model" in said(str(model), "--method", "NCM")


@pytest.mark.parametrize("content", [b"", b"no model"])
def test_a_file_that_is_no_model_is_told(tmp_path, content):
    path = tmp_path / "m.hycal"
    path.write_bytes(content)
    assert "m.hycal" in said(str(path))
    assert path.read_bytes() == content
