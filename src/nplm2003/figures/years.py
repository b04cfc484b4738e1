"""Twenty years on one corpus: every model by the year of its method."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from nplm2003.extended import extended_records
from nplm2003.figures.style import BLUE, GREEN, GREY, INK, VERMILION, WIDTH
from nplm2003.neural.architectures import ARCHITECTURES, PAPER
from nplm2003.outcomes import Outcomes
from nplm2003.study import OUT_OF_VOCABULARY

EARLIEST = 1978  # older methods stand at the left edge
GROUPS = {
    "n-gram": (GREY, "o"),
    "the paper's network": (BLUE, "s"),
    "later networks": (GREEN, "^"),
    "mixture": (VERMILION, "D"),
}


def _group(architecture: str) -> str:
    if architecture == "mixture":
        return architecture
    if architecture in (PAPER, OUT_OF_VOCABULARY):
        return "the paper's network"
    return "later networks" if architecture in ARCHITECTURES else "n-gram"


def draw_extended(outcomes: Outcomes) -> Figure:
    """Test perplexity of every model over the year of its method; of each year and group the best one has its name."""
    records = [record for record in extended_records(outcomes) if math.isfinite(record["test"])]
    figure, axes = plt.subplots(figsize=(WIDTH, 4.6))
    named: dict[tuple[str, int], dict] = {}
    for name, (colour, marker) in GROUPS.items():
        mine = [record for record in records if _group(record["architecture"]) == name]
        if not mine:
            continue
        years = [max(record["year"], EARLIEST) for record in mine]
        axes.plot(years, [record["test"] for record in mine], marker, color=colour, label=name, alpha=0.75)
        for record, year in zip(mine, years, strict=True):
            key = (name, year)
            if key not in named or record["valid"] < named[key]["valid"]:
                named[key] = record
    for (_, year), record in named.items():
        axes.annotate(
            record["model"], (year, record["test"]), xytext=(4, -9), textcoords="offset points", fontsize=7, color=INK
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter("{x:,.0f}")
    axes.set_xlabel("year of the method")
    axes.set_ylabel("test perplexity")
    axes.margins(x=0.08)
    axes.legend(loc="upper right")
    return figure
