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

from benchmarks.synthetic import many_classes
from hycal.data import load_xd8
from hycal.export.onnx_head import export_onnx
from hycal.project import Arrival, Example, Project, Space, State, changes, empty_state
from hycal.project.advice import advise
from hycal.project.answers import answer
from hycal.validation import unit_rows

WIDTH, CLASSES, SHOTS = 512, 1000, 10
MISLABELLED = 0.01


def milliseconds(work: Callable[[], object], *, times: int = 3) -> float:
    """Return the median time of some runs."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - began))
    return median(taken)


def costs() -> None:
    """Print what each operation takes on a synthetic model with thumbnails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.hycal")
        many_classes(path, Space("none", None, WIDTH), classes=CLASSES, shots=SHOTS)
        project = Project(path)
        state = project.state
        print(f"{CLASSES:,} classes of {SHOTS} images, {WIDTH} dimensions: {path.stat().st_size / 1e6:.0f} MB")
        rows = np.random.default_rng(0).normal(size=(1000, WIDTH)).astype(np.float32)
        state.classifier.predict(rows)
        print(f"open                            {milliseconds(lambda: Project(path)):8.0f} ms")
        clf = state.classifier
        print(f"first percentages: temperature  {milliseconds(lambda: clf.temperature_, times=1):8.0f} ms")
        print(f"first unknown: familiarity      {milliseconds(lambda: clf.unknown(rows[:1]), times=1):8.0f} ms")
        print(f"answer one embedding            {milliseconds(lambda: answer(state, rows[:1])):8.1f} ms")
        print(f"  with evidence                 {milliseconds(lambda: answer(state, rows[:1], why=True)):8.1f} ms")
        print(f"  whether it is unknown         {milliseconds(lambda: clf.unknown(rows[:1])):8.1f} ms")
        print(f"answer 1,000 embeddings         {milliseconds(lambda: answer(state, rows)):8.0f} ms")
        print(f"forget a class and undo, twice  {milliseconds(lambda: _back_and_forth(Project(path))):8.0f} ms")
        appending = Project(path, journal=True)
        print(f"  by the journal                {milliseconds(lambda: _back_and_forth(appending)):8.0f} ms")
        print(f"advise                          {milliseconds(lambda: advise(state), times=1):8.0f} ms")
        head = Path(folder, "m.onnx")
        print(f"export to ONNX                  {milliseconds(lambda: export_onnx(state.classifier, head)):8.0f} ms")


def _back_and_forth(project: Project) -> None:
    for _ in range(2):
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
