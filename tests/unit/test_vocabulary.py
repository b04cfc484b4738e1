"""The vocabulary policy, the split and the token store: answers by hand, and properties of any stream."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm2003 import vocabulary
from nplm2003.cli import main
from nplm2003.corpora import Corpus, read_text
from nplm2003.errors import UserError
from nplm2003.files import write_array, write_json
from nplm2003.scoring import SPLITS
from nplm2003.vocabulary import RARE, Policy, Split, TokenStore, build_tokens, cut_tokens


def corpus(*texts: str) -> Corpus:
    def part(number: int, text: str) -> Any:
        return lambda: read_text(text.split("\n"), f"text {number}", str.split)

    return Corpus("text", "none", "0" * 64, tuple(part(n, text) for n, text in enumerate(texts)))


def build(
    folder: Path, text: str | Sequence[str], split: Split | None, count_on: str, cut: str, size: int, **options: bool
) -> TokenStore:
    texts = [text] if isinstance(text, str) else text
    build_tokens(corpus(*texts), "toy", Policy("p", count_on, cut, size, **options), split, folder, {"who": "test"})
    return TokenStore(folder)


def ids(store: TokenStore) -> list[list[int]]:
    return [store[split].tolist() for split in SPLITS]


# a occurs 3 times, b twice, c and d once; train is "a b a c".
TEXT = "a b a c\nb a d"


def test_rank_cut_by_hand(tmp_path: Path) -> None:
    store = build(tmp_path, TEXT, Split(4, 2), "stream", "rank", 3)
    assert store.words == [RARE, "a", "b"]
    assert store.size == 3
    assert ids(store) == [[1, 2, 1, 0], [2, 1], [0]]
    assert store.train_counts.tolist() == [1, 2, 1]
    lines = (tmp_path / "vocabulary.tsv").read_text().splitlines()
    assert lines == ["id\tword\ttrain\tstream", "0\t<rare>\t1\t2", "1\ta\t2\t3", "2\tb\t1\t2"]


def test_statistics_by_hand(tmp_path: Path) -> None:
    statistics = build(tmp_path, TEXT + " d", Split(4, 2), "stream", "rank", 4).statistics
    # a 3, b 2, d 2, c 1: d is kept and never occurs in train.
    expected = {
        "stream_tokens": 8,
        "unused_tokens": 0,
        "stream_types": 4,
        "vocabulary_size": 4,
        "tokens": {"train": 4, "valid": 2, "test": 2},
        "merged_share": {"train": 0.25, "valid": 0.0, "test": 0.0},
        "merged_types": 1,
        "unseen_types": 1,
        "unseen_share": {"valid": 0.0, "test": 1.0},
        "corpus": "toy",
        "checksum": "0" * 64,
        "provenance": {"who": "test"},
    }
    assert {key: statistics[key] for key in expected} == expected
    assert statistics["policy"] == {
        "name": "p",
        "count_on": "stream",
        "cut": "rank",
        "size": 4,
        "lowercase": False,
        "marks": False,
        "split_clitics": False,
        "numbers": False,
        "proper_nouns": False,
    }


def test_ties_at_the_cut_go_by_code_point(tmp_path: Path) -> None:
    assert build(tmp_path, "z é Z a", Split(2, 1), "stream", "rank", 4).words == [RARE, "Z", "a", "z"]


def test_frequency_cut_keeps_words_seen_more_often(tmp_path: Path) -> None:
    assert build(tmp_path / "1", TEXT, Split(4, 2), "stream", "frequency", 1).words == [RARE, "a", "b"]
    assert build(tmp_path / "2", TEXT, Split(4, 2), "stream", "frequency", 2).words == [RARE, "a"]
    everything = build(tmp_path / "0", TEXT, Split(4, 2), "stream", "frequency", 0)
    assert everything.words == [RARE, "a", "b", "c", "d"]
    assert everything.train_counts[0] == 0


def test_counting_on_train_alone(tmp_path: Path) -> None:
    store = build(tmp_path, "x x y d d d d d", Split(3, 2), "train", "frequency", 0)
    assert store.words == [RARE, "x", "y"]
    assert ids(store) == [[1, 1, 2], [0, 0], [0, 0, 0]]


def test_marks_case_and_clitics_change_the_stream(tmp_path: Path) -> None:
    text = "Don't go\n\nGo"
    plain = build(tmp_path / "0", text, Split(1, 1), "stream", "frequency", 0)
    assert plain.words == [RARE, "Don't", "Go", "go"]
    store = build(
        *(tmp_path / "1", text, Split(5, 1), "stream", "frequency", 0),
        marks=True,
        lowercase=True,
        split_clitics=True,
    )
    stream = [store.words[i] for split in SPLITS for i in store[split]]
    assert stream == ["do", "n't", "go", "<paragraph>", "go", "<paragraph>", "<text>"]


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("don't", "do n't"),
        ("CAN'T", "CA N'T"),
        ("John's", "John 's"),
        ("years'", "years '"),
        ("they'll", "they 'll"),
        ("we're", "we 're"),
        ("I've", "I 've"),
        ("he'd", "he 'd"),
        ("I'm", "I 'm"),
        ("n't", "n't"),
        ("'s", "'s"),
        ("o'clock", "o'clock"),
        ("goin'", "goin'"),
        ("'", "'"),
        ("''", "''"),
    ],
)
def test_clitics(word: str, tokens: str) -> None:
    assert Policy("p", "stream", "frequency", 0, split_clitics=True).normalize(word) == tuple(tokens.split())


def test_three_texts_are_the_three_splits(tmp_path: Path) -> None:
    store = build(tmp_path, ["a b", "b", "c a b"], None, "stream", "frequency", 1)
    assert store.words == [RARE, "b", "a"]
    assert ids(store) == [[2, 1], [1], [0, 2, 1]]


def test_a_share_of_train_is_its_last_part(tmp_path: Path) -> None:
    # train is "a b a c", of which half is "a c"; b no longer occurs in it.
    store = build(tmp_path / "whole", TEXT, Split(4, 2), "stream", "rank", 3)
    statistics = cut_tokens(store, Fraction(1, 2), tmp_path / "half", {"who": "cut"})
    half = TokenStore(tmp_path / "half")
    assert ids(half) == [[1, 0], [2, 1], [0]]
    assert half.words == store.words
    assert half.train_counts.tolist() == [1, 1, 0]
    assert half.stream_counts.tolist() == store.stream_counts.tolist() == [2, 3, 2]
    assert half.statistics == statistics
    assert statistics["tokens"] == {"train": 2, "valid": 2, "test": 1}
    assert (statistics["unseen_types"], statistics["unseen_share"]) == (1, {"valid": 0.5, "test": 0.0})
    assert statistics["merged_share"] == {"train": 0.5, "valid": 0.0, "test": 1.0}
    assert (statistics["train_share"], statistics["provenance"]) == ("1/2", {"who": "cut"})
    # The stream that the vocabulary was cut from stays what it was.
    assert statistics["stream_tokens"] == store.statistics["stream_tokens"]
    assert half.fingerprint != store.fingerprint


def test_a_share_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    store = build(tmp_path / "whole", TEXT, Split(4, 2), "stream", "rank", 3)
    with pytest.raises(UserError, match="a share of 1/5 leaves none of the 4 training tokens"):
        cut_tokens(store, Fraction(1, 5), tmp_path / "cut", {})
    assert not (tmp_path / "cut").exists()
    with pytest.raises(UserError, match="another one"):
        cut_tokens(store, Fraction(1, 2), store.folder, {})


def test_tokens_beyond_test_are_left_out(tmp_path: Path) -> None:
    store = build(tmp_path, "a b a z z z z", Split(1, 1, 1), "stream", "frequency", 0)
    assert store.words == [RARE, "a", "b"]
    assert (store.statistics["stream_tokens"], store.statistics["unused_tokens"]) == (3, 4)


def test_history_reaches_back_over_the_boundaries(tmp_path: Path) -> None:
    store = build(tmp_path, "a b a c b b", Split(3, 1), "stream", "frequency", 0)  # ids 2 1 2 | 3 | 1 1
    assert store.history("train", 5).tolist() == []
    assert store.history("valid", 2).tolist() == [1, 2]
    assert store.history("test", 1).tolist() == [3]
    assert store.history("test", 3).tolist() == [1, 2, 3]
    assert store.history("test", 99).tolist() == [2, 1, 2, 3]
    assert store.history("test", 0).tolist() == []
    assert {store.history(split, 2).dtype for split in SPLITS} == {np.dtype(np.uint16)}


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_are_as_narrow_as_the_vocabulary_allows(tmp_path: Path, size: int, dtype: type) -> None:
    text = " ".join(f"{i:05d}" for i in range(70_000))
    store = build(tmp_path, text, Split(0.8, 0.1), "stream", "rank", size)
    assert store["train"].dtype == dtype
    assert isinstance(store["train"], np.memmap)
    # Equal counts: the first size - 1 words in code-point order, which is the order of the stream.
    expected = np.where(np.arange(70_000) < size - 1, np.arange(1, 70_001), 0)
    assert np.array_equal(np.concatenate([store[split] for split in SPLITS]), expected)


def test_fingerprint_says_what_can_be_compared(tmp_path: Path) -> None:
    def fingerprint(text: str, split: Split) -> str:
        return build(tmp_path, text, split, "stream", "frequency", 0).fingerprint

    first = fingerprint("a b a b", Split(2, 1))
    assert fingerprint("a  b\na b", Split(2, 1)) == first
    assert fingerprint("a b a c", Split(2, 1)) != first  # other words, other ids
    assert fingerprint("x y x y", Split(2, 1)) != first  # other words, same ids
    assert fingerprint("a b b a", Split(2, 1)) != first  # same words, other ids
    assert fingerprint("a b a b", Split(1, 2)) != first  # another split


# --- any stream ---

WORDS = st.lists(st.sampled_from([*"abcdefg", "hh", "ii"]), min_size=3, max_size=60)


@settings(max_examples=50, deadline=None)
@given(words=WORDS, data=st.data())
def test_any_stream_round_trips(words: list[str], data: st.DataObject) -> None:
    train = data.draw(st.integers(1, len(words) - 2))
    valid = data.draw(st.integers(1, len(words) - train - 1))
    count_on = data.draw(st.sampled_from(["stream", "train"]))
    types = len(set(words if count_on == "stream" else words[:train]))
    cut, size = data.draw(st.one_of(st.tuples(st.just("rank"), st.integers(2, types + 1)), st.just(("frequency", 0))))
    with tempfile.TemporaryDirectory() as folder:
        store = build(Path(folder), " ".join(words), Split(train, valid), count_on, cut, size)
        assert [len(store[split]) for split in SPLITS] == [train, valid, len(words) - train - valid]
        stream = np.concatenate([store[split] for split in SPLITS])
        assert store.size == len(store.words) == len(set(store.words)) == (size if cut == "rank" else types + 1)
        assert stream.max() < store.size
        assert [store.words[i] for i in stream] == [word if word in store.words else RARE for word in words]
        assert store.train_counts.tolist() == np.bincount(store["train"], minlength=store.size).tolist()
        # No merged word is more frequent than a kept one.
        counted = words if count_on == "stream" else words[:train]
        kept = [counted.count(word) for word in store.words[1:]]
        assert kept == sorted(kept, reverse=True)
        assert all(counted.count(word) <= kept[-1] for word in words if word not in store.words)
        length = data.draw(st.integers(1, 70))
        for split, start in zip(SPLITS, (0, train, train + valid), strict=True):
            assert store.history(split, length).tolist() == stream[max(0, start - length) : start].tolist()


@given(st.integers(3, 10_000), st.floats(0.01, 0.98), st.floats(0.01, 0.98))
def test_fractions_share_out_the_whole_stream(total: int, train: float, valid: float) -> None:
    try:
        sizes = Split(train, valid).sizes(total)
    except UserError:
        # Refused only where the shares leave one of the three less than about one token.
        assert min(train, valid, 1 - train - valid) * total < 1.5
        return
    assert sum(sizes) == total
    assert min(sizes) >= 1
    assert abs(sizes[0] - train * total) <= 0.5
    assert abs(sizes[1] - valid * total) <= 1


def test_splits_by_hand() -> None:
    assert Split(800_000, 200_000).sizes(1_161_192) == (800_000, 200_000, 161_192)
    assert Split(5, 2, 1).sizes(10) == (5, 2, 1)
    assert Split(0.8, 0.1, 0.1).sizes(1_001) == (801, 100, 100)
    assert Split(0.5, 0.25, 0.125).sizes(80) == (40, 20, 10)


# --- bad input ---


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Split(8, 2), "leaves test no tokens"),
        (Split(8, 3), "asks for 11 tokens of a stream that has 10"),
        (Split(5, 2, 4), "asks for 11 tokens of a stream that has 10"),
        (Split(0.5, 0.6), "adds up to more than 1"),
        (Split(0.5, 0.01, 0.4), "leaves valid no tokens"),
        (Split(0.5, 2), "mixes token counts and fractions"),
        (Split(5, 2, 0.1), "mixes token counts and fractions"),
    ],
)
def test_bad_splits_are_refused(split: Split, message: str) -> None:
    with pytest.raises(UserError, match=message):
        split.sizes(10)


@pytest.mark.parametrize(
    ("count_on", "cut", "size", "message"),
    [
        ("stream", "rank", 6, "the stream has 4: choose a size of at most 5"),
        ("train", "rank", 5, "the train has 3: choose a size of at most 4"),
        ("stream", "rank", 1, "size is 1; a rank cut needs at least 2"),
        ("stream", "frequency", 3, "no word occurs more than 3 times"),
        ("stream", "frequency", -1, "at least 0"),
        ("valid", "frequency", 1, "count_on is 'valid'"),
        ("stream", "top", 1, "cut is 'top'"),
    ],
)
def test_bad_policies_are_refused(tmp_path: Path, count_on: str, cut: str, size: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(tmp_path, TEXT, Split(4, 2), count_on, cut, size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "options"),
    [("a b\nc <rare> d", {}), ("a b\nc <RARE> d", {"lowercase": True}), ("a b\nc <text> d", {"marks": True})],
)
def test_reserved_symbols_are_refused_with_their_place(tmp_path: Path, text: str, options: dict[str, bool]) -> None:
    with pytest.raises(UserError, match="text 0, line 2, token 4 of the stream"):
        build(tmp_path, text, Split(2, 1), "stream", "frequency", 0, **options)


def test_marks_are_words_like_any_other_where_the_policy_has_none(tmp_path: Path) -> None:
    assert "<text>" in build(tmp_path, "a b <text> c", Split(2, 1), "stream", "frequency", 0).words


def test_refused_input_leaves_the_old_store_alone(tmp_path: Path) -> None:
    before = build(tmp_path, TEXT, Split(4, 2), "stream", "rank", 3)
    with pytest.raises(UserError):
        build(tmp_path, TEXT, Split(4, 9), "stream", "rank", 3)
    assert TokenStore(tmp_path).fingerprint == before.fingerprint


def test_interrupted_write_is_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, TEXT, Split(4, 2), "stream", "rank", 3)

    def full_disk(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(vocabulary, "write_text", full_disk)
    with pytest.raises(OSError, match="disk full"):
        build(tmp_path, TEXT, Split(3, 2), "stream", "rank", 3)
    with pytest.raises(UserError, match=r"holds no corpus\.json"):
        TokenStore(tmp_path)


def test_store_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    store = build(tmp_path, TEXT, Split(4, 2), "stream", "rank", 3)
    np.save(tmp_path / "valid.npy", np.zeros(9, dtype=np.uint16))
    with pytest.raises(UserError, match="run build-tokens again"):
        store["valid"]


# --- the command ---


def run(tmp_path: Path, *arguments: str) -> int:
    policy = ["--policy", "p", "--count-on", "stream", "--cut", "frequency", "--size", "0"]
    return main(["build-tokens", "--corpus", "toy", *arguments, *policy, "--output", str(tmp_path / "tokens")])


def test_command_builds_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my text.txt").write_text(TEXT)
    assert (
        run(tmp_path, "--source", "text", "--file", str(tmp_path / "my text.txt"), "--train", "4", "--valid", "2") == 0
    )
    assert "4 / 2 / 1 tokens (train / valid / test), |V| 5" in capsys.readouterr().out
    store = TokenStore(tmp_path / "tokens")
    assert store.words == [RARE, "a", "b", "c", "d"]
    assert store.statistics["provenance"]["configuration"]["file"] == "my text.txt"
    assert str(tmp_path) not in (tmp_path / "tokens/corpus.json").read_text()


def test_command_takes_three_files(tmp_path: Path) -> None:
    files = []
    for split, text in zip(SPLITS, ("a b", "a", "b c"), strict=True):
        (tmp_path / split).write_text(text)
        files += [f"--{split}-file", str(tmp_path / split)]
    assert run(tmp_path, "--source", "text", *files) == 0
    assert TokenStore(tmp_path / "tokens").statistics["tokens"] == {"train": 2, "valid": 1, "test": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--source text --file f", "give --train and --valid"),
        ("--source text --file f --train 1", "give --train and --valid"),
        ("--source text --train 1 --valid 1", "needs --file"),
        ("--source brown --train 1 --valid 1", "needs --file"),
        ("--source embedded --file f --train 1 --valid 1", "reads no --file"),
        ("--source ap --train 1 --valid 1", "--folder is for source ap, which needs it"),
        ("--source brown --file f --folder d --train 1 --valid 1", "--folder is for source ap"),
        ("--source abc --file f --first-month 1995-01 --train 1 --valid 1", "are for source reuters or ap"),
        ("--source embedded --tokenizer treebank --train 1 --valid 1", "--tokenizer is for source text"),
        ("--source text --train-file f --valid-file g", "go together"),
        ("--source brown --train-file f --valid-file g --test-file h", "go together"),
        ("--source text --train-file f --valid-file g --test-file h --train 1", "leave them out"),
        ("--source text --file absent.txt --train 1 --valid 1", "absent.txt cannot be read"),
    ],
)
def test_command_refuses_contradictions_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    assert run(tmp_path, *arguments.split()) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "tokens").exists()


@pytest.mark.parametrize("share", ["0", "-1", "1.0", "0.0", "half", "1e6"])
def test_command_refuses_bad_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str], share: str) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path, "--source", "embedded", "--train", share, "--valid", "1")
    assert "neither a number of tokens (800000) nor a fraction (0.8)" in capsys.readouterr().err


# --- a damaged store ---


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text + b"40\tmore\t1\t1\n",
        lambda text: text.replace(b"\t", b" "),
        lambda text: b"\xff" + text,
    ],
)
def test_a_damaged_vocabulary_is_refused(own_store: TokenStore, damage: Callable[[bytes], bytes]) -> None:
    path = own_store.folder / "vocabulary.tsv"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match="vocabulary.tsv does not hold the 40 words of V: run build-tokens again"):
        own_store.train_counts  # noqa: B018


@pytest.mark.parametrize("change", [{"dtype": np.float32}, {"dtype": np.int64}, {"first": 40}])
def test_damaged_ids_are_refused(own_store: TokenStore, change: dict[str, Any]) -> None:
    ids = own_store["valid"].astype(change.get("dtype", np.uint16))
    ids[0] = change.get("first", ids[0])
    write_array(own_store.folder / "valid.npy", ids)
    with pytest.raises(UserError, match="valid.npy does not hold the tokens that its corpus.json says"):
        own_store["valid"]


def test_flipped_bits_are_refused(own_store: TokenStore) -> None:
    ids = own_store["valid"].copy()
    ids[0] ^= 1  # another word of V
    write_array(own_store.folder / "valid.npy", ids)
    with pytest.raises(UserError, match=r"valid\.npy is damaged, its checksum is not"):
        own_store["valid"]
    path = own_store.folder / "vocabulary.tsv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"\t{own_store.train_counts[3]}\t", "\t7\t"), encoding="utf-8")
    with pytest.raises(UserError, match=r"vocabulary\.tsv is damaged, its checksum is not"):
        TokenStore(own_store.folder).words  # noqa: B018


@pytest.mark.parametrize("content", [[], {"format": 1}, {"format": 2, "tokens": 3}])
def test_a_damaged_description_is_refused(own_store: TokenStore, content: Any) -> None:
    write_json(own_store.folder / "corpus.json", content)
    with pytest.raises(UserError, match="corpus.json"):
        TokenStore(own_store.folder)


def test_splits_that_go_with_no_stream() -> None:
    assert Split(0.5, 0.25).shares() == [0.5, 0.25]
    with pytest.raises(UserError, match="more than 1"):
        Split(0.9, 0.2).shares()
