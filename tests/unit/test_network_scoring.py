"""Scores of a network: a distribution over V, the forward pass of the model, whatever the batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import all_scores

from nplm2003.errors import UserError
from nplm2003.evaluation import perplexity
from nplm2003.neural import outputs
from nplm2003.neural.data import Windows
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.scoring import SHAPE, load_network, log_probabilities, score
from nplm2003.scoring import SPLITS
from nplm2003.vocabulary import Split, TokenStore

SHAPES = [(2, 4, True), (5, 6, False), (3, 0, True)]


def network(store: TokenStore, order: int, hidden: int, direct: bool) -> NeuralLanguageModel:
    """A network whose distributions are far from uniform."""
    torch.manual_seed(order)
    model = NeuralLanguageModel(store.size, order, hidden, 5, direct)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=1.0)
    return model.eval()


def save(model: NeuralLanguageModel, store: TokenStore, path: Path) -> Path:
    values = ("mlp", model.order, model.hidden, model.features, model.direct, {}, "words", store.fingerprint)
    shape = dict(zip(SHAPE, values, strict=True))
    torch.save({"shape": shape, "class_of": None, "weights": model.state_dict()}, path)
    return path


@pytest.mark.parametrize(("order", "hidden", "direct"), SHAPES)
def test_probabilities_sum_to_1_over_the_vocabulary(
    tiny_store: TokenStore, order: int, hidden: int, direct: bool
) -> None:
    model = network(tiny_store, order, hidden, direct)
    contexts = torch.randint(tiny_store.size, (20, order - 1))
    every_word = torch.arange(tiny_store.size)
    for context in contexts:
        scores = log_probabilities(model, context.expand(tiny_store.size, -1), every_word)
        assert float(scores.double().exp().sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("order", "hidden", "direct"), SHAPES)
def test_scores_are_those_of_the_forward_pass(tiny_store: TokenStore, order: int, hidden: int, direct: bool) -> None:
    model = network(tiny_store, order, hidden, direct)
    for split in SPLITS:
        contexts, targets = Windows(tiny_store, split, order)[np.arange(len(tiny_store[split]))]
        expected = model(contexts)[torch.arange(len(targets)), targets].detach()
        scores = all_scores(score(model, tiny_store, split))
        assert scores.dtype == np.float32 and scores.shape == tiny_store[split].shape
        np.testing.assert_allclose(scores, expected.cpu(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_logits_far_apart_are_scored_as_the_forward_pass_does(tiny_store: TokenStore, scale: float) -> None:
    model = network(tiny_store, 3, 4, True)
    model.O.data *= scale
    contexts, targets = Windows(tiny_store, "valid", 3)[np.arange(50)]
    expected = model(contexts).detach()[torch.arange(50), targets]
    assert float(expected.min()) < -scale
    np.testing.assert_allclose(log_probabilities(model, contexts, targets), expected, rtol=1e-5)


@pytest.mark.parametrize("block", [1, 7, 39, 40, 41])
def test_blocks_of_the_vocabulary_never_change_a_score(
    tiny_store: TokenStore, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    model = network(tiny_store, 3, 4, True)
    expected = all_scores(score(model, tiny_store, "test"))
    monkeypatch.setattr(outputs, "BLOCK", block)
    np.testing.assert_allclose(all_scores(score(model, tiny_store, "test")), expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(batch=st.integers(1, 600))
def test_batch_size_never_changes_a_perplexity(tiny_store: TokenStore, batch: int) -> None:
    model = network(tiny_store, 4, 5, True)
    expected = perplexity(all_scores(score(model, tiny_store, "valid", batch=400)))
    assert perplexity(all_scores(score(model, tiny_store, "valid", batch=batch))) == pytest.approx(expected, rel=1e-6)


def test_threads_are_as_many_as_asked_for(tiny_store: TokenStore) -> None:
    model = network(tiny_store, 3, 4, True)
    perplexities = []
    for threads in (2, 1):
        perplexities.append(perplexity(all_scores(score(model, tiny_store, "valid", threads=threads))))
        assert torch.get_num_threads() == threads
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-6)


def test_scoring_is_exact_after_rounder_training(tiny_store: TokenStore) -> None:
    model = network(tiny_store, 3, 4, True)
    expected = all_scores(score(model, tiny_store, "valid"))
    torch.set_float32_matmul_precision("medium")
    assert np.array_equal(all_scores(score(model, tiny_store, "valid")), expected)


def test_a_network_is_loaded_as_it_was_saved(tiny_store: TokenStore, tmp_path: Path) -> None:
    model = network(tiny_store, 3, 4, True)
    loaded = load_network(save(model, tiny_store, tmp_path / "weights.pt"), tiny_store)
    assert not loaded.training
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())


def test_weights_of_another_vocabulary_are_refused(
    tiny_store: TokenStore, build_store: Callable[[str, Split, int], TokenStore], tmp_path: Path
) -> None:
    path = save(network(tiny_store, 3, 4, True), tiny_store, tmp_path / "weights.pt")
    other = build_store("one two three four five six seven", Split(4, 1), 5)
    with pytest.raises(UserError, match="was trained on other tokens than"):
        load_network(path, other)


def broken(path: Path, how: str, model: NeuralLanguageModel, store: TokenStore) -> None:
    """Put something at `path` that is no whole network."""
    save(model, store, path)
    whole = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_bytes(b"these are no weights\n")
    elif how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "other keys":
        torch.save({"state_dict": {}}, path)
    elif how == "a list":
        torch.save([1, 2, 3], path)
    elif how == "other shape":
        model.hidden += 1
        save(model, store, path)
    else:
        # An object that runs code when it is unpickled: torch's safe loading must refuse it.
        torch.save({"shape": Path("x"), "weights": {}}, path)


@pytest.mark.parametrize(
    "how",
    ["missing", "folder", "empty", "text", "truncated", "other keys", "a list", "other shape", "unsafe pickle"],
)
def test_unreadable_weights_are_one_line(tiny_store: TokenStore, tmp_path: Path, how: str) -> None:
    path = tmp_path / "weights.pt"
    broken(path, how, network(tiny_store, 3, 4, True), tiny_store)
    with pytest.raises(UserError) as error:
        load_network(path, tiny_store)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
