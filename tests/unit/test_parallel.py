"""Several processes: the same network as of one to rounding, or one about as good; and nothing is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.files import read_json, write_json
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.objectives import softmax
from nplm2003.neural.parallel import Team, run, share
from nplm2003.neural.preset import Preset
from nplm2003.neural.training import train
from nplm2003.vocabulary import TokenStore

MakePreset = Callable[..., Preset]
Weights = dict[str, Tensor]
SHAPE: dict[str, Any] = {"order": 3, "hidden": 4, "features": 3, "direct": True}
MODERN: dict[str, Any] = {
    "epochs_direct": 2,
    "reduction": "mean",
    "rate": 1.0,
    "schedule": "cosine",
    "dropout": 0.3,
    "bias_start": "unigram",
    "weight_decay": 1e-3,
}
SAMPLED: dict[str, Any] = {"objective": "sampled-softmax", "noise_words": 7, "noise_power": 0.75}
SOURCE = Path(__file__).parents[2] / "src"


def weights_of(folder: Path) -> Weights:
    weights: Weights = torch.load(folder / "weights.pt", weights_only=True)["weights"]
    return weights


def curve_of(folder: Path) -> np.ndarray:
    """The learning curve but for the seconds."""
    return np.delete(np.loadtxt(folder / "learning_curve.csv", delimiter=",", skiprows=1, ndmin=2), 5, axis=1)


def workers() -> list[psutil.Process]:
    """The processes of trainings that live: children of the server that forks them, which stays."""
    return [child for own in psutil.Process().children() for child in own.children()]


def test_shares_by_hand() -> None:
    assert [share(8, rank, 3) for rank in range(3)] == [slice(0, 2), slice(2, 5), slice(5, 8)]
    assert [share(1, rank, 2) for rank in range(2)] == [slice(0, 0), slice(0, 1)]  # there may be nothing to do


# --- exact softmax by words ------------------------------------------------------------------------------------------


def a_model(scale: float) -> NeuralLanguageModel:
    torch.manual_seed(0)
    model = NeuralLanguageModel(51, 4, 5, 6, True).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.O.data.mul_(scale)
    return model


def one_update(contexts: Tensor, targets: Tensor, scale: float, team: Team) -> list[np.ndarray]:
    """Cost, its gradient by z, and O after one update."""
    model = a_model(scale)
    z = model.before_output(contexts).detach()
    team.receive(model)
    nats, dz = team.objective(softmax)(model.O.data[team.rows], z, targets, 0.5)
    team.gather(model)
    return [np.array(nats), dz.numpy(), model.O.detach().numpy()]


def by_torch(contexts: Tensor, targets: Tensor, team: Team) -> list[np.ndarray]:
    """The same by tensor parallelism of torch."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module

    model = a_model(1.0)
    z = model.before_output(contexts).detach().requires_grad_()
    layer = torch.nn.Linear(*model.O.T.shape, bias=False, dtype=torch.float64)
    layer.weight.data = model.O.data
    by_words = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    parallelize_module(layer, init_device_mesh("cpu", (team.processes,)), by_words)
    with loss_parallel():
        nats = torch.nn.functional.cross_entropy(layer(z), targets, reduction="sum")
        nats.backward()
    moved = model.O.data - 0.5 * layer.weight.grad.full_tensor()
    return [nats.detach().full_tensor().numpy(), z.grad.numpy(), moved.numpy()]


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randint(51, (32, 3)), torch.randint(51, (32,))


# Logits of a few units, and of thousands, whose exponentials are no numbers.
@pytest.mark.parametrize(("processes", "scale"), [(2, 1.0), (2, 1e3), (3, 1.0)])
def test_split_softmax_is_softmax(batch: tuple[Tensor, Tensor], processes: int, scale: float) -> None:
    expected = one_update(*batch, scale, Team())
    found = run(partial(one_update, *batch, scale), "vocabulary", processes)
    for mine, its in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-10, atol=1e-10)


def test_tensor_parallelism_of_torch_does_the_same(batch: tuple[Tensor, Tensor]) -> None:
    expected = one_update(*batch, 1.0, Team())
    for mine, its in zip(run(partial(by_torch, *batch), "data", 2), expected, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-10, atol=1e-10)


# --- whole trainings -------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # 2,000 examples in batches of 37: the last has 2, of which one of three processes has none.
    "the paper's updates": ({"batch": 37, "epochs_direct": 2, "weight_decay": 0.1, "rate": 1e-2}, {}),
    "dropout": (MODERN | {"batch": 37}, {}),
    "sampled": (MODERN | SAMPLED | {"batch": 37}, {}),
    "no hidden layer, fixed features": (MODERN, {"hidden": 0, "word_features": "svd"}),
    "word classes": (MODERN, {"outputs": "classes", "class_of": np.arange(40) % 5}),
}


@pytest.mark.parametrize(
    ("scheme", "processes", "case"),
    [
        ("data", 2, "the paper's updates"),
        ("data", 3, "dropout"),
        ("data", 3, "sampled"),
        ("data", 2, "no hidden layer, fixed features"),
        ("data", 2, "word classes"),
        ("vocabulary", 2, "the paper's updates"),
        ("vocabulary", 3, "dropout"),
        ("vocabulary", 2, "no hidden layer, fixed features"),
    ],
)
def test_equals_one_process(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, scheme: str, processes: int, case: str
) -> None:
    changes, shape = CASES[case]
    several: dict[str, Any] = {"scheme": scheme, "processes": processes}
    for name, how in (("one", {}), ("several", several)):
        train(tiny_store, **SHAPE | shape, preset=make_preset(**changes), seed=1, output=tmp_path / name, **how)
    one, other = weights_of(tmp_path / "one"), weights_of(tmp_path / "several")
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-3, atol=3e-5, err_msg=name)
    np.testing.assert_allclose(curve_of(tmp_path / "several"), curve_of(tmp_path / "one"), rtol=1e-4)
    assert read_json(tmp_path / "several" / "training.json")["parallel"] == several
    assert sorted(path.name for path in (tmp_path / "several").iterdir()) == [
        "features.npy",
        "learning_curve.csv",
        "training.json",
        "weights.pt",
    ]
    assert not workers()


@pytest.mark.parametrize("objective", [{}, SAMPLED])
def test_without_locks_about_as_good(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, objective: dict[str, Any]
) -> None:
    preset = make_preset(**MODERN | objective | {"epochs_direct": 4})
    one = train(tiny_store, **SHAPE, preset=preset, seed=1, output=tmp_path / "one")
    two = train(tiny_store, **SHAPE, preset=preset, seed=1, output=tmp_path / "two", scheme="asynchronous", processes=2)
    assert two["valid_perplexity"] == pytest.approx(one["valid_perplexity"], rel=0.05)
    start = float(curve_of(tmp_path / "one")[0, 3])
    assert one["valid_perplexity"] < 0.9 * start  # or the line before would say less
    np.testing.assert_array_equal(curve_of(tmp_path / "two")[:, :3], curve_of(tmp_path / "one")[:, :3])


def test_without_locks_every_example_is_seen_once(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    # So slow that updates add up, in whatever order: the way from the start is that of one process.
    way: dict[str, Weights] = {}
    start: Weights = {}
    for name, rate, how in (
        ("start", 0.0, {}),
        ("one", 1e-5, {}),
        ("several", 1e-5, {"scheme": "asynchronous", "processes": 3}),
    ):
        preset = make_preset(rate=rate, weight_decay=0.0)
        train(tiny_store, **SHAPE, preset=preset, seed=1, output=tmp_path / name, **how)
        start = start or weights_of(tmp_path / name)
        way[name] = {key: value - start[key] for key, value in weights_of(tmp_path / name).items()}
    for key, one in way["one"].items():
        assert float((way["several"][key] - one).norm() / one.norm()) < 0.1, key


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["data", "asynchronous", "vocabulary"])
def test_divergence_in_one_process_ends_all_with_one_line(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset, scheme: str
) -> None:
    with pytest.raises(UserError, match=r"^training diverged in epoch 1 after [\d,]+ examples \(rate") as error:
        preset = make_preset(rate=1e25)
        train(tiny_store, **SHAPE, preset=preset, seed=1, output=tmp_path, scheme=scheme, processes=2)
    assert "\n" not in str(error.value)
    assert not workers()
    assert not (tmp_path / "weights.pt").exists()


def die(team: Team) -> None:
    if team.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()  # without an end of the others, a wait of half an hour


def test_the_death_of_one_process_ends_all_with_one_line() -> None:
    with pytest.raises(UserError, match="^process 2 of the 2 that train died"):
        run(die, "data", 2)
    assert not workers()


def fail(team: Team) -> None:
    if team.rank == 1:
        raise ZeroDivisionError("a bug")
    dist.barrier()


def test_a_bug_in_one_process_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError, match="a bug") as error:
        run(fail, "data", 2)
    assert "in fail" in error.value.__notes__[0]  # where it was
    assert not workers()


def test_the_vocabulary_is_split_for_exact_softmax_alone(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    with pytest.raises(UserError, match="exact softmax over all words alone"):
        preset = make_preset(**SAMPLED)
        train(tiny_store, **SHAPE, preset=preset, seed=1, output=tmp_path, scheme="vocabulary", processes=2)


def test_a_killed_training_leaves_no_process_and_goes_on(
    tiny_store: TokenStore, tmp_path: Path, make_preset: MakePreset
) -> None:
    preset = make_preset(**MODERN | {"epochs_direct": 16, "batch": 64, "patience": 16})
    write_json(tmp_path / "study.json", {"presets": {"mine": preset.as_dict()}})
    shape = ("--order", "3", "--hidden", "4", "--features", "3", "--direct")
    how = ("--preset-file", tmp_path / "study.json", "--preset", "mine", "--seed", "1")
    parallel = ("--processes", "2", "--parallel", "data", "--output", tmp_path / "killed")
    command = (sys.executable, "-m", "nplm2003", "train", "--tokens", tiny_store.folder, *shape, *how, *parallel)
    # In a job of Slurm, Lightning left to itself would take its one task for the one process there is.
    slurm = {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "job", "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    environment = os.environ | slurm | {"PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("epoch 2/16"):
            break
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 3  # the server and two processes
    process.kill()
    process.wait()
    process.stderr.close()
    gone, alive = psutil.wait_procs(family, timeout=120)
    assert not alive, alive
    assert not (tmp_path / "killed" / "weights.pt").exists()

    ended = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=True)
    epochs = [line.split()[1] for line in ended.stderr.splitlines() if line.startswith("epoch ")]
    assert epochs in ([f"{epoch}/16" for epoch in range(first, 17)] for first in range(2, 9))  # not from the start
    train(tiny_store, **SHAPE, preset=preset, seed=1, output=tmp_path / "whole", scheme="data", processes=2)
    killed, whole = weights_of(tmp_path / "killed"), weights_of(tmp_path / "whole")
    assert all(torch.equal(killed[name], whole[name]) for name in whole)
