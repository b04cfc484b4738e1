"""Two corpora of news as NLTK distributes them, read straight from their zips: `nltk-reuters` and `abc`.

`nltk-reuters` is the ApteMod selection of Reuters-21578, 10,788 stories in one file each; they are taken in order of
their numbers, which is nearly that of their dates, and without the headline in their first line. `abc` is news of the
Australian Broadcasting Commission (2006): `rural.txt`, then `science.txt`, one paragraph a line, headlines included
and without marks between stories; each file is one text.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nplm2003.corpora import Corpus, Documents, Mark, Passage, Piece
from nplm2003.corpora.fetch import DATASETS, require_pinned
from nplm2003.corpora.news import read_stories, sentences, tokenize
from nplm2003.corpora.sgml import decode, plain
from nplm2003.errors import UserError
from nplm2003.files import sha256

_STORY = re.compile(r"(?:.*/)?((?:training|test)/(\d+))")


@contextmanager
def _archive(path: Path, title: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"{path} cannot be read as NLTK's {title} ({error}): fetch it again") from error


def read_nltk_reuters(path: Path, documents: Documents) -> Iterator[Piece]:
    """Yield the pieces of every story of NLTK's Reuters at `path`, in order of their numbers."""
    documents.clear()
    with _archive(path, "reuters") as archive:
        found = [(int(match[2]), match[1], name) for name in archive.namelist() if (match := _STORY.fullmatch(name))]
        if not found:
            raise UserError(f"{path} holds no story of NLTK's reuters (training/1 ...): fetch it again")

        def bodies() -> Iterator[tuple[str, str]]:
            for _, where, name in sorted(found):
                (content,) = decode([archive.read(name)], where, documents)
                _, _, body = content.partition("\n")
                yield plain(body, where, documents), where

        yield from read_stories(bodies(), documents, path)


def read_abc(path: Path) -> Iterator[Piece]:
    """Yield the pieces of NLTK's abc at `path`."""
    with _archive(path, "abc") as archive:
        for name in ("rural.txt", "science.txt"):
            with archive.open(f"abc/{name}") as stream:
                for number, line in enumerate(stream, start=1):
                    where = f"{name}, line {number}"
                    passages = [tokenize(sentence) for sentence in sentences(line.decode("latin-1"))]
                    yield from (Passage(words, where) for words in passages if words)
                    if any(passages):
                        yield Mark.PARAGRAPH
            yield Mark.TEXT


def _open(name: str, path: Path, part: Callable[[], Iterator[Piece]], documents: Documents | None) -> Corpus:
    require_pinned(path, DATASETS[name])
    return Corpus(name, DATASETS[name].licence, sha256(path), (part,), documents)


def open_nltk_reuters(path: Path) -> Corpus:
    """NLTK's Reuters at `path`: one stream. Any other file than the pinned one is refused."""
    documents = Documents()
    return _open("nltk-reuters", path, partial(read_nltk_reuters, path, documents), documents)


def open_abc(path: Path) -> Corpus:
    """NLTK's abc at `path`: one stream. Any other file than the pinned one is refused."""
    return _open("abc", path, partial(read_abc, path), None)
