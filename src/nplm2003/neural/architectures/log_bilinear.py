"""The log-bilinear model (Mnih and Hinton 2007): the features of the next word are predicted linearly.

    q = sum over i of C(w_{t-i}) T_i,    y_w = C(w) . q + b_w

with a matrix T_i (m, m) for each place in the window, and the same features C for words read and words predicted: the
columns of O but the last one are C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import TiedVariant


class LogBilinear(TiedVariant):
    """y = C q + b, q linear in the features of the context; no hidden units."""

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options)
        bound = 1 / math.sqrt((order - 1) * features)
        self.T = nn.Parameter(torch.empty((order - 1) * features, features).uniform_(-bound, bound))

    def before_output(self, contexts: Tensor) -> Tensor:
        x = self.drop(self.look_up(contexts).flatten(start_dim=1))
        return self.with_one(self.drop(x @ self.T))
