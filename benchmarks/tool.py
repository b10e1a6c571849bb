"""What the tool costs on a large model, and what its advice is worth on real embeddings.

python -m benchmarks.tool
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.printed import PrintedTable
from benchmarks.synthetic import many_classes
from hycal.data import load_xd8
from hycal.export.onnx_head import export_onnx
from hycal.project import Arrival, Example, Project, Space, State, changes, empty_state
from hycal.project.advice import advise
from hycal.project.answers import answer
from hycal.validation import unit_rows

WIDTH, CLASSES, SHOTS = 512, 1000, 10
MISLABELLED = 0.01
Works = dict[str, Callable[[], object]]


def milliseconds(work: Callable[[], object], *, times: int) -> float:
    """Return the median processor time of some runs."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(1e3 * (time.process_time() - began))
    return median(taken)


def costs() -> None:
    """Print what each operation takes on a synthetic model with thumbnails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.hycal")
        many_classes(path, Space("none", None, WIDTH), classes=CLASSES, shots=SHOTS)
        state, appending = Project(path).state, Project(path, journal=True)
        clf, rows = state.classifier, np.random.default_rng(0).normal(size=(1000, WIDTH)).astype(np.float32)
        clf.predict(rows)
        once: Works = {
            "first percentages of a model: the temperature": lambda: clf.temperature_,
            "first check of what is unknown": lambda: clf.unknown(rows[:1]),
            "advise": lambda: advise(state),
        }
        often: Works = {
            "open": lambda: Project(path),
            "answer one embedding": lambda: answer(state, rows[:1]),
            "the same with evidence": lambda: answer(state, rows[:1], why=True),
            "whether it is unknown": lambda: clf.unknown(rows[:1]),
            "answer 1,000 embeddings": lambda: answer(state, rows),
            "forget a class and undo it, in the file": lambda: _back_and_forth(Project(path)),
            "the same in the journal": lambda: _back_and_forth(appending),
            "export to ONNX": lambda: export_onnx(clf, Path(folder, "m.onnx")),
        }
        size = f"{path.stat().st_size / 1e6:.0f} MB"
        title = f"{CLASSES:,} classes of {SHOTS} images, {WIDTH} dimensions, {size}: milliseconds of processors"
        table = PrintedTable(title, "operation", "ms")
        for works, times in ((once, 1), (often, 5)):
            for name, work in works.items():
                table.row(name, f"{milliseconds(work, times=times):,.1f}")


def _back_and_forth(project: Project) -> None:
    project.forget("domain0/class0000")
    project.undo()


def planted() -> tuple[State, set[str]]:
    """Return a model of the bundled embeddings in which some images have a wrong label of their domain."""
    rng = np.random.default_rng(0)
    arrivals, wrong = [], set()
    for name, domain in load_xd8().items():
        for number, (row, truth) in enumerate(zip(unit_rows(domain.train_x), domain.train_y, strict=True)):
            label, image = int(truth), f"{name}-{number}"
            if rng.random() < MISLABELLED:
                label = int(rng.integers(len(domain.class_names)))
                if label != truth:
                    wrong.add(image)
            example = Example(row, image.encode().ljust(32), image)
            arrivals.append(Arrival(f"{name}/{domain.class_names[label]}", example))
    state, _ = changes.learn(empty_state(Space("clip-vit-b16-w8", None, WIDTH), has_text=False), arrivals)
    return state, wrong


def worth() -> None:
    """Print how well leaving one out tells the accuracy on new images, and how many wrong labels it finds."""
    state, wrong = planted()
    advice = advise(state)
    right = total = 0
    for name, domain in load_xd8().items():
        answers = state.classifier.predict(domain.test_x)
        right += sum(a == f"{name}/{domain.class_names[y]}" for a, y in zip(answers, domain.test_y, strict=True))
        total += len(domain.test_y)
    suspects = [suspect.example.name for suspect in advice.suspects]
    found, early = (len(wrong.intersection(some)) for some in (suspects, suspects[: len(wrong)]))
    print(f"{len(state.examples):,} real images of {len(state.labels)} classes, {len(wrong)} of them mislabelled")
    print(f"accuracy: {advice.overall.accuracy:.1%} estimated, {right / total:.1%} on {total:,} test images")
    print(f"mislabelled: {found} of {len(wrong)} among {len(suspects)} suspects, {early} among the first {len(wrong)}")


if __name__ == "__main__":
    costs()
    print()
    worth()
