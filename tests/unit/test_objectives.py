"""Training objectives: exact softmax computes in place what forward defines, sampled softmax estimates it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.neural import objectives
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.objectives import Noise, Objective, make_objective, noise_contrastive, sampled_softmax, softmax
from nplm2003.neural.preset import Preset

SHAPES = [(4, True), (4, False), (0, True)]


def example(hidden: int, direct: bool, dtype: torch.dtype) -> tuple[NeuralLanguageModel, Tensor, Tensor]:
    """A network of 50 words with contexts (32, 3) and targets (32,)."""
    torch.manual_seed(hidden + direct)
    model = NeuralLanguageModel(50, 4, hidden, 5, direct).to(dtype)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model, torch.randint(50, (32, 3)), torch.randint(50, (32,))


def cost_and_gradients(objective: Objective, model: NeuralLanguageModel, z: Tensor, targets: Tensor) -> tuple:
    """The cost of `objective`, its gradient by z, and its gradient by O: what O lost at rate 1."""
    O = model.O.detach().clone()
    nats, dz = objective(O, z.detach(), targets, 1.0)
    return nats, dz, model.O.detach() - O


def by_autograd(model: NeuralLanguageModel, z: Tensor, cost: Callable[[Tensor], Tensor]) -> tuple:
    """The same of a cost that is a function of y."""
    z = z.detach().requires_grad_()
    nats = cost(z @ model.O.T)
    return float(nats.detach()), *torch.autograd.grad(nats, (z, model.O))


def assert_close(ours: tuple, expected: tuple, tolerance: float) -> None:
    assert ours[0] == pytest.approx(expected[0], rel=tolerance)
    for name, mine, gradient in zip(("z", "O"), ours[1:], expected[1:], strict=True):
        largest = float(gradient.abs().max())
        np.testing.assert_allclose(mine, gradient, rtol=tolerance, atol=tolerance * largest, err_msg=name)


def pulled(y: Tensor, targets: Tensor, log_Z: Tensor, alpha: float) -> Tensor:
    """The negative log-likelihood under y - log Z, with the penalty of self-normalisation."""
    return (log_Z - y[torch.arange(len(y)), targets] + alpha * log_Z**2).sum()


@pytest.mark.parametrize("blocks", [1, 4])
@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_softmax_may_pull_Z_towards_1(alpha: float, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, contexts, targets = example(4, True, torch.float64)
    if blocks > 1:
        monkeypatch.setattr(objectives, "BLOCK_BYTES", 32 * 13 * model.O.element_size())
    z = model.before_output(contexts)
    nats, *gradients = cost_and_gradients(partial(softmax, self_normalisation=alpha), model, z, targets)
    without = cost_and_gradients(softmax, model, z, targets)
    assert nats == pytest.approx(without[0], rel=1e-12)  # the likelihood alone
    expected = by_autograd(model, z, lambda y: pulled(y, targets, y.logsumexp(dim=1), alpha))
    assert_close((nats, *gradients), (nats, *expected[1:]), 1e-11)
    assert not torch.allclose(gradients[1], without[2], rtol=1e-2)


@pytest.mark.parametrize("blocks", [1, 4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("hidden", "direct"), SHAPES)
def test_softmax_equals_cross_entropy_of_forward(
    hidden: int, direct: bool, dtype: torch.dtype, tolerance: float, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, contexts, targets = example(hidden, direct, dtype)
    if blocks > 1:  # rows of O in blocks of 13, 13, 13 and 11
        monkeypatch.setattr(objectives, "BLOCK_BYTES", 32 * 13 * model.O.element_size())
    z = model.before_output(contexts)
    ours = cost_and_gradients(softmax, model, z, targets)
    expected = by_autograd(model, z, lambda y: torch.nn.functional.cross_entropy(y, targets, reduction="sum"))
    assert_close(ours, expected, tolerance)
    assert ours[0] == pytest.approx(-float(model(contexts).detach()[torch.arange(32), targets].sum()), rel=tolerance)


def test_the_rate_scales_the_move_alone() -> None:
    model, contexts, targets = example(4, True, torch.float64)
    z = model.before_output(contexts).detach()
    once = cost_and_gradients(softmax, model, z, targets)
    O = model.O.detach().clone()
    nats, dz = softmax(O, z, targets, 0.25)
    assert_close((nats, dz, (model.O.detach() - O) / 0.25), once, 1e-12)


def of_logits(y: list[list[float]], targets: list[int]) -> tuple[float, Tensor]:
    """Cost of given logits, and its gradient by them: z_i reads column i of O, which is moved so little that in float32
    nothing is seen of it, so that the gradient is taken in float64."""
    nats, _ = softmax(torch.tensor(y).T.contiguous(), torch.eye(len(y)), torch.tensor(targets), 0.0)
    O = torch.tensor(y, dtype=torch.float64).T.contiguous()
    before = O.clone()
    softmax(O, torch.eye(len(y), dtype=torch.float64), torch.tensor(targets), 1.0)
    return nats, (before - O).T


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
    np.testing.assert_allclose(gradient.sum(dim=1), 0, atol=1e-10)


# --- sampled softmax -------------------------------------------------------------------------------------------------


class Given(Noise):
    """Noise whose draws are given."""

    def __init__(self, counts: list[int], words: int, power: float, ids: list[int]) -> None:
        super().__init__(np.array(counts), words, power)
        self.ids = torch.tensor(ids)

    def draw(self) -> tuple[Tensor, Tensor]:
        return self.ids, self.log_present[self.ids]


def test_sampled_cost_by_hand() -> None:
    # V of three words with counts 0, 1, 1 in train: at power 1, q = (1, 2, 2) / 5. Two draws hold words 1 and 2 with
    # probability 1 - (3/5)^2 = 16/25 each. The target is word 0, y the log of (2, 3, 4); the noise words are 0, left
    # out, and 1 and 2: Z' = 2 + 3 / (16/25) + 4 / (16/25) = 12.9375, an estimate of Z = 9.
    O = torch.tensor([[2.0], [3.0], [4.0]]).log()
    before = O.clone()
    noise = Given([0, 1, 1], 2, 1.0, [0, 1, 2])
    nats, dz = sampled_softmax(O, torch.ones(1, 1), torch.tensor([0]), 1.0, noise=noise)
    assert nats == pytest.approx(np.log(12.9375 / 2), rel=1e-6)
    # 2/Z' - 1 for the target, and the shares of Z' for the noise words.
    gradient = np.array([2 / 12.9375 - 1, 4.6875 / 12.9375, 6.25 / 12.9375])
    np.testing.assert_allclose((before - O)[:, 0], gradient, rtol=1e-5)
    np.testing.assert_allclose(dz[0, 0], gradient @ before[:, 0].numpy(), rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize(("hidden", "direct"), SHAPES)
def test_sampled_gradients_are_those_of_its_formula(hidden: int, direct: bool, alpha: float) -> None:
    model, contexts, targets = example(hidden, direct, torch.float64)
    targets[0] = targets[1] = 17
    noise = Given(list(range(50)), 20, 0.75, [0, 3, 5, 17, 49])
    noise.log_present = noise.log_present.double()
    z = model.before_output(contexts)
    objective = partial(sampled_softmax, noise=noise, self_normalisation=alpha)
    ours = cost_and_gradients(objective, model, z, targets)

    def cost(y: Tensor, alpha: float) -> Tensor:
        y_target = y[torch.arange(32), targets]
        weighted = (y[:, noise.ids] - noise.log_present[noise.ids]).exp() * (targets.unsqueeze(1) != noise.ids)
        return pulled(y, targets, (y_target.exp() + weighted.sum(dim=1)).log(), alpha)

    nats, _, _ = by_autograd(model, z, lambda y: cost(y, 0.0))
    _, *gradients = by_autograd(model, z, lambda y: cost(y, alpha))
    assert_close(ours, (nats, *gradients), 1e-11)
    untouched = sorted(set(range(50)) - {*noise.ids.tolist(), *targets.tolist()})
    assert untouched and not ours[2][untouched].any()


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_sampled_cost_of_logits_far_apart(scale: float) -> None:
    noise = Given([0, 0], 50, 1.0, [0, 1])  # q = 1/2: each word is there for certain
    for word, cost in ((0, 0.0), (1, 2 * scale)):
        O = torch.tensor([[scale], [-scale]])
        found, dz = sampled_softmax(O, torch.ones(1, 1), torch.tensor([word]), 1.0, noise=noise)
        assert found == pytest.approx(cost)
        np.testing.assert_allclose(dz, [[word * 2 * scale]], rtol=1e-6)
        np.testing.assert_allclose(O, [[scale - word], [-scale + word]], rtol=1e-6)


def test_noise_words_are_there_as_often_as_they_say() -> None:
    counts = np.array([0, 8, 26, 0, 80])
    noise = Noise(counts, 4, 0.5)
    q = np.array([1, 3, np.sqrt(27), 1, 9])
    q /= q.sum()
    torch.manual_seed(0)
    found = np.zeros(5)
    for _ in range(20_000):
        ids, log_present = noise.draw()
        assert (ids.diff() > 0).all() and torch.equal(log_present, noise.log_present[ids])
        found[ids] += 1
    present = 1 - (1 - q) ** 4
    # Five standard deviations of a binomial count.
    assert (np.abs(found - 20_000 * present) < 5 * np.sqrt(20_000 * present * (1 - present))).all()
    np.testing.assert_allclose(noise.log_present, np.log(present), rtol=1e-5)


def test_noise_contrastive_gradients_are_those_of_its_formula() -> None:
    model, contexts, targets = example(4, True, torch.float64)
    noise = Given(list(range(50)), 20, 0.75, [0, 3, 5, 17, 49])
    noise.log_present = noise.log_present.double()
    z = model.before_output(contexts)
    ours = cost_and_gradients(partial(noise_contrastive, noise=noise), model, z, targets)

    def cost(y: Tensor) -> Tensor:
        is_next = torch.sigmoid(y - noise.log_present)
        return -(is_next[torch.arange(32), targets].log().sum() + (1 - is_next[:, noise.ids]).log().sum())

    expected = by_autograd(model, z, cost)
    y_target = (z @ model.O.T).detach()[torch.arange(32), targets]
    assert_close(ours, (-float(y_target.sum()), *expected[1:]), 1e-11)


def test_noise_contrast_is_at_rest_where_the_network_is_right() -> None:
    # P = (1/2, 1/3, 1/6) in every context, and y its log: the mean gradient over targets and draws is 0.
    P = np.array([3, 2, 1]) / 6
    noise = Noise(np.array([5, 0, 2]), 2, 0.75)
    noise.log_present = noise.log_present.double()
    torch.manual_seed(0)
    z, targets = torch.ones(6, 1, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1, 2])
    moves = []
    for _ in range(5000):
        O = torch.from_numpy(np.log(P))[:, None].clone()
        noise_contrastive(O, z, targets, 1.0, noise=noise)
        moves.append(O[:, 0].numpy() - np.log(P))
    error = np.std(moves, axis=0) / np.sqrt(len(moves))
    assert (error > 0).all() and (error < 0.05).all()
    assert (np.abs(np.mean(moves, axis=0)) < 4 * error).all()


def test_the_estimate_of_Z_has_no_bias() -> None:
    # exp(cost) = Z' / e^y[target], and over draws Z' is Z on average: counts and logits of no special kind.
    torch.manual_seed(1)
    O, z, target = torch.randn(6, 1), torch.ones(1, 1), torch.tensor([2])
    noise = Noise(np.array([5, 0, 2, 9, 1, 1]), 3, 0.75)
    ratios = np.exp([sampled_softmax(O, z, target, 0.0, noise=noise)[0] for _ in range(20_000)])
    exact = np.exp(softmax(O, z, target, 0.0)[0])
    error = ratios.std() / np.sqrt(len(ratios))
    assert error < 0.01 * exact
    assert ratios.mean() == pytest.approx(exact, abs=4 * error)


@pytest.mark.parametrize(
    ("objective", "words", "wanted"),
    [("softmax", 5, "it is 0"), ("sampled-softmax", 0, "from 1 to"), ("sampled-softmax", 2.5, "from 1 to")],
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
    made = make_objective(make_preset(self_normalisation=0.1), np.array([1, 2]))
    assert (made.func, made.keywords) == (softmax, {"self_normalisation": 0.1})  # type: ignore[attr-defined]
    made = make_objective(make_preset(objective="noise-contrastive", noise_words=5), np.array([1, 2]))
    assert made.func is noise_contrastive  # type: ignore[attr-defined]
