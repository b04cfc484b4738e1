"""The figures of the study. Each is a function of the `Outcomes` that returns a Matplotlib figure.

They read evaluations, score files, learning curves and word features, never a corpus or a checkpoint: a change of style
redraws them in seconds.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nplm2003.outcomes import Outcomes

# Figure -> module and function that draw it; by name, so that listing the figures loads neither Matplotlib nor pandas.
FIGURES = {
    "claims": ("verdicts", "draw_claims"),
    "rows-against-paper": ("comparisons", "draw_rows_against_paper"),
    "learning-curves": ("training", "draw_learning_curves"),
    "order": ("comparisons", "draw_order"),
    "mixture-weight": ("mixtures", "draw_mixture_weight"),
    "word-frequency": ("words", "draw_word_frequency"),
    "word-features": ("words", "draw_word_features"),
    "policies": ("comparisons", "draw_policies"),
}


def plot(name: str, outcomes: Outcomes, stem: Path | str) -> None:
    """Draw the figure `name` (a key of `FIGURES`) into STEM.png and STEM.svg."""
    from nplm2003.figures.style import save

    module, function = FIGURES[name]
    save(getattr(import_module(f"nplm2003.figures.{module}"), function)(outcomes), stem)
