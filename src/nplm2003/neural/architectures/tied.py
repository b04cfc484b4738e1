"""The paper's network with one set of features for words read and words predicted (Press and Wolf 2017).

    x = (C(w_{t-1}), ..., C(w_{t-n+1})),   a = tanh(d + H x),   y = C P a + b

P (m, h) takes the hidden units back to the space of the features; the columns of O but the last one are C.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import TiedVariant


class Tied(TiedVariant):
    """y = C P tanh(d + H x) + b."""

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options, width=features)
        self.H = nn.Linear((order - 1) * features, hidden)  # with d
        self.P = nn.Linear(hidden, features, bias=False)

    def before_output(self, contexts: Tensor) -> Tensor:
        x = self.drop(self.look_up(contexts).flatten(start_dim=1))
        return self.with_one(self.P(self.drop(torch.tanh(self.H(x)))))
