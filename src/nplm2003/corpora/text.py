"""A user's own text: one file that is still to be split, or one each for train, valid and test.

Plain UTF-8 or gzip (`.gz`); read line by line, so a line is all that has to fit in memory. Blank lines separate
paragraphs; every file is one text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from nplm2003.corpora import Corpus, Passage, Piece, Tokenizer, read_text
from nplm2003.errors import UserError
from nplm2003.files import sha256

LINE = 1 << 26  # bytes
RATIO = 200  # bytes that come out of one packed by gzip; of a text that repeats one word, some 500
_GZIP = b"\x1f\x8b"  # how files start that gzip packed
_COMPRESS = b"\x1f\x9d"  # and those of the old `compress`


def _treebank() -> Tokenizer:
    """NLTK's Penn Treebank tokeniser (rules only, no downloaded data). It takes a line as one sentence: a full stop is
    split off at the end of the line alone."""
    from nltk.tokenize import TreebankWordTokenizer

    tokenize: Tokenizer = TreebankWordTokenizer().tokenize
    return tokenize


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {"whitespace": lambda: str.split, "treebank": _treebank}


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of the file at `path`, unpacked where it is packed by gzip.

    A line above `LINE` bytes is refused, and a packed file out of which more comes than any text gives (`RATIO`): so a
    file that was made to fill the memory cannot.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(2)
            stream.seek(0)
            if not start and path.suffix == ".gz":
                raise UserError(f"{path} is empty, and no gzip file: copy it again")
            if start == _COMPRESS:
                raise UserError(f"{path} is packed by compress (.Z), which is not read: unpack it (uncompress)")
            packed = path.suffix == ".gz" or start == _GZIP
            reader = gzip.GzipFile(fileobj=stream) if packed else stream
            most = max(LINE, RATIO * path.stat().st_size) if packed else None
            while line := reader.readline(LINE + 1):
                if len(line) > LINE or (most is not None and reader.tell() > most):
                    raise UserError(
                        f"{path} has a line of more than {LINE:,} bytes, or unpacks to more than {RATIO} times its "
                        "size: no text does; name another file"
                    )
                yield line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is not a whole gzip file ({error}): compress or copy it again") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}): check the path in the config") from error


def _lines(path: Path) -> Iterator[str]:
    """The lines of the text at `path`, decoded one by one so that an error can say where it stands."""
    for number, raw in enumerate(raw_lines(path), start=1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}, line {number}, byte {error.start + 1} of the line: not UTF-8; "
                "convert the file (iconv -t UTF-8)"
            ) from error
        if "\0" in line:
            raise UserError(
                f"{path}, line {number}, character {line.index(chr(0)) + 1} of the line: a NUL byte, so this is no "
                "plain text; take it out (tr -d '\\000') or name another file"
            )
        # Some editors open a file with a byte-order mark, which would stick to the first word.
        yield line.removeprefix("\ufeff") if number == 1 else line


def read_file(path: Path, tokenizer: str) -> Iterator[Piece]:
    """Yield the pieces of the text at `path`; `tokenizer` names one of `TOKENIZERS`. No words at all: refused."""
    words = 0
    for piece in read_text(_lines(path), str(path), TOKENIZERS[tokenizer]()):
        if isinstance(piece, Passage):
            words += len(piece.words)
        yield piece
    if not words:
        raise UserError(f"{path} holds no words: name a text file with content")


def open_text(paths: Sequence[Path], tokenizer: str) -> Corpus:
    """The user's text: one path (a stream to split) or three (train, valid, test). The checksum is that of the files
    as they lie on disk, one after the other (`cat FILES | sha256sum`)."""
    try:
        checksum = sha256(*paths)
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read ({error.strerror}): check the path in the config") from error
    return Corpus(
        source="text",
        licence="not stated (user's own text)",
        checksum=checksum,
        parts=tuple(partial(read_file, path, tokenizer) for path in paths),
    )
