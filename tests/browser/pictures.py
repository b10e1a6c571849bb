"""Pictures that we may publish, because we draw them: planets and fabrics, no two alike."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 192
_GRID = np.stack(np.meshgrid(np.linspace(-1.25, 1.25, SIDE), np.linspace(-1.25, 1.25, SIDE)))


def colour(rng: np.random.Generator, *, light: float = 0.6, strong: float = 0.55) -> np.ndarray:
    return 255 * np.array(colorsys.hls_to_rgb(rng.random(), light + 0.15 * rng.uniform(-1, 1), strong))


def clouds(rng: np.random.Generator, scale: int) -> np.ndarray:
    small = Image.fromarray((255 * rng.random((scale, scale))).astype(np.uint8))
    return np.asarray(small.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) / 255.0


def sky(rng: np.random.Generator) -> np.ndarray:
    image = np.full((SIDE, SIDE, 3), [9.0, 11.0, 24.0])
    rows, columns = rng.integers(0, SIDE, (2, 60))
    image[rows, columns] = rng.uniform(80, 255, (60, 1))
    return image


def sphere(rng: np.random.Generator, surface: np.ndarray, background: np.ndarray, radius: float = 1.0) -> np.ndarray:
    x, y = _GRID / radius
    inside = x**2 + y**2 < 1
    z = np.sqrt(np.clip(1 - x**2 - y**2, 0, None))
    sun = rng.uniform(-0.7, 0.7)
    shade = np.clip(0.25 + 0.9 * (sun * x - 0.4 * y + 0.75 * z), 0.08, 1.1)
    return np.where(inside[..., None], surface * shade[..., None], background)


def banded(rng: np.random.Generator, radius: float = 1.0) -> np.ndarray:
    one, two = colour(rng), colour(rng)
    wave = 0.5 + 0.5 * np.sin(rng.uniform(9, 15) * _GRID[1] + 1.5 * clouds(rng, 6) + rng.uniform(0, 6))
    return sphere(rng, one + (two - one) * wave[..., None], sky(rng), radius)


def rocky(rng: np.random.Generator) -> np.ndarray:
    surface = np.full((SIDE, SIDE), 1.0) - 0.25 * clouds(rng, 9)
    for _ in range(14):
        x, y, size = *rng.uniform(-0.9, 0.9, 2), rng.uniform(0.06, 0.24)
        away = np.hypot(_GRID[0] - x, _GRID[1] - y) / size
        surface += -0.4 * (away < 0.85) + 0.25 * ((away > 0.85) & (away < 1.05))
    return sphere(rng, colour(rng, strong=0.15) * surface[..., None], sky(rng))


def ringed(rng: np.random.Generator) -> np.ndarray:
    planet, ring, tilt = banded(rng, 0.55), colour(rng, light=0.75), rng.uniform(-0.5, 0.5)
    x = _GRID[0] * np.cos(tilt) + _GRID[1] * np.sin(tilt)
    y = (_GRID[1] * np.cos(tilt) - _GRID[0] * np.sin(tilt)) * 3.2
    away = np.hypot(x, y)
    front = (y > 0) | (np.hypot(*_GRID) > 0.55)
    band = (away > 0.78) & (away < 1.18) & (np.abs(away - 0.97) > 0.02) & front
    return np.where(band[..., None], ring * (0.75 + 0.25 * np.sin(40 * away))[..., None], planet)


def woven(rng: np.random.Generator, pattern: np.ndarray) -> np.ndarray:
    one, two = colour(rng, light=0.8), colour(rng, light=0.45, strong=0.6)
    thread = 1 + 0.07 * np.sin(1.6 * np.arange(SIDE))[:, None] * np.sin(1.6 * np.arange(SIDE))[None]
    return (one + (two - one) * pattern[..., None]) * thread[..., None]


def turned(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    turn, scale = rng.uniform(-0.35, 0.35), rng.uniform(9, 16)
    x, y = scale * _GRID
    return x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)


def striped(rng: np.random.Generator) -> np.ndarray:
    x, _ = turned(rng)
    return woven(rng, np.clip(0.5 + 4 * np.sin(x), 0, 1))


def checked(rng: np.random.Generator) -> np.ndarray:
    x, y = turned(rng)
    return woven(rng, 0.5 * (np.sin(0.6 * x) > 0) + 0.5 * (np.sin(0.6 * y) > 0))


def dotted(rng: np.random.Generator) -> np.ndarray:
    x, y = turned(rng)
    return woven(rng, np.clip(8 * (np.sin(0.7 * x) * np.sin(0.7 * y) - 0.55), 0, 1))


DOMAINS: dict[str, dict[str, Callable[[np.random.Generator], np.ndarray]]] = {
    "planets": {"banded": banded, "ringed": ringed, "rocky": rocky},
    "fabrics": {"checked": checked, "dotted": dotted, "striped": striped},
}


def picture(domain: str, name: str, number: int) -> Image.Image:
    rng = np.random.default_rng([*f"{domain}/{name}".encode(), number])
    return Image.fromarray(np.clip(DOMAINS[domain][name](rng), 0, 255).astype(np.uint8))


def draw_folders(root: Path, *, train: int, test: int) -> None:
    """Draw root/domain/train/class/*.jpg and root/domain/test/class/*.jpg."""
    for domain, names in DOMAINS.items():
        for name in names:
            for number in range(train + test):
                folder = root / domain / ("train" if number < train else "test") / name
                folder.mkdir(parents=True, exist_ok=True)
                picture(domain, name, number).save(folder / f"{name}-{number}.jpg", quality=88)
