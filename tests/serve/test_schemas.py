"""Requests made from the OpenAPI document, sound and unsound: none is answered with a server error."""

from __future__ import annotations

import contextlib

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.testclient import TestClient

from hycal.serve.app import make_app
from hycal.serve.security import Access
from tests.support.services import HOME, new_service, teach

CHECKS = (not_a_server_error, status_code_conformance, response_schema_conformance)


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    app = make_app(new_service(tmp_path_factory.mktemp("schema") / "m.hycal"), Access())
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers={"host": "localhost"})


@pytest.mark.hypothesis
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_breaks_the_server(schema, mode):
    asked = []
    for operation in schema.get_all_operations():
        teach(TestClient(schema.app, base_url=HOME))  # whatever the last requests have forgotten

        @settings(suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy(generation_mode=mode))
        def ask(case):
            answer = case.call(base_url=HOME)
            asked.append((case.method, case.path, answer.status_code))
            case.validate_response(answer, checks=CHECKS)

        with contextlib.suppress(Unsatisfiable):  # nothing can be wrong about a route without parameters
            ask()
    assert {path for _, path, _ in asked} >= {"/api/correct", "/api/learn", "/api/classify", "/api/forget"}
    assert any(status == 200 for *_, status in asked) or mode is GenerationMode.NEGATIVE
