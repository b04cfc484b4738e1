"""The interpolated trigram and its EM: answers by hand, a brute-force count, and properties of any text."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import all_scores

from nplm2003 import em
from nplm2003.cli import main
from nplm2003.ngram import counts as counting
from nplm2003.ngram import interpolated
from nplm2003.ngram.interpolated import InterpolatedTrigram, TrigramCounts
from nplm2003.scoring import SPLITS, Scores
from nplm2003.vocabulary import TokenStore

# T = 6, |V| = 4, word 0 never occurs. Bigrams: 12 twice, 21, 13, 31 once; trigrams: 121, 213, 131, 312 once.
TRAIN = np.array([1, 2, 1, 3, 1, 2], dtype=np.uint16)


def arrays(*values: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array([value]) for value in values)


@pytest.mark.parametrize(
    ("trigram", "expected"),
    [
        # 2 is followed by something once (the last 2 is not), 12 as well.
        ((1, 2, 1), (1 / 4, 3 / 6, 1 / 1, 1 / 1)),
        ((2, 1, 2), (1 / 4, 2 / 6, 2 / 3, 0 / 1)),
        ((3, 1, 3), (1 / 4, 1 / 6, 1 / 3, 0 / 1)),
        ((1, 2, 0), (1 / 4, 0, 0, 0)),
        # Nothing follows 0: p2 is p1, and p3 is p2.
        ((2, 0, 1), (1 / 4, 3 / 6, 3 / 6, 3 / 6)),
        # Nothing follows 32, but 2 was followed: p3 is p2.
        ((3, 2, 1), (1 / 4, 3 / 6, 1, 1)),
        # The first token of train: 4 = |V| stands before it.
        ((4, 4, 1), (1 / 4, 3 / 6, 3 / 6, 3 / 6)),
    ],
)
def test_estimates_by_hand(trigram: tuple[int, int, int], expected: tuple[float, ...]) -> None:
    counts = TrigramCounts(TRAIN, 4)
    assert counts.probabilities(*arrays(*trigram))[0] == pytest.approx(expected)


def test_parameters_are_the_n_grams_that_occur() -> None:
    ids = TRAIN.tolist()
    seen = [len({tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)}) for n in (1, 2, 3)]
    assert TrigramCounts(TRAIN, 4).parameters == sum(seen)


def test_bins_by_hand() -> None:
    counts = TrigramCounts(TRAIN, 4)
    # ceil(-log((1 + freq) / 6)): freq 2 -> log 2 = 0.69, freq 1 -> log 3 = 1.10, freq 0 -> log 6 = 1.79.
    u, v = np.array([1, 2, 3, 4]), np.array([2, 1, 3, 4])
    assert counts.bins(u, v).tolist() == [1, 2, 2, 2]
    assert counts.number_of_bins == 3
    # The paper's T: bins 0 to 14 on Brown's 800,000 training tokens.
    assert TrigramCounts(np.zeros(800_000, dtype=np.uint16), 2).number_of_bins == 15


def test_one_iteration_of_em_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(em, "MAX_ITERATIONS", 1)
    # Bin 0: posteriors (2/3, 1/3) and (1/4, 3/4). Bin 1: (1, 0). Nothing falls into bins 2 and 3.
    likelihoods = np.array([[0.5, 0.25], [0.1, 0.3], [0.2, 0.0]])
    weights, history = em.fit_weights(likelihoods, np.array([0, 0, 1]), 4)
    assert weights[0] == pytest.approx([11 / 24, 13 / 24])
    assert weights[1:].tolist() == [[1, 0]] * 3
    after = [11 / 24 * 0.5 + 13 / 24 * 0.25, 11 / 24 * 0.1 + 13 / 24 * 0.3, 0.2]
    assert history == pytest.approx([np.log([0.375, 0.2, 0.1]).mean(), np.log(after).mean()])


def test_em_finds_the_maximum() -> None:
    # Three quarters of the tokens are certain under one component, the others under the other: weights 3/4 and 1/4.
    likelihoods = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    weights, history = em.fit_weights(likelihoods, np.zeros(4, dtype=int), 1)
    assert weights[0] == pytest.approx([0.75, 0.25])
    assert history[-1] == pytest.approx((3 * math.log(0.75) + math.log(0.25)) / 4)


@settings(deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(
            st.tuples(st.integers(0, 2), st.lists(st.floats(1e-6, 1), min_size=k, max_size=k)), min_size=1, max_size=30
        )
    )
)
def test_em_never_lowers_the_likelihood(tokens: list[tuple[int, list[float]]]) -> None:
    bins = np.array([q for q, _ in tokens])
    weights, history = em.fit_weights(np.array([row for _, row in tokens]), bins, 3)
    assert all(after >= before - 1e-12 for before, after in zip(history, history[1:], strict=False))
    assert weights.sum(axis=1) == pytest.approx(np.ones(3))
    assert (weights >= 0).all()


def test_no_held_out_tokens() -> None:
    with pytest.raises(ValueError, match="no held-out tokens"):
        em.fit_weights(np.empty((0, 2)), np.empty(0, dtype=int), 1)


texts = st.lists(st.integers(0, 4), min_size=1, max_size=40)


@settings(deadline=None)
@given(texts, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=10))
def test_counts_equal_brute_force(train: list[int], trigrams: list[tuple[int, int, int]]) -> None:
    counts = TrigramCounts(np.array(train, dtype=np.uint16), 5)
    grams = [Counter(zip(*(train[i:] for i in range(n)), strict=False)) for n in (1, 2, 3)]

    def ratio(context: tuple[int, ...], word: int, otherwise: float) -> float:
        followed = sum(n for gram, n in grams[len(context)].items() if gram[:-1] == context)
        return grams[len(context)][(*context, word)] / followed if followed else otherwise

    for u, v, w in trigrams:
        p1 = grams[0][(w,)] / len(train)
        p2 = ratio((v,), w, p1)
        assert counts.probabilities(*arrays(u, v, w))[0] == pytest.approx([1 / 5, p1, p2, ratio((u, v), w, p2)])
        expected = math.ceil(-math.log((1 + grams[1][(u, v)]) / len(train)))
        assert counts.bins(*arrays(u, v)).tolist() == [expected]


@settings(deadline=None)
@given(texts, st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_sums_to_one_in_any_context(train: list[int], u: int, v: int, seed: int) -> None:
    counts = TrigramCounts(np.array(train, dtype=np.uint16), 5)
    weights = np.random.default_rng(seed).dirichlet(np.ones(4), size=counts.number_of_bins)
    assert InterpolatedTrigram(counts, weights).distribution(u, v).sum() == pytest.approx(1, abs=1e-12)


def fitted(store: TokenStore) -> InterpolatedTrigram:
    counts = TrigramCounts(store["train"], store.size)
    return InterpolatedTrigram(counts, interpolated.estimate(counts, store)[0])


def test_scores_are_those_of_the_stream(tiny_store: TokenStore) -> None:
    model = fitted(tiny_store)
    before = [tiny_store.size, tiny_store.size]
    for split in SPLITS:
        ids = tiny_store[split].tolist()
        stream, scores = [*before, *ids], all_scores(model.score(tiny_store, split))
        assert len(scores) == len(ids)
        for t in [*range(20), len(ids) - 1]:
            u, v, w = stream[t : t + 3]
            assert scores[t] == pytest.approx(math.log(model.distribution(u, v)[w]))
        before = ids[-2:]


@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_change_nothing(tiny_store: TokenStore, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    model = fitted(tiny_store)
    scores = {split: all_scores(model.score(tiny_store, split)) for split in SPLITS}
    monkeypatch.setattr(counting, "CHUNK", chunk)
    again = fitted(tiny_store)
    assert (again.weights == model.weights).all()
    for split in SPLITS:
        assert (all_scores(again.score(tiny_store, split)) == scores[split]).all()


def test_commands(tiny_store: TokenStore, own_store: TokenStore, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    tokens, weights, scores = str(tiny_store.folder), tmp_path / "weights.json", tmp_path / "scores"
    assert main(["estimate-interpolated", "--tokens", tokens, "--output", str(weights)]) == 0
    scoring = ["--weights", str(weights), "--model", "trigram", "--output", str(scores)]
    assert main(["score-interpolated", "--tokens", tokens, *scoring]) == 0
    written = json.loads(weights.read_text())
    assert sum(entry["valid_tokens"] for entry in written["bins"]) == len(tiny_store["valid"])
    result = Scores(scores)
    assert (result.model, result.seed, result.vocabulary) == ("trigram", 0, tiny_store.fingerprint)
    # EM's own account of the validation tokens is the score file's.
    assert written["history"][-1] == pytest.approx(np.mean(result["valid"], dtype=np.float64), abs=1e-6)

    statistics = own_store.statistics | {"fingerprint": "another"}
    (own_store.folder / "corpus.json").write_text(json.dumps(statistics))
    capsys.readouterr()
    assert main(["score-interpolated", "--tokens", str(own_store.folder), *scoring]) == 1
    assert "made on other tokens" in capsys.readouterr().err
    weights.write_text("{")
    assert main(["score-interpolated", "--tokens", tokens, *scoring]) == 1
    assert "weights.json cannot be read" in capsys.readouterr().err
