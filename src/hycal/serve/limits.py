"""What a server takes from strangers: so much and no more."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    Attributes
    ----------
    requests : int
        That are being received or answered at the same time.
    request_bytes : int
        Of one request, all its images together.
    image_bytes, image_pixels : int
        Of one image.
    images : int
        Images in one upload.
    rows : int
        Embeddings in one request.
    tray : int
        Images that were seen and may still be taught without sending them again; about 5 kB each.
    """

    requests: int = 96
    request_bytes: int = 64 * 2**20
    image_bytes: int = 32 * 2**20
    image_pixels: int = 50_000_000
    images: int = 64
    rows: int = 4096
    tray: int = 20_000
