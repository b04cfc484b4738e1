"""Perplexities beside the published ones: by row, by order, by number of word classes, by vocabulary policy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nplm2003.figures.style import BLUE, GREY, INK, PUBLISHED, WIDTH, blank, look
from nplm2003.ngram import SMOOTHED_KINDS
from nplm2003.outcomes import NGRAM_KINDS, WORD_NGRAMS, Outcomes, Row
from nplm2003.study import find_row

PANELS = (("valid", "validation"), ("test", "test"))
AS_PUBLISHED: dict[str, Any] = {"mfc": "white", "linestyle": "--", "linewidth": 1}


def _group(row: Row) -> str:
    """The heading a row stands under: networks and mixtures apart for each preset, then n-grams."""
    if row.kind in (*NGRAM_KINDS, *SMOOTHED_KINDS):
        return "n-grams"
    kind = "mixtures" if row.kind == "mixture" else "networks"
    return f"{kind}, {row.settings['preset']} preset" if row.settings.get("preset") else kind


def draw_rows_against_paper(outcomes: Outcomes) -> Figure:
    """Every row of the table as a dot with its interval, and its published value, on validation and on test."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in outcomes.rows():
        groups[_group(row)].append(row)
    places: list[tuple[float, Row]] = []  # a line per row, from the top down
    headings: list[tuple[float, str]] = []
    y = 0.0
    for heading, rows in groups.items():
        headings.append((y, heading))
        places += [(y + offset, row) for offset, row in enumerate(rows, start=1)]
        y += len(rows) + 1.4

    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 0.9 + 0.2 * y), sharey=True, sharex=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for place, row in places:
            ours, published = row.perplexity(split), row.published_perplexity(split)
            axes.plot(outcomes.uncertainty.interval(row.model, split), [place] * 2, color=BLUE, linewidth=1, zorder=1)
            axes.plot(ours, place, "o", color=BLUE, markersize=4.5, zorder=3)
            if math.isinf(ours):  # off any scale
                axes.text(1, place, "\N{INFINITY}", transform=axes.get_yaxis_transform(), va="center", color=BLUE)
            if published is not None:
                axes.plot(published, place, **PUBLISHED, markersize=5, zorder=2)
        axes.set_title(title)
        axes.set_xlabel("perplexity")
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks([place for place, _ in places], [row.model for _, row in places])
    panels[0].set_ylim(y - 0.9, -0.8)
    for place, heading in headings:
        panels[0].text(
            0.01, place, heading, transform=panels[0].get_yaxis_transform(), va="center", style="italic", color=INK
        )
    handles = [Line2D([], [], marker="o", markersize=4.5, color=BLUE, linewidth=1, label="this study, 95 % interval")]
    if outcomes.published:
        handles.append(Line2D([], [], **PUBLISHED, label=outcomes.published_label))
    figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure


def network_label(row: Mapping[str, Any], varied: str) -> str:
    """The settings of a network but for `varied`, the one (`order`, `hidden` or `features`) a curve runs over."""
    letters = {"order": "n", "hidden": "h", "features": "m"}
    shape = [f"{letter} = {row[key]}" for key, letter in letters.items() if key != varied]
    direct = "direct" if row["direct"] else "no direct"
    fixed = [] if row["word_features"] == "learnt" else ["fixed features"]
    outputs = [] if row["outputs"] == "words" else [f"output {row['outputs']}"]
    return ", ".join(["network", *shape, direct, *fixed, *outputs, row["preset"]])


def ngram_label(row: Mapping[str, Any]) -> str:
    """What n-grams that differ in their order share."""
    if row["kind"] == "class-based":
        return f"{row['classes']} word classes"
    names = {"interpolated": "interpolated trigram", "kneser-ney": "Kneser-Ney", "katz": "Katz"}
    return names.get(row["kind"], row["kind"].replace("-", " "))


def _orders(outcomes: Outcomes) -> dict[str, list[Row]]:
    """Rows that differ in their order only, under the label of what they share."""
    families: dict[str, list[Row]] = defaultdict(list)
    for row in outcomes.rows(*NGRAM_KINDS, "network"):
        network = row.kind == "network"
        label = network_label(row.settings, varied="order") if network else ngram_label(row.settings)
        families[label].append(row)
    # One row alone says nothing of the order; a word n-gram alone is what the networks are compared with.
    return {
        label: sorted(rows, key=lambda row: row.settings["order"])
        for label, rows in families.items()
        if rows[0].kind in WORD_NGRAMS or len({row.settings["order"] for row in rows}) > 1
    }


def draw_order(outcomes: Outcomes) -> Figure:
    """Perplexity against the order n: n-grams, and networks that differ in n only, with the published values dashed."""
    families = _orders(outcomes)
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.7), sharey=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for index, rows in enumerate(families.values()):
            colour, marker = look(index)
            _draw_line(axes, rows, "order", split, colour, marker)
        axes.set_title(title)
        axes.set_xlabel("order n (predicted word included)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(x=0.12, y=0.12)
    panels[0].set_ylabel("perplexity")
    handles = [
        Line2D([], [], color=look(index)[0], marker=look(index)[1], label=label) for index, label in enumerate(families)
    ]
    if outcomes.published:
        handles.append(Line2D([], [], marker="o", color=INK, **AS_PUBLISHED, label=outcomes.published_label))
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _draw_line(axes: Axes, rows: list[Row], setting: str, split: str, colour: str, marker: str) -> None:
    """Perplexity of `rows` against one of their settings; dashed, the published values of the same rows."""
    places = [row.settings[setting] for row in rows]
    axes.plot(places, [row.perplexity(split) for row in rows], marker=marker, color=colour)
    values = [row.published_perplexity(split) for row in rows]
    known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), marker=marker, color=colour, **AS_PUBLISHED)


def draw_classes(outcomes: Outcomes) -> Figure:
    """Perplexity against the number of word classes, a line for each order, with the published values dashed.

    The dotted line is the word n-gram that is best on validation.
    """
    orders: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(outcomes.rows("class-based"), key=lambda row: row.settings["classes"]):
        orders[row.settings["order"]].append(row)
    if not orders:
        return blank("This study has no class-based n-gram.")
    words = outcomes.best(*WORD_NGRAMS)
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.5), sharey=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for index, order in enumerate(sorted(orders)):
            _draw_line(axes, orders[order], "classes", split, *look(index))
        if words is not None:
            axes.axhline(words.perplexity(split), color=GREY, linestyle=":")
        axes.set_title(title)
        axes.set_xlabel("number of classes")
        axes.set_xscale("log")
        ticks = sorted({row.settings["classes"] for rows in orders.values() for row in rows})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.margins(x=0.12, y=0.12)
    panels[0].set_ylabel("perplexity")
    handles = [
        Line2D([], [], color=look(index)[0], marker=look(index)[1], label=f"classes, n = {order}")
        for index, order in enumerate(sorted(orders))
    ]
    if words is not None:
        handles.append(Line2D([], [], color=GREY, linestyle=":", label=words.model))
    if outcomes.published:
        handles.append(Line2D([], [], marker="o", color=INK, **AS_PUBLISHED, label=outcomes.published_label))
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def draw_policies(outcomes: Outcomes) -> Figure:
    """N-gram perplexity under each vocabulary policy, with the published values as lines."""
    policies = [policy["policy"] for policy in outcomes.study["policies"]]
    rows: list[dict[str, Any]] = [find_row(outcomes.study, model) for model in outcomes.study["policy_models"]]
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 1.5 + 0.3 * len(policies)), sharey=True, sharex=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for index, row in enumerate(rows):
            colour, marker = look(index)
            values = [
                outcomes.evaluation(policy, row["model"], row["seeds"][0])["perplexity"][split] for policy in policies
            ]
            axes.plot(values, range(len(policies)), marker, color=colour, zorder=3)
            line = outcomes.published_line(row)
            if line is not None and line.perplexity[split] is not None:
                axes.axvline(line.perplexity[split], color=colour, linestyle="--", linewidth=1)
        axes.set_title(title)
        axes.set_xlabel("perplexity")
        axes.tick_params(axis="y", length=0)
    sizes = [outcomes.statistics(policy)["vocabulary_size"] for policy in policies]
    labels = [f"{policy}  (|V| = {size:,})" for policy, size in zip(policies, sizes, strict=True)]
    panels[0].set_yticks(range(len(policies)), labels)
    panels[0].get_yticklabels()[policies.index(outcomes.policy)].set_fontweight("bold")
    panels[0].set_ylim(len(policies) - 0.5, -0.5)
    handles = [
        Line2D([], [], color=look(index)[0], marker=look(index)[1], linestyle="", label=row["model"])
        for index, row in enumerate(rows)
    ]
    if outcomes.published:
        handles.append(Line2D([], [], color=INK, linestyle="--", linewidth=1, label=outcomes.published_label))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
