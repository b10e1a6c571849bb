"""The log-odds of the normal distribution function Phi as a rational function, for NumPy, compiled loops and ONNX.

log(Phi(z)/(1 - Phi(z))) = z P(z²)/Q(z²) for |z| <= SHALLOW, to 7e-7.
"""

from __future__ import annotations

SHALLOW = 8.0  # standard deviations; at most C/64 of C z-scores lie beyond, as their squares sum to C - 1
# P and Q from the constant term up
LOGIT_PHI_P = (
    1.5957695851667444,
    0.23868205011687546,
    0.021119220275485167,
    7.41524745282198e-4,
    4.047505285834277e-6,
)
LOGIT_PHI_Q = (1.0, 0.10402949768856193, 0.00854726973275214, 1.4351527033911032e-4, 1.9431067258109502e-7)
SMALLEST_SPREAD = 1e-6  # of scores over classes, in a z-score
