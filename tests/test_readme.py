"""The examples of README.md, ARCHITECTURE.md and docs/rewiring.md run as they stand."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbnn import cli, command_rewire, layers, load, losses, save, training

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


def test_the_layer_of_the_architecture_page_trains_and_comes_back(tmp_path: Path) -> None:
    page = README.with_name("ARCHITECTURE.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"np": np, "Layer": layers.Layer, "as_batch": layers.as_batch}
    (source,) = re.findall(r"^ *```python\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    exec(compile(textwrap.dedent(source), "ARCHITECTURE.md", "exec"), names)
    gain = names["Gain"](3)
    x = np.random.default_rng(0).standard_normal((64, 3))
    for _ in training.train(gain, [(x, 2 * x)] * 200, loss=losses.mse, optimizer=training.adam(0.1)):
        pass
    np.testing.assert_allclose(gain.gain, 2, rtol=1e-2)
    save(tmp_path / "gain.safetensors", gain)
    again = load(tmp_path / "gain.safetensors", known=[names["Gain"]])
    np.testing.assert_array_equal(again.forward(x)[0], gain.forward(x)[0])


def test_the_examples_of_the_rewiring_page_run() -> None:
    page = (README.parent / "docs" / "rewiring.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, "docs/rewiring.md", "exec"), names)
    assert names["model"].nnz == 1_000
    made, own = names["models"].mlp([64, 60, 10], nnz=[400, 200], seed=0), names["rewiring"]
    for rewiring in (own, dataclasses.replace(own, grow=names["from_everywhere"])):
        varied = dataclasses.replace(rewiring, prune=names["topology"].lowest(names["loud"]))
        history = training.fit(made, names["digits"].train, epochs=2, batch_size=32, rewiring=varied)
        assert sum(history["grown"]) > 0
        assert made.nnz == 600


def test_help_lists_every_rewiring() -> None:
    page = inspect.getsource(cli)
    methods = command_rewire.METHODS
    assert [name for name in methods if not re.search(rf"[ \"]{name}[,\"]", page)] == []
