"""One sentence more in train: updates against autograd, what the trigram gains by hand, controls, and bad input."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from explorer_study import POLICY, TRIGRAM
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm2003.added_sentence import (
    DRAWS,
    PAIRS,
    choose_pair,
    encode,
    learn_sentence,
    network_scores,
    own_rates,
    scrambled,
    trigram_scores,
    unrelated,
)
from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.files import read_json
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.preset import Preset
from nplm2003.ngram.interpolated import InterpolatedTrigram, TrigramCounts
from nplm2003.vocabulary import TokenStore


@pytest.mark.parametrize(("order", "hidden", "direct"), [(2, 4, False), (4, 3, True), (3, 0, True)])
def test_updates_are_gradient_descent_on_the_words_of_the_sentence(
    order: int, hidden: int, direct: bool, make_preset: type[Preset]
) -> None:
    torch.manual_seed(1)
    model, other = (NeuralLanguageModel(12, order, hidden, 3, direct) for _ in range(2))
    other.load_state_dict(model.state_dict())
    ids, rates = np.array([3, 1, 7, 3]), [0.3, 0.1]
    # The windows by hand: the word before the sentence is 5, and merged symbols stand before it.
    stream = [0] * (order - 2) + [5, 3, 1, 7, 3]
    contexts = torch.tensor([stream[i : i + order - 1][::-1] for i in range(4)])
    targets = torch.from_numpy(ids)
    expected = other(contexts)[range(4), targets]
    assert network_scores(model, 5, ids) == pytest.approx(expected.tolist(), abs=1e-6)

    # Whatever the preset, nothing is drawn: no dropout, no noise, no decay.
    preset = make_preset(objective="sampled-softmax", noise_words=5, dropout=0.5, weight_decay=0.1, rate=4.0)
    learn_sentence(model, preset, 5, ids, rates)
    for rate in rates:
        other.zero_grad()
        (-other(contexts)[range(4), targets].sum()).backward()
        with torch.no_grad():
            for parameter in other.parameters():
                parameter -= rate * parameter.grad
    for name, value in other.state_dict().items():
        assert torch.allclose(model.state_dict()[name], value, atol=1e-5), name
    assert sum(network_scores(model, 5, ids)) > float(expected.detach().sum())


def test_fixed_features_stay(make_preset: type[Preset]) -> None:
    model = NeuralLanguageModel(12, 3, 2, 3, True)
    model.C.requires_grad_(False)
    before = model.C.clone()
    learn_sentence(model, make_preset(), 5, np.array([3, 1]), [0.5])
    assert torch.equal(model.C, before)


def test_rates_by_hand(make_preset: type[Preset]) -> None:
    # The mean over 4 examples at rate 8 moves by 2 an example; the cosine of 2 epochs stands at 1/8 and 5/8 of pi.
    cosine = make_preset(reduction="mean", batch=4, rate=8.0, schedule="cosine", epochs_direct=4)
    assert own_rates(cosine, 2, 1000, True) == pytest.approx([1 + math.cos(math.pi / 8), 1 + math.cos(3 * math.pi / 8)])
    # A sum moves by the rate itself; the paper's falls with the examples seen.
    paper = make_preset(rate=1e-3, rate_decay=1e-3)
    assert own_rates(paper, 2, 1000, False) == pytest.approx([1e-3 / 1.5, 1e-3 / 2.5])


def test_the_trigram_gains_by_shared_n_grams_alone(tiny_store: TokenStore) -> None:
    train = tiny_store["train"].astype(np.int64)
    counts = TrigramCounts(train, tiny_store.size)
    weights = np.tile([0.1, 0.2, 0.3, 0.4], (counts.number_of_bins, 1))
    model = InterpolatedTrigram(counts, weights)
    u, v, w = 3, 2, 1
    # By hand, in the formula of section 4.1.
    pairs = list(zip(train, train[1:], strict=False))
    triples = list(zip(train, train[1:], train[2:], strict=False))
    p1 = np.mean(train == w)
    p2 = pairs.count((v, w)) / np.sum(train[:-1] == v)
    p3 = triples.count((u, v, w)) / max(1, sum(triple[:2] == (u, v) for triple in triples)) if (u, v) in pairs else p2
    expected = math.log(0.1 / tiny_store.size + 0.2 * p1 + 0.3 * p2 + 0.4 * p3)
    assert trigram_scores(model, u, np.array([v, w]))[1] == pytest.approx(expected)


# --- controls --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 30), min_size=2, max_size=8), st.integers(0, 1000))
@settings(deadline=None)
def test_controls_keep_words_or_frequencies(words: list[int], seed: int) -> None:
    ids, generator = np.array(words), np.random.default_rng(seed)
    for order in scrambled(ids, 5, generator):
        assert sorted(order) == sorted(ids)
        assert len(set(words)) == 1 or order.tolist() != words
    taken = [*words, 12]
    for sequence in unrelated(ids, taken, 60, 5, generator):
        assert len(sequence) == len(ids) and not set(sequence.tolist()) & {0, *taken}
        assert np.all(np.abs(sequence - ids) <= 10)


def test_a_vocabulary_that_is_too_small_for_controls_is_refused() -> None:
    with pytest.raises(UserError, match="a vocabulary of 4 words has no other words for the controls"):
        unrelated(np.array([1, 2]), [1, 2, 3], 4, 1, np.random.default_rng(0))


# --- sentences -------------------------------------------------------------------------------------------------------


def test_the_pair_is_one_whose_words_are_known(tiny_store: TokenStore) -> None:
    assert choose_pair(tiny_store) == PAIRS[0]  # "walking" is unknown, and no pair is better
    tiny_store = TokenStore(tiny_store.folder)
    tiny_store.words.extend(" ".join(PAIRS[1]).split())
    assert choose_pair(tiny_store) == PAIRS[1]
    tiny_store.words.extend(" ".join(PAIRS[0]).split())
    assert choose_pair(tiny_store) == PAIRS[0]


def test_words_outside_v_become_the_merged_symbol(tiny_store: TokenStore) -> None:
    cat = tiny_store.words.index("cat")
    assert encode("  cat Cat\tcat", tiny_store).tolist() == [cat, 0, cat]
    with pytest.raises(UserError, match=r"the sentence 'cat' has 1 word\(s\): give two or more"):
        encode("cat", tiny_store)


# --- the command -----------------------------------------------------------------------------------------------------


def add(results: Path, output: Path, *more: str) -> int:
    home = results / POLICY
    told = ("--tokens", home / "tokens", "--network", home / "NET5" / "seed1", "--output", output)
    return main(["add-sentence", *map(str, told), *more])


def test_the_command_tells_the_sentence_from_its_controls(explorer_results: Path, tmp_path: Path) -> None:
    weights = str(explorer_results / POLICY / TRIGRAM / "seed0" / "weights.json")
    told = ("--sentence", "the cat sees a dog .", "--other", "every bird finds the house .", "--trigram", weights)
    for name in ("one", "two"):
        assert add(explorer_results, tmp_path / f"{name}.json", *told, "--repeats", "3", "--rate", "0.1") == 0
    found = read_json(tmp_path / "one.json")
    again = read_json(tmp_path / "two.json")
    assert found["sentences"] == again["sentences"]  # the seed draws the controls, and nothing else is drawn
    assert found["rates"] == [0.1] * 3 and found["before"] == "."
    roles = [sentence["role"] for sentence in found["sentences"]]
    assert roles == ["added", "other", *["scrambled"] * DRAWS, *["unrelated"] * DRAWS]
    for sentence in found["sentences"]:
        for kind in ("network", "trigram"):
            for when in ("before", "after"):
                assert len(sentence[kind][when]) == 6 and all(value < 0 for value in sentence[kind][when])

    added = found["sentences"][0]
    for kind in ("network", "trigram"):
        assert sum(added[kind]["after"]) > sum(added[kind]["before"])


def test_without_options_the_rates_are_those_of_the_preset(explorer_results: Path, tmp_path: Path) -> None:
    assert add(explorer_results, tmp_path / "found.json", "--seed", "7") == 0
    found = read_json(tmp_path / "found.json")
    training = read_json(explorer_results / POLICY / "NET5" / "seed1" / "training.json")
    assert found["rates"] == pytest.approx([0.5 / 32] * training["best_epoch"], rel=1e-3)
    assert found["seed"] == 7 and found["sentences"][0]["text"] == PAIRS[0][0].split()
    assert found["sentences"][0]["trigram"] is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--sentence", "the cat"], "--sentence and --other go together"),
        (["--sentence", "the", "--other", "a cat"], "the sentence 'the' has 1 word(s)"),
        (["--sentence", "the cat", "--other", "a cat", "--rate", "1e30"], "diverged"),
        (["--trigram", "none.json"], "none.json cannot be read"),
        (["--network", "nowhere"], "there is no network nowhere"),
    ],
)
def test_bad_input_is_one_line(
    explorer_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert add(explorer_results, tmp_path / "found.json", *more) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "fast"])
def test_a_rate_is_a_number_above_0(
    explorer_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: str
) -> None:
    with pytest.raises(SystemExit):
        add(explorer_results, tmp_path / "found.json", f"--rate={rate}")
    assert "is not a number above 0" in capsys.readouterr().err
