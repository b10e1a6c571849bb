"""Programs for work on hycal itself: the documents, bundled files, checks."""
