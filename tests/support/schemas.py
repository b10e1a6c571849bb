"""The JSON schemas of the formats, as the documents give them."""

from __future__ import annotations

import json

import jsonschema_rs

from tests.support.data import ROOT


def schema(name: str) -> jsonschema_rs.Validator:
    """Return the schema of docs/reference/NAME.schema.json."""
    return jsonschema_rs.validator_for(json.loads((ROOT / "docs" / "reference" / f"{name}.schema.json").read_text()))
