"""Networks other than the paper's: gradients, normalisation, no look into the future, one training after a kill."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.neural import training
from nplm2003.neural.architectures import ARCHITECTURES, PAPER, RATE, Architecture, parse_options
from nplm2003.neural.architectures.energy import Energy
from nplm2003.neural.architectures.log_bilinear import LogBilinear
from nplm2003.neural.architectures.multi_sense import MultiSense
from nplm2003.neural.data import PieceOrder, Pieces, Windows, examples_of, streams_of, training_loader
from nplm2003.neural.network import make_network, variant
from nplm2003.neural.objectives import Noise, sampled_softmax, softmax
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import load_network, score
from nplm2003.neural.variant import TiedVariant, Variant
from nplm2003.vocabulary import MERGED_ID, TokenStore

V, ORDER, HIDDEN, FEATURES = 23, 5, 8, 6
RECURRENT = [name for name in ARCHITECTURES if variant(name).sequential]
SAMPLED: dict[str, Any] = {"objective": "sampled-softmax", "noise_words": 7, "noise_power": 0.75, "weight_decay": 0.0}


def make(architecture: str, seed: int = 1, **options: float) -> Variant:
    torch.manual_seed(seed)
    made = make_network(
        architecture,
        vocabulary=V,
        order=ORDER,
        hidden=HIDDEN if ARCHITECTURES[architecture].has_hidden else 0,
        features=FEATURES,
        direct=False,
        options=options,
    )
    assert isinstance(made, Variant)
    return made.double()


def batch(model: Variant, size: int = 8) -> tuple[Tensor, Tensor]:
    torch.manual_seed(7)
    shape = (size // 4, 4) if model.sequential else (size, ORDER - 1)
    return torch.randint(V, shape), torch.randint(V, (size,))


class Given(Noise):
    """Every word is drawn, and its probability to be there is 1: sampled softmax is then exact."""

    def __init__(self) -> None:
        super().__init__(np.ones(V), 10**6, 1.0)
        self.log_present = torch.zeros(V, dtype=torch.float64)

    def draw(self) -> tuple[Tensor, Tensor]:
        return torch.arange(V), self.log_present


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_distributions_sum_to_1_and_agree_with_scores(architecture: str) -> None:
    model = make(architecture).eval()
    contexts, targets = batch(model)
    with torch.no_grad():
        log_p = model(contexts)
        model.begin()
        assert log_p.shape == (8, V)
        np.testing.assert_allclose(log_p.exp().sum(dim=1), 1, atol=1e-12)
        expected = log_p.gather(1, targets.unsqueeze(1)).squeeze(1)
        np.testing.assert_allclose(model.log_probabilities(contexts, targets), expected, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_update_follows_the_gradient_of_the_exact_cost(architecture: str) -> None:
    # One update by the study's own steps against autograd through everything at once.
    model, whole = make(architecture), make(architecture)
    contexts, targets = batch(model)
    log_p = {}
    parameters = dict(whole.named_parameters())

    def features(words: Tensor) -> Tensor:
        return torch.nn.functional.embedding(words, whole.C)

    whole.look_up = features  # type: ignore[method-assign]
    cost = -whole(contexts).gather(1, targets.unsqueeze(1)).sum()
    gradients = dict(zip(parameters, torch.autograd.grad(cost, list(parameters.values())), strict=True))
    objective = partial(sampled_softmax, noise=Given()) if architecture == "energy" else softmax
    rate = 1e-3
    nats = model.learn(contexts, targets, objective, rate, 1.0)
    assert nats == pytest.approx(float(cost.detach()), rel=1e-9)
    log_p = dict(model.named_parameters())
    for name in ("C", "O"):
        if name in log_p:
            moved = (parameters[name] - log_p[name]).detach() / rate
            tolerance = 1e-9 * float(gradients[name].abs().max())
            if isinstance(model, TiedVariant):
                # C is part of O and is moved after it: its second part is taken at the old O all the same.
                tolerance *= 1e3
            np.testing.assert_allclose(moved, gradients[name], rtol=1e-6, atol=tolerance, err_msg=name)
    # Adam's first step is the rate, against the sign of the gradient.
    for name, parameter in model.named_parameters():
        if name not in ("C", "O"):
            step = (parameters[name] - parameter).detach()
            large = gradients[name].abs() > 1e-3
            np.testing.assert_allclose(step[large], 1e-3 * gradients[name].sign()[large], rtol=1e-2, err_msg=name)


@pytest.mark.parametrize("architecture", RECURRENT)
def test_what_comes_later_changes_nothing(architecture: str) -> None:
    model = make(architecture).eval()
    words = torch.randint(V, (1, 4))
    other = words.clone()
    other[0, 3] = (other[0, 3] + 1) % V
    with torch.no_grad():
        first = model(words)
        model.begin()
        second = model(other)
    np.testing.assert_allclose(first[:3], second[:3], atol=1e-12)
    assert not torch.allclose(first[3], second[3], atol=1e-9)


@pytest.mark.parametrize("architecture", ["rnn", "gru", "lstm"])
def test_a_state_goes_on_from_piece_to_piece(architecture: str) -> None:
    model = make(architecture).eval()
    words = torch.randint(V, (1, 12))
    with torch.no_grad():
        at_once = model(words)
        model.begin(words[:, :3])
        parts = [model(words[:, begin:end]) for begin, end in ((3, 4), (4, 9), (9, 12))]
    np.testing.assert_allclose(torch.cat(parts), at_once[3:], atol=1e-12)


def test_a_transformer_looks_back_to_the_start_of_the_last_piece_and_no_further() -> None:
    model = make("transformer").eval()
    words = torch.randint(V, (1, 12))
    changed = words.clone()
    changed[0, 3] = (words[0, 3] + 1) % V
    found = []
    with torch.no_grad():
        for stream in (words, changed):
            model.begin()
            found.append(torch.cat([model(stream[:, begin : begin + 4]) for begin in (0, 4, 8)]))
    same = (found[0] - found[1]).abs().amax(dim=1) < 1e-12
    assert same.tolist() == [True] * 3 + [False] * 5 + [True] * 4


def test_log_bilinear_by_hand() -> None:
    # One feature, two words of context: q = 2 * 0.5 + 3 * -1 = -2, y = C q + b.
    model = LogBilinear(3, 3, 0, 1, {})
    with torch.no_grad():
        model.O.copy_(torch.tensor([[2.0, 0.1], [3.0, 0.2], [-1.0, 0.3]]))
        model.T.copy_(torch.tensor([[0.5], [-1.0]]))
        y = torch.tensor([2 * -2 + 0.1, 3 * -2 + 0.2, -1 * -2 + 0.3])
        np.testing.assert_allclose(model(torch.tensor([[0, 1]]))[0], torch.log_softmax(y, 0), rtol=1e-5)


def test_energy_by_hand() -> None:
    # h = m = 1, one word of context: -E(w) = b_w + v tanh(d + H C(x) + K C(w)).
    model = Energy(2, 2, 1, 1, {})
    with torch.no_grad():
        model.C.copy_(torch.tensor([[0.5], [-1.0]]))
        model.O.copy_(torch.tensor([[0.1], [0.2]]))
        model.H.weight.fill_(2.0)
        model.H.bias.fill_(0.3)
        model.K.weight.fill_(-1.0)
        model.v.fill_(1.5)
        y = torch.tensor([0.1 + 1.5 * math.tanh(0.3 + 1.0 - 0.5), 0.2 + 1.5 * math.tanh(0.3 + 1.0 + 1.0)])
        np.testing.assert_allclose(model(torch.tensor([[0]]))[0], torch.log_softmax(y, 0), rtol=1e-5)


def test_senses_are_chosen_by_the_other_words() -> None:
    model = MultiSense(3, 3, 2, 2, {"senses": 2})
    vectors = torch.tensor(
        [[[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [2.0, 0.0]]]]
    )  # two words, two senses of two numbers
    pi = model.choose(vectors)
    # The other word is (2, 0) on the mean: sense 1 gets e^2 / (e^2 + 1).
    np.testing.assert_allclose(pi[0, 0].detach(), [math.exp(2) / (math.exp(2) + 1), 1 / (math.exp(2) + 1)], rtol=1e-5)
    np.testing.assert_allclose(pi[0, 1].detach(), [0.5, 0.5], rtol=1e-5)


def test_pieces_cover_the_stream(tiny_store: TokenStore) -> None:
    pieces = Pieces(tiny_store, "valid", 7)
    read, follow = zip(*(pieces[np.arange(s, min(s + 7, len(pieces)))] for s in range(0, len(pieces), 7)), strict=True)
    assert torch.cat(follow).tolist() == tiny_store["valid"].tolist()
    assert torch.cat([each[0] for each in read]).tolist() == [tiny_store["train"][-1], *tiny_store["valid"][:-1]]
    assert pieces.history is not None
    assert pieces.history[0].tolist() == tiny_store.history("valid", 1024)[:-1].tolist()
    first = Pieces(tiny_store, "train", 7)
    assert first.history is None and int(first[np.arange(1)][0]) == MERGED_ID


def test_training_reads_streams_that_go_on(tiny_store: TokenStore) -> None:
    pieces = Pieces(tiny_store, "train", 4)
    loader = training_loader(pieces, 12, seed=1)
    updates = [update for stretch in loader for update in stretch]
    assert streams_of(pieces, 12) == 3 and all(read.shape == (3, 4) for read, _ in updates)
    assert sum(len(follow) for _, follow in updates) == examples_of(pieces, 12) == len(pieces) // 12 * 12
    # What follows is what is read next, in every stream.
    for (read, follow), (read_next, _) in zip(updates, updates[1:], strict=False):
        follow = follow.view(3, 4)
        assert torch.equal(follow[:, :-1], read[:, 1:])
        ends = read_next[:, 0] == follow[:, -1]
        assert ends.sum() >= 2  # but at the end of train, where a stream goes on at its beginning
    orders = [np.concatenate(list(PieceOrder(100, 3, 4, seed))) for seed in (1, 1, 2)]
    assert (orders[0] == orders[1]).all() and (orders[0] != orders[2]).any()


def run(store: TokenStore, folder: Path, architecture: str, preset: Preset, **changes: Any) -> dict[str, Any]:
    hidden = 8 if ARCHITECTURES[architecture].has_hidden else 0
    shape: dict[str, Any] = {"order": 5, "hidden": hidden, "features": 8, "direct": False, "seed": 1}
    return training.train(store, preset=preset, output=folder, architecture=architecture, **{**shape, **changes})


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_killed_training_ends_with_the_same_bytes(
    tiny_store: TokenStore,
    tmp_path: Path,
    make_preset: Callable[..., Preset],
    architecture: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preset = make_preset(**SAMPLED, reduction="mean", rate=0.5, dropout=0.2, epochs_without_direct=3, schedule="cosine")
    whole = run(tiny_store, tmp_path / "whole", architecture, preset)
    save = training.Trainer.on_train_epoch_start

    def killed(trainer: training.Trainer) -> None:
        if trainer.current_epoch == 2:
            raise RuntimeError("killed")
        save(trainer)

    monkeypatch.setattr(training.Trainer, "on_train_epoch_start", killed)
    with pytest.raises(RuntimeError, match="killed"):
        run(tiny_store, tmp_path / "killed", architecture, preset)
    monkeypatch.undo()
    resumed = run(tiny_store, tmp_path / "killed", architecture, preset)
    assert resumed["valid_perplexity"] == whole["valid_perplexity"]
    assert (tmp_path / "killed/weights.pt").read_bytes() == (tmp_path / "whole/weights.pt").read_bytes()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_trained_network_scores_every_token(
    tiny_store: TokenStore, tmp_path: Path, make_preset: Callable[..., Preset], architecture: str
) -> None:
    preset = make_preset(**SAMPLED, reduction="mean", rate=0.5, epochs_without_direct=1)
    summary = run(tiny_store, tmp_path, architecture, preset)
    model = load_network(tmp_path / "weights.pt", tiny_store)
    valid = np.concatenate(list(score(model, tiny_store, "valid")))
    assert valid.shape == tiny_store["valid"].shape
    # Validation read the same tokens in the same way.
    assert math.exp(-valid.mean(dtype=np.float64)) == pytest.approx(summary["valid_perplexity"], rel=1e-5)
    assert np.load(tmp_path / "features.npy").shape[0] == tiny_store.size


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name not in RECURRENT])
def test_a_window_is_read_from_its_end_and_holds_no_more_than_n_1_words(
    tiny_store: TokenStore, architecture: str
) -> None:
    # Scores of a stream do not change before, nor n - 1 words after, the place of another word.
    model = make(architecture).eval().float()
    windows = Windows(tiny_store, "valid", ORDER)
    with torch.no_grad():
        contexts, targets = windows[np.arange(20)]
        before = model.log_probabilities(contexts % V, targets % V)
        place = 9  # of the stream: context j of token t is the word t - 1 - j
        for token in range(place + 1, place + ORDER):
            contexts[token, token - 1 - place] += 1
        after = model.log_probabilities(contexts % V, targets % V)
    same = (before - after).abs() < 1e-7
    assert same[: place + 1].all() and same[place + ORDER :].all()
    assert not same[place + 1 : place + ORDER].any()


def test_the_example_of_the_docs_is_a_network() -> None:
    page = (Path(__file__).parents[2] / "docs" / "beyond.md").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], found)
    model = found["Average"](V, ORDER, HIDDEN, FEATURES, RATE).eval()
    contexts = torch.randint(V, (6, ORDER - 1))
    with torch.no_grad():
        assert torch.allclose(model(contexts).exp().sum(dim=1), torch.ones(6))
        assert torch.allclose(model(contexts), model(contexts.flip(1)))  # of a mean, the order does not matter
    assert eval(re.findall(r'"average": (.*),', page)[0], {"Architecture": Architecture}).options == RATE


def test_options_are_checked() -> None:
    assert parse_options("layers=2 rate=0.002") == {"layers": 2, "rate": 0.002} and parse_options(None) == {}
    with pytest.raises(UserError, match="'layers' is not of the form name=number"):
        parse_options("layers")
    with pytest.raises(UserError, match="rate stands there twice"):
        parse_options("rate=1 rate=0.01")
    for architecture, options, said in (
        ("lstm", {"heads": 2}, "the architecture lstm has no 'heads'; it has rate"),
        (PAPER, {"heads": 2}, "it has none"),
        ("transformer", {"heads": 1.5}, "heads is 1.5; it is a whole number from 1 to 1,000"),
        ("convolutional", {"width": 1e300}, "width is 1e\\+300; it is a whole number"),
        ("transformer", {"rate": 0}, "rate is 0; it is a number above 0"),
        ("transformer", {"rate": math.inf}, "rate is inf; it is a number above 0"),
        ("transformer", {"heads": 3}, "3 heads, which do not divide 8 hidden units"),
        ("log-bilinear", {}, "has no hidden units, not 8"),
    ):
        with pytest.raises(UserError, match=said):
            make_network(architecture, vocabulary=5, order=3, hidden=8, features=4, direct=False, options=options)


def test_what_is_made_for_the_paper_s_network_is_refused(
    tiny_store: TokenStore, tmp_path: Path, make_preset: Callable[..., Preset]
) -> None:
    preset = make_preset(**SAMPLED)
    with pytest.raises(UserError, match="has no direct connections"):
        run(tiny_store, tmp_path, "lstm", preset, direct=True)
    with pytest.raises(UserError, match="no weight decay"):
        run(tiny_store, tmp_path, "lstm", make_preset())
    with pytest.raises(UserError, match="by one process"):
        run(tiny_store, tmp_path, "lstm", preset, scheme="data", processes=2)
    with pytest.raises(UserError, match=r"train has 2,000 tokens, fewer than the 9,999 of one piece"):
        run(tiny_store, tmp_path, "lstm", preset, order=10_000)
    with pytest.raises(UserError, match="GB of a memory of"):
        run(tiny_store, tmp_path, "transformer", preset, hidden=10**7)
    with pytest.raises(UserError, match="trained by sampled-softmax alone"):
        run(tiny_store, tmp_path, "energy", make_preset(weight_decay=0.0))
