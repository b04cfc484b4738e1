"""One sentence more in train: what it does to the probability of another one (the example of the paper's section 1).

Having seen "The cat is walking in the bedroom", a model should find "A dog was running in a room" more likely, though
the two share next to no n-gram: their words play the same parts. Here a trained network goes on with the windows of the
first sentence alone, and the log-probability of every word of the second is compared before and after. Two kinds of
control tell that from a rise of everything: the words of the second sentence in `DRAWS` random orders, and `DRAWS`
sequences of other words, each about as frequent as the one it stands for. The interpolated trigram gets the first
sentence at the end of its training text, its weights as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from nplm2003.errors import UserError
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import log_probabilities
from nplm2003.neural.training import Trainer
from nplm2003.ngram.interpolated import InterpolatedTrigram, TrigramCounts
from nplm2003.vocabulary import MERGED_ID, TokenStore

# The sentence that is added and the one that should gain: the paper's; and one of the same kind for the embedded
# corpus, which knows no animals.
PAIRS = (
    ("The cat is walking in the bedroom", "A dog was running in a room"),
    ("The class is defined in the module", "A function was called in a block"),
)
BEFORE = "."  # what stands before each sentence, as if another one had ended there
DRAWS = 20  # random sequences of each kind of control
NEAR = 10  # a word is replaced by one of at least so many next to it in the order of frequency, on either side


def choose_pair(store: TokenStore) -> tuple[str, str]:
    """The first of `PAIRS` whose words are all in V; the paper's where there is none."""
    known = set(store.words)
    lowercase = store.statistics["policy"]["lowercase"]
    for pair in PAIRS:
        words = " ".join(pair).split()
        if {word.lower() if lowercase else word for word in words} <= known:
            return pair
    return PAIRS[0]


def encode(text: str, store: TokenStore) -> np.ndarray:
    """The ids of the words of `text`, int64; the merged symbol for those that V lacks. Two words are the least."""
    ids = {word: number for number, word in enumerate(store.words)}
    words = (text.lower() if store.statistics["policy"]["lowercase"] else text).split()
    if len(words) < 2:
        raise UserError(f"the sentence {text!r:.60} has {len(words)} word(s): give two or more, separated by spaces")
    return np.array([ids.get(word, MERGED_ID) for word in words], dtype=np.int64)


def scrambled(ids: np.ndarray, draws: int, generator: np.random.Generator) -> list[np.ndarray]:
    """`draws` random orders of `ids`, none of them the order itself unless all its words are the same."""
    orders: list[np.ndarray] = []
    while len(orders) < draws:
        order = generator.permutation(ids)
        if not np.array_equal(order, ids) or len(set(ids.tolist())) == 1:
            orders.append(order)
    return orders


def unrelated(
    ids: np.ndarray, taken: Sequence[int], size: int, draws: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """`draws` sequences in which another word of about the same frequency stands for each of `ids`.

    Ids below `size` = |V| rise as frequency falls, so it is one of the `NEAR` or more ids on either side; never the
    merged symbol, and none of `taken`. Raises UserError where V has no such word.
    """
    choices = []
    for word in ids.tolist():
        reach = max(NEAR, word // 4)
        near = np.arange(max(1, word - reach), min(size, word + reach + 1))
        choices.append(near[~np.isin(near, taken)])
        if not len(choices[-1]):
            raise UserError(f"a vocabulary of {size} words has no other words for the controls: use a larger one")
    return [np.array([generator.choice(near) for near in choices]) for _ in range(draws)]


def own_rates(preset: Preset, epochs: int, examples: int, direct: bool) -> list[float]:
    """The learning rate of one example, halfway through each of `epochs` of a training with `preset`.

    `examples`: those of an epoch. With these, a sentence that had stood in train would have been learnt.
    """
    total = preset.epochs(direct) * examples
    share = preset.batch if preset.reduction == "mean" else 1
    return [preset.rate_at(round((epoch + 0.5) * examples), total) / share for epoch in range(epochs)]


def _windows(model: NeuralLanguageModel, before: int, ids: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts (k, n-1), the most recent word first, and targets (k,) of a sentence of k words.

    Before it stands the word `before`, and before that merged symbols, as before the first token of train.
    """
    stream = np.concatenate([np.full(model.order - 2, MERGED_ID), [before], ids])
    windows = sliding_window_view(stream, model.order)
    return torch.from_numpy(windows[:, -2::-1].copy()), torch.from_numpy(ids)


@torch.no_grad()
def network_scores(model: NeuralLanguageModel, before: int, ids: np.ndarray) -> list[float]:
    """The natural-log probability of each word of a sentence."""
    contexts, targets = _windows(model, before, ids)
    return [float(value) for value in log_probabilities(model, contexts, targets)]


def trigram_scores(model: InterpolatedTrigram, before: int, ids: np.ndarray) -> list[float]:
    """The natural-log probability of each word of a sentence; nothing is known of what stands before `before`."""
    stream = np.concatenate([[model.counts.size, before], ids])
    return [float(value) for value in np.log(model.probabilities(stream[:-2], stream[1:-1], stream[2:]))]


def learn_sentence(
    model: NeuralLanguageModel, preset: Preset, before: int, ids: np.ndarray, rates: Sequence[float]
) -> None:
    """Train on the windows of one sentence, all in one update for each of `rates`, those of a summed gradient.

    The cost is the exact one of the network's output layer, without dropout, weight decay or noise words: nothing is
    drawn.
    """
    contexts, targets = _windows(model, before, ids)
    plain = replace(
        preset,
        objective="softmax",
        noise_words=0,
        self_normalisation=0.0,
        reduction="sum",
        schedule="hyperbolic",
        rate_decay=0.0,
        weight_decay=0.0,
        dropout=0.0,
    )
    for rate in rates:
        Trainer(model, replace(plain, rate=rate), model.output.descend, seed=0, total=1).descend(contexts, targets)


def _with_sentence(train: np.ndarray, size: int, weights: np.ndarray, added: np.ndarray) -> InterpolatedTrigram:
    """The trigram of `train` with `added` at its end, and the weights it had."""
    counts = TrigramCounts(np.concatenate([train.astype(np.int64), added]), size)
    # A few tokens more can make one bin more, that of contexts never seen: it takes the weights of the last.
    more = counts.number_of_bins - len(weights)
    return InterpolatedTrigram(counts, np.concatenate([weights, np.repeat(weights[-1:], more, axis=0)]))


def add_sentence(
    store: TokenStore,
    model: NeuralLanguageModel,
    preset: Preset,
    rates: Sequence[float],
    sentence: str,
    other: str,
    *,
    seed: int,
    trigram: tuple[TrigramCounts, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Add `sentence` to what `model` was trained on, with one update at each of `rates`; `model` is changed.

    `trigram`: the counts of train, and the weights of the interpolated trigram, where there is one. `seed` draws the
    controls, and nothing else. Returns `rates`, `before` (what stands before each sentence), `seed`, and `sentences`:
    of each its `role` (added, other, scrambled or unrelated), its `words` as the model knows them, `text` as it was
    given for the first two, and the natural-log probability of each word `before` and `after`, by the `network` and by
    the `trigram` (None without one). A network that diverges is a UserError.
    """
    added, second = encode(sentence, store), encode(other, store)
    before = store.words.index(BEFORE) if BEFORE in store.words else MERGED_ID
    generator = np.random.default_rng(seed)
    taken = [*added.tolist(), *second.tolist()]
    texts = {"added": sentence.split(), "other": other.split()}
    sequences = [
        ("added", added),
        ("other", second),
        *(("scrambled", ids) for ids in scrambled(second, DRAWS, generator)),
        *(("unrelated", ids) for ids in unrelated(second, taken, store.size, DRAWS, generator)),
    ]
    scored: dict[str, dict[str, list[list[float]]]] = {"network": {}}
    scored["network"]["before"] = [network_scores(model, before, ids) for _, ids in sequences]
    learn_sentence(model, preset, before, added, rates)
    scored["network"]["after"] = [network_scores(model, before, ids) for _, ids in sequences]
    if not np.isfinite(np.concatenate(scored["network"]["after"])).all():
        raise UserError("the network diverged on the sentence: lower --rate or --repeats")
    if trigram is not None:
        counts, weights = trigram
        more = _with_sentence(store["train"], store.size, weights, np.concatenate([[before], added]))
        scored["trigram"] = {
            "before": [trigram_scores(InterpolatedTrigram(counts, weights), before, ids) for _, ids in sequences],
            "after": [trigram_scores(more, before, ids) for _, ids in sequences],
        }
    return {
        "rates": list(rates),
        "before": store.words[before],
        "seed": seed,
        "sentences": [
            {
                "role": role,
                "words": [store.words[i] for i in ids],
                "text": texts.get(role),
                "trigram": None,
                **{kind: {when: values[number] for when, values in found.items()} for kind, found in scored.items()},
            }
            for number, (role, ids) in enumerate(sequences)
        ],
    }
