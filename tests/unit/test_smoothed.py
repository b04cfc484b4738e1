"""Older smoothing of n-grams: answers by hand, NLTK as a second implementation, and sums to 1 in any context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import all_scores

from nplm2003.cli import main
from nplm2003.ngram import SMOOTHED_KINDS, counts
from nplm2003.ngram.counts import NgramCounts
from nplm2003.ngram.smoothed import (
    PARAMETERS,
    SmoothedNgram,
    closed_form,
    counts_of_counts,
    estimate,
    estimate_discounts,
    good_turing,
)
from nplm2003.scoring import SPLITS, Scores
from nplm2003.vocabulary import TokenStore

# T = 6, |V| = 4, word 0 never occurs. Bigrams: 12 twice, 21, 13, 31 once; trigrams: 121, 213, 131, 312 once.
TRAIN = np.array([1, 2, 1, 3, 1, 2], dtype=np.uint16)


def model(kind: str, order: int = 2, train: Any = TRAIN, size: int = 4, **parameters: Any) -> SmoothedNgram:
    return SmoothedNgram(kind, NgramCounts(np.asarray(train, dtype=np.uint16), size, order), parameters)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    found = NgramCounts(TRAIN, 4, 3)
    assert found.counts[1].tolist() == [0, 3, 2, 1, 0]
    # By rank: 12, 13, 21, 31, and those that never occur.
    assert found.counts[2].tolist() == [2, 1, 1, 1, 0]
    assert found.followed[1].tolist() == [0, 3, 1, 1, 0]  # the last 2 is not followed
    assert found.followed[2].tolist() == [1, 1, 1, 1, 0]
    assert found.followers[0].tolist() == [3, 0] and found.followers[1].tolist() == [0, 2, 1, 1, 0]
    assert found.context[2].tolist() == [1, 1, 2, 3] and found.shorter[2].tolist() == [2, 3, 1, 1]
    # 121, 131, 213, 312: their last two words are 21, 31, 13, 12.
    assert found.shorter[3].tolist() == [2, 3, 1, 0]
    assert found.find(2, np.array([1, 3, 4]), np.array([3, 3, 1])).tolist() == [1, 4, 4]


def test_maximum_likelihood_by_hand() -> None:
    trigram = model("maximum-likelihood", 3)
    assert trigram.distribution(np.array([1, 2])).tolist() == [0, 1, 0, 0]
    # Nothing follows 32, but 2 was followed by 1; nothing follows 0; nothing stands before the stream.
    assert trigram.distribution(np.array([3, 2])).tolist() == [0, 1, 0, 0]
    for context in ([2, 0], [4, 4], []):
        assert trigram.distribution(np.array(context, dtype=int)) == pytest.approx([0, 3 / 6, 2 / 6, 1 / 6])


def test_add_k_by_hand() -> None:
    trigram = model("add-k", 3, k=0.5)
    assert trigram.distribution(np.array([1, 2])) == pytest.approx([0.5 / 3, 1.5 / 3, 0.5 / 3, 0.5 / 3])
    assert trigram.distribution(np.array([3, 1])) == pytest.approx([0.5 / 3, 0.5 / 3, 1.5 / 3, 0.5 / 3])
    assert trigram.distribution(np.array([3, 3])) == pytest.approx([0.5 / 3, 1.5 / 3, 0.5 / 3, 0.5 / 3])  # that of 3
    assert trigram.distribution(np.array([0, 0])) == pytest.approx([0.5 / 8, 3.5 / 8, 2.5 / 8, 1.5 / 8])


def test_absolute_discounting_by_hand() -> None:
    bigram = model("absolute-discounting", discounts=[0.5, 0.4])
    # Unigrams: 2.5, 1.5 and 0.5 of 6 and a quarter of the mass, 3 * 0.5 / 6.
    unigram = np.array([0, 2.5, 1.5, 0.5]) / 6 + 0.25 / 4
    assert bigram.distribution(np.array([0])) == pytest.approx(unigram)
    # After 1: 2 twice and 3 once, two different words.
    assert bigram.distribution(np.array([1])) == pytest.approx(np.array([0, 0, 1.6, 0.6]) / 3 + 0.8 / 3 * unigram)


def test_katz_by_hand() -> None:
    ratios = [0.5, 0.75, 0.8, 0.9, 0.95]
    bigram = model("katz", discounts=[ratios, ratios])
    # Unigrams: 3, 2, 1 times 0.8, 0.75, 0.5; word 0 has the rest, as it alone has not been seen.
    unigram = np.array([6 - 2.4 - 1.5 - 0.5, 2.4, 1.5, 0.5]) / 6
    assert bigram.distribution(np.array([0])) == pytest.approx(unigram)
    # After 1: 2 times 0.75, 1 times 0.5; words 0 and 1 share 1 of 3.
    left = unigram * [1, 1, 0, 0]
    expected = np.array([0, 0, 1.5, 0.5]) / 3 + left / left.sum() / 3
    assert bigram.distribution(np.array([1])) == pytest.approx(expected)


def test_katz_adds_one_where_nothing_would_be_left() -> None:
    # After 1 came 2 alone, six times: no discount. 1 is added to the 6, and words 0 and 1 share it.
    bigram = model("katz", train=[1, 2] * 6, size=3, discounts=[[0.5] * 5] * 2)
    unigram = bigram.distribution(np.array([0]))
    # The same with the unigrams: 6 and 6 of 12, and 1 is added.
    assert unigram == pytest.approx([1 / 13, 6 / 13, 6 / 13])
    assert bigram.distribution(np.array([1])) == pytest.approx([1 / 7 * 1 / 7, 1 / 7 * 6 / 7, 6 / 7])


def test_katz_discounts_nothing_where_every_word_was_seen() -> None:
    bigram = model("katz", train=[0, 0, 1, 0, 1], size=2, discounts=[[0.5] * 5] * 2)
    assert bigram.distribution(np.array([0])) == pytest.approx([1 / 3, 2 / 3])
    # After 1 came 0 alone; 1 has all that is left.
    assert bigram.distribution(np.array([1])) == pytest.approx([1 / 2, 1 / 2])


def test_discounts_by_hand() -> None:
    assert closed_form([40, 10, 1, 1, 1, 1]) == pytest.approx(40 / 60)
    assert closed_form([40, 0, 1, 1, 1, 1]) is closed_form([0, 4, 1, 1, 1, 1]) is None
    # x = 6 * 2 / 48; r* = 2 * 18 / 48, 3 * 9 / 18, 4 * 6 / 9, 5 * 4 / 6, 6 * 2 / 4, each to be divided by r.
    expected = [(share - 1 / 4) / (3 / 4) for share in (3 / 4, 3 / 4, 8 / 9, 5 / 6, 3 / 5)]
    assert good_turing([48, 18, 9, 6, 4, 2]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "numbers",
    [
        [48, 18, 0, 6, 4, 2],  # none seen three times
        [10, 10, 9, 8, 7, 6],  # 6 n(6) is above n(1)
        [48, 30, 9, 6, 4, 2],  # more seen once after than before
        [0] * 6,
    ],
)
def test_good_turing_gives_way_to_the_closed_form(numbers: list[int]) -> None:
    assert good_turing(numbers) is None
    found = estimate_discounts("katz", [numbers, [48, 18, 9, 6, 4, 2]])
    amount = closed_form(numbers) or 0.5
    assert found["discounts"][0] == pytest.approx([1 - amount / r for r in range(1, 6)])
    assert found["fallback_orders"] == [1]


def test_counts_of_counts_by_hand() -> None:
    found = NgramCounts(TRAIN, 4, 3)
    assert [counts_of_counts(found, n) for n in (1, 2, 3)] == [
        [1, 1, 1, 0, 0, 0],
        [3, 1, 0, 0, 0, 0],
        [4, 0, 0, 0, 0, 0],
    ]


# --- properties ------------------------------------------------------------------------------------------------------

texts = st.lists(st.integers(0, 4), min_size=4, max_size=60)


@settings(deadline=None, max_examples=60)
@given(texts, st.sampled_from(SMOOTHED_KINDS), st.integers(2, 4), st.data())
def test_sums_to_one_in_any_context(train: list[int], kind: str, order: int, data: st.DataObject) -> None:
    found = NgramCounts(np.array(train), 6, order)
    parameters: dict[str, Any] = {"k": data.draw(st.floats(1e-6, 10))}
    if "discounts" in PARAMETERS[kind]:
        parameters = estimate_discounts(kind, [counts_of_counts(found, n) for n in range(1, order + 1)])
    smoothed = SmoothedNgram(kind, found, parameters)
    inside = data.draw(st.integers(0, len(train) - order + 1))
    any_words = data.draw(st.lists(st.integers(0, 6), min_size=order - 1, max_size=order - 1))
    for context in (train[inside : inside + order - 1], any_words, any_words[1:]):
        probabilities = smoothed.distribution(np.array(context, dtype=int))
        assert probabilities.sum() == pytest.approx(1, abs=1e-9)
        assert (probabilities >= 0).all()
        assert kind == "maximum-likelihood" or (probabilities > 0).all()


@settings(deadline=None, max_examples=15)
@given(st.lists(st.sampled_from("abcde"), min_size=5, max_size=60), st.integers(2, 3), st.floats(0.01, 2))
def test_equals_nltk(text: list[str], order: int, k: float) -> None:
    from nltk.lm import MLE, AbsoluteDiscountingInterpolated, Lidstone, Vocabulary
    from nltk.util import everygrams

    words = [*"abcdef", "<UNK>"]  # NLTK adds the last itself
    train = [words.index(word) for word in text]
    discount = min(k, 0.9)
    ours = {
        "mle": model("maximum-likelihood", order, train, 7),
        "lidstone": model("add-k", order, train, 7, k=k),
        # NLTK discounts no unigrams.
        "absolute": model("absolute-discounting", order, train, 7, discounts=[0.0] + [discount] * (order - 1)),
    }
    theirs = {
        "mle": MLE(order, vocabulary=Vocabulary(words[:-1])),
        "lidstone": Lidstone(k, order, vocabulary=Vocabulary(words[:-1])),
        "absolute": AbsoluteDiscountingInterpolated(order, discount=discount, vocabulary=Vocabulary(words[:-1])),
    }
    for each in theirs.values():
        each.fit([list(everygrams(text, max_len=order))])
    for context in {tuple(text[i : i + order - 1]) for i in range(len(text) - order + 1)}:
        for name, reference in theirs.items():
            expected = [reference.score(word, context) for word in words]
            assert ours[name].distribution(np.array([words.index(w) for w in context])) == pytest.approx(expected)


def test_k_is_the_best_on_validation(tiny_store: TokenStore) -> None:
    found = NgramCounts(tiny_store["train"], tiny_store.size, 3)
    chosen = estimate("add-k", found, tiny_store)
    valid = {
        k: -all_scores(SmoothedNgram("add-k", found, {"k": k}).score(tiny_store, "valid")).mean()
        for k in (chosen["k"], 0.8 * chosen["k"], 1.25 * chosen["k"])
    }
    assert valid[chosen["k"]] == pytest.approx(chosen["valid_nats"])
    assert min(valid, key=lambda k: valid[k]) == chosen["k"]


@pytest.mark.parametrize("kind", SMOOTHED_KINDS)
def test_scores_are_those_of_the_stream(kind: str, tiny_store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    found = NgramCounts(tiny_store["train"], tiny_store.size, 3)
    smoothed = SmoothedNgram(kind, found, estimate(kind, found, tiny_store))
    before = [tiny_store.size, tiny_store.size]
    for split in SPLITS:
        ids = tiny_store[split].tolist()
        stream, scores = [*before, *ids], all_scores(smoothed.score(tiny_store, split))
        assert len(scores) == len(ids)
        for t in [*range(20), len(ids) - 1]:
            probability = smoothed.distribution(np.array(stream[t : t + 2]))[stream[t + 2]]
            assert np.exp(scores[t]) == pytest.approx(probability)
        before = ids[-2:]
        with monkeypatch.context() as patched:
            patched.setattr(counts, "CHUNK", 7)
            assert (all_scores(smoothed.score(tiny_store, split)) == scores).all()


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SMOOTHED_KINDS)
def test_commands(kind: str, tiny_store: TokenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens, file, scores = str(tiny_store.folder), tmp_path / "smoothing.json", tmp_path / "scores"
    estimating = ["estimate-smoothed", "--tokens", tokens, "--kind", kind, "--output", str(file), "--order"]
    scoring = ["score-smoothed", "--tokens", tokens, "--smoothing", str(file), "--model", kind, "--output", str(scores)]
    assert main([*estimating, "3"]) == 0
    written = json.loads(file.read_text())
    assert (written["kind"], written["order"], len(written["counts_of_counts"])) == (kind, 3, 3)
    assert main(scoring) == 0
    result = Scores(scores)
    assert (result.model, result.seed, result.vocabulary) == (kind, 0, tiny_store.fingerprint)
    evaluation = tmp_path / "evaluation.json"
    assert main(["evaluate", "--tokens", tokens, "--scores", str(scores), "--output", str(evaluation)]) == 0
    test = json.loads(evaluation.read_text())["perplexity"]["test"]
    if kind == "maximum-likelihood":
        assert result.impossible and np.isneginf(result["test"]).any() and np.isfinite(result["train"]).all()
        assert test == "+infinity"
        return
    assert np.isfinite(result["test"]).all() and test < 40
    if kind == "add-k":
        assert np.mean(result["valid"], dtype=np.float64) == pytest.approx(-written["valid_nats"], abs=1e-6)

    capsys.readouterr()
    for damage, said in (
        ({"k": -1.0, "discounts": []}, "k = -1.0 is not above 0" if kind == "add-k" else "the discounts are not 3"),
        ({"k": "x", "discounts": "x"}, "its k is 'x'" if kind == "add-k" else "its discounts is 'x'"),
        ({"order": 1}, "order 1 has no context"),
        ({"order": 9000}, "train has 2000 tokens, too few for order 9000"),
    ):
        file.write_text(json.dumps({**written, **damage}))
        assert main(scoring) == 1
        err = capsys.readouterr().err
        assert said in err and err.count("\n") == 1, err
    assert main([*estimating, "1"]) == 1
    assert "order 1 has no context; choose an order of 2 or more" in capsys.readouterr().err


def test_a_text_that_repeats_train_has_a_finite_perplexity() -> None:
    bigram = model("maximum-likelihood")
    # 1 2 1 3: 3/6 * 2/3 * 1 * 1/3; the word before the stream is |V|.
    scores = bigram.probabilities(np.array([4, 1, 2, 1, 3]))
    assert scores == pytest.approx([3 / 6, 2 / 3, 1, 1 / 3])
    assert bigram.probabilities(np.array([1, 1, 0])).tolist() == [0, 0]
