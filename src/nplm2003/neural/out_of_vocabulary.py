"""Words outside of the vocabulary (section 5 of the paper): features for a word from the contexts it was met in.

The vocabulary V merges all rare words into one symbol. Here each of them gets features of its own, without training:
where word j stands in a context, the paper takes the features of the words that could stand there as well, each as much
as it is expected,

    C(j) <- sum over i in V of C(i) P(i | context),

and from then on C(j) takes the place of C(merged symbol) wherever j stands in a context. A word that is met again gets
the mean over all its occurrences so far (the paper speaks of the first only). Who j is says a second token store of the
same stream, whose policy merges nothing, or less. Two ways, of `FEATURES`:

- `expected` is the paper's;
- `rare` is ours. A word outside V is rare, so only words of V that train has `RARE_COUNT` times or less stand for it
  (the merged symbol not among them, their probabilities made to sum to 1), and C(j) goes `SHARE` of the way from
  C(merged symbol), which is learnt from many words, to theirs. Both numbers were chosen on validation (Brown, MLP9),
  counts among 10, 50, 200 and 1,000, shares among 0.1, 0.25, 0.5 and 1.

The text is read in stream order, from the first token of validation on. What a token sees of j are the occurrences
before that token alone; P(i | context) is computed with the features that the words outside V in that context had then.

**Larger vocabulary.** With J, the words met so far, the softmax is normalised over V and J together:

    P(w | context) = e^y(w) / Z,    Z = sum over V of e^y(i) + sum over J of e^(y(j) + beta) / |J|.

The network of the paper has a row O(i) = (W(i), U(i), b(i)) for each word. That of j is the same mean of rows of O as
C(j) is of features, without the way from the merged symbol, and y(j) = O(j) z. Such a row leans to those of frequent
words; `beta`, one number for all of J, corrects its bias. It is the likeliest one on validation, at which the expected
number of words of J is the number there are. The division by |J| was chosen on validation too, where it was a little
better than none. The merged symbol then stands for the words not met so far. In a second way, `within`, the words of J
share the probability of the merged symbol with it, and that of no other word changes:

    P(j | context) = P(merged | context) e^(y(j) + beta) / |J| / (e^y(merged) + sum over J of e^(y(k) + beta) / |J|).

Both are compared with what knows the merged symbol alone, and chooses among its words whatever the context: `uniform`
over all its types; or `counted`, by Witten and Bell's (1991) rule, c(j) / (N + |J|) for a word met c(j) times among the
N words outside V so far, and |J| / (N + |J|) for all others together. All four give a distribution over the words of V
but the merged symbol, the words of J, and one event for all words that are new.

Letters are those of `nplm2003.neural.model`; E is the number of occurrences of words outside V.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.evaluation import perplexity
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.scoring import SPLITS
from nplm2003.vocabulary import MERGED_ID, TokenStore

FEATURES = ("expected", "rare")
RARE_COUNT = 200
SHARE = 0.25
HELD_OUT = ("valid", "test")
WAYS = ("uniform", "counted", "larger", "within")
LIMIT = 50.0  # of beta: beyond it a probability is 0 or 1
PART = 512  # tokens weighed at a time: words met among them are known to some and not to others


def identities(store: TokenStore, every: TokenStore, split: str) -> np.ndarray:
    """Which word every merged token of `split` is: its id in `every`, -1 for other tokens and where that merges it too.

    Shape (tokens,). Raises UserError unless each token of the two stores is the same one.
    """
    ours = {word: number for number, word in enumerate(store.words)}
    place = np.array([ours.get(word, MERGED_ID) for word in every.words])
    ids, words = store[split], every[split].astype(np.int64)
    if len(ids) != len(words) or not np.array_equal(place[words], ids):
        raise UserError(
            f"{every.folder} does not hold the tokens of {store.folder}, {split} differs: build both from one corpus, "
            "by policies that differ in their cut alone, the former's keeping more words"
        )
    return np.where((ids == MERGED_ID) & (words != MERGED_ID), words, -1)


class Reading:
    """Train, valid and test as one stream, and the E occurrences of words outside V in it, in stream order.

    Attributes: `positions` (E,), where in the stream they are; `previous` (E,), the occurrence of the same word before
    this one, -1 where there is none; `following` (E,), the position of the next one, beyond the stream where there is
    none; `counts` (E,), how often the word was met up to and with this one.
    """

    def __init__(self, store: TokenStore, every: TokenStore, order: int) -> None:
        self.order, self.size = order, store.size
        before = order - 1  # merged symbols stand before the first token, as in `nplm2003.neural.data`
        self.ids = np.concatenate([np.full(before, MERGED_ID), *(store[split] for split in SPLITS)]).astype(np.int64)
        ends = np.cumsum([before, *(len(store[split]) for split in SPLITS)])
        self.bounds = {split: (int(ends[k]), int(ends[k + 1])) for k, split in enumerate(SPLITS)}
        words = np.concatenate([np.full(before, -1), *(identities(store, every, split) for split in SPLITS)])
        words[: self.bounds["valid"][0]] = -1
        self.positions = np.flatnonzero(words >= 0)
        self._words, self._key = words, len(words) + 1
        own = words[self.positions]
        self._by_word = np.argsort(own, kind="stable")
        self._keys = (own * self._key + self.positions)[self._by_word]
        new = np.diff(own[self._by_word], prepend=-1) != 0  # the first occurrence of each word
        rank = np.arange(len(own))
        self.counts = np.empty_like(rank)
        self.counts[self._by_word] = rank - np.maximum.accumulate(np.where(new, rank, 0)) + 1
        self.previous, self.following = np.full(len(own), -1), np.full(len(own), len(words))
        again, earlier = self._by_word[1:][~new[1:]], self._by_word[:-1][~new[1:]]
        self.previous[again], self.following[earlier] = earlier, self.positions[again]

    def contexts(self, positions: np.ndarray) -> np.ndarray:
        """Contexts (B, n-1) of the tokens at `positions` (B,), the most recent word first.

        Ids from |V| on are occurrences: |V| + e stands for its word as it was known after occurrence e, the last one
        before the token.
        """
        slots = positions[:, None] - np.arange(1, self.order)
        ids, words = self.ids[slots], self._words[slots]
        known = words >= 0
        wanted = (words * self._key + positions[:, None])[known]
        ids[known] = self.size + self._by_word[np.searchsorted(self._keys, wanted) - 1]
        return ids

    @cached_property
    def turns(self) -> tuple[np.ndarray, np.ndarray]:
        """In which turn, from 0, the context of each occurrence is known, and the mean after it: two arrays (E,).

        All occurrences of one turn can be computed at once: they need the means of earlier turns alone.
        """
        contexts = (self.contexts(self.positions) - self.size).tolist()
        context_turn, mean_turn = [0] * len(contexts), [0] * len(contexts)
        for number, (context, previous) in enumerate(zip(contexts, self.previous.tolist(), strict=True)):
            needed = [mean_turn[occurrence] for occurrence in context if occurrence >= 0]
            context_turn[number] = max(needed, default=-1) + 1
            mean_turn[number] = max(context_turn[number], mean_turn[previous] if previous >= 0 else 0)
        return np.array(context_turn, dtype=np.int64), np.array(mean_turn, dtype=np.int64)

    def follows(self, split: str) -> np.ndarray:
        """Whether a word outside V that was met stands in the context of each token of `split`: shape (tokens,)."""
        start, end = self.bounds[split]
        known = np.concatenate([[0], np.cumsum(self._words >= 0)])
        return known[start:end] > known[start - self.order + 1 : end - self.order + 1]

    def met(self, split: str) -> np.ndarray:
        """How many different words were met before each token of `split`: shape (tokens,)."""
        first = self.positions[self.counts == 1]
        return np.searchsorted(first, np.arange(*self.bounds[split]))


class Words(NamedTuple):
    """The words of V, and after them every word outside V as it was known after each of its occurrences.

    `C` (|V| + E, m): features; `O` (|V| + E, K): rows of the output layer.
    """

    C: Tensor
    O: Tensor


def _parts(length: int) -> Iterator[slice]:
    return (slice(start, start + PART) for start in range(0, length, PART))


def _before_output(model: NeuralLanguageModel, C: Tensor, contexts: np.ndarray) -> Tensor:
    """z, shape (B, K), of `contexts` (B, n-1) whose ids are rows of `C`."""
    x = C[torch.from_numpy(contexts)].flatten(start_dim=1)
    return model.join(x, model.activation(x))


@torch.no_grad()
def meet(model: NeuralLanguageModel, reading: Reading, features: str, train_counts: np.ndarray) -> Words:
    """Read the text: the features and the output rows of every word outside V after each of its occurrences.

    `features`: one of `FEATURES`; `train_counts` (|V|,): of the words in train.
    """
    rows = torch.cat([model.C, model.O], dim=1)
    rare = torch.from_numpy((train_counts <= RARE_COUNT) & (np.arange(len(train_counts)) != MERGED_ID))
    if features == "rare" and not rare.any():
        raise UserError(
            f"every word of the vocabulary occurs more than {RARE_COUNT} times in train: no rare ones can stand for "
            "those outside of it; use the features expected, or a larger vocabulary"
        )
    table = torch.cat([rows, rows.new_zeros(len(reading.positions), rows.shape[1])])
    words = Words(table[:, : model.features], table[:, model.features :])
    contexts = reading.contexts(reading.positions)
    context_turn, mean_turn = reading.turns
    for turn in range(int(mean_turn.max(initial=-1)) + 1):
        ready = np.flatnonzero(context_turn == turn)
        for part in _parts(len(ready)):
            z = _before_output(model, words.C, contexts[ready[part]])
            log_P = model.output.distribution(model.O, z)
            if features == "rare":
                log_P = torch.log_softmax(log_P.masked_fill(~rare, -torch.inf), dim=1)
            found = log_P.exp() @ rows
            if features == "rare":
                found[:, : model.features].lerp_(model.C[MERGED_ID], 1 - SHARE)
            table[torch.from_numpy(reading.size + ready[part])] = found
        # From the vector of each occurrence to the mean of all so far, in place: word by word, the earlier ones first.
        known = np.flatnonzero((mean_turn == turn) & (reading.previous >= 0))
        for count in np.unique(reading.counts[known]):
            these = known[reading.counts[known] == count]
            own, before = (torch.from_numpy(reading.size + each) for each in (these, reading.previous[these]))
            table[own] = torch.lerp(table[before], table[own], 1 / float(count))
    return words


@torch.no_grad()
def score_followers(
    model: NeuralLanguageModel, reading: Reading, words: Words, split: str, plain: np.ndarray
) -> np.ndarray:
    """Natural-log probabilities of the tokens of `split` over V, float32: those of `plain`, the scores of the network
    itself, but where a word outside V that was met stands in the context."""
    scores = np.array(plain)
    followers = np.flatnonzero(reading.follows(split))
    for part in _parts(len(followers)):
        positions = reading.bounds[split][0] + followers[part]
        z = _before_output(model, words.C, reading.contexts(positions))
        targets = torch.from_numpy(reading.ids[positions])
        scores[followers[part]] = model.output.log_probabilities(model.O, z, targets).numpy()
    return scores


class Larger(NamedTuple):
    """What the larger vocabulary adds to V, for each token of a split: float64, shape (tokens,) each.

    `others`: log of the sum of e^y(j) over the words j in J, in units of the sum of e^y(i) over V; -inf where none was
    met. `own`: log of e^y(j) of the token's own word in the same units where that was met before, NaN elsewhere.
    """

    others: np.ndarray
    own: np.ndarray


@torch.no_grad()
def enlarge(model: NeuralLanguageModel, reading: Reading, words: Words, split: str, closed: np.ndarray) -> Larger:
    """Weigh the words met so far against those of V at every token of `split`; `closed`: its scores over V."""
    start, end = reading.bounds[split]
    found = Larger(np.empty(end - start), np.full(end - start, np.nan))
    rows = words.O[reading.size :]
    for part in _parts(end - start):
        positions = np.arange(start, end)[part]
        z = _before_output(model, words.C, reading.contexts(positions))
        # e^y of the token over its probability is the sum over V.
        y_token = (z * model.O[torch.from_numpy(reading.ids[positions])]).sum(dim=1)
        log_Z = y_token - torch.from_numpy(closed[part])
        # Each occurrence says how its word is known after it, up to and with the next one.
        first, last = positions[0], positions[-1]
        known = np.flatnonzero((reading.positions < last) & (reading.following >= first))
        y = z @ rows[torch.from_numpy(known)].T
        changing = np.flatnonzero((reading.positions[known] >= first) | (reading.following[known] < last))
        since, until = reading.positions[known[changing]], reading.following[known[changing]]
        hidden = (positions[:, None] <= since) | (positions[:, None] > until)
        y[:, torch.from_numpy(changing)] += torch.from_numpy(np.where(hidden, -np.inf, 0).astype(np.float32))
        found.others[part] = (torch.logsumexp(y, dim=1) - log_Z).numpy()

        own = np.arange(*np.searchsorted(reading.positions, [first, last + 1]))
        own = own[reading.previous[own] >= 0]
        row = torch.from_numpy(reading.positions[own] - first)
        y_own = (z[row] * rows[torch.from_numpy(reading.previous[own])]).sum(dim=1)
        found.own[reading.positions[own] - start] = (y_own - log_Z[row]).numpy()
    return found


def likeliest(weights: np.ndarray, met: int) -> float:
    """beta, the number to add to `weights`, log e^y of J in units of all others at each token, so that `met` words of J
    are expected among the tokens: where the log-likelihood of these tokens is highest, since it is concave in beta."""
    low, high = -LIMIT, LIMIT
    while high - low > 1e-9:
        middle = (low + high) / 2
        expected = np.exp(-np.logaddexp(0, -(middle + weights))).sum()
        low, high = (middle, high) if expected < met else (low, middle)
    return (low + high) / 2


class Judged:
    """The tokens of a split, and log P of each under the four `WAYS` to tell words outside V apart.

    `closed` (tokens,): log P over V. Attributes: `merged`, `met` (tokens,): whether the word is outside V, and was met
    before.
    """

    def __init__(self, reading: Reading, split: str, larger: Larger, closed: np.ndarray) -> None:
        start, end = reading.bounds[split]
        self.closed = np.asarray(closed, dtype=np.float64)
        self.merged, self.met = reading.ids[start:end] == MERGED_ID, np.isfinite(larger.own)
        self._types = reading.met(split)  # |J|
        before = np.searchsorted(reading.positions, np.arange(start, end))
        self._occurrences = before  # N
        self._counts = np.append(reading.counts, 0)[np.minimum(before, len(reading.counts))] - 1  # c of met tokens
        shared = np.log(np.maximum(self._types, 1))
        self._others, self._own = larger.others - shared, larger.own - shared

    def biases(self) -> dict[str, float]:
        """beta of the ways that have one, the likeliest here."""
        met = int(self.met.sum())
        return {
            "larger": likeliest(self._others, met),
            "within": likeliest((self._others - self.closed)[self.merged], met),
        }

    def log_probabilities(self, way: str, biases: Mapping[str, float], types: int) -> np.ndarray:
        """log P of every token, float64, shape (tokens,); `types`: how many words the merged symbol stands for."""
        new = self.merged & ~self.met
        if way == "larger":
            beta = biases[way]
            return np.where(self.met, self._own + beta, self.closed) - np.logaddexp(0, self._others + beta)
        found = self.closed.copy()
        with np.errstate(divide="ignore", invalid="ignore"):  # of tokens that are no words outside V
            if way == "within":
                beta = biases[way]
                shared = np.where(self.met, self._own + beta - self.closed, 0)
                choice = shared - np.logaddexp(0, self._others + beta - self.closed)
            elif way == "uniform":
                choice = np.where(new, np.log1p(-self._types / types), -np.log(types))
            else:
                of = np.maximum(self._occurrences + self._types, 1)
                choice = np.where(new, np.log(np.where(self._types, self._types, 1) / of), np.log(self._counts / of))
        found[self.merged] += choice[self.merged]
        return found


def _records(
    reading: Reading, judged: Judged, split: str, plain: np.ndarray, biases: Mapping[str, float], types: int
) -> Iterator[dict[str, Any]]:
    start, end = reading.bounds[split]
    after = np.zeros(len(reading.ids), dtype=np.int64)
    after[reading.positions] = reading.counts
    window = np.stack([after[start - back : end - back] for back in range(1, reading.order)])
    groups = {
        "all": np.ones(end - start, dtype=bool),
        "next after a word outside V": window[0] > 0,
        f"next {reading.order - 1}": (window > 0).any(axis=0),
        f"next {reading.order - 1}, the word met before": (window > 1).any(axis=0),
        "outside V": judged.merged,
        "outside V, met before": judged.met,
        "outside V, new": judged.merged & ~judged.met,
    }
    scores = {"merged": plain, "features": judged.closed}
    scores |= {way: judged.log_probabilities(way, biases, types) for way in WAYS}
    for name, mask in groups.items():
        if mask.any():
            values = {way: perplexity(each[mask]) for way, each in scores.items()}
            yield {"split": split, "group": name, "tokens": int(mask.sum()), "perplexity": values}


def judge(
    model: NeuralLanguageModel,
    reading: Reading,
    words: Words,
    plain: Mapping[str, np.ndarray],
    scores: Mapping[str, np.ndarray],
    types: int,
) -> dict[str, Any]:
    """What the features are worth: `biases`, and `records`, one for each split and group of tokens.

    A record has `split`, `group`, `tokens` and `perplexity`: over V with C(merged symbol) in the contexts (`merged`) or
    with C(j) (`features`), and with the words outside V told apart in each of `WAYS`. `plain`, `scores`: log P over V
    by the network itself and by `score_followers`, of each split that was read; `types`: how many words V merges.

    Raises UserError where no word outside V is met again in validation.
    """
    judged = {
        split: Judged(reading, split, enlarge(model, reading, words, split, scores[split]), scores[split])
        for split in HELD_OUT
    }
    if not judged["valid"].met.any():
        raise UserError(
            "no word outside the vocabulary is met again in validation, so that nothing says how likely that is: use a "
            "longer validation, or a smaller vocabulary"
        )
    biases = judged["valid"].biases()
    records = [
        record for split in HELD_OUT for record in _records(reading, judged[split], split, plain[split], biases, types)
    ]
    return {"biases": biases, "records": records}
