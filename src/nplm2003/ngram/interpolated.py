"""The interpolated ("deleted interpolation") trigram of section 4.1.

    P(w | u, v) = alpha_0(q) / |V| + alpha_1(q) p1(w) + alpha_2(q) p2(w | v) + alpha_3(q) p3(w | u, v)

p1, p2, p3 are relative frequencies in train. q = ceil(-log((1 + freq(u, v)) / T)) is the frequency bin of the context,
T the number of tokens of train. EM on validation learns the four weights of each bin.

Where a relative frequency is not defined it is the next shorter one: p2(w | v) = p1(w) for a v that nothing follows in
train, p3(w | u, v) = p2(w | v) for a (u, v) that nothing follows. So the sum over V is 1 in every context. The first
two tokens of train have fewer than two words before them; a word that occurs nowhere stands in the empty places.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nplm2003.em import fit_weights
from nplm2003.errors import UserError
from nplm2003.ngram.counts import NgramCounts, windows
from nplm2003.ngram.descriptions import read_description
from nplm2003.vocabulary import TokenStore


class TrigramCounts(NgramCounts):
    """Counts of the n-grams of train for n = 1, 2, 3, and the estimates and the frequency bins they give.

    The id |V| stands for a word before the beginning of the stream.
    """

    def __init__(self, train: np.ndarray, size: int) -> None:
        """`train`: token ids, shape (T,), all below `size` = |V|."""
        super().__init__(train, size, 3)

    def bins(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The frequency bin q of the contexts (u, v): int64, shape (tokens,), 0 to `number_of_bins` - 1."""
        return self._bin(self.counts[2][self.find(2, u, v)])

    def _bin(self, frequency: np.ndarray) -> np.ndarray:
        return np.ceil(-np.log((1 + frequency) / self.total)).astype(np.int64)

    @property
    def number_of_bins(self) -> int:
        """One more than the bin of contexts that never occur in train, the last."""
        return int(self._bin(np.zeros(1))[0]) + 1

    def probabilities(self, u: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The four estimates of P(w | u, v): float64, shape (tokens, 4), columns 1 / |V|, p1, p2, p3.

        `u`, `v`, `w`: int64 ids, shape (tokens,); `u` and `v` may be |V|, a word before the stream.
        """
        result = np.empty((len(w), 4))
        pair = self.find(2, u, v)
        result[:, 0] = 1 / self.size
        result[:, 1] = self.counts[1][w] / self.total
        # What follows a context is divided by how often it is followed: so p2 and p3 sum to 1 for what ends train too.
        result[:, 2] = _ratio(self.counts[2][self.find(2, v, w)], self.followed[1][v], otherwise=result[:, 1])
        result[:, 3] = _ratio(self.counts[3][self.find(3, pair, w)], self.followed[2][pair], otherwise=result[:, 2])
        return result


def _ratio(numerator: np.ndarray, denominator: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """numerator / denominator, or `otherwise` where the denominator is 0."""
    return np.divide(numerator, denominator, out=otherwise.copy(), where=denominator > 0)


def contexts(store: TokenStore, split: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The trigrams (u, v, w) of `split`, one for each token w, in chunks of int64 arrays of shape (tokens,).

    The context of the first tokens reaches back over the split boundary; |V| stands before the stream's beginning.
    """
    for stream in windows(store, split, 2):
        yield stream[:-2], stream[1:-1], stream[2:]


def context_bins(counts: TrigramCounts, store: TokenStore, split: str) -> np.ndarray:
    """The frequency bin of the context of every token of `split`: int64, shape (tokens,)."""
    return np.concatenate([counts.bins(u, v) for u, v, _ in contexts(store, split)])


class InterpolatedTrigram:
    """The trigram with its weights: `counts` of train and `weights`, shape (number of bins, 4)."""

    def __init__(self, counts: TrigramCounts, weights: np.ndarray) -> None:
        if weights.shape != (counts.number_of_bins, 4):
            raise ValueError(f"weights of shape {weights.shape} for {counts.number_of_bins} bins of 4 estimates")
        self.counts = counts
        self.weights = weights

    def probabilities(self, u: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        """P(w | u, v): float64, shape (tokens,); arguments as in `TrigramCounts.probabilities`."""
        return np.einsum("tk,tk->t", self.weights[self.counts.bins(u, v)], self.counts.probabilities(u, v, w))

    def distribution(self, u: int, v: int) -> np.ndarray:
        """P(. | u, v) over the whole vocabulary: float64, shape (|V|,)."""
        words = np.arange(self.counts.size)
        return self.probabilities(np.full_like(words, u), np.full_like(words, v), words)

    def score(self, store: TokenStore, split: str) -> Iterator[np.ndarray]:
        """The natural-log probabilities of the tokens of `split`, in parts of shape (tokens,), float64."""
        for trigrams in contexts(store, split):
            yield np.log(self.probabilities(*trigrams))


def estimate(counts: TrigramCounts, store: TokenStore) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Learn the weights on the validation tokens.

    Returns the weights, shape (number of bins, 4); the number of validation tokens in each bin; and the mean
    log-likelihood (nats per token) before and after each iteration of EM.
    """
    likelihoods = np.concatenate([counts.probabilities(*trigrams) for trigrams in contexts(store, "valid")])
    bins = context_bins(counts, store, "valid")
    weights, history = fit_weights(likelihoods, bins, counts.number_of_bins)
    return weights, np.bincount(bins, minlength=counts.number_of_bins), history


def read_weights(path: Path, store: TokenStore, counts: TrigramCounts) -> tuple[np.ndarray, dict[str, Any]]:
    """The weights that `estimate-interpolated` wrote, shape (number of bins of `counts`, 4), and the whole file."""
    description = read_description(path, store, "estimate-interpolated", {"bins": [{"weights": [float]}]})
    weights = [entry["weights"] for entry in description["bins"]]
    if {len(vector) for vector in weights} != {4} or len(weights) != counts.number_of_bins:
        raise UserError(
            f"{path} is damaged, it has not 4 weights for each of {counts.number_of_bins} bins: write it with "
            "`nplm2003 estimate-interpolated`"
        )
    return np.array(weights), description
