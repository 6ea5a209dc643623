"""The house installs as one import package: pyproject.toml, the disk and what pip installs agree."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
LINKED = ["semirings", "models"]  # top-level folders that install below gbnn


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever the end; its output is text."""
    env = os.environ | environment
    return subprocess.run(command, cwd=cwd, env=env, input="", capture_output=True, text=True, timeout=300)


def succeed(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = run(*command, cwd=cwd, **environment)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def house() -> dict[str, Path]:
    """Every file that belongs into a wheel, by its name there; links are not followed, caches not counted."""
    files = {}
    for package, folder in SETUPTOOLS["package-dir"].items():
        for here, folders, names in os.walk(ROOT / folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                path = Path(here, name)
                inside = path.relative_to(ROOT / folder).as_posix()
                files[f"{package.replace('.', '/')}/{inside}"] = path
    return files


def test_packages_are_the_folders_on_disk() -> None:
    on_disk = {name.rpartition("/")[0].replace("/", ".") for name in house() if name.endswith(".py")}
    assert sorted(SETUPTOOLS["packages"]) == sorted(on_disk)


def test_every_package_has_an_init_file() -> None:
    expected = {f"{name.replace('.', '/')}/__init__.py" for name in SETUPTOOLS["packages"]}
    assert expected - house().keys() == set()


@pytest.mark.parametrize("folder", LINKED)
def test_link_is_relative_and_committed_as_a_link(folder: str) -> None:
    if (ROOT / "PKG-INFO").exists():
        pytest.skip("a source distribution has no links and needs none")
    link = ROOT / "gbnn" / folder
    assert link.is_symlink()
    assert os.readlink(link) == f"../{folder}"
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git checkout, or no git")
    listed = succeed("git", "-c", "safe.directory=*", "ls-files", "--stage", f"gbnn/{folder}", cwd=ROOT)
    assert listed.startswith("120000 ")


@pytest.mark.parametrize("folder", LINKED)
def test_bare_name_is_refused(folder: str, tmp_path: Path) -> None:
    done = run(sys.executable, "-c", f"import {folder}", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert f"gbnn.{folder}" in last


@pytest.mark.parametrize("folder", LINKED)
@pytest.mark.parametrize("prefix", ["", "other.", "other.gbnn."])
def test_any_other_name_is_refused(folder: str, prefix: str) -> None:
    spec = importlib.util.spec_from_file_location(f"{prefix}{folder}", ROOT / folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=f"gbnn.{folder}"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


class Built(NamedTuple):
    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


def pip_wheel(source: Path, out: Path) -> Path:
    """Build a wheel with the setuptools that is installed here: no network."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir"]
    succeed(sys.executable, "-m", "pip", "wheel", *options, out, source, cwd=out.parent)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Wheel and sdist of a copy of the checkout: a build leaves its litter beside the sources."""
    top = tmp_path_factory.mktemp("packaging")
    litter = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "htmlcov")
    tree = shutil.copytree(ROOT, top / "tree", symlinks=True, ignore=litter)
    hook = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    succeed(sys.executable, "-P", "-c", hook, top / "sdist", cwd=tree)
    (sdist,) = (top / "sdist").glob("*.tar.gz")
    return Built(pip_wheel(tree, top / "wheel"), sdist, pip_wheel(sdist, top / "wheel_of_sdist"))


def contents(wheel: Path) -> list[str]:
    return sorted(zipfile.ZipFile(wheel).namelist())


def test_wheel_holds_the_house_and_nothing_else(built: Built) -> None:
    held = [name for name in contents(built.wheel) if ".dist-info/" not in name]
    assert held == sorted(house())
    assert {"gbnn/semirings/__init__.py", "gbnn/models/__init__.py"} <= set(held)
    assert [name for name in held if name.endswith("py.typed")] == ["gbnn/py.typed"]
    assert {name.partition("/")[0] for name in held} == {"gbnn"}


def test_sdist_builds_the_same_wheel(built: Built) -> None:
    assert contents(built.wheel_of_sdist) == contents(built.wheel)


def test_wheel_installs_and_imports_by_its_own_names(built: Built, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    python = fresh / "bin" / "python"
    succeed(sys.executable, "-m", "venv", "--without-pip", fresh, cwd=tmp_path)
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    succeed(sys.executable, "-m", "pip", "--python", python, "install", *options, built.wheel, cwd=tmp_path)
    # Borrow the dependencies; .pth files of a folder named in a .pth file (an editable gbnn) stay unread.
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(fresh), "platbase": str(fresh)}))
    borrowed = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site / "borrowed.pth").write_text("".join(f"{folder}\n" for folder in borrowed))

    names = ["gbnn", *(f"gbnn.{folder}" for folder in LINKED)]
    show = "import importlib, sys; [print(importlib.import_module(name).__file__) for name in sys.argv[1:]]"
    files = succeed(python, "-c", show, *names, cwd=tmp_path, PYTHONPATH="").splitlines()
    assert files == [str(site / name.replace(".", "/") / "__init__.py") for name in names]
    assert "usage" in succeed(fresh / "bin" / "gbnn", "--help", cwd=tmp_path, PYTHONPATH="").lower()
