"""What a network is trained to minimise.

An objective is a function of the network, x, a and the targets that returns the total cost of the batch (a scalar to
differentiate). Its cost need not be the exact negative log-likelihood: a sampled one computes y for the targets and
some noise words alone, not for all of V, and its gradients by W, U and b are sparse. Scoring is always exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nplm2003.neural.model import NeuralLanguageModel, logits
from nplm2003.neural.preset import Preset

Objective = Callable[[NeuralLanguageModel, Tensor, Tensor | None, Tensor], Tensor]


class _SoftmaxNats(torch.autograd.Function):
    """sum over the batch of -log softmax(b + W x + U a)[target], holding one (|V|, B) block instead of four.

    The block holds y, one column per example, then in place E = exp(y - max y). With Z the sums of its columns, the
    gradient of the cost by y is E / Z - onehot(target); the division by Z and the one-hot part are applied to the small
    factors x and a, never to the block. At |V| = 16,383 a training step is bound by passes over the block, and this
    halves them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        a: Tensor | None,
        W: Tensor | None,
        U: Tensor | None,
        b: Tensor,
        targets: Tensor,
    ) -> Tensor:
        y = logits(x, a, W, U, b).T  # (|V|, B)
        y_target = y.gather(0, targets.unsqueeze(0)).squeeze(0)  # (B,)
        y_max = y.amax(dim=0)
        E = y.sub_(y_max).exp_()
        Z = E.sum(dim=0)
        ctx.save_for_backward(x, a, W, U, E, Z, targets)
        return (Z.log() + (y_max - y_target)).sum()  # their difference is exact where they are large

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        x, a, W, U, E, Z, targets = ctx.saved_tensors
        share = scale / Z  # (B,)

        def gradients(factor: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
            """Gradients by `factor` (x or a) and `weight` (W or U)."""
            by_factor = (weight.T @ E).T * share.unsqueeze(1) - weight[targets] * scale
            by_weight = E @ (factor * share.unsqueeze(1))
            by_weight.index_add_(0, targets, factor * -scale)
            return by_factor, by_weight

        dx, dW = gradients(x, W) if W is not None else (None, None)
        da, dU = gradients(a, U) if U is not None else (None, None)
        db = E @ share
        db.index_add_(0, targets, -scale.expand(len(targets)))
        return dx, da, dW, dU, db, None


def softmax(model: NeuralLanguageModel, x: Tensor, a: Tensor | None, targets: Tensor) -> Tensor:
    """The paper's objective: total exact negative log-likelihood of `targets` (B,), in nats, over the whole of V."""
    nats: Tensor = _SoftmaxNats.apply(x, a, model.W, model.U, model.b, targets)
    return nats


class Noise:
    """Where noise words come from: S = `words` draws with replacement from q(w) ~ (count(w) + 1)^power.

    `counts` are those of train, shape (|V|,). Draws use torch's global generator, like dropout, so a resumed training
    sees the same ones.
    """

    def __init__(self, counts: np.ndarray, words: int, power: float) -> None:
        q = (np.asarray(counts, dtype=np.float64) + 1) ** power
        q /= q.sum()
        self.words = words
        self.cumulative = torch.from_numpy(np.cumsum(q))
        self.log_expected = torch.from_numpy(np.log(words * q)).float()  # log S q(w): how often w is drawn

    def draw(self) -> tuple[Tensor, Tensor]:
        """Ids (S,) of noise words shared by a batch, and log S q(w) of each."""
        uniform = torch.rand(self.words, dtype=torch.float64) * self.cumulative[-1]
        ids = torch.searchsorted(self.cumulative, uniform, right=True).clamp_(max=len(self.cumulative) - 1)
        return ids, self.log_expected[ids]


class _SampledNats(torch.autograd.Function):
    """sum over the batch of -log(e^y[target] / Z'), where Z' = e^y[target] + sum over noise w of e^y[w] / (S q(w)).

    Z' estimates Z = sum over V of e^y without bias, but for draws of the target itself, which are left out: the target
    is there for certain (importance sampling, Bengio and Senecal 2003, with noise words shared by the batch).
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        a: Tensor | None,
        W: Tensor | None,
        U: Tensor | None,
        b: Tensor,
        targets: Tensor,
        noise: Tensor,
        log_expected: Tensor,
    ) -> Tensor:
        size = len(targets)
        rows = torch.cat([targets, noise])  # (B + S,)
        b_rows = b[rows]
        y_target = b_rows[:size]  # (B,)
        y_noise = (b_rows[size:] - log_expected).expand(size, -1)  # (B, S)
        used: list[Tensor | None] = []  # the rows of W and of U
        for factor, weight in ((x, W), (a, U)):
            if factor is None or weight is None:
                used.append(None)
                continue
            weight_rows = weight[rows]
            y_target = y_target + (factor * weight_rows[:size]).sum(dim=1)
            y_noise = torch.addmm(y_noise, factor, weight_rows[size:].T)
            used.append(weight_rows)
        y_noise.masked_fill_(targets.unsqueeze(1) == noise, -math.inf)
        y_max = torch.maximum(y_noise.amax(dim=1), y_target)
        E_noise = y_noise.sub_(y_max.unsqueeze(1)).exp_()
        E_target = (y_target - y_max).exp()
        Z = E_noise.sum(dim=1).add_(E_target)
        ctx.save_for_backward(x, a, *used, rows, E_noise, E_target, Z)
        ctx.vocabulary = len(b)
        return (Z.log() + (y_max - y_target)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        x, a, W_rows, U_rows, rows, E_noise, E_target, Z = ctx.saved_tensors
        size = len(Z)
        share = scale / Z
        by_noise = E_noise * share.unsqueeze(1)  # gradient by y of the noise words, (B, S)
        by_target = E_target * share - scale  # and of the targets, (B,)

        def sparse(values: Tensor) -> Tensor:
            """A gradient that is `values` (B + S, ...) at `rows`, added up, and 0 in all other rows."""
            return torch.sparse_coo_tensor(
                rows.unsqueeze(0), values, (ctx.vocabulary, *values.shape[1:]), check_invariants=False
            )

        def gradients(factor: Tensor, weight_rows: Tensor) -> tuple[Tensor, Tensor]:
            by_factor = torch.addmm(by_target.unsqueeze(1) * weight_rows[:size], by_noise, weight_rows[size:])
            by_weight = torch.cat([by_target.unsqueeze(1) * factor, by_noise.T @ factor])
            return by_factor, sparse(by_weight)

        dx, dW = gradients(x, W_rows) if W_rows is not None else (None, None)
        da, dU = gradients(a, U_rows) if U_rows is not None else (None, None)
        db = sparse(torch.cat([by_target, by_noise.sum(dim=0)]))
        return dx, da, dW, dU, db, None, None, None


def sampled_softmax(
    model: NeuralLanguageModel, x: Tensor, a: Tensor | None, targets: Tensor, *, noise: Noise
) -> Tensor:
    """An estimate of the paper's objective from the targets and the noise words of one draw, in nats."""
    ids, log_expected = (tensor.to(targets.device) for tensor in noise.draw())
    nats: Tensor = _SampledNats.apply(x, a, model.W, model.U, model.b, targets, ids, log_expected)
    return nats


def make_objective(preset: Preset, counts: np.ndarray) -> Objective:
    """The objective that `preset` names, for a vocabulary whose words have `counts` (|V|,) in train."""
    if preset.objective == "softmax":
        return softmax
    return partial(sampled_softmax, noise=Noise(counts, preset.noise_words, preset.noise_power))
