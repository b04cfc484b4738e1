"""One table, four formats: CSV with every digit for programs; Markdown, LaTeX and HTML, rounded, for readers.

pandas lays them out; this module rounds, escapes, and puts the caption above a table and the notes below.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from nplm2003.files import write_text

Record = Mapping[str, Any]

STYLE = """\
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; margin: 2em auto; max-width: 90em; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1em; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; font-weight: 600; padding-bottom: 0.5em; }
thead { border-top: 2px solid #1a1a1a; border-bottom: 1px solid #1a1a1a; }
tbody { border-bottom: 2px solid #1a1a1a; }
th, td { padding: 0.22em 0.7em; text-align: left; vertical-align: top; }
th { vertical-align: bottom; }
td:first-child { white-space: nowrap; }
tbody tr:nth-child(even) { background: #f4f5f7; }
.notes { color: #444; font-size: 13px; max-width: 60em; }
.scroll { overflow-x: auto; }
"""
RIGHT = "text-align: right"  # columns of numbers

# pandas' own escape leaves < and > alone, and LaTeX has no character for the minus sign outside mathematics.
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{INFINITY}": r"$\infty$",
    **{character: "\\" + character for character in "&%$#_{}"},
}
# A word of the corpus may be any of these, which Markdown would take for markup.
MARKDOWN_SPECIAL = {character: "\\" + character for character in "\\`*_<|"}


@dataclass(frozen=True)
class Column:
    """How one field of the records is shown: its `head`, and for numbers the `digits` after the point.

    `digits` None shows the value as text, to the left. `signed` puts a sign before positive numbers too.
    """

    key: str
    head: str
    digits: int | None = None
    signed: bool = False

    def text(self, record: Record) -> str:
        """The cell of `record`; empty where it has no value."""
        value = record.get(self.key)
        if value is None or value == "":
            return ""
        if self.digits is None:
            return str(value)
        rounded = round(value, self.digits) + 0.0  # never -0.0
        number = f"{rounded:{'+' if self.signed else ''},.{self.digits}f}"
        return number.replace("-", "\N{MINUS SIGN}").replace("inf", "\N{INFINITY}")


@dataclass(frozen=True)
class Table:
    """A table for readers: `caption`, `columns`, one record per line, and the `notes` that stand under it."""

    caption: str
    columns: Sequence[Column]
    records: Sequence[Record]
    notes: Sequence[str] = field(default_factory=tuple)

    def frame(self, escape: Callable[[str], str]) -> pd.DataFrame:
        """The text of every cell under the head of its column, both escaped."""
        lines = [[escape(column.text(record)) for column in self.columns] for record in self.records]
        return pd.DataFrame(lines, columns=[escape(column.head) for column in self.columns])

    def places(self, left: str, right: str) -> list[str]:
        """`right` for every column of numbers, `left` for the others."""
        return [left if column.digits is None else right for column in self.columns]


def to_csv(fields: Sequence[str], records: Sequence[Record]) -> str:
    """The `fields` of the records as CSV; None is an empty cell, floats keep six decimals at most, infinity is inf."""
    rounded = [
        {key: round(value, 6) if isinstance(value, float) else value for key, value in record.items()}
        for record in records
    ]
    # As objects, since pandas would make floats of whole numbers that stand in one column with an empty cell.
    return pd.DataFrame(rounded, columns=list(fields), dtype=object).to_csv(index=False, lineterminator="\n")


def to_markdown(tables: Sequence[Table]) -> str:
    """The tables in Markdown, numbers aligned to the right."""
    escapes = str.maketrans(MARKDOWN_SPECIAL)
    blocks = []
    for table in tables:
        frame, places = table.frame(lambda text: text.translate(escapes)), table.places("left", "right")
        body = frame.to_markdown(index=False, colalign=places, disable_numparse=True)
        blocks += [f"**{table.caption}**", body, *table.notes]
    return "\n\n".join(blocks) + "\n"


def to_latex(tables: Sequence[Table]) -> str:
    """The tables as LaTeX `tabular`s with the rules of booktabs; notes as a paragraph under each."""
    escapes = str.maketrans(LATEX_SPECIAL)
    blocks = [r"% needs \usepackage{booktabs}"]
    for table in tables:
        frame, places = table.frame(lambda text: text.translate(escapes)), table.places("l", "r")
        body = frame.to_latex(index=False, column_format="".join(places))
        blocks += [f"% {table.caption}\n{body.rstrip()}"]
        blocks += [rf"\par\footnotesize {note.translate(escapes)}" for note in table.notes]
    return "\n\n".join(blocks) + "\n"


def to_html(tables: Sequence[Table]) -> str:
    """The tables as one self-contained HTML page."""
    body = []
    for number, table in enumerate(tables):
        # pandas gives the cells of column k, its head included, the class colK.
        right = [{"selector": f".col{k}", "props": RIGHT} for k, c in enumerate(table.columns) if c.digits is not None]
        styler = Styler(table.frame(html.escape), uuid=str(number), caption=html.escape(table.caption), cell_ids=False)
        body += [
            f'<div class="scroll">{styler.hide(axis="index").set_table_styles(right).to_html()}</div>',
            *(f'<p class="notes">{html.escape(note)}</p>' for note in table.notes),
        ]
    title = html.escape(tables[0].caption)
    head = f'<head><meta charset="utf-8"><title>{title}</title>\n<style>\n{STYLE}</style></head>'
    return "\n".join(['<!DOCTYPE html>\n<html lang="en">', head, "<body>", *body, "</body></html>"]) + "\n"


def write_table(stem: Path | str, fields: Sequence[str], records: Sequence[Record], tables: Sequence[Table]) -> None:
    """Write the `fields` of `records` to STEM.csv, and the readable `tables` to STEM.md, STEM.tex and STEM.html."""
    write_text(f"{stem}.csv", to_csv(fields, records))
    for suffix, render in (("md", to_markdown), ("tex", to_latex), ("html", to_html)):
        write_text(f"{stem}.{suffix}", render(tables))
