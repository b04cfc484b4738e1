"""Perplexities beside the published ones: by row, by order, by vocabulary policy."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nplm2003.figures.style import BLUE, GREY, INK, VERMILION, WIDTH, look
from nplm2003.outcomes import NGRAM_KINDS, Outcomes, Run
from nplm2003.study import find_row

PANELS = (("valid", "validation"), ("test", "test"))


def _group(run: Run) -> str:
    """The heading a run stands under: networks and mixtures apart for each preset, then n-grams."""
    if run.kind in NGRAM_KINDS:
        return "n-grams"
    kind = "networks" if run.kind == "network" else "mixtures"
    return f"{kind}, {run.row['preset']} preset" if run.row.get("preset") else kind


def draw_rows_against_paper(outcomes: Outcomes) -> Figure:
    """Every row of the table as a dot, with the published value of the same row, on validation and on test."""
    groups: dict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in outcomes.runs():
        groups[_group(run)][run.model].append(run)
    places: list[tuple[float, str]] = []  # a line per model, from the top down
    headings: list[tuple[float, str]] = []
    y = 0.0
    for heading, models in groups.items():
        headings.append((y, heading))
        for offset, model in enumerate(models, start=1):
            places.append((y + offset, model))
        y += len(models) + 1.4
    height = {model: place for place, model in places}

    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 0.9 + 0.2 * y), sharey=True, sharex=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for models in groups.values():
            for model, runs in models.items():
                published = runs[0].published_perplexity(split)
                for run in runs:
                    ours = run.perplexity(split)
                    if published is not None:
                        axes.plot([ours, published], [height[model]] * 2, color=GREY, linewidth=1, zorder=1)
                    axes.plot(ours, height[model], "o", color=BLUE, zorder=3)
                if published is not None:
                    axes.plot(published, height[model], "D", color=VERMILION, mfc="white", markersize=5, zorder=2)
        axes.set_title(title)
        axes.set_xlabel("perplexity")
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks([place for place, _ in places], [model for _, model in places])
    panels[0].set_ylim(y - 0.9, -0.8)
    for place, heading in headings:
        panels[0].text(
            0.01, place, heading, transform=panels[0].get_yaxis_transform(), va="center", style="italic", color=INK
        )
    handles = [Line2D([], [], marker="o", color=BLUE, linestyle="", label="this study")]
    if outcomes.published:
        handles.append(Line2D([], [], marker="D", color=VERMILION, mfc="white", linestyle="", label="published"))
    figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure


def _orders(outcomes: Outcomes) -> dict[str, list[Run]]:
    """Runs that differ in their order only, under the label of what they share."""
    families: dict[str, list[Run]] = defaultdict(list)
    for run in outcomes.runs(*NGRAM_KINDS, "network"):
        row = run.row
        if run.kind == "network":
            direct = "direct" if row["direct"] else "no direct"
            label = f"network, h = {row['hidden']}, m = {row['features']}, {direct}, {row['preset']}"
        else:
            label = {"interpolated": "interpolated trigram", "kneser-ney": "Kneser-Ney"}[run.kind]
        families[label].append(run)
    # One network alone says nothing of the order; an n-gram alone is what the networks are compared with.
    return {
        label: sorted(runs, key=lambda run: run.row["order"])
        for label, runs in families.items()
        if runs[0].kind != "network" or len({run.row["order"] for run in runs}) > 1
    }


def draw_order(outcomes: Outcomes) -> Figure:
    """Perplexity against the order n: n-grams, and networks that differ in n only, with the published values dashed."""
    families = _orders(outcomes)
    published: dict[str, Any] = {"mfc": "white", "linestyle": "--", "linewidth": 1}
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.7), sharey=True)
    for axes, (split, title) in zip(panels, PANELS, strict=True):
        for index, runs in enumerate(families.values()):
            colour, marker = look(index)
            orders = [run.row["order"] for run in runs]
            axes.plot(orders, [run.perplexity(split) for run in runs], marker=marker, color=colour)
            values = [run.published_perplexity(split) for run in runs]
            known = [(order, value) for order, value in zip(orders, values, strict=True) if value is not None]
            if known:
                axes.plot(*zip(*known, strict=True), marker=marker, color=colour, **published)
        axes.set_title(title)
        axes.set_xlabel("order n (predicted word included)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(x=0.12, y=0.12)
    panels[0].set_ylabel("perplexity")
    handles = [
        Line2D([], [], color=look(index)[0], marker=look(index)[1], label=label) for index, label in enumerate(families)
    ]
    if outcomes.published:
        handles.append(Line2D([], [], marker="o", color=INK, **published, label="published"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
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
        handles.append(Line2D([], [], color=INK, linestyle="--", linewidth=1, label="published"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
