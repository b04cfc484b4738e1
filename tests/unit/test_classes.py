"""Word classes by the exchange algorithm, against the criterion counted from scratch."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.ngram import classes
from nplm2003.ngram.classes import LEAST_GAIN, Clustering, learn, read_classes, write_classes
from nplm2003.vocabulary import MERGED_ID, Split, TokenStore


def log_likelihood(train: list[int], class_of: list[int]) -> float:
    """sum over bigrams (v, w) of log P(c(w) | c(v)) P(w | c(w)), relative frequencies, in nats."""
    bigrams = list(zip(train[:-1], train[1:], strict=True))
    pairs = Counter((class_of[v], class_of[w]) for v, w in bigrams)
    first = Counter(class_of[v] for v, _ in bigrams)
    second = Counter(class_of[w] for _, w in bigrams)
    words = Counter(w for _, w in bigrams)
    return sum(
        math.log(pairs[class_of[v], class_of[w]] / first[class_of[v]]) + math.log(words[w] / second[class_of[w]])
        for v, w in bigrams
    )


@st.composite
def clusterings(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """A tiny text, the class of each word of its vocabulary (some not in the text), and the number of classes."""
    size = draw(st.integers(2, 7))
    number = draw(st.integers(2, 4))
    train = draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=40))
    class_of = draw(st.lists(st.integers(0, number - 1), min_size=size, max_size=size))
    return train, class_of, number


@given(clusterings())
def test_every_gain_is_the_difference_of_the_criterion(case: tuple[list[int], list[int], int]) -> None:
    train, class_of, number = case
    clustering = Clustering(np.array(train), np.array(class_of), number)
    now = log_likelihood(train, class_of)
    for word in range(len(class_of)):
        expected = []
        for group in range(number):
            moved = [*class_of[:word], group, *class_of[word + 1 :]]
            expected.append(log_likelihood(train, moved) - now)
        assert clustering.gains(word) == pytest.approx(expected, abs=1e-9)


@given(clusterings(), st.lists(st.integers(0, 6), max_size=15))
def test_moves_keep_the_counts_and_never_lower_the_criterion(
    case: tuple[list[int], list[int], int], words: list[int]
) -> None:
    train, class_of, number = case
    clustering = Clustering(np.array(train), np.array(class_of), number)
    last = clustering.criterion()
    for word in words:
        if word < len(class_of):
            moved = clustering.improve(word)
            assert (clustering.criterion() > last) == moved
            last = clustering.criterion()
            assert last == pytest.approx(log_likelihood(train, clustering.class_of.tolist()) / (len(train) - 1))


def test_what_is_learnt_is_a_local_optimum(tiny_store: TokenStore) -> None:
    train, size = tiny_store["train"], tiny_store.size
    class_of, passes = learn(train, size, 7, tolerance=0)
    criteria = [record["criterion"] for record in passes]
    assert criteria == sorted(criteria) and criteria[-1] > criteria[0]
    assert passes[-1]["moved"] == 0
    assert criteria[-1] == pytest.approx(log_likelihood(train.tolist(), class_of.tolist()) / (len(train) - 1))
    clustering = Clustering(train, class_of, 7)
    assert max(clustering.gains(word).max() for word in range(size)) <= LEAST_GAIN
    assert set(class_of[tiny_store.train_counts > 0].tolist()) == set(range(7))


def test_two_kinds_of_words_by_hand() -> None:
    """Words 0 and 1 take turns with 2 and 3, so that the class is certain and the word one of two: log 2 a token."""
    train = np.array([0, 2, 0, 3, 1, 2, 1, 3] * 4 + [0])
    class_of, passes = learn(train, 4, 2)
    assert class_of[0] == class_of[1] != class_of[2] == class_of[3]
    assert passes[-1]["criterion"] == pytest.approx(-math.log(2))


@pytest.mark.parametrize("number", [2, 5])
def test_unseen_words_join_the_merged_symbol(number: int, build_store: Callable[..., TokenStore]) -> None:
    # The words in q are merged; "late" never occurs in train.
    text = " ".join(f"the cat sees a dog . q{i} the dog finds a cat . " for i in range(8))
    store = build_store(f"{text} the late late late cat", Split(len(text.split()), 2), 9)
    (late,) = np.flatnonzero(store.train_counts == 0)
    assert store.words[late] == "late" and store.train_counts[MERGED_ID] > 0
    class_of, _ = learn(store["train"], store.size, number)
    assert class_of[late] == class_of[MERGED_ID]


def test_without_a_merged_symbol_in_train_they_join_the_rarest_word() -> None:
    train = np.array([1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 4])
    class_of, _ = learn(train, 6, 4)
    assert class_of[0] == class_of[5] == class_of[4]


def test_the_same_twice(tiny_store: TokenStore) -> None:
    once, again = (learn(tiny_store["train"], tiny_store.size, 12) for _ in range(2))
    assert (once[0] == again[0]).all() and once[1] == again[1]


@pytest.mark.parametrize("number", [1, 41])
def test_impossible_numbers_of_classes(tiny_store: TokenStore, number: int) -> None:
    seen = np.count_nonzero(tiny_store.train_counts)
    with pytest.raises(UserError, match=f"{number} classes are not possible: .* choose 2 to {seen}"):
        learn(tiny_store["train"], tiny_store.size, number)


def test_the_table_and_its_description(
    tiny_store: TokenStore, build_store: Callable[..., TokenStore], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "classes.tsv"
    arguments = ["learn-classes", "--tokens", str(tiny_store.folder), "--classes", "6", "--output", str(table)]
    assert main(arguments) == 0
    log = capsys.readouterr().err.splitlines()
    assert log[0].startswith("start, -") and log[1].startswith("pass 1: ")
    class_of, description = read_classes(table, tiny_store)
    assert (class_of == learn(tiny_store["train"], tiny_store.size, 6)[0]).all()
    assert table.read_text().splitlines()[1] == f"0\t<rare>\t{class_of[0]}\t{tiny_store.train_counts[0]}"
    assert (description["classes"], description["passes"][0]["pass"]) == (6, 0)
    assert len(log) == len(description["passes"])

    with pytest.raises(UserError, match=r"learnt on other tokens than .* on these"):
        read_classes(table, build_store("a b a c a b", Split(3, 1), 3))
    lines = table.read_text().splitlines()
    lines[1] = lines[1].replace(f"\t{class_of[0]}\t", f"\t{(class_of[0] + 1) % 6}\t")
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match="not the table that its .json describes"):
        read_classes(table, tiny_store)
    table.with_suffix(".json").write_text("{}")
    with pytest.raises(UserError, match=r"classes\.json is damaged, it has no vocabulary"):
        read_classes(table, tiny_store)
    with pytest.raises(UserError, match="cannot be read as word classes"):
        read_classes(tmp_path / "none.tsv", tiny_store)


def test_a_table_of_other_words_is_refused(tiny_store: TokenStore, tmp_path: Path) -> None:
    table = tmp_path / "classes.tsv"
    write_classes(tiny_store, 6, table)
    text = table.read_text(encoding="utf-8")
    other_count = text.rsplit("\t", 1)[0] + "\t0\n"
    for damaged in (text.replace("\n3\t", "\n33\t"), text.replace("\tcat\t", "\tcow\t"), other_count):
        assert damaged != text
        table.write_text(damaged, encoding="utf-8")
        with pytest.raises(UserError, match="does not hold the words of .* in their order"):
            read_classes(table, tiny_store)
    table.write_bytes(b"\xff" * 10_000 + text.encode())
    with pytest.raises(UserError, match="cannot be read as word classes") as error:
        read_classes(table, tiny_store)
    assert len(str(error.value)) < 500


def test_passes_end(tiny_store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "MAX_PASSES", 2)
    assert [record["pass"] for record in learn(tiny_store["train"], tiny_store.size, 7, tolerance=0)[1]] == [0, 1, 2]
    monkeypatch.setattr(classes, "TOLERANCE", 10)
    write_classes(tiny_store, 7, tmp_path / "classes.tsv")
    assert json.loads((tmp_path / "classes.json").read_text())["tolerance"] == 10
