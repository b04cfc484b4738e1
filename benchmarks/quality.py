"""What sampled softmax costs in perplexity: the Brown table by exact softmax beside the reference, in Markdown.

Reads results/exact-softmax-table1.csv (config/exact.yaml, one seed) and results/reference/brown/table1.csv (the preset
`modern`, means over its seeds), and prints two tables of README.md: networks, and their mixtures with n-grams; and a
third one, of results/penalty.csv (penalty.py).
"""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXACT = ROOT / "benchmarks" / "results" / "exact-softmax-table1.csv"
PENALTY = ROOT / "benchmarks" / "results" / "penalty.csv"
MODERN = ROOT / "results" / "reference" / "brown" / "table1.csv"


def read(path: Path) -> dict[str, dict[str, str]]:
    """The networks by the preset `modern` of a main table, and their mixtures, by name."""
    with path.open(encoding="utf-8", newline="") as stream:
        return {line["model"]: line for line in csv.DictReader(stream) if line["preset"] == "modern"}


def percent(ours: str, theirs: str) -> str:
    """How far `ours` lies above (+) or below (−) `theirs`, in percent."""
    return f"{100 * (float(ours) / float(theirs) - 1):+.2f}".replace("-", "−")


def table(mixtures: bool) -> str:
    """The rows that both studies have: networks alone, or mixtures."""
    exact, modern = read(EXACT), read(MODERN)
    lines = [f"| {'mixture' if mixtures else 'network'} | exact, valid / test | modern, valid / test | difference |"]
    lines.append("|---|--:|--:|--:|")
    for model, theirs in exact.items():
        if (theirs["mix"] == "yes") != mixtures or model not in modern:
            continue
        ours = modern[model]
        numbers = [f"{float(line['valid']):.1f} / {float(line['test']):.1f}" for line in (theirs, ours)]
        gaps = [percent(ours[split], theirs[split]) for split in ("valid", "test")]
        lines.append(f"| {model} | {numbers[0]} | {numbers[1]} | {gaps[0]} / {gaps[1]} % |")
    return "\n".join(lines)


def penalty_table() -> str:
    """Validation against exact softmax, network / mixture with the trigram, by the weight of the penalty on log Z."""
    with PENALTY.open(encoding="utf-8", newline="") as stream:
        records = list(csv.DictReader(stream))
    gaps = {
        (record["network"], float(record["self_normalisation"])): " / ".join(
            f"{float(record[f'{part}_percent']):+.2f}".replace("-", "−") for part in ("valid", "mixture")
        )
        for record in records
    }
    networks, alphas = (list(dict.fromkeys(key[place] for key in gaps)) for place in (0, 1))
    lines = [f"| alpha | {' | '.join(f'{network} alone / in the mixture, %' for network in networks)} |"]
    lines.append(f"|--:|{'--:|' * len(networks)}")
    lines += [f"| {alpha:g} | {' | '.join(gaps[network, alpha] for network in networks)} |" for alpha in alphas]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(mixtures=False), table(mixtures=True), penalty_table(), sep="\n\n")
