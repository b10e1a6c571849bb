"""What must not change a byte though a worker dies, after others have finished some: embedding, learning, the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hycal import HyCal
from hycal.bench import runner
from hycal.bench.methods import parse_variant
from hycal.embedding import EmbeddingCache, EmbeddingTable, ImageFile, embed, embed_sharded, write_table
from hycal.embedding.shards import encoder_of_worker
from hycal.embedding.sources import image_files
from hycal.embedding.store import space_fingerprint
from hycal.encoders.encoder import Encoder
from hycal.scale.shards import learn_shards
from hycal.testing.streams import Stream, learn
from tests.parallel.dying_workers import DyingShard, a_worker_died, compute_and_die, load_and_die
from tests.support.files import tree
from tests.support.images import make_folder
from tests.support.small_benchmark import small_domains, small_setting

BUILTIN = partial(encoder_of_worker, "builtin", None)


def check_embedding(folder: Path, cluster: str, load: Callable[[], Encoder] = BUILTIN) -> None:
    """The table of embeddings, and what is said of files that are no images."""
    images = make_folder(folder / "images", classes=3, images=11)
    (images / "class_0" / "copy.png").write_bytes((images / "class_1" / "003.png").read_bytes())
    (images / "class_0" / "notes.txt").write_text("no image")
    (images / "class_2" / "empty.png").touch()
    sources = [ImageFile(path) for path in image_files(images)]
    encoder = load()
    alone = embed(sources, encoder)
    with EmbeddingCache.of(encoder, folder / "cache") as cache:
        dying = partial(load_and_die, folder, load)
        result = embed_sharded(sources, dying, store=cache, cluster=cluster, batch=4, images_per_shard=5)
        assert a_worker_died(folder, after=2)
        assert result.encoded == alone.encoded == 33
        assert not list(cache.incoming.glob("*"))
        again = embed_sharded(sources, dying, store=cache, cluster=cluster)
    assert again.encoded == 0
    tables = []
    for name, outcome in {"alone": alone, "result": result, "again": again}.items():
        assert outcome.skipped == alone.skipped
        assert len(outcome.skipped) == 2
        assert outcome.keys == alone.keys
        names = np.array([sources[number].name for number in outcome.kept])
        table = EmbeddingTable(outcome.rows, names, names, names, names, encoder.name, space_fingerprint(encoder))
        write_table(folder / f"{name}.npz", table)
        tables.append((folder / f"{name}.npz").read_bytes())
    assert tables[0] == tables[1] == tables[2]


def check_learning(folder: Path, cluster: str) -> None:
    """The model file: of classes that all shards share, and of classes that one has alone."""
    (step,) = Stream.synthetic(3, shots=[[9] * 12], width=16).steps
    steps = [step.rows([row for row in range(len(step.y)) if row % 5 == part]) for part in range(5)]
    steps += [replace(other, domain="late") for other in Stream.synthetic(4, shots=[[2] * 20, [3] * 4], width=16).steps]
    steps[-1] = steps[-1].relabelled(lambda label: int(label) + 1000)
    steps[-2] = steps[-2].relabelled(lambda label: int(label) + 2000)
    learn(HyCal(), steps).save(folder / "alone")
    learn_shards(HyCal(), [DyingShard(part, folder) for part in steps], cluster=cluster).save(folder / "shards")
    assert a_worker_died(folder, after=1)
    assert (folder / "alone").read_bytes() == (folder / "shards").read_bytes()


def check_grid(folder: Path, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file of a small grid but those that hold the time it took."""
    labels = ("NCM", "HyCal", "KLDA[n_components=64]")
    cells = runner.grid([small_setting()], [parse_variant(label) for label in labels], seeds=[0, 1, 2])
    domains = {"small": small_domains()}
    runner.run_grid(cells, domains, folder / "alone")
    (folder / "calls").mkdir()
    monkeypatch.setattr(runner, "_compute", compute_and_die)
    summary = runner.run_grid(cells, domains, folder / "grid", cluster=cluster)
    assert a_worker_died(folder / "calls", after=4)
    assert summary.computed == len(cells) == 9
    alone, spread = (
        {name: content for name, content in tree(folder / out).items() if not name.startswith("timing")}
        for out in ("alone", "grid")
    )
    assert len(alone) == 9 + 1 + 3  # cells, a view, lists of samples
    assert alone == spread
