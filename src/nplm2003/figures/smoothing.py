"""How the ways of smoothing share the probability of one context: a small table of counts, invented for this figure.

The models are those of `nplm2003.ngram.smoothed`, bigrams on a text that holds every pair of the table as often as it
says, and Kneser-Ney, which is absolute discounting over another unigram: a word counts once for every different word
it follows, and not as often as it occurs (Kneser and Ney 1995).
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from nplm2003.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, WIDTH
from nplm2003.ngram.counts import NgramCounts
from nplm2003.ngram.smoothed import Order, SmoothedNgram, absolute, counts_of_counts, estimate_discounts
from nplm2003.outcomes import Outcomes

# How often each word follows each context.
CONTEXT = "the"
FOLLOWERS = {
    "the": {"cat": 7, "dog": 3, "room": 2, "tree": 2, "bird": 1, "child": 1, "garden": 1},
    "a": {"house": 4, "cat": 2, "dog": 1, "room": 1, "child": 2},
    "every": {"house": 2, "bird": 3, "tree": 1},
    "old": {"house": 1, "dog": 2, "garden": 1, "tree": 1},
    "small": {"house": 3, "cat": 1, "bird": 1, "room": 1},
    "her": {"child": 4, "dog": 1, "bird": 3},
    "this": {"tree": 5, "child": 6, "room": 5},
    "San": {"Francisco": 10},
}
NEVER = "zebra"  # in the vocabulary, nowhere in the text
UNSEEN = {  # words that never follow the context, and what is special about them
    "house": "house: after four other words",
    "Francisco": "Francisco: as often, after San alone",
    NEVER: "zebra: nowhere in the text",
}
# The words after the context by how often they were seen there, with the colour of their share.
SHARES = {7: BLUE, 3: SKY, 2: GREEN, 1: ORANGE, 0: VERMILION}
MARKERS = dict(zip(UNSEEN, (("o", PURPLE), ("s", VERMILION), ("^", GREY)), strict=True))


def example() -> tuple[NgramCounts, list[str]]:
    """The counts of the bigrams of the text that the table stands for, and its vocabulary."""
    text = [word for before, after in FOLLOWERS.items() for word, n in after.items() for word in [before, word] * n]
    words = [*dict.fromkeys(text), NEVER]
    return NgramCounts(np.array([words.index(word) for word in text]), len(words), 2), words


def kneser_ney(counts: NgramCounts, context: int) -> np.ndarray:
    """P(. | context) of the interpolated Kneser-Ney bigram: float64, shape (|V|,)."""
    discounts = estimate_discounts("absolute-discounting", [counts_of_counts(counts, n) for n in (1, 2)])["discounts"]
    # Of every word, how many different words it follows.
    different = np.bincount(counts.shorter[2], minlength=counts.size)
    seen = np.flatnonzero(different)
    uniform = np.full(len(seen), 1 / counts.size)
    total, followers = np.array([different.sum()]), np.array([len(seen)])
    first = Order(different[seen], np.zeros(len(seen), dtype=int), uniform, total, followers, counts.size)
    probability, weight, _ = absolute(first, discounts[0])
    unigram = np.full(counts.size, weight[0] / counts.size)
    unigram[seen] = probability
    here = counts.context[2] == context
    rows = np.flatnonzero(here)
    total, followers = counts.followed[1][[context]], counts.followers[1][[context]]
    lower = unigram[counts.shorter[2][rows]]
    second = Order(counts.counts[2][rows], np.zeros(len(rows), dtype=int), lower, total, followers, counts.size)
    probability, weight, _ = absolute(second, discounts[1])
    result = weight[0] * unigram
    result[counts.shorter[2][rows]] = probability
    return result


def distributions(counts: NgramCounts, context: int) -> dict[str, np.ndarray]:
    """P(. | context) under each way of smoothing, by its name."""
    numbers = [counts_of_counts(counts, n) for n in (1, 2)]
    ways = {
        "maximum likelihood": ("maximum-likelihood", {}),
        "add one": ("add-k", {"k": 1.0}),
        "add 0.1": ("add-k", {"k": 0.1}),
        "Katz": ("katz", estimate_discounts("katz", numbers)),
        "absolute discounting": ("absolute-discounting", estimate_discounts("absolute-discounting", numbers)),
    }
    found = {
        name: SmoothedNgram(kind, counts, parameters).distribution(np.array([context]))
        for name, (kind, parameters) in ways.items()
    }
    return {**found, "Kneser-Ney": kneser_ney(counts, context)}


def draw_smoothing(outcomes: Outcomes) -> Figure:
    """Left: the share of the words seen often, rarely and never after one context. Right: three of those never seen.

    Drawn from invented counts: the same for every study.
    """
    counts, words = example()
    shares = distributions(counts, words.index(CONTEXT))
    after = FOLLOWERS[CONTEXT]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, 3.7), sharey=True, gridspec_kw={"width_ratios": (1.7, 1)}
    )
    for place, probability in enumerate(shares.values()):
        start = 0.0
        for times, colour in SHARES.items():
            group = [i for i, word in enumerate(words) if after.get(word, 0) == times]
            share = float(probability[group].sum())
            left.barh(
                place, share, left=start, height=0.66, color=colour, edgecolor="white", label=_legend(times, group)
            )
            if share > 0.07:
                left.text(start + share / 2, place, f"{share:.2f}", ha="center", va="center", color="white", fontsize=8)
            start += share
        _draw_unseen(right, place, {word: float(probability[words.index(word)]) for word in UNSEEN})
    left.set_yticks(range(len(shares)), list(shares))
    left.set_ylim(len(shares) - 0.5, -0.5)
    left.set_xlim(0, 1)
    left.set_title(f"who gets the probability after “{CONTEXT}”")
    left.set_xlabel("sum of P(w | the)")
    right.set_xscale("log")
    right.xaxis.set_minor_locator(NullLocator())
    right.set_title("three words never seen")
    right.set_xlabel("P(w | the)")
    for axes, columns in ((left, 2), (right, 1)):
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        handles, labels = axes.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17)}
        axes.legend(once.values(), once.keys(), **below, ncols=columns, fontsize=8)
    return figure


def _legend(times: int, group: list[int]) -> str:
    counted = {0: "never seen", 1: "once", 2: "twice"}.get(times, f"{times} times")
    return f"{counted} ({len(group)} word{'s' if len(group) > 1 else ''})"


def _draw_unseen(axes: Axes, place: int, probabilities: dict[str, float]) -> None:
    """One mark for each word, one below the other, since equal ones would hide each other."""
    for line, (word, probability) in enumerate(probabilities.items(), start=-1):
        marker, colour = MARKERS[word]
        if probability > 0:
            axes.plot(probability, place + 0.22 * line, marker, color=colour, label=UNSEEN[word])
    if not any(probabilities.values()):
        axes.text(0.03, place, "all 0", transform=axes.get_yaxis_transform(), va="center", color=INK, fontsize=8)
