"""Corpora: one reader per source, each giving a stream of words.

A reader yields *pieces*: a `Passage` for every line that holds words, and a `Mark` where a paragraph or a text ends.
Nothing here holds a corpus in memory; a reader keeps one line at a time. What becomes of case, clitics and marks is a
matter of the vocabulary policy (`nplm2003.vocabulary`), not of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Mark(Enum):
    """A boundary in the stream; the value is the symbol that stands for it when the policy keeps marks."""

    PARAGRAPH = "<paragraph>"
    TEXT = "<text>"


class Passage(NamedTuple):
    """The words of one line, and where it stands, for messages."""

    words: list[str]
    where: str


Piece = Passage | Mark
Tokenizer = Callable[[str], list[str]]


@dataclass(frozen=True)
class Corpus:
    """One corpus, ready to be read.

    `parts` holds functions that open the stream: one for a stream that is still to be split, or three for train, valid
    and test. `checksum` is the SHA-256 of the bytes that are read.
    """

    source: str
    licence: str
    checksum: str
    parts: tuple[Callable[[], Iterator[Piece]], ...]


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
