"""What networks other than the paper's have in common: all but the output layer is learnt by autograd.

| letter | shape      | what it is                                                                             |
|--------|------------|----------------------------------------------------------------------------------------|
| C      | (|V|, m)   | the feature vector of every word                                                       |
| z      | (B, K)     | what the words of the context make of their features; its last column is 1             |
| O      | (|V|, K)   | the output layer, b its last column: y = z O', softmax(y) the distribution of the next |

A sub-class says how z comes about (`before_output`). The objectives of the study move O themselves
(`nplm2003.neural.objectives`) and return the gradient by z; from there autograd goes on. C moves by plain gradient
descent at the rate of O, in the rows that were looked up alone; what lies between C and O, a few parameters of which
every one is used in every update, by Adam (Kingma and Ba 2015) at a rate of its own, which falls as that of O does.

A *sequential* network reads a stream word by word and keeps a state: its batches are pieces of S streams, (S, T) words
and the S T words that follow them, one piece after the other (`nplm2003.neural.data.Pieces`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nplm2003.neural.objectives import Objective
from nplm2003.neural.outputs import Output, Words

CLIP = 1.0  # the longest gradient, of the mean cost of a batch, that the parameters between C and O follow


class Variant(nn.Module):
    """A network with features `C` and an output layer `O`, and all of the `options` of its architecture.

    `width`: K - 1, how many numbers of z are not the constant 1; None: h, or m where there are no hidden units.
    """

    sequential = False
    C: Tensor
    O: Tensor
    direct = False

    def __init__(
        self,
        vocabulary: int,
        order: int,
        hidden: int,
        features: int,
        options: Mapping[str, float],
        width: int | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.order, self.hidden, self.features = vocabulary, order, hidden, features
        self.options = dict(options)
        self.output: Output = Words(vocabulary)
        self.dropout = 0.0
        self.make_words(width or hidden or features)
        self._looked_up: list[tuple[Tensor, Tensor]] = []
        self._adam: torch.optim.Adam | None = None
        self._adam_state: Any = None

    def make_words(self, width: int) -> None:
        """C and O at random, as those of the paper's network."""
        self.C = nn.Parameter(torch.randn(self.vocabulary, self.features).mul_(0.1))
        bound = 1 / math.sqrt(width)
        O = torch.empty(self.vocabulary, width + 1).uniform_(-bound, bound)
        O[:, -1] = 0
        self.O = nn.Parameter(O)

    @property
    def piece(self) -> int:
        """Of a sequential network: the words that it reads at a time when tokens are scored."""
        return self.order - 1

    @property
    def b(self) -> Tensor:
        """The output biases, the last column of O."""
        return self.O[:, -1]

    def before_output(self, contexts: Tensor) -> Tensor:
        """z (B, K) of `contexts`: (B, n-1) words, the most recent first; of a sequential network (S, T), B = S T."""
        raise NotImplementedError

    def begin(self, history: Tensor | None = None) -> None:
        """Of a sequential network: forget the state, then read `history` (S, T), words that come before a stream."""
        if history is not None:
            with torch.no_grad():
                self.before_output(history)

    def look_up(self, words: Tensor) -> Tensor:
        """The features of `words`, shape (..., m), from where their gradients find the way back to C."""
        x = nn.functional.embedding(words, self.C.detach())
        if torch.is_grad_enabled():
            x.requires_grad_()
            self._looked_up.append((words, x))
        return x

    def drop(self, x: Tensor) -> Tensor:
        """`x` with a share of its numbers left out, in training alone."""
        return nn.functional.dropout(x, self.dropout, self.training) if self.dropout else x

    def with_one(self, a: Tensor) -> Tensor:
        """z of what is in front of its constant 1: (..., K - 1) to (B, K)."""
        a = a.reshape(-1, a.shape[-1])
        return torch.cat([a, a.new_ones(len(a), 1)], dim=1)

    def log_probabilities(self, contexts: Tensor, targets: Tensor) -> Tensor:
        """log P(target | context), shape (B,)."""
        return self.output.log_probabilities(self.O, self.before_output(contexts), targets)

    def forward(self, contexts: Tensor) -> Tensor:
        """log P(w | context) of every word w: (B, |V|)."""
        return self.output.distribution(self.O, self.before_output(contexts))

    def body(self) -> list[nn.Parameter]:
        """The parameters between C and O."""
        return [parameter for name, parameter in self.named_parameters() if name not in ("C", "O")]

    def learn(self, contexts: Tensor, targets: Tensor, objective: Objective, rate: float, left: float) -> float:
        """One update; returns the cost in nats, summed over the batch.

        `rate`: of the summed gradient, for C and O. `left`: the share of its first value that the rate still has.
        """
        z = self.before_output(contexts)
        nats, dz = objective(self.O.detach(), z.detach(), targets, rate)
        z.backward(dz)
        self._move_looked_up(rate)
        self._move_body(1 / len(targets), left)
        return nats

    @torch.no_grad()
    def _move_looked_up(self, rate: float) -> None:
        for words, x in self._looked_up:
            if x.grad is not None and self.C.requires_grad:
                self.C.index_add_(0, words.flatten(), x.grad.view(-1, x.shape[-1]), alpha=-rate)
        self._looked_up.clear()

    def _move_body(self, scale: float, left: float) -> None:
        parameters = self.body()
        if not parameters:
            return
        if self._adam is None:
            self._adam = torch.optim.Adam(parameters, lr=self.options["rate"])
            if self._adam_state is not None:
                self._adam.load_state_dict(self._adam_state)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(scale)
        nn.utils.clip_grad_norm_(parameters, CLIP)
        for group in self._adam.param_groups:
            group["lr"] = self.options["rate"] * left
        self._adam.step()
        self._adam.zero_grad()

    def keep(self) -> Any:
        """What a checkpoint holds of the updates beside the parameters."""
        return self._adam_state if self._adam is None else self._adam.state_dict()

    def restore(self, kept: Any) -> None:
        """Go on with the updates that `keep` told of."""
        self._adam_state, self._adam = kept, None


class TiedVariant(Variant):
    """A variant whose words are predicted by the features they are read by: O = [C b] (Mnih and Hinton 2007)."""

    def make_words(self, width: int) -> None:
        """O at random; C is its columns but the last."""
        if width != self.features:
            raise ValueError("tied features: z is as wide as C")
        O = torch.randn(self.vocabulary, self.features + 1).mul_(0.1)
        O[:, -1] = 0
        self.O = nn.Parameter(O)

    @property
    def C(self) -> Tensor:  # type: ignore[override]
        """The columns of O that are features."""
        return self.O[:, :-1]
