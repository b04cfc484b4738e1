"""Run the Python of docs/tutorial.md from top to bottom, and compare what it prints with what the page shows.

    python docs/run_tutorial.py            compare; one line for each difference, and then exit status 1
    python docs/run_tutorial.py --write    write what was printed into the page, and the figures and the notebook anew

All blocks share one namespace and one empty working folder. What a block prints stands in the text block after it.
Whole numbers and words must be the same everywhere. A number with a decimal point may differ by TOLERANCE or by one in
its last place, since machines round differently. The embedded corpus is another in other versions of Python: there,
blocks that come after it is read only have to run (their assertions hold what the page claims).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")  # no display is needed
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))  # also runs in a clone that is not installed

from nplm2003.corpora.embedded import open_embedded  # noqa: E402
from nplm2003.files import write_text  # noqa: E402

PAGE = Path(__file__).with_name("tutorial.md")
IMAGES = PAGE.with_name("images")
NOTEBOOK = PAGE.with_suffix(".ipynb")
TOLERANCE = 0.02  # of a number with a decimal point
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CORPUS = re.compile(r"<!-- corpus ([0-9a-f]{64}) -->")


def run(page: str) -> Iterator[tuple[re.Match[str], str]]:
    """Run the blocks of `page` in the working folder; yield each with what it printed."""
    namespace = {"__name__": "tutorial"}
    for block in BLOCK.finditer(page):
        above = "\n" * page.count("\n", 0, block.start("code"))  # a traceback names the line of the page
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(above + block["code"], PAGE.name, "exec"), namespace)
        yield block, printed.getvalue()


def differs(shown: str, printed: str) -> bool:
    """Whether `printed` is something else than `shown`, by more than rounding."""
    if [text.split() for text in NUMBER.split(shown)] != [text.split() for text in NUMBER.split(printed)]:
        return True
    for old, new in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        places = len(old.partition(".")[2])
        a, b = (float(number.replace(",", "")) for number in (old, new))
        if abs(a - b) > (max(TOLERANCE * a, 1.001 * 10**-places) if places else 0):
            return True
    return False


def compare(page: str, runs: Iterator[tuple[re.Match[str], str]]) -> list[str]:
    """One line for each block of `page` that did not print what stands there."""
    found = []
    known = CORPUS.search(page)
    same_corpus = known is not None and known[1] == open_embedded().checksum
    of_corpus = False
    for block, printed in runs:
        of_corpus = of_corpus or "open_embedded" in block["code"]
        if (same_corpus or not of_corpus) and differs(block["shown"] or "", printed):
            line = page.count("\n", 0, block.start()) + 1
            found.append(f"{PAGE.name}, block at line {line} prints something else:\n{printed}")
    return found


def rewrite(page: str, runs: Iterator[tuple[re.Match[str], str]]) -> str:
    """`page` with what its blocks printed, and the checksum of the corpus that they read."""
    parts, end = [], 0
    for block, printed in runs:
        parts += [page[end : block.start()], f"```python\n{block['code']}```\n"]
        parts += [f"\n```text\n{printed}```\n"] if printed else []
        end = block.end()
    return CORPUS.sub(f"<!-- corpus {open_embedded().checksum} -->", "".join(parts) + page[end:])


def notebook(page: str) -> str:
    """`page` as a Jupyter notebook (format 4.4)."""
    cells, end = [], 0

    def add(kind: str, source: str, **more: Any) -> None:
        if source.strip():
            lines = source.strip("\n").splitlines(keepends=True)
            cells.append({"cell_type": kind, "metadata": {}, "source": lines, **more})

    for block in BLOCK.finditer(page):
        add("markdown", page[end : block.start()])
        printed = (block["shown"] or "").splitlines(keepends=True)
        outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
        add("code", block["code"], execution_count=None, outputs=outputs)
        end = block.end()
    add("markdown", page[end:])
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"nbformat": 4, "nbformat_minor": 4, "metadata": kernel, "cells": cells}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description="Run docs/tutorial.md and compare what it prints with what it shows.")
    parser.add_argument("--write", action="store_true", help="write what is printed into the page instead")
    write = parser.parse_args().write
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        if not write:
            sys.exit("\n".join(compare(page, run(page))) or 0)
        page = rewrite(page, run(page))
        for figure in Path(folder).rglob("*.png"):
            shutil.copyfile(figure, IMAGES / figure.name)
    write_text(PAGE, page)
    write_text(NOTEBOOK, notebook(page))


if __name__ == "__main__":
    main()
