"""How much work training and scoring do, counted and not timed: products, passes over the logits, and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nplm2003.neural import objectives
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.objectives import Noise, sampled_softmax, softmax
from nplm2003.neural.outputs import BLOCK
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import log_probabilities
from nplm2003.neural.training import Trainer

V, B = 5000, 64
VIEWS = {"t", "permute", "numpy_T", "transpose", "view", "split", "slice", "unsqueeze", "squeeze", "expand", "detach"}


class Work(TorchDispatchMode):
    """Counts operations and their multiplications and additions in matrix products; `passes` are operations that read
    or write a tensor of at least `large` numbers; `largest` is the size of the largest tensor that was made or moved.
    """

    def __init__(self, large: int) -> None:
        super().__init__()
        self.large, self.operations, self.products, self.passes, self.largest = large, 0, 0, 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        if name not in VIEWS:
            sizes = [t.numel() for t in tree_leaves((args, kwargs, result)) if isinstance(t, torch.Tensor)]
            made = [t.numel() for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
            self.operations += 1
            self.passes += max(sizes, default=0) >= self.large
            self.largest = max([self.largest, *made])
            if name in ("mm", "addmm"):
                left, right = args[-2:]
                self.products += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return result


def work(run: Callable[[], Any], large: int = V * B) -> Work:
    with Work(large) as counted:
        run()
    return counted


@pytest.fixture
def case() -> tuple[NeuralLanguageModel, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return NeuralLanguageModel(V, 5, 20, 10, True), torch.randint(V, (B, 4)), torch.randint(V, (B,))


K = 4 * 10 + 20 + 1


def test_exact_softmax_makes_three_products_and_five_passes(case: tuple) -> None:
    model, contexts, targets = case
    z = model.before_output(contexts).detach()
    step = partial(softmax, model.O.detach(), z, targets, 1e-3)
    counted = work(step)
    assert counted.products == 6 * V * K * B  # y, and the gradients by z and by O
    assert counted.passes == 5  # the product, its exponential, the sums, and the two products of the gradients


def test_exact_softmax_in_blocks_makes_one_product_more_in_little_memory(
    case: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, contexts, targets = case
    z = model.before_output(contexts).detach()
    step = partial(softmax, model.O.detach(), z, targets, 1e-3)
    monkeypatch.setattr(objectives, "BLOCK_BYTES", 4 * B * 500)
    counted = work(step)
    assert counted.products == 8 * V * K * B
    assert counted.largest == V * K < V * B  # O itself; the logits are never there all at once


def test_sampled_softmax_touches_targets_and_noise_alone(case: tuple) -> None:
    model, contexts, targets = case
    z = model.before_output(contexts).detach()
    noise = Noise(np.ones(V), 100, 0.75)
    torch.manual_seed(3)
    words = len(noise.draw()[0])

    def step() -> None:
        torch.manual_seed(3)
        sampled_softmax(model.O.detach(), z, targets, 1e-3, noise=noise)

    counted = work(step)
    assert counted.products == 6 * words * K * B
    assert counted.largest == V * K  # O itself; nothing else comes near
    assert counted.operations < 60  # at a few microseconds each


def test_a_training_step_has_few_operations(case: tuple, make_preset: Callable[..., Preset]) -> None:
    model, contexts, targets = case
    preset = make_preset(objective="sampled-softmax", noise_words=100, noise_power=0.75, dropout=0.1, batch=B)
    trainer = Trainer(model, preset, partial(sampled_softmax, noise=Noise(np.ones(V), 100, 0.75)), 1, total=10**6)
    counted = work(partial(trainer.descend, contexts, targets))
    assert counted.operations < 120
    assert counted.largest == V * K
    # Beside the output layer, three products for the hidden units.
    assert counted.products <= 6 * 100 * K * B + 6 * 20 * 40 * B


def test_scoring_makes_one_product_in_little_memory(case: tuple) -> None:
    model, contexts, targets = case
    run = partial(log_probabilities, model, contexts, targets)
    counted = work(run, large=BLOCK * B)
    assert counted.products == 2 * V * K * B + 2 * 20 * 40 * B
    assert counted.largest == BLOCK * B
    # In each block the product, its exponential, the sums, and the logits of the targets; the twentieth block is small.
    # The memory of the blocks is made once, and rows of C, which is larger than a block, are taken once.
    assert counted.passes == 4 * 19 + 2
