"""The block bootstrap: known answers, properties of the intervals, and their coverage where the truth is known."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm2003.files import name_infinities, number_infinities
from nplm2003.uncertainty import (
    FEWEST_BLOCKS,
    Uncertainty,
    block_edges,
    draw_log_perplexities,
    holm,
    interval,
    measure_uncertainty,
    number_of_blocks,
    p_value,
    resample,
)


def texts(number: int, tokens: int, memory: float, seed: int, mean: float = -5.0) -> np.ndarray:
    """Scores with deviation 1 whose neighbours are alike: autoregressions of coefficient `memory`, one per line."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(number, tokens))
    values[:, 1:] *= math.sqrt(1 - memory**2)
    for t in range(1, tokens):
        values[:, t] += memory * values[:, t - 1]
    return values + mean


def noise(tokens: int, memory: float, seed: int, mean: float = -5.0) -> np.ndarray:
    """One such text."""
    return texts(1, tokens, memory, seed, mean)[0]


def width(scores: np.ndarray, blocks: int) -> float:
    low, high = interval(draw_log_perplexities([{0: scores}], blocks, draws=1000)[1][:, 0])
    return float(high - low)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_two_blocks_by_hand() -> None:
    # Two blocks of two tokens: one of them is drawn each time, so a draw is the perplexity of one of the two.
    scores = np.log([0.5, 0.5, 0.125, 0.125])
    measured, drawn = draw_log_perplexities([{0: scores}], blocks=2, draws=400)
    assert math.exp(measured[0]) == pytest.approx(4)
    assert sorted(set(np.exp(drawn[:, 0]).round(9))) == [2, 8]
    assert np.mean(np.exp(drawn) < 3) == pytest.approx(0.5, abs=0.1)


def test_a_row_is_the_mean_of_the_perplexities_of_its_seeds() -> None:
    two, eight = np.full(100, math.log(1 / 2)), np.full(100, math.log(1 / 8))
    measured, drawn = draw_log_perplexities([{1: two, 2: eight}, {0: two}], draws=400)
    assert np.exp(measured) == pytest.approx([5, 2])
    # The text is the same throughout: only the seed varies, one of the two in each draw.
    assert sorted(set(np.exp(drawn[:, 0]).round(9))) == [2, 8]
    assert np.exp(drawn[:, 1]) == pytest.approx(2)


def test_rows_with_the_same_seeds_are_drawn_together() -> None:
    # The second row is twice the first for every seed: the ratio has no spread, although both have.
    seeds = {seed: np.full(100, -math.log(5 + seed)) for seed in (1, 2, 3)}
    _, drawn = draw_log_perplexities([seeds, {seed: scores - math.log(2) for seed, scores in seeds.items()}], draws=400)
    assert drawn[:, 0].std() > 0.01
    assert drawn[:, 1] - drawn[:, 0] == pytest.approx(math.log(2))


def test_p_values_by_hand() -> None:
    below = np.array([-1.0] * 99)
    assert p_value(below) == pytest.approx(2 / 100)  # (1 + 0) / (1 + 99), on both sides
    assert p_value(np.array([-1.0] * 94 + [1.0] * 5)) == pytest.approx(12 / 100)
    assert p_value(np.zeros(99)) == 1


def test_holm_by_hand() -> None:
    # The classic steps: 4 x 0.005, 3 x 0.01, 2 x 0.03, 1 x 0.04; never falling.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1, 1]


def test_blocks_cover_every_token_once_and_are_many_enough() -> None:
    assert number_of_blocks(161_192) == 40
    assert number_of_blocks(963_071) == 240
    assert number_of_blocks(1_000) == FEWEST_BLOCKS
    assert number_of_blocks(7) == 7
    for tokens in (7, 345, 161_192):
        edges = block_edges(tokens, number_of_blocks(tokens))
        assert (edges[0], edges[-1]) == (0, tokens)
        assert set(np.diff(edges)) <= {tokens // (len(edges) - 1), tokens // (len(edges) - 1) + 1}


# --- properties ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 9), st.integers(0, 1000))
def test_drawing_one_less_gives_the_unbiased_variance_of_a_mean(items: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=items)
    weights = resample(items, 20_000, np.random.default_rng(seed))
    assert (weights.sum(axis=1) == items - 1).all()
    means = weights @ values / (items - 1)
    assert means.var() == pytest.approx(values.var(ddof=1) / items, rel=0.08)


def measure(rows: dict[str, dict[int, np.ndarray]]) -> dict[str, Any]:
    return measure_uncertainty({name: {"valid": runs, "test": runs} for name, runs in rows.items()})


def small(rows: dict[str, dict[int, np.ndarray]]) -> Uncertainty:
    return Uncertainty(measure(rows))


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.floats(-0.5, 0.5))
def test_changes_lead_back_and_forth(seed: int, shift: float) -> None:
    scores = noise(400, 0.5, seed)
    other = noise(400, 0.0, seed + 1, -5 + shift)
    found = small({"a": {0: scores}, "b": {1: other, 2: other - 0.1}, "c": {0: scores}})
    forth, back = found.change("a", "b"), found.change("b", "a")
    assert (1 + forth.percent / 100) * (1 + back.percent / 100) == pytest.approx(1)
    assert (1 + forth.low / 100) * (1 + back.high / 100) == pytest.approx(1)
    assert forth.low <= forth.high and forth.p == back.p
    # A verdict by the interval and one by the p value are the same, but for the last draw.
    assert (forth.low > 0 or forth.high < 0) == (forth.p <= 0.05) or forth.p == pytest.approx(0.05, abs=3e-4)
    # Two rows with the same scores differ by nothing, in every draw.
    same = found.change("a", "c")
    assert (same.percent, same.low, same.high, same.p) == (0, 0, 0, 1)
    low, high = found.interval("b", "test")
    measured = found.measured("b", "test")
    assert measured is not None and low < measured < high


def test_infinite_perplexities() -> None:
    finite = noise(4000, 0.5, seed=1)
    rare = finite.copy()
    rare[5] = -math.inf  # in one of the blocks: not in every draw
    rows = {"finite": {1: finite, 2: finite - 0.1}, "rare": {0: rare}, "never": {0: np.full(4000, -math.inf)}}
    content = number_infinities(json.loads(json.dumps(name_infinities(measure(rows)), allow_nan=False)))
    found = Uncertainty(content)
    for model in ("rare", "never"):
        assert found.measured(model, "test") == math.inf
    low, high = found.interval("rare", "test")
    assert 0 < low < math.exp(5.5) and high == math.inf
    assert found.interval("never", "test") == (math.inf, math.inf)
    # The other rows have the same numbers as without them.
    alone = small({"finite": rows["finite"]})
    assert found.interval("finite", "test") == pytest.approx(alone.interval("finite", "test"), rel=1e-12)
    above = found.change("never", "finite")
    assert (above.percent, above.low, above.high) == (math.inf, math.inf, math.inf) and above.p < 0.001
    below = found.change("finite", "never")
    assert (below.percent, below.low, below.high) == (-100, -100, -100)
    # Of two infinite perplexities nothing is known.
    neither = found.change("rare", "never")
    assert (neither.percent, neither.low, neither.high, neither.p) == (0, -100, math.inf, 1)


def test_longer_blocks_widen_the_interval_where_neighbours_are_alike() -> None:
    alike, independent = noise(2_000, 0.9, 1), noise(2_000, 0.0, 1)
    assert width(alike, 40) > 2 * width(alike, 2_000)
    assert width(independent, 40) == pytest.approx(width(independent, 2_000), rel=0.25)


def test_the_same_scores_give_the_same_numbers() -> None:
    rows = {"a": {1: noise(300, 0.5, 1), 2: noise(300, 0.5, 2)}}
    assert small(rows).content == small(rows).content


def test_coverage_is_near_the_level() -> None:
    """How often the interval holds the truth: texts of 2,000 tokens whose neighbours are alike, four random starts.

    The truth is known: every token costs 5 nats on average, and every start adds a mean of its own. A block is 50
    tokens, many times the memory of the text.
    """
    trials, hits = 300, 0
    generator = np.random.default_rng(5)
    for trial, text in enumerate(texts(trials, 2_000, 0.5, seed=1)):
        starts = {seed: text + generator.normal(scale=0.03) for seed in (1, 2, 3, 4)}
        low, high = interval(draw_log_perplexities([starts], blocks=40, draws=300, seed=trial)[1][:, 0])
        hits += low <= 5 <= high
    # Two standard errors of 300 trials are 2.5 points; percentiles of 40 blocks hold a point or two less than they say.
    assert 0.905 <= hits / trials <= 0.98
