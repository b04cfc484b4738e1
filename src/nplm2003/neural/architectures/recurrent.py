"""Recurrent networks: a state that is carried along the whole stream takes the place of the window.

With x_t = C(w_t) and a_t of h numbers, z = (a_t, 1):

- plain (Elman 1990; Mikolov and others 2010): a_t = tanh(V x_t + R a_{t-1} + d);
- GRU (Cho and others 2014): a_t = (1 - u) c + u a_{t-1}, with an update gate u, and c a plain step whose share of
  a_{t-1} a reset gate decides;
- LSTM (Hochreiter and Schmidhuber 1997): a_t = o tanh(s_t), s_t = f s_{t-1} + i c, with gates i, f and o.

Trained by back-propagation through the n - 1 words of a piece; the state comes from the piece before, as a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import Variant

PIECE = 512


class Elman(Variant):
    """A plain recurrent network."""

    CELL: ClassVar[Any] = nn.RNN
    sequential = True

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options)
        self.cell = self.CELL(features, hidden, batch_first=True)
        self.state: Any = None

    @property
    def piece(self) -> int:
        """As many as are fast: the state goes on, so that it changes no score."""
        return PIECE

    def begin(self, history: Tensor | None = None) -> None:
        self.state = None
        super().begin(history)

    def before_output(self, contexts: Tensor) -> Tensor:
        a, state = self.cell(self.drop(self.look_up(contexts)), self.state)
        self.state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
        return self.with_one(self.drop(a))


class GRU(Elman):
    """Gated recurrent units."""

    CELL = nn.GRU


class LSTM(Elman):
    """Long short-term memory."""

    CELL = nn.LSTM

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options)
        with torch.no_grad():  # remember at first (Gers and others 2000)
            self.cell.bias_ih_l0[hidden : 2 * hidden] = 1
