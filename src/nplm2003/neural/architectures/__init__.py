"""Networks that came before and after the paper's, each in a module of its own with its equations and its source.

A new one takes a module here and a line in `ARCHITECTURES`. Nothing here loads PyTorch: the configuration is checked by
these names (`nplm2003.neural.network` makes the networks).
"""

from __future__ import annotations

from nplm2003.errors import UserError

PAPER = "mlp"  # the paper's own, nplm2003.neural.model
# Name -> module, class, and the year in which it was a language model first, as far as we know.
ARCHITECTURES = {
    "energy": ("energy", "Energy", 2003),
    "log-bilinear": ("log_bilinear", "LogBilinear", 2007),
    "multi-sense": ("multi_sense", "MultiSense", 2003),
    "tied": ("tied", "Tied", 2017),
    "convolutional": ("convolutional", "Convolutional", 2016),
    "rnn": ("recurrent", "Elman", 2010),
    "gru": ("recurrent", "GRU", 2014),
    "lstm": ("recurrent", "LSTM", 2012),
    "transformer": ("transformer", "Transformer", 2017),
    "deep": ("deep", "Deep", 2021),
}


def parse_options(text: str | None) -> dict[str, float]:
    """The options of an architecture, `layers=2 heads=4`, as numbers by name."""
    found: dict[str, float] = {}
    for word in (text or "").split():
        name, _, value = word.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise UserError(f"options: {word!r} is not of the form name=number") from None
    return found


def require_own(
    architecture: str,
    *,
    direct: bool = False,
    outputs: str = "words",
    word_features: str = "learnt",
    weight_decay: float = 0.0,
) -> None:
    """Raise UserError where an architecture other than the paper's is given what is made for the paper's network."""
    for found, said in (
        (direct, "has no direct connections: set direct to no"),
        (outputs != "words", "has one softmax over all words: set outputs to words"),
        (word_features != "learnt", "learns its features from a random start: set word_features to learnt"),
        (weight_decay > 0, "has no weight decay: choose a preset without"),
    ):
        if found and architecture != PAPER:
            raise UserError(f"the architecture {architecture} {said}")
