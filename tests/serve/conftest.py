"""One empty service, and one that knows two colours."""

from __future__ import annotations

import pytest

from tests.support.services import client_of, new_service, teach


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Nothing of a test ends in the cache of whoever runs it."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("HYCAL_CACHE", str(folder))
    return folder / "embeddings"


@pytest.fixture
def service(tmp_path):
    return new_service(tmp_path / "m.hycal")


@pytest.fixture
def client(service):
    with client_of(service) as client:
        yield client


@pytest.fixture
def taught(client):
    teach(client)
    return client
