"""Perplexity by hand, and break-downs that add up to the whole."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic import in_parts

from nplm2003.errors import UserError
from nplm2003.evaluation import by_target_frequency, evaluate, frequency_bin_labels, perplexity
from nplm2003.files import name_infinities
from nplm2003.scoring import Scores, write_scores

log_probabilities = st.integers(1, 200).flatmap(lambda n: arrays(np.float32, n, elements=st.floats(-50, 0, width=32)))


def test_perplexity_by_hand() -> None:
    # Probabilities 1/2, 1/4, 1/8: the geometric mean is 1/4.
    assert perplexity(np.log([1 / 2, 1 / 4, 1 / 8])) == pytest.approx(4, rel=1e-12)
    assert perplexity(np.zeros(5)) == 1.0


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary() -> None:
    scores = np.full(1000, -np.log(16_383), dtype=np.float32)
    assert perplexity(scores) == pytest.approx(16_383, rel=1e-6)


def test_no_tokens_have_no_perplexity() -> None:
    with pytest.raises(ValueError, match="no tokens"):
        perplexity(np.array([]))


def test_a_perplexity_beyond_all_numbers_is_one_line() -> None:
    with pytest.raises(UserError, match="cost 800 nats a token, which has no perplexity"):
        perplexity(np.array([-700.0, -900.0]))
    with pytest.raises(UserError, match="cost 900 nats a token"):
        by_target_frequency(np.array([-1.0, -900.0]), np.array([0, 1]), np.array([3, 0]))


def test_a_token_of_probability_0_makes_the_perplexity_infinite(tmp_path: Path) -> None:
    assert perplexity(np.array([-1.0, -math.inf])) == math.inf
    result = evaluate(write(tmp_path, True, test=np.array([-1.0, -math.inf, -1.0])), TARGETS, TRAIN_COUNTS)
    assert result["perplexity"] == {"train": pytest.approx(2), "valid": pytest.approx(8), "test": math.inf}
    # Word 2, the first token, never occurs in train and has a probability; word 1 has not at the second token.
    assert (result["seen"]["test"], result["unseen"]["test"]) == (math.inf, pytest.approx(math.e))
    assert [record["nats"] for record in result["by_frequency"]["test"]] == [pytest.approx(1), math.inf]
    assert json.loads(json.dumps(name_infinities(result), allow_nan=False))["perplexity"]["test"] == "+infinity"


def test_the_sum_is_taken_in_float64() -> None:
    scores = np.full(10_000_001, -3, dtype=np.float32)
    # Its sum, 30,000,003, is no float32 number, and adding in float32 one by one is far off.
    assert float(scores.sum(dtype=np.float32)) != -30_000_003
    assert abs(float(np.cumsum(scores)[-1]) / -30_000_003 - 1) > 1e-3
    assert perplexity(scores) == pytest.approx(math.exp(3), rel=1e-12)


def test_perplexity_is_no_mean_over_batches() -> None:
    # Two batches: 1/2 three times, and 1/16 once. (3 log 2 + log 16) / 4 = 7/4 log 2.
    batches = [np.log([1 / 2, 1 / 2, 1 / 2]), np.log([1 / 16])]
    exact = perplexity(np.concatenate(batches))
    assert exact == pytest.approx(2**1.75, rel=1e-12)
    mean_of_means = math.exp(-np.mean([batch.mean() for batch in batches]))
    mean_of_perplexities = np.mean([perplexity(batch) for batch in batches])
    assert mean_of_means == pytest.approx(2**2.5) and mean_of_perplexities == pytest.approx(9)


@given(one=log_probabilities, other=log_probabilities)
def test_parts_weigh_by_their_tokens(one: np.ndarray, other: np.ndarray) -> None:
    nats = len(one) * math.log(perplexity(one)) + len(other) * math.log(perplexity(other))
    expected = math.exp(nats / (len(one) + len(other)))
    assert perplexity(np.concatenate([one, other])) == pytest.approx(expected, rel=1e-9)


def test_frequency_bins() -> None:
    assert frequency_bin_labels() == ["0", "1", "2-9", "10-99", "100-999", "1000-9999", "10000+"]


def test_break_down_by_hand() -> None:
    train_counts = np.array([0, 1, 2, 9, 10, 10_000])
    targets = np.array([0, 1, 2, 3, 3, 4, 5])
    scores = np.log(np.array([1 / 64, 1 / 32, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 2]))
    assert by_target_frequency(scores, targets, train_counts) == [
        {"bin": label, "tokens": tokens, "nats": pytest.approx(bits * math.log(2)), "perplexity": pytest.approx(value)}
        for label, tokens, bits, value in [
            ("0", 1, 6, 64),
            ("1", 1, 5, 32),
            ("2-9", 3, 1 + 2 + 3, 4),  # counts 2 and 9, the second twice
            ("10-99", 1, 4, 16),
            ("10000+", 1, 1, 2),
        ]
    ]


@given(scores=log_probabilities, data=st.data())
def test_break_down_adds_up(scores: np.ndarray, data: st.DataObject) -> None:
    train_counts = data.draw(arrays(np.int64, 6, elements=st.integers(0, 20_000)))
    targets = data.draw(arrays(np.uint16, len(scores), elements=st.integers(0, 5)))
    records = by_target_frequency(scores, targets, train_counts)
    assert sum(record["tokens"] for record in records) == len(scores)
    nats = sum(record["nats"] for record in records)
    assert math.exp(nats / len(scores)) == pytest.approx(perplexity(scores), rel=1e-9)


def write(folder: Path, impossible: bool = False, **changed: np.ndarray) -> Scores:
    values = {
        "train": np.log([1 / 2, 1 / 2]),
        "valid": np.log([1 / 4, 1 / 16]),
        "test": np.log([1 / 8, 1 / 2, 1 / 4]),
    }
    scores, made = in_parts({**values, **changed}), {"commit": "abc"}
    write_scores(folder, scores, model="MLP1", seed=2, vocabulary="v", provenance=made, impossible=impossible)
    return Scores(folder)


TARGETS = {"train": np.array([1, 1]), "valid": np.array([1, 1]), "test": np.array([2, 1, 1])}
TRAIN_COUNTS = np.array([0, 2, 0])


def test_evaluation_by_hand(tmp_path: Path) -> None:
    result = evaluate(write(tmp_path), TARGETS, TRAIN_COUNTS)
    assert (result["model"], result["seed"], result["vocabulary"]) == ("MLP1", 2, "v")
    assert result["tokens"] == {"train": 2, "valid": 2, "test": 3}
    assert result["perplexity"] == pytest.approx({"train": 2, "valid": 8, "test": 4}, rel=1e-6)
    # Word 2 never occurs in train: the first token of test.
    assert result["seen"] == {"valid": pytest.approx(8), "test": pytest.approx(8**0.5)}
    assert result["unseen"] == {"valid": None, "test": pytest.approx(8)}
    assert [record["bin"] for record in result["by_frequency"]["test"]] == ["0", "2-9"]
    assert result["provenance"] == {"commit": "abc"}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_scores_of_other_tokens_are_refused(tmp_path: Path, split: str) -> None:
    scores = write(tmp_path, **{split: np.log([0.5] * 4)})
    with pytest.raises(ValueError, match=rf"4 scores for \d tokens of {split}"):
        evaluate(scores, TARGETS, TRAIN_COUNTS)
