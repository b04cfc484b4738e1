"""The readers: what each source yields, and how bad input is refused. Brown itself where the corpus is at hand."""

from __future__ import annotations

import gzip
import hashlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nplm2003.corpora import Corpus, Mark, Passage, Piece, embedded, read_text
from nplm2003.corpora import text as text_module
from nplm2003.corpora.brown import open_brown, read_brown
from nplm2003.corpora.fetch import DATASETS, fetch
from nplm2003.corpora.text import open_text
from nplm2003.errors import UserError
from nplm2003.vocabulary import Policy, Split, build_tokens

P, T = Mark.PARAGRAPH, Mark.TEXT


def flat(pieces: Iterable[Piece]) -> list[str | Mark]:
    """Words and marks in stream order."""
    return [item for piece in pieces for item in (piece.words if isinstance(piece, Passage) else [piece])]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(*paths: Path, tokenizer: str = "whitespace") -> list[list[str | Mark]]:
    return [flat(part()) for part in open_text(paths, tokenizer).parts]


# --- texts ---


def test_blocks_of_lines_are_paragraphs() -> None:
    lines = ["\n", "  \n", "a b\n", "c\n", "\n", "\t\n", "d\n"]
    assert flat(read_text(lines, "x", str.split)) == ["a", "b", "c", P, "d", P, T]


def test_a_line_without_tokens_does_not_end_a_paragraph() -> None:
    assert flat(read_text(["Title", "=====", "text"], "x", embedded.tokenize)) == ["Title", "text", P, T]


def test_passages_say_where_they_stand() -> None:
    passages = [piece for piece in read_text(["a", "", "b"], "notes.txt", str.split) if isinstance(piece, Passage)]
    assert [passage.where for passage in passages] == ["notes.txt, line 1", "notes.txt, line 3"]


# --- a user's own text ---


def test_gzip_is_read_like_the_plain_file(tmp_path: Path) -> None:
    content = b"the cat\nsat\n\non the mat"
    plain = written(tmp_path / "a.txt", content)
    packed = written(tmp_path / "a.txt.gz", gzip.compress(content))
    assert read(plain) == read(packed) == [["the", "cat", "sat", P, "on", "the", "mat", P, T]]


def test_three_files_are_three_parts(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, name) for name in ("train", "valid", "test")]
    assert read(*paths) == [["train", P, T], ["valid", P, T], ["test", P, T]]
    assert open_text(paths, "whitespace").checksum == hashlib.sha256(b"trainvalidtest").hexdigest()


def test_windows_lines_and_byte_order_mark(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a", b"\xef\xbb\xbfa b\r\n\r\nc\r\n")) == [["a", "b", P, "c", P, T]]


def test_treebank_tokenizer(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "They'll pay $3.88, won't they?\n")
    assert read(path, tokenizer="treebank") == [
        ["They", "'ll", "pay", "$", "3.88", ",", "wo", "n't", "they", "?", P, T]
    ]
    assert read(path)[0][:2] == ["They'll", "pay"]


def test_text_is_read_line_by_line(tmp_path: Path) -> None:
    (part,) = open_text([written(tmp_path / "a", b"one\ntwo\n\xff\n")], "whitespace").parts
    pieces = part()
    assert [next(pieces), next(pieces)] == [(["one"], f"{tmp_path}/a, line 1"), (["two"], f"{tmp_path}/a, line 2")]
    with pytest.raises(UserError, match=r"line 3, byte 1 of the line: not UTF-8"):
        next(pieces)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin1.txt", "fine\ncaf\xe9\n".encode("latin-1"), r"latin1.txt, line 2, byte 4 of the line: not UTF-8"),
        ("empty.txt", b"", "empty.txt holds no words"),
        ("blank.txt", b" \n\n\t\n", "blank.txt holds no words"),
        ("nul.txt", b"fine\nno \0 text\n", r"nul.txt, line 2, character 4 of the line: a NUL byte"),
        ("plain.gz", b"not packed at all", "plain.gz is not a whole gzip file"),
        ("cut.gz", gzip.compress(os.urandom(9_999).hex().encode())[:5_000], "cut.gz is not a whole gzip file"),
    ],
)
def test_bad_text_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(written(tmp_path / name, content))


def test_a_packed_file_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "LINE", 1_000)
    assert read(written(tmp_path / "a", b"x " * 400))  # 800 bytes
    for name, content in (
        ("b", b"x" * 1_001),
        ("b.gz", gzip.compress(b"x" * 1_001)),
        ("c.gz", gzip.compress(b"x\n" * 99_999)),
    ):
        with pytest.raises(UserError, match="has a line of more than 1,000 bytes, or unpacks to more than 200 times"):
            read(written(tmp_path / name, content))


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent.txt cannot be read \(No such file"):
        open_text([tmp_path / "absent.txt"], "whitespace")
    with pytest.raises(UserError, match="cannot be read"):
        open_text([tmp_path], "whitespace")


# --- the embedded corpus ---


def test_embedded_tokens() -> None:
    assert embedded.tokenize('   The list\'s re-ordered: x[0] == "a"...') == [
        *("The", "list's", "re-ordered", ":", "x", "[", "0", "]", "==", '"', "a", '"', "..."),
    ]
    assert embedded.tokenize("+-----+--___--+") == []


def test_embedded_corpus_is_there_and_repeatable() -> None:
    first, second = embedded.open_embedded(), embedded.open_embedded()
    assert first.checksum == second.checksum
    words = flat(first.parts[0]())
    assert words == flat(second.parts[0]())
    # Its size differs between versions of Python; enough for a demonstration it must be.
    assert sum(isinstance(word, str) for word in words) > 50_000
    assert words.count(T) > 50


# --- Brown's format ---


def brown_zip(path: Path, texts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def test_brown_words_paragraphs_and_order(tmp_path: Path) -> None:
    path = brown_zip(
        tmp_path / "toy.zip",
        {
            "brown/cb01": "\n\n\tLast/jj 1/2/cd\n",
            "brown/README": "no/nn text/nn",
            "brown/ca01": "\n\n\tThe/at and/or/cc end/nn ./.\n\n\n\t``/`` Yes/rb\nno/rb\n",
        },
    )
    assert flat(read_brown(path)) == ["The", "and/or", "end", ".", P, "``", "Yes", "no", P, T, "Last", "1/2", P, T]


def test_other_files_than_brown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no text of the Brown corpus"):
        list(read_brown(brown_zip(tmp_path / "other.zip", {"README": "hello"})))
    with pytest.raises(UserError, match="cannot be read as NLTK's Brown corpus"):
        list(read_brown(written(tmp_path / "text.zip", "no zip")))
    with pytest.raises(UserError, match="is not the pinned brown corpus"):
        open_brown(brown_zip(tmp_path / "toy.zip", {"brown/ca01": "a/at"}))
    with pytest.raises(UserError, match="nplm2003 fetch --corpus brown"):
        open_brown(tmp_path / "absent.zip")


# --- the real Brown corpus ---


@pytest.fixture(scope="module")
def brown_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = os.environ.get("NPLM2003_MIRROR") or Path(__file__).parents[3] / "shared/data"
    if isinstance(mirror, Path) and not mirror.is_dir():
        pytest.skip("THE BROWN CORPUS IS NOT TESTED: set NPLM2003_MIRROR to a folder that holds corpora/brown.zip")
    path = tmp_path_factory.mktemp("brown") / "brown.zip"
    fetch(DATASETS["brown"], path, str(mirror))
    return path


@pytest.fixture(scope="module")
def brown_pieces(brown_path: Path) -> list[Piece]:
    return list(open_brown(brown_path).parts[0]())


def test_brown_counts(brown_pieces: list[Piece]) -> None:
    words = [item for item in flat(brown_pieces) if isinstance(item, str)]
    assert len(words) == 1_161_192
    assert len(set(words)) == 56_057
    assert brown_pieces.count(P) == 15_667
    assert brown_pieces.count(T) == 500


def test_brown_equals_nltks_reader(
    brown_path: Path, brown_pieces: list[Piece], monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk.data
    from nltk.corpus.reader import CategorizedTaggedCorpusReader
    from nltk.data import ZipFilePathPointer

    monkeypatch.setattr(nltk.data, "path", [str(brown_path.parent)])  # NLTK opens no file outside its path
    reader = CategorizedTaggedCorpusReader(
        ZipFilePathPointer(str(brown_path), "brown/"), r"c[a-r]\d\d", cat_pattern=r"c([a-r])", encoding="ascii"
    )
    expected: list[str | Mark] = []
    for text in reader.fileids():
        for paragraph in reader.paras(text):
            expected += [word for sentence in paragraph for word in sentence]
            expected.append(P)
        expected.append(T)
    assert flat(brown_pieces) == expected


# Read off NLTK's copy with scripts apart from this code (the figures of the issue and the paper's facts).
BROWN_POLICIES = [
    # count_on, cut, size, options, tokens, types, |V|, merged % of train
    ("stream", "rank", 16_383, {}, 1_161_192, 56_057, 16_383, 5.4),
    ("stream", "frequency", 3, {}, 1_161_192, 56_057, 17_905, 4.9),
    ("stream", "frequency", 3, {"marks": True}, 1_177_359, 56_059, 17_907, 4.9),
    (
        *("stream", "frequency", 3, {"marks": True, "lowercase": True, "split_clitics": True}),
        *(1_187_382, 47_845, 16_489, 4.0),
    ),
    ("train", "frequency", 3, {}, 1_161_192, 56_057, 14_114, 5.8),
    ("train", "frequency", 3, {"marks": True}, 1_177_359, 56_059, 14_039, 5.7),
]


@pytest.mark.parametrize(
    ("count_on", "cut", "size", "options", "tokens", "types", "vocabulary", "merged"), BROWN_POLICIES
)
def test_brown_under_each_policy(
    brown_pieces: list[Piece],
    tmp_path: Path,
    count_on: str,
    cut: str,
    size: int,
    options: dict[str, Any],
    tokens: int,
    types: int,
    vocabulary: int,
    merged: float,
) -> None:
    corpus = Corpus("brown", "", "", (lambda: iter(brown_pieces),))
    policy = Policy("pinned", count_on, cut, size, **options)
    result = build_tokens(corpus, "brown", policy, Split(800_000, 200_000), tmp_path, {})
    assert result["stream_tokens"] == tokens
    assert result["stream_types"] == types
    assert result["vocabulary_size"] == vocabulary
    assert result["tokens"] == {"train": 800_000, "valid": 200_000, "test": tokens - 1_000_000}
    assert round(100 * result["merged_share"]["train"], 1) == merged
