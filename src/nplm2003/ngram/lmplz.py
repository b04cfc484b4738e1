"""KenLM's estimator `lmplz`: take the one that is installed, or build it once from KenLM's source archive.

The Python package `kenlm` brings only what queries a model. Its source archive, which pip fetches by pip's own
settings (index, mirror, proxy), holds the estimator as well: CMake builds that one program in about a minute.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from nplm2003.errors import UserError

REQUIREMENT = "kenlm==0.3.0"
SHA256 = "c4628bb9fb63c8a6f9240035b8b037385cfc404cb72e933cf48878291edac1e8"  # of its source archive

INSTALL = (
    "on Debian or Ubuntu: `sudo apt-get install -y g++ make cmake libboost-program-options-dev libboost-thread-dev "
    "zlib1g-dev`; on macOS: `xcode-select --install; brew install cmake boost`; with conda: `conda install -c "
    "conda-forge kenlm` (brings lmplz itself)"
)
# A text on which every lmplz gives a model, whatever discounts it estimates.
TRIAL_OPTIONS = ("-o", "2", "-S", "64M", "--discount_fallback")
TRIAL_TEXT = "a b a c a b b c a\n"


def provide_lmplz(output: Path) -> str:
    """Put a working lmplz at `output`: a link to an installed one, else the executable built from source.

    Returns one line that says which. Refused when neither is possible, with what to install; nothing is left at
    `output` then.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that one rename puts it there; `files.whole` makes plain files, not executables or links.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".lmplz.") as staging:
        staged = Path(staging) / "lmplz"
        if (installed := find_installed(output)) is not None:
            # A link and not a copy: a conda executable finds its libraries by where it lies.
            staged.symlink_to(installed)
            how = "linked to the installed lmplz"
        else:
            build(staged)
            if (failure := _trial(staged)) is not None:
                raise UserError(
                    f"the lmplz built from {REQUIREMENT} does not run ({failure}): report this with its log"
                )
            how = f"built from the source archive of {REQUIREMENT}"
        os.replace(staged, output)
    return how


def find_installed(output: Path) -> Path | None:
    """An installed lmplz that runs: on PATH, or beside the Python of an environment that is not activated."""
    environment = str(Path(sys.executable).parent)
    for name in (shutil.which("lmplz"), shutil.which("lmplz", path=environment)):
        # What an earlier run put at the output is not an installation.
        if name and Path(name).absolute() != output.absolute():
            if (failure := _trial(Path(name))) is None:
                return Path(name).resolve()
            print(f"lmplz: the installed one does not run ({failure}); building another", file=sys.stderr)
    return None


def _trial(lmplz: Path) -> str | None:
    """Estimate a toy model; what went wrong, or None."""
    try:
        done = subprocess.run(
            [str(lmplz.absolute()), *TRIAL_OPTIONS],
            input=TRIAL_TEXT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode or not done.stdout.startswith("\\data\\"):
        return last_line(done.stderr) or f"exit status {done.returncode}"
    return None


def build(output: Path) -> None:
    """Build lmplz from the source archive of `REQUIREMENT` in a temporary folder and move it to `output`.

    The tools' own output goes to stderr, the log of the run.
    """
    if not (shutil.which("cmake") and shutil.which("make") and _compiler()):
        missing = [name for name in ("cmake", "make") if not shutil.which(name)] + ["a C++ compiler"] * (
            not _compiler()
        )
        raise UserError(f"building lmplz needs {' and '.join(missing)}; {INSTALL}")
    with tempfile.TemporaryDirectory(prefix="lmplz-") as name:
        folder = Path(name)
        print(f"lmplz: fetching the source of {REQUIREMENT}", file=sys.stderr, flush=True)
        pinned = folder / "requirements.txt"
        pinned.write_text(f"{REQUIREMENT} --hash=sha256:{SHA256}\n", encoding="utf-8")
        # `:all:` in place of the package's name would also compile the tools pip needs to look at it, CMake among them.
        fetch = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "kenlm", "--dest", name]
        if (failure := _run([*fetch, "--requirement", str(pinned)], folder)) is not None:
            raise UserError(
                f"pip could not fetch the pinned source archive of {REQUIREMENT} ({failure}): check pip's index or "
                f"proxy settings, or put an lmplz on PATH; with conda: `conda install -c conda-forge kenlm`"
            )
        _unpack(next(folder.glob("kenlm-*.tar.gz")), folder)
        source = next(path for path in folder.glob("kenlm-*") if path.is_dir())
        _drop_unused_boost(source / "CMakeLists.txt")

        print("lmplz: compiling (about a minute)", file=sys.stderr, flush=True)
        configure = ["cmake", "-S", str(source), "-B", str(folder / "build"), "-DCMAKE_BUILD_TYPE=Release"]
        if (failure := _run(configure, folder)) is not None:
            raise UserError(f"CMake could not configure lmplz ({failure}), most often for want of Boost; {INSTALL}")
        compile_ = ["cmake", "--build", str(folder / "build"), "--target", "lmplz", "--parallel", str(os.cpu_count())]
        if (failure := _run(compile_, folder)) is not None:
            raise UserError(f"compiling lmplz failed ({failure}): the log has the compiler's messages; {INSTALL}")
        shutil.move(folder / "build" / "bin" / "lmplz", output)


def _unpack(path: Path, folder: Path) -> None:
    """Unpack the files and folders of an archive into `folder`; one that would leave it is refused.

    The filters of `tarfile` came with Python 3.11.4, and Debian 12 has 3.11.2.
    """
    with tarfile.open(path) as archive:
        members = [member for member in archive if member.isfile() or member.isdir()]
        for member in members:
            if not (folder / member.name).resolve().is_relative_to(folder.resolve()):
                raise UserError(f"{path.name} holds {member.name!r}, which would leave its folder: not unpacked")
        archive.extractall(folder, members=members)


def _compiler() -> str | None:
    """The C++ compiler that CMake would take."""
    names = (os.environ.get("CXX", "").split(" ")[0], "c++", "g++", "clang++")
    return next((found for name in names if name and (found := shutil.which(name))), None)


def _drop_unused_boost(listing: Path) -> None:
    """Take two libraries that lmplz does not link off KenLM's list of required ones.

    Boost.System is headers only since 1.69 and gone as a library in 1.89; the unit tests are not built.
    """
    text = listing.read_text(encoding="utf-8")
    listing.write_text(text.replace("\n  system\n", "\n").replace("\n  unit_test_framework\n", "\n"), encoding="utf-8")


def _run(command: list[str], folder: Path) -> str | None:
    """Run a build tool in `folder`, its output into the log; its complaint when it fails, else None."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    # A log, or the last resort of who must find out what failed; a person at a terminal needs neither.
    if done.returncode or not sys.stderr.isatty():
        print(done.stdout, file=sys.stderr, flush=True)
    return _complaint(done.stdout) if done.returncode else None


def _complaint(log: str) -> str:
    """The first error in the log of pip, CMake or a compiler."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith("CMake Error") and number + 1 < len(lines):
            return lines[number + 1]  # it names the place first, then the trouble
        if re.search(r"\berror:", line, re.IGNORECASE):
            return line
    return last_line(log)


def last_line(text: str) -> str:
    """The last line of `text` that is not empty, or ''."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
