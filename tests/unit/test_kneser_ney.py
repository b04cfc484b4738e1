"""Modified Kneser-Ney through KenLM, against an implementation of its own in a few lines of plain Python."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kenlm_tools import require_lmplz
from synthetic import all_scores

from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.files import description_path
from nplm2003.ngram import kneser_ney
from nplm2003.ngram.kneser_ney import FALLBACK_DISCOUNTS, KneserNey, estimate, natural
from nplm2003.scoring import SPLITS, Scores
from nplm2003.vocabulary import Split, TokenStore

Gram = tuple[Any, ...]


class Reference:
    """Interpolated modified Kneser-Ney (Chen and Goodman 1999, equations 12 to 17) with given discounts."""

    def __init__(self, train: list[int], order: int, discounts: dict[int, list[float]], words: int) -> None:
        padded = ["<s>", *train, "</s>"]
        grams = {n: [tuple(padded[i : i + n]) for i in range(len(padded) - n + 1)] for n in range(1, order + 2)}
        # The highest order has counts; below it a gram counts the words it was seen after, but what begins the text,
        # which has nothing before it.
        self.counts: dict[int, Counter[Gram]] = {order: Counter(grams[order])}
        for n in range(1, order):
            self.counts[n] = Counter(gram[1:] for gram in set(grams[n + 1]))
            self.counts[n].update(gram for gram in grams[n] if n > 1 and gram[0] == "<s>")
        self.order, self.discounts, self.words = order, discounts, words
        self.after: dict[Gram, list[int]] = {}
        for counts in self.counts.values():
            for gram, count in counts.items():
                self.after.setdefault(gram[:-1], []).append(count)

    def discount(self, n: int, count: int) -> float:
        return self.discounts[n][min(count, 3) - 1] if count else 0.0

    def probability(self, context: Gram, word: Any) -> float:
        context = context[-(self.order - 1) :]
        shorter = self.probability(context[1:], word) if context else 1 / self.words
        after, n = self.after.get(context), len(context) + 1
        if not after:
            return shorter
        count = self.counts[n][(*context, word)]
        back_off = sum(self.discount(n, other) for other in after)
        return (count - self.discount(n, count) + back_off * shorter) / sum(after)


@pytest.fixture(scope="module")
def lmplz() -> Path:
    return require_lmplz()


@pytest.fixture(scope="module")
def store(build_store: Callable[..., TokenStore]) -> TokenStore:
    """Train ends in its frequent word 1; word 6 occurs in test alone."""
    draw = np.random.default_rng(0)
    words = ["the", "a", "cat", "dog", "sat"]
    text = " ".join(words[i] for i in draw.choice(5, size=400, p=[0.4, 0.3, 0.15, 0.1, 0.05]))
    return build_store(f"{text} the {text} unseen the cat", Split(401, 380, 23), 7)


@pytest.fixture(scope="module")
def closed(build_store: Callable[..., TokenStore]) -> TokenStore:
    """Every word of V occurs in train."""
    return build_store("a b a c b a a b c d a e b c a d d a c e a b c a e d b", Split(18, 5, 4), 5)


def estimated(store: TokenStore, order: int, lmplz: Path, folder: Path) -> tuple[KneserNey, dict[str, Any]]:
    description = estimate(store, order, lmplz, folder / "model.arpa")
    return KneserNey(folder / "model.arpa", store), description


def reference(store: TokenStore, order: int, description: dict[str, Any]) -> Reference:
    train = store["train"].tolist()
    # lmplz shares what unigrams leave among at least the types it saw, </s> and <unk>.
    shares = max(description["vocab_pad"], len(set(train)) + 2)
    return Reference(train, order, description["discounts"], shares)


def sample_contexts(store: TokenStore, order: int) -> list[np.ndarray]:
    """No context, contexts of the splits, the end of train, contexts that never occur, and unseen words."""
    draw = np.random.default_rng(order)
    length = order - 1
    chosen = [store["train"][:0], store["train"][:1], store.history("valid", length), store["train"][-1:]]
    for split in ("train", "valid"):
        chosen += [store[split][i : i + length] for i in draw.integers(0, len(store[split]) - length + 1, 5)]
    chosen += [draw.integers(0, store.size, length) for _ in range(5)]
    return [*chosen, np.full(length, store.size - 1)]


def test_natural_logarithms() -> None:
    assert natural(np.float32([0, -1, -3])) == pytest.approx([0, math.log(0.1), math.log(0.001)])
    assert natural(np.float32([-1])).dtype == np.float64


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("which", ["store", "closed"])
@pytest.mark.parametrize("negligible", [0.0, 1.0])
def test_equals_the_reference(
    which: str,
    order: int,
    negligible: float,
    lmplz: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kneser_ney, "NEGLIGIBLE", negligible)
    store: TokenStore = request.getfixturevalue(which)
    model, description = estimated(store, order, lmplz, tmp_path)
    expected = reference(store, order, description)
    seen = set(store["train"].tolist())
    for context in sample_contexts(store, order):
        key = tuple(context.tolist())
        words = [word if word in seen else "<unk>" for word in range(store.size)]
        values = np.array([expected.probability(key, word) for word in words])
        reserved = sum(expected.probability(key, symbol) for symbol in model.reserved)
        assert model.reserved_mass(context) == pytest.approx(reserved, rel=1e-4)
        if negligible == 0.0 or (key and key[-1] == store["train"][-1]):
            values /= 1 - reserved
        assert model.distribution(context) == pytest.approx(values, rel=1e-4)


@pytest.mark.parametrize("order", [2, 4, 6])
@pytest.mark.parametrize("which", ["store", "closed"])
def test_sums_to_one(which: str, order: int, lmplz: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store: TokenStore = request.getfixturevalue(which)
    model, _ = estimated(store, order, lmplz, tmp_path)
    assert model.reserved == (("</s>",) if which == "store" else ("</s>", "<unk>"))
    assert model.reserved_mass(store["train"][:0]) > 0.001  # not to be left alone: the text is short
    for context in sample_contexts(store, order):
        assert model.distribution(context).sum() == pytest.approx(1, abs=1e-5)


def test_discounts_by_hand(store: TokenStore, lmplz: Path, tmp_path: Path) -> None:
    """Chen and Goodman's closed form for the highest order: Y = n1 / (n1 + 2 n2), D_i = i - (i + 1) Y n_(i+1) / n_i."""
    _, description = estimated(store, 4, lmplz, tmp_path)
    padded = ["<s>", *store["train"].tolist(), "</s>"]
    counts = Counter(Counter(tuple(padded[i : i + 4]) for i in range(len(padded) - 3)).values())
    y = counts[1] / (counts[1] + 2 * counts[2])
    expected = [i - (i + 1) * y * counts[i + 1] / counts[i] for i in (1, 2, 3)]
    assert description["discounts"][4] == pytest.approx(expected, rel=1e-4)
    assert 4 not in description["fallback_orders"]
    # Every n-gram of every order has a line with a tab.
    (arpa,) = tmp_path.rglob("*.arpa")
    assert description["parameters"] == sum("\t" in line for line in arpa.read_text().splitlines())


def test_fallback_discounts_are_recorded(
    store: TokenStore, lmplz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Five words, all of them frequent: no counts of counts for unigrams.
    _, description = estimated(store, 3, lmplz, tmp_path)
    written = json.loads(description_path(tmp_path / "model.arpa").read_text())
    assert written["fallback"] is True
    assert 1 in written["fallback_orders"]
    assert written["discounts"]["1"] == list(FALLBACK_DISCOUNTS)
    assert "--discount_fallback" in written["command"]
    assert "running it again with fallback discounts" in capsys.readouterr().err
    assert description["vocabulary"] == store.fingerprint


def test_no_fallback_where_discounts_exist(lmplz: Path, tmp_path: Path, build_store: Callable[..., TokenStore]) -> None:
    # Zipf's law over 300 words has types with every small count.
    draw = np.random.default_rng(1)
    shares = 1 / np.arange(1, 301)
    text = " ".join(f"w{i}" for i in draw.choice(300, size=3000, p=shares / shares.sum()))
    _, description = estimated(build_store(text, Split(2500, 250), 150), 2, lmplz, tmp_path)
    assert description["fallback"] is False
    assert description["fallback_orders"] == []
    assert "--discount_fallback" not in description["command"]


def test_scores_are_those_of_the_stream(store: TokenStore, lmplz: Path, tmp_path: Path) -> None:
    model, _ = estimated(store, 3, lmplz, tmp_path)
    before: list[int] = []
    for split in SPLITS:
        ids = store[split].tolist()
        stream, scores = [*before, *ids], all_scores(model.score(split))
        assert len(scores) == len(ids)
        for t in [*range(15), *range(len(ids) - 8, len(ids))]:
            end = len(before) + t
            context = np.array(stream[max(0, end - 2) : end], dtype=np.int64)
            assert scores[t] == pytest.approx(math.log(model.distribution(context)[ids[t]]), abs=1e-6)
        before = ids[-2:]


@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_change_nothing(
    store: TokenStore, lmplz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    model, _ = estimated(store, 4, lmplz, tmp_path / "whole")
    scores = {split: all_scores(model.score(split)) for split in SPLITS}
    monkeypatch.setattr(kneser_ney, "CHUNK", chunk)
    again, _ = estimated(store, 4, lmplz, tmp_path / "in chunks")
    files = [tmp_path / folder / "model.arpa" for folder in ("whole", "in chunks")]
    assert files[0].read_bytes() == files[1].read_bytes()
    for split in SPLITS:
        assert (all_scores(again.score(split)) == scores[split]).all()


def test_commands(
    store: TokenStore, tiny_store: TokenStore, lmplz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, scores = tmp_path / "a model" / "model.arpa", tmp_path / "scores"
    tokens = ["--tokens", str(store.folder)]
    made = ["--order", "3", "--lmplz", str(lmplz), "--output", str(model), "--memory", "64M"]
    assert main(["estimate-kneser-ney", *tokens, *made]) == 0
    scoring = ["--model-file", str(model), "--model", "kneser-ney-3", "--output", str(scores)]
    assert main(["score-kneser-ney", *tokens, *scoring]) == 0
    written = Scores(scores)
    assert (written.model, written.seed, written.vocabulary) == ("kneser-ney-3", 0, store.fingerprint)
    assert written["test"] == pytest.approx(all_scores(KneserNey(model, store).score("test")), abs=1e-5)
    assert sorted(path.name for path in model.parent.iterdir()) == ["model.arpa", "model.json"]

    capsys.readouterr()
    assert main(["score-kneser-ney", "--tokens", str(tiny_store.folder), *scoring]) == 1
    assert "made on other tokens" in capsys.readouterr().err
    model.write_text("no model\n")
    assert main(["score-kneser-ney", *tokens, *scoring]) == 1
    assert "model.arpa is damaged, its checksum is not the one" in capsys.readouterr().err
    with pytest.raises(UserError, match="is no KenLM model"):
        KneserNey(model, store)


@pytest.mark.parametrize("order", [1, 7])
def test_orders_are_refused(store: TokenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], order: int) -> None:
    arguments = ["--order", str(order), "--lmplz", "none", "--output", str(tmp_path / "model.arpa")]
    assert main(["estimate-kneser-ney", "--tokens", str(store.folder), *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"order {order} is not possible" in line
    assert "2 to 6" in line


def test_a_text_shorter_than_the_order(build_store: Callable[..., TokenStore], lmplz: Path, tmp_path: Path) -> None:
    store = build_store("a b a b a", Split(3, 1), 3)
    with pytest.raises(UserError, match="3 tokens, too few for n-grams of order 4"):
        estimate(store, 4, lmplz, tmp_path / "model.arpa")


def test_an_lmplz_that_fails_leaves_nothing(tiny_store: TokenStore, tmp_path: Path) -> None:
    broken = tmp_path / "lmplz"
    with pytest.raises(UserError, match="cannot be run"):
        estimate(tiny_store, 3, broken, tmp_path / "out" / "model.arpa")
    broken.write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(UserError, match="status 1: No space left on device"):
        estimate(tiny_store, 3, broken, tmp_path / "out" / "model.arpa")
    broken.write_text("#!/bin/sh\ncat > /dev/null\nkill -9 $$\n")
    with pytest.raises(UserError, match="status -9: it says nothing"):
        estimate(tiny_store, 3, broken, tmp_path / "out" / "model.arpa")
    # One that ends well, but writes half a model, or none at all.
    for garbage in ("", "\\\\data\\\\\\nngram 1=3\\n", "no model\\n\\\\end\\\\\\n"):
        broken.write_text(f"#!/bin/sh\ncat > /dev/null\nfor last; do :; done\nprintf '{garbage}' > \"$last\"\n")
        with pytest.raises(UserError, match="wrote no whole model of order 3"):
            estimate(tiny_store, 3, broken, tmp_path / "out" / "model.arpa")
    assert list((tmp_path / "out").iterdir()) == []
