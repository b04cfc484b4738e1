"""Networks that came before and after the paper's, each in a module of its own with its equations and its source.

A new one takes a module here and an entry in `ARCHITECTURES`. Nothing here loads PyTorch: the configuration is checked
by these entries (`nplm2003.neural.network` makes the networks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from nplm2003.errors import UserError

PAPER = "mlp"  # the paper's own, nplm2003.neural.model
RATE = {"rate": 1e-3}  # the learning rate of Adam
MOST = 1000  # the largest whole number that an option may be


class Architecture(NamedTuple):
    """Where a network is found, and what it takes.

    `module`, `name`: of its class. `year`: in which it was a language model first, as far as we know. `options`: with
    their defaults, whole numbers where only these will do. `has_hidden`: units between C and O, h of them. `objective`:
    the only one of a preset that it can be trained by; None: any.
    """

    module: str
    name: str
    year: int
    options: Mapping[str, float] = RATE
    has_hidden: bool = True
    objective: str | None = None


ARCHITECTURES = {
    "energy": Architecture("energy", "Energy", 2003, objective="sampled-softmax"),
    "log-bilinear": Architecture("log_bilinear", "LogBilinear", 2007, has_hidden=False),
    "multi-sense": Architecture("multi_sense", "MultiSense", 2003, {**RATE, "senses": 2}),
    "tied": Architecture("tied", "Tied", 2017),
    "convolutional": Architecture("convolutional", "Convolutional", 2016, {**RATE, "layers": 2, "width": 3}),
    "rnn": Architecture("recurrent", "Elman", 2010),
    "gru": Architecture("recurrent", "GRU", 2014),
    "lstm": Architecture("recurrent", "LSTM", 2012),
    "transformer": Architecture("transformer", "Transformer", 2017, {**RATE, "layers": 2, "heads": 4}),
    "deep": Architecture("deep", "Deep", 2021, {**RATE, "layers": 2, "near": 6}),
}


def parse_options(text: str | None) -> dict[str, float]:
    """The options of an architecture, `layers=2 heads=4`, as numbers by name."""
    found: dict[str, float] = {}
    for word in (text or "").split():
        name, _, value = word.partition("=")
        if name in found:
            raise UserError(f"options: {name} stands there twice; leave one out")
        try:
            found[name] = float(value)
        except ValueError:
            raise UserError(f"options: {word!r} is not of the form name=number") from None
    return found


def complete_options(architecture: str, options: Mapping[str, float]) -> dict[str, float]:
    """All options of an architecture: `options`, and the defaults of the others.

    Raises UserError where it has no such option, or not with such a value.
    """
    known = {} if architecture == PAPER else ARCHITECTURES[architecture].options
    for name, value in options.items():
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise UserError(f"options: the architecture {architecture} has no {name!r}; {there}")
        whole = isinstance(known[name], int)
        if not 0 < value < math.inf or (whole and (value > MOST or not float(value).is_integer())):
            kind = f"a whole number from 1 to {MOST:,}" if whole else "a number above 0"
            raise UserError(f"options: {name} is {value:g}; it is {kind}")
    return {**known, **options}


def require_own(
    architecture: str,
    *,
    hidden: int,
    options: Mapping[str, float],
    direct: bool = False,
    outputs: str = "words",
    word_features: str = "learnt",
    weight_decay: float = 0.0,
    objective: str | None = None,
) -> None:
    """Raise UserError where an architecture other than the paper's is given what it does not take.

    `options`: all of them; `objective` and `weight_decay`: of the preset.
    """
    if architecture == PAPER:
        return
    known = ARCHITECTURES[architecture]
    heads = int(options.get("heads", 1))
    for found, said in (
        (hidden == 0 and known.has_hidden, "needs hidden units: set hidden to 1 or more"),
        (hidden > 0 and not known.has_hidden, f"has no hidden units, not {hidden}: set hidden to 0"),
        (hidden % heads, f"is given {heads} heads, which do not divide {hidden} hidden units evenly"),
        (direct, "has no direct connections: set direct to no"),
        (outputs != "words", "has one softmax over all words: set outputs to words"),
        (word_features != "learnt", "learns its features from a random start: set word_features to learnt"),
        (weight_decay > 0, "has no weight decay: choose a preset without"),
        (
            objective and known.objective not in (None, objective),
            f"is trained by {known.objective} alone: choose a preset with it",
        ),
    ):
        if found:
            raise UserError(f"the architecture {architecture} {said}")
