"""Twenty years on one corpus: every model by the year of its method."""

from __future__ import annotations

import math
import statistics
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.markers import CARETUP
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from nplm2003.extended import extended_records
from nplm2003.figures.style import BLUE, GREEN, GREY, INK, VERMILION, WIDTH, blank
from nplm2003.neural.architectures import ARCHITECTURES, PAPER
from nplm2003.outcomes import Outcomes
from nplm2003.study import OUT_OF_VOCABULARY

EARLIEST = 1978  # older methods stand at the left edge
FAR = 2  # times the median perplexity: what is above stands at the upper edge
GROUPS = {
    "n-gram": (GREY, "o"),
    "the paper's network": (BLUE, "s"),
    "other networks": (GREEN, "^"),
    "mixture": (VERMILION, "D"),
}


def _group(architecture: str) -> str:
    if architecture == "mixture":
        return architecture
    if architecture in (PAPER, OUT_OF_VOCABULARY):
        return "the paper's network"
    return "other networks" if architecture in ARCHITECTURES else "n-gram"


def _spread(figure: Figure, labels: list[Annotation]) -> None:
    """Move labels down until none covers another; those that stand higher keep their place."""
    figure.canvas.draw()  # places them
    placed: list[Bbox] = []
    for label in sorted(labels, key=lambda each: -each.get_window_extent().y1):
        box = label.get_window_extent()
        for other in sorted(placed, key=lambda each: -each.y1):
            if box.overlaps(other):
                step = box.y1 - other.y0 + 1
                x, y = label.xyann
                label.xyann = (x, y - step * 72 / figure.dpi)
                box = box.translated(0, -step)
        placed.append(box)


def _best_so_far(records: list[dict[str, Any]]) -> list[tuple[int, float]]:
    """After each of `records`, by year: its year, and the test perplexity of what validation chose so far."""
    reached: list[tuple[int, float]] = []
    lowest = math.inf
    for record in records:
        if not reached or record["valid"] < lowest:
            lowest, test = record["valid"], record["test"]
        reached.append((max(record["year"], EARLIEST), test))
    return reached


def draw_extended(outcomes: Outcomes) -> Figure:
    """Test perplexity of every model over the year of its method; of each year and group the best one has its name,
    and so has every other network.

    The lines are the best single model and the best mixture of their time. What is far above the rest stands at the
    upper edge, with its perplexity.
    """
    records = extended_records(outcomes)
    finite = [record["test"] for record in records if math.isfinite(record["test"])]
    if not finite:
        return blank("every model has an infinite perplexity")
    highest = FAR * statistics.median(finite)
    ceiling = max(value for value in finite if value <= highest) * 1.12
    figure, axes = plt.subplots(figsize=(WIDTH, 4.6))
    labels = []

    def label(text: str, year: int, height: float) -> None:
        labels.append(
            axes.annotate(
                text,
                (year, height),
                xytext=(5, -3),
                textcoords="offset points",
                fontsize=7,
                color=INK,
                path_effects=[withStroke(linewidth=2, foreground="white")],
                zorder=1.5,  # over the lines, below the points
            )
        )

    for name, (colour, marker) in GROUPS.items():
        mine = [(max(record["year"], EARLIEST), record) for record in records if _group(record["architecture"]) == name]
        near = [(year, record) for year, record in mine if record["test"] <= highest]
        if near:
            heights = [record["test"] for _, record in near]
            axes.plot([year for year, _ in near], heights, marker, color=colour, label=name, alpha=0.75)
        for year in sorted({year for year, _ in near}):
            of_year = sorted((record for other, record in near if other == year), key=lambda record: record["valid"])
            for record in of_year if name == "other networks" else of_year[:1]:
                label(record["model"], year, record["test"])
        for year, record in mine:
            if record["test"] > highest:
                axes.plot(year, ceiling, marker=CARETUP, color=colour, clip_on=False)
                value = f"{record['test']:,.0f}" if math.isfinite(record["test"]) else "infinite"
                label(f"{record['model']}: {value}", year, ceiling)
    for what, colour in (("single model", INK), ("mixture", VERMILION)):
        made = [record for record in records if (_group(record["architecture"]) == "mixture") == (what == "mixture")]
        reached = [(year, test) for year, test in _best_so_far(made) if test <= highest]
        if reached:
            x, y = zip(*reached, strict=True)
            axes.step(x, y, where="post", color=colour, linewidth=0.9, alpha=0.6, zorder=1, label=f"best {what} so far")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("year of the method")
    axes.set_ylabel("test perplexity")
    first, last = axes.get_xlim()
    axes.set_xlim(first - 1, last + 6)  # names stand to the right
    axes.set_ylim(top=ceiling)
    axes.legend(loc="lower left")
    _spread(figure, labels)
    return figure
