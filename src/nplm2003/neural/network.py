"""A network by the name of its architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from nplm2003.errors import UserError
from nplm2003.neural.architectures import ARCHITECTURES, PAPER, require_own
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.outputs import Output
from nplm2003.neural.variant import Variant


def check_options(architecture: str, options: Mapping[str, float]) -> None:
    """Raise UserError where the architecture has no such options, or not with such values."""
    known = {} if architecture == PAPER else variant(architecture).OPTIONS
    for name, value in options.items():
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise UserError(f"options: the architecture {architecture} has no {name!r}; {there}")
        if not value > 0 or (isinstance(known[name], int) and not float(value).is_integer()):
            kind = "a whole number from 1" if isinstance(known[name], int) else "a number above 0"
            raise UserError(f"options: {name} is {value:g}; it is {kind}")


def variant(architecture: str) -> type[Variant]:
    """The class of an architecture other than the paper's."""
    module, name, _ = ARCHITECTURES[architecture]
    found: type[Variant] = getattr(import_module(f"nplm2003.neural.architectures.{module}"), name)
    return found


def make_network(
    architecture: str,
    *,
    vocabulary: int,
    order: int,
    hidden: int,
    features: int,
    direct: bool,
    options: Mapping[str, float],
    output: Output | None = None,
) -> NeuralLanguageModel | Variant:
    """A network of |V| words with random parameters."""
    check_options(architecture, options)
    if architecture == PAPER:
        return NeuralLanguageModel(vocabulary, order, hidden, features, direct, output)
    whole = output is None or output.rows == vocabulary
    require_own(architecture, direct=direct, outputs="words" if whole else "others")
    make: Callable[..., Variant] = variant(architecture)
    return make(vocabulary, order, hidden, features, options)
