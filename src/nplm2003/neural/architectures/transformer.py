"""A small decoder-only Transformer (Vaswani and others 2017; layer norms first, as of Radford and others 2019).

Every word attends to itself and to the words before it, back to the start of the piece before its own: with pieces of
n - 1 words, n - 1 to 2 (n - 1) of them. With x = A C(w) + p(place), each of L layers does

    x <- x + attention(norm(x)),    x <- x + F2 gelu(F1 norm(x))

and z = (norm(x), 1). A is left out where m = h.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nplm2003.neural.variant import Variant
from nplm2003.vocabulary import MERGED_ID


class Transformer(Variant):
    """Its state is the words of the last piece."""

    sequential = True

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options)
        heads = int(options["heads"])
        self.A = nn.Linear(features, hidden, bias=False) if features != hidden else nn.Identity()
        self.places = nn.Parameter(torch.randn(2 * (order - 1), hidden).mul_(0.02))
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(int(self.options["layers"])))
        self.norm = nn.LayerNorm(hidden)
        nn.init.constant_(self.norm.weight, 0.3)  # z is about as long as one of hyperbolic tangents: O moves as fast
        self.past: Tensor | None = None

    def begin(self, history: Tensor | None = None) -> None:
        self.past = None
        if history is not None:
            self.past = history[:, -(self.order - 1) :]

    def before_output(self, contexts: Tensor) -> Tensor:
        reach, new = self.order - 1, contexts.shape[1]
        past = contexts.new_full((len(contexts), 0), MERGED_ID) if self.past is None else self.past
        past = nn.functional.pad(past, (reach - past.shape[1], 0), value=MERGED_ID)
        words = torch.cat([past, contexts], dim=1)
        self.past = words[:, -reach:]
        x = self.drop(self.A(self.look_up(words)) + self.places[: words.shape[1]])
        for layer in self.layers:
            x = layer(x, self.dropout if self.training else 0.0)
        return self.with_one(self.drop(self.norm(x[:, -new:])))


class Layer(nn.Module):
    """Causal attention and a feed-forward network, each added to what it reads."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attend, self.join = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.F1, self.F2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: Tensor, dropout: float) -> Tensor:
        """x (S, T, h) to the same shape."""
        q, k, v = self.attend(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # (S, heads, T, h / heads)
        a = self.join(a.transpose(1, 2).flatten(2))
        x = x + nn.functional.dropout(a, dropout, dropout > 0)
        f = self.F2(nn.functional.gelu(self.F1(self.norm2(x))))
        return x + nn.functional.dropout(f, dropout, dropout > 0)
