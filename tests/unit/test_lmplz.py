"""Finding lmplz or building it, with stand-ins for the programs: no test here compiles anything."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.ngram import lmplz

WORKING = "cat > /dev/null; printf '\\\\data\\\\\\n'"
BROKEN = "echo 'cannot open shared object file' >&2; exit 127"


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH but for the shell's own tools, and holds no program yet; so does Python's."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in ("cat", "sh", "mkdir", "cp"):
        for place in ("/bin", "/usr/bin"):
            if os.path.exists(f"{place}/{tool}") and not (folder / tool).exists():
                (folder / tool).symlink_to(f"{place}/{tool}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "environment" / "python"))
    return folder


def test_an_installed_lmplz_is_linked(only: Path, tmp_path: Path) -> None:
    installed = program(only / "lmplz", WORKING)
    output = tmp_path / "a folder" / "lmplz"
    assert "linked" in lmplz.provide_lmplz(output)
    assert output.resolve() == installed
    assert os.access(output, os.X_OK)
    assert [path.name for path in output.parent.iterdir()] == ["lmplz"]


def test_one_beside_python_is_found_without_activation(only: Path, tmp_path: Path) -> None:
    installed = program(tmp_path / "environment" / "lmplz", WORKING)
    assert lmplz.find_installed(tmp_path / "out") == installed


def test_the_output_itself_is_no_installation(only: Path) -> None:
    assert lmplz.find_installed(program(only / "lmplz", WORKING)) is None


def test_a_broken_one_is_passed_over(only: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(only / "lmplz", BROKEN)
    assert lmplz.find_installed(tmp_path / "out") is None
    assert "cannot open shared object file" in capsys.readouterr().err


def test_missing_tools_are_named_in_one_line(only: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "tools" / "lmplz"
    assert main(["build-lmplz", "--output", str(output)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    for part in ("cmake and make and a C++ compiler", "apt-get install", "brew install", "conda install"):
        assert part in line
    assert list(output.parent.iterdir()) == []


@pytest.fixture
def tools(only: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler, make and a CMake that all succeed and do nothing, and a pip that brings an archive of KenLM."""
    for name in ("cmake", "make", "c++"):
        program(only / name, "exit 0")
    folder = only.parent / "sources" / "kenlm-0.3.0"
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text("find_package(Boost REQUIRED COMPONENTS\n  system\n  thread\n)\n")
    archive = only.parent / "kenlm-0.3.0.tar.gz"
    subprocess.run(["/bin/tar", "-czf", archive, "-C", folder.parent, folder.name], check=True, env={"PATH": "/bin"})
    program(
        Path(sys.executable),
        f'while [ "$1" != --dest ]; do shift; done; cp {archive} "$2"; '
        f'while [ "$1" != --requirement ]; do shift; done; read -r pinned < "$2"; '
        f'case $pinned in "{lmplz.REQUIREMENT} --hash=sha256:"*) ;; *) exit 1;; esac',
    )
    return only


def test_a_build_that_works(tools: Path, tmp_path: Path) -> None:
    built = program(tmp_path / "built", WORKING)
    # `cmake -S source -B folder` configures, `cmake --build folder` compiles; system must be off the list by then.
    program(
        tools / "cmake",
        f'if [ "$1" = -S ]; then case $(cat "$2/CMakeLists.txt") in *system*) exit 1;; esac; fi\n'
        f'if [ "$1" = --build ]; then mkdir -p "$2/bin"; cp -p {built} "$2/bin/lmplz"; fi',
    )
    output = tmp_path / "tools" / "lmplz"
    assert "built" in lmplz.provide_lmplz(output)
    assert output.read_text() == built.read_text()
    assert os.access(output, os.X_OK)


def test_want_of_boost_is_named(tools: Path, tmp_path: Path) -> None:
    program(
        tools / "cmake",
        "echo '-- Could NOT find Eigen3'; echo 'CMake Error at FindBoost.cmake:1 (message):'; echo; "
        "echo '  Could NOT find Boost (missing: thread)'; echo '-- Configuring incomplete'; exit 1",
    )
    with pytest.raises(UserError, match=r"Could NOT find Boost \(missing: thread\).*libboost-thread-dev"):
        lmplz.provide_lmplz(tmp_path / "lmplz")


def test_pips_trouble_is_told(tools: Path, tmp_path: Path) -> None:
    program(Path(sys.executable), "echo 'ERROR: No matching distribution found for kenlm'; echo note; exit 1")
    with pytest.raises(UserError, match="No matching distribution found.*index or proxy"):
        lmplz.provide_lmplz(tmp_path / "lmplz")
    assert not (tmp_path / "lmplz").exists()


def test_a_build_that_does_not_run_is_refused(tools: Path, tmp_path: Path) -> None:
    built = program(tmp_path / "built", BROKEN)
    program(tools / "cmake", f'if [ "$1" = --build ]; then mkdir -p "$2/bin"; cp -p {built} "$2/bin/lmplz"; fi')
    with pytest.raises(UserError, match="does not run.*cannot open shared object file"):
        lmplz.provide_lmplz(tmp_path / "lmplz")
    assert not (tmp_path / "lmplz").exists()


def test_an_archive_stays_in_its_folder(tmp_path: Path) -> None:
    def archive(name: str, member: str) -> Path:
        with tarfile.open(tmp_path / name, "w:gz") as stream:
            entry = tarfile.TarInfo(member)
            entry.size = 4
            stream.addfile(entry, io.BytesIO(b"text"))
        return tmp_path / name

    (inside := tmp_path / "inside").mkdir()
    lmplz._unpack(archive("good.tar.gz", "kenlm-1/CMakeLists.txt"), inside)
    assert (inside / "kenlm-1" / "CMakeLists.txt").read_text() == "text"
    with pytest.raises(UserError, match="would leave its folder"):
        lmplz._unpack(archive("bad.tar.gz", "kenlm-1/../../escaped"), inside)
    assert not (tmp_path / "escaped").exists()
