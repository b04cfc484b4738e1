"""Numeric forms and proper nouns: every form by hand, and what a policy makes of a small text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm2003.corpora import Corpus, Passage
from nplm2003.errors import UserError
from nplm2003.normalisation import NUMERIC_FORMS, PROPER, case_is_forced, numeric_form, proper_nouns
from nplm2003.scoring import SPLITS
from nplm2003.vocabulary import RARE, Policy, Split, TokenStore, build_tokens

FORMS = {
    "<ordinal>": "1st 2nd 23rd 11th 1,000th 4TH",
    "<time>": "10:30 9:05:10 10:30am 9am 7p.m. 11:15p.m.",
    "<year>": "1987 1500 2099 1980s 1980's '87 '60s 1986/87 1986-87 1987-1992",
    "<fraction>": "1/2 3/16 11-1/2 1/100",
    "<percent>": "10% 3.5% -0.4% 1,000%",
    "<money>": "$5 $3.88 US$1,000 £5m $.50 -$2 $13.5bn C$7",
    "<number>": "7 155,221 6.4 .5 -3 +2.1 1499 2100 20-30 55.7-56.2 1,987 419.15/421.25",
    None: "word ten 10-year $ % ' - , F-16 3M 1,00 2-for-1 x2 10:3 <number> 5-pct",
}


@pytest.mark.parametrize("symbol", FORMS)
def test_numeric_forms(symbol: str | None) -> None:
    assert {word: numeric_form(word) for word in FORMS[symbol].split()} == dict.fromkeys(FORMS[symbol].split(), symbol)


def test_every_form_is_tried_and_documented() -> None:
    import nplm2003.normalisation

    assert set(FORMS) == {*NUMERIC_FORMS, None}
    assert all(f"`{symbol}`" in (nplm2003.normalisation.__doc__ or "") for symbol in NUMERIC_FORMS)


@given(st.integers(0), st.booleans())
def test_any_whole_number_is_a_number_or_a_year(number: int, commas: bool) -> None:
    assert numeric_form(f"{number:,}" if commas else str(number)) in ("<number>", "<year>")


@pytest.mark.parametrize(
    ("words", "forced"),
    [
        ("The bank of Rome", "1000"),
        ("`` We will , '' Smith said", "1100000"),
        ("He said : `` No , '' and left", "100110000"),
        ("Yes . The rest ? No", "101001"),
        ("Mr. Smith , Jr. came", "10000"),
        ("-- Paris is", "110"),
        ("MARKETS FALL IN TOKYO", "1111"),
        ("Net 807,000 1.1", "111"),
        ("", ""),
    ],
)
def test_where_case_tells_nothing(words: str, forced: str) -> None:
    assert case_is_forced(words.split()) == [flag == "1" for flag in forced]


def test_proper_nouns_are_told_by_nine_capitals_in_ten() -> None:
    counted = [
        ("Rome", False, 9),
        ("rome", False, 1),  # 9 of 10
        ("Bank", False, 8),
        ("bank", False, 1),  # 8 of 9
        ("Nevertheless", True, 50),  # at the start of sentences alone
        ("the", False, 99),
        ("The", True, 500),
        ("I", False, 70),
        ("U.S.", False, 1),
        ("Unseen", False, 0),
    ]
    assert proper_nouns(counted) == {"rome", "u.s."}


def stream(folder: Path, passages: list[str], **options: bool) -> list[str]:
    """The tokens that a policy makes of sentences."""
    corpus = Corpus("toy", "", "", (lambda: (Passage(text.split(), "toy") for text in passages),))
    build_tokens(corpus, "toy", Policy("p", "stream", "frequency", 0, **options), Split(1, 1), folder, {})
    store = TokenStore(folder)
    return [store.words[i] for split in SPLITS for i in store[split]]


TEXT = [
    "Bush spoke in Rome in 1995 .",
    "The bush near Rome burned for 10 days , said Bush 's man .",
    "ROME SEES BUSH",
    "Rome paid $5 , The Times said Thursday .",
    "It hit the bush .",
]


def test_the_preprocessing_of_ap_by_hand(tmp_path: Path) -> None:
    # bush: one capital of three that tell; rome 2 of 2, times 1 of 1, thursday 1 of 1; the: 1 of 2.
    tokens = stream(tmp_path, TEXT, lowercase=True, numbers=True, proper_nouns=True)
    assert " ".join(tokens) == (
        "bush spoke in <proper> in <year> . the bush near <proper> burned for <number> days , said bush 's man . "
        "<proper> sees bush <proper> paid <money> , the <proper> said <proper> . it hit the bush ."
    )
    statistics = TokenStore(tmp_path).statistics
    assert set(statistics["symbol_share"]) == {PROPER, "<year>", "<number>", "<money>"}
    shares = statistics["symbol_share"][PROPER]
    counts = [shares[split] * tokens for split, tokens in statistics["tokens"].items()]
    assert sum(counts) == pytest.approx(6)


def test_proper_nouns_alone_keep_the_case_of_the_other_words(tmp_path: Path) -> None:
    tokens = stream(tmp_path, TEXT[:2], proper_nouns=True)
    assert " ".join(tokens[:9]) == "Bush spoke in <proper> in 1995 . The bush"  # bush: one of two


def test_what_is_proper_is_counted_where_the_policy_counts(tmp_path: Path) -> None:
    # In train (the first 4 tokens) the word has no capital; in the whole stream nine of ten do.
    passages = ["so mark it .", *["so Mark did ."] * 9, "and mark ends"]
    corpus = Corpus("toy", "", "", (lambda: (Passage(text.split(), "toy") for text in passages[:-1]),))
    for count_on, word in (("train", "mark"), ("stream", PROPER)):
        policy = Policy("p", count_on, "frequency", 0, lowercase=True, proper_nouns=True)
        build_tokens(corpus, "toy", policy, Split(4, 4), tmp_path, {})
        assert TokenStore(tmp_path).words[TokenStore(tmp_path)["train"][1]] == word


@pytest.mark.parametrize("word", ["<number>", "<Proper>", "<RARE>"])
def test_the_symbols_are_refused_in_a_text(tmp_path: Path, word: str) -> None:
    with pytest.raises(UserError, match="a reserved symbol"):
        stream(tmp_path, ["a b c", f"it is {word}"], lowercase=True, numbers=True, proper_nouns=True)
    assert RARE not in stream(tmp_path, ["a b c", "it is <number>"])  # where the policy has none it is a word


def test_a_hundred_thousand_words_take_a_moment(tmp_path: Path) -> None:
    """Over 50,000 words a second, as measured in CPU time."""
    words = [f"Name{i % 9_000} likes word{i % 7_000} and {i % 5_000} others ." for i in range(16_000)]
    start = time.process_time()
    stream(tmp_path, words, lowercase=True, numbers=True, proper_nouns=True)
    assert time.process_time() - start < 100_000 / 50_000
