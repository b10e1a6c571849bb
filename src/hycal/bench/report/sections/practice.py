"""What a practitioner would pick instead, classifiers of scikit-learn; and what it costs to add 10 classes to 290."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hycal.bench import metrics
from hycal.bench.efficiency import CASE, DENSE, count, stored
from hycal.bench.leads import paired_lead
from hycal.bench.practice import OURS, PracticeRun
from hycal.bench.published import PublishedCell
from hycal.bench.report.blocks import Block, Column, NotRun, ResultTable, Section, make_table
from hycal.bench.report.results import Results, Value
from hycal.bench.report.sections.findings import lead_value
from hycal.bench.report.tables import FAMILIES, IMBALANCES
from hycal.classifiers import METHODS

_LEARNING, _ANSWERING = "learning time, ratio", "answering time, ratio"
_CAPTION = (
    "Last accuracy, mean over {seeds} with its 95% interval, and the lead of {ours} over the row as in the section on "
    "leads. scikit-learn's classifiers are fitted on all samples at once; C is chosen by cross-validation on the "
    "samples and the ridge by leave-one-out, which is part of their learning time. Times are ratios to {ours} in the "
    "same run on one core. A missing ECE: the classifier has no probabilities. {ours} knows the domains, the others do "
    "not."
)

_OPERATIONS, _SECONDS, _STATE = "MFLOP counted", "CPU ms measured", "MiB stored, measured"
_PUBLISHED = {(DENSE, _OPERATIONS): 5400.0, ("PrimalRAIL", _OPERATIONS): 12000.0}
_COSTS = (
    f"{CASE.added} classes of {CASE.shots} shots are added to {CASE.classes - CASE.added}; {CASE.width} dimensions, "
    f"random features {CASE.features} wide. Counted from the formulas, from learning to the first answer; a dense "
    "precision matrix for each class, as published, stands in the first row. Measured on one core of this machine. "
    "Every model of this package stores its samples and texts, so that deletion is exact: "
    f"{stored('HyCal', CASE) / 2**20:.2f} MiB, whatever the method. A dense matrix for each class takes "
    f"{stored(DENSE, CASE) / 2**20:.0f} MiB (paper 301)."
)


def practice(results: Results) -> list[Section]:
    """Return the section: one table for each setting that was run."""
    settings = dict.fromkeys(run.setting for run in results.practice)
    blocks: list[Block] = [_table([run for run in results.practice if run.setting == name]) for name in settings]
    if not blocks:
        names = " ".join(f"{FAMILIES['bundled xd8']}{name}" for name in IMBALANCES.values())
        blocks = [NotRun("scikit-learn", "Not run yet:", (f"hycal bench practice {names} --out RESULTS",))]
    return [Section("practice", "What a practitioner would pick instead", tuple(blocks))]


def _table(runs: Sequence[PracticeRun]) -> ResultTable:
    columns = [Column(name) for name in ("last", "lead", "ece", _LEARNING, _ANSWERING)]
    seeds = f"{len(runs)} seed{'s' if len(runs) != 1 else ''}"
    title, caption = f"{runs[0].setting}: scikit-learn", _CAPTION.format(seeds=seeds, ours=OURS)
    return make_table(
        title, caption, columns, list(runs[0].fitted), lambda name, column: _value(runs, name, column.name)
    )


def _value(runs: Sequence[PracticeRun], name: str, column: str) -> Value:
    fitted, ours = [run.fitted[name] for run in runs], [run.fitted[OURS] for run in runs]
    if column == "lead":
        lead = paired_lead([one.right for one in ours], [one.right for one in fitted])
        return lead_value(lead if name != OURS else None)
    of = {
        "last": [one.last for one in fitted],
        "ece": [one.calibration_error for one in fitted],
        _LEARNING: [one.learning / mine.learning for one, mine in zip(fitted, ours, strict=True)],
        _ANSWERING: [one.answering / mine.answering for one, mine in zip(fitted, ours, strict=True)],
    }
    interval = metrics.interval(of[column]) if column == "last" else np.nan
    return Value(float(np.mean(of[column])), interval, len(runs))


def efficiency(results: Results) -> list[Section]:
    """Return the section."""
    measured = [_SECONDS] if results.efficiency else []
    if any(found.state_bytes != stored(name, CASE) for name, found in results.efficiency.items()):
        measured.append(_STATE)
    columns = [Column(name) for name in (_OPERATIONS, *measured)]

    def value(method: str, column: Column) -> Value:
        printed = _PUBLISHED.get((method, column.name))
        cell = None if printed is None else PublishedCell("efficiency", "", method, column.name, printed, np.nan)
        number = _number(results, method, column.name)
        return Value(number, np.nan, 1, cell, digits=0 if number >= 100 else 2)

    title = "Adding 10 classes"
    blocks: list[Block] = [make_table(title, _COSTS, columns, [DENSE, *METHODS], value)]
    if not measured:
        blocks.append(NotRun(title, "Not measured yet:", ("hycal bench efficiency --out RESULTS",)))
    return [Section("efficiency", "Efficiency", tuple(blocks))]


def _number(results: Results, method: str, column: str) -> float:
    if column == _OPERATIONS:
        return count(method, CASE) / 1e6
    if method not in results.efficiency:
        return float("nan")
    found = results.efficiency[method]
    return 1000.0 * found.seconds if column == _SECONDS else found.state_bytes / 2**20
