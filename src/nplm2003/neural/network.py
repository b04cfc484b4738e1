"""A network by the name of its architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from nplm2003.neural.architectures import ARCHITECTURES, PAPER, complete_options, require_own
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.outputs import Output
from nplm2003.neural.variant import Variant


def variant(architecture: str) -> type[Variant]:
    """The class of an architecture other than the paper's."""
    known = ARCHITECTURES[architecture]
    found: type[Variant] = getattr(import_module(f"nplm2003.neural.architectures.{known.module}"), known.name)
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
    """A network of |V| words with random parameters; options that are not given have their defaults."""
    options = complete_options(architecture, options)
    if architecture == PAPER:
        return NeuralLanguageModel(vocabulary, order, hidden, features, direct, output)
    whole = output is None or output.rows == vocabulary
    require_own(architecture, hidden=hidden, options=options, direct=direct, outputs="words" if whole else "others")
    make: Callable[..., Variant] = variant(architecture)
    return make(vocabulary, order, hidden, features, options)
