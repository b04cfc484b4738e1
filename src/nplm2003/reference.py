"""The small result files of a study, copied to where they are committed: no corpus text, no arrays, no models."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

LIMIT = 1_000_000  # bytes; a larger file is no small result and stays out of the repository


def copy_results(
    files: Iterable[Path | str], results: Path | str, reference: Path | str, first: Collection[str] = ()
) -> list[str]:
    """Copy `files`, all inside the folder `results`, to the same places in `reference`, whole or not at all.

    `first` names those that people look for first: they stand at the top as well. What was in `reference` before is
    gone afterwards, so that it never mixes two runs. Returns the names of the files that are too large (`LIMIT`) and
    were left out.
    """
    results, reference = Path(results), Path(reference)
    reference.parent.mkdir(parents=True, exist_ok=True)
    left_out = []
    with tempfile.TemporaryDirectory(dir=reference.parent, prefix=f".{reference.name}.") as folder:
        new, old = Path(folder) / "new", Path(folder) / "old"
        new.mkdir()
        for file in sorted(set(map(Path, files))):
            name = file.relative_to(results)
            if file.stat().st_size >= LIMIT:
                left_out.append(str(name))
                continue
            places = [name, Path(name.name)] if name.as_posix() in first else [name]
            for place in places:
                (new / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, new / place)
        if reference.exists():
            os.rename(reference, old)
        os.rename(new, reference)
    return left_out
