"""The energy-minimisation network (section 5 of the paper): the predicted word is among the inputs.

Features of the context and of the word itself enter the hidden layer together, and the output is one number, an energy:

    E(w, x) = - (b_w + v . tanh(d + H x + K C(w))),     P(w | context) = e^(-E(w, x)) / sum over w' of e^(-E(w', x))

with the same features C for words read and words predicted, H (h, (n-1) m), K (h, m), v and d (h). The sum is over all
of V: for every example |V| h hyperbolic tangents are computed, which is why it is trained on noise words alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from nplm2003.neural.objectives import Objective, sampled_softmax
from nplm2003.neural.variant import Variant

BLOCK = 1 << 14  # energies computed at a time: with their hidden units they stay in the cache


class Energy(Variant):
    """O is one column, the biases b."""

    def __init__(self, vocabulary: int, order: int, hidden: int, features: int, options: Mapping[str, float]) -> None:
        super().__init__(vocabulary, order, hidden, features, options, width=1)
        self.O = nn.Parameter(torch.zeros(vocabulary, 1))
        self.H = nn.Linear((order - 1) * features, hidden)  # with d
        self.K = nn.Linear(features, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden).uniform_(-1 / math.sqrt(hidden), 1 / math.sqrt(hidden)))

    def of_context(self, contexts: Tensor) -> Tensor:
        """d + H x, shape (B, h)."""
        return self.H(self.drop(self.look_up(contexts).flatten(start_dim=1)))

    def logits(self, o: Tensor, words: Tensor) -> Tensor:
        """-E of `words`, for `o` (B, h): shape (B, S) of words (S,); (B, 1) of words (B, 1), one for each example."""
        of_words = self.K(self.drop(self.look_up(words)))  # (S, h) or (B, 1, h)
        return torch.tanh(o.unsqueeze(1) + of_words) @ self.v + self.b[words]

    def learn(self, contexts: Tensor, targets: Tensor, objective: Objective, rate: float, left: float) -> float:
        assert isinstance(objective, partial) and objective.func is sampled_softmax  # `ARCHITECTURES` says so
        noise, pull = objective.keywords["noise"], objective.keywords.get("self_normalisation", 0.0)
        ids, log_present = noise.draw()
        o = self.of_context(contexts)
        y_target = self.logits(o, targets.unsqueeze(1))  # (B, 1)
        y = self.logits(o, ids) - log_present
        y = y.masked_fill(ids == targets.unsqueeze(1), -math.inf)  # the target is there for certain
        log_Z = torch.cat([y_target, y], dim=1).logsumexp(dim=1)
        nats = (log_Z - y_target.squeeze(1)).sum()
        (nats + pull * (log_Z**2).sum()).backward()
        self._move_looked_up(rate)
        assert self.O.grad is not None
        with torch.no_grad():
            self.O.sub_(self.O.grad, alpha=rate)
        self.O.grad = None
        self._move_body(1 / len(targets), left)
        return float(nats.detach())

    def log_probabilities(self, contexts: Tensor, targets: Tensor) -> Tensor:
        o = self.of_context(contexts)
        y_target = self.logits(o, targets.unsqueeze(1)).squeeze(1)
        log_Z = torch.full_like(y_target, -math.inf)
        for words in torch.arange(self.vocabulary, device=targets.device).split(max(1, BLOCK // len(targets))):
            log_Z = torch.logaddexp(log_Z, self.logits(o, words).logsumexp(dim=1))
        return y_target - log_Z

    def forward(self, contexts: Tensor) -> Tensor:
        words = torch.arange(self.vocabulary, device=contexts.device)
        return torch.log_softmax(self.logits(self.of_context(contexts), words), dim=1)
