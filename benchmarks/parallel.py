"""What do several processes gain, what does their exchange cost, and what would it cost on M machines?

MLP9 and MLP1 take updates on random words, as frequent as in a text, with the vocabulary of Brown: one process, and two
under each scheme of `nplm2003.neural.parallel`, one thread each. Beside them stand two networks trained side by side,
one thread each, and one network trained by one process of two threads. All ways take turns, in short windows of which
the best counts. Speed-ups are given by CPU seconds of one process, which hold on a machine that does other work, and by
the wall, where a process also waits for the other one to get a core. Communication is the CPU time of calls of
torch.distributed.

The model of M machines: an update takes what one process needs, the part that is shared out divided by M, and for every
exchange of b bytes 2 log2(M) latencies and 2 (M - 1) / M b bytes over the bandwidth (an all-reduce by halves). It is
told the latency and bandwidth measured here, between two processes, and of two kinds of networks that are assumed.

Tables in Markdown; all numbers in results/parallel.csv and results/parallel-model.csv.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from common import ROOT, presets, write_csv

sys.path.insert(0, str(ROOT / "src"))  # also runs in a clone that is not installed

from objectives import EXACT, NETWORKS, VOCABULARY, draw  # noqa: E402

from nplm2003.neural.model import NeuralLanguageModel  # noqa: E402
from nplm2003.neural.objectives import make_objective  # noqa: E402
from nplm2003.neural.parallel import SCHEMES, Team, run  # noqa: E402
from nplm2003.neural.preset import Preset  # noqa: E402
from nplm2003.neural.scoring import settle  # noqa: E402
from nplm2003.neural.training import Trainer  # noqa: E402

OBJECTIVES: dict[str, dict[str, Any]] = {
    "exact, float32": EXACT | {"matmul": "highest"},
    "exact, bfloat16": EXACT | {"matmul": "medium"},
    "sampled softmax": {},
}
BATCH = 256
WINDOW = {"exact, float32": 2, "exact, bfloat16": 4, "sampled softmax": 16}  # updates
ALONE, SIDE_BY_SIDE, THREADS = "one process", "two networks side by side", "one process of two threads"
MACHINES = (2, 4, 8, 16, 40)  # the paper had 40 processors
# Seconds of latency and bytes a second: of Myrinet as sold in 2003 (2 Gbit/s), and of Ethernet as it is common now.
ASSUMED = {"Myrinet of 2003": (10e-6, 250e6), "Ethernet of 10 Gbit/s": (50e-6, 1.25e9)}


class Measured(NamedTuple):
    """Seconds per update: of the CPU of one process, those of communication and of the objective, and of the wall."""

    cpu: float
    communication: float
    objective: float
    wall: float


def least(found: list[Measured]) -> Measured:
    """The quickest by CPU time, and the least wall of all."""
    return min(found)._replace(wall=min(one.wall for one in found))


class Clock:
    """Adds up the CPU time of some calls, and of waiting for what they return."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, its time added."""

        def inner(*arguments: Any, **options: Any) -> Any:
            begin = time.process_time()
            result = call(*arguments, **options)
            self.seconds += time.process_time() - begin
            return Waited(self.timed(result.wait)) if hasattr(result, "wait") else result

        return inner


class Waited(NamedTuple):
    """An exchange under way."""

    wait: Callable[[], Any]


def make(network: str, objective: str) -> Trainer:
    """A trainer of that network with that objective."""
    # The same few batches again and again: at a low rate.
    preset = Preset(**presets()["modern"] | {"rate": 1e-3, "batch": BATCH} | OBJECTIVES[objective])
    torch.manual_seed(1)
    model = NeuralLanguageModel(VOCABULARY, **NETWORKS[network])
    counts = 1_000_000 / np.arange(1, VOCABULARY + 1)
    return Trainer(model, preset, make_objective(preset, counts), seed=1, total=10**9)


def measure(trainer: Trainer, shape: dict[str, Any], window: int, windows: int, threads: int, team: Team) -> Measured:
    """The quickest of `windows` windows of so many updates, all processes of `team` together."""
    settle(threads)
    torch.set_float32_matmul_precision(trainer.preset.matmul)
    torch.manual_seed(1)
    batch = [draw(shape, trainer.preset.batch) for _ in range(window)]
    trainer.join(team)
    exchange, costly = Clock(), Clock()
    dist.all_reduce, before = exchange.timed(dist.all_reduce), dist.all_reduce
    trainer.objective = costly.timed(trainer.objective)
    found = []
    for _ in range(windows + 1):
        torch.manual_seed(1 + sum(team.entropy))
        together(team)
        exchange.seconds = costly.seconds = 0.0
        begin, cpu = time.perf_counter(), time.process_time()
        trainer.update(batch)
        used, exchanged = time.process_time() - cpu, exchange.seconds
        together(team)
        spent = (used, exchanged, costly.seconds, time.perf_counter() - begin)
        found.append(Measured(*(value / window for value in spent)))
    dist.all_reduce = before
    return least(found[1:])  # rounded products are compiled in the first


class SideBySide(NamedTuple):
    """`measure` of a network of this process alone, beside others that do so."""

    arguments: tuple[Any, ...]

    def __call__(self, team: Team) -> Measured:
        """The least of this process."""
        team.receive(self.arguments[0].model)
        together(team)
        return measure(*self.arguments, Team())


def together(team: Team) -> None:
    """Wait for all."""
    if team.processes > 1:
        dist.barrier()


def exchange(sizes: list[int], team: Team) -> list[float]:
    """Seconds of an all-reduce of so many numbers each, the least of many."""
    settle(1)
    found = []
    for size in sizes:
        numbers, best = torch.ones(size), math.inf
        for _ in range(200):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(numbers)
            best = min(best, time.perf_counter() - begin)
            numbers.fill_(1.0)
        found.append(best)
    return found


def compare(network: str, objective: str, windows: int) -> dict[str, Measured]:
    """One round of all ways."""

    def job(threads: int) -> tuple[Any, ...]:
        return make(network, objective), NETWORKS[network], WINDOW[objective], windows, threads

    schemes = [scheme for scheme in SCHEMES if scheme != "vocabulary" or objective.startswith("exact")]
    return {
        ALONE: measure(*job(1), Team()),
        **{scheme: run(partial(measure, *job(1)), scheme, 2) for scheme in schemes},
        SIDE_BY_SIDE: run(SideBySide(job(1)), "data", 2),
        THREADS: measure(*job(2), Team()),
    }


def exchanged(scheme: str, trainer: Trainer) -> list[int]:
    """How many numbers each exchange of one update holds."""
    size = trainer.preset.batch
    if scheme == "data":
        return [parameter.numel() for parameter in trainer.model.parameters()]
    return [2 * size, size * trainer.model.O.shape[1]]


def predict(
    scheme: str, one: Measured, sizes: list[int], machines: int, latency: float, bandwidth: float
) -> tuple[float, float]:
    """Seconds of one update on so many machines, and those of them in communication."""
    shared = one.objective if scheme == "vocabulary" else one.cpu
    numbers, share = sum(sizes), (machines - 1) / machines
    seconds = len(sizes) * 2 * math.log2(machines) * latency + 2 * share * 4 * numbers / bandwidth
    return one.cpu - shared + shared / machines + seconds, seconds


Best = dict[tuple[str, str, str], Measured]


def tabulate(best: Best) -> list[dict[str, Any]]:
    """What was measured: printed, and as rows."""
    print("| network | objective | way | CPU ms an update | in communication | speed-up | by the wall |")
    print("|---|---|---|--:|--:|--:|--:|")
    rows = []
    for (network, objective, way), found in best.items():
        one, networks = best[network, objective, ALONE], 2 if way == SIDE_BY_SIDE else 1
        threads = 2 if way == THREADS else 1  # their CPU times are added up
        share = found.communication / found.cpu
        speed_up, by_the_wall = networks * threads * one.cpu / found.cpu, networks * one.wall / found.wall
        said = f"{100 * share:.0f} %" if way in SCHEMES else ""
        print(
            f"| {network} | {objective} | {way} | {1000 * found.cpu:.2f} | {said} "
            f"| x {speed_up:.2f} | x {by_the_wall:.2f} |"
        )
        rows.append(
            {
                "network": network,
                "objective": objective,
                "way": way,
                "cpu_seconds_per_update": found.cpu,
                "communication": share,
                "speed_up": speed_up,
                "examples_per_second_of_the_wall": networks * BATCH / found.wall,
                "speed_up_by_the_wall": by_the_wall,
            }
        )
    return rows


def extrapolate(best: Best, kinds: dict[str, tuple[float, float]]) -> list[dict[str, Any]]:
    """What the model says of M machines: printed, and as rows."""
    print(f"| network | objective | scheme | between machines | {' | '.join(f'M = {m}' for m in MACHINES)} |")
    print(f"|---|---|---|---|{'--:|' * len(MACHINES)}")
    rows = []
    for network, objective, scheme in best:
        if scheme not in ("data", "vocabulary"):
            continue
        one, sizes = best[network, objective, ALONE], exchanged(scheme, make(network, objective))
        for kind, (latency, bandwidth) in kinds.items():
            cells = []
            for machines in MACHINES:
                seconds, communication = predict(scheme, one, sizes, machines, latency, bandwidth)
                speed_up, share = one.cpu / seconds, communication / seconds
                cells.append(f"x {speed_up:.1f}, {100 * share:.0f} %")
                rows.append(
                    {
                        "network": network,
                        "objective": objective,
                        "scheme": scheme,
                        "between": kind,
                        "latency": latency,
                        "bytes_per_second": bandwidth,
                        "machines": machines,
                        "speed_up": speed_up,
                        "communication": share,
                    }
                )
            print(f"| {network} | {objective} | {scheme} | {kind} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=["MLP9", "MLP1"], choices=NETWORKS, metavar="NETWORK")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the best counts (default: 5)")
    parser.add_argument("--windows", type=int, default=20, help="windows of a way in each round (default: 20)")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="folder of the tables")
    options = parser.parse_args()

    best: Best = {}
    for number in range(options.rounds):
        for network in options.networks:
            for objective in OBJECTIVES:
                for way, found in compare(network, objective, options.windows).items():
                    key = (network, objective, way)
                    best[key] = least([best.get(key, found), found])
        print(f"round {number + 1}: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    sizes = [1, 1 << 21]
    small, large = run(partial(exchange, sizes), "data", 2)
    latency, bandwidth = small / 2, 4 * sizes[1] / (large - small)

    print(f"|V| {VOCABULARY:,}, {BATCH} examples per update, two processes of one thread:\n")
    rows = tabulate(best)
    write_csv(options.output / "parallel.csv", list(rows[0]), rows)
    print("\nSpeed-up by the model, and the share of communication:\n")
    rows = extrapolate(best, {"this machine": (latency, bandwidth)} | ASSUMED)
    write_csv(options.output / "parallel-model.csv", list(rows[0]), rows)
    print(
        f"\nTwo processes here: {1e6 * latency:.0f} microseconds, {bandwidth / 1e9:.2f} GB/s. torch "
        f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
