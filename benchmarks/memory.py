"""How much memory do a training step and the scoring of a long text take?

`steps` makes updates of a network of MLP9's shape by exact softmax, each size in a process of its own, and writes the
peak memory beyond that of the parameters, against batch x |V|: plain PyTorch keeps several blocks of that many
numbers; the study keeps one while it is small, and works in parts of it when it is large.

`scoring` scores a text of 10^8 invented tokens with models that were estimated on the first million of it, and writes
the peak memory and the tokens a second of each command.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from common import ROOT, presets, write_csv
from growth import HELD_OUT, ONCE, SHAPE, build_options, network_options, run, write_text

from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.objectives import make_objective
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import settle
from nplm2003.neural.training import Trainer

COLUMNS = ("part", "what", "batch", "vocabulary", "mebibytes", "parameters_mebibytes", "per_second")
Record = dict[str, Any]

BATCHES = (64, 256, 1024, 4096)
VOCABULARIES = (16_383, 125_000, 500_000)
SCORED_V = 1_000  # of the scored text: the memory of its scores does not depend on it, the time of a network does


def step_of(way: str, size: int, batch: int) -> tuple[NeuralLanguageModel, Callable[[], None]]:
    """A network with |V| = `size`, and an update of it with `batch` examples."""
    model = NeuralLanguageModel(size, **SHAPE)
    contexts, targets = torch.randint(size, (batch, SHAPE["order"] - 1)), torch.randint(size, (batch,))
    if way == "plain PyTorch":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model.before_output(contexts) @ model.O.T, targets).backward()
            optimizer.step()

        return model, step
    preset = Preset(**presets()["exact"] | {"rate": 1e-3, "matmul": "highest"})
    trainer = Trainer(model, preset, make_objective(preset, np.ones(size)), seed=1, total=10**9)
    return model, lambda: trainer.descend(contexts, targets)


def measure_step(way: str, size: int, batch: int, results: Any) -> None:
    """Put the MiB of peak memory that three updates need beyond the parameters, those of the parameters, and speed."""
    settle(1)
    model, step = step_of(way, size, batch)
    parameters = sum(value.numel() * value.element_size() for value in model.parameters()) / 2**20
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
    before = memory("VmRSS")
    begin = time.process_time()
    for _ in range(3):
        step()
    seconds = time.process_time() - begin
    results.put((memory("VmHWM") - before, parameters, 3 * batch / seconds))


def memory(field: str) -> float:
    """MiB of memory that this process has now (VmRSS) or had at most (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(f"{field}:"))


def measure_steps() -> list[Record]:
    """Every batch and vocabulary, ours and plain PyTorch where that fits."""
    records: list[Record] = []
    spawn = multiprocessing.get_context("spawn")  # a forked process would begin at the peak of this one
    for way in ("this study", "plain PyTorch"):
        for size in VOCABULARIES:
            for batch in BATCHES:
                if way == "plain PyTorch" and size * batch > 6e8:
                    continue  # 10 GB and more
                results = spawn.Queue()
                process = spawn.Process(target=measure_step, args=(way, size, batch, results))
                process.start()
                more, parameters, speed = results.get()
                process.join()
                record = {"part": "steps", "what": way, "batch": batch, "vocabulary": size, "mebibytes": more}
                records.append(record | {"parameters_mebibytes": parameters, "per_second": speed})
                print(f"{way}, |V| {size:,}, batch {batch:,}: {more:,.0f} MiB + {parameters:,.0f}", flush=True)
    return records


def measure_scoring(tokens: int, lmplz: Path) -> list[Record]:
    """Peak memory and tokens a second of the commands that score."""
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        text, store, kn, tri = home / "text.txt", home / "tokens", home / "kn.arpa", home / "tri.json"
        train = 1_000_000
        write_text(text, train + HELD_OUT + tokens, SCORED_V)
        run("build-tokens", *build_options(text, train, HELD_OUT, store))
        text.unlink()
        one = presets()["modern"] | ONCE
        (home / "presets.json").write_text(json.dumps({"presets": {"one": one}}), encoding="utf-8")
        here = ["--tokens", store]
        run("estimate-kneser-ney", *here, "--order", 5, "--lmplz", lmplz, "--output", kn)
        run("estimate-interpolated", *here, "--output", tri)
        recipe = ["--preset-file", home / "presets.json", "--preset", "one", "--seed", 1]
        run("train", *here, *network_options(SHAPE), *recipe, "--output", home / "net")
        for stage, model in {
            "score-kneser-ney": ["--model-file", kn],
            "score-interpolated": ["--weights", tri],
            "score": ["--network", home / "net"],
        }.items():
            options = [*here, *model, "--model", "m", "--output", home / "scores"]
            seconds, peak = run(stage, *options)
            scored = tokens + train + HELD_OUT
            record = {"part": "scoring", "what": stage, "vocabulary": SCORED_V, "mebibytes": peak}
            records.append(record | {"per_second": scored / seconds})
            print(f"{stage}: {scored / seconds:,.0f} tokens a second of CPU, {peak:,.0f} MiB", flush=True)
    return records


def plot(records: Sequence[Record], path: Path) -> None:
    """Peak memory beyond the parameters against batch x |V|."""
    figure, axes = plt.subplots(figsize=(7, 5))
    for way, marker in (("plain PyTorch", "s"), ("this study", "o")):
        for size in VOCABULARIES:
            points = [r for r in records if (r["what"], r["vocabulary"]) == (way, size)]
            x, y = [r["batch"] * size for r in points], [max(r["mebibytes"], 1) for r in points]
            axes.loglog(x, y, marker=marker, label=f"{way}, |V| = {size:,}")
    axes.set_xlabel("batch x |V|")
    axes.set_ylabel("peak memory of an update beyond the parameters (MiB)")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("steps", "scoring"))
    parser.add_argument("--tokens", type=int, default=10**8, help="tokens to score (default: 10^8)")
    parser.add_argument("--lmplz", type=Path, default=ROOT / "data" / "tools" / "lmplz", help="KenLM's lmplz")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results", help="folder of CSV and plot")
    options = parser.parse_args()
    records = measure_steps() if options.part == "steps" else measure_scoring(options.tokens, options.lmplz)
    write_csv(options.output / f"memory-{options.part}.csv", COLUMNS, records)
    if options.part == "steps":
        plot(records, options.output / "memory-steps.png")


if __name__ == "__main__":
    main()
