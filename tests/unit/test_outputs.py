"""Output layers: each a distribution over V, its exact gradients, and the unigram where it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from synthetic import all_scores
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.evaluation import perplexity
from nplm2003.neural.outputs import Classes, Output, Tree, Words, frequency_classes, make_output
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import load_network, score
from nplm2003.neural.training import train
from nplm2003.vocabulary import TokenStore

V, K, B = 23, 5, 12
COUNTS = np.random.default_rng(1).integers(0, 50, V)
# Classes of one word, of several, and of many.
CLASS_OF = np.array([0, 1, 1, 2, 2, 2, 2, 3, *[4] * 8, *[5] * 6, 1])


def layers() -> list[Output]:
    return [Words(V), Classes(CLASS_OF), Tree(CLASS_OF, COUNTS), make_output("adaptive", V, None, COUNTS)]


@pytest.fixture(params=range(4), ids=["words", "classes", "tree", "adaptive"])
def case(request: pytest.FixtureRequest) -> tuple[Output, Tensor, Tensor, Tensor]:
    """An output layer with its O, z and targets, in float64; one word stands there twice."""
    output = layers()[request.param]
    torch.manual_seed(2)
    targets = torch.randint(V, (B,))
    targets[0] = targets[1]
    return output, torch.randn(output.rows, K).double(), torch.randn(B, K).double(), targets


def test_distributions_sum_to_1(case: tuple) -> None:
    output, O, z, _ = case
    found = output.distribution(O, z)
    assert found.shape == (B, V)
    np.testing.assert_allclose(found.exp().sum(dim=1), 1, rtol=1e-12)


def test_scores_are_those_of_the_distribution(case: tuple) -> None:
    output, O, z, targets = case
    expected = output.distribution(O, z)[torch.arange(B), targets]
    np.testing.assert_allclose(output.log_probabilities(O, z, targets), expected, rtol=1e-12)


def test_exact_gradients(case: tuple) -> None:
    output, O, z, targets = case
    free_O, free_z = O.clone().requires_grad_(), z.clone().requires_grad_()
    cost = -output.distribution(free_O, free_z)[torch.arange(B), targets].sum()
    by_O, by_z = torch.autograd.grad(cost, (free_O, free_z))
    moved = O.clone()
    nats, dz = output.descend(moved, z, targets, 0.5)
    assert nats == pytest.approx(float(cost.detach()), rel=1e-12)
    np.testing.assert_allclose(dz, by_z, atol=1e-12)
    np.testing.assert_allclose((O - moved) / 0.5, by_O, atol=1e-12)


def test_the_start_is_the_unigram(case: tuple) -> None:
    output, _, z, _ = case
    O = torch.zeros(output.rows, K).double()
    O[:, -1] = output.start(COUNTS).double()
    z[:, -1] = 1
    expected = np.log((COUNTS + 1) / (COUNTS.sum() + V))
    np.testing.assert_allclose(output.distribution(O, z), np.tile(expected, (B, 1)), rtol=1e-5)


def test_rows_of_each_layer() -> None:
    # Two of the six classes have one word. The adaptive softmax has 2 words alone, and classes of 9 and 12.
    assert [output.rows for output in layers()] == [V, V - 2 + 6, V - 1, V - 2 + 4]


def test_frequent_words_are_alone_and_the_others_in_two_classes() -> None:
    counts = np.array([3, 50, 0, 7, 7, 1, 9, 2] * 2)  # |V| 16: an eighth is 2, a half is 8
    classes = frequency_classes(counts)
    assert classes.tolist() == [3, 0, 3, 2, 2, 3, 2, 3, 3, 1, 3, 2, 2, 3, 2, 3]  # 50 and 50; 9 9 7 7 7 7; the others
    assert frequency_classes(np.array([5])).tolist() == [0]
    assert frequency_classes(np.array([5, 6])).tolist() == [1, 0]


def test_class_probabilities_by_hand() -> None:
    # Words 0 and 2 in class 0, word 1 alone in class 1. Rows: words 0 and 2, then the classes.
    output = Classes(np.array([0, 1, 0]))
    O = torch.tensor([[1.0], [3.0], [1.0], [4.0]]).double().log()
    found = output.distribution(O, torch.ones(1, 1).double()).exp()
    # The classes have 1/5 and 4/5, the words of the first 1/4 and 3/4 of it.
    np.testing.assert_allclose(found, [[0.2 * 0.25, 0.8, 0.2 * 0.75]], rtol=1e-12)


def test_the_tree_by_hand() -> None:
    # Counts + 1: 1, 2 in class 0, 4 in class 1, 1 in class 2. In class 0: node 0, right to the lighter word 0. Then the
    # two lightest parts are class 2 (1) and class 0 (3): node 1, right to class 2; the rest at the root, node 2, right
    # to the heavier class 1 on a tie by weight 4 with 4, since it was there first.
    tree = Tree(np.array([0, 0, 1, 2]), np.array([0, 1, 3, 0]))
    ways = [
        [(int(node), int(sign)) for node, sign in zip(tree.paths[word], tree.signs[word], strict=True) if sign]
        for word in range(4)
    ]
    assert ways == [[(2, -1), (1, -1), (0, 1)], [(2, -1), (1, -1), (0, -1)], [(2, 1)], [(2, -1), (1, 1)]]
    np.testing.assert_allclose(torch.sigmoid(tree.start(np.array([0, 1, 3, 0]))), [1 / 3, 1 / 4, 1 / 2], rtol=1e-6)


def test_frequent_words_have_short_ways() -> None:
    tree = Tree(np.zeros(V, dtype=np.int64), COUNTS)
    depth = (tree.signs != 0).sum(dim=1).numpy()
    assert (np.diff(depth[np.argsort(-COUNTS, kind="stable")]) >= 0).all()


@pytest.mark.parametrize("outputs", ["classes", "adaptive", "tree"])
def test_a_network_with_another_output_layer(
    tiny_store: TokenStore, tmp_path: Path, make_preset: Callable[..., Preset], outputs: str
) -> None:
    class_of = None if outputs == "adaptive" else np.arange(tiny_store.size) % 6
    preset = make_preset(epochs_direct=3, reduction="mean", rate=1.0, bias_start="unigram", dropout=0.1)
    shape = {"order": 3, "hidden": 4, "features": 3, "direct": True, "outputs": outputs, "class_of": class_of}
    summary = train(tiny_store, **shape, preset=preset, seed=1, output=tmp_path)
    again = train(tiny_store, **shape, preset=preset, seed=1, output=tmp_path / "again")
    assert summary["valid_perplexity"] == again["valid_perplexity"]
    model = load_network(tmp_path / "weights.pt", tiny_store)
    measured = perplexity(all_scores(score(model, tiny_store, "valid")))
    assert measured == pytest.approx(summary["valid_perplexity"], rel=1e-4)
    start = make_preset(rate=0.0, bias_start="unigram")
    untrained = train(tiny_store, **shape, preset=start, seed=1, output=tmp_path / "start")
    assert summary["valid_perplexity"] < 0.9 * untrained["valid_perplexity"]


def test_what_does_not_go_together_is_refused(
    tiny_store: TokenStore, tmp_path: Path, make_preset: Callable[..., Preset]
) -> None:
    with pytest.raises(UserError, match="'classes' needs word classes"):
        make_output("classes", V, None, COUNTS)
    for outputs in ("words", "adaptive"):
        with pytest.raises(UserError, match=f"'{outputs}' takes no word classes"):
            make_output(outputs, V, CLASS_OF, COUNTS)
    sampled = make_preset(objective="sampled-softmax", noise_words=5)
    shape = {"order": 3, "hidden": 4, "features": 3, "direct": True, "outputs": "tree"}
    with pytest.raises(UserError, match="'tree' is trained by its exact objective"):
        train(tiny_store, **shape, class_of=np.arange(40) % 3, preset=sampled, seed=1, output=tmp_path)
