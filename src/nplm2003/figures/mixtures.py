"""Perplexity of a network mixed with an n-gram, against the weight of the network."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nplm2003.figures.style import GREY, INK, WIDTH, blank, look
from nplm2003.mixture import learn, mixture_curve
from nplm2003.outcomes import Outcomes, Run
from nplm2003.scoring import Scores, require_same_tokens

GRID = np.linspace(0, 1, 21)
EQUAL = len(GRID) // 2  # where the weight is 0.5, as in the paper's tables


def _pairs(outcomes: Outcomes) -> list[tuple[Run, Run]]:
    """A network and an interpolated trigram for every equal-weight mixture of the study."""
    pairs = []
    for mixture in outcomes.runs("mixture"):
        parts = {run.kind: run for run in outcomes.parts(mixture)}
        if mixture.row["weights"] == "fixed" and set(parts) == {"network", "interpolated"}:
            pairs.append((parts["network"], parts["interpolated"]))
    return pairs


def draw_mixture_weight(outcomes: Outcomes) -> Figure:
    """Perplexity against the weight of the network in its mixture with the interpolated trigram.

    An open mark stands at the weight 0.5, a full one at the weight that EM learns on validation.
    """
    pairs = _pairs(outcomes)
    if not pairs:
        return blank("This study mixes no network with the interpolated trigram.")
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 4.2), sharey=True)
    for index, (network, trigram) in enumerate(pairs):
        net, tri = Scores(network.folder / "scores"), Scores(trigram.folder / "scores")
        require_same_tokens(net, tri)
        held_out = np.stack([net["valid"], tri["valid"]], axis=-1)
        weights, _ = learn(held_out, np.zeros(len(held_out), dtype=np.int64), 1)
        learnt = float(weights[0, 0])
        colour, marker = look(index)
        for axes, split in zip(panels, ("valid", "test"), strict=True):
            *curve, lowest = mixture_curve(net[split], tri[split], [*GRID, learnt])
            axes.plot(GRID, curve, color=colour)
            axes.plot(GRID[EQUAL], curve[EQUAL], marker, color=colour, mfc="white", mew=1.3, zorder=3)
            axes.plot(learnt, lowest, marker, color=colour, zorder=3)
    for axes, title in zip(panels, ("validation", "test"), strict=True):
        axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_title(title)
        axes.set_xlabel("weight of the network")
    panels[0].set_ylabel("perplexity")
    several = len({network.seed for network, _ in pairs}) > 1
    handles = [
        Line2D(
            [],
            [],
            color=look(index)[0],
            marker=look(index)[1],
            label=f"{network.model}, seed {network.seed}" if several else network.model,
        )
        for index, (network, _) in enumerate(pairs)
    ]
    handles += [
        Line2D([], [], color=INK, marker="o", mfc="white", mew=1.3, linestyle="", label="weight 0.5"),
        Line2D([], [], color=INK, marker="o", linestyle="", label="learnt on validation"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
