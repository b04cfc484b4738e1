"""Licensed Associated Press newswire, from a folder of files as the Linguistic Data Consortium distributes them.

Two layouts, plain or packed by gzip, with several documents per file and tags in either case:

- English Gigaword: `apw_eng_199501.gz`, one file a month, `<DOC id="APW_ENG_19950101.0001" type="story">` with
  `<HEADLINE>`, `<DATELINE>` and `<TEXT>`, its paragraphs in `<P>`; documents of other types than `story` are skipped;
- the older SGML (TIPSTER, North American News): `ap880212`, `apws9501.gz`, ..., `<DOC>` with `<DOCNO> AP880212-0001
  </DOCNO>` and `<TEXT>`, with `<P>` or indented paragraphs; these have no type, and all documents are read.

Only `<TEXT>` is read, and each number once: a file that lies there twice gives no story twice. Stories are put in order
of the dates in their numbers; a story without one has the date of its file's name. Nothing of the text leaves the
machine, and results hold counts and probabilities only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from nplm2003.corpora import Corpus, Documents, Piece
from nplm2003.corpora.news import Months, by_date, check_months, in_months, read_stories
from nplm2003.corpora.sgml import Document, attribute, field, plain, scan
from nplm2003.corpora.text import raw_lines
from nplm2003.errors import UserError
from nplm2003.files import sha256

_FILE = re.compile(r"(?:ap[a-z]*(?:_[a-z]+)*_?(\d{8}|\d{6}|\d{4})|(\d{8})_apw_[a-z]+)(?:\.\w+)*", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)(\d{8}|\d{6})[.-]0*(\d*)")
_TEXT = re.compile(r"<TEXT(?:\s[^<>]*)?>(.*?)(</TEXT\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def _date(digits: str) -> str | None:
    """YYYY-MM or YYYY-MM-DD from YYYYMMDD, YYYYMM, YYMMDD or YYMM, the year of two digits in 1950 to 2049; None where
    it is none of them."""
    if len(digits) == 4 or (len(digits) == 6 and not re.fullmatch(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])", digits)):
        digits = ("19" if digits >= "50" else "20") + digits
    parts = re.fullmatch(r"(\d{4})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])?", digits)
    return "-".join(part for part in parts.groups() if part) if parts else None


def find_files(folder: Path, months: Months) -> tuple[list[tuple[str, Path]], list[Path]]:
    """The AP files of these months at any depth of `folder`, links included, each with the date of its name, in order
    of their dates; and the files whose names are none of AP files. No AP file at all: refused."""
    check_months(months)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is no folder: name the one that holds the AP files (apw_eng_199501.gz, ap880212, ...)"
        )
    found, others = [], []
    for path in _walk(folder):
        if (match := _FILE.fullmatch(path.name)) and (date := _date(match[1] or match[2])):
            found.append((date, path))
        else:
            others.append(path)
    if not found:
        raise UserError(f"{folder} holds no AP file (apw_eng_199501.gz, ap880212, ...): name the folder that does")
    inside = sorted(each for each in found if in_months(each[0], months))
    if not inside:
        first, last = (month or "any month" for month in months)
        raise UserError(
            f"{folder} holds no AP file from {first} to {last}: its files go from {min(found)[0]} to {max(found)[0]}; "
            "correct first_month or last_month"
        )
    return inside, others


def _walk(folder: Path) -> Iterator[Path]:
    """Every file at any depth of `folder` but hidden ones, in order of names; linked folders are entered, each once."""
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(parent)) in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        yield from (Path(parent) / name for name in sorted(names) if not name.startswith("."))


def _stories(files: Sequence[tuple[str, Path]], months: Months, documents: Documents) -> Iterator[tuple[str, Document]]:
    """Every story of the months with its date and number, in a form that sorts."""
    seen = set()
    for file_date, path in files:
        for document in scan(raw_lines(path), "DOC", path.name, documents):
            name = attribute(document.attributes, "id") or field(document, "DOCNO") or ""
            number = _NUMBER.search(name)
            date = number and _date(number[1])
            if number is None or date is None:
                documents.note("no date in the number, that of the file taken", document.where)
                key = file_date
            else:
                key = f"{date} {number[2]:0>6}"
            kind = attribute(document.attributes, "type")
            if not in_months(key, months):
                documents.skip("outside the months", document.where)
            elif kind is not None and kind.lower() != "story":
                documents.skip(f"type {kind.lower()}", document.where)
            elif name and name in seen:
                documents.skip("number seen before", document.where)
            else:
                seen.add(name)
                yield key, document


def _texts(stories: Iterator[Document], documents: Documents) -> Iterator[tuple[str, str]]:
    for document in stories:
        texts = _TEXT.findall(document.content)
        if not texts:
            documents.skip("no TEXT", document.where)
            continue
        if not all(closing for _, closing in texts):
            documents.note("TEXT not closed, read to the end of the document", document.where)
        yield plain("\n\n".join(text for text, _ in texts), document.where, documents), document.where


def read_ap(
    folder: Path, files: Sequence[tuple[str, Path]], others: Sequence[Path], months: Months, documents: Documents
) -> Iterator[Piece]:
    """Yield the pieces of every story of the months in `files`, in order of dates; for `others` see `find_files`."""
    documents.clear()
    for path in others:
        documents.note("file not read, its name is none of an AP file", path.name)
    stories = by_date(_stories(files, months, documents), documents)
    yield from read_stories(_texts(stories, documents), documents, folder)


def open_ap(folder: Path, months: Months) -> Corpus:
    """The AP newswire of these months in `folder`: one stream. The checksum is that of the files as they
    lie on disk, one after the other in order of their dates."""
    files, others = find_files(folder, months)
    try:
        checksum = sha256(*(path for _, path in files))
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read ({error.strerror}): check its permissions") from error
    documents = Documents()
    licence = "Associated Press, under the user agreement of the Linguistic Data Consortium: not to be passed on"
    return Corpus("ap", licence, checksum, (partial(read_ap, folder, files, others, months, documents),), documents)
