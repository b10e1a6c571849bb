"""Images that were sent and are asked about or learned later, when they may not be at hand any more."""

from __future__ import annotations

from tests.serve.building import files, picture


def test_an_image_that_is_not_at_hand_spoils_no_other_answer(taught):
    one = taught.post("/api/classify?unknown=0.05", files=files(picture("red", 9))).json()["answers"][0]
    images = ["0" * 64, one["image"], "1" * 64]
    lost, found, last = taught.post("/api/answers?unknown=0.05", json={"images": images}).json()["answers"]
    assert found == one
    for answer in (lost, last):
        assert "Send it again" in answer["problem"]
        assert (answer["image"], answer["candidates"]) == (None, [])
