"""What a network is trained to minimise, and the update of its output layer O, which is nearly all of the arithmetic.

An objective is a function (O, z, targets, rate) that moves O (|V|, K) against its gradient, in place, by `rate` times
the gradient, and returns the total cost of the batch in nats and its gradient by z (B, K) before the move, with which
the rest of the network is updated. The cost need not be the exact negative log-likelihood: a sampled one computes y for
the targets and some noise words alone, and touches only their rows of O. Scoring is always exact. Output layers other
than a softmax over all words bring an exact objective of their own (`nplm2003.neural.outputs`).

`self_normalisation`: a softmax, exact or sampled, may add alpha (log Z)^2 to the cost of every example (Devlin and
others 2014), which pulls the sum Z of e^y towards 1. Its gradient by y is 2 alpha log Z times the probabilities, so
that these count 1 + 2 alpha log Z times; the cost that is returned is without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nplm2003.neural.preset import Preset

Objective = Callable[[Tensor, Tensor, Tensor, float], tuple[float, Tensor]]

BLOCK_BYTES = 1 << 28  # the most that logits may take; beyond, exact softmax works in blocks of rows of O


def _exponentials(y: Callable[[], Tensor], dim: int, y_target: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """E = e^(y - shift), in the memory of y(), and its sums over `dim`; e^(y_target - shift); and shift.

    The shift is 0 unless e^y is too large or too small: to look for the largest logits first costs as much as their
    exponentials, and is next to never needed.
    """
    E, E_target = y().exp_(), y_target.exp()
    Z = E.sum(dim)
    total = Z + E_target
    if bool(((total > 1e-30) & (total < 1e30)).all()):
        return E, Z, E_target, torch.zeros_like(Z)
    E = y()
    shift = torch.maximum(E.amax(dim), y_target)
    E.sub_(shift.unsqueeze(dim)).exp_()
    return E, E.sum(dim), (y_target - shift).exp_(), shift


@torch.no_grad()
def softmax(
    O: Tensor, z: Tensor, targets: Tensor, rate: float, *, self_normalisation: float = 0.0
) -> tuple[float, Tensor]:
    """The paper's objective: total exact negative log-likelihood of `targets` (B,), over the whole of V.

    With E = e^y, one column per example, and Z the sums of its columns, the gradient of the cost by y is
    E / Z - onehot(target). The division by Z and the one-hot part are applied to the small factor z, never to the block
    E, and the move of O is made by the product itself: at |V| = 16,383 a step is bound by passes over such blocks.
    Where E would take more than BLOCK_BYTES it is computed twice, some rows at a time.
    """
    O_target = O.index_select(0, targets)
    y_target = (z * O_target).sum(dim=1)
    blocks = O.split(max(1, BLOCK_BYTES // (len(z) * O.element_size())))
    if len(blocks) == 1:
        E, Z, _, shift = _exponentials(lambda: O @ z.T, 0, y_target)  # (|V|, B), (B,)
        nats = Z.log() + (shift - y_target)  # their difference is exact where they are large
        share = (1 + 2 * self_normalisation * (nats + y_target)) / Z
        dz = (E.T @ O).mul_(share.unsqueeze(1)).sub_(O_target)
        O.addmm_(E, z * (rate * share).unsqueeze(1), alpha=-1)
    else:
        kept = z.new_empty(len(blocks[0]), len(z))  # all blocks use the same memory

        def y(rows: Tensor) -> Tensor:
            return torch.mm(rows, z.T, out=kept[: len(rows)])

        nats = torch.full_like(y_target, -math.inf)
        for rows in blocks:
            _, Z, _, shift = _exponentials(partial(y, rows), 0, y_target)
            nats = torch.logaddexp(nats, Z.log() + (shift - y_target))
        log_Z = nats + y_target
        dz = -O_target
        for rows in blocks:
            share = y(rows).sub_(log_Z).exp_()
            if self_normalisation:
                share.mul_(1 + 2 * self_normalisation * log_Z)
            dz.addmm_(share.T, rows)
            rows.addmm_(share, z, alpha=-rate)
    O.index_add_(0, targets, z, alpha=rate)
    return float(nats.sum()), dz


class Noise:
    """Where noise words come from: the distinct words among `words` draws from q(w) ~ (count(w) + 1)^power.

    `counts` are those of train, shape (|V|,). A word is among them with probability 1 - (1 - q(w))^words: near 1 for
    frequent words, which therefore weigh their own. Draws use torch's global generator, like dropout, so a resumed
    training sees the same ones.
    """

    def __init__(self, counts: np.ndarray, words: int, power: float) -> None:
        q = (np.asarray(counts, dtype=np.float64) + 1) ** power
        q /= q.sum()
        self.words = words
        self.cumulative = torch.from_numpy(np.cumsum(q))
        self.log_present = torch.from_numpy(np.log(-np.expm1(words * np.log1p(-q)))).float()

    def draw(self) -> tuple[Tensor, Tensor]:
        """Ids (S,), rising, of noise words shared by a batch; and the log-probability of each to be among them."""
        uniform = torch.rand(self.words, dtype=torch.float64) * self.cumulative[-1]
        ids = torch.searchsorted(self.cumulative, uniform, right=True).clamp_(max=len(self.cumulative) - 1).unique()
        return ids, self.log_present[ids]


class _Rows(NamedTuple):
    """The rows of O that a sampled objective looks at: those of the targets (B, K), and of the noise words (S, K)."""

    targets: Tensor
    ids: Tensor
    O_target: Tensor
    O_noise: Tensor

    def move(self, O: Tensor, z: Tensor, by_target: Tensor, by_noise: Tensor, rate: float) -> Tensor:
        """Move them, given the gradients by y of the targets (B,) and the noise words (B, S); return that by z."""
        dz = (by_noise @ self.O_noise).addcmul_(self.O_target, by_target.unsqueeze(1))
        O.index_add_(0, self.ids, by_noise.T @ z, alpha=-rate)
        O.index_add_(0, self.targets, z * by_target.unsqueeze(1), alpha=-rate)
        return dz


def _take(O: Tensor, targets: Tensor, ids: Tensor) -> _Rows:
    return _Rows(targets, ids, O.index_select(0, targets), O.index_select(0, ids))


@torch.no_grad()
def sampled_softmax(
    O: Tensor, z: Tensor, targets: Tensor, rate: float, *, noise: Noise, self_normalisation: float = 0.0
) -> tuple[float, Tensor]:
    """An estimate of the paper's objective from the targets and the noise words of one draw.

    The cost is that of softmax with Z' = e^y[target] + sum over noise w of e^y[w] / P(w is drawn) in place of Z, the
    target left out of the noise, since it is there for certain: an estimate without bias (Horvitz and Thompson's),
    by importance sampling as of Bengio and Senecal (2003) with noise words shared by the batch.
    """
    ids, log_present = (tensor.to(targets.device) for tensor in noise.draw())
    rows = _take(O, targets, ids)
    y_target = (z * rows.O_target).sum(dim=1)
    place = torch.searchsorted(ids, targets).clamp_(max=len(ids) - 1).unsqueeze(1)  # (B, 1): of the target in ids
    there = ids[place] == targets.unsqueeze(1)

    def y_noise() -> Tensor:
        y = torch.addmm(-log_present, z, rows.O_noise.T)  # (B, S)
        return y.scatter_(1, place, y.gather(1, place).masked_fill_(there, -math.inf))

    E_noise, Z_noise, E_target, shift = _exponentials(y_noise, 1, y_target)
    Z = Z_noise + E_target
    nats = Z.log() + (shift - y_target)
    share = (1 + 2 * self_normalisation * (nats + y_target)) / Z
    dz = rows.move(O, z, E_target * share - 1, E_noise.mul_(share.unsqueeze(1)), rate)
    return float(nats.sum()), dz


@torch.no_grad()
def noise_contrastive(O: Tensor, z: Tensor, targets: Tensor, rate: float, *, noise: Noise) -> tuple[float, Tensor]:
    """Noise-contrastive estimation (Gutmann and Hyvarinen 2010; Mnih and Teh 2012): to tell targets from noise words.

    Of a word w that is either the next one or drawn, e^y[w] / (e^y[w] + P(w is drawn)) is the probability that it is
    the next one, as if e^y were normalised; at the optimum it is. The gradients by y are this probability, less 1 for
    the target. Returned in place of the cost is - y[target], the negative log-likelihood if Z is 1.
    """
    ids, log_present = (tensor.to(targets.device) for tensor in noise.draw())
    rows = _take(O, targets, ids)
    y_target = (z * rows.O_target).sum(dim=1)
    by_target = torch.sigmoid(y_target - noise.log_present.to(targets.device)[targets]) - 1
    by_noise = torch.addmm(-log_present, z, rows.O_noise.T).sigmoid_()
    return -float(y_target.sum()), rows.move(O, z, by_target, by_noise, rate)


def make_objective(preset: Preset, counts: np.ndarray, exact: Objective = softmax) -> Objective:
    """The objective that `preset` names, for a vocabulary whose words have `counts` (|V|,) in train.

    `exact`: the exact one of the output layer, where it is none over all words at once.
    """
    pull: dict[str, Any] = {"self_normalisation": preset.self_normalisation} if preset.self_normalisation else {}
    if preset.objective == "softmax":
        return partial(exact, **pull) if pull else exact
    noise = Noise(counts, preset.noise_words, preset.noise_power)
    if preset.objective == "sampled-softmax":
        return partial(sampled_softmax, noise=noise, **pull)
    return partial(noise_contrastive, noise=noise)
