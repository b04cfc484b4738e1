"""The network of the paper (section 2), in the paper's letters. Nothing here knows how it is trained.

| letter | shape            | what it is                                                                    |
|--------|------------------|-------------------------------------------------------------------------------|
| C      | (|V|, m)         | the feature vector of every word                                              |
| x      | (B, (n-1) m)     | C(w_{t-1}), ..., C(w_{t-n+1}) side by side, the most recent word first        |
| H, d   | (h, (n-1) m), h  | weights and biases of the hidden layer; absent when h = 0                     |
| a      | (B, h)           | tanh(d + H x), the hidden units                                               |
| U      | (|V|, h)         | hidden units to output; absent when h = 0                                     |
| W      | (|V|, (n-1) m)   | direct connections from features to output; absent without them               |
| b      | |V|              | output biases                                                                 |
| y      | (B, |V|)         | b + W x + U a; softmax(y) is the distribution of the next word                |

n is the order (n - 1 words of context), m the number of features, h the number of hidden units, B the batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def count_parameters(vocabulary: int, order: int, hidden: int, features: int, direct: bool) -> int:
    """The number of free parameters, by the paper's formula (section 2): |V|(1 + n m + h) + h(1 + (n-1) m).

    The formula counts the direct connections W, |V| (n-1) m of them; without them they are taken off.
    """
    n, h, m = order, hidden, features
    total = vocabulary * (1 + n * m + h) + h * (1 + (n - 1) * m)
    return total if direct else total - vocabulary * (n - 1) * m


def logits(x: Tensor, a: Tensor | None, W: Tensor | None, U: Tensor | None, b: Tensor) -> Tensor:
    """y = b + W x + U a, shape (B, |V|), in the memory order of its transpose: the product fills that faster."""
    y = b.unsqueeze(1)
    for weight, factor in ((W, x), (U, a)):
        if weight is not None and factor is not None:
            y = torch.addmm(y, weight, factor.T) if y.shape[1] == 1 else y.addmm_(weight, factor.T)
    return y.T


class NeuralLanguageModel(nn.Module):
    """y = b + W x + U tanh(d + H x), with W only if `direct` and H, d, U only if `hidden` > 0.

    Raises ValueError for an order below 2, no features, or a network with neither hidden units nor direct connections.
    """

    C: Tensor
    b: Tensor

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, direct: bool) -> None:
        super().__init__()
        if order < 2 or features < 1 or hidden < 0 or vocabulary < 2:
            raise ValueError("a network needs order >= 2, features >= 1, hidden >= 0 and a vocabulary of 2 or more")
        if hidden == 0 and not direct:
            raise ValueError("without hidden units and without direct connections the output would ignore the context")
        self.vocabulary, self.order, self.hidden, self.features, self.direct = (
            vocabulary,
            order,
            hidden,
            features,
            direct,
        )
        width = (order - 1) * features
        self.C = nn.Parameter(torch.empty(vocabulary, features))
        self.b = nn.Parameter(torch.empty(vocabulary))
        self.H = nn.Parameter(torch.empty(hidden, width)) if hidden else None
        self.d = nn.Parameter(torch.empty(hidden)) if hidden else None
        self.U = nn.Parameter(torch.empty(vocabulary, hidden)) if hidden else None
        self.W = nn.Parameter(torch.empty(vocabulary, width)) if direct else None
        self.reset_parameters()
        expected = count_parameters(vocabulary, order, hidden, features, direct)
        actual = sum(parameter.numel() for parameter in self.parameters())
        assert actual == expected, f"{actual} parameters, the paper's formula gives {expected}"

    def reset_parameters(self) -> None:
        """Draw the weights. The paper says only that C starts random, like the other weights (departure: the scale).

        C is normal with deviation 0.1; the others uniform within 1 / sqrt(number of inputs); biases start at 0.
        """
        nn.init.normal_(self.C, std=0.1)
        nn.init.zeros_(self.b)
        for weight in (self.H, self.U, self.W):
            if weight is not None:
                bound = 1 / math.sqrt(weight.shape[1])
                nn.init.uniform_(weight, -bound, bound)
        if self.d is not None:
            nn.init.zeros_(self.d)

    def window(self, contexts: Tensor, sparse: bool = False) -> Tensor:
        """x, shape (B, (n-1) m), of `contexts`, word ids of shape (B, n-1) with the most recent word first.

        `sparse`: its gradient by C is a sparse tensor, of the rows in use alone.
        """
        rows = nn.functional.embedding(contexts, self.C, sparse=sparse)  # (B, n-1, m)
        return rows.flatten(start_dim=1)

    def activation(self, x: Tensor) -> Tensor | None:
        """a = tanh(d + H x), shape (B, h); None when h = 0."""
        if self.H is None:
            return None
        return torch.tanh(nn.functional.linear(x, self.H, self.d))

    def logits(self, x: Tensor, a: Tensor | None) -> Tensor:
        """y = b + W x + U a, shape (B, |V|)."""
        return logits(x, a, self.W, self.U, self.b)

    def forward(self, contexts: Tensor) -> Tensor:
        """log P(w | context) for every word w: shape (B, |V|) for `contexts` of shape (B, n-1)."""
        x = self.window(contexts)
        return torch.log_softmax(self.logits(x, self.activation(x)), dim=1)
