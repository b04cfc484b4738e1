"""A tolerant scanner for files of SGML-like news documents: Reuters-21578, English Gigaword, TIPSTER.

It is no XML parser: such files have several documents and no root, entities without declarations, tags that are never
closed, and bytes of unknown encoding. It reads line by line and keeps one document at a time.
"""

from __future__ import annotations

import html.entities
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nplm2003.corpora import Documents

LIMIT = 1 << 26  # bytes; a document that is longer was never closed

_ENTITY = re.compile(r"&(#?\w+);")
_CHARACTER = re.compile(r"#(?:\d{1,7}|[xX][0-9a-fA-F]{1,6})")  # no character has a number of more digits
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_PARAGRAPH_TAG = re.compile(r"</?P(?:\s[^<>]*)?>", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # all but tab and line feed


class Document(NamedTuple):
    """One document: what its opening tag holds, its content as text, and where it stands."""

    attributes: str
    content: str
    where: str


def scan(lines: Iterable[bytes], element: str, name: str, documents: Documents) -> Iterator[Document]:
    """Yield the documents in `lines`, the content of every `<element ...> ... </element>` in either case.

    `name` is what messages call the file. A document that is not closed (before the next one opens, within `LIMIT`
    bytes, or at all) is skipped with a count in `documents`; so is text outside of documents, declarations excepted.
    """
    tag = re.compile(rb"<(/?)%b(\s[^<>]*)?>" % element.encode(), re.IGNORECASE)
    half = re.compile(rb"<%b(\s[^<>]*)?\Z" % element.encode(), re.IGNORECASE)
    content: list[bytes] | None = None  # of the document that is open
    attributes, opened, size = b"", 0, 0
    for number, line in _joined(lines, half):
        position = 0
        for match in tag.finditer(line) if b"<" in line else ():
            before, position = line[position : match.start()], match.end()
            closes = bool(match[1])
            if content is not None:
                where = f"{name}, line {opened}"
                if closes:
                    opening, text = decode((attributes, b"".join([*content, before])), where, documents)
                    yield Document(opening, text, where)
                else:
                    documents.skip("not closed before the next one", where)
            elif closes or before.strip():
                documents.note("text outside of documents", f"{name}, line {number}")
            content, attributes, opened, size = None if closes else [], match[2] or b"", number, 0
        rest = line[position:]
        if content is not None:
            content.append(rest)
            size += len(rest)
            if size > LIMIT:
                documents.skip(f"not closed within {LIMIT:,} bytes", f"{name}, line {opened}")
                content = None
        elif rest.strip() and not rest.startswith((b"<!", b"<?")):
            documents.note("text outside of documents", f"{name}, line {number}")
    if content is not None:
        documents.skip("not closed", f"{name}, line {opened}")


def _joined(lines: Iterable[bytes], half: re.Pattern[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers; one that ends within an opening tag, where `half` matches, with the next ones."""
    numbered = enumerate(lines, start=1)
    for number, line in numbered:
        while line.rfind(b"<") > line.rfind(b">") and half.search(line):
            _, more = next(numbered, (0, b""))
            if not more:
                break
            line += more
        yield number, line


def decode(pieces: Iterable[bytes], where: str, documents: Documents) -> list[str]:
    """The pieces of one document as text: UTF-8, or Latin-1 with a count, which every byte is valid in."""
    pieces = list(pieces)
    try:
        return [piece.decode("utf-8") for piece in pieces]
    except UnicodeDecodeError:
        documents.note("not UTF-8, taken for Latin-1", where)
        return [piece.decode("latin-1") for piece in pieces]


def field(document: Document, element: str) -> str | None:
    """The text of the first `<element>` of the document, None where it has none that is closed."""
    match = re.search(rf"<{element}(?:\s[^<>]*)?>(.*?)</{element}\s*>", document.content, re.DOTALL | re.IGNORECASE)
    return match and match[1]


def attribute(attributes: str, name: str) -> str | None:
    """The value of an attribute, quoted or not, in the opening tag of an element; None where it has none."""
    match = re.search(rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", attributes, re.IGNORECASE)
    return match and next(value for value in match.groups() if value is not None)


def plain(markup: str, where: str, documents: Documents) -> str:
    """Marked-up text as plain text: a blank line for each `<P>`, other tags and control characters gone, entities as
    the characters they stand for. An unknown entity becomes a space, with a count."""

    def character(match: re.Match[str]) -> str:
        name = match[1]
        if _CHARACTER.fullmatch(name):
            code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
            return chr(code) if code < 0xD800 or 0xE000 <= code < 0x110000 else " "
        known = html.entities.html5.get(f"{name};") or html.entities.html5.get(f"{name.lower()};")
        if known is None:
            documents.note(f"unknown entity &{name[:20]};", where)
        return known or " "

    text = _TAG.sub(" ", _PARAGRAPH_TAG.sub("\n\n", markup))
    return _CONTROL.sub(" ", _ENTITY.sub(character, text))
