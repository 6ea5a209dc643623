"""The examples of the README run as they stand."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```python\n(.*?)^ *```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    exec(compile(textwrap.dedent(BLOCKS[number]), f"README example {number}", "exec"), {})


def test_readme_begins_with_the_two_commands_and_an_example_of_ten_lines() -> None:
    assert TEXT.index("make demo") < TEXT.index("make test") < TEXT.index("```python")
    assert len(BLOCKS[0].splitlines()) <= 10
