"""Writes the golden project of the present format version. Run once per version; never overwrite an older one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hycal.project import Project
from hycal.project.sealed import seal
from hycal.storage.model_file import VERSION
from tests.support.projects import arrivals, example, pets_and_cars


def main() -> None:
    path = Path(__file__).parent / f"project-v{VERSION}.hycal"
    if path.exists():
        raise SystemExit(f"{path} exists: a golden file is written once")
    project = pets_and_cars(Path(tempfile.mkdtemp()) / "open.hycal")
    project.correct(example("pets/cat", 1), "pets/dog")
    project.forget("cars/cat")
    project.learn(arrivals("pets/cow", 1))
    project = Project.create(path, seal(project.state))  # version 3 has sealed models
    expected = {
        "hash": project.state.hash,
        "labels": list(project.state.labels),
        "names": [example.name for example in project.state.examples],
        "hashes": [entry.after for entry in project.state.history],
    }
    path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
