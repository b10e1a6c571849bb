"""From the files of a run to tables and figures."""
