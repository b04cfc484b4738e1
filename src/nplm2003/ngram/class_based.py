"""Class-based back-off n-grams (section 4.1; Brown et al. 1992).

    P(w | h) = P(c(w) | classes of the words of h) P(w | c(w))

The classes are those of `nplm2003.ngram.classes`. The first factor is a modified Kneser-Ney n-gram over the stream of
classes (`nplm2003.ngram.kneser_ney`: its notes on the closed vocabulary and the reserved mass hold here, with the C
classes in the place of V). As every class is frequent, its discounts for single classes cannot be computed, and
lmplz's fallback discounts stand in; the description of the model says so.

**Inside a class** every word of V counts once more than it occurs in train: P(w | c) = (N(w) + 1) / (N(c) + |c|), |c|
the number of its words. So words that never occur in train, all in the class of the merged symbol, have their share.
Tried on Brown's validation were: unseen words shared out over the classes by the number of their words, in the class
with most words seen once, or in that of the merged symbol; and absolute discounting, D = n1 / (n1 + 2 n2), or this
add-one. The pair taken was the best for 150, 500 and 2,000 classes alike, by 1 to 3 %. What add-one gives rare words is
more than they have in train, and right where the whole stream chose V: they are in it for their occurrences elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nplm2003.ngram.kneser_ney import KneserNey
from nplm2003.vocabulary import TokenStore


class ClassStream:
    """The stream of a token store with every word replaced by its class, as `kneser_ney.SymbolStream`."""

    def __init__(self, store: TokenStore, class_of: np.ndarray) -> None:
        """`class_of`: the class of every word, shape (|V|,), each class with a word of train."""
        self.size = int(class_of.max()) + 1
        self._store, self._class_of = store, class_of.astype(np.min_scalar_type(self.size - 1))
        self.fingerprint = store.fingerprint
        self.train_counts = np.bincount(class_of, weights=store.train_counts, minlength=self.size).astype(np.int64)

    def __getitem__(self, split: str) -> np.ndarray:
        return self._class_of[self._store[split]]

    def history(self, split: str, length: int) -> np.ndarray:
        """The classes of the words that stand before `split`."""
        return self._class_of[self._store.history(split, length)]


def log_within_class(train_counts: np.ndarray, class_of: np.ndarray) -> np.ndarray:
    """log P(w | c(w)) of every word, natural: float64, shape (|V|,). Arguments of the same shape."""
    counts = train_counts + 1
    return np.log(counts) - np.log(np.bincount(class_of, weights=counts))[class_of]


class ClassBased:
    """A class n-gram that `kneser_ney.estimate` wrote for a `ClassStream`, made a model of the words of `store`."""

    def __init__(self, path: Path, store: TokenStore, class_of: np.ndarray) -> None:
        self._store, self._class_of = store, class_of
        self._ngram = KneserNey(path, ClassStream(store, class_of))
        self._log_within = log_within_class(store.train_counts, class_of)

    def score(self, split: str) -> Iterator[np.ndarray]:
        """The natural-log probabilities of the tokens of `split`, as `KneserNey.score` gives them."""
        ids, done = self._store[split], 0
        for scores in self._ngram.score(split):
            yield scores + self._log_within[ids[done : done + len(scores)]]
            done += len(scores)

    def distribution(self, context: np.ndarray) -> np.ndarray:
        """P(. | context) over the whole vocabulary: float64, shape (|V|,); `context`: word ids, in stream order."""
        classes = self._ngram.distribution(self._class_of[context])
        return classes[self._class_of] * np.exp(self._log_within)

    def reserved_mass(self, context: np.ndarray) -> float:
        """The mass that the class n-gram gives symbols outside the classes, before any of it is given back."""
        return self._ngram.reserved_mass(self._class_of[context])
