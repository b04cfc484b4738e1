"""Learning curves of the networks, by epoch and by seconds."""

from __future__ import annotations

from collections import defaultdict

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator

from nplm2003.figures.style import INK, WIDTH, blank, look
from nplm2003.outcomes import Outcomes, Run
from nplm2003.plan import ways_to_train


def draw_learning_curves(outcomes: Outcomes) -> Figure:
    """Perplexity after each epoch, one panel per preset, a line per seed; a circle marks the epoch that was kept."""
    presets: dict[str, list[Run]] = defaultdict(list)
    for run in outcomes.runs("network"):
        presets[run.row["preset"]].append(run)
    if not presets:
        return blank("This study trains no network: there is no learning curve.")
    # A network keeps its colour from panel to panel: MLP1 and MLP1-paper are the same network.
    shapes = list(dict.fromkeys(run.row["published"] or run.model for runs in presets.values() for run in runs))
    figure, panels = plt.subplots(
        1, len(presets), figsize=(WIDTH if len(presets) > 1 else 5.2, 3.8), sharey=True, squeeze=False
    )
    for axes, (preset, runs) in zip(panels[0], presets.items(), strict=True):
        for run in runs:
            colour, _ = look(shapes.index(run.row["published"] or run.model))
            curve = run.learning_curve()
            kept = curve[curve["best"] == 1]
            axes.plot(curve["epoch"], curve["train_perplexity"], color=colour, linestyle=":", linewidth=1.2)
            axes.plot(curve["epoch"], curve["valid_perplexity"], color=colour)
            circle = {"mfc": "white", "markersize": 7, "mew": 1.6}
            axes.plot(kept["epoch"], kept["valid_perplexity"], "o", color=colour, **circle, zorder=3)
        _log_perplexity(axes)
        axes.set_title(f"{preset} preset")
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0][0].set_ylabel("perplexity")
    handles = [Line2D([], [], color=look(index)[0], label=shape) for index, shape in enumerate(shapes)]
    styles = [
        Line2D([], [], color=INK, label="validation"),
        Line2D([], [], color=INK, linestyle=":", linewidth=1.2, label="train, during the epoch"),
        Line2D([], [], color=INK, marker="o", mfc="white", markersize=7, mew=1.6, linestyle="", label="epoch kept"),
    ]
    figure.legend(handles=styles, loc="outside upper right", ncols=3)
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def draw_training_time(outcomes: Outcomes) -> Figure:
    """Validation perplexity against the seconds that training has taken: the ways to train one network, compared.

    The network is the one that the study trains in the most ways (presets, output layers); a line per seed.
    """
    rows = [outcomes.row(settings) for settings in ways_to_train(outcomes.study)]
    if not rows:
        return blank("This study trains no network whose word features are learnt.")
    order, hidden, features, direct = (rows[0].settings[key] for key in ("order", "hidden", "features", "direct"))
    figure, axes = plt.subplots(figsize=(5.6, 4.0))
    for index, row in enumerate(rows):
        colour, marker = look(index)
        for run in row.runs:
            curve = run.learning_curve()
            axes.plot(curve["seconds"].cumsum(), curve["valid_perplexity"], color=colour, marker=marker, markersize=4)
    _log_perplexity(axes)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_title(f"n = {order}, h = {hidden}, m = {features}, {'direct' if direct else 'no direct'}")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("validation perplexity")
    handles = [
        Line2D([], [], color=look(index)[0], marker=look(index)[1], markersize=4, label=row.model)
        for index, row in enumerate(rows)
    ]
    axes.legend(handles=handles)
    return figure


def _log_perplexity(axes: Axes) -> None:
    """A logarithmic axis of perplexities with plain numbers on it, and the whole grid."""
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(1.5, 2, 3, 4, 5, 7)))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter("{x:,.0f}")
    axes.grid(True, which="both")
