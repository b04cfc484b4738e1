"""What the readers of news share: paragraphs, sentences and tokens of a story, stories in order of dates, and months.

Tokens are those of NLTK's Penn Treebank rules (no downloaded data), which need one sentence at a time, with one
change: `$` stays with the number after it and `%` with the number before it, so that `$3.88` and `10%` are one token,
as numeric forms are one for the paper. Sentences end where `.`, `?` or `!`, and what closes a quotation
after it, stand before white space and a capital letter, digit or opening quotation, except after initials, words with
an inner full stop (`U.S.`, `p.m.`) and the abbreviations below.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from nplm2003.corpora import Documents, Mark, Passage, Piece, Tokenizer
from nplm2003.corpora.sgml import Document
from nplm2003.errors import UserError

Months = tuple[str | None, str | None]  # the first and the last one, YYYY-MM; None: no limit
WINDOW = 2000  # stories that are held back so that they come out in order
Item = TypeVar("Item")

_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Prof|Rev|Hon|St|Jr|Sr|Sen|Rep|Gov|Gen|Lt|Col|Maj|Capt|Sgt|Adm|Pres|Supt|Inc|Corp|Co|Cos|Ltd|Bros|"
    "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun|No|Nos|vs|Ave|Blvd|Mt|Ft|"
    "Ala|Ariz|Ark|Calif|Colo|Conn|Del|Fla|Ga|Ill|Ind|Kan|Ky|La|Mass|Md|Mich|Minn|Miss|Mont|Neb|Nev|Okla|Ore|Pa|"
    "Tenn|Tex|Va|Vt|Wash|Wis|Wyo"
)
_UNENDING = re.compile(rf"(?:^|[\s(\"'`])(?:(?:{_ABBREVIATIONS})|[A-Za-z]|\S*\w\.\w+)\.$")
_END = re.compile(r"[.?!]['\")\]]*\s+(?=[\"'`(\[]*[A-Z0-9])")
# White space that the Treebank rules put between a sign and its number.
_SIGN = re.compile(r"(?<=\$) (?=\.?\d)|(?<=\d) (?=%)")
_INDENTED = re.compile(r"\t| {3}")
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")


def check_months(months: Months) -> None:
    """Refuse a range of months that is no range, or not written as it should be."""
    for month in months:
        if month is not None and not _MONTH.fullmatch(month):
            raise UserError(
                f"the month {month!r} is not written as YYYY-MM (1995-01): correct first_month or last_month"
            )
    first, last = months
    if first and last and first > last:
        raise UserError(f"first_month {first} is after last_month {last}: exchange them")


def in_months(date: str, months: Months) -> bool:
    """Whether a date that starts with YYYY-MM lies in a range of months."""
    first, last = months
    return (not first or date[:7] >= first) and (not last or date[:7] <= last)


@cache
def _treebank() -> Tokenizer:
    from nltk.tokenize import TreebankWordTokenizer

    tokenize: Tokenizer = TreebankWordTokenizer().tokenize
    return tokenize


def tokenize(sentence: str) -> list[str]:
    """The tokens of one sentence."""
    tokens = _treebank()(sentence)
    if "$" in sentence or "%" in sentence:
        return _SIGN.sub("", " ".join(tokens)).split()
    return tokens


def sentences(paragraph: str) -> Iterator[str]:
    """Cut a paragraph into sentences."""
    start = 0
    for match in _END.finditer(paragraph):
        if paragraph[match.start()] == "." and _UNENDING.search(paragraph, start, match.start() + 1):
            continue
        yield paragraph[start : match.end()].rstrip()
        start = match.end()
    if rest := paragraph[start:].strip():
        yield rest


def paragraphs(text: str) -> Iterator[str]:
    """Cut a story into paragraphs, each in one line: they begin after a blank line or with an indented one."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and (not line.strip() or _INDENTED.match(line)):
            yield " ".join(lines)
            lines = []
        if line.strip():
            lines.append(line.strip())
    if lines:
        yield " ".join(lines)


def read_story(text: str, where: str) -> Iterator[Piece]:
    """Yield the pieces of one story: a passage per sentence, a mark after each paragraph and one at the end.

    A story without words yields nothing.
    """
    empty = True
    for paragraph in paragraphs(text):
        in_paragraph = False
        for sentence in sentences(paragraph):
            if words := tokenize(sentence):
                yield Passage(words, where)
                in_paragraph = True
        if in_paragraph:
            yield Mark.PARAGRAPH
            empty = False
    if not empty:
        yield Mark.TEXT


def read_stories(stories: Iterable[tuple[str, str]], documents: Documents, path: Path) -> Iterator[Piece]:
    """Yield the pieces of stories, each its text and where it stands; one without words is skipped with a count.

    `path` is what a corpus without any story is refused by.
    """
    for text, where in stories:
        pieces = iter(read_story(text, where))
        first = next(pieces, None)
        if first is None:
            documents.skip("no words", where)
            continue
        documents.kept += 1
        yield first
        yield from pieces
    if not documents.kept:
        reasons = "; ".join(documents.lines()[1:])
        cure = "check the months" if documents.skipped["outside the months"] else "check the files"
        raise UserError(f"{path}: none of {documents.read:,} documents is a story to read ({reasons}): {cure}")


def in_order(
    items: Iterable[Item], key: Callable[[Item], str], late: Callable[[Item], None], window: int = WINDOW
) -> Iterator[Item]:
    """Put nearly ordered items in order of `key`, holding at most `window` of them; equal keys keep their order.

    `late` is told of every item that comes more than `window` places too late to be put right; it is yielded where it
    then stands.
    """
    heap: list[tuple[str, int, Item]] = []
    last = ""

    def leave(entry: tuple[str, int, Item]) -> Item:
        nonlocal last
        if entry[0] < last:
            late(entry[2])
        last = max(last, entry[0])
        return entry[2]

    for number, item in enumerate(items):
        entry = (key(item), number, item)
        if len(heap) < window:
            heapq.heappush(heap, entry)
        else:
            yield leave(heapq.heappushpop(heap, entry))
    while heap:
        yield leave(heapq.heappop(heap))


def by_date(dated: Iterable[tuple[str, Document]], documents: Documents) -> Iterator[Document]:
    """Put documents, each behind its date in a form that sorts, in order of dates; one that comes far too late is noted
    and left where it stands."""

    def late(item: tuple[str, Document]) -> None:
        documents.note("far out of date order, left where it stands", item[1].where)

    return (document for _, document in in_order(dated, key=lambda item: item[0], late=late))
