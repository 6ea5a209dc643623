"""The examples of README.md, ARCHITECTURE.md, docs/rewiring.md and docs/wide.md run as they stand."""

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
WIDE = README.parent / "docs" / "wide.md"
PAGES = {page.name: page.read_text(encoding="utf-8") for page in (README, WIDE)}


def blocks_of(page: str) -> list[str]:
    found = re.findall(r"^ *```python\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


BLOCKS = blocks_of(TEXT)
EXAMPLES = {f"{name} {k}": block for name, page in PAGES.items() for k, block in enumerate(blocks_of(page))}


@pytest.mark.parametrize("example", EXAMPLES)
def test_python_example_runs(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[example], example, "exec"), {})


def test_the_page_of_wide_layers_has_examples_of_all_it_is_about() -> None:
    assert len([name for name in EXAMPLES if name.startswith("wide.md")]) >= 7
    named = ["lazily", "HashingText", "hash_features", "grow_on_demand", "ManyLabels", "Sampled", "top_k"]
    named += ["Stream", "open_csr", "save_csr_batches", "KWinners", "SparseMLPClassifier"]
    code = "\n".join(EXAMPLES.values())
    assert [name for name in named if name not in code] == []


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    folder = README.parent if name == README.name else WIDE.parent
    for target in re.findall(r"\]\(([^)]*)\)", PAGES[name]):
        path, _, anchor = target.partition("#")
        page = folder / path if path else folder / name
        assert page.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


def test_the_commands_of_the_page_of_wide_layers_are_understood() -> None:
    commands = re.findall(r"^    gbnn (.*)$", PAGES["wide.md"], re.MULTILINE)
    assert len(commands) >= 4
    for line in commands:
        cli._parser().parse_args(line.partition(" #")[0].split())


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
