"""Learn the ten digits class by class, in uneven steps, and print how accuracy on every step's digits develops.

No image is kept, nothing is trained, and a step never looks at an earlier one.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from hycal import HyCal

STEPS = {"0": 3, "1 2 3": 20, "4 5": 8, "6": 40, "7 8 9": 12}  # the digits of a step, and how many images of each


def main() -> None:
    """Run the stream."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(y))
    train, test = shuffled[:900], shuffled[900:]
    classifier = HyCal(fusion="image")
    learned: list[str] = []

    print("HyCal on scikit-learn's digits (8 x 8 pixels as they are), candidates = digits learned so far")
    print("accuracy in %      " + "".join(f"{digits:>8}" for digits in STEPS) + "    mean")
    for digits, shots in STEPS.items():
        labels = [int(digit) for digit in digits.split()]
        rows = np.concatenate([train[y[train] == label][:shots] for label in labels])
        classifier.partial_fit(X[rows], y[rows], domain=digits)
        learned.append(digits)
        row = []
        for domain in learned:
            of_domain = test[np.isin(y[test], [int(digit) for digit in domain.split()])]
            row.append(100 * classifier.score(X[of_domain], y[of_domain]))
        cells = "".join(f"{accuracy:8.1f}" for accuracy in row) + " " * 8 * (len(STEPS) - len(row))
        print(f"+ {digits:<6}{shots:3d} shots " + cells + f"{np.mean(row):8.1f}")
    images, kilobytes = classifier.counts_.sum(), classifier.nbytes_ / 1024
    print(f"{len(classifier.classes_)} classes, {images} images, {kilobytes:.0f} kB of state")


if __name__ == "__main__":
    main()
