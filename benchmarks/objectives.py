"""Examples per second of every way to train, against what the machine's matrix products allow.

Each network of Table 1 takes steps on random words with the vocabulary of Brown: a plain PyTorch loop (cross-entropy,
dense gradients), exact softmax with float32 and with bfloat16 products, and sampled softmax. The ceiling is the best
measured rate of the products of one step, in float32, over the 6 |V| (h + direct (n-1) m) multiplications and additions
that an example costs. CPU time of one thread, the best of several rounds, all ways in turn in every round, so that the
ratios hold on a machine that does other work.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))  # also runs in a clone that is not installed

from nplm2003.neural.model import NeuralLanguageModel  # noqa: E402
from nplm2003.neural.objectives import make_objective  # noqa: E402
from nplm2003.neural.preset import Preset  # noqa: E402
from nplm2003.neural.scoring import settle  # noqa: E402
from nplm2003.neural.training import Trainer  # noqa: E402

VOCABULARY = 16_383
NETWORKS: dict[str, dict[str, Any]] = {
    "MLP1": {"order": 5, "hidden": 50, "features": 60, "direct": True},
    "MLP3": {"order": 5, "hidden": 0, "features": 60, "direct": True},
    "MLP5": {"order": 5, "hidden": 50, "features": 30, "direct": True},
    "MLP7": {"order": 3, "hidden": 50, "features": 30, "direct": True},
    "MLP9": {"order": 5, "hidden": 100, "features": 30, "direct": False},
    "AP": {"order": 6, "hidden": 60, "features": 100, "direct": True},
}
EXACT = {"objective": "softmax", "noise_words": 0}
WAYS: dict[str, dict[str, Any]] = {
    "exact, float32": EXACT | {"matmul": "highest"},
    "exact, bfloat16": EXACT | {"matmul": "medium"},
    "sampled, 100 words": {"noise_words": 100},
    "sampled, 400 words": {"noise_words": 400},
    "sampled, 800 words": {"noise_words": 800},
}


def seconds(step: Callable[[], None], repeat: int) -> float:
    """CPU seconds of one call, the mean over `repeat`."""
    begin = time.process_time()
    for _ in range(repeat):
        step()
    return (time.process_time() - begin) / repeat


def ours(shape: dict[str, Any], preset: Preset, batch: tuple[torch.Tensor, torch.Tensor]) -> Callable[[], None]:
    """One update as training makes it, without Lightning."""
    counts = 1_000_000 / np.arange(1, VOCABULARY + 1)
    model = NeuralLanguageModel(VOCABULARY, **shape)
    trainer = Trainer(model, preset, make_objective(preset, counts), seed=1, total=10**9)

    def step() -> None:
        torch.set_float32_matmul_precision(preset.matmul)
        trainer.descend(*batch)

    return step


def plain(shape: dict[str, Any], batch: tuple[torch.Tensor, torch.Tensor]) -> Callable[[], None]:
    """What one writes first: logits, cross-entropy, dense gradients by autograd."""
    model = NeuralLanguageModel(VOCABULARY, **shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    contexts, targets = batch

    def step() -> None:
        torch.set_float32_matmul_precision("highest")
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model.before_output(contexts) @ model.O.T, targets).backward()
        optimizer.step()

    return step


def products(shape: dict[str, Any], size: int) -> Callable[[], None]:
    """The three products of one step with all factors side by side: forward, by the factors, by the weights."""
    width = shape["hidden"] + shape["direct"] * (shape["order"] - 1) * shape["features"]
    weights, factors, y = torch.randn(VOCABULARY, width), torch.randn(size, width), torch.randn(VOCABULARY, size)
    outputs = torch.empty(VOCABULARY, size), torch.empty(width, size), torch.empty(VOCABULARY, width)

    def step() -> None:
        torch.set_float32_matmul_precision("highest")
        torch.mm(weights, factors.T, out=outputs[0])
        torch.mm(weights.T, y, out=outputs[1])
        torch.mm(y, factors, out=outputs[2])

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the best counts (default: 5)")
    parser.add_argument("--batch", type=int, default=128, help="examples per update (default: 128)")
    options = parser.parse_args()
    if unknown := [name for name in options.networks if name not in NETWORKS]:
        parser.error(f"no network {unknown[0]}: name some of {', '.join(NETWORKS)}")

    settle(1)
    modern = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))["presets"]["modern"]
    print(f"|V| {VOCABULARY:,}, {options.batch} examples per update, examples per second of one thread\n")
    print(f"| network | float32 products alone | plain PyTorch | {' | '.join(WAYS)} |")
    print(f"|---|{'--:|' * (len(WAYS) + 2)}")
    for name in options.networks:
        shape = NETWORKS[name]
        torch.manual_seed(1)
        # Words as frequent as in a text, so that sparse updates touch as many rows as there.
        weights = 1 / torch.arange(1, VOCABULARY + 1)
        words = torch.multinomial(weights, options.batch * shape["order"], replacement=True)
        drawn = words.view(options.batch, -1)
        batch = drawn[:, 1:].contiguous(), drawn[:, 0].contiguous()
        steps = {"products": products(shape, options.batch), "plain": plain(shape, batch)}
        steps |= {way: ours(shape, Preset(**modern | change), batch) for way, change in WAYS.items()}
        best = dict.fromkeys(steps, float("inf"))
        for _ in range(options.rounds):
            for way, step in steps.items():
                step()
                best[way] = min(best[way], seconds(step, 5))
        rates = {way: options.batch / value for way, value in best.items()}
        cells = [f"{rates['products']:,.0f}"]
        cells += [f"{rates[way]:,.0f} (x {rates[way] / rates['plain']:.1f})" for way in steps if way != "products"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\ntorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)


if __name__ == "__main__":
    main()
