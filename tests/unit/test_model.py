"""The network against the paper's formulas, written out a second time in NumPy (float64)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nplm2003.neural.model import NeuralLanguageModel, count_parameters

ROOT = Path(__file__).parents[2]
Arrays = dict[str, np.ndarray]


def network(order: int, hidden: int, direct: bool, vocabulary: int = 7, features: int = 3) -> NeuralLanguageModel:
    """A network in float64 whose parameters, biases included, are all drawn and not small."""
    torch.manual_seed(order + hidden)
    model = NeuralLanguageModel(vocabulary, order, hidden, features, direct).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def letters(model: NeuralLanguageModel, O: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """The paper's letters: parameters, O taken apart by the columns that its table says; or those of a gradient `O`."""
    O, m, h = model.O if O is None else O, model.features, model.hidden
    width = (model.order - 1) * m if model.direct else 0
    parts = {"C": model.C, "H": model.H, "d": model.d, "b": O[:, width + h]}
    parts |= {"W": O[:, :width] if model.direct else None, "U": O[:, width : width + h] if h else None}
    return {name: part for name, part in parts.items() if part is not None}


def parameters(model: NeuralLanguageModel) -> Arrays:
    return {name: parameter.detach().numpy() for name, parameter in letters(model).items()}


def reference(p: Arrays, context: list[int], target: int) -> tuple[np.ndarray, Arrays]:
    """The paper's section 2 for one example: log softmax(y), and the gradient of -log softmax(y)[target]."""
    m = p["C"].shape[1]
    x = np.concatenate([p["C"][word] for word in context])  # C(w_{t-1}), ..., C(w_{t-n+1})
    y = p["b"].copy()
    if "W" in p:
        y += p["W"] @ x
    if "H" in p:
        a = np.tanh(p["d"] + p["H"] @ x)
        y += p["U"] @ a
    s = np.exp(y) / np.exp(y).sum()

    dy = jacobian(s).T @ (-np.eye(len(s))[target] / s[target])  # L = -log s_target
    gradients = {"b": dy}
    dx = np.zeros_like(x)
    if "W" in p:
        gradients["W"] = np.outer(dy, x)
        dx += p["W"].T @ dy
    if "H" in p:
        gradients["U"] = np.outer(dy, a)
        gradients["d"] = (1 - a**2) * (p["U"].T @ dy)
        gradients["H"] = np.outer(gradients["d"], x)
        dx += p["H"].T @ gradients["d"]
    gradients["C"] = np.zeros_like(p["C"])
    for place, word in enumerate(context):  # a word that stands there twice gets both parts
        gradients["C"][word] += dx[place * m : (place + 1) * m]
    return np.log(s), gradients


def jacobian(s: np.ndarray) -> np.ndarray:
    """ds_i / dy_j = s_i (delta_ij - s_j)."""
    return s[:, None] * (np.eye(len(s)) - s[None, :])


SHAPES = [
    (order, hidden, direct)
    for order in (2, 3, 4, 5)
    for hidden, direct in ((4, True), (4, False), (1, True), (0, True))
]


@pytest.mark.parametrize(("order", "hidden", "direct"), SHAPES)
def test_forward_and_all_gradients_equal_the_reference(order: int, hidden: int, direct: bool) -> None:
    model = network(order, hidden, direct)
    draw = np.random.default_rng(order)
    contexts = draw.integers(0, 7, (5, order - 1))
    contexts[0] = 2  # one word in every place of the context
    targets = draw.integers(0, 7, 5)
    targets[1] = contexts[1, 0]

    log_probabilities = model(torch.from_numpy(contexts))
    log_probabilities[torch.arange(5), torch.from_numpy(targets)].sum().neg().backward()

    references = [reference(parameters(model), list(c), int(t)) for c, t in zip(contexts, targets, strict=True)]
    np.testing.assert_allclose(log_probabilities.detach(), [r[0] for r in references], rtol=1e-12)
    names = {"C", "O"} | ({"H", "d"} if hidden else set())
    assert {name for name, _ in model.named_parameters()} == names
    for name, part in letters(model, model.O.grad).items():
        gradient = part if name in ("W", "U", "b") else part.grad
        assert gradient is not None
        expected = sum(gradients[name] for _, gradients in references)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(("order", "hidden", "direct"), SHAPES)
def test_W_U_and_b_are_columns_of_O(order: int, hidden: int, direct: bool) -> None:
    model = network(order, hidden, direct)
    expected = letters(model)
    assert torch.equal(model.b, expected["b"])
    for part, name in ((model.W, "W"), (model.U, "U")):
        assert (part is None) == (name not in expected)
        assert part is None or torch.equal(part, expected[name])


def test_softmax_jacobian_equals_finite_differences_and_autograd() -> None:
    y = np.array([0.3, -1.2, 2.0, 0.0, 0.7])

    def softmax(z: np.ndarray) -> np.ndarray:
        return np.exp(z) / np.exp(z).sum()

    step = 1e-6
    differences = [(softmax(y + step * e) - softmax(y - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(jacobian(softmax(y)), np.transpose(differences), atol=1e-9)
    by_autograd = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, dim=0), torch.from_numpy(y))
    np.testing.assert_allclose(jacobian(softmax(y)), by_autograd, rtol=1e-12)


def test_gradient_of_the_reference_equals_finite_differences() -> None:
    # The reference itself is checked once, so that it and the network cannot be wrong in the same way.
    p = parameters(network(3, 4, True))
    gradients = reference(p, [1, 1], 4)[1]
    for name, gradient in gradients.items():
        for index in np.ndindex(gradient.shape):
            kept, step = p[name][index], 1e-6
            p[name][index] = kept + step
            above = -reference(p, [1, 1], 4)[0][4]
            p[name][index] = kept - step
            below = -reference(p, [1, 1], 4)[0][4]
            p[name][index] = kept
            assert gradient[index] == pytest.approx((above - below) / (2 * step), abs=1e-7), (name, index)


def test_context_is_most_recent_word_first() -> None:
    # m = 1, C(w) = w, and W passes on the first place only: y_0 is the id of w_{t-1}.
    model = NeuralLanguageModel(3, 4, 0, 1, True)
    with torch.no_grad():
        model.C.copy_(torch.tensor([[0.0], [1.0], [2.0]]))
        model.b.zero_()
        assert model.W is not None
        model.W.zero_()
        model.W[0] = torch.tensor([1.0, 0.0, 0.0])
    context = torch.tensor([[2, 0, 1]])  # w_{t-1} = 2, w_{t-2} = 0, w_{t-3} = 1
    assert model.window(context).tolist() == [[2.0, 0.0, 1.0]]
    # softmax(2, 0, 0): e^2 / (e^2 + 2) for word 0, 1 / (e^2 + 2) for the others
    np.testing.assert_allclose(
        model(context).exp().detach(), [[np.e**2 / (np.e**2 + 2), *[1 / (np.e**2 + 2)] * 2]], rtol=1e-6
    )


# |V| (1 + n m + h) + h (1 + (n-1) m), less |V| (n-1) m without direct connections, worked out by hand for 16,383 words:
# MLP1 16,383 x 351 + 50 x 241; MLP3 16,383 x 301; MLP5 16,383 x 201 + 50 x 121; MLP7 16,383 x 141 + 50 x 61;
# MLP9 16,383 x 131 + 100 x 121.
PARAMETERS = {"MLP1": 5_762_483, "MLP3": 4_931_283, "MLP5": 3_299_033, "MLP7": 2_313_053, "MLP9": 2_158_273}


def network_rows() -> list[dict[str, Any]]:
    with (ROOT / "config" / "networks.tsv").open(encoding="utf-8", newline="") as stream:
        return [
            {
                "model": row["model"],
                "published": row["published"],
                "shape": (int(row["order"]), int(row["hidden"]), int(row["features"]), row["direct"] == "yes"),
            }
            for row in csv.DictReader(stream, delimiter="\t")
            if row["architecture"] == "mlp"
        ]


@pytest.mark.parametrize("row", [row for row in network_rows() if row["published"]], ids=lambda row: row["model"])
def test_parameters_of_every_published_row(row: dict[str, Any]) -> None:
    assert count_parameters(16_383, *row["shape"]) == PARAMETERS[row["published"]]
    with torch.device("meta"):  # shapes without memory
        model = NeuralLanguageModel(16_383, *row["shape"])
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[row["published"]]


def test_all_published_networks_have_a_row() -> None:
    assert {row["published"] for row in network_rows()} - {""} == set(PARAMETERS)


@pytest.mark.parametrize("row", network_rows(), ids=lambda row: row["model"])
def test_a_row_number_is_not_a_depth(row: dict[str, Any]) -> None:
    # MLP9 is the ninth row of the paper's table, not a network of nine layers: every network has one hidden layer,
    # or none, and biases without a batch dimension.
    order, hidden, features, direct = row["shape"]
    with torch.device("meta"):
        model = NeuralLanguageModel(16_383, *row["shape"])
    expected = {"C": (16_383, features), "b": (16_383,)}
    if hidden:
        expected |= {"H": (hidden, (order - 1) * features), "d": (hidden,), "U": (16_383, hidden)}
    if direct:
        expected["W"] = (16_383, (order - 1) * features)
    assert {name: tuple(part.shape) for name, part in letters(model).items()} == expected


@pytest.mark.parametrize(
    ("vocabulary", "order", "hidden", "features", "direct", "said"),
    [
        (7, 1, 4, 3, True, "order >= 2"),
        (7, 3, 4, 0, True, "features >= 1"),
        (7, 3, -1, 3, True, "hidden >= 0"),
        (1, 3, 4, 3, True, "vocabulary of 2"),
        (7, 3, 0, 3, False, "ignore the context"),
    ],
)
def test_impossible_shapes_are_refused(
    vocabulary: int, order: int, hidden: int, features: int, direct: bool, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        NeuralLanguageModel(vocabulary, order, hidden, features, direct)


def test_weights_start_random_and_biases_at_zero() -> None:
    torch.manual_seed(3)
    model = NeuralLanguageModel(500, 3, 20, 10, True)
    assert model.d is not None and model.H is not None and model.U is not None and model.W is not None
    assert not model.b.any() and not model.d.any()
    assert float(model.C.detach().std()) == pytest.approx(0.1, rel=0.05)
    # 1 / sqrt(inputs): H and W have (n-1) m = 20 inputs, U has h = 20.
    for weight in (model.H, model.U, model.W):
        assert 0.95 / 20**0.5 < float(weight.detach().abs().max()) <= 1 / 20**0.5
