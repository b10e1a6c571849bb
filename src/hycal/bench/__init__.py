"""The benchmark: settings, protocols, metrics, runner, report, and the published numbers."""
