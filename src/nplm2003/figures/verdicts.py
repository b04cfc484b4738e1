"""The claims of the paper, drawn."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nplm2003.claims import claim_records
from nplm2003.figures.style import BLUE, GREY, INK, PUBLISHED, WIDTH, blank
from nplm2003.outcomes import Outcomes


def draw_claims(outcomes: Outcomes) -> Figure:
    """The effect behind every claim with its interval, the published effect, and the verdict at the right."""
    claims = [record for record in claim_records(outcomes) if record["low_percent"] is not None]
    if not claims:
        return blank("This study has no rows that a claim of the paper could be tested on.")
    figure, axes = plt.subplots(figsize=(WIDTH, 1.0 + 0.27 * len(claims)))
    for place, claim in enumerate(claims):
        axes.plot([claim["low_percent"], claim["high_percent"]], [place] * 2, "|-", color=BLUE, mew=1.6, zorder=2)
        axes.plot(claim["change_percent"], place, "o", color=BLUE, markersize=4, zorder=3)
        if claim["published_percent"] is not None:
            axes.plot(claim["published_percent"], place, **PUBLISHED, markersize=5, zorder=1)
        axes.text(
            1.01, place, claim["verdict"], transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=INK
        )
    axes.axvline(0, color=GREY, linewidth=0.8)
    labels = [f"{claim['claim']}   {claim['comparison'].split(':')[0]}" for claim in claims]
    axes.set_yticks(range(len(claims)), labels)
    axes.set_ylim(len(claims) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("change of the test perplexity, %")
    handles = [Line2D([], [], marker="o", markersize=4, color=BLUE, label="this study, 95 % interval")]
    if any(claim["published_percent"] is not None for claim in claims):
        handles.append(Line2D([], [], **PUBLISHED, label=outcomes.published_label))
    figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure
