"""Counts of the n-grams of train, as sorted arrays of packed keys, and how the n-grams of any stream are found in them.

Word ids are 0 to |V| - 1; the id |V| stands for a word before the beginning of the stream. The different n-grams of
length n have ranks 0, 1, 2, ...; one that never occurs in train has the rank after the last. A word's rank is its id,
and the key of a longer n-gram holds the rank of all its words but the last, and the last: 64 bits are enough for any
|V| and any n. Every array of numbers by rank ends in one for the n-grams that never occur.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nplm2003.vocabulary import TokenStore, chunks

# Tokens scored at a time: bounds memory (about 100 MB) and changes no score.
CHUNK = 1 << 19


class NgramCounts:
    """Counts of the n-grams of train for n = 1 to `order`.

    Attributes, the dictionaries by length: `counts[n]`, how often each n-gram occurs; `followed[n]`, how often it is
    followed by another word (only for the n-gram that ends train does that differ from its count), and `followers[n]`,
    by how many different ones, for n from 0, the empty context, to `order` - 1; `context[n]`, for every n-gram that
    occurs the rank of all its words but the last, and `shorter[n]`, that of all but the first, for n from 2. `total` is
    T, the number of tokens of train, `size` |V|.
    """

    def __init__(self, train: np.ndarray, size: int, order: int) -> None:
        """`train`: token ids, shape (T,), all below `size`."""
        ids = train.astype(np.int64)
        self.size, self.total, self.order = size, len(ids), order
        self.counts = {1: np.bincount(ids, minlength=size + 1)}
        self.followed = {0: np.array([self.total, 0])}
        self.followers = {0: np.array([np.count_nonzero(self.counts[1]), 0])}
        self.context: dict[int, np.ndarray] = {}
        self.shorter: dict[int, np.ndarray] = {}
        self._keys: dict[int, np.ndarray] = {}
        ranks = ids  # of the n-gram that ends at each position, for n = 1; then for every longer n
        for n in range(2, order + 1):
            self.followed[n - 1] = np.bincount(ranks[:-1], minlength=len(self.counts[n - 1]))
            keys, longer, counts = np.unique(
                self._pack(ranks[:-1], ids[n - 1 :]), return_inverse=True, return_counts=True
            )
            self._keys[n], self.counts[n] = np.append(keys, -1), np.append(counts, 0)
            self.context[n] = keys // (size + 1)
            self.followers[n - 1] = np.bincount(self.context[n], minlength=len(self.counts[n - 1]))
            self.shorter[n] = np.empty(len(keys), dtype=np.int64)
            self.shorter[n][longer] = ranks[1:]
            ranks = longer

    @property
    def parameters(self) -> int:
        """The counts that are kept: as many as there are different n-grams in train, of all lengths."""
        return sum(int(np.count_nonzero(counts)) for counts in self.counts.values())

    def _pack(self, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        return context * (self.size + 1) + word

    def find(self, n: int, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        """The ranks of n-grams, n of 2 or more: int64, shape (tokens,).

        `context`: the ranks of their first n - 1 words; `word`: the ids of their last; int64, shape (tokens,).
        """
        keys, wanted = self._keys[n], self._pack(context, word)
        # Looked up in their own order, they find the keys in the cache: five times as fast.
        order = np.argsort(wanted)
        rank = np.empty_like(order)
        rank[order] = np.searchsorted(keys[:-1], wanted[order])
        return np.where(keys[rank] == wanted, rank, len(keys) - 1)

    def walk(self, stream: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """For n from 2 to `order`: n, and of every token of `stream` but the first `order` - 1, which are context, the
        rank of the n - 1 words before it and that of the n-gram it ends; int64, shape (tokens,)."""
        ranks, first = stream, self.order - 1
        for n in range(2, self.order + 1):
            contexts = ranks[:-1]
            ranks = self.find(n, contexts, stream[n - 1 :])
            yield n, contexts[first + 1 - n :], ranks[first + 1 - n :]


def windows(store: TokenStore, split: str, length: int) -> Iterator[np.ndarray]:
    """The ids of `split` in chunks, each after the `length` ids (1 or more) before it: int64, shape (length + tokens,).

    The context of the first tokens reaches back over the split boundary; |V| stands before the stream's beginning.
    """
    for before, ids in chunks(store, split, length, CHUNK):
        yield np.concatenate([np.full(length - len(before), store.size), before, ids]).astype(np.int64)
