"""Training: the paper's updates by hand, resumed runs bit for bit, and the choice of the epoch."""

from __future__ import annotations

import csv
import fcntl
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from synthetic import all_scores
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.evaluation import perplexity
from nplm2003.files import array_checksum, read_json, write_array, write_json
from nplm2003.neural import training
from nplm2003.neural.cooccurrence import svd_features
from nplm2003.neural.data import EpochOrder, Windows
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import load_network, score
from nplm2003.neural.training import CURVE_COLUMNS, train
from nplm2003.vocabulary import Split, TokenStore

MakePreset = Callable[..., Preset]
BuildStore = Callable[[str, Split, int], TokenStore]
SHAPE: dict[str, Any] = {"order": 3, "hidden": 4, "features": 3, "direct": True}


def run(store: TokenStore, output: Path, preset: Preset, seed: int = 1, **shape: Any) -> dict[str, Any]:
    return train(store, **{**SHAPE, **shape}, preset=preset, seed=seed, output=output)


def weights_of(folder: Path) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = torch.load(folder / "weights.pt", weights_only=True)["weights"]
    return weights


def curve_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "learning_curve.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def assert_same_training(one: Path, other: Path) -> None:
    """Weights equal bit for bit, and the same learning curve but for the seconds."""
    left, right = weights_of(one), weights_of(other)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert [{**row, "seconds": ""} for row in curve_of(one)] == [{**row, "seconds": ""} for row in curve_of(other)]


# --- what one example is ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def letters(build_store: BuildStore) -> TokenStore:
    """train 1 2 3 4, valid 5, test 6 7."""
    return build_store("a b c d e f g", Split(4, 1), 8)


@pytest.mark.parametrize(
    ("split", "order", "contexts", "targets"),
    [
        # Before the first token of train stands the merged symbol, 0.
        ("train", 4, [[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1]], [1, 2, 3, 4]),
        ("valid", 4, [[4, 3, 2]], [5]),
        # valid is shorter than n - 1: the context of test reaches through it into train.
        ("test", 4, [[5, 4, 3], [6, 5, 4]], [6, 7]),
        # The whole stream before the split is shorter than n - 1.
        ("valid", 7, [[4, 3, 2, 1, 0, 0]], [5]),
        ("test", 7, [[5, 4, 3, 2, 1, 0], [6, 5, 4, 3, 2, 1]], [6, 7]),
    ],
)
def test_windows_by_hand(
    letters: TokenStore, split: str, order: int, contexts: list[list[int]], targets: list[int]
) -> None:
    windows = Windows(letters, split, order)
    assert len(windows) == len(targets)  # every token is predicted, whatever stands before it
    found = windows[np.arange(len(windows))]
    assert found[0].tolist() == contexts
    assert found[1].tolist() == targets


def test_order_of_training_depends_on_seed_and_epoch_alone() -> None:
    def order(batch: int, seed: int, epoch: int) -> list[int]:
        sampler = EpochOrder(100, batch, seed)
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert len(batches) == len(sampler) == math.ceil(100 / batch)
        return np.concatenate(batches).tolist()

    expected = order(32, seed=1, epoch=2)
    assert sorted(expected) == list(range(100)) != expected
    np.random.seed(0)  # the state of global generators does not matter,
    torch.manual_seed(0)
    assert order(7, seed=1, epoch=2) == expected  # nor does the size of a batch
    assert order(32, seed=1, epoch=3) != expected
    assert order(32, seed=2, epoch=2) != expected


# --- rates and updates -----------------------------------------------------------------------------------------------


def test_paper_schedule_by_hand(make_preset: MakePreset) -> None:
    preset = make_preset(rate=1e-3, schedule="hyperbolic", rate_decay=1e-8)
    # eps_0 / (1 + r t), t in examples: after ten epochs of Brown (8 million) the rate is 1e-3 / 1.08.
    assert preset.rate_at(0, 10) == 1e-3
    assert preset.rate_at(8_000_000, 10) == pytest.approx(1e-3 / 1.08, rel=1e-12)
    assert preset.rate_at(100_000_000, 10) == pytest.approx(5e-4, rel=1e-12)


def test_cosine_schedule_by_hand(make_preset: MakePreset) -> None:
    preset = make_preset(rate=2.0, schedule="cosine")
    assert preset.rate_at(0, 300) == 2.0
    assert preset.rate_at(100, 300) == pytest.approx(1.5)  # 1 + cos 60 degrees
    assert preset.rate_at(150, 300) == pytest.approx(1.0)
    assert preset.rate_at(200, 300) == pytest.approx(0.5)
    assert preset.rate_at(300, 300) == preset.rate_at(301, 300) == 0.0


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize(("hidden", "direct"), [(4, True), (4, False), (0, True)])
def test_updates_by_hand(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, reduction: str, hidden: int, direct: bool
) -> None:
    # Two updates, of 1,200 and 800 examples: the second at the rate that t = 1,200 gives.
    preset = make_preset(batch=1200, reduction=reduction, rate=2e-3, rate_decay=1e-3, weight_decay=1e-2)
    run(tiny_store, tmp_path, preset, seed=5, hidden=hidden, direct=direct)

    torch.manual_seed(5)
    model = NeuralLanguageModel(tiny_store.size, 3, hidden, 3, direct).double()
    windows = Windows(tiny_store, "train", 3)
    for positions, rate in zip(EpochOrder(2000, 1200, 5), (2e-3, 2e-3 / (1 + 1.2)), strict=True):
        contexts, targets = windows[positions]
        examples = len(positions)
        model.zero_grad()
        model(contexts)[torch.arange(examples), targets].sum().neg().backward()  # the summed gradient
        share = 1 if reduction == "sum" else 1 / examples
        with torch.no_grad():
            for name, theta in model.named_parameters():
                assert theta.grad is not None
                decay = torch.full_like(theta, 0.0 if name == "d" else 1e-2)
                if name == "O":
                    decay[:, -1] = 0  # b
                # (theta - eps * sum of gradients) (1 - eps * K * decay)
                theta -= rate * share * theta.grad
                theta *= 1 - rate * share * examples * decay

    for name, value in weights_of(tmp_path).items():
        np.testing.assert_allclose(value, model.state_dict()[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_summed_updates_of_32_equal_updates_of_1(
    build_store: BuildStore, invented_text: Callable[..., str], tmp_path: Path, make_preset: MakePreset
) -> None:
    """At the paper's rate, K = 32 summed gradients do what 32 single updates do. benchmarks/updates_per_example.py
    shows more of K on a larger corpus."""

    store = build_store(invented_text(1000, seed=1), Split(3000, 1000, 1000), 44)

    def valid(batch: int, reduction: str) -> float:
        preset = make_preset(batch=batch, reduction=reduction, rate=1e-3)
        summary = run(store, tmp_path / f"{reduction}{batch}", preset, hidden=10, features=8)
        return float(summary["valid_perplexity"])

    one = valid(1, "sum")
    assert valid(32, "sum") == pytest.approx(one, rel=0.01)
    # The epoch moved the network much further than that: averaged gradients leave it 32 times slower.
    assert valid(32, "mean") > 1.1 * one


def test_weight_decay_of_sparse_updates_is_that_of_the_stretch(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    # 2,000 examples in batches of 50: one stretch of 40 updates. Features in rows that no example and no noise word
    # touches would be multiplied by 1 - rate x decay 40 times; here once, by 1 - 40 x rate x decay.
    start = weights_of(_sampled(tiny_store, tmp_path / "start", make_preset, rate=0.0))
    end = weights_of(_sampled(tiny_store, tmp_path / "end", make_preset, rate=1e-9, weight_decay=1e6))
    for name, value in start.items():
        factor = torch.full_like(value, 1.0 if name == "d" else 1 - 40 * 1e-3)
        if name == "O":
            factor[:, -1] = 1  # b
        torch.testing.assert_close(end[name], value * factor, rtol=1e-5, atol=1e-6)


def _sampled(store: TokenStore, folder: Path, make_preset: MakePreset, **changes: Any) -> Path:
    run(store, folder, make_preset(**SAMPLED, batch=50, reduction="mean", rate_decay=0.0, **changes))
    return folder


def test_sampled_training_comes_close_to_exact_training(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    common = {"epochs_direct": 4, "reduction": "mean", "rate": 1.0, "schedule": "cosine", "bias_start": "unigram"}
    many = {**SAMPLED, "noise_words": 100}
    valid = {
        name: run(tiny_store, tmp_path / name, make_preset(**common, **objective))["valid_perplexity"]
        for name, objective in (("exact", {}), ("sampled", many))
    }
    unigram = run(tiny_store, tmp_path / "start", make_preset(rate=0.0, bias_start="unigram"))["valid_perplexity"]
    assert valid["exact"] < 0.8 * unigram  # or the next line would say nothing
    assert valid["sampled"] == pytest.approx(valid["exact"], rel=0.02)


def test_validation_may_read_every_third_token(tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset) -> None:
    summary = run(tiny_store, tmp_path, make_preset(valid_every=3))
    model = load_network(tmp_path / "weights.pt", tiny_store)
    expected = perplexity(all_scores(score(model, tiny_store, "valid"))[::3])
    assert summary["valid_perplexity"] == pytest.approx(expected, rel=1e-5)
    assert expected != pytest.approx(perplexity(all_scores(score(model, tiny_store, "valid"))), rel=1e-3)


# --- starts and seeds ------------------------------------------------------------------------------------------------


def test_unigram_start_of_the_biases_by_hand(build_store: BuildStore, tmp_path: Path, make_preset: MakePreset) -> None:
    # train a a a b b; V = <rare>, a, b, c, of which <rare> and c never occur in it: (count + 1) / (5 + 4).
    store = build_store("a a a b b c d", Split(5, 1), 4)
    expected = np.log(np.array([1, 4, 3, 1]) / 9)
    run(store, tmp_path / "unigram", make_preset(rate=0.0, bias_start="unigram"))  # at rate 0 the start is the end
    np.testing.assert_allclose(weights_of(tmp_path / "unigram")["O"][:, -1], expected, rtol=1e-6)
    run(store, tmp_path / "zero", make_preset(rate=0.0, bias_start="zero"))
    assert not weights_of(tmp_path / "zero")["O"][:, -1].any()


def test_a_seed_gives_one_network(tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset) -> None:
    preset = make_preset(dropout=0.2, epochs_direct=2)
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        run(tiny_store, tmp_path / name, preset, seed=seed)
    assert_same_training(tmp_path / "one", tmp_path / "again")
    assert (tmp_path / "one" / "weights.pt").read_bytes() == (tmp_path / "again" / "weights.pt").read_bytes()
    assert not torch.equal(weights_of(tmp_path / "one")["C"], weights_of(tmp_path / "other")["C"])


# --- features that are not learnt ------------------------------------------------------------------------------------


def test_fixed_features_stay_and_the_rest_is_trained(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    preset = make_preset(weight_decay=0.1, rate=0.01)
    summary = run(tiny_store, tmp_path / "fixed", preset, word_features="svd")
    assert torch.equal(weights_of(tmp_path / "fixed")["C"], svd_features(tiny_store, 3))
    assert np.array_equal(np.load(tmp_path / "fixed" / "features.npy"), svd_features(tiny_store, 3).numpy())
    assert summary["word_features"] == "svd"
    assert (summary["parameters"], summary["trained_parameters"]) == (588, 588 - 40 * 3)

    # The other parameters start as with learnt features, and are trained.
    still = make_preset(rate=0.0)
    run(tiny_store, tmp_path / "start", still, word_features="svd")
    learnt = run(tiny_store, tmp_path / "learnt", still)
    assert learnt["trained_parameters"] == learnt["parameters"] == 588
    start, random, end = (weights_of(tmp_path / name) for name in ("start", "learnt", "fixed"))
    for name in ("H", "d", "O"):
        assert torch.equal(start[name], random[name])
        assert not torch.equal(start[name], end[name])


def test_a_killed_training_of_fixed_features_goes_on(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    preset = make_preset(**LONG)
    run(tiny_store, tmp_path / "unbroken", preset, word_features="svd")
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Killed):
        kill_in(monkeypatch, 1)
        run(tiny_store, tmp_path / "killed", preset, word_features="svd")
    run(tiny_store, tmp_path / "killed", preset, word_features="svd")
    assert_same_training(tmp_path / "unbroken", tmp_path / "killed")


def test_more_features_than_the_counts_have_components_are_refused(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    with pytest.raises(UserError, match="components, fewer than the 40 features"):
        run(tiny_store, tmp_path, make_preset(), features=40, word_features="svd")


# --- stopping and going on -------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a kill: nothing may catch it."""


def kill_in(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    """Make the training die in the middle of `epoch` (from 0)."""
    descend = training.Trainer.descend

    def dying(self: training.Trainer, *arguments: Any) -> None:
        if self.current_epoch == epoch and self.train_tokens > 150:
            raise Killed
        descend(self, *arguments)

    monkeypatch.setattr(training.Trainer, "descend", dying)


def full_disk(*arguments: Any) -> None:
    raise OSError(28, "No space left on device")


# Everything that a resumed run has to restore: the place in the schedule, the order, the dropout.
LONG: dict[str, Any] = {
    "epochs_direct": 3,
    "reduction": "mean",
    "rate": 1.0,
    "schedule": "cosine",
    "dropout": 0.3,
    "bias_start": "unigram",
    "matmul": "medium",
}


SAMPLED: dict[str, Any] = {"objective": "sampled-softmax", "noise_words": 7, "noise_power": 0.75}


@pytest.mark.parametrize("objective", [{}, SAMPLED])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_killed_training_goes_on_as_if_it_had_not_been(
    tiny_store: TokenStore,
    tmp_path: Path,
    make_preset: MakePreset,
    capsys: pytest.CaptureFixture[str],
    objective: dict[str, Any],
    epoch: int,
) -> None:
    preset = make_preset(**LONG, **objective)
    run(tiny_store, tmp_path / "unbroken", preset)
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Killed):
        kill_in(monkeypatch, epoch)
        run(tiny_store, tmp_path / "killed", preset)
    assert not (tmp_path / "killed" / "weights.pt").exists()
    capsys.readouterr()
    run(tiny_store, tmp_path / "killed", preset)
    lines = capsys.readouterr().err.splitlines()
    # Finished epochs are not trained again.
    assert [line.split()[1] for line in lines if line.startswith("epoch ")] == ["1/3", "2/3", "3/3"][epoch:]
    assert_same_training(tmp_path / "unbroken", tmp_path / "killed")


def test_a_crash_while_results_are_written_costs_no_epoch(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = make_preset(epochs_direct=2)
    run(tiny_store, tmp_path / "unbroken", preset)
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(OSError, match="No space left"):
        monkeypatch.setattr(training, "write_array", full_disk)
        run(tiny_store, tmp_path / "crashed", preset)
    capsys.readouterr()
    run(tiny_store, tmp_path / "crashed", preset)
    assert "epoch" not in capsys.readouterr().err.split("examples an epoch")[1]
    assert_same_training(tmp_path / "unbroken", tmp_path / "crashed")


@pytest.mark.parametrize("change", [{"rate": 0.5}, {"seed": 2}, {"hidden": 5}, {"order": 4}])
def test_checkpoints_of_other_settings_are_discarded(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, change: dict[str, Any]
) -> None:
    preset = make_preset(**LONG | {"epochs_direct": 2})
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Killed):
        kill_in(monkeypatch, 1)
        run(tiny_store, tmp_path / "killed", preset)
    assert (tmp_path / "killed" / "checkpoints" / "last.ckpt").is_file()
    if "rate" in change:
        change, preset = {}, make_preset(**LONG | {"epochs_direct": 2} | change)
    run(tiny_store, tmp_path / "killed", preset, **change)
    run(tiny_store, tmp_path / "fresh", preset, **change)
    assert_same_training(tmp_path / "killed", tmp_path / "fresh")


OVERFITTING: dict[str, Any] = {
    "batch": 8,
    "reduction": "mean",
    "rate": 1.0,
    "weight_decay": 0.0,
    "epochs_direct": 30,
    "patience": 3,
    "valid_every": 1,
}
LARGE = {"hidden": 20, "features": 10}


@pytest.fixture(scope="module")
def overfitted(
    tiny_store: TokenStore,
    build_store: BuildStore,
    make_preset: MakePreset,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[TokenStore, Path, dict[str, Any]]:
    """A network that is trained too fast on 300 tokens: validation is best early, and early stopping ends it."""
    words = [tiny_store.words[i] if i else "rare" for i in tiny_store["train"][:500]]
    store = build_store(" ".join(words), Split(300, 100), 30)
    folder = tmp_path_factory.mktemp("overfitted")
    return store, folder, run(store, folder, make_preset(**OVERFITTING), **LARGE)


def test_early_stopping_keeps_the_best_epoch(overfitted: tuple[TokenStore, Path, dict[str, Any]]) -> None:
    store, folder, summary = overfitted
    curve = curve_of(folder)
    valid = [float(row["valid_perplexity"]) for row in curve]
    best = int(np.argmin(valid))
    assert max(valid[best:]) > 1.02 * valid[best]  # or this test would say nothing
    assert summary["best_epoch"] == best + 1
    assert summary["epochs"] == len(curve) == best + 1 + 3 < 30
    assert [row["best"] for row in curve] == ["1" if epoch == best else "0" for epoch in range(len(curve))]
    scores = all_scores(score(load_network(folder / "weights.pt", store), store, "valid"))
    assert perplexity(scores) == pytest.approx(valid[best], rel=1e-5)
    assert summary["valid_perplexity"] == pytest.approx(valid[best], rel=1e-5)


def test_files_of_a_training(overfitted: tuple[TokenStore, Path, dict[str, Any]]) -> None:
    store, folder, summary = overfitted
    assert sorted(path.name for path in folder.iterdir()) == [
        "features.npy",
        "learning_curve.csv",
        "training.json",
        "weights.pt",
    ]
    assert read_json(folder / "training.json") == summary
    assert summary["vocabulary"] == store.fingerprint
    features = np.load(folder / "features.npy")
    assert features.shape == (store.size, 10) and features.dtype == np.float32
    assert np.array_equal(features, weights_of(folder)["C"].numpy())
    curve = curve_of(folder)
    assert tuple(curve[0]) == CURVE_COLUMNS
    assert CURVE_COLUMNS == ("epoch", "examples", "rate", "train_perplexity", "valid_perplexity", "seconds", "best")
    assert [int(row["epoch"]) for row in curve] == list(range(1, len(curve) + 1))
    assert [int(row["examples"]) for row in curve] == [300 * int(row["epoch"]) for row in curve]
    assert float(curve[0]["rate"]) == pytest.approx(1 / (1 + 1e-8 * 300), rel=1e-5)


def test_a_crash_after_early_stopping_costs_no_epoch(
    overfitted: tuple[TokenStore, Path, dict[str, Any]],
    tmp_path: Path,
    make_preset: MakePreset,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store, unbroken, _ = overfitted
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(OSError, match="No space left"):
        monkeypatch.setattr(training, "write_array", full_disk)
        run(store, tmp_path, make_preset(**OVERFITTING), **LARGE)
    capsys.readouterr()
    run(store, tmp_path, make_preset(**OVERFITTING), **LARGE)
    assert "epoch" not in capsys.readouterr().err.split("examples an epoch")[1]
    assert_same_training(unbroken, tmp_path)


def test_test_is_never_opened(own_store: TokenStore, tmp_path: Path, make_preset: MakePreset) -> None:
    (own_store.folder / "test.npy").write_bytes(b"no array")
    with pytest.raises((OSError, ValueError, UserError)):
        own_store["test"]  # whoever looks at it fails
    summary = run(own_store, tmp_path / "network", make_preset(epochs_direct=2, bias_start="unigram"))
    assert summary["epochs"] == 2


# --- numbers in the learning curve -----------------------------------------------------------------------------------


def test_curve_holds_no_mean_of_batch_means(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At rate 0 the network stays as it is; the last batch of both splits is a single token.
    monkeypatch.setattr(training, "SCORING_BATCH", 399)
    run(tiny_store, tmp_path, make_preset(rate=0.0, batch=1999))
    model = load_network(tmp_path / "weights.pt", tiny_store)
    row = curve_of(tmp_path)[0]
    for split in ("train", "valid"):
        measured = perplexity(all_scores(score(model, tiny_store, split)))
        assert float(row[f"{split}_perplexity"]) == pytest.approx(measured, rel=1e-5)


def test_dropout_is_for_training_alone(tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset) -> None:
    for name, dropout in (("without", 0.0), ("with", 0.5)):
        run(tiny_store, tmp_path / name, make_preset(rate=0.0, dropout=dropout, batch=500))
    without, dropped = curve_of(tmp_path / "without")[0], curve_of(tmp_path / "with")[0]
    assert dropped["valid_perplexity"] == without["valid_perplexity"]
    assert dropped["train_perplexity"] != without["train_perplexity"]


def test_one_line_per_epoch_on_stderr(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tiny_store, tmp_path, make_preset(epochs_direct=2))
    out, err = capfd.readouterr()
    assert out == ""
    first, *epochs = err.splitlines()
    # 40 words, n = 3, h = 4, m = 3: 40 (1 + 9 + 4) + 4 (1 + 6) parameters
    assert first.startswith("588 parameters, 2,000 examples an epoch, 1 thread(s)")
    assert [line.split()[:2] for line in epochs] == [["epoch", "1/2"], ["epoch", "2/2"]]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "batch"),
    [
        (1e25, 32),  # NaN in training
        (1e38, 2000),  # NaN after the only update: only validation sees it
        (100.0, 2000),  # finite, but more than 709 nats a token, whose exp is no float
    ],
)
def test_divergence_is_one_line(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, rate: float, batch: int
) -> None:
    with pytest.raises(UserError, match=r"^training diverged in epoch 1 after [\d,]+ examples \(rate") as error:
        run(tiny_store, tmp_path, make_preset(rate=rate, batch=batch))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "weights.pt").exists()


def test_an_interrupt_is_passed_on(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Lightning makes it a SystemExit and goes on ignoring interrupts.
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training.Trainer, "training_step", interrupt)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tiny_store, tmp_path, make_preset())
    finally:
        signal.signal(signal.SIGINT, handler)


def test_two_trainings_in_one_folder_are_refused(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Killed):
        kill_in(monkeypatch, 1)
        run(tiny_store, tmp_path, make_preset(epochs_direct=2))
    # What the killed training left does not stand in the way; another one at work does, and loses nothing.
    checkpoints = tmp_path / "checkpoints"
    before = sorted(path.name for path in checkpoints.iterdir())
    with (checkpoints / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="^another training writes to "):
            run(tiny_store, tmp_path, make_preset(rate=0.5))
        assert sorted(path.name for path in checkpoints.iterdir()) == before
    assert run(tiny_store, tmp_path, make_preset(epochs_direct=2))["epochs"] == 2
    assert not checkpoints.exists()


def test_empty_validation_is_refused(own_store: TokenStore, tmp_path: Path, make_preset: MakePreset) -> None:
    nothing = own_store["valid"][:0]
    write_array(own_store.folder / "valid.npy", nothing)
    statistics = read_json(own_store.folder / "corpus.json")
    statistics["tokens"]["valid"] = 0
    statistics["checksums"]["valid"] = array_checksum(nothing)
    write_json(own_store.folder / "corpus.json", statistics)
    with pytest.raises(UserError, match="empty validation split"):
        run(TokenStore(own_store.folder), tmp_path / "network", make_preset())
    assert not (tmp_path / "network").exists()
