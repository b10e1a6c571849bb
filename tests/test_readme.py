"""The README's example runs as it stands and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_first_example_runs(tmp_path, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[1]
    claimed = re.search(r"clf\.score\(.*# (0\.\d+)", code)[1]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    printed = capsys.readouterr().out.split()[-1]
    assert f"{float(printed):.3f}" == claimed
    assert (tmp_path / "digits.safetensors").is_file()
