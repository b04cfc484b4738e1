"""Word classes learnt from train by the exchange algorithm (Kneser and Ney 1993; Martin, Liermann and Ney 1998).

Every word belongs to one class. The criterion is the log-likelihood of train under the class bigram with relative
frequencies, P(w | v) = P(c(w) | c(v)) P(w | c(w)). With N(g, h) the number of bigrams from class g to class h, N(g, .)
and N(., h) its sums, and F(x) = x log x, that is

    sum_{g,h} F(N(g, h)) - sum_g F(N(g, .)) - sum_h F(N(., h)) + sum_w F(N(., w)),

whose last term no assignment changes. One pass takes the words of train by falling frequency, takes each out of its
class and puts it where the criterion is highest. So the criterion never falls, and when a pass moves no word, no move
of a single word can raise it.

**The start.** The C - 1 most frequent words have classes of their own, all others share the last. On Brown with 500
classes this reached a higher criterion after three passes than words dealt out in turn after fourteen.

**Words that never occur in train** have no bigrams and leave the criterion alone. They join the class of the merged
symbol: that symbol stands for words too rare for the vocabulary, so it marks the places where rare words stand.

**Speed.** The gains of moving a word to all C classes are one NumPy expression over the classes that it stands beside,
with F looked up in a table: a pass over Brown takes 2 to 3 seconds with 500 classes and 10 with 2,000, on one core. A
compiled loop is not needed.
"""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nplm2003.errors import UserError
from nplm2003.files import description_path, read_object, write_json, write_text
from nplm2003.provenance import provenance
from nplm2003.vocabulary import MERGED_ID, TokenStore

# Learning ends with the pass that raises the criterion by less than this, in nats per token, or with the last pass.
TOLERANCE = 1e-4
MAX_PASSES = 30
DESCRIPTION = {"vocabulary": str, "classes": int, "fingerprint": str}  # what is read of a description
# A move that gains less than this, in nats over all of train, is rounding.
LEAST_GAIN = 1e-6


class _Beside(NamedTuple):
    """How often a word stands directly before, or after, words of each class, itself left out.

    `dense`: shape (C,); `classes`: those with a count; `counts`: their counts.
    """

    dense: np.ndarray
    classes: np.ndarray
    counts: np.ndarray


class _Neighbours:
    """For each word the words on one side of it and how often: the rows of a sparse matrix without its diagonal."""

    def __init__(self, words: np.ndarray, others: np.ndarray, counts: np.ndarray, size: int) -> None:
        order = np.argsort(words, kind="stable")
        self._others, self._counts = others[order], counts[order]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(words, minlength=size))]).tolist()

    def beside(self, word: int, class_of: np.ndarray, number: int) -> _Beside:
        """Its neighbours' counts, added up by class."""
        row = slice(self._starts[word], self._starts[word + 1])
        dense = np.bincount(class_of[self._others[row]], weights=self._counts[row], minlength=number).astype(np.int64)
        classes = np.flatnonzero(dense)
        return _Beside(dense, classes, dense[classes])


class Clustering:
    """Words assigned to classes, with the bigram counts of the classes; words can be moved.

    Attributes: `class_of`, the class of every word, int64, shape (|V|,); `number`, of classes, C.
    """

    def __init__(self, train: np.ndarray, class_of: np.ndarray, number: int) -> None:
        """`train`: token ids, shape (T,), T at least 2; `class_of`: where every word begins, 0 to C - 1."""
        ids, size = train.astype(np.int64), len(class_of)
        first, second = ids[:-1], ids[1:]
        self.class_of, self.number = class_of.astype(np.int64), number
        # How often each word is the first, and the second, of a bigram.
        self._word_first, self._word_second = np.bincount(first, minlength=size), np.bincount(second, minlength=size)
        pairs, counts = np.unique(first * size + second, return_counts=True)
        before, after = np.divmod(pairs, size)
        twice = before == after
        self._repeats = np.zeros(size, dtype=np.int64)
        self._repeats[before[twice]] = counts[twice]
        before, after, counts = before[~twice], after[~twice], counts[~twice]
        self._followers = _Neighbours(before, after, counts, size)
        self._predecessors = _Neighbours(after, before, counts, size)

        flat = np.bincount(self.class_of[first] * number + self.class_of[second], minlength=number * number)
        # N(g, h), and the same transposed: both are read by whole rows.
        self._counts = flat.reshape(number, number)
        self._transposed = self._counts.T.copy()
        self._first, self._second = self._counts.sum(axis=1), self._counts.sum(axis=0)
        x = np.arange(1, len(ids), dtype=np.float64)
        self._x_log_x = np.concatenate([[0.0], x * np.log(x)])
        self._constant = self._x_log_x[self._word_second].sum()
        self._bigrams = len(ids) - 1

    def criterion(self) -> float:
        """The mean log-likelihood of train under the class bigram: nats per token (the first one left out)."""
        terms = self._x_log_x[self._counts].sum() + self._constant
        terms -= self._x_log_x[self._first].sum() + self._x_log_x[self._second].sum()
        return float(terms / self._bigrams)

    def gains(self, word: int) -> np.ndarray:
        """What moving `word` to each class adds to the log-likelihood of train: nats, shape (C,); 0 at its own."""
        own = int(self.class_of[word])
        after, before = self._beside(word)
        self._add(word, own, after, before, -1)
        terms = self._terms(word, after, before)
        self._add(word, own, after, before, 1)
        return terms - terms[own]

    def improve(self, word: int) -> bool:
        """Put `word` into the class where the criterion is highest; whether that moved it."""
        gains = self.gains(word)
        best = int(gains.argmax())
        if gains[best] <= LEAST_GAIN:
            return False
        after, before = self._beside(word)
        self._add(word, int(self.class_of[word]), after, before, -1)
        self._add(word, best, after, before, 1)
        self.class_of[word] = best
        return True

    def _beside(self, word: int) -> tuple[_Beside, _Beside]:
        """The classes that follow `word`, and those that it follows."""
        return (
            self._followers.beside(word, self.class_of, self.number),
            self._predecessors.beside(word, self.class_of, self.number),
        )

    def _add(self, word: int, to: int, after: _Beside, before: _Beside, sign: int) -> None:
        """Add the bigrams of `word` to those of class `to`, or take them out of it with `sign` -1."""
        self._counts[to, after.classes] += sign * after.counts
        self._transposed[after.classes, to] += sign * after.counts
        self._counts[before.classes, to] += sign * before.counts
        self._transposed[to, before.classes] += sign * before.counts
        self._counts[to, to] += sign * self._repeats[word]
        self._transposed[to, to] += sign * self._repeats[word]
        self._first[to] += sign * self._word_first[word]
        self._second[to] += sign * self._word_second[word]

    def _terms(self, word: int, after: _Beside, before: _Beside) -> np.ndarray:
        """What adding `word`, which is in no class now, to each class adds to the log-likelihood: shape (C,)."""
        table = self._x_log_x
        terms = self._side(self._transposed, after) + self._side(self._counts, before)
        # N(k, k) gets bigrams from both sides, and those of the word with itself: F is not linear, so it is done anew.
        same = np.diagonal(self._counts)
        terms += table[same + after.dense + before.dense + self._repeats[word]] + table[same]
        terms -= table[same + after.dense] + table[same + before.dense]
        for sums, own in ((self._first, self._word_first[word]), (self._second, self._word_second[word])):
            terms -= table[sums + own] - table[sums]
        return terms

    def _side(self, counts: np.ndarray, beside: _Beside) -> np.ndarray:
        """sum_j F(counts[j, k] + n_j) - F(counts[j, k]) for each class k: shape (C,)."""
        now = counts[beside.classes]
        added: np.ndarray = self._x_log_x.take(now + beside.counts[:, None])
        added -= self._x_log_x.take(now)
        return added.sum(axis=0)


def learn(
    train: np.ndarray, size: int, number: int, tolerance: float = TOLERANCE
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Assign the `size` words of V to `number` classes by their bigrams in `train`, token ids of shape (T,).

    Returns the class of every word, int64, shape (|V|,), and a record for the start and for each pass: `pass`,
    `moved` (words) and `criterion` (nats per token). No class is without a word of train. Refused with a `UserError`:
    fewer than 2 classes, or more than words that occur in train.
    """
    from tqdm import tqdm

    counts = np.bincount(train, minlength=size)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    if not 2 <= number <= len(order):
        raise UserError(
            f"{number:,} classes are not possible: train has {len(order):,} different words, so choose 2 to "
            f"{len(order):,}"
            if len(order) > 1
            else f"{number:,} classes are not possible: train has one word alone"
        )
    class_of = np.full(size, number - 1)
    class_of[order[: number - 1]] = np.arange(number - 1)
    clustering = Clustering(train, class_of, number)
    passes: list[dict[str, Any]] = [{"pass": 0, "moved": 0, "criterion": clustering.criterion()}]
    _report(passes)
    words = order.tolist()
    for turn in range(1, MAX_PASSES + 1):
        # disable=None: a bar on a terminal, nothing in a log.
        bar = tqdm(words, desc=f"pass {turn}", unit=" words", leave=False, disable=None)
        moved = sum(clustering.improve(word) for word in bar)
        passes.append({"pass": turn, "moved": moved, "criterion": clustering.criterion()})
        _report(passes)
        if passes[-1]["criterion"] - passes[-2]["criterion"] <= tolerance:
            break
    class_of = clustering.class_of
    # Without a merged symbol in train, the rarest word is the nearest to one.
    class_of[counts == 0] = class_of[MERGED_ID if counts[MERGED_ID] else order[-1]]
    return class_of, passes


def _report(passes: list[dict[str, Any]]) -> None:
    last = passes[-1]
    done = f"pass {last['pass']}: {last['moved']:,} words moved" if last["pass"] else "start"
    print(f"{done}, {last['criterion']:.5f} nats per token", file=sys.stderr, flush=True)


def write_classes(store: TokenStore, number: int, output: Path) -> dict[str, Any]:
    """Learn `number` classes on the train of `store`: a table at `output`, and beside it a .json that describes it.

    The table has the columns id, word, class and train (the count); the description the passes. Returns the latter.
    """
    begin = time.perf_counter()
    class_of, passes = learn(store["train"], store.size, number)
    rows = zip(store.words, class_of.tolist(), store.train_counts.tolist(), strict=True)
    write_text(
        output,
        "id\tword\tclass\ttrain\n"
        + "".join(f"{i}\t{word}\t{group}\t{count}\n" for i, (word, group, count) in enumerate(rows)),
    )
    description = {
        "format": 1,
        "vocabulary": store.fingerprint,
        "classes": number,
        "fingerprint": _fingerprint(class_of),
        "tolerance": TOLERANCE,
        "passes": passes,
        "seconds": round(time.perf_counter() - begin, 3),
        "provenance": provenance({"classes": number}),
    }
    write_json(description_path(output), description)
    return description


def read_classes(path: Path, store: TokenStore) -> tuple[np.ndarray, dict[str, Any]]:
    """The class of every word, int64, shape (|V|,), from a table of `write_classes`, and its description.

    Refused with a `UserError` where the table was made on other tokens than `store`, or its description is missing or
    does not belong to it.
    """
    again = "learn them with `nplm2003 learn-classes`"
    try:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[1:-1]]
        class_of = np.array([row[2] for row in rows], dtype=np.int64)
        description = read_object(description_path(path), DESCRIPTION)
    except (OSError, ValueError, IndexError) as error:  # ValueError: no UTF-8, or no number
        raise UserError(f"{path} and its .json cannot be read as word classes ({error}): {again}") from error
    if description["vocabulary"] != store.fingerprint:
        raise UserError(f"{path} was learnt on other tokens than {store.folder}: {again} on these")
    words = zip(store.words, store.train_counts.tolist(), strict=True)
    if [row[:2] + row[3:] for row in rows] != [[str(i), word, str(count)] for i, (word, count) in enumerate(words)]:
        raise UserError(f"{path} does not hold the words of {store.folder} in their order: {again} again")
    if description["fingerprint"] != _fingerprint(class_of):
        raise UserError(f"{path} is not the table that its .json describes: {again} again")
    return class_of, description


def _fingerprint(class_of: np.ndarray) -> str:
    """SHA-256 of the classes of all words, in the order of the words."""
    return hashlib.sha256("\n".join(map(str, class_of.tolist())).encode()).hexdigest()
