"""scripts/bootstrap on machines that lack things. The machine is a folder of stand-ins, the only thing on PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nplm2003.ngram.lmplz import INSTALL

ROOT = Path(__file__).resolve().parents[2]
# What the script itself needs of any system.
BASICS = ("bash", "cat", "chmod", "cksum", "dirname", "head", "mkdir", "mktemp", "rm", "tail")
BOOST = "libboost-program-options-dev libboost-thread-dev"
ZLIB = "zlib1g-dev"
EVERYTHING = f"g++ make cmake {BOOST} {ZLIB}"


class Machine:
    """A clone of the repository's set-up files in `clone`, and a folder `programs` that is all of its PATH."""

    def __init__(self, folder: Path, user: int = 1000, debian: bool = True) -> None:
        self.clone = folder / "a clone"  # with a space, as people have them
        self.programs = folder / "programs"
        (self.clone / "scripts").mkdir(parents=True)
        self.programs.mkdir()
        shutil.copy(ROOT / "scripts" / "bootstrap", self.clone / "scripts")
        shutil.copy(ROOT / "pyproject.toml", self.clone)
        for program in BASICS:
            found = shutil.which(program)
            assert found, program
            (self.programs / program).symlink_to(found)
        self.add("id", f"echo {user}")
        self.add("uname", "echo Linux")
        self.add_python()
        if debian:
            self.add("dpkg-query", "exit 0")
            # Records what it is asked for, and brings what was asked for: every program that may be missing.
            self.add(
                "apt-get",
                f'echo "$*" >>"{folder}/apt.log"\n'
                'case "$*" in *install*) for name in g++ make cmake; do\n'
                f'cat "{self.programs}/dpkg-query" >"{self.programs}/$name"; chmod +x "{self.programs}/$name"\n'
                "done;; esac",
            )
        self.apt_log = folder / "apt.log"

    def add(self, program: str, script: str) -> None:
        path = self.programs / program
        path.write_text(f"#!{self.programs}/bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def add_python(self) -> None:
        """The Python that runs these tests, whose headers may well be missing: say that they are there."""
        self.add("python3", f'case "$2" in *ensurepip*) exit 0;; *) exec "{sys.executable}" "$@";; esac')

    def add_compilers(self, libraries: str) -> None:
        """A compiler that links with nothing but `libraries` (of zlib, boost), make and cmake."""
        failures = {"zlib": "-lz", "boost": "-lboost_thread"}
        refused = "|".join(f'*"{flag}"*' for name, flag in failures.items() if name not in libraries)
        self.add("g++", f'case "$*" in {refused or "-"}) exit 1;; esac')
        self.add("make", "exit 0")
        self.add("cmake", "exit 0")

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / "bash", "scripts/bootstrap", *arguments],
            cwd=self.clone,
            env={"PATH": str(self.programs), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def test_nothing_missing_is_silent(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.add_compilers("zlib boost")
    done = machine.run("system")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_ordinary_user_gets_the_exact_line(tmp_path: Path) -> None:
    done = Machine(tmp_path).run("system")
    assert done.returncode == 1
    assert "lacks: a C++ compiler, make, cmake, Boost, zlib" in done.stderr
    assert f"  sudo apt-get install -y {EVERYTHING}\n" in done.stderr
    # The rule that builds lmplz says the same, to who calls it without this script.
    assert f"sudo apt-get install -y {EVERYTHING}`" in INSTALL
    assert "brew install" in done.stderr
    assert "conda env create --file environment.yml" in done.stderr
    assert not (tmp_path / "apt.log").exists()


@pytest.mark.parametrize(("there", "packages"), [("zlib", BOOST), ("boost", ZLIB)])
def test_only_what_is_missing_is_named(tmp_path: Path, there: str, packages: str) -> None:
    machine = Machine(tmp_path)
    machine.add_compilers(there)
    done = machine.run("system")
    assert done.returncode == 1
    assert f"apt-get install -y {packages}\n" in done.stderr


def test_root_on_debian_installs_what_is_missing_and_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=0)
    done = machine.run("system")
    assert done.returncode == 0, done.stderr
    assert f"installing Debian packages that are missing: {EVERYTHING}" in done.stderr
    calls = machine.apt_log.read_text(encoding="utf-8").splitlines()
    assert calls == ["update -q", f"install -y -q --no-install-recommends {EVERYTHING}"]


def test_root_is_told_when_apt_fails(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=0)
    machine.add("apt-get", "echo 'E: no network' >&2; exit 100")
    done = machine.run("system")
    assert done.returncode == 1
    assert "E: no network" in done.stderr
    assert "apt-get could not install g++" in done.stderr


# An environment whose python does nothing and succeeds, as one that is complete does.
READY = (
    'case "$*" in "-m venv"*) mkdir -p .venv/bin; cat "$(command -v make)" >.venv/bin/python; '
    "chmod +x .venv/bin/python;; esac"
)


@pytest.mark.parametrize(("user", "debian"), [(1000, True), (0, False)])
def test_without_a_browser_the_tests_go_on_and_say_so(tmp_path: Path, user: int, debian: bool) -> None:
    machine = Machine(tmp_path, user=user, debian=debian)
    machine.add_compilers("zlib boost")
    machine.add("python3", READY)
    done = machine.run("tests")
    assert done.returncode == 0, done.stderr
    assert "there is no Chromium here: the tests of the explorer page (tests/browser) will skip" in done.stderr
    assert "sudo apt-get install -y chromium" in done.stderr
    assert not machine.apt_log.exists()
    machine.add("google-chrome", "exit 0")
    assert machine.run("tests").stderr == ""


def test_root_on_debian_gets_a_browser_for_the_tests_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=0)
    machine.add_compilers("zlib boost")
    machine.add("python3", READY)
    assert machine.run().returncode == 0
    assert not machine.apt_log.exists()
    done = machine.run("tests")
    assert done.returncode == 0 and "installing Debian packages that are missing: chromium" in done.stderr
    assert machine.apt_log.read_text(encoding="utf-8").endswith("install -y -q --no-install-recommends chromium\n")
    # Where it cannot be had (Ubuntu's is a snap), all else goes on.
    machine.add("apt-get", "echo 'E: no chromium' >&2; exit 100")
    done = machine.run("tests")
    assert done.returncode == 0 and "E: no chromium" in done.stderr and "will skip" in done.stderr


def test_root_elsewhere_installs_nothing(tmp_path: Path) -> None:
    done = Machine(tmp_path, user=0, debian=False).run("system")
    assert done.returncode == 1
    assert "  apt:    sudo apt-get install -y g++" in done.stderr


def test_an_lmplz_on_path_needs_no_boost(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.add_compilers("")
    assert machine.run("system").returncode == 1
    machine.add("lmplz", "exit 0")
    assert machine.run("system").returncode == 0


def test_a_python_that_is_too_old_is_refused_by_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.add_compilers("zlib boost")
    machine.add("python3.9", "exit 1")
    done = machine.run("system", PYTHON="python3.9")
    assert done.returncode == 1
    assert "PYTHON=python3.9 is not a Python 3.11 or 3.12" in done.stderr
    machine.add("python3", "exit 1")
    done = machine.run("system")
    assert done.returncode == 1
    assert "lacks: Python 3.11 or 3.12" in done.stderr


def test_a_virtual_environment_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.add_compilers("zlib boost")
    (machine.clone / ".venv").mkdir()
    (machine.clone / ".venv" / "precious").touch()
    done = machine.run()
    assert done.returncode == 1
    assert "was not made by this script" in done.stderr
    assert (machine.clone / ".venv" / "precious").exists()


def test_a_half_made_environment_is_made_anew_and_a_whole_one_is_kept(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.add_compilers("zlib boost")
    # Makes an environment whose python, and so its pip, does nothing and succeeds.
    machine.add(
        "python3",
        'case "$*" in "-m venv"*) mkdir -p .venv/bin; cat "$(command -v make)" >.venv/bin/python; '
        "chmod +x .venv/bin/python; echo made >>calls;; esac",
    )
    environment = machine.clone / ".venv"
    environment.mkdir()
    (environment / "bootstrap-stamp").write_text("making\n", encoding="utf-8")
    (environment / "left-over").touch()

    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert "half-made" in done.stderr
    assert not (environment / "left-over").exists()

    done = machine.run()
    assert (done.returncode, done.stderr) == (0, "")

    # Other dependencies are installed into the same environment; another folder needs a new one.
    with (machine.clone / "pyproject.toml").open("a", encoding="utf-8") as stream:
        stream.write("# a change\n")
    assert "installing the pinned Python packages" in machine.run().stderr
    moved = tmp_path / "moved"
    machine.clone = machine.clone.rename(moved)
    assert "from another folder" in machine.run().stderr
    assert (moved / "calls").read_text(encoding="utf-8") == "made\n" * 2
