"""A feed-forward network with what is known today: our best single one (Sun and Iyyer 2021 revisit the paper so).

The window is long, and its words are read in two ways. The nearest r words have places of their own, as in the paper;
all n - 1 are summed up by means whose weights fall by half every 2, 8, 32, ... words: a topic more than an order.

    x = (C(w_{t-1}), ..., C(w_{t-r}), mean_2, mean_8, mean_32, ...)
    a_1 = A x,   a_{l+1} = a_l + F2 gelu(F1 norm(a_l)),   y = C P norm(a_L) + b

The output has the features of the input (`tied`).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import TiedVariant


class Deep(TiedVariant):
    """Means of a long window, residual layers, tied features."""

    means: Tensor

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options, width=features)
        self.near = min(int(self.options["near"]), order - 1)
        ages = torch.arange(order - 1, dtype=torch.float32)
        halves = [half for half in (2.0, 8.0, 32.0, 128.0) if half <= order - 1]
        weights = torch.stack([0.5 ** (ages / half) for half in halves]) if halves else torch.zeros(0, order - 1)
        self.register_buffer("means", weights / weights.sum(dim=1, keepdim=True), persistent=False)  # (means, n-1)
        self.A = nn.Linear((self.near + len(halves)) * features, hidden)
        self.layers = nn.ModuleList(Residual(hidden) for _ in range(int(self.options["layers"])))
        self.norm = nn.LayerNorm(hidden)
        self.P = nn.Linear(hidden, features, bias=False)

    def before_output(self, contexts: Tensor) -> Tensor:
        vectors = self.look_up(contexts)  # (B, n-1, m), the most recent word first
        words = self.drop(self.means.expand(len(contexts), -1, -1))  # of the means, whole words are dropped
        x = torch.cat([vectors[:, : self.near], words @ vectors], dim=1).flatten(start_dim=1)
        a = self.A(self.drop(x))
        for layer in self.layers:
            a = a + self.drop(layer(a))
        return self.with_one(self.drop(self.P(self.norm(a))))


class Residual(nn.Sequential):
    """F2 gelu(F1 norm(a)), of h numbers; F2 starts at 0, so that the layer starts as nothing."""

    def __init__(self, hidden: int) -> None:
        last = nn.Linear(hidden, hidden)
        nn.init.zeros_(last.weight)
        super().__init__(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.GELU(), last)
