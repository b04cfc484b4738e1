"""What the drills share: the table of faults, commands and their refusals, and what must be the same after a fault."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import platform
import re
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nplm2003.cli import main
from nplm2003.files import write_text
from nplm2003.provenance import provenance


@dataclass(frozen=True)
class Fault:
    """A row of the table: `lost` says what was lost, and how that was seen."""

    fault: str
    made: str
    seen: str
    lost: str
    drill: str


FAULTS: list[Fault] = []
Record = Callable[[str, str, str, str], None]


def write_table(stem: Path) -> None:
    """Write the faults as STEM.md and STEM.csv."""
    columns = [field.name for field in fields(Fault)]
    headers = ("fault", "how it was made", "what was seen", "what was lost", "drill")
    made = provenance({})
    packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items())
    commit = f"{made['commit']}{' with uncommitted changes' if made['modified'] else ''}"
    cell = {"|": "\\|", "<": "&lt;", ">": "&gt;", "`": "'"}
    lines = [
        "# Faults, and what became of them",
        "",
        f"Written by `make drills`, which runs every drill: {len(FAULTS)} faults, nothing lost. Commit {commit}; "
        f"{datetime.now(UTC):%Y-%m-%d}; Python {made['python']}, {packages}; {platform.system()} on "
        f"{made['machine']['architecture']}, {made['machine']['cpus']} CPUs. The drills are in `tests/drills`.",
        "",
        f"| # | {' | '.join(headers)} |",
        f"|{'---|' * (len(headers) + 1)}",
    ]
    for number, fault in enumerate(FAULTS, start=1):
        cells = [re.sub(r"[|<>`]", lambda match: cell[match[0]], text) for text in astuple(fault)]
        lines.append(f"| {number} | {' | '.join(cells)} |")
    write_text(stem.with_suffix(".md"), "\n".join(lines) + "\n")
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([columns, *map(astuple, FAULTS)])
    write_text(stem.with_suffix(".csv"), stream.getvalue())


# --- commands --------------------------------------------------------------------------------------------------------


def run(*arguments: str | Path) -> str:
    """Run one command of the package, which must succeed; what it said."""
    status, said = _call(arguments)
    assert status == 0, said
    return said


def refused(*arguments: str | Path) -> str:
    """Run one command of the package, which must refuse in one line; that line."""
    status, said = _call(arguments)
    assert status == 1, said
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.startswith("nplm2003: error: ")]
    assert len(lines) == 1 and said.rstrip("\n").endswith(lines[0]), said
    return lines[0]


def _call(arguments: tuple[str | Path, ...]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = main([str(argument) for argument in arguments])
    return status, said.getvalue()


# --- what must be the same -------------------------------------------------------------------------------------------

# What says how long something took, or holds such numbers: it differs between any two runs.
TIMES = (
    *("timings.csv", "training-time.png", "training-time.svg"),
    *(f"{table}.{suffix}" for table in ("sweeps", "extended", "ways") for suffix in ("md", "tex", "html")),
)
TIMED = ("report.html", "paper.pdf", *TIMES)


def contents(folder: Path) -> dict[str, str]:
    """Every result below `folder` with a digest of what it holds: all of its bytes, but seconds (the key of JSON files,
    the columns of CSV files), the commit in JSON files, logs, benchmarks, and files that are about times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and path.name not in TIMED and not {"logs", "benchmarks"} & set(name.parts):
            found[name.as_posix()] = hashlib.sha256(_without_times(path)).hexdigest()
    return found


def _without_times(path: Path) -> bytes:
    if path.suffix == ".json":
        return json.dumps(_same(json.loads(path.read_bytes()))).encode()
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [
                {key: cell for key, cell in row.items() if not key.startswith("seconds")}
                for row in csv.DictReader(stream)
            ]
        return json.dumps(rows).encode()
    return path.read_bytes()


def _same(content: Any) -> Any:
    """JSON values without what may differ: seconds, and the commit, of a repository that somebody works in."""
    if isinstance(content, dict):
        return {key: _same(value) for key, value in content.items() if key not in ("seconds", "commit", "modified")}
    return [_same(value) for value in content] if isinstance(content, list) else content
