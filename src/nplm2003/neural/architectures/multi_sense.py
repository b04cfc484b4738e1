"""Several feature vectors for each word, one for each of its senses (section 5 of the paper, an idea for later work).

Every word has S vectors C_1(w), ..., C_S(w). Which of them is meant, the other words of the context say: with g the
mean of their vectors over words and senses, and G (m, m),

    pi_s = softmax over s of C_s(w) . G g,      x_i = sum over s of pi_s C_s(w_i)

and from x on it is the paper's network, a = tanh(d + H x), y = U a + b. The paper does not say how a sense is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import Variant


class MultiSense(Variant):
    """The row of C of a word holds its S vectors side by side, S m numbers."""

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options)
        self.senses = int(self.options["senses"])
        self.C = nn.Parameter(torch.randn(vocabulary, self.senses * features).mul_(0.1))
        self.G = nn.Parameter(torch.eye(features))
        self.H = nn.Linear((order - 1) * features, hidden)  # with d

    def choose(self, vectors: Tensor) -> Tensor:
        """pi (B, n-1, S) of `vectors` (B, n-1, S, m)."""
        means = vectors.mean(dim=2)
        others = means.sum(dim=1, keepdim=True) - means
        g = others / max(1, means.shape[1] - 1)  # (B, n-1, m)
        return torch.softmax((vectors @ (g @ self.G.T).unsqueeze(-1)).squeeze(-1), dim=-1)

    def before_output(self, contexts: Tensor) -> Tensor:
        vectors = self.look_up(contexts).unflatten(-1, (self.senses, self.features))
        x = (self.choose(vectors).unsqueeze(-1) * vectors).sum(dim=2).flatten(start_dim=1)
        return self.with_one(self.drop(torch.tanh(self.H(self.drop(x)))))
