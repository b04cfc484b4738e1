"""Sweeps: perplexity against one setting, on validation and on test."""

from __future__ import annotations

from collections import defaultdict

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from nplm2003.figures.comparisons import PANELS, network_label, ngram_label
from nplm2003.figures.style import WIDTH, blank, look
from nplm2003.outcomes import Outcomes
from nplm2003.sweeps import Point, sweep_points


def _label(point: Point) -> str:
    """What the points of one curve share."""
    row = point.run.row
    if point.sweep in ("train", "policy"):
        return row["model"]
    if row["kind"] == "network":
        return network_label(row, varied=point.sweep)
    return ngram_label(row) if point.sweep == "order" else row["model"]


def _curves(outcomes: Outcomes, sweep: str) -> dict[str, list[Point]]:
    """The points of a sweep by curve, in the order of the study."""
    curves: dict[str, list[Point]] = defaultdict(list)
    for point in sweep_points(outcomes, sweep):
        curves[_label(point)].append(point)
    return curves


def _legend(figure: Figure) -> None:
    """One legend under both panels, of the curves of the first."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


def _draw(outcomes: Outcomes, sweep: str, label: str, *, logarithmic: bool = False) -> Figure:
    """Curves over a number; a model without that setting is a level line. `logarithmic`: both axes."""
    curves = _curves(outcomes, sweep)
    if not curves:
        return blank(f"This study has no sweep {sweep}.")
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.9), sharey=True)
    places = sorted({point.x for points in curves.values() for point in points if isinstance(point.x, int)})
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for index, (name, points) in enumerate(curves.items()):
            colour, marker = look(index)
            placed = sorted((point.x, point.run.perplexity(split)) for point in points if isinstance(point.x, int))
            if placed:
                axes.plot(*zip(*placed, strict=True), marker=marker, color=colour, label=name)
            else:
                level = [points[0].run.perplexity(split)] * len(places)
                axes.plot(places, level, color=colour, linestyle=":", label=name)
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.margins(x=0.08, y=0.12)
        if logarithmic:
            _scale(axes)
        axes.set_xticks(places, [f"{place:,}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", labelsize=8, labelrotation=30 if logarithmic else 0)
    panels[0].set_ylabel("perplexity")
    _legend(figure)
    return figure


def _scale(axes: Axes) -> None:
    """Both axes logarithmic, with numbers a reader knows on the axis of the perplexity."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:,.0f}")


def draw_sweep_order(outcomes: Outcomes) -> Figure:
    """Perplexity against the order n."""
    return _draw(outcomes, "order", "order n (predicted word included)")


def draw_sweep_hidden(outcomes: Outcomes) -> Figure:
    """Perplexity against the number of hidden units h."""
    return _draw(outcomes, "hidden", "hidden units h")


def draw_sweep_features(outcomes: Outcomes) -> Figure:
    """Perplexity against the number of features m."""
    return _draw(outcomes, "features", "features m of a word")


def draw_sweep_train(outcomes: Outcomes) -> Figure:
    """Perplexity against the number of training tokens, both on a logarithmic scale."""
    return _draw(outcomes, "train", "training tokens", logarithmic=True)


def draw_sweep_policy(outcomes: Outcomes) -> Figure:
    """Perplexity of the same models under several vocabulary policies, one line of marks for each policy."""
    curves = _curves(outcomes, "policy")
    if not curves:
        return blank("This study has no sweep policy.")
    policies = list(dict.fromkeys(point.policy for points in curves.values() for point in points))
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 1.6 + 0.35 * len(policies)), sharex=True, sharey=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for index, (name, points) in enumerate(curves.items()):
            colour, marker = look(index)
            values = [point.run.perplexity(split) for point in points]
            heights = [policies.index(point.policy) for point in points]
            axes.plot(values, heights, marker, color=colour, label=name, zorder=3)
        axes.set_title(title)
        axes.set_xlabel("perplexity")
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(policies)), policies)
    panels[0].set_ylim(len(policies) - 0.5, -0.5)
    _legend(figure)
    return figure
