"""How time and memory grow with the corpus and with the vocabulary.

`tokens` runs the stages of the study as commands, on invented text of 10^5 tokens and more, and writes CPU seconds
and peak memory of each (of Python; lmplz has what it is given). The text is a random source of known entropy, so that
the perplexity of every model stands beside the lowest that any model can reach: word i of V = 16,384 follows word v
with the probability of rank (i - s(v)) mod V under Zipf's law, where s(v) is one of 64 shifts, chosen by v mod 64.
Every context has the same probabilities in another order, so that the entropy is that of Zipf's law, whatever the
order of the model.

`vocabulary` times one update of a network of MLP9's shape, and one batch of scores, for |V| from 1,000 to 1,000,000.

`ap` trains the network of AP News on as many tokens of such a text as the paper had, with |V| = 17,964, in wall
seconds.

The first two write a CSV and a log-log plot with the slopes of the last points. projection.py writes docs/growth.md
from these: what each stage would take for larger corpora.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from common import ROOT, presets, write_csv
from projection import slope

sys.path.insert(0, str(ROOT / "src"))  # also runs in a clone that is not installed

from nplm2003.neural.model import NeuralLanguageModel  # noqa: E402
from nplm2003.neural.objectives import make_objective  # noqa: E402
from nplm2003.neural.outputs import make_output  # noqa: E402
from nplm2003.neural.preset import Preset  # noqa: E402
from nplm2003.neural.scoring import SCORING_BATCH, log_probabilities, settle  # noqa: E402
from nplm2003.neural.training import Trainer  # noqa: E402
from nplm2003.plan import options as options_of  # noqa: E402

SHIFTS = 64
V = {"tokens": 16_384, "ap": 17_963}  # of the source, <rare> left out
HELD_OUT = 20_000  # tokens of valid and of test each
AP_TOKENS, AP_HELD_OUT = 14_000_000, 960_000  # about those of the paper
ONCE = {"epochs_direct": 1, "epochs_without_direct": 1}
SHAPE = {"order": 5, "hidden": 100, "features": 30, "direct": False}
COLUMNS = ("part", "stage", "size", "seconds", "mebibytes", "perplexity")
Record = dict[str, Any]


def zipf(size: int) -> np.ndarray:
    """The probability of each of `size` ranks."""
    p = 1 / np.arange(1, size + 1)
    return p / p.sum()


def floor(size: int) -> float:
    """The perplexity of the source itself."""
    return float(np.exp(-(zipf(size) * np.log(zipf(size))).sum()))


def write_text(path: Path, tokens: int, size: int, seed: int = 0) -> None:
    """`tokens` words of the source with a vocabulary of `size`, 20 to a line."""
    generator = np.random.default_rng(seed)
    cumulative = np.cumsum(zipf(size))
    previous = 0
    with path.open("w", encoding="utf-8") as stream:
        for begin in range(0, tokens, 1_000_000):
            ranks = np.searchsorted(cumulative, generator.random(min(1_000_000, tokens - begin)) * cumulative[-1])
            words = []
            for rank in ranks.tolist():
                previous = (rank + (previous % SHIFTS) * (size // SHIFTS)) % size
                words.append(f"w{previous}")
            stream.writelines(" ".join(words[i : i + 20]) + "\n" for i in range(0, len(words), 20))


def build_options(text: Path, train: int, valid: int, output: Path) -> list[Any]:
    """What `build-tokens` is told: every word of the text stays."""
    corpus = ["--corpus", "g", "--source", "text", "--file", text, "--train", train, "--valid", valid]
    policy = ["--policy", "all", "--count-on", "stream", "--cut", "frequency", "--size", 0]
    return [*corpus, *policy, "--output", output]


def run(*arguments: str | Path) -> tuple[float, float]:
    """CPU seconds and peak memory (MiB) of a command of the package, its own processes included."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "nplm2003", *map(str, arguments)], env=environment, stderr=said
        )
        peak = 0.0
        # The kernel's own record of the peak: that of wait4 would begin at the size of this process.
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            for line in Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines():
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]) / 1024)
            time.sleep(0.02)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            said.seek(0)
            sys.exit(f"{' '.join(map(str, arguments))}: {(said.read().splitlines() or [str(status)])[-1]}")
    return usage.ru_utime + usage.ru_stime, peak


def measure_tokens(sizes: Sequence[int], train_up_to: int, score_up_to: int, lmplz: Path, classes: int) -> list[Record]:
    """Seconds and memory of every stage for each number of training tokens; perplexity of valid as trained, of test as
    scored."""
    last = {"train": train_up_to, "learn-classes": train_up_to, "score": score_up_to}
    records: list[Record] = []
    preset = presets()["modern"] | ONCE
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            tokens, text = home / "tokens", home / "text.txt"
            write_text(text, size + 2 * HELD_OUT, V["tokens"])
            (home / "presets.json").write_text(json.dumps({"presets": {"one": preset}}), encoding="utf-8")
            here, kn, tri = ["--tokens", tokens], home / "kn.arpa", home / "tri.json"
            stages: dict[str, list[Any]] = {
                "build-tokens": build_options(text, size, HELD_OUT, tokens),
                "estimate-kneser-ney": [*here, "--order", 5, "--lmplz", lmplz, "--output", kn],
                "score-kneser-ney": [*here, "--model-file", kn, "--model", "kn", "--output", home / "kn"],
                "estimate-interpolated": [*here, "--output", tri],
                "score-interpolated": [*here, "--weights", tri, "--model", "tri", "--output", home / "tri"],
                "learn-classes": [*here, "--classes", classes, "--output", home / "classes.tsv"],
                "train": [*here, *network_options(SHAPE), "--preset-file", home / "presets.json", "--preset", "one"]
                + ["--seed", 1, "--output", home / "net"],
                "score": [*here, "--network", home / "net", "--model", "net", "--output", home / "net" / "scores"],
            }
            for stage, arguments in stages.items():
                if size > last.get(stage, size):
                    continue
                seconds, memory = run(stage, *arguments)
                record = {"part": "tokens", "stage": stage, "size": size, "seconds": seconds, "mebibytes": memory}
                if stage.startswith("score"):
                    folder = arguments[arguments.index("--output") + 1]
                    scores = np.load(folder / "test.npy").astype(np.float64)
                    record["perplexity"] = float(np.exp(-scores.mean()))
                elif stage == "train":
                    summary = json.loads((home / "net" / "training.json").read_text(encoding="utf-8"))
                    record["perplexity"] = summary["valid_perplexity"]
                records.append(record)
                print(f"{stage} {size:,}: {seconds:.1f} s, {memory:.0f} MiB {record.get('perplexity', '')}", flush=True)
    lowest = {"part": "tokens", "stage": "the source itself", "size": V["tokens"], "perplexity": floor(V["tokens"])}
    records.append(lowest)
    return records


def network_options(shape: dict[str, Any]) -> list[str]:
    """The shape of a network, for `train`."""
    return shlex.split(options_of(**shape))


def measure_ap(tokens: int) -> list[Record]:
    """The network of AP News, five epochs on as many tokens as there; and one epoch on a share, sampled and exact."""
    known = presets()
    ways = {"modern": known["modern"], "sampled": known["modern"] | ONCE, "exact": known["exact"] | ONCE}
    shape = ["--order", 6, "--hidden", 60, "--features", 100, "--direct"]
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        all_of_it, share, text = home / "tokens", home / "share", home / "text.txt"
        write_text(text, tokens + 2 * AP_HELD_OUT, V["ap"])
        (home / "presets.json").write_text(json.dumps({"presets": ways}), encoding="utf-8")
        run("build-tokens", *build_options(text, tokens, AP_HELD_OUT, all_of_it))
        run("cut-tokens", "--tokens", all_of_it, "--share", "1/14", "--output", share)
        for preset, where in (("sampled", share), ("exact", share), ("modern", all_of_it)):
            output = home / preset
            options = ["--preset-file", home / "presets.json", "--preset", preset, "--seed", 1, "--output", output]
            begin = time.perf_counter()
            _, memory = run("train", "--tokens", where, *shape, *options)
            summary = json.loads((output / "training.json").read_text(encoding="utf-8"))
            record = {"part": "ap", "stage": f"train, {preset}", "size": tokens if where == all_of_it else tokens // 14}
            record |= {"seconds": time.perf_counter() - begin, "mebibytes": memory}
            records.append(record | {"perplexity": summary["valid_perplexity"]})
            print(records[-1], flush=True)
    return [*records, {"part": "ap", "stage": "the source itself", "size": V["ap"], "perplexity": floor(V["ap"])}]


def measure_vocabulary(sizes: Sequence[int], rounds: int) -> list[Record]:
    """Seconds of one update per example, and of the score of one token, for each |V| and every way."""
    settle(1)
    modern = presets()["modern"] | {"rate": 1e-3}  # the same few batches again and again
    records: list[Record] = []
    for size in sizes:
        counts = 1e7 / np.arange(1, size + 1)
        classes = np.minimum((np.cumsum(np.sqrt(counts)) / np.sqrt(counts).sum() * size**0.5).astype(int), size - 1)
        classes = np.unique(classes, return_inverse=True)[1]
        exact = {"objective": "softmax", "noise_words": 0, "noise_power": 0.0, "self_normalisation": 0.0}
        ways: dict[str, tuple[str, dict[str, Any]]] = {
            "exact softmax": ("words", exact),
            "sampled softmax": ("words", {}),
            "NCE": ("words", {"objective": "noise-contrastive", "self_normalisation": 0.0}),
            "word classes": ("classes", exact),
            "adaptive softmax": ("adaptive", exact),
            "tree": ("tree", exact),
        }
        for way, (name, change) in ways.items():
            output = make_output(name, size, classes if name in ("classes", "tree") else None, counts)
            model = NeuralLanguageModel(size, **SHAPE, output=output)
            preset = Preset(**modern | change)
            trainer = Trainer(model, preset, make_objective(preset, counts, output.descend), seed=1, total=10**9)
            torch.set_float32_matmul_precision(preset.matmul)
            batches = itertools.cycle([draw(counts, preset.batch) for _ in range(8)])
            update = timed(partial(_on_next, trainer.descend, batches), rounds) / preset.batch
            records.append({"part": "vocabulary", "stage": f"update, {way}", "size": size, "seconds": update})
            if change is exact:
                batches = itertools.cycle([draw(counts, SCORING_BATCH) for _ in range(8)])
                seconds = timed(partial(_on_next, partial(log_probabilities, model), batches), rounds) / SCORING_BATCH
                kind = {"exact softmax": "softmax"}.get(way, way)
                records.append({"part": "vocabulary", "stage": f"score, {kind}", "size": size, "seconds": seconds})
            print(f"|V| {size:,} {way}: {1 / update:,.0f} examples/s", flush=True)
    return records


def _on_next(step: Callable[..., Any], batches: Iterator[tuple[torch.Tensor, torch.Tensor]]) -> None:
    step(*next(batches))


def draw(counts: np.ndarray, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of contexts and targets as frequent as in a text."""
    words = np.searchsorted(np.cumsum(counts), np.random.rand(size, SHAPE["order"]) * counts.sum())
    drawn = torch.from_numpy(np.minimum(words, len(counts) - 1))
    return drawn[:, 1:].contiguous(), drawn[:, 0].contiguous()


def timed(step: Callable[[], Any], rounds: int) -> float:
    """Seconds of one call: the best of several, after others that are not counted.

    Rounded products are compiled for every new shape, and the number of distinct noise words is another each time.
    """
    begin = time.perf_counter()
    for _ in range(100):
        step()
        if time.perf_counter() - begin > 2:
            break
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return min(times)


def plot(records: Sequence[Record], value: str, label: str, path: Path) -> None:
    """Log-log lines of `value` against the size, one for each stage, with the slope of the last two points."""
    figure, axes = plt.subplots(figsize=(7, 5))
    for stage in dict.fromkeys(record["stage"] for record in records):
        points = [(r["size"], r[value]) for r in records if r["stage"] == stage and r.get(value) is not None]
        if len(points) > 1:
            axes.loglog(*zip(*points, strict=True), marker="o", label=f"{stage} (slope {slope(points):.2f})")
    axes.set_xlabel("training tokens" if records[0]["part"] == "tokens" else "|V|")
    axes.set_ylabel(label)
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("tokens", "vocabulary", "ap"))
    parser.add_argument("--sizes", type=int, nargs="+", help="tokens (default: 10^5 to 10^7) or |V| (default: to 10^6)")
    parser.add_argument("--train-up-to", type=int, default=10**7, help="the most tokens a network is trained on")
    parser.add_argument("--score-up-to", type=int, default=10**7, help="the most that a network scores")
    parser.add_argument("--classes", type=int, default=100, help="word classes (default: 100)")
    parser.add_argument("--lmplz", type=Path, default=ROOT / "data" / "tools" / "lmplz", help="KenLM's lmplz")
    parser.add_argument("--rounds", type=int, default=7, help="repetitions of which the best counts (default: 7)")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results", help="folder of CSV and plots")
    options = parser.parse_args()
    if options.part == "tokens":
        sizes = options.sizes or [10**5, 10**6, 10**7]
        records = measure_tokens(sizes, options.train_up_to, options.score_up_to, options.lmplz, options.classes)
    elif options.part == "ap":
        records = measure_ap((options.sizes or [AP_TOKENS])[0])
    else:
        sizes = options.sizes or [1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000]
        records = measure_vocabulary(sizes, options.rounds)
    write_csv(options.output / f"growth-{options.part}.csv", COLUMNS, records)
    if options.part == "ap":
        return
    label = "CPU seconds" if options.part == "tokens" else "seconds"
    plot(records, "seconds", label, options.output / f"growth-{options.part}-seconds.png")
    if options.part == "tokens":
        plot(records, "mebibytes", "peak memory (MiB)", options.output / "growth-tokens-memory.png")


if __name__ == "__main__":
    main()
