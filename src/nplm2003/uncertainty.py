"""How far the perplexities of a study, and the differences between its rows, could be chance: a block bootstrap.

Every draw makes another text out of the split, and another set of random starts:

- The tokens are cut into blocks of consecutive tokens, which are drawn with replacement, one less than there are.
  Tokens of one text are alike, so single tokens must not be drawn: on Brown's test the variance of the mean over blocks
  of L tokens is this many times what independent tokens would give, for Kneser-Ney with n = 5 and for the difference
  between it and the mixture MLP10:

      L                         100    1,000    2,000    4,000    8,000
      nats of one model         1.3      3.8      5.7      7.1     11.1
      difference in nats        1.2      2.1      2.6      2.8      4.3

  It grows until a block is longer than a text of Brown (2,300 tokens). `BLOCK_TOKENS` is 4,000; with longer blocks too
  few would be left. A short split is cut into `FEWEST_BLOCKS` shorter ones, and its intervals are then too narrow
  rather than too wide.
- The seeds of a row are drawn too, with replacement, one less than there are: the same for all rows, so that a mixture
  stays beside the network that it mixes. A row with one run has no such part.

Drawing one less than there are makes the variance of the drawn means the unbiased one (Rao and Wu 1988), which matters
for three seeds. All rows see the same draws, so the differences between them are paired. An interval therefore covers
another text of the same kind and length, and other random starts, for models trained on this train. It does not cover
another train, another vocabulary, or the choice of the settings.

A model that gives some token probability 0 has an infinite perplexity, and so has every draw with such a token.
Compared with a finite one it lies infinitely far above it; of two infinite ones nothing can be said: their ratio is
written as 1, with an interval from 0 to infinity and p = 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nplm2003.errors import UserError

BLOCK_TOKENS = 4_000
FEWEST_BLOCKS = 40
DRAWS = 10_000
SEED = 2003
LEVEL = 0.95
FORMAT = 1

Runs = Mapping[int, np.ndarray]  # seed -> one value per token, or per block


def number_of_blocks(tokens: int) -> int:
    """How many blocks a split of so many tokens is cut into."""
    return min(tokens, max(FEWEST_BLOCKS, tokens // BLOCK_TOKENS))


def block_edges(tokens: int, blocks: int) -> np.ndarray:
    """Where the blocks start, and the end of the last: shape (blocks + 1,). Lengths differ by one token at most."""
    return np.arange(blocks + 1) * tokens // blocks


def resample(items: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """How often each item is in each draw of `items` - 1 with replacement: shape (draws, items). A single one stays."""
    if items == 1:
        return np.ones((draws, 1))
    return generator.multinomial(items - 1, np.full(items, 1 / items), size=draws).astype(np.float64)


def draw_log_perplexities(
    rows: Sequence[Runs], blocks: int | None = None, draws: int = DRAWS, seed: int = SEED
) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of the perplexity of every row, as measured and in every draw.

    `rows` holds the scores (natural-log probabilities, shape (tokens,)) of each run of each row, by seed. The
    perplexity of a row is the mean over its runs. Returns shapes (rows,) and (draws, rows).
    """
    runs = [scores for row in rows for scores in row.values()]
    tokens = len(runs[0])
    edges = block_edges(tokens, blocks or number_of_blocks(tokens))
    sizes = np.diff(edges)
    nats = -np.stack([np.add.reduceat(scores, edges[:-1], dtype=np.float64) for scores in runs], axis=-1)
    generator = np.random.default_rng(seed)
    chosen = resample(len(sizes), draws, generator)
    starts = {key: resample(len(key), draws, generator) for key in sorted({tuple(row) for row in rows})}
    # One matrix product for all runs: total nats over total tokens, of the text as it is and of every draw.
    measured = np.exp(nats.sum(axis=0) / tokens)
    finite = np.isfinite(nats)
    drawn = np.exp((chosen @ np.where(finite, nats, 0)) / (chosen @ sizes)[:, None])
    if not finite.all():  # 0 times infinity would be no number
        drawn[chosen @ ~finite > 0] = np.inf
    ends = np.cumsum([len(row) for row in rows])[:-1]
    means = [part.mean() for part in np.split(measured, ends)]
    drawn_means = [
        np.average(np.where(starts[tuple(row)] > 0, part, 0), axis=1, weights=starts[tuple(row)])
        for row, part in zip(rows, np.split(drawn, ends, axis=1), strict=True)
    ]
    return np.log(means), np.log(np.stack(drawn_means, axis=-1))


def interval(drawn: np.ndarray) -> np.ndarray:
    """The percentile interval at `LEVEL` along the first axis: shape (2, ...)."""
    tail = (1 - LEVEL) / 2
    finite = np.isfinite(drawn).all(axis=0)
    ends = np.quantile(np.where(finite, drawn, 0), [tail, 1 - tail], axis=0)
    if finite.all():
        return ends
    # Between two draws that are infinite there is nothing to interpolate: the nearest one is the end.
    return np.where(finite, ends, np.quantile(drawn, [tail, 1 - tail], axis=0, method="nearest"))


def p_value(drawn: np.ndarray) -> np.ndarray:
    """Two-sided p value of no difference, along the first axis of drawn differences: shape (...).

    Twice the share of draws on the rarer side of 0, (1 + count) / (1 + draws) on each side: below 0.05 where the 95 %
    interval leaves 0 out, and never 0.
    """
    rarer = np.minimum((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))
    return np.minimum(1, 2 * (1 + rarer) / (1 + len(drawn)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values corrected for testing all of them at once (Holm 1979), in their order."""
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = least
    return adjusted


@dataclass(frozen=True)
class Change:
    """How much higher (+) or lower (-) one perplexity is than another, in percent, with its interval and p value."""

    percent: float
    low: float
    high: float
    p: float


class Uncertainty:
    """The intervals of a study: what `measure_uncertainty` returns, by row.

    Attribute: `content`, that description itself.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self._pairs = {(pair["model"], pair["against"]): pair for pair in content["pairs"]}

    def measured(self, model: str, split: str) -> float | None:
        """The perplexity that the interval belongs to; None for a row that has none."""
        found = self.content["perplexity"].get(model)
        return found and found[split]["measured"]

    def interval(self, model: str, split: str) -> tuple[float, float]:
        """Lower and upper end of the interval of a perplexity on `valid` or `test`."""
        found = self.content["perplexity"][model][split]
        return found["low"], found["high"]

    def compares(self, model: str, against: str) -> bool:
        """Whether the two rows are compared, in this order or the other."""
        return (model, against) in self._pairs or (against, model) in self._pairs

    def change(self, model: str, against: str) -> Change:
        """The test perplexity of a row compared with that of another."""
        sign = 1 if (model, against) in self._pairs else -1
        pair = self._pairs[(model, against) if sign > 0 else (against, model)]
        low, high = sorted(sign * pair[key] for key in ("low", "high"))
        percent, low, high = (100 * math.expm1(value) for value in (sign * pair["log_ratio"], low, high))
        return Change(percent, low, high, pair["p"])


def measure_uncertainty(rows: Mapping[str, Mapping[str, Runs]]) -> dict[str, Any]:
    """Intervals of all perplexities, and of all ratios between two test perplexities, as plain JSON values.

    `rows` maps each model to the scores of each of its runs, by split (`valid` and `test`) and seed. The result says
    how it was drawn (`draws`, `seed`, `level`, and `block_tokens` and `blocks` for each split) and holds `perplexity`
    (model -> split -> measured, low, high) and `pairs`, the natural logarithm of the ratio of the perplexities of
    `model` and `against` with its interval and p value.
    """
    names = list(rows)
    content: dict[str, Any] = {
        "format": FORMAT,
        "draws": DRAWS,
        "seed": SEED,
        "level": LEVEL,
        "block_tokens": {},
        "blocks": {},
        "perplexity": {name: {} for name in names},
        "pairs": [],
    }
    for split in ("valid", "test"):
        scores = [rows[name][split] for name in names]
        tokens = len(next(iter(scores[0].values())))
        if tokens < FEWEST_BLOCKS:
            raise UserError(f"{split} has {tokens} tokens, too few for an interval: give it {FEWEST_BLOCKS} or more")
        content["blocks"][split] = number_of_blocks(tokens)
        content["block_tokens"][split] = round(tokens / number_of_blocks(tokens))
        measured, drawn = draw_log_perplexities(scores)
        for name, values in zip(names, np.exp([measured, *interval(drawn)]).T.tolist(), strict=True):
            content["perplexity"][name][split] = dict(zip(("measured", "low", "high"), values, strict=True))
    # The last split was test.
    for i, name in enumerate(names):
        for k, other in enumerate(names[i + 1 :], start=i + 1):
            pair = {"log_ratio": 0.0, "low": -math.inf, "high": math.inf, "p": 1.0}
            if not np.isinf(measured[[i, k]]).all():
                ratios = drawn[:, i] - drawn[:, k]
                low, high = interval(ratios).tolist()
                log_ratio = float(measured[i] - measured[k])
                pair = {"log_ratio": log_ratio, "low": low, "high": high, "p": float(p_value(ratios))}
            content["pairs"].append({"model": name, "against": other, **pair})
    return content
