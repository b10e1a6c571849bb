"""What the columns of the tables are called and mean. Every form of the report takes the words from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """A column: the text above it, what it means, and why a run may not have it."""

    title: str
    meaning: str
    absence: str = "no run has it"


_TEXT = "needed are text embeddings, for zero-shot accuracy, and tests after every step"
_STEPS = "needed are tests after several steps"
_NAMES = "needed are methods that can tell a class by its name before it is learned"

#: By the names of `results.COLUMNS`, and of the columns that some sections add.
DEFINITIONS: Mapping[str, Definition] = {
    "last": Definition("Last", "Accuracy after the last step, mean over domains."),
    "average": Definition("Average", "Mean over steps of the accuracy on the domains learned so far.", _STEPS),
    "s_adapt": Definition(
        "S_adapt",
        "How well a domain is learned when it comes: mean of its zero-shot accuracy and its accuracy just after it is "
        "learned, averaged over domains with weights that are larger where training images are scarce.",
        _TEXT,
    ),
    "s_last": Definition(
        "S_last", "Accuracy after the last step, with larger weights for domains whose training images are scarce."
    ),
    "s_cde": Definition("S_CDE", "Harmonic mean of S_adapt and S_last.", _TEXT),
    "forgetting": Definition(
        "Forgetting",
        "Accuracy on a domain just after it is learned less that in the end, mean over all domains but the last; less "
        "is better.",
        _STEPS,
    ),
    "worst_forgetting": Definition(
        "Forgetting (from best)",
        "As Forgetting, from the best accuracy on the domain at any step.",
        _STEPS,
    ),
    "gap": Definition("Gap", "Accuracy on the best domain less that on the worst, in the end; less is better."),
    "ece": Definition(
        "ECE",
        "Expected calibration error of the answers in the end: how far the stated probabilities are from the share of "
        "right answers, in percent; less is better.",
    ),
    "last:sigma": Definition("σ", "Standard deviation over the domains."),
    "average:sigma": Definition("σ", "Standard deviation over the domains."),
    "transfer": Definition(
        "Transfer",
        "Accuracy on domains before they are learned, of methods that can tell a class by its name.",
        _NAMES,
    ),
    "average_x_tail": Definition(
        "Average (all cells)", "Mean accuracy over all steps and domains, before and after learning.", _NAMES
    ),
    "base": Definition("Base", "Accuracy in the end on the classes of the first step."),
    "novel": Definition("Novel", "Accuracy in the end on the classes of all later steps."),
    "harmonic": Definition("Harmonic mean", "Harmonic mean of Base and Novel."),
    "backward": Definition(
        "Backward transfer", "What later steps did to the accuracy on a domain; negative where it fell.", _STEPS
    ),
    "forward": Definition(
        "Forward transfer",
        "Accuracy on a domain just after it is learned less that of the method that learned it alone.",
        "needed are several steps, and methods that learned each domain alone",
    ),
    "lead": Definition(
        "Lead",
        "Difference in Last accuracy with its 95% interval, taken image by image; chance where the interval holds "
        "zero.",
    ),
    "domains": Definition(
        "Domains", "Whether the scores of the method depend on the domains that classes are learned under."
    ),
}
