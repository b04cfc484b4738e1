"""What a network is trained to minimise.

An objective is a function of the network, x, a and the targets that returns the total cost of the batch (a scalar to
differentiate). Its cost need not be the exact negative log-likelihood (sampled or tree-structured outputs join here);
scoring is always exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nplm2003.neural.model import NeuralLanguageModel

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
        if W is not None:
            y = torch.addmm(b.unsqueeze(1), W, x.T)  # (|V|, B)
            if a is not None and U is not None:
                y.addmm_(U, a.T)
        else:
            assert a is not None and U is not None
            y = torch.addmm(b.unsqueeze(1), U, a.T)
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


OBJECTIVES: dict[str, Objective] = {"softmax": softmax}
