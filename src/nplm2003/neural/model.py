"""The network of the paper (section 2), in the paper's letters. Nothing here knows how it is trained.

| letter | shape            | what it is                                                                    |
|--------|------------------|-------------------------------------------------------------------------------|
| C      | (|V|, m)         | the feature vector of every word                                              |
| x      | (B, (n-1) m)     | C(w_{t-1}), ..., C(w_{t-n+1}) side by side, the most recent word first        |
| H, d   | (h, (n-1) m), h  | weights and biases of the hidden layer; absent when h = 0                     |
| a      | (B, h)           | tanh(d + H x), the hidden units                                               |
| W      | (|V|, (n-1) m)   | direct connections from features to output; absent without them               |
| U      | (|V|, h)         | hidden units to output; absent when h = 0                                     |
| b      | |V|              | output biases                                                                 |
| y      | (B, |V|)         | b + W x + U a; softmax(y) is the distribution of the next word                |

n is the order (n - 1 words of context), m the number of features, h the number of hidden units, B the batch.

Nearly all of the arithmetic is in y, so W, U and b are columns of one matrix and y is one product:

| letter | shape            | what it is                                                                    |
|--------|------------------|-------------------------------------------------------------------------------|
| O      | (|V|, K)         | [W U b], the output layer; K = (n-1) m + h + 1, or h + 1 without W            |
| z      | (B, K)           | (x, a, 1), what it is multiplied with: y = z O', without x where there is no W |

How z O' becomes a distribution is the output layer's affair (`nplm2003.neural.outputs`): by the paper's softmax over
all words, or by others whose rows of O stand for something else than words.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nplm2003.neural.outputs import Output, Words


def count_parameters(vocabulary: int, order: int, hidden: int, features: int, direct: bool) -> int:
    """The number of free parameters, by the paper's formula (section 2): |V|(1 + n m + h) + h(1 + (n-1) m).

    The formula counts the direct connections W, |V| (n-1) m of them; without them they are taken off.
    """
    n, h, m = order, hidden, features
    total = vocabulary * (1 + n * m + h) + h * (1 + (n - 1) * m)
    return total if direct else total - vocabulary * (n - 1) * m


class NeuralLanguageModel(nn.Module):
    """y = b + W x + U tanh(d + H x), with W only if `direct` and H, d, U only if `hidden` > 0.

    `output`: the output layer; one softmax over all words unless another is given.

    Raises ValueError for an order below 2, no features, or a network with neither hidden units nor direct connections.
    """

    C: Tensor
    O: Tensor
    sequential = False  # it reads windows, not a stream

    def __init__(
        self, vocabulary: int, order: int, hidden: int, features: int, direct: bool, output: Output | None = None
    ) -> None:
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
        self.H = nn.Parameter(torch.empty(hidden, width)) if hidden else None
        self.d = nn.Parameter(torch.empty(hidden)) if hidden else None
        self.output = output or Words(vocabulary)
        K = (width if direct else 0) + hidden + 1
        self.O = nn.Parameter(torch.empty(self.output.rows, K))
        self.reset_parameters()
        expected = count_parameters(vocabulary, order, hidden, features, direct) + (self.output.rows - vocabulary) * K
        actual = sum(parameter.numel() for parameter in self.parameters())
        assert actual == expected, f"{actual} parameters, the paper's formula gives {expected}"

    @property
    def W(self) -> Tensor | None:
        """The columns of O that read x; None without direct connections."""
        return self.O[:, : (self.order - 1) * self.features] if self.direct else None

    @property
    def U(self) -> Tensor | None:
        """The columns of O that read a; None when h = 0."""
        return self.O[:, -1 - self.hidden : -1] if self.hidden else None

    @property
    def b(self) -> Tensor:
        """The last column of O."""
        return self.O[:, -1]

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the weights. The paper says only that C starts random, like the other weights (departure: the scale).

        C is normal with deviation 0.1; the others uniform within 1 / sqrt(number of inputs); biases start at 0.
        """
        nn.init.normal_(self.C, std=0.1)
        self.b.zero_()
        for weight in (self.H, self.U, self.W):
            if weight is not None:
                bound = 1 / math.sqrt(weight.shape[1])
                weight.copy_(torch.empty(weight.shape).uniform_(-bound, bound))
        if self.d is not None:
            self.d.zero_()

    def window(self, contexts: Tensor) -> Tensor:
        """x, shape (B, (n-1) m), of `contexts`, word ids of shape (B, n-1) with the most recent word first."""
        return nn.functional.embedding(contexts, self.C).flatten(start_dim=1)

    def activation(self, x: Tensor) -> Tensor | None:
        """a = tanh(d + H x), shape (B, h); None when h = 0."""
        if self.H is None:
            return None
        return torch.tanh(nn.functional.linear(x, self.H, self.d))

    def join(self, x: Tensor, a: Tensor | None) -> Tensor:
        """z = (x, a, 1), shape (B, K), of those that the output layer reads."""
        parts = [part for part in (x if self.direct else None, a) if part is not None]
        return torch.cat([*parts, x.new_ones(len(x), 1)], dim=1)

    def before_output(self, contexts: Tensor) -> Tensor:
        """z, shape (B, K), of `contexts` (B, n-1)."""
        x = self.window(contexts)
        return self.join(x, self.activation(x))

    def log_probabilities(self, contexts: Tensor, targets: Tensor) -> Tensor:
        """log P(target | context), shape (B,), of `contexts` (B, n-1) and `targets` (B,)."""
        return self.output.log_probabilities(self.O, self.before_output(contexts), targets)

    def forward(self, contexts: Tensor) -> Tensor:
        """log P(w | context) for every word w: shape (B, |V|) for `contexts` of shape (B, n-1)."""
        return self.output.distribution(self.O, self.before_output(contexts))
