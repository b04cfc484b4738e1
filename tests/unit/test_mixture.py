"""Mixtures of score files: answers by hand and properties."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import in_parts

from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.evaluation import perplexity
from nplm2003.mixture import WEIGHTS, learn, mix, mix_scores, mixture_curve
from nplm2003.scoring import SPLITS, Scores, write_scores
from nplm2003.vocabulary import TokenStore

log_probabilities = st.lists(st.floats(-50, 0), min_size=1, max_size=40)


def made_up(folder: Path, store: TokenStore, seed: int, every: int = 0, **changes: str) -> Scores:
    """Random scores of the tokens of `store`; `every` so many of them has probability 0."""
    draw = np.random.default_rng(seed)
    scores = {split: -draw.exponential(5, size=len(store[split])) for split in SPLITS}
    for values in scores.values() if every else ():
        values[::every] = -math.inf
    write_scores(
        folder,
        in_parts(scores),
        model=f"m{seed}",
        seed=seed,
        vocabulary=changes.get("vocabulary", store.fingerprint),
        provenance={},
        impossible=every > 0,
    )
    return Scores(folder)


def test_by_hand() -> None:
    components = np.log([[0.5, 0.1], [0.2, 0.4]])
    assert np.exp(mix(components, np.array([0.5, 0.5]))) == pytest.approx([0.3, 0.3])
    assert np.exp(mix(components, np.array([0.75, 0.25]))) == pytest.approx([0.4, 0.25])
    assert np.exp(mix(components, np.array([[1.0, 0.0], [0.0, 1.0]]))) == pytest.approx([0.5, 0.4])


def test_no_underflow() -> None:
    components = np.array([[-1000.0, -1001.0], [-2000.0, -1.0]], dtype=np.float32)
    expected = [-1000 + math.log((1 + math.exp(-1)) / 2), -1 + math.log(0.5)]
    assert mix(components, np.array([0.5, 0.5])) == pytest.approx(expected)
    weights, history = learn(components, np.zeros(2, dtype=int), 1)
    assert np.isfinite(weights).all()
    assert np.isfinite(history).all()


def test_a_model_that_gives_some_tokens_probability_0() -> None:
    impossible = -math.inf
    components = np.array([[impossible, math.log(0.4)], [math.log(0.5), math.log(0.1)], [impossible, impossible]])
    assert np.exp(mix(components, np.array([0.5, 0.5]))) == pytest.approx([0.2, 0.3, 0])
    assert np.exp(mix(components, np.array([1.0, 0.0]))) == pytest.approx([0, 0.5, 0])
    # What no model can say is in the mean of none: weights (1 - w, w) make 0.4 w and 0.5 - 0.4 w, best at w = 5 / 8.
    weights, history = learn(components, np.zeros(3, dtype=int), 1)
    assert weights[0] == pytest.approx([3 / 8, 5 / 8], abs=1e-2)
    assert history[-1] == pytest.approx(math.log(0.25), abs=1e-4)
    with pytest.raises(UserError, match="give every token of validation probability 0"):
        learn(components[2:], np.zeros(1, dtype=int), 1)


def test_the_mixture_of_such_a_model_has_a_perplexity(tiny_store: TokenStore, tmp_path: Path) -> None:
    parts = [made_up(tmp_path / "sure", tiny_store, 1), made_up(tmp_path / "not sure", tiny_store, 2, every=3)]
    assert perplexity(parts[1]["test"]) == math.inf
    mixed, _ = mix_scores(tiny_store, parts, "learnt")
    assert perplexity(mixed["test"]) < math.inf
    folders = [text for part in parts for text in ("--component", str(part.folder))]
    output = ["--output", str(tmp_path / "mixed"), "--weights-output", str(tmp_path / "weights.json")]
    arguments = ["--tokens", str(tiny_store.folder), "--weights", "fixed", "--model", "mixed", "--seed", "7"]
    assert main(["mix", *arguments, *folders, *output]) == 0
    assert Scores(tmp_path / "mixed").impossible and np.isfinite(Scores(tmp_path / "mixed")["test"]).all()


@given(log_probabilities, st.floats(0, 1))
def test_a_mixture_of_identical_models_is_the_model(values: list[float], weight: float) -> None:
    components = np.array([values, values]).T
    assert mix(components, np.array([weight, 1 - weight])) == pytest.approx(np.array(values), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_sums_to_one(seed: int, models: int) -> None:
    draw = np.random.default_rng(seed)
    distributions = draw.dirichlet(np.full(30, 0.3), size=models).T
    with np.errstate(divide="ignore"):
        mixed = mix(np.maximum(np.log(distributions), -700), draw.dirichlet(np.ones(models)))
    assert np.exp(mixed).sum() == pytest.approx(1)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_learning_is_in_the_order_of_its_freedom(seed: int) -> None:
    draw = np.random.default_rng(seed)
    components, bins = -draw.exponential(3, size=(200, 3)), draw.integers(0, 4, size=200)
    weights, history = learn(components, np.zeros(200, dtype=int), 1)
    mixed = mix(components, weights[0])
    # What EM says of the likelihood is the likelihood, and it is no lower than that of equal weights.
    assert history[-1] == pytest.approx(mixed.mean())
    assert history[0] == pytest.approx(mix(components, np.full(3, 1 / 3)).mean())
    assert (np.diff(history) >= -1e-12).all()
    per_bin, binned = learn(components, bins, 4)
    assert binned[-1] == pytest.approx(mix(components, per_bin[bins]).mean())
    assert binned[-1] >= history[-1] - 1e-3


def test_curve_ends_at_its_parts() -> None:
    a, b = np.log([0.5, 0.1]), np.log([0.2, 0.4])
    curve = mixture_curve(a, b, [0, 0.5, 1])
    assert curve == pytest.approx([perplexity(b), 1 / 0.35**0.5 / 0.25**0.5, perplexity(a)])


def test_curve_ends_stay_finite_and_exact() -> None:
    # e^-999 is no number of float64, and a float32 score not the logarithm of its exponential.
    a, b = np.array([-1000, -2.7], dtype=np.float32), np.array([-1, -1000.3], dtype=np.float32)
    curve = mixture_curve(a, b, [0, 0.25, 1])
    assert (curve[0], curve[2]) == (perplexity(b), perplexity(a))
    assert curve[1] == pytest.approx(math.exp((1 - math.log(0.75) + float(-a[1]) - math.log(0.25)) / 2), rel=1e-12)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-9, 1, exclude_max=True), st.floats(0.1, 60))
def test_curve_is_the_perplexity_of_the_mixture(seed: int, weight: float, spread: float) -> None:
    draw = np.random.default_rng(seed)
    a, b = -draw.exponential(spread, size=(2, 50)).astype(np.float32)
    expected = perplexity(mix(np.stack([a, b], axis=-1), np.array([weight, 1 - weight])))
    assert mixture_curve(a, b, [weight])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_commands(tiny_store: TokenStore, tmp_path: Path, kind: str) -> None:
    parts = [made_up(tmp_path / f"part {seed}", tiny_store, seed) for seed in (1, 2, 3)]
    folders = [text for part in parts for text in ("--component", str(part.folder))]
    output, weights = tmp_path / "mixed", tmp_path / "weights.json"
    arguments = ["--weights", kind, "--model", "mixed", "--seed", "7", "--output", str(output)]
    tokens = ["--tokens", str(tiny_store.folder)]
    assert main(["mix", *tokens, *folders, *arguments, "--weights-output", str(weights)]) == 0

    written = json.loads(weights.read_text())
    assert written["components"] == [{"model": f"m{seed}", "seed": seed} for seed in (1, 2, 3)]
    assert sum(entry["valid_tokens"] for entry in written["bins"]) == len(tiny_store["valid"])
    # T = 2,000, log T = 7.6: bins 0 to 8.
    assert [entry["bin"] for entry in written["bins"]] == (list(range(9)) if kind == "binned" else [None])
    mixed = Scores(output)
    assert (mixed.model, mixed.seed, mixed.vocabulary) == ("mixed", 7, tiny_store.fingerprint)
    if kind == "fixed":
        assert written["history"] == []
        expected = np.log(np.mean([np.exp(part["test"]) for part in parts], axis=0))
        assert mixed["test"] == pytest.approx(expected, abs=1e-5)
    else:
        assert written["history"][-1] == pytest.approx(mixed["valid"].mean(), abs=1e-5)
        assert written["history"][-1] > written["history"][0]


def test_binned_weights_follow_the_context(tiny_store: TokenStore, tmp_path: Path) -> None:
    # Model 1 knows the tokens whose context is unseen in train (the last bin), model 2 the others.
    from nplm2003.ngram.interpolated import TrigramCounts, context_bins

    counts = TrigramCounts(tiny_store["train"], tiny_store.size)
    last = counts.number_of_bins - 1
    for number in (0, 1):
        scores = {
            split: np.where((context_bins(counts, tiny_store, split) == last) == (number == 0), -1.0, -9.0)
            for split in SPLITS
        }
        kept = in_parts(scores)
        write_scores(tmp_path / str(number), kept, model="m", seed=0, vocabulary=tiny_store.fingerprint, provenance={})
    parts = [Scores(tmp_path / str(number)) for number in (0, 1)]
    mixed, description = mix_scores(tiny_store, parts, "binned")
    assert description["bins"][last]["weights"] == pytest.approx([1, 0], abs=0.01)
    assert mixed["valid"] == pytest.approx(np.full(len(mixed["valid"]), -1), abs=0.01)


def test_refusals(tiny_store: TokenStore, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    good, other = (
        made_up(tmp_path / "good", tiny_store, 1),
        made_up(tmp_path / "other", tiny_store, 2, vocabulary="x" * 64),
    )
    rest = ["--weights", "fixed", "--model", "m", "--seed", "0", "--output", str(tmp_path / "out")]
    rest += ["--weights-output", str(tmp_path / "w.json"), "--tokens", str(tiny_store.folder)]
    for first, second, message in (
        (good.folder, other.folder, "different vocabularies"),
        (other.folder, good.folder, "was not scored on the tokens"),
        (good.folder, None, "two models or more"),
        (good.folder, tmp_path / "none", "no scores.json"),
    ):
        folders = [text for folder in (first, second) if folder for text in ("--component", str(folder))]
        assert main(["mix", *folders, *rest]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "w.json").exists()
