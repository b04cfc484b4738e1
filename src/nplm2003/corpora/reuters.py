"""Reuters-21578 (Lewis 1997), read straight from its public archive: 22 SGML files, nothing is extracted to disk.

Newswire of 1987. Stories are put in order of their `<DATE>`. Of each only the `<BODY>` is read, without the `Reuter`
or `More` in its last line that closes a transmission; documents without a body (headlines alone, and those the
collection calls unprocessed) are skipped with a count.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from nplm2003.corpora import Corpus, Documents, Piece
from nplm2003.corpora.fetch import DATASETS, require_pinned
from nplm2003.corpora.news import Months, by_date, check_months, in_months, read_stories
from nplm2003.corpora.sgml import Document, attribute, field, plain, scan
from nplm2003.errors import UserError

_MEMBER = re.compile(r"(?:.*/)?(reut2-\d{3}\.sgm)")
_DATE = re.compile(r"\b(\d{1,2})-([A-Z]{3})-(\d{4})\s+(\d\d:\d\d:\d\d(?:\.\d+)?)")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_CLOSING = re.compile(r"(?:^|\n)[ \t]*(?:reuters?|more)(?:\.\.\.)?(?:\^M)?\s*$", re.IGNORECASE)
_DAMAGE = (OSError, tarfile.TarError, EOFError, zlib.error)
_WITHOUT_BODY = {"BRIEF": "headline only", "UNPROC": "unprocessed"}


def _refusal(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} cannot be read as the archive of Reuters-21578 ({error}): fetch it again")


def _files(path: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The names and lines of the SGML files of the archive, in its order, which is that of their names."""

    def lines(stream: Iterable[bytes]) -> Iterator[bytes]:
        try:
            yield from stream
        except _DAMAGE as error:
            raise _refusal(path, error) from error

    found = False
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                match = _MEMBER.fullmatch(member.name)
                if match and (stream := archive.extractfile(member)):
                    found = True
                    yield match[1], lines(stream)
    except _DAMAGE as error:
        raise _refusal(path, error) from error
    if not found:
        raise UserError(f"{path} holds no file of Reuters-21578 (reut2-000.sgm ...): fetch it again")


def read_reuters(path: Path, months: Months, documents: Documents) -> Iterator[Piece]:
    """Yield the pieces of every story of these months in the archive at `path`, in order of their dates."""
    documents.clear()
    stories = by_date(_dated(path, months, documents), documents)
    yield from read_stories(_bodies(stories, documents), documents, path)


def _dated(path: Path, months: Months, documents: Documents) -> Iterator[tuple[str, Document]]:
    """Every document of the months with its date, in a form that sorts; one without a readable date has that of the one
    before."""
    date = ""
    for name, lines in _files(path):
        for document in scan(lines, "REUTERS", name, documents):
            match = _DATE.search(field(document, "DATE") or "")
            if match and match[2] in _MONTHS:
                date = f"{match[3]}-{_MONTHS.index(match[2]) + 1:02}-{int(match[1]):02} {match[4]}"
            else:
                documents.note("no readable date, left beside the document before it", document.where)
            if in_months(date, months):
                yield date, document
            else:
                documents.skip("outside the months", document.where)


def _bodies(stories: Iterator[Document], documents: Documents) -> Iterator[tuple[str, str]]:
    for document in stories:
        body = field(document, "BODY")
        if body is None:
            text = re.search(r"<TEXT([^<>]*)>", document.content, re.IGNORECASE)
            kind = attribute(text[1], "TYPE") if text else None
            documents.skip(_WITHOUT_BODY.get(kind or "", "no body"), document.where)
        else:
            yield _CLOSING.sub("", plain(body, document.where, documents).rstrip()), document.where


def open_reuters(path: Path, months: Months = (None, None)) -> Corpus:
    """The stories of these months in Reuters-21578 at `path`: one stream. Other files than the pinned ones are refused.

    The checksum is that of the 22 SGML files, one after the other, so that it does not depend on how they are packed.
    """
    check_months(months)
    dataset = DATASETS["reuters"]
    require_pinned(path, dataset)
    digest = hashlib.sha256()
    for _, lines in _files(path):
        for line in lines:
            digest.update(line)
    documents = Documents()
    part = partial(read_reuters, path, months, documents)
    return Corpus("reuters", dataset.licence, digest.hexdigest(), (part,), documents)
