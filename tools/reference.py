"""The reference that is made from the code: commands, public names of Python, routes of the server. For `make docs`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Sequence
from typing import Any

import hycal

Json = dict[str, Any]


def packages() -> list[str]:
    """Return the public modules: hycal, and every package in it that says by `__all__` what users may import."""
    inner = [f"hycal.{module.name}" for module in pkgutil.iter_modules(hycal.__path__) if module.ispkg]
    listed = [name for name in inner if hasattr(importlib.import_module(name), "__all__")]
    return ["hycal", *(name for name in listed if name != "hycal.classifiers")]  # its names are those of hycal


def public_names(package: str) -> list[str]:
    """Return what `from PACKAGE import *` gives."""
    return [name for name in importlib.import_module(package).__all__ if not name.startswith("__")]


def definition(package: str, name: str) -> str:
    """Return the dotted path under which a public name is defined.

    >>> definition("hycal", "HyCal")
    'hycal.classifiers.hycal.HyCal'
    """
    value = getattr(importlib.import_module(package), name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{package}.{name}"


def names() -> str:
    """Return an entry of mkdocstrings for every public name, by module."""
    return "\n\n".join(_entries())


def _entries() -> Iterator[str]:
    methods = set(importlib.import_module("hycal.classifiers").__all__)
    for package in packages():
        module = importlib.import_module(package)
        yield f"## {package}"
        yield _directive(package, ["show_root_heading: false", "show_root_toc_entry: false", "members: []"])
        for name in public_names(package):
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                yield f"### {package}.{name}\n\nA constant: its example stands above."
                continue
            options = [f"heading: {package}.{name}", f"toc_label: {name}"]
            if package == "hycal" and name in methods:
                options.append("members: []")  # those of `hycal.base.IncrementalClassifier`, below
            yield _directive(definition(package, name), options)
    yield "## What every method can do"
    yield _directive("hycal.base.IncrementalClassifier", ["inherited_members: true"])


def _directive(path: str, options: Sequence[str]) -> str:
    return "\n".join([f"::: {path}", "    options:", *(f"      {option}" for option in options)])


def commands() -> str:
    """Return every command with its arguments and options, from `hycal --help`."""
    from hycal.cli import Commands

    panels: dict[str, list[str]] = {}
    for entry in Commands.entries:
        panels.setdefault(entry.panel or "Others", []).extend(_command(entry.load(), f"hycal {entry.name}", entry.help))
    return "\n\n".join(f"## {panel}\n\n" + "\n\n".join(parts) for panel, parts in panels.items())


def _command(command: Any, name: str, summary: str) -> Iterator[str]:
    yield f"### {name}"
    children = getattr(command, "commands", None)
    if children:
        yield summary
        for child, below in children.items():
            yield from (part.replace("### ", "#### ", 1) for part in _command(below, f"{name} {child}", ""))
        return
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"```\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    yield _escaped(command.help or summary)
    records = [param.get_help_record(context) for param in command.get_params(context)]
    rows = [f"| `{_in_table(record[0])}` | {_in_table(_escaped(record[1]))} |" for record in records if record]
    yield "\n".join(["| | |", "|---|---|", *rows])


def _in_table(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def _escaped(text: str) -> str:
    """Return text of a help for Markdown: no table or link by chance, lines filled by the reader."""
    return re.sub(r"(?<!`)([<>*_\[\]])", r"\\\1", text.replace("\n\n", "\0").replace("\n", " ")).replace("\0", "\n\n")


def openapi() -> Json:
    """Return the OpenAPI document of the server, with the routes of Label Studio and of the pile."""
    from fastapi import FastAPI

    from hycal.serve import label_studio, routes
    from hycal.serve.pile.routes import pile_router

    app = FastAPI(title="hycal", version=hycal.__version__)
    for router in (routes.router, label_studio.router, pile_router):
        app.include_router(router)
    return app.openapi()


def routes() -> str:
    """Return every route with its parameters, body and response, and every schema, from the OpenAPI document."""
    document = openapi()
    parts = [
        part
        for path, methods in document["paths"].items()
        for method, route in methods.items()
        for part in _route(method.upper(), path, route)
    ]
    parts[:0] = ["[The whole document](openapi.json), as JSON.", "## Routes"]
    parts.append("## Schemas")
    for name, schema in document["components"]["schemas"].items():
        parts += [f"### {name}", schema.get("description", ""), _fields(schema)]
    return "\n\n".join(part for part in parts if part)


def _route(method: str, path: str, route: Json) -> Iterator[str]:
    yield f"### {method} {path}"
    yield f"{route.get('summary', '')}. {route.get('description', '')}".strip(". ") + "."
    rows = [
        f"| `{one['name']}` | {one['in']} | {_kind(one['schema'])} | {_escaped(one.get('description', ''))} |"
        for one in route.get("parameters", ())
    ]
    if rows:
        yield "\n".join(["| parameter | in | kind | |", "|---|---|---|---|", *rows])
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        yield f"Body, `{kind}`: {_kind(content.get('schema', {}))}"
    for code, answer in route.get("responses", {}).items():
        kinds = [_kind(content.get("schema", {})) for content in answer.get("content", {}).values()]
        if code.startswith("2"):
            yield f"Response {code}: {', '.join(kinds) or 'no body'}"


def _fields(schema: Json) -> str:
    needed = schema.get("required", ())
    rows = [
        f"| `{name}` | {_kind(one)} | {'yes' if name in needed else 'no'} | {_escaped(one.get('description', ''))} |"
        for name, one in schema.get("properties", {}).items()
    ]
    return "\n".join(["| field | kind | always | |", "|---|---|---|---|", *rows]) if rows else ""


def _kind(schema: Json) -> str:
    """Return the kind of a value in words, with a link to its schema.

    >>> _kind({"type": "array", "items": {"$ref": "#/components/schemas/ClassOut"}})
    'list of [ClassOut](#classout)'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))
