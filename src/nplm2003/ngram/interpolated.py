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
from nplm2003.ngram import read_description
from nplm2003.vocabulary import TokenStore, chunks

# Tokens scored at a time: bounds memory (about 100 MB) and changes no score.
CHUNK = 1 << 19


class TrigramCounts:
    """Counts of the n-grams of train for n = 1, 2, 3, as sorted arrays of packed keys.

    Word ids are 0 to |V| - 1; the id |V| stands for a word before the beginning of the stream.
    """

    def __init__(self, train: np.ndarray, size: int) -> None:
        """`train`: token ids, shape (T,), all below `size` = |V|."""
        ids = train.astype(np.int64)
        self.size = size
        self.total = len(ids)
        self.words = np.bincount(ids, minlength=size + 1)
        # How often each word, and each pair, is followed by another: what p2 and p3 divide by. Only for what ends
        # train does it differ from the plain count, and with it p2 and p3 sum to 1.
        self.followed = np.bincount(ids[:-1], minlength=size + 1)
        self._pairs, pair_of_position, self.pair_counts = np.unique(
            self._pack(ids[:-1], ids[1:]), return_inverse=True, return_counts=True
        )
        self.pair_followed = np.bincount(pair_of_position[:-1], minlength=len(self._pairs))
        # A trigram's key holds the rank of its first two words among the pairs: 64 bits are enough for any |V|.
        self._triples, self.triple_counts = np.unique(self._pack(pair_of_position[:-1], ids[2:]), return_counts=True)

    def _pack(self, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        return context * (self.size + 1) + word

    def _find_pair(self, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _find(self._pairs, self._pack(u, v))

    def bins(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The frequency bin q of the contexts (u, v): int64, shape (tokens,), 0 to `number_of_bins` - 1."""
        rank, found = self._find_pair(u, v)
        return self._bin(_take(self.pair_counts, rank, found))

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
        result[:, 0] = 1 / self.size
        result[:, 1] = self.words[w] / self.total
        numerator = _take(self.pair_counts, *self._find_pair(v, w))
        result[:, 2] = _ratio(numerator, self.followed[v], otherwise=result[:, 1])
        rank, found = self._find_pair(u, v)
        triple, triple_found = _find(self._triples, self._pack(rank, w))
        numerator = _take(self.triple_counts, triple, found & triple_found)
        result[:, 3] = _ratio(numerator, _take(self.pair_followed, rank, found), otherwise=result[:, 2])
        return result


def _find(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where in the sorted `keys` each wanted key stands, and whether it does."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    # Looked up in their own order, they find the keys in the cache: five times as fast.
    order = np.argsort(wanted)
    rank = np.empty_like(order)
    rank[order] = np.searchsorted(keys, wanted[order])
    np.minimum(rank, len(keys) - 1, out=rank)
    return rank, keys[rank] == wanted


def _take(values: np.ndarray, rank: np.ndarray, found: np.ndarray) -> np.ndarray:
    """`values` at each rank, 0 where the key was not found."""
    if len(values) == 0:
        return np.zeros(len(rank), dtype=np.int64)
    return np.where(found, values[rank], 0)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """numerator / denominator, or `otherwise` where the denominator is 0."""
    return np.divide(numerator, denominator, out=otherwise.copy(), where=denominator > 0)


def contexts(store: TokenStore, split: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The trigrams (u, v, w) of `split`, one for each token w, in chunks of int64 arrays of shape (tokens,).

    The context of the first tokens reaches back over the split boundary; |V| stands before the stream's beginning.
    """
    for before, ids in chunks(store, split, 2, CHUNK):
        stream = np.concatenate([np.full(2 - len(before), store.size), before, ids]).astype(np.int64)
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
