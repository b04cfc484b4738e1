"""One look for all figures, and one way to save them: the same numbers give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display is ever needed

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from nplm2003.files import whole

# Okabe and Ito's colours, told apart with any kind of colour vision; black and yellow (too pale for lines) left out.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY, INK = "#8a8f98", "#222222"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

# The published value of a row beside ours.
PUBLISHED: dict[str, Any] = {"marker": "D", "color": VERMILION, "mfc": "white", "linestyle": ""}

WIDTH = 7.2  # inches

matplotlib.rcParams.update(
    {
        "figure.dpi": 100,
        "savefig.dpi": 200,
        "figure.constrained_layout.use": True,
        "font.family": "DejaVu Sans",  # comes with Matplotlib: the same on every machine
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e3e5e8",
        "grid.linewidth": 0.7,
        "xtick.color": INK,
        "ytick.color": INK,
        "lines.linewidth": 1.6,
        "lines.markersize": 5.5,
        "legend.frameon": False,
        "svg.hashsalt": "nplm2003",  # without it every SVG has other identifiers
    }
)


def blank(message: str) -> Figure:
    """A figure that only says why there is nothing to draw: a study need not have every kind of row."""
    figure, axes = plt.subplots(figsize=(WIDTH, 1.2))
    axes.axis("off")
    axes.text(0.5, 0.5, message, ha="center", va="center", color=INK)
    return figure


def look(index: int) -> tuple[str, str]:
    """Colour and marker of the line with that number; both repeat only after all have been used."""
    return PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]


def save(figure: Figure, stem: Path | str) -> None:
    """Write STEM.png and STEM.svg, without dates, and close the figure."""
    for suffix in ("png", "svg"):
        # Neither the date nor the version of Matplotlib belongs into the bytes.
        metadata = {"Date": None, "Creator": None} if suffix == "svg" else {"Software": None}
        with whole(f"{stem}.{suffix}") as temporary:
            figure.savefig(temporary, metadata=metadata)
    plt.close(figure)
