"""What a release consists of: versions that agree, files that others' programs read, steps that there are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hycal import __version__
from tools import container

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_one_version_everywhere():
    newest = re.search(
        r"^## (\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert newest[1] == citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert all("family-names" in author for author in citation["preferred-citation"]["authors"])


def expired(text: str, version: str) -> list[str]:
    """The deprecation warnings in source text that name no later version than `version` for their end."""
    now = tuple(map(int, version.split(".")[:2]))
    ends = [re.search(r"removed in (\d+)\.(\d+)", part[:400]) for part in text.split("DeprecationWarning")[1:]]
    return [
        found[0] if found else "no version" for found in ends if not found or tuple(map(int, found.groups())) <= now
    ]


def test_what_is_deprecated_names_a_version_that_is_still_to_come():
    assert expired("warn(DeprecationWarning, 'it will be removed in 0.3')", "0.1.0") == []
    assert expired("warn(DeprecationWarning, 'it will be removed in 0.3')", "0.3.0") == ["removed in 0.3"]
    assert expired("warn(DeprecationWarning, 'gone soon')", "0.1.0") == ["no version"]
    for path in (ROOT / "src").rglob("*.py"):
        assert expired(path.read_text(), __version__) == [], path


def test_workflows_call_targets_of_the_makefile():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    called = " ".join(workflow["jobs"]["more"]["strategy"]["matrix"]["target"]).split()
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    called += [word for step in steps for word in step.removeprefix("make ").split() if re.fullmatch("[a-z-]+", word)]
    assert all(step.startswith("make ") for step in steps if step)
    assert {name for name in called if "=" not in name} <= TARGETS


def test_issue_forms_ask_for_something():
    forms = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert len(forms) == 3
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= form.keys(), path
        names = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(set(names)) == len(names) > 0
        assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_hooks_are_the_checks_of_lint():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)[1]
    for hook in hooks:
        tool = hook["entry"].removeprefix(".venv/bin/").split(" --")[0]
        assert f"$(BIN)/{tool}" in lint


def test_the_documents_name_targets_that_there_are():
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for words in re.findall(r"`make ([a-z -]+)", document.read_text()):
            assert set(words.split()) <= TARGETS, (document.name, words)


def test_the_container_is_slim_has_no_root_and_is_watched():
    found = container.steps(container.DOCKERFILE.read_text())
    names = [name for name, _ in found]
    assert [name for name in names if not hasattr(container.Image, f"do_{name.lower()}")] == []
    steps = dict(found)
    assert steps["FROM"].endswith("-slim") and not steps["USER"].startswith(("0", "root"))
    assert "/api/health" in steps["HEALTHCHECK"] and names.index("USER") < names.index("CMD")
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]["hycal"]
    assert compose["read_only"] is True and compose["cap_drop"] == ["ALL"]
    assert (
        ROOT / "deploy" / compose["build"]["context"] / compose["build"]["dockerfile"]
    ).resolve() == container.DOCKERFILE
    assert all(port.startswith("127.0.0.1:") for port in compose["ports"])


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (("RUN", "rm -rf /etc"), "reach beyond the folder"),
        (("RUN", "cp x ../../y"), "reach beyond the folder"),
        (("RUN", "cp x >/tmp/y"), "reach beyond the folder"),
        (("FROM", "ubuntu:latest"), "expected a slim one"),
        (("USER", "0:0"), "as root"),
        (("ADD", "http://x y"), "does not know"),
    ],
)
def test_steps_that_are_not_carried_out(tmp_path, step, reason):
    with pytest.raises(SystemExit, match=reason):
        container.Image(tmp_path, folder="/").carry_out(*step)


def test_every_command_of_the_makefile_is_described():
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split())
    described = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.M))
    assert phony == described


def test_the_client_made_from_the_description(tmp_path):
    from benchmarks.load.server import served
    from tests.support.services import picture

    model, image = tmp_path / "m.hycal", tmp_path / "ä b.png"
    image.write_bytes(picture("red"))
    client = [sys.executable, str(ROOT / "examples" / "openapi_client.py")]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*client, *words], capture_output=True, text=True)

    with served(model) as server:
        address = f"http://127.0.0.1:{server.port}"
        assert "POST classify " in call(address).stdout
        sent = call(address, "images", str(image))
        (hash_,) = re.findall(r'"image": "([0-9a-f]{64})"', sent.stdout)
        learned = call(address, "learn", f'{{"labels": {{"{hash_}": "colour/red"}}}}')
        assert '"colour/red"' in learned.stdout, learned.stderr
        assert '"label": "colour/red"' in call(address, "classify", str(image), "top=1").stdout
        assert hash_ in call(address, "examples", "label=colour/red").stdout
        wrong = call(address, "rename", '{"old": "no", "new": "x"}')
        assert wrong.returncode == 1 and wrong.stderr.startswith("400: ")
    gone = call(address, "info")
    assert gone.returncode == 1 and "Start `hycal serve` first" in gone.stderr
