"""The benchmark: settings, protocols, metrics, runner, report, and the published numbers.

Only `commands` imports it; it imports `gravity`, `testing`, `data`, `classifiers` and below.
It never changes a method: a run measures what every user gets. It never imports `serve` or `project`.
"""
