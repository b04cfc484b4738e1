"""Features that word2vec starts C with: what they must be, and that training goes on from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nplm2003.neural.preset import Preset
from nplm2003.neural.training import train
from nplm2003.neural.word2vec import DEVIATION, word2vec_features
from nplm2003.vocabulary import Split, TokenStore


def test_features_have_the_scale_of_a_random_start(tiny_store: TokenStore) -> None:
    features = word2vec_features(tiny_store, 5, seed=1).numpy()
    seen = tiny_store.train_counts > 0
    assert features.shape == (tiny_store.size, 5) and features.dtype == np.float32
    assert not features[~seen].any() and features[seen].any(axis=1).all()
    np.testing.assert_allclose(features[seen].mean(axis=0), 0, atol=1e-6)
    assert features[seen].std() == pytest.approx(DEVIATION, rel=1e-4)


def test_a_seed_gives_one_start(tiny_store: TokenStore) -> None:
    one, again, other = (word2vec_features(tiny_store, 5, seed) for seed in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)


def test_words_that_are_used_alike_stand_together(
    build_store: Callable[[str, Split, int], TokenStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two kinds of text that share no word: whatever the draw, each word is nearer to those of its own kind.
    draw = np.random.default_rng(0)
    kinds = (["one", "two", "three", "four"], ["red", "green", "blue", "black"])
    text = " ".join(" ".join(draw.choice(kinds[number % 2], 50)) for number in range(80))
    store = build_store(text, Split(3800, 100), 9)
    monkeypatch.setattr("nplm2003.neural.word2vec.EPOCHS", 20)
    features = word2vec_features(store, 4, seed=1).numpy()
    one, two, red = (features[store.words.index(word)] for word in ("one", "two", "red"))
    assert np.linalg.norm(one - two) < np.linalg.norm(one - red) / 2


def test_a_long_text_is_read_to_its_end(tiny_store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nplm2003.neural.word2vec.LONGEST", 7)
    assert word2vec_features(tiny_store, 5, seed=1)[1:].any(dim=1).sum() == (tiny_store.train_counts[1:] > 0).sum()


def test_training_goes_on_from_them(tiny_store: TokenStore, tmp_path: Path, make_preset: Callable[..., Preset]) -> None:
    shape = {"order": 3, "hidden": 4, "features": 3, "direct": True, "word_features": "word2vec", "seed": 7}
    start = word2vec_features(tiny_store, 3, seed=7)
    for name, rate in (("still", 0.0), ("learnt", 0.01)):
        summary = train(tiny_store, preset=make_preset(rate=rate), output=tmp_path / name, **shape)
        assert summary["word_features"] == "word2vec" and summary["trained_parameters"] == summary["parameters"]
    still, learnt = (torch.from_numpy(np.load(tmp_path / name / "features.npy")) for name in ("still", "learnt"))
    assert torch.equal(still, start) and not torch.equal(learnt, start)
