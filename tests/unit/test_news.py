"""The readers of news: sentences and tokens, the tolerant scanner, and each layout on a sample invented here."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm2003.cli import main
from nplm2003.corpora import Documents, Mark, Passage, Piece
from nplm2003.corpora.ap import find_files, open_ap
from nplm2003.corpora.fetch import DATASETS, fetch
from nplm2003.corpora.news import in_order, paragraphs, read_story, sentences, tokenize
from nplm2003.corpora.nltk_news import read_abc, read_nltk_reuters
from nplm2003.corpora.reuters import open_reuters, read_reuters
from nplm2003.corpora.sgml import LIMIT, Document, attribute, field, plain, scan
from nplm2003.errors import UserError
from nplm2003.vocabulary import Policy, Split, build_tokens

ANY = (None, None)


def texts(pieces: Iterable[Piece]) -> list[str]:
    """The words of every text, paragraphs apart by a bar."""
    found = [""]
    for piece in pieces:
        if isinstance(piece, Passage):
            found[-1] += " ".join(piece.words) + " "
        elif piece is Mark.PARAGRAPH:
            found[-1] += "| "
        else:
            found.append("")
    assert found.pop() == ""  # every text ends with its mark
    return [text.removesuffix("| ").strip() for text in found]


# --- sentences, tokens, paragraphs, order ---


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("It rose. It fell.", ["It rose.", "It fell."]),
        ("Mr. Smith of Acme Corp. in the U.S. Senate left.", ["Mr. Smith of Acme Corp. in the U.S. Senate left."]),
        ('"Why?" he asked. "No."', ['"Why?" he asked.', '"No."']),
        ('He said "Well." She left.', ['He said "Well."', "She left."]),
        ("J. P. Doe met No. 5 at 3 p.m. on Feb. 3.", ["J. P. Doe met No. 5 at 3 p.m. on Feb. 3."]),
        ("It cost 3.5 mln. 20 left.", ["It cost 3.5 mln.", "20 left."]),
        ("no end", ["no end"]),
        ("  ", []),
    ],
)
def test_sentences(paragraph: str, expected: list[str]) -> None:
    assert list(sentences(paragraph)) == expected


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("It's $3.88, up 10%.", "It 's $3.88 , up 10% ."),
        ("a $ sign, 5 % of U.S. cars", "a $ sign , 5% of U.S. cars"),
        ("Standard <SRD> won't pay US$5 or £2.", "Standard < SRD > wo n't pay US $5 or £2 ."),
        ('"No," he said.', "`` No , '' he said ."),
    ],
)
def test_tokens(sentence: str, tokens: str) -> None:
    assert tokenize(sentence) == tokens.split()


def test_paragraphs_begin_after_blank_lines_and_with_indented_ones() -> None:
    assert list(paragraphs("One\ntwo.\n    Three\nfour.\n\n  five\n\tsix\n \n")) == [
        *("One two.", "Three four.", "five", "six"),
    ]


def test_a_story_without_words_is_nothing() -> None:
    assert list(read_story("  \n\n ", "x")) == []
    assert texts(read_story("It rose. It fell.\n\n   End", "x")) == ["It rose . It fell . | End"]


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 60))
def test_nearly_ordered_items_come_out_in_order(numbers: list[int], window: int) -> None:
    items = [(f"{number:02}", place) for place, number in enumerate(numbers)]
    late: list[tuple[str, int]] = []
    found = list(in_order(items, lambda item: item[0], late.append, window))
    assert sorted(found) == sorted(items)  # nothing is lost
    displaced = max((abs(place - i) for i, (_, place) in enumerate(sorted(items))), default=0)
    if displaced <= window:
        assert found == sorted(items) and not late  # equal keys keep their order
    kept = [item for item in found if item not in late]
    assert [key for key, _ in kept] == sorted(key for key, _ in kept)


# --- the scanner ---


def scanned(text: str | bytes) -> tuple[list[str], Documents]:
    documents = Documents()
    lines = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    found = [" ".join(document.content.split()) for document in scan(lines, "DOC", "f", documents)]
    return found, documents


def test_documents_of_a_file() -> None:
    found, documents = scanned(
        '<!DOCTYPE x>\n<DOC id="1">\na\n</DOC>\n\n<doc>b</doc><Doc>\nc <DOCNO> 3 </DOCNO></DOC >x'
    )
    assert found == ["a", "b", "c <DOCNO> 3 </DOCNO>"]
    assert documents.notes == {"text outside of documents": 1}
    found, documents = scanned("<DOC>a</DOC><DOC>b</DOC>")
    assert found == ["a", "b"]
    assert documents.report() == {"read": 0, "kept": 0, "skipped": {}, "notes": {}}


@pytest.mark.parametrize(
    ("text", "found", "skipped", "notes"),
    [
        ("<DOC>a\n<DOC>b</DOC>\n", ["b"], {"not closed before the next one": 1}, {}),
        ("<DOC>a<DOC>b</DOC></DOC>", ["b"], {"not closed before the next one": 1}, {"text outside of documents": 1}),
        ("<DOC>a</DOC>\n<DOC>b\n", ["a"], {"not closed": 1}, {}),
        ("stray\n<DOC>a</DOC> more", ["a"], {}, {"text outside of documents": 2}),
        (
            "<DOC>" + ("x" * 999 + "\n") * (LIMIT // 1000 + 1) + "</DOC><DOC>a</DOC>",
            ["a"],
            {f"not closed within {LIMIT:,} bytes": 1},
            None,
        ),
        (b"<DOC>caf\xe9 \xc3\xa9</DOC>", ["caf\xe9 \xc3\xa9"], {}, {"not UTF-8, taken for Latin-1": 1}),
        ("<DOC>caf\xe9</DOC>", ["caf\xe9"], {}, {}),
        ("no document at all", [], {}, {"text outside of documents": 1}),
    ],
)
def test_malformed_pieces_are_counted(
    text: str | bytes, found: list[str], skipped: dict[str, int], notes: dict[str, int] | None
) -> None:
    result, documents = scanned(text)
    assert (result, dict(documents.skipped)) == (found, skipped)
    assert notes is None or documents.notes == notes
    assert all(place.startswith("f, line ") for place in documents.first.values())


@given(st.lists(st.sampled_from(["<DOC>", "</DOC>", "<DOC id='1'>", "w", "\n", "<DOCNO>", "<", "&#3;"]), max_size=40))
def test_no_document_is_lost(parts: list[str]) -> None:
    found, documents = scanned("".join(parts))
    opened = sum(part in ("<DOC>", "<DOC id='1'>") for part in parts)
    assert len(found) + documents.skipped.total() == opened


def test_markup_becomes_plain_text() -> None:
    documents = Documents()
    markup = "<P>\nAT&amp;T &lt;T>\x02 rose&#3;\n</P>\n<p>&AMP; &quot;Q&quot; &frac12; &#x41;&#66;<HL> x</HL> &UR; A&B"
    assert list(paragraphs(plain(markup, "here", documents))) == [
        *("AT&T <T>  rose", '& "Q" \xbd AB  x    A&B'),
    ]
    assert documents.notes == {"unknown entity &UR;": 1}
    assert documents.lines()[1] == "note: unknown entity &UR;: 1, first at here"


@given(st.text(st.sampled_from("&#x0123456789abcdefDP;<>/ \n"), max_size=60))
def test_no_markup_breaks_the_scanner(markup: str) -> None:
    plain(markup, "x", Documents())


def test_fields_and_attributes() -> None:
    document = Document(' ID="A.1" type=story', "<docno> 5 </DOCNO><TEXT a>b</TEXT>", "x")
    assert (field(document, "DOCNO"), field(document, "TEXT"), field(document, "P")) == (" 5 ", "b", None)
    assert [attribute(document.attributes, name) for name in ("id", "TYPE", "x")] == ["A.1", "story", None]


# --- Reuters-21578 ---

REUTERS = {
    "reut2-000.sgm": b"""<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" NEWID="1">
<DATE> 2-MAR-1987 10:00:00.50</DATE>
<TEXT>&#2;
<TITLE>SECOND STORY</TITLE>
<DATELINE>    ROME, March 2 - </DATELINE><BODY>Second story. Olive &lt;OIL> rose
10 pct.
    It fell.
 Reuter
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS NEWID="2">
<DATE>26-FEB-1987 15:01:01.79</DATE>
<TEXT><BODY>First caf\xe9 story.
 REUTER...^M
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS NEWID="3">
<DATE>no date</DATE>
<TEXT TYPE="BRIEF">
<TITLE>****** HEADLINE</TITLE>
</TEXT>
</REUTERS>
""",
    "reut2-001.sgm": b"""<REUTERS NEWID="4"><DATE>3-APR-1987 09:00:00</DATE><TEXT TYPE="UNPROC">raw</TEXT></REUTERS>
<REUTERS NEWID="5"><DATE>3-APR-1987 09:00:01</DATE><TEXT><BODY> &#3;</BODY></TEXT></REUTERS>
<REUTERS NEWID="6"><DATE>3-APR-1987  08:00:00</DATE><TEXT><BODY>Third story.
More
&#3;</BODY></TEXT></REUTERS>
<REUTERS NEWID="7"><DATE>3-APR-1987 10:00:00</DATE><TEXT>neither</TEXT></REUTERS>
<REUTERS NEWID="8"><DATE>4-APR-1987 10:00:00</DATE><TEXT><BODY>Never closed.
""",
}


def reuters_archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_reuters_by_hand(tmp_path: Path) -> None:
    path = reuters_archive(tmp_path / "r.tar.gz", {"README.txt": b"<REUTERS>no</REUTERS>", **REUTERS})
    documents = Documents()
    expected = ["First caf\xe9 story .", "Second story . Olive < OIL > rose 10 pct . | It fell .", "Third story ."]
    for _ in range(2):  # a second reading counts anew
        assert texts(read_reuters(path, ANY, documents)) == expected
        assert documents.report() == {
            "read": 8,
            "kept": 3,
            "skipped": {"not closed": 1, "headline only": 1, "unprocessed": 1, "no words": 1, "no body": 1},
            "notes": {
                "not UTF-8, taken for Latin-1": 1,
                "no readable date, left beside the document before it": 1,
            },
        }
    assert texts(read_reuters(path, ("1987-03", "1987-03"), documents)) == expected[1:2]
    assert documents.skipped["outside the months"] == 6 and documents.read == 8
    with pytest.raises(UserError, match="none of 8 documents is a story to read .*outside the months: 7"):
        list(read_reuters(path, ("1988-01", None), documents))


def test_other_archives_than_reuters_are_refused(tmp_path: Path) -> None:
    empty = reuters_archive(tmp_path / "empty.tar.gz", {"x.sgm": b""})
    with pytest.raises(UserError, match="holds no file of Reuters-21578"):
        list(read_reuters(empty, ANY, Documents()))
    cut = tmp_path / "cut.tar.gz"
    long = {"reut2-000.sgm": REUTERS["reut2-000.sgm"] + os.urandom(99_999).hex().encode()}
    cut.write_bytes(reuters_archive(tmp_path / "whole.tar.gz", long).read_bytes()[:50_000])
    with pytest.raises(UserError, match="cannot be read as the archive of Reuters-21578"):
        list(read_reuters(cut, ANY, Documents()))
    with pytest.raises(UserError, match="is not the pinned reuters corpus"):
        open_reuters(empty)


# --- AP ---

GIGAWORD = """<DOC id="APW_ENG_19950102.0001" type="story" >
<HEADLINE>
A headline
</HEADLINE>
<DATELINE>
ROME (AP)
</DATELINE>
<TEXT>
<P>
The second story cost $3.88 &amp; rose 10%. It
ended.
</P>
<P>
Fin.
</P>
</TEXT>
</DOC>
<DOC id="APW_ENG_19950101.0002" type="other">
<TEXT>
A table
</TEXT>
</DOC>
<DOC id="APW_ENG_19950101.0001" type="story">
<TEXT>
<P>
The first story.
</P>
</TEXT>
</DOC>
<DOC id="APW_ENG_19950103.0001" type="story">
<HEADLINE>
Nothing else
</HEADLINE>
</DOC>
<DOC id="APW_ENG_19950104.0001" type="story">
<TEXT>
</TEXT>
</DOC>
"""
TIPSTER = b"""<doc>
<docno> AP940102-0002 </docno>
<fileid>AP-NR-01-02-94 0002EDT</fileid>
<head>A Headline</head>
<text>
   An older story of ``words.''
   Its caf\xe9 &UR; ended.
</text>
<text>
   More of it.
</text>
</doc>
<DOC>
<DOCNO> unnumbered </DOCNO>
<TEXT>
Undated, and never
closed.
</DOC>
"""


@pytest.fixture
def ap(tmp_path: Path) -> Path:
    """A folder with both layouts, packed and plain, at different depths, and files of other names."""
    folder = tmp_path / "my ap"
    (folder / "1995").mkdir(parents=True)
    (folder / "1995" / "apw_eng_199501.gz").write_bytes(gzip.compress(GIGAWORD.encode()))
    (folder / "ap940102").write_bytes(TIPSTER)
    (folder / "readme.txt").write_text("<DOC>no</DOC>")
    (folder / "nyt_eng_199501").write_text("<DOC>no</DOC>")
    return folder


FIRST = ["Undated , and never closed .", "An older story of `` words . '' | Its caf\xe9 ended . | More of it ."]
SECOND = ["The first story .", "The second story cost $3.88 & rose 10% . It ended . | Fin ."]


def test_ap_by_hand(ap: Path) -> None:
    corpus = open_ap(ap, ANY)
    assert texts(corpus.parts[0]()) == [*FIRST, *SECOND]
    assert corpus.documents
    assert corpus.documents.report() == {
        "read": 7,
        "kept": 4,
        "skipped": {"type other": 1, "no TEXT": 1, "no words": 1},
        "notes": {
            "not UTF-8, taken for Latin-1": 1,
            "no date in the number, that of the file taken": 1,
            "TEXT not closed, read to the end of the document": 1,
            "unknown entity &UR;": 1,
            "file not read, its name is none of an AP file": 2,
        },
    }
    assert corpus.documents.lines()[0] == "7 documents read, 4 kept, 3 skipped"


@pytest.mark.parametrize(
    ("months", "expected"),
    [((None, "1994-12"), FIRST), (("1995-01", None), SECOND), (("1994-01", "1995-01"), [*FIRST, *SECOND])],
)
def test_ap_by_months(ap: Path, months: tuple[str | None, str | None], expected: list[str]) -> None:
    assert texts(open_ap(ap, months).parts[0]()) == expected


def test_a_document_of_another_month_than_its_file_is_counted(tmp_path: Path) -> None:
    (tmp_path / "apw_eng_199501").write_text(GIGAWORD.replace("19950102", "19950202"))
    corpus = open_ap(tmp_path, ("1995-01", "1995-01"))
    assert texts(corpus.parts[0]()) == SECOND[:1]
    assert corpus.documents and corpus.documents.skipped["outside the months"] == 1


def test_a_story_is_kept_once(ap: Path, tmp_path: Path) -> None:
    # The same month unpacked beside the packed one, in a linked folder that also links back.
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "apw_eng_199501").write_text(GIGAWORD)
    (other / "back").symlink_to(ap)
    (ap / "linked").symlink_to(other)
    corpus = open_ap(ap, ANY)
    assert texts(corpus.parts[0]()) == [*FIRST, *SECOND]
    assert corpus.documents and corpus.documents.skipped["number seen before"] == 4
    assert corpus.documents.read == 7 + 5


def test_odd_markup_loses_nothing(tmp_path: Path) -> None:
    long = "A line of words.\n" * 300_000  # 5 MB
    digits = "9" * 5_000
    (tmp_path / "apw_eng_199501").write_text(
        f'<DOC id="APW_ENG_19950101.0001"\n type="story"\n>\n<TEXT>\n&#{digits}; Broken tag.\n</TEXT>\n</DOC>\n'
        f'<DOC id="APW_ENG_19950101.{digits}" type="story"><TEXT>\n{long}</TEXT></DOC>\n<DOC never closed'
    )
    corpus = open_ap(tmp_path, ANY)
    first, second = texts(corpus.parts[0]())
    assert first == "Broken tag ."
    assert second.count("A line of words .") == 300_000
    assert corpus.documents and (corpus.documents.read, corpus.documents.kept) == (2, 2)
    assert corpus.documents.notes["text outside of documents"] == 1
    assert corpus.documents.notes[f"unknown entity &#{digits[:19]};"] == 1


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("apw_eng_199501.gz", "1995-01"),
        ("APW_ENG_201012", "2010-12"),
        ("AP880212", "1988-02-12"),
        ("ap890920.sgml.gz", "1989-09-20"),
        ("apws9601", "1996-01"),
        ("19980601_APW_ENG", "1998-06-01"),
        ("apw19980601", "1998-06-01"),
    ],
)
def test_dates_of_file_names(tmp_path: Path, name: str, date: str) -> None:
    (tmp_path / name).touch()
    for other in ("apple", "ap", "ap999999", "nyt_eng_199501.gz", "apw_eng_199513", "xap880212"):
        (tmp_path / other).touch()
    found, others = find_files(tmp_path, ANY)
    assert found == [(date, tmp_path / name)]
    assert len(others) == 6


def refused(folder: Path, months: tuple[str | None, str | None] = ANY) -> str:
    with pytest.raises(UserError) as error:
        list(open_ap(folder, months).parts[0]())
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bad_folders_and_months_are_one_clear_line(ap: Path, tmp_path: Path) -> None:
    assert "is no folder" in refused(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    assert "holds no AP file (apw_eng_199501.gz" in refused(tmp_path / "empty")
    assert "first_month 1995-02 is after last_month 1995-01" in refused(ap, ("1995-02", "1995-01"))
    assert "'1995' is not written as YYYY-MM" in refused(ap, ("1995", None))
    assert "'1995-13' is not written as YYYY-MM" in refused(ap, (None, "1995-13"))
    line = refused(ap, ("1996-01", "1996-12"))
    assert "no AP file from 1996-01 to 1996-12: its files go from 1994-01-02 to 1995-01" in line


def test_damaged_ap_files_are_one_clear_line(ap: Path) -> None:
    packed = ap / "1995" / "apw_eng_199501.gz"
    packed.write_bytes(gzip.compress(os.urandom(9_999).hex().encode())[:5_000])
    assert f"{packed} is not a whole gzip file" in refused(ap)
    packed.write_bytes(b"\x1f\x9d\x90abc")
    assert "packed by compress (.Z), which is not read: unpack it" in refused(ap)
    packed.write_bytes(b"")
    assert f"{packed} is empty, and no gzip file: copy it again" in refused(ap)
    packed.unlink()
    (ap / "ap940102").write_text('<DOC id="APW_ENG_19950102.0001" type="multi"><TEXT>a</TEXT></DOC>')
    assert "none of 1 documents is a story to read (skipped: type multi: 1, first at ap940102, line 1" in refused(ap)


def test_build_tokens_reports_the_documents(ap: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = [
        "--policy",
        "p",
        "--count-on",
        "stream",
        "--cut",
        "frequency",
        "--size",
        "0",
        "--numbers",
        "--proper-nouns",
    ]
    arguments = ["build-tokens", "--corpus", "mine", "--source", "ap", "--folder", str(ap), "--train", "0.8"]
    assert main([*arguments, "--valid", "0.1", *policy, "--output", str(tmp_path / "tokens")]) == 0
    printed = capsys.readouterr().out
    assert "7 documents read, 4 kept, 3 skipped\n" in printed
    assert "skipped: no TEXT: 1, first at apw_eng_199501.gz, line " in printed
    statistics = (tmp_path / "tokens" / "corpus.json").read_text()
    report = json.loads(statistics)["documents"]
    assert report["read"] == report["kept"] + sum(report["skipped"].values()) == 7
    assert str(tmp_path) not in statistics


# --- NLTK's news ---


def test_nltk_reuters_by_hand(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "reuters.zip", "w") as archive:
        archive.writestr("reuters/cats.txt", "test/2 oil")
        archive.writestr("reuters/training/10", "TITLE\n  Last story of &lt;OIL>.\n      It ended.\n  \n\n")
        archive.writestr("reuters/test/2", "TITLE ALONE\n")
        archive.writestr("reuters/training/3", "TITLE\n  First\n  story.\n")
    documents = Documents()
    found = texts(read_nltk_reuters(tmp_path / "reuters.zip", documents))
    assert found == ["First story .", "Last story of < OIL > . | It ended ."]
    assert documents.report() == {"read": 3, "kept": 2, "skipped": {"no words": 1}, "notes": {}}
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("README", "")
    with pytest.raises(UserError, match="holds no story of NLTK's reuters"):
        list(read_nltk_reuters(tmp_path / "other.zip", documents))


def test_abc_by_hand(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "abc.zip", "w") as archive:
        archive.writestr("abc/rural.txt", "A headline\r\nWheat rose. It fell.\r\n\r\n")
        archive.writestr("abc/science.txt", "Stars.")
    assert texts(read_abc(tmp_path / "abc.zip")) == ["A headline | Wheat rose . It fell .", "Stars ."]
    (tmp_path / "bad.zip").write_text("no zip")
    with pytest.raises(UserError, match="cannot be read as NLTK's abc"):
        list(read_abc(tmp_path / "bad.zip"))


# --- the real collection ---


def test_a_month_of_reuters_under_the_policy_of_ap(tmp_path: Path) -> None:
    place = Path(os.environ.get("NPLM2003_MIRROR") or Path(__file__).parents[3] / "shared/data")
    mirror = next((folder for folder in (place, place.parent) if (folder / "uci/reuters21578.tar.gz").is_file()), None)
    if mirror is None:
        pytest.skip("REUTERS-21578 IS NOT TESTED: set NPLM2003_MIRROR to a folder that holds uci/reuters21578.tar.gz")
    path = tmp_path / "reuters.tar.gz"
    fetch(DATASETS["reuters"], path, str(mirror))
    policy = Policy("ap", "stream", "frequency", 3, lowercase=True, numbers=True, proper_nouns=True)
    corpus = open_reuters(path, ("1987-06", "1987-06"))  # one month in eight of it, for speed
    result = build_tokens(corpus, "reuters", policy, Split(0.879, 0.0605), tmp_path / "tokens", {})
    assert (result["documents"]["read"], result["documents"]["kept"]) == (21_578, 2_314)
    assert result["documents"]["skipped"] == {"outside the months": 19_026, "headline only": 225, "unprocessed": 13}
    assert (result["stream_tokens"], result["stream_types"], result["vocabulary_size"]) == (344_293, 11_430, 4_448)
    assert [round(100 * share, 1) for share in result["merged_share"].values()] == [3.0, 2.8, 3.4]
