"""`hycal serve`: one project over HTTP, and the page in front of it. Needs the extra `serve`."""
