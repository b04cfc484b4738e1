"""One table, four formats: CSV with every digit for programs; Markdown, LaTeX and HTML, rounded, for readers.

The three readable formats need neither pandas nor a template engine: they are a few lines each.
"""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nplm2003.files import write_text

Record = Mapping[str, Any]

STYLE = """\
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; margin: 2em auto; max-width: 76em; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1em; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; font-weight: 600; padding-bottom: 0.5em; }
thead { border-top: 2px solid #1a1a1a; border-bottom: 1px solid #1a1a1a; }
tbody { border-bottom: 2px solid #1a1a1a; }
th, td { padding: 0.22em 0.7em; text-align: left; vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; }
tbody tr:nth-child(even) { background: #f4f5f7; }
.notes { color: #444; font-size: 13px; max-width: 60em; }
.scroll { overflow-x: auto; }
"""

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{MINUS SIGN}": "$-$",
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
        return number.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Table:
    """A table for readers: `caption`, `columns`, one record per line, and the `notes` that stand under it."""

    caption: str
    columns: Sequence[Column]
    records: Sequence[Record]
    notes: Sequence[str] = field(default_factory=tuple)

    def cells(self) -> list[list[str]]:
        """The text of every cell, line by line."""
        return [[column.text(record) for column in self.columns] for record in self.records]


def to_csv(fields: Sequence[str], records: Sequence[Record]) -> str:
    """The `fields` of the records as CSV; None is an empty cell, floats keep six decimals at most."""

    def plain(value: Any) -> Any:
        return round(value, 6) if isinstance(value, float) else value

    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: plain(value) for key, value in record.items()} for record in records)
    return text.getvalue()


def to_markdown(tables: Sequence[Table]) -> str:
    """The tables in Markdown, numbers aligned to the right."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.translate(escapes) for cell in cells) + " |"

    escapes = str.maketrans(MARKDOWN_SPECIAL)

    blocks = []
    for table in tables:
        rules = ["---" if column.digits is None else "---:" for column in table.columns]
        lines = [line([column.head for column in table.columns]), line(rules), *map(line, table.cells())]
        blocks += [f"**{table.caption}**", "\n".join(lines), *table.notes]
    return "\n\n".join(blocks) + "\n"


def to_latex(tables: Sequence[Table]) -> str:
    """The tables as LaTeX `tabular`s that need no package; notes as a paragraph under each."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(escapes) for cell in cells) + r" \\"

    escapes = str.maketrans(LATEX_SPECIAL)

    blocks = []
    for table in tables:
        places = "".join("l" if column.digits is None else "r" for column in table.columns)
        blocks.append(
            "\n".join(
                [
                    f"% {table.caption}",
                    rf"\begin{{tabular}}{{{places}}}",
                    r"\hline",
                    line([column.head for column in table.columns]),
                    r"\hline",
                    *map(line, table.cells()),
                    r"\hline",
                    r"\end{tabular}",
                ]
            )
        )
        blocks += [rf"\par\footnotesize {note.translate(escapes)}" for note in table.notes]
    return "\n\n".join(blocks) + "\n"


def to_html(tables: Sequence[Table]) -> str:
    """The tables as one self-contained HTML page."""

    def line(cells: Sequence[str], columns: Sequence[Column], tag: str) -> str:
        opening = [f"<{tag}>" if column.digits is None else f'<{tag} class="number">' for column in columns]
        marked = [f"{start}{html.escape(cell)}</{tag}>" for start, cell in zip(opening, cells, strict=True)]
        return "<tr>" + "".join(marked) + "</tr>"

    body = []
    for table in tables:
        body += [
            f'<div class="scroll"><table><caption>{html.escape(table.caption)}</caption>',
            "<thead>" + line([column.head for column in table.columns], table.columns, "th") + "</thead>",
            "<tbody>",
            *(line(cells, table.columns, "td") for cells in table.cells()),
            "</tbody></table></div>",
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
