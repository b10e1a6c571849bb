"""A service whose encoder sees colours only, its client, and pictures of four colours."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from starlette.testclient import TestClient

from hycal.project import Project, empty_state
from hycal.project.encoder import encoder_space
from hycal.serve.app import make_app
from hycal.serve.security import Access
from hycal.serve.service import Limits, Service
from tests.support.encoders import ColourEncoder

HOME = "http://localhost:8000"
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 220), "grey": (128, 128, 128)}


def picture(colour: str, number: int = 0, side: int = 24) -> bytes:
    """An image file in which tint and noise tell one number from another."""
    rng = np.random.default_rng(number)
    shade = np.array(COLOURS[colour]) + rng.normal(0, 25, 3)
    pixels = np.clip(shade + rng.normal(0, 25, (side, side, 3)), 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def files(*contents: bytes, name: str = "image.png") -> list[tuple[str, tuple[str, bytes]]]:
    return [("files", (name, content)) for content in contents]


def new_service(path: Path, *, encoder: ColourEncoder | None = None, **limits: int) -> Service:
    encoder = encoder or ColourEncoder()
    project = Project(path, empty_state(encoder_space(encoder), has_text=False), journal=True)
    return Service(project, encoder, limits=Limits(**limits))


def client_of(service: Service, access: Access | None = None, **options) -> TestClient:
    return TestClient(make_app(service, access), base_url=HOME, **options)


def teach(client: TestClient, count: int = 3, colours: tuple[str, ...] = ("red", "blue")) -> dict:
    """Learn `count` images of each colour; return the receipt."""
    labels = {}
    for colour in colours:
        sent = client.post("/api/images", files=files(*(picture(colour, number) for number in range(count))))
        labels |= {seen["image"]: f"colour/{colour}" for seen in sent.json()["images"]}
    answer = client.post("/api/learn", json={"labels": labels})
    assert answer.status_code == 200, answer.text
    return answer.json()
