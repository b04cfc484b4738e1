"""The Brown corpus as NLTK distributes it, read straight from the zip: nothing is extracted to disk.

500 texts of `word/tag` tokens, one sentence a line, paragraphs apart by blank lines. The texts are taken in the order
of their names (ca01 ... cr09), which is the order of the paper's stream as far as section 4 tells.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from nplm2003.corpora import Corpus, Piece, read_text
from nplm2003.corpora.fetch import DATASETS, require_pinned
from nplm2003.errors import UserError
from nplm2003.files import sha256

_MEMBER = re.compile(r"(?:.*/)?(c[a-r]\d\d)")


def _words(line: str) -> list[str]:
    # A word may hold slashes itself ("1/2/cd"); the tag never does.
    return [token.rsplit("/", 1)[0] for token in line.split()]


def read_brown(path: Path) -> Iterator[Piece]:
    """Yield the pieces of every text of the zip at `path`, in order of the texts' names."""
    try:
        with zipfile.ZipFile(path) as archive:
            texts = {match[1]: name for name in archive.namelist() if (match := _MEMBER.fullmatch(name))}
            if not texts:
                raise UserError(f"{path} holds no text of the Brown corpus (ca01 ... cr09): fetch it again")
            for text, name in sorted(texts.items()):
                with archive.open(name) as member:
                    yield from read_text(io.TextIOWrapper(member, encoding="ascii"), f"Brown text {text}", _words)
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as NLTK's Brown corpus ({error}): fetch it again") from error


def open_brown(path: Path) -> Corpus:
    """The Brown corpus at `path`: one stream. Any other file than the pinned one is refused."""
    dataset = DATASETS["brown"]
    require_pinned(path, dataset)
    return Corpus("brown", dataset.licence, sha256(path), (partial(read_brown, path),))
