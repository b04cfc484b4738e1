"""The figures of the study. Each is a function of the `Outcomes` that returns a Matplotlib figure.

They read evaluations, score files, learning curves and word features, never a corpus or a checkpoint: a change of style
redraws them in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nplm2003.outcomes import Outcomes

# Figure -> module and function that draw it; by name, so that listing the figures loads neither Matplotlib nor pandas.
FIGURES = {
    "claims": ("verdicts", "draw_claims"),
    "rows-against-paper": ("comparisons", "draw_rows_against_paper"),
    "learning-curves": ("training", "draw_learning_curves"),
    "training-time": ("training", "draw_training_time"),
    "order": ("comparisons", "draw_order"),
    "classes": ("comparisons", "draw_classes"),
    "mixture-weight": ("mixtures", "draw_mixture_weight"),
    "word-frequency": ("words", "draw_word_frequency"),
    "word-features": ("words", "draw_word_features"),
    "policies": ("comparisons", "draw_policies"),
    "extended": ("years", "draw_extended"),
    "two-features": ("words", "draw_two_features"),
    "smoothing": ("smoothing", "draw_smoothing"),
    "sweep-order": ("sweeps", "draw_sweep_order"),
    "sweep-hidden": ("sweeps", "draw_sweep_hidden"),
    "sweep-features": ("sweeps", "draw_sweep_features"),
    "sweep-train": ("sweeps", "draw_sweep_train"),
    "sweep-policy": ("sweeps", "draw_sweep_policy"),
}


def figures_of(study: Mapping[str, Any]) -> list[str]:
    """The figures of a study: all, but for those of what it does not make."""
    made = {f"sweep-{point['sweep']}" for point in study["sweeps"]}
    if study["extended_rows"]:
        made.add("extended")
    if any(row["features"] == 2 for row in study["extended_rows"]):
        made.add("two-features")
    return [name for name in FIGURES if name in made or not name.startswith(("sweep-", "extended", "two-features"))]


def plot(name: str, outcomes: Outcomes, stem: Path | str) -> None:
    """Draw the figure `name` (a key of `FIGURES`) into STEM.png and STEM.svg."""
    from nplm2003.figures.style import save

    module, function = FIGURES[name]
    save(getattr(import_module(f"nplm2003.figures.{module}"), function)(outcomes), stem)
