"""N-grams smoothed as before Kneser and Ney: what the paper's baselines had replaced, and why.

With c(h w) the count of word w after the context h = n - 1 words, c(h) = sum_w c(h w), h' the context without its first
word, and P(w | h) = P(w | h') wherever c(h) = 0; below the unigram stands 1 / |V|:

- **maximum-likelihood**: P(w | h) = c(h w) / c(h). A word that never followed h has probability 0, and a text with one
  such word an infinite perplexity.
- **add-k** (Lidstone 1920; k = 1 is Laplace's): P(w | h) = (c(h w) + k) / (c(h) + k |V|). One k for all contexts, the
  best on validation of a grid of `GRID`. After a context with c(h) = 0 the formula alone would say 1 / |V|.
- **katz** (Katz 1987): P(w | h) = d(r) r / c(h) for a word with r = c(h w) > 0, d(r) the Good-Turing discount

      d(r) = (r* / r - x) / (1 - x),   r* = (r + 1) n(r+1) / n(r),   x = (K + 1) n(K+1) / n(1)

  for r up to K = 5, 1 above, n(r) the number of n-grams of that order seen r times. All other words share what is left,
  in proportion to P(w | h'). In a context whose words were all seen more than K times nothing would be left: there 1 is
  added to c(h), as SRILM does (Stolcke 2002); and where every word of V was seen, nothing is discounted.
- **absolute-discounting** (Ney, Essen and Kneser 1994, interpolated):

      P(w | h) = max(c(h w) - D, 0) / c(h) + D N(h) / c(h) P(w | h'),   D = n(1) / (n(1) + 2 n(2)),

  N(h) the number of different words after h. D is theirs, of each order, and not fitted on validation: on Brown that
  would make it larger, and perplexity 5 % lower.

Good-Turing discounts are not usable where some n(r) is 0 or a d(r) is not between 0 and 1, as for words of a vocabulary
that leaves out rare ones: such an order takes d(r) = 1 - D / r. Where n(1) or n(2) is 0, D is `FALLBACK_DISCOUNT`. What
`estimate` returns names both kinds of orders.

The first tokens of train have fewer than n - 1 words before them; a word that occurs nowhere stands in the empty
places, so they have the context that is there.

**Why not nltk.lm**, which has the first, the second and the last of these: it counts and scores one token at a time in
Python. For order 3 on Brown it took 31 seconds (add-k) and 205 (absolute discounting) to count train and score every
token, on one core; this module takes half a second. Its absolute discounting takes nothing from unigrams, so that words
which train lacks have probability 0; add-k says 1 / |V| where c(h) = 0; and it has no Katz. Where both say the same, a
test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nplm2003.errors import UserError
from nplm2003.ngram.counts import NgramCounts, windows
from nplm2003.vocabulary import TokenStore

# What each kind is told of its parameters, as `nplm2003.files.misfit` describes shapes.
PARAMETERS: dict[str, dict[str, Any]] = {
    "maximum-likelihood": {},
    "add-k": {"k": float},
    "katz": {"discounts": [[float]]},
    "absolute-discounting": {"discounts": [float]},
}
GRID = 10 ** (np.arange(-120, 41) / 20)  # of k: 20 values for each power of 10, from a millionth to 100
HIGHEST = 5  # K, the highest count that Katz discounts
FALLBACK_DISCOUNT = 0.5


@dataclass(frozen=True)
class Order:
    """What was seen of one order n, for the formulas above. Everything of a context has an entry for each of them.

    `count`, c(h w), `context`, the rank of h, and `lower`, P(w | h'), are of every n-gram seen: shape (n-grams,).
    `total`, c(h), and `followers`, N(h), are of every context: shape (contexts,). `size` is |V|.
    """

    count: np.ndarray
    context: np.ndarray
    lower: np.ndarray
    total: np.ndarray
    followers: np.ndarray
    size: int

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum over the words seen after each context: shape (contexts,); `values`: shape (n-grams,)."""
        return np.bincount(self.context, weights=values, minlength=len(self.total))


# Of an `Order`: P(w | h) of every n-gram seen, and `weight` and `floor` of every context, whose other words have
# weight P(w | h') + floor. What it says of contexts with c(h) = 0 is not used.
Shares = tuple[np.ndarray, np.ndarray, np.ndarray]
Method = Callable[[Order], Shares]


def maximum_likelihood(order: Order) -> Shares:
    """Relative frequencies, and nothing for other words."""
    nothing = np.zeros(len(order.total))
    return order.count / order.total[order.context], nothing, nothing


def add_k(order: Order, k: float) -> Shares:
    """k added to every count, also to those of 0."""
    denominator = order.total + k * order.size
    return (order.count + k) / denominator[order.context], np.zeros(len(order.total)), k / denominator


def katz(order: Order, ratios: np.ndarray) -> Shares:
    """Counts times their discounts d(1), ..., d(K) = `ratios`; other words share what is left."""
    kept = order.count * np.append(ratios, 1)[np.minimum(order.count, len(ratios) + 1) - 1]
    everything = order.followers == order.size
    kept = np.where(everything[order.context], order.count, kept)
    left = order.sums(order.count - kept)
    left += (left == 0) & ~everything
    denominator = order.sums(kept) + left
    # The words that were not seen have this much of P(. | h').
    unseen = np.where(everything, 1, 1 - order.sums(order.lower))
    return kept / denominator[order.context], left / denominator / unseen, np.zeros(len(order.total))


def absolute(order: Order, discount: float) -> Shares:
    """Counts less `discount`, which all words share in proportion to P(w | h')."""
    mass = discount * order.followers / order.total
    return (
        (order.count - discount) / order.total[order.context] + mass[order.context] * order.lower,
        mass,
        np.zeros(len(order.total)),
    )


def count(store: TokenStore, order: int) -> NgramCounts:
    """The counts of train for a model of `order`; UserError where there can be none."""
    if order < 2:
        raise UserError(f"order {order} has no context; choose an order of 2 or more")
    if len(store["train"]) < order:
        raise UserError(f"train has {len(store['train'])} tokens, too few for order {order}; choose a smaller one")
    return NgramCounts(store["train"], store.size, order)


def counts_of_counts(counts: NgramCounts, n: int) -> list[int]:
    """n(1), ..., n(K + 1): how many different n-grams of order `n` occur once, twice, ..."""
    seen = counts.counts[n]
    return np.bincount(seen[seen <= HIGHEST + 1], minlength=HIGHEST + 2)[1:].tolist()


def good_turing(numbers: list[int]) -> list[float] | None:
    """d(1), ..., d(K) of the counts of counts; None where they are not usable."""
    if min(numbers) == 0:
        return None
    x = (HIGHEST + 1) * numbers[HIGHEST] / numbers[0]
    if x >= 1:
        return None
    ratios = [((r + 1) * numbers[r] / numbers[r - 1] / r - x) / (1 - x) for r in range(1, HIGHEST + 1)]
    return ratios if all(0 < ratio < 1 for ratio in ratios) else None


def closed_form(numbers: list[int]) -> float | None:
    """D = n(1) / (n(1) + 2 n(2)), None where one of them is 0."""
    once, twice = numbers[:2]
    return once / (once + 2 * twice) if once and twice else None


class SmoothedNgram:
    """A smoothed n-gram: of every n-gram of train its probability, and of every context `weight` and `floor`.

    P(w | h) is that of the longest n-gram of train that ends h w, then for every longer context h that was seen in
    train weight(h) P(w | h') + floor(h).
    """

    def __init__(self, kind: str, counts: NgramCounts, parameters: Mapping[str, Any]) -> None:
        """`kind`: one of `PARAMETERS`; `parameters`: what `estimate` returned for it, on the same counts."""
        self.counts = counts
        self._probabilities: dict[int, np.ndarray] = {}  # by length of the n-gram, then by rank
        self._weights: dict[int, np.ndarray] = {}  # by length of the context, then by rank
        self._floors: dict[int, np.ndarray] = {}
        methods = _methods(kind, parameters, counts.order)
        seen = np.flatnonzero(counts.counts[1])
        for n, method in enumerate(methods, start=1):
            first = n == 1
            total, ranks = counts.followed[n - 1], seen if first else np.arange(len(counts.context[n]))
            order = Order(
                counts.counts[n][ranks],
                np.zeros(len(seen), dtype=np.int64) if first else counts.context[n],
                np.full(len(seen), 1 / counts.size) if first else self._probabilities[n - 1][counts.shorter[n]],
                total,
                counts.followers[n - 1],
                counts.size,
            )
            with np.errstate(divide="ignore", invalid="ignore"):  # contexts with c(h) = 0
                probability, weight, floor = method(order)
            self._weights[n - 1], self._floors[n - 1] = np.where(total > 0, weight, 1), np.where(total > 0, floor, 0)
            # Words that never occur in train have an entry as well.
            other = self._weights[0][0] / counts.size + self._floors[0][0]
            self._probabilities[n] = np.full(len(counts.counts[n]), other)
            self._probabilities[n][ranks] = probability

    def probabilities(self, stream: np.ndarray) -> np.ndarray:
        """The probability of every token of `stream` but the first order - 1, which are context: float64.

        `stream`: int64 ids; |V| stands for a word before the beginning.
        """
        result = self._probabilities[1][stream[self.counts.order - 1 :]]
        for n, contexts, ranks in self.counts.walk(stream):
            result = self._longer(n, contexts, ranks, result)
        return result

    def _longer(self, n: int, contexts: np.ndarray, ranks: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """P(w | h) for contexts of n - 1 words, given their ranks, those of the n-grams, and `lower`, P(w | h')."""
        probabilities = self._probabilities[n]
        others = self._weights[n - 1][contexts] * lower + self._floors[n - 1][contexts]
        return np.where(ranks < len(probabilities) - 1, probabilities[ranks], others)

    def distribution(self, context: np.ndarray) -> np.ndarray:
        """P(. | context) over the whole vocabulary: float64, shape (|V|,); `context`: ids, in stream order."""
        words = np.arange(self.counts.size)
        result = self._probabilities[1][words]
        for length in range(1, min(len(context), self.counts.order - 1) + 1):
            last = np.asarray(context, dtype=np.int64)[-length:, None]
            rank = last[0]
            for n, word in enumerate(last[1:], start=2):
                rank = self.counts.find(n, rank, word)
            contexts = np.broadcast_to(rank, words.shape)
            result = self._longer(length + 1, contexts, self.counts.find(length + 1, contexts, words), result)
        return result

    def score(self, store: TokenStore, split: str) -> Iterator[np.ndarray]:
        """The natural-log probabilities of the tokens of `split`, in parts of shape (tokens,), float64.

        Under `maximum-likelihood`, -inf for a token that never followed its context in train.
        """
        for stream in windows(store, split, self.counts.order - 1):
            with np.errstate(divide="ignore"):
                yield np.log(self.probabilities(stream))


def _methods(kind: str, parameters: Mapping[str, Any], order: int) -> list[Method]:
    """The method of every order from 1; refuses parameters that are no result of `estimate`."""
    if kind == "maximum-likelihood":
        return [maximum_likelihood] * order
    if kind == "add-k":
        if not parameters["k"] > 0:
            raise UserError(f"k = {parameters['k']} is not above 0")
        return [partial(add_k, k=parameters["k"])] * order
    discounts = parameters["discounts"]
    wanted = (order,) if kind == "absolute-discounting" else (order, HIGHEST)
    values = np.array([])
    if len({np.shape(row) for row in discounts}) == 1:
        values = np.array(discounts, dtype=np.float64)
    if values.shape != wanted or not ((values >= 0) & (values < 1)).all():
        raise UserError(f"the discounts are not {' x '.join(map(str, wanted))} numbers from 0 to 1")
    return [
        partial(absolute, discount=row) if kind == "absolute-discounting" else partial(katz, ratios=row)
        for row in values
    ]


def estimate(kind: str, counts: NgramCounts, store: TokenStore) -> dict[str, Any]:
    """The parameters of a model of `kind`, as plain JSON values.

    `counts_of_counts` holds n(1) to n(K + 1) of every order from 1. add-k has `k` and its `valid_nats`, the mean
    negative log-likelihood of validation; katz and absolute-discounting have `discounts`, d(1) to d(K) or D of every
    order, and `fallback_orders`, the orders where these are not those of the formula.
    """
    result: dict[str, Any] = {"counts_of_counts": [counts_of_counts(counts, n) for n in range(1, counts.order + 1)]}
    if kind == "add-k":
        k, nats = _best_k(counts, store)
        result |= {"k": k, "valid_nats": nats}
    elif kind != "maximum-likelihood":
        result |= estimate_discounts(kind, result["counts_of_counts"])
    return result


def estimate_discounts(kind: str, numbers: list[list[int]]) -> dict[str, Any]:
    """`discounts` and `fallback_orders` of katz or absolute-discounting, from the counts of counts of every order."""
    discounts: list[Any] = []
    fallback = []
    for order, each in enumerate(numbers, start=1):
        amount = closed_form(each)
        formula = good_turing(each) if kind == "katz" else amount
        if formula is None:
            fallback.append(order)
            amount = amount or FALLBACK_DISCOUNT
            formula = [1 - amount / r for r in range(1, HIGHEST + 1)] if kind == "katz" else amount
        discounts.append(formula)
    return {"discounts": discounts, "fallback_orders": fallback}


def _best_k(counts: NgramCounts, store: TokenStore) -> tuple[float, float]:
    """The k of `GRID` that makes validation most likely, and its nats per token."""
    seen = np.concatenate([_seen(counts, stream) for stream in windows(store, "valid", counts.order - 1)], axis=1)
    pairs, times = np.unique(seen, axis=1, return_counts=True)  # a few stand for all tokens
    nats = [-np.average(np.log((pairs[0] + k) / (pairs[1] + k * counts.size)), weights=times) for k in GRID]
    best = int(np.argmin(nats))
    return float(GRID[best]), float(nats[best])


def _seen(counts: NgramCounts, stream: np.ndarray) -> np.ndarray:
    """c(h w) and c(h) for the longest h in train, of the tokens of `SmoothedNgram.probabilities`: shape (2, tokens)."""
    words = stream[counts.order - 1 :]
    result = np.stack([counts.counts[1][words], np.full(len(words), counts.total)])
    for n, contexts, ranks in counts.walk(stream):
        followed = counts.followed[n - 1][contexts]
        result = np.where(followed > 0, [counts.counts[n][ranks], followed], result)
    return result
