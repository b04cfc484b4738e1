"""Training objectives: exact softmax computes in place what forward defines, sampled softmax estimates it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.objectives import Noise, make_objective, sampled_softmax, softmax
from nplm2003.neural.preset import Preset

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


# --- sampled softmax -------------------------------------------------------------------------------------------------


class Given(Noise):
    """Noise whose draws are given."""

    def __init__(self, counts: list[int], power: float, ids: list[int]) -> None:
        super().__init__(np.array(counts), len(ids), power)
        self.ids = torch.tensor(ids)

    def draw(self) -> tuple[Tensor, Tensor]:
        return self.ids, self.log_expected[self.ids]


def test_sampled_cost_by_hand() -> None:
    # V of three words with counts 0, 1, 1 in train: at power 1, q = (1, 2, 2) / 5. Biases are the log of (2, 3, 4), the
    # target is word 0, the noise words are 1, 1, 2, 0: of S = 4 draws each weighs 1 / (4 q), and word 0 is left out.
    # Z' = 2 + 3 / (8/5) + 3 / (8/5) + 4 / (8/5) = 8.25, an estimate of Z = 9.
    model = NeuralLanguageModel(3, 2, 0, 1, True)
    assert model.W is not None
    torch.nn.init.zeros_(model.W)
    model.b.data = torch.tensor([2.0, 3.0, 4.0]).log()
    x = torch.ones(1, 1, requires_grad=True)
    cost = sampled_softmax(model, x, None, torch.tensor([0]), noise=Given([0, 1, 1], 1.0, [1, 1, 2, 0]))
    assert float(cost.detach()) == pytest.approx(np.log(8.25 / 2), rel=1e-6)
    cost.backward()
    assert model.b.grad is not None and model.b.grad.is_sparse
    # 2/8.25 - 1 for the target, and the shares of Z' for the noise words.
    np.testing.assert_allclose(model.b.grad.to_dense(), [2 / 8.25 - 1, 3.75 / 8.25, 2.5 / 8.25], rtol=1e-6)


@pytest.mark.parametrize(("hidden", "direct"), SHAPES)
def test_sampled_gradients_are_those_of_its_formula(hidden: int, direct: bool) -> None:
    model, contexts, targets = example(hidden, direct, torch.float64)
    noise = Given(list(range(50)), 0.75, [3, 3, 49, 0, 17, 5, int(targets[0])])
    noise.log_expected = noise.log_expected.double()
    x = model.window(contexts, sparse=True)
    ours = cost_and_gradients(model, sampled_softmax(model, x, model.activation(x), targets, noise=noise) * 0.25)

    y = model.logits(model.window(contexts), model.activation(model.window(contexts)))
    y_target = y[torch.arange(32), targets]
    weighted = (y[:, noise.ids] - noise.log_expected[noise.ids]).exp() * (targets.unsqueeze(1) != noise.ids)
    expected = cost_and_gradients(model, ((y_target.exp() + weighted.sum(dim=1)).log() - y_target).sum() * 0.25)
    assert ours[0] == pytest.approx(expected[0], rel=1e-12)
    for name, gradient in expected[1].items():
        largest = float(gradient.abs().max())
        dense = ours[1][name].to_dense()
        np.testing.assert_allclose(dense, gradient, rtol=1e-10, atol=1e-12 * largest, err_msg=name)


def test_sampled_cost_of_logits_ten_thousand_apart() -> None:
    model = NeuralLanguageModel(2, 2, 0, 1, True)
    assert model.W is not None
    torch.nn.init.zeros_(model.W)
    model.b.data = torch.tensor([1e4, -1e4])
    noise = Given([0, 0], 1.0, [0, 1])  # q = 1/2, S = 2: each word is expected once
    with torch.no_grad():
        for word, cost in ((0, 0.0), (1, 2e4)):
            found = sampled_softmax(model, torch.zeros(1, 1), None, torch.tensor([word]), noise=noise)
            assert float(found) == pytest.approx(cost)


def test_noise_is_drawn_as_often_as_it_says() -> None:
    counts = np.array([0, 8, 26, 0, 80])
    noise = Noise(counts, 200_000, 0.5)
    q = np.array([1, 3, np.sqrt(27), 1, 9])
    q /= q.sum()
    torch.manual_seed(0)
    ids, log_expected = noise.draw()
    found = np.bincount(ids, minlength=5)
    # Five standard deviations of a binomial count.
    assert (np.abs(found - 200_000 * q) < 5 * np.sqrt(200_000 * q * (1 - q))).all()
    np.testing.assert_allclose(log_expected, np.log(200_000 * q)[ids], rtol=1e-6)


def test_the_estimate_of_Z_has_no_bias() -> None:
    # exp(cost) = Z' / e^y[target], and over draws Z' is Z on average: counts and logits of no special kind.
    torch.manual_seed(1)
    model = NeuralLanguageModel(6, 2, 0, 1, True)
    model.b.data.normal_()
    x = torch.ones(1, 1)
    target = torch.tensor([2])
    noise = Noise(np.array([5, 0, 2, 9, 1, 1]), 3, 0.75)
    with torch.no_grad():
        ratios = np.exp([float(sampled_softmax(model, x, None, target, noise=noise)) for _ in range(20_000)])
        exact = float(softmax(model, x, None, target).exp())
    error = ratios.std() / np.sqrt(len(ratios))
    assert error < 0.01 * exact
    assert ratios.mean() == pytest.approx(exact, abs=4 * error)


@pytest.mark.parametrize(
    ("objective", "words", "wanted"),
    [("softmax", 5, "it is 0"), ("sampled-softmax", 0, "at least 1"), ("sampled-softmax", 2.5, "at least 1")],
)
def test_noise_words_go_with_sampling(
    make_preset: Callable[..., Preset], objective: str, words: float, wanted: str
) -> None:
    with pytest.raises(UserError, match=f"noise_words is .* {wanted}"):
        make_preset(objective=objective, noise_words=words)


def test_objectives_by_name(make_preset: Callable[..., Preset]) -> None:
    assert make_objective(make_preset(), np.array([1, 2])) is softmax
    made = make_objective(make_preset(objective="sampled-softmax", noise_words=5, noise_power=0.5), np.array([1, 2]))
    assert made.func is sampled_softmax  # type: ignore[attr-defined]
    assert made.keywords["noise"].words == 5  # type: ignore[attr-defined]
