"""Downloads, from a server on this machine."""

from __future__ import annotations

import hashlib
import socket
import time
from pathlib import Path

import pytest

from gbnn.data import download
from gbnn.errors import ArgumentError, FileError


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_download_with_the_right_checksum(tmp_path, server):
    folder, url = server
    (folder / "a").write_bytes(b"x" * 100_000)
    target = tmp_path / "new" / "deep" / "a"
    download.fetch(f"{url}a", target, sha256(b"x" * 100_000))
    assert target.read_bytes() == b"x" * 100_000
    assert [path.name for path in target.parent.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("name", "words"), [("a", f"SHA-256 {sha256(b'y')}"), ("absent", "HTTP 404 File not found")]
)
def test_download_that_fails_leaves_what_was_there(tmp_path, server, name, words):
    folder, url = server
    (folder / "a").write_bytes(b"x")
    target = tmp_path / "cache" / "a"
    with pytest.raises(FileError, match=words):
        download.fetch(url + name, target, sha256(b"y"))
    assert list(target.parent.iterdir()) == []
    target.write_bytes(b"old")
    with pytest.raises(FileError, match=words):
        download.fetch(url + name, target, sha256(b"y"))
    assert [path.read_bytes() for path in target.parent.iterdir()] == [b"old"]


def test_download_stops_at_its_limit(tmp_path, server, monkeypatch):
    folder, url = server
    monkeypatch.setattr(download, "LIMIT", 1000)
    (folder / "a").write_bytes(b"x" * 1001)
    with pytest.raises(FileError, match="at most 1000 bytes"):
        download.fetch(f"{url}a", tmp_path / "cache" / "a", sha256(b"x" * 1001))
    assert list((tmp_path / "cache").iterdir()) == []


def test_download_without_a_server_or_to_nowhere(tmp_path, server, monkeypatch):
    folder, url = server
    with pytest.raises(FileError, match="refused"):
        download.fetch("http://127.0.0.1:9/a", tmp_path / "a", "")
    with pytest.raises(FileError, match="a download to"):
        download.fetch("http://[bad/a", tmp_path / "a", "")
    (folder / "a").write_bytes(b"x")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match="a download to"):
        download.fetch(f"{url}a", tmp_path / "file" / "a", sha256(b"x"))
    for scheme in ("file:///etc/hostname", "ftp://127.0.0.1/a", "a"):
        with pytest.raises(ArgumentError, match="url"):
            download.fetch(scheme, tmp_path / "a", "")
    assert not (tmp_path / "a").exists()


def test_download_from_a_silent_server_gives_up(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        begun = time.monotonic()
        with pytest.raises(FileError, match="timed out"):
            download.fetch(url, tmp_path / "a", "", timeout=0.2)
        assert time.monotonic() - begun < 10
    assert list(tmp_path.iterdir()) == []


def test_cache_folder_follows_xdg(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
    assert download.cache_folder() == Path("/some/where/gbnn")
    monkeypatch.setenv("HOME", "/home/someone")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert download.cache_folder() == Path("/home/someone/.cache/gbnn")
