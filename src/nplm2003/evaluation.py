"""From score files to perplexities. This is the only place where a perplexity is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nplm2003.errors import UserError
from nplm2003.scoring import SPLITS, Scores

# Break-downs by how often the target word occurs in train: unseen, once, 2 to 9, 10 to 99, ...
FREQUENCY_EDGES = (0, 1, 2, 10, 100, 1_000, 10_000)


def perplexity(scores: np.ndarray) -> float:
    """exp(-sum of natural-log probabilities / number of tokens), summed in float64 (section 4 of the paper).

    `scores`: shape (tokens,); where one is -inf the perplexity is infinite. An empty array has none and is an error.
    """
    if len(scores) == 0:
        raise ValueError("the perplexity of no tokens is not defined")
    return _exp(-float(np.sum(scores, dtype=np.float64)) / len(scores))


def _exp(nats: float) -> float:
    """exp(nats), a perplexity; UserError where finite nats are too many for a number."""
    try:
        return math.exp(nats)
    except OverflowError as error:
        raise UserError(
            f"the scores cost {nats:,.0f} nats a token, which has no perplexity: the model is broken, estimate or "
            "train it again"
        ) from error


def frequency_bin_labels() -> list[str]:
    """The names of the target-frequency bins, in order: '0', '1', '2-9', ..., '10000+'."""
    labels = []
    for low, high in zip(FREQUENCY_EDGES, (*FREQUENCY_EDGES[1:], None), strict=True):
        labels.append(f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}-{high - 1}")
    return labels


def by_target_frequency(scores: np.ndarray, targets: np.ndarray, train_counts: np.ndarray) -> list[dict[str, Any]]:
    """Break a split down by how often the target word occurs in train.

    `scores`, `targets`: shape (tokens,); `train_counts`: shape (|V|,). Returns one record per bin that has tokens:
    `bin`, `tokens`, `nats` (total negative log-probability) and `perplexity`. Tokens and nats add up to the split's.
    """
    edges = np.array(FREQUENCY_EDGES[1:])
    bins = np.searchsorted(edges, train_counts[targets], side="right")
    tokens = np.bincount(bins, minlength=len(FREQUENCY_EDGES))
    nats = np.bincount(bins, weights=-np.asarray(scores, dtype=np.float64), minlength=len(FREQUENCY_EDGES))
    return [
        {"bin": label, "tokens": int(n), "nats": float(total), "perplexity": _exp(total / n)}
        for label, n, total in zip(frequency_bin_labels(), tokens, nats, strict=True)
        if n
    ]


def evaluate(scores: Scores, targets: Mapping[str, np.ndarray], train_counts: np.ndarray) -> dict[str, Any]:
    """Everything the tables say of one model and seed.

    `targets` maps each split to its token ids; `train_counts[w]` is how often word w occurs in train. The result holds
    `perplexity` and `tokens` per split, `by_frequency` per split, and `seen` / `unseen`: the perplexity of valid and
    test tokens whose word occurs / never occurs in train (None where there are none). Perplexities and nats of tokens
    with probability 0 are infinite: `files.name_infinities` makes JSON of them.
    """
    for split in SPLITS:
        if len(scores[split]) != len(targets[split]):
            raise ValueError(
                f"{scores.folder}: {len(scores[split])} scores for {len(targets[split])} tokens of {split}"
            )
    result: dict[str, Any] = {
        "model": scores.model,
        "seed": scores.seed,
        "vocabulary": scores.vocabulary,
        "tokens": dict(scores.metadata["tokens"]),
        "perplexity": {split: perplexity(scores[split]) for split in SPLITS},
        "by_frequency": {split: by_target_frequency(scores[split], targets[split], train_counts) for split in SPLITS},
        "seen": {},
        "unseen": {},
        "provenance": scores.metadata["provenance"],
    }
    for split in ("valid", "test"):
        seen = train_counts[targets[split]] > 0
        for name, mask in (("seen", seen), ("unseen", ~seen)):
            result[name][split] = perplexity(scores[split][mask]) if mask.any() else None
    return result
