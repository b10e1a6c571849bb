"""`hycal serve`: one project over HTTP, and its page. It needs the extra `serve`.

Only `hycal.commands` imports this room. It never reads or writes a model file itself: `hycal.project` does.
A request passes `security`, `routes`, `service` and comes back through `serializers`, in the shape of `schemas`.
"""
