"""The training objective computes in place what the model's forward pass defines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.objectives import OBJECTIVES, softmax

SHAPES = [(4, True), (4, False), (0, True)]


def example(hidden: int, direct: bool, dtype: torch.dtype) -> tuple[NeuralLanguageModel, Tensor, Tensor]:
    """A network of 50 words with contexts (32, 3) and targets (32,)."""
    torch.manual_seed(hidden + direct)
    model = NeuralLanguageModel(50, 4, hidden, 5, direct).to(dtype)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model, torch.randint(50, (32, 3)), torch.randint(50, (32,))


def cost_and_gradients(model: NeuralLanguageModel, cost: Tensor) -> tuple[float, dict[str, Tensor]]:
    model.zero_grad(set_to_none=True)
    cost.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert len(gradients) == len(list(model.parameters()))
    return float(cost.detach()), gradients


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("hidden", "direct"), SHAPES)
def test_softmax_equals_cross_entropy_of_forward(
    hidden: int, direct: bool, dtype: torch.dtype, tolerance: float
) -> None:
    model, contexts, targets = example(hidden, direct, dtype)
    x = model.window(contexts)
    # 0.25 as if the cost were averaged over four batches: the gradient must carry the factor through.
    ours = cost_and_gradients(model, softmax(model, x, model.activation(x), targets) * 0.25)
    expected = cost_and_gradients(model, model(contexts)[torch.arange(32), targets].sum() * -0.25)
    assert ours[0] == pytest.approx(expected[0], rel=tolerance)
    for name, gradient in expected[1].items():
        largest = float(gradient.abs().max())
        np.testing.assert_allclose(ours[1][name], gradient, rtol=tolerance, atol=tolerance * largest, err_msg=name)


def of_logits(y: list[list[float]], targets: list[int]) -> tuple[float, Tensor]:
    """Cost of given logits (through a network of which only the hidden units speak), and its gradient in U."""
    logits = torch.tensor(y)
    model = NeuralLanguageModel(logits.shape[1], 2, len(y), 1, False)
    torch.nn.init.zeros_(model.b)
    assert model.U is not None
    model.U.data.copy_(logits.T)
    a = torch.eye(len(y), requires_grad=True)  # example i reads column i of U
    cost = softmax(model, torch.zeros(len(y), 1), a, torch.tensor(targets))
    cost.backward()
    assert model.U.grad is not None
    return float(cost.detach()), model.U.grad.T


def test_logits_ten_thousand_apart_do_not_underflow() -> None:
    # softmax(1e4, 0) = (1, e^-10000): its probability is 0 in float32, its log is -10000.
    cost, gradient = of_logits([[1e4, 0.0], [-1e4, 1e4]], [1, 0])
    assert cost == pytest.approx(1e4 + 2e4, rel=1e-6)
    assert gradient.tolist() == [[1.0, -1.0], [-1.0, 1.0]]


def test_gradient_by_hand() -> None:
    # softmax(log 3, 0) = (3/4, 1/4); target 1: the gradient is (3/4, 1/4 - 1) and the cost log 4.
    cost, gradient = of_logits([[float(np.log(3)), 0.0]], [1])
    assert cost == pytest.approx(np.log(4), rel=1e-6)
    np.testing.assert_allclose(gradient, [[0.75, -0.75]], rtol=1e-6)


@settings(max_examples=50, deadline=None)
@given(
    y=st.lists(st.lists(st.floats(-1e4, 1e4, width=32), min_size=4, max_size=4), min_size=1, max_size=5),
    target=st.integers(0, 3),
)
def test_any_logits_give_a_finite_cost_and_gradients_that_cancel(y: list[list[float]], target: int) -> None:
    cost, gradient = of_logits(y, [target] * len(y))
    exact = torch.nn.functional.cross_entropy(
        torch.tensor(y).double(), torch.tensor([target] * len(y)), reduction="sum"
    )
    assert cost == pytest.approx(float(exact), rel=1e-5, abs=1e-5)
    # softmax(y) - onehot(target) sums to 0 in every example.
    np.testing.assert_allclose(gradient.sum(dim=1), 0, atol=1e-5)


def test_the_softmax_objective_is_listed() -> None:
    assert OBJECTIVES["softmax"] is softmax
