"""The write-up: typst typesets `paper/main.typ`, which reads every number from the folder of the results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nplm2003.errors import UserError
from nplm2003.figures import figures_of
from nplm2003.files import read_object, whole
from nplm2003.outcomes import STUDY
from nplm2003.study import table_file

# What the text reads, beside study.json, inside results/CORPUS.
TABLES = ("rows", "claims", "policies", "targets", "departures", "neighbours", "timings")


def needed(study: Mapping[str, Any]) -> list[str]:
    """What the text reads of a study, inside the folder of the results."""
    tables = [*TABLES, "sweeps"] if study["sweeps"] else TABLES
    return [
        "study.json",
        *(f"tables/{table_file(study, name)}.csv" for name in tables),
        *(f"figures/{name}.svg" for name in figures_of(study)),
    ]


def write_paper(results: Path | str, source: Path | str, output: Path | str) -> None:
    """Typeset `source` with the numbers in `results` (the folder of a corpus) as the PDF `output`.

    The same results give the same bytes: no date, and only the fonts that typst carries.
    """
    import typst

    results, source = Path(results).resolve(), Path(source).resolve()
    _require(source, results / "study.json")
    _require(*(results / name for name in needed(read_object(results / "study.json", STUDY))))
    # Typst reads nothing outside its root, and takes paths from there.
    root = Path(os.path.commonpath([source.parent, results]))
    try:
        content = typst.compile(
            str(source),
            root=str(root),
            format="pdf",
            ignore_system_fonts=True,
            timestamp=0,
            sys_inputs={"results": f"/{results.relative_to(root).as_posix()}"},
        )
    except typst.TypstError as error:
        raise UserError(f"{source} cannot be typeset: {' '.join(str(error).split())}") from error
    assert isinstance(content, bytes)  # one document, not one file per page
    with whole(output) as temporary:
        temporary.write_bytes(content)


def _require(*paths: Path) -> None:
    for path in paths:
        if not path.is_file():
            raise UserError(f"the write-up needs {path}, which does not exist: make it first")
