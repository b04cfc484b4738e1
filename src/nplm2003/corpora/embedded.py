"""The corpus that needs no download: the text of Python's own language reference, which every CPython carries.

About 90,000 tokens of English prose, grammar and code (`pydoc_data.topics`). It differs between versions of Python, so
its checksum is recorded with every result and no value is pinned on it. It is for demonstrations, not for conclusions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from nplm2003.corpora import Corpus, Piece, read_text
from nplm2003.errors import UserError

# A word with its inner apostrophes and hyphens, or a run of one punctuation character ("...", "==").
_TOKEN = re.compile(r"\w+(?:['\u2019-]\w+)*|([^\w\s])\1*")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def tokenize(line: str) -> list[str]:
    """The tokens of one line; lines without a letter or digit (underlines, table borders) have none."""
    return [match.group() for match in _TOKEN.finditer(line)] if _LETTER_OR_DIGIT.search(line) else []


def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise UserError(
            "this Python lacks pydoc_data.topics, the embedded corpus: use a full CPython, or source: text with a file"
        ) from error
    return topics


def _read() -> Iterator[Piece]:
    for name, text in sorted(_topics().items()):
        yield from read_text(text.split("\n"), f"Python topic {name}", tokenize)


def open_embedded() -> Corpus:
    """The embedded corpus: one stream, every topic a text, in order of the topics' names. The checksum is that of the
    topics joined in that order (UTF-8)."""
    joined = "".join(text for _, text in sorted(_topics().items()))
    checksum = hashlib.sha256(joined.encode()).hexdigest()
    return Corpus("embedded", "Python documentation, PSF License Version 2", checksum, (_read,))
