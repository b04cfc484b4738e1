"""Corpora: one reader per source, each giving a stream of words.

A reader yields *pieces*: a `Passage` for every line or sentence that holds words, and a `Mark` where a paragraph or a
text ends. Nothing here holds a corpus in memory; a reader keeps one line or one news story at a time, and a bounded
number of stories where they must be put in order. What becomes of case, clitics, numbers, names and marks is a matter
of the vocabulary policy (`nplm2003.vocabulary`), not of the reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

# Every source a configuration can name, and the modules of this package that read it, the reader itself first.
SOURCES = {
    "brown": ("brown",),
    "embedded": ("embedded",),
    "text": ("text",),
    "reuters": ("reuters", "news", "sgml"),
    "nltk-reuters": ("nltk_news", "news", "sgml"),
    "abc": ("nltk_news", "news", "sgml"),
    "ap": ("ap", "news", "sgml", "text"),
}


class Mark(Enum):
    """A boundary in the stream; the value is the symbol that stands for it when the policy keeps marks."""

    PARAGRAPH = "<paragraph>"
    TEXT = "<text>"


class Passage(NamedTuple):
    """The words of one line or sentence, and where it stands, for messages."""

    words: list[str]
    where: str


Piece = Passage | Mark
Tokenizer = Callable[[str], list[str]]


@dataclass
class Documents:
    """What became of the documents of a corpus, filled while it is read: none is lost without a count.

    Every document is either kept or skipped for a reason. `notes` counts what was mended or odd in what was kept.
    `first` remembers where each reason and each note came up first.
    """

    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def clear(self) -> None:
        """Start over: the corpus is read anew."""
        self.kept = 0
        for tally in (self.skipped, self.notes, self.first):
            tally.clear()

    def skip(self, reason: str, where: str) -> None:
        """Count a document that is left out."""
        self.skipped[reason] += 1
        self.first.setdefault(reason, where)

    def note(self, remark: str, where: str, times: int = 1) -> None:
        """Count something odd that leaves nothing out, or text that belongs to no document."""
        self.notes[remark] += times
        self.first.setdefault(remark, where)

    @property
    def read(self) -> int:
        """Documents found: kept and skipped ones."""
        return self.kept + self.skipped.total()

    def report(self) -> dict[str, Any]:
        """The counts, for `corpus.json`."""
        return {
            "read": self.read,
            "kept": self.kept,
            "skipped": dict(self.skipped.most_common()),
            "notes": dict(self.notes.most_common()),
        }

    def lines(self) -> list[str]:
        """The same for a log: one line for the documents, one for each reason and note with its first place."""
        lines = [f"{self.read:,} documents read, {self.kept:,} kept, {self.skipped.total():,} skipped"]
        for kind, tally in (("skipped", self.skipped), ("note", self.notes)):
            lines += [f"{kind}: {text}: {n:,}, first at {self.first[text]}" for text, n in tally.most_common()]
        return lines


@dataclass(frozen=True)
class Corpus:
    """One corpus, ready to be read.

    `parts` holds functions that open the stream: one for a stream that is still to be split, or three for train, valid
    and test. `checksum` is the SHA-256 of the bytes that are read. `documents` is filled by reading, for a source that
    consists of documents of which some may be left out.
    """

    source: str
    licence: str
    checksum: str
    parts: tuple[Callable[[], Iterator[Piece]], ...]
    documents: Documents | None = None


def read_text(lines: Iterable[str], where: str, tokenize: Tokenizer) -> Iterator[Piece]:
    """Read one text: a passage per line that holds words, a paragraph mark after each block of lines (blocks stand
    apart by blank lines, as in NLTK's reader), and a text mark at the end."""
    in_paragraph = False
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            if in_paragraph:
                yield Mark.PARAGRAPH
            in_paragraph = False
        elif words := tokenize(line):
            yield Passage(words, f"{where}, line {number}")
            in_paragraph = True
    if in_paragraph:
        yield Mark.PARAGRAPH
    yield Mark.TEXT
