"""How fast are a training step and scoring, and what do the machine's products allow?

Each network of Table 1 and that of AP News takes steps on random words, as frequent as in a text, with the vocabulary
of Brown: a plain PyTorch loop (cross-entropy, dense gradients by autograd), and every objective of the study. The
ceiling is the measured rate of the three products of an exact step alone: 6 |V| K multiplications and additions an
example. Scoring is compared with its one product, 2 |V| K, in the best of several forms. Times are of one thread, the
best of several rounds, all ways in turn in every round, so that ratios hold on a machine that does other work.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common import ROOT, presets

sys.path.insert(0, str(ROOT / "src"))  # also runs in a clone that is not installed

from nplm2003.neural.model import NeuralLanguageModel  # noqa: E402
from nplm2003.neural.objectives import Objective, make_objective  # noqa: E402
from nplm2003.neural.outputs import BLOCK  # noqa: E402
from nplm2003.neural.preset import Preset  # noqa: E402
from nplm2003.neural.scoring import SCORING_BATCH, log_probabilities, settle  # noqa: E402
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
EXACT = {"objective": "softmax", "noise_words": 0, "noise_power": 0.0, "self_normalisation": 0.0}
WAYS: dict[str, dict[str, Any]] = {
    "exact, float32": EXACT | {"matmul": "highest"},
    "exact, bfloat16": EXACT | {"matmul": "medium"},
    "sampled softmax": {},
    "NCE": {"objective": "noise-contrastive", "self_normalisation": 0.0},
    "NCE, 100 words": {"objective": "noise-contrastive", "self_normalisation": 0.0, "noise_words": 100},
}
# Of the product of scoring, tokens and words at a time: what is the faster one depends on the shape.
FORMS = ((512, VOCABULARY), (512, 1024), (SCORING_BATCH, BLOCK), (SCORING_BATCH, 1024))
PRECISIONS = {"float32": "highest", "bfloat16": "medium"}


def seconds(step: Callable[[], None], repeat: int) -> float:
    """CPU seconds of one call, the mean over `repeat`."""
    begin = time.process_time()
    for _ in range(repeat):
        step()
    return (time.process_time() - begin) / repeat


def ours(
    shape: dict[str, Any],
    preset: Preset,
    batch: tuple[torch.Tensor, torch.Tensor],
    objective: Objective | None = None,
) -> Callable[[], None]:
    """One update as training makes it, without Lightning."""
    counts = 1_000_000 / np.arange(1, VOCABULARY + 1)
    model = NeuralLanguageModel(VOCABULARY, **shape)
    trainer = Trainer(model, preset, objective or make_objective(preset, counts), seed=1, total=10**9)

    def step() -> None:
        torch.set_float32_matmul_precision(preset.matmul)
        trainer.descend(*batch)

    return step


def nothing(O: torch.Tensor, z: torch.Tensor, targets: torch.Tensor, rate: float) -> tuple[float, torch.Tensor]:
    """No output layer: what is left of an update is the work of C, H, d and dropout."""
    return 0.0, torch.zeros_like(z)


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


def products(shape: dict[str, Any], size: int, matmul: str) -> Callable[[], None]:
    """The three products of one exact step: y, and the gradients by z and by O."""
    K = NeuralLanguageModel(VOCABULARY, **shape).O.shape[1]
    O, z, y = torch.randn(VOCABULARY, K), torch.randn(size, K), torch.randn(VOCABULARY, size)
    factors = ((O, z.T), (y.T, O), (y, z))
    results = [torch.empty(len(left), right.shape[1]) for left, right in factors]

    def step() -> None:
        torch.set_float32_matmul_precision(matmul)
        for (left, right), result in zip(factors, results, strict=True):
            torch.mm(left, right, out=result)

    return step


def logits(shape: dict[str, Any], tokens: int, words: int, matmul: str) -> Callable[[], None]:
    """y of SCORING_BATCH tokens, `tokens` and `words` at a time in the same memory, and nothing done with it."""
    K = NeuralLanguageModel(VOCABULARY, **shape).O.shape[1]
    O, z, kept = torch.randn(VOCABULARY, K), torch.randn(SCORING_BATCH, K), torch.empty(tokens * words)

    def step() -> None:
        torch.set_float32_matmul_precision(matmul)
        for part in z.split(tokens):
            for rows in O.split(words):
                torch.mm(part, rows.T, out=kept[: len(part) * len(rows)].view(len(part), len(rows)))

    return step


def scoring(shape: dict[str, Any], batch: tuple[torch.Tensor, torch.Tensor], matmul: str) -> Callable[[], None]:
    """Scores of one batch."""
    model = NeuralLanguageModel(VOCABULARY, **shape)

    def step() -> None:
        torch.set_float32_matmul_precision(matmul)
        log_probabilities(model, *batch)

    return step


def draw(shape: dict[str, Any], size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts and targets as frequent as in a text, so that sampled updates touch as many rows as there."""
    weights = 1 / torch.arange(1, VOCABULARY + 1)
    drawn = torch.multinomial(weights, size * shape["order"], replacement=True).view(size, -1)
    return drawn[:, 1:].contiguous(), drawn[:, 0].contiguous()


def rates(steps: dict[Any, Callable[[], None]], size: int, rounds: int) -> dict[Any, float]:
    """Examples per second of each step."""
    best = dict.fromkeys(steps, float("inf"))
    for step in steps.values():  # rounded products are compiled for every new shape, as the number of noise words is
        begin = time.process_time()
        while time.process_time() - begin < 0.5:
            step()
    for _ in range(rounds):
        for way, step in steps.items():
            step()
            best[way] = min(best[way], seconds(step, 5))
    return {way: size / value for way, value in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the best counts (default: 5)")
    options = parser.parse_args()
    if unknown := [name for name in options.networks if name not in NETWORKS]:
        parser.error(f"no network {unknown[0]}: name some of {', '.join(NETWORKS)}")

    settle(1)
    torch.manual_seed(1)
    modern = presets()["modern"] | {"rate": 1e-3}  # the same few batches again and again
    size = modern["batch"]
    print(f"|V| {VOCABULARY:,}, examples per second of one thread\n\nTraining, {size} examples per update:\n")
    ways = [f"{way} (of the {kind} products)" for way, kind in zip(WAYS, PRECISIONS, strict=False)] + list(WAYS)[2:]
    below = "all but the output layer, % of an update (first three)"
    print(f"| network | float32 products | bfloat16 products | plain PyTorch | {' | '.join(ways)} | {below} |")
    print(f"|---|{'--:|' * (len(WAYS) + 4)}")
    for name in options.networks:
        shape, batch = NETWORKS[name], draw(NETWORKS[name], size)
        steps = {kind: products(shape, size, matmul) for kind, matmul in PRECISIONS.items()}
        steps["plain"] = plain(shape, batch)
        steps |= {way: ours(shape, Preset(**modern | change), batch) for way, change in WAYS.items()}
        steps["below"] = ours(shape, Preset(**modern), batch, nothing)
        found = rates(steps, size, options.rounds)
        cells = [f"{found[way]:,.0f}" for way in (*PRECISIONS, "plain")]
        for way in WAYS:
            kind = way.removeprefix("exact, ")
            share = f" ({100 * found[way] / found[kind]:.0f} %)" if kind in found and kind in PRECISIONS else ""
            cells.append(f"{found[way]:,.0f}{share}, x {found[way] / found['plain']:.1f}")
        cells.append(" / ".join(f"{100 * found[way] / found['below']:.1f}" for way in list(WAYS)[:3]))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    print(f"\nScoring, {SCORING_BATCH:,} tokens at a time:\n")
    print("| network | float32 product | scores (of the product) | bfloat16 product | scores (of the product) |")
    print("|---|--:|--:|--:|--:|")
    for name in options.networks:
        shape, batch = NETWORKS[name], draw(NETWORKS[name], SCORING_BATCH)
        steps = {}
        for kind, matmul in PRECISIONS.items():
            steps |= {(kind, form): logits(shape, *form, matmul) for form in FORMS}
            steps[kind, "scores"] = scoring(shape, batch, matmul)
        found = rates(steps, SCORING_BATCH, options.rounds)
        cells = []
        for kind in PRECISIONS:
            ceiling, ours_of = max(found[kind, form] for form in FORMS), found[kind, "scores"]
            cells += [f"{ceiling:,.0f}", f"{ours_of:,.0f} ({100 * ours_of / ceiling:.0f} %)"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\ntorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)


if __name__ == "__main__":
    main()
