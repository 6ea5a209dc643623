"""The reader of IDX files."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gbnn.data import read_idx
from gbnn.errors import FileError


def idx(array: np.ndarray) -> bytes:
    """The IDX bytes of an array, written independently of the reader."""
    sizes = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("shape", [(7,), (3, 4, 5), (2, 3)])
@pytest.mark.parametrize("packed", [True, False])
def test_idx_round_trip(tmp_path, shape, packed):
    array = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    content = idx(array)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if packed else content)
    back = read_idx(path, len(shape))
    assert back.dtype == np.uint8
    np.testing.assert_array_equal(back, array)


GOOD = idx(np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "got an empty file"),
        (b"\0", "got 00"),
        (b"PNG and more", "an IDX file of unsigned bytes"),
        (bytes([0, 0, 13, 3]) + GOOD[4:], "an IDX file of unsigned bytes"),  # float32
        (bytes([0, 0, 8, 1]) + GOOD[4:], "an IDX file of unsigned bytes in 3 dimensions"),
        (GOOD[:9], "header of 16 bytes"),
        (GOOD[:-1], "40 bytes for the shape"),
        (GOOD + b"\0", "40 bytes for the shape"),
        (bytes([0, 0, 8, 3]) + bytes(12), "at least one entry"),
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "bytes for the shape"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_idx_bad_content(tmp_path, content, words, packed):
    path = tmp_path / "bad-file"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(FileError, match=words) as caught:
        read_idx(path, 3)
    assert "bad-file" in caught.value.where


def test_idx_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(FileError, match="a readable IDX file"):
            read_idx(path, 1)


def test_idx_claim_is_not_believed(tmp_path):
    # 2**31 bytes claimed, a few hundred there, in a gzip file large enough that the ratio alone allows it.
    noise = np.random.default_rng(0).bytes(2_200_000)
    path = tmp_path / "claims"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0x7F, 0xFF, 0xFF, 0xFF]) + noise, compresslevel=1))
    tracemalloc.start()
    with pytest.raises(FileError, match="2147483655 bytes"):
        read_idx(path, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.booleans())
def test_idx_damaged_anywhere(tmp_path, draw, packed):
    content = gzip.compress(GOOD, mtime=0) if packed else GOOD
    damaged = bytearray(content[: draw.draw(st.integers(0, len(content)))])
    for _ in range(draw.draw(st.integers(0, 3))):
        if damaged:
            at = draw.draw(st.integers(0, len(damaged) - 1))
            damaged[at] ^= draw.draw(st.integers(1, 255))
    path = tmp_path / "damaged"
    path.write_bytes(damaged)
    try:
        array = read_idx(path, 3)
    except FileError as error:
        if str(path) not in error.where:
            raise
    else:
        # What passes has the right length: only the bytes of a plain file carry no checksum. In a gzip header
        # there are fields, such as the time, that mean nothing for the content.
        assert array.size == 24
        assert not packed or array.tobytes() == GOOD[16:]
