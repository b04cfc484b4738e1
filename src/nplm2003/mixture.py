"""Mixtures of any two or more models (end of section 2), from their score files alone.

    P(w | h) = sum_k alpha_k(q) P_k(w | h)

with the weights alpha fixed at 1/k (the paper's tables: 0.5), one vector learnt by EM on validation, or one for each
frequency bin q of the context, the bins and the EM being those of the interpolated trigram.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nplm2003.em import fit_weights
from nplm2003.errors import UserError
from nplm2003.evaluation import perplexity
from nplm2003.ngram.interpolated import TrigramCounts, context_bins
from nplm2003.scoring import SPLITS, Scores, require_same_tokens
from nplm2003.vocabulary import TokenStore

WEIGHTS = ("fixed", "learnt", "binned")


def mix(components: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The natural-log probabilities of a mixture: float64, shape (tokens,).

    `components`: natural-log probabilities, shape (tokens, models). `weights`: shape (models,), or (tokens, models);
    they sum to 1, and 0 leaves a model out. A token is -inf where it is for every model that is not left out.
    """
    with np.errstate(divide="ignore"):  # log 0 = -inf is what leaves a model out
        logs = np.log(weights)
    return np.logaddexp.reduce(logs + np.asarray(components, dtype=np.float64), axis=-1)


def learn(components: np.ndarray, bins: np.ndarray, number_of_bins: int) -> tuple[np.ndarray, list[float]]:
    """Learn the weights of each bin by EM on validation, as `fit_weights` does, from log-probabilities.

    `components`: shape (tokens, models); `bins`: shape (tokens,). Returns weights of shape (number_of_bins, models) and
    the mean log-likelihoods, in nats per token. Tokens to which every model gives probability 0 say nothing of the
    weights and are in neither; UserError where there are no others.
    """
    values = np.asarray(components, dtype=np.float64)
    best = values.max(axis=1)
    possible = np.isfinite(best)
    if not possible.any():
        raise UserError("the models of the mixture give every token of validation probability 0: mix others")
    values, best = values[possible], best[possible]
    weights, history = fit_weights(np.exp(values - best[:, None]), bins[possible], number_of_bins)
    return weights, [value + float(best.mean()) for value in history]


def mixture_curve(a: np.ndarray, b: np.ndarray, grid: Iterable[float]) -> list[float]:
    """The perplexity of the mixture of two models at each weight of the first in `grid` (0 to 1).

    `a`, `b`: natural-log probabilities of the same tokens, shape (tokens,), no token -inf in both. The same as the
    `perplexity` of `mix`, but the exponentials are taken once for all weights, which leaves one logarithm per token and
    weight.
    """
    best = np.maximum(a, b).astype(np.float64)
    p, q = np.exp(a - best), np.exp(b - best)  # of the likelier model 1, so that neither sum nor log can overflow
    # One model alone: the other's share may have underflowed, and log 0 is no score.
    alone = {0.0: b, 1.0: a}
    return [
        perplexity(alone[weight] if weight in alone else np.log(weight * p + (1 - weight) * q) + best)
        for weight in map(float, grid)
    ]


def mix_scores(store: TokenStore, parts: Sequence[Scores], kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Mix the scores of two or more models of the vocabulary of `store` with weights of `kind` (one of `WEIGHTS`).

    Returns the scores of each split, float64, and a description of the weights: `weights` (the kind), `components`, one
    entry of `bins` per weight vector with its number of validation tokens, and `history`, the validation
    log-likelihoods of EM in nats per token. Score folders of different vocabularies are refused with a `UserError`.
    """
    if kind not in WEIGHTS or len(parts) < 2:
        raise ValueError(f"weights {kind!r} of {len(parts)} models: expected one of {WEIGHTS} and two models or more")
    require_same_tokens(*parts)
    components = {split: np.stack([part[split] for part in parts], axis=-1) for split in SPLITS}
    bins = {split: np.zeros(len(components[split]), dtype=np.int64) for split in SPLITS}
    number_of_bins = 1
    if kind == "binned":
        counts = TrigramCounts(store["train"], store.size)
        number_of_bins = counts.number_of_bins
        bins = {split: context_bins(counts, store, split) for split in SPLITS}
    weights, history = np.full((1, len(parts)), 1 / len(parts)), list[float]()
    if kind != "fixed":
        weights, history = learn(components["valid"], bins["valid"], number_of_bins)
    tokens = np.bincount(bins["valid"], minlength=number_of_bins)
    description = {
        "format": 1,
        "vocabulary": store.fingerprint,
        "weights": kind,
        "components": [{"model": part.model, "seed": part.seed} for part in parts],
        "bins": [
            {"bin": q if kind == "binned" else None, "valid_tokens": int(n), "weights": vector.tolist()}
            for q, (n, vector) in enumerate(zip(tokens, weights, strict=True))
        ],
        "history": history,
    }
    return {split: mix(components[split], weights[bins[split]]) for split in SPLITS}, description
