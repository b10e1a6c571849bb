"""The metrics count what happened, and tell nothing of what was asked."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hycal.serve.security import Access
from tests.support.services import HOME, client_of, files, new_service, picture

TOKEN = "0123456789abcdef-token"


def samples(client, **options):
    answer = client.get("/metrics", **options)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_requests_images_and_the_model_are_counted(taught):
    taught.post("/api/classify", files=files(picture("red", 9), b"no image"))
    taught.post("/api/classify-embeddings", json={"rows": [[1.0] * 48]})
    taught.post("/api/classify-embeddings?top=1", json={"rows": [[1.0] * 48]})
    taught.post("/api/classify-embeddings", json={"rows": [[1.0] * 5]})
    taught.head("/api/info")
    taught.get("/api/thumbnails/00ff")
    taught.get("/style.css")
    found = samples(taught)
    assert found["hycal_images_encoded_total",] == 7  # six were learned
    assert found["hycal_model_classes",] == 2 and found["hycal_model_images",] == 6
    assert found["hycal_model_bytes",] > 0 and found["hycal_requests_open",] == 1  # this one
    for key in (
        ("POST", "/api/classify", "200"),
        ("POST", "/api/classify-embeddings", "400"),
        ("HEAD", "/api/info", "200"),
        ("GET", "/api/thumbnails/{image}", "404"),
        ("GET", "page", "200"),
    ):
        assert found["hycal_requests_total", *key] == 1, key
    assert found["hycal_requests_total", "POST", "/api/classify-embeddings", "200"] == 2
    assert found["hycal_request_seconds_count", "/api/classify"] == 1


def test_no_label_holds_what_was_asked(taught):
    for number in range(30):
        taught.get(f"/secret-{number}?q=secret")
        taught.get(f"/api/thumbnails/secret-{number}")
        taught.get("/api/examples", params={"label": "colour/red"})
        taught.request(f"SECRET{number}", "/api/info")
        taught.get("/api/info", headers={"host": "secret.example"})
    text = taught.get("/metrics").text.lower()
    assert "secret" not in text and "colour" not in text and "m.hycal" not in text
    names = {key for key in samples(taught) if key[0] == "hycal_requests_total"}
    assert ("hycal_requests_total", "GET", "other", "404") in names and (
        "hycal_requests_total",
        "GET",
        "other",
        "403",
    ) in names
    assert len(names) < 20


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "//metrics"])
def test_the_guard_stands_before_them(tmp_path, path):
    with client_of(new_service(tmp_path / "m.hycal"), Access("0.0.0.0", TOKEN)) as client:
        assert client.get(path).status_code == 401
        found = samples(client, headers={"authorization": f"Bearer {TOKEN}"})
        assert found["hycal_requests_total", "GET", "other", "401"] == 1
        foreign = {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example", "sec-fetch-site": "cross-site"}
        assert client.get("/metrics", headers=foreign).status_code == 403
    with client_of(new_service(tmp_path / "n.hycal")) as client:
        assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 403
        assert client.get(f"{HOME}/metrics").status_code == 200
