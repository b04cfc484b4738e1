"""What single words show: where the network and the trigram differ, and where the network puts words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from nplm2003.figures.style import BLUE, GREY, INK, VERMILION, WIDTH, blank, look
from nplm2003.neighbours import listed_words, principal_plane, read_features
from nplm2003.outcomes import Outcomes, Row, Run, best
from nplm2003.vocabulary import TokenStore

MAPPED = 220  # words on the map


def _nats(row: Row, split: str) -> np.ndarray:
    """Total nats of each frequency bin of `split`, the mean over the runs of a row: shape (bins,)."""
    runs = [[record["nats"] for record in run.evaluation["by_frequency"][split]] for run in row.runs]
    return np.mean(runs, axis=0)


def draw_word_frequency(outcomes: Outcomes) -> Figure:
    """Network and trigram by how often the target word occurs in train, on test; the mean over the seeds.

    Left: nats per token within each bin. Right: what each bin adds to the difference of the two models in nats per
    token of test; the bars add up to the logarithm of the ratio of their perplexities, in the mean over the seeds.
    """
    network, trigram = outcomes.best("network"), outcomes.best("interpolated")
    if network is None or trigram is None:
        return blank("This study has no pair of a network and an interpolated trigram to compare.")
    split = "test"
    shown = [row for row in (network, trigram, outcomes.best("mixture")) if row is not None]
    bins = network.runs[0].evaluation["by_frequency"][split]  # the same tokens in every run
    labels = [record["bin"] for record in bins]
    tokens = np.array([record["tokens"] for record in bins])
    places = np.arange(len(labels))

    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.8))
    for index, row in enumerate(shown):
        colour, marker = look(index)
        left.plot(places, _nats(row, split) / tokens, marker=marker, color=colour, label=row.model)
    left.set_title("cost of a token")
    left.set_ylabel("nats per token of the bin")
    left.set_ylim(bottom=0)
    left.legend()

    difference = (_nats(network, split) - _nats(trigram, split)) / tokens.sum()
    bars = right.bar(places, difference, color=[BLUE if value < 0 else VERMILION for value in difference], width=0.7)
    shares = [f"{share:.1f} %" for share in 100 * tokens / tokens.sum()]
    right.bar_label(bars, shares, padding=2, fontsize=7, color=INK)
    right.axhline(0, color=INK, linewidth=0.8)
    right.margins(y=0.15)
    right.set_title(f"{network.model} minus {trigram.model}")
    right.set_ylabel(f"nats per token of test (sum: {difference.sum():+.3f})")
    for axes in (left, right):
        axes.set_xticks(places, labels, rotation=40, ha="right", rotation_mode="anchor")
        axes.set_xlabel("occurrences of the word in train")
        axes.grid(False, axis="x")
    right.set_xlabel("occurrences of the word in train\n(percentages: share of test tokens)")
    return figure


def _label(axes: Axes, points: np.ndarray, words: Sequence[str], marked: set[str]) -> None:
    """Write the words beside their points, in the order given, each at the first of eight places that is free.

    A word that has no free place stays a dot: fewer labels that can be read are worth more than all of them. Those in
    `marked` are always written, over a dot if need be.
    """
    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()  # settles the layout, so that the size of a label in pixels is known
    pixels = axes.transData.transform(points)
    dots = [Bbox.from_bounds(x - 2, y - 2, 4, 4) for x, y in pixels]
    labels: list[Bbox] = []
    frame = axes.get_window_extent()
    sides = [np.array((dx, dy)) for dx in (1, -1, 0) for dy in (0, 1, -1) if (dx, dy) != (0, 0)]
    for i, word in enumerate(words):
        special = word in marked
        text = axes.text(0, 0, word, va="bottom", zorder=3, parse_math=False)  # "$" is a word, not mathematics
        text.set(fontsize=7.5 if special else 6.5, color=VERMILION if special else INK)
        text.set_fontweight("bold" if special else "normal")
        extent = text.get_window_extent()
        size = np.array((extent.width, extent.height))
        others = [*labels, *(dot for n, dot in enumerate(dots) if n != i)]
        # Each place: the lower left corner of the label, 4 pixels away from the dot on one side of it.
        places = [pixels[i] + 4 * side + (side - 1) / 2 * size for side in sides]
        boxes = [Bbox.from_bounds(*place, *size) for place in places]
        free = [box for box in boxes if _inside(box, frame) and not box.count_overlaps(others)]
        if special and not free:
            free = [min(boxes, key=lambda box: box.count_overlaps([*labels, *others]))]
        if free:
            text.set_position(tuple(axes.transData.inverted().transform(free[0].p0)))
            labels.append(free[0])
        else:
            text.remove()


def _inside(box: Bbox, frame: Bbox) -> bool:
    return box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1


def draw_word_features(outcomes: Outcomes) -> Figure:
    """The learnt features C of frequent words on their first two principal components; the listed words stand out."""
    network = outcomes.best("network")
    if network is None:
        return blank("This study trains no network: there are no word features.")
    axes_names = ("first principal component", "second principal component")
    return _map(outcomes, network.best_run, principal_plane, axes_names)


def draw_two_features(outcomes: Outcomes) -> Figure:
    """The features C of a network that has two of them (section 5 of the paper): the map is all that it knows."""
    network = best([row for row in outcomes.extended_rows() if row.settings["features"] == 2 and row.kind == "network"])
    if network is None:
        return blank("This study trains no network of two features.")
    return _map(outcomes, network.best_run, np.asarray, ("first feature", "second feature"))


def _map(outcomes: Outcomes, run: Run, place: Callable[[np.ndarray], np.ndarray], names: tuple[str, str]) -> Figure:
    """Frequent words where `place` puts their features (k, m), at points (k, 2); the listed words stand out."""
    store = TokenStore(outcomes.folder / "tokens")
    features = read_features(run, store)
    frequent = np.argsort(-store.train_counts, kind="stable")
    frequent = frequent[(frequent != 0) & (store.train_counts[frequent] > 0)][:MAPPED]
    marked = [store.words.index(word) for word in listed_words(store) if word in store.words]
    shown = np.array(list(dict.fromkeys([*marked, *frequent.tolist()])))  # the listed words get their labels first
    points = place(features[shown])
    words = [store.words[i] for i in shown]

    figure, axes = plt.subplots(figsize=(WIDTH, 6.4))
    special = np.isin(shown, marked)
    axes.scatter(points[~special, 0], points[~special, 1], s=7, color=GREY, zorder=2)
    axes.scatter(points[special, 0], points[special, 1], s=14, color=VERMILION, zorder=2)
    axes.margins(0.06)
    axes.set_title(f"word features of {run.model}, seed {run.seed}: {len(shown)} words")
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    _label(axes, points, words, {store.words[i] for i in marked})
    return figure
