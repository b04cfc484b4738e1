"""A convolutional network over the window (time-delay networks, as in section 5 of the paper; gates by Dauphin and
others 2017).

Each of L layers looks at `width` neighbouring words of the layer below, up to its own, with a gate for each number:

    u_i = F (x_{i-width+1}, ..., x_i) + f,   g_i = G (same) + e,   x'_i = x_i + u_i sigmoid(g_i)

(the sum with x_i only where both have h numbers). z is what the last layer says at the most recent word, and 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import Variant


class Convolutional(Variant):
    """Gated convolutions over a window of n - 1 words."""

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options)
        layers, width = int(self.options["layers"]), int(self.options["width"])
        self.before = width - 1
        self.convolutions = nn.ModuleList(
            nn.Conv1d(features if layer == 0 else hidden, 2 * hidden, width) for layer in range(layers)
        )

    def before_output(self, contexts: Tensor) -> Tensor:
        x = self.drop(self.look_up(contexts.flip(1)).transpose(1, 2))  # (B, m, n-1), the most recent word last
        for convolution in self.convolutions:
            made = nn.functional.glu(convolution(nn.functional.pad(x, (self.before, 0))), dim=1)
            x = made if x.shape != made.shape else x + made
        return self.with_one(self.drop(torch.tanh(x[:, :, -1])))
