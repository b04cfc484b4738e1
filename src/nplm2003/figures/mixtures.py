"""Perplexity of a network mixed with an n-gram, against the weight of the network."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nplm2003.figures.style import GREY, INK, WIDTH, blank, look
from nplm2003.mixture import learn, mixture_curve
from nplm2003.outcomes import Outcomes
from nplm2003.scoring import Scores, require_same_tokens

GRID = np.linspace(0, 1, 21)
EQUAL = len(GRID) // 2  # where the weight is 0.5, as in the paper's tables


def draw_mixture_weight(outcomes: Outcomes) -> Figure:
    """Perplexity against the weight of the network in its mixture with the interpolated trigram.

    An open mark stands at the weight 0.5, a full one at the weight that EM learns on validation; all are means over the
    seeds.
    """
    mixtures = outcomes.trigram_mixtures()
    if not mixtures:
        return blank("This study mixes no network with the interpolated trigram.")
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 4.2), sharey=True)
    for index, (_, network, trigram) in enumerate(mixtures):
        tri = Scores(trigram.best_run.folder / "scores")
        curves: dict[str, list[list[float]]] = {"valid": [], "test": []}  # of each seed, the learnt weight at the end
        learnt = []
        for run in network.runs:
            net = Scores(run.folder / "scores")
            require_same_tokens(net, tri)
            held_out = np.stack([net["valid"], tri["valid"]], axis=-1)
            weights, _ = learn(held_out, np.zeros(len(held_out), dtype=np.int64), 1)
            learnt.append(float(weights[0, 0]))
            for split, seeds in curves.items():
                seeds.append(mixture_curve(net[split], tri[split], [*GRID, learnt[-1]]))
        colour, marker = look(index)
        for axes, seeds in zip(panels, curves.values(), strict=True):
            *curve, lowest = np.mean(seeds, axis=0)
            axes.plot(GRID, curve, color=colour)
            axes.plot(GRID[EQUAL], curve[EQUAL], marker, color=colour, mfc="white", mew=1.3, zorder=3)
            axes.plot(np.mean(learnt), lowest, marker, color=colour, zorder=3)
    for axes, title in zip(panels, ("validation", "test"), strict=True):
        axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_title(title)
        axes.set_xlabel("weight of the network")
    panels[0].set_ylabel("perplexity")
    handles = [
        Line2D([], [], color=look(index)[0], marker=look(index)[1], label=network.model)
        for index, (_, network, _) in enumerate(mixtures)
    ]
    handles += [
        Line2D([], [], color=INK, marker="o", mfc="white", mew=1.3, linestyle="", label="weight 0.5"),
        Line2D([], [], color=INK, marker="o", linestyle="", label="learnt on validation"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
