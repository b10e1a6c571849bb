"""The report: from the files of a run to tables and figures in Markdown, LaTeX, CSV and HTML.

Results are read (`results`), made into blocks (`sections`, `tables`), and written (`writers`, `templates`).
Only `commands` imports it. It never runs a method and never reads embeddings.
"""
