"""Where a file may be written: only in the place of a file, and only whole."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gbnn.errors import FileError
from gbnn.training import container


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(Path("folder", "file"))
    for text in ("first", "second"):  # no file there yet, and one
        container.write(link, {"x": np.arange(3)}, text)
        assert link.is_symlink()
        assert container.read(file)[1] == text
    assert sorted(os.listdir(tmp_path / "folder")) == ["file"]


def test_what_is_no_file_is_neither_replaced_nor_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "to").symlink_to(pipe)
    (tmp_path / "round").symlink_to("round")
    names = sorted(os.listdir(tmp_path))
    for place, words in (
        (pipe, "a device or pipe"),
        (tmp_path / "to", "a device or pipe"),
        (tmp_path, "a folder"),
        (tmp_path / "round", "symbolic links"),
        (tmp_path / "no" / "file", "no folder"),
        (pipe / "file", "Not a directory"),
        (tmp_path / ("a" * 300), "too long"),
        ("a\0b", "null"),
    ):
        with pytest.raises(FileError, match=words):
            container.write(place, {}, "")
    assert pipe.is_fifo()
    assert sorted(os.listdir(tmp_path)) == names
    with pytest.raises(FileError, match="a device or pipe"):
        container.read(pipe)  # and does not wait for a writer


def test_nothing_changes_when_filling_fails(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("before")

    def fill() -> None:
        with container.replacing(place) as new:
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert place.read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("order", ["<", ">", "="])
@pytest.mark.parametrize("code", ["f4", "f8", "i2", "u8", "i1", "?"])
def test_arrays_of_either_byte_order_come_back_native(order: str, code: str, tmp_path: Path) -> None:
    array = np.array([[0, 1, 2], [1, 5, 100]]).astype(order + code)
    container.write(tmp_path / "m", {"x": array}, "text")
    tensors, text = container.read(tmp_path / "m")
    assert tensors.pop(container.CHECKSUM).tolist() == [container.checksum(text, tensors)]
    assert tensors["x"].dtype == np.dtype(code)
    assert tensors["x"].dtype.isnative
    np.testing.assert_array_equal(tensors["x"], array)
