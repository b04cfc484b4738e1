"""What sampled softmax costs in perplexity: the Brown table by exact softmax beside the reference, in Markdown.

Reads results/exact-softmax-table1.csv (config/exact.yaml, one seed) and results/reference/brown/table1.csv (the preset
`modern`, means over its seeds), and prints two tables of README.md: networks, and their mixtures with n-grams; and a
third one, of results/penalty.csv (penalty.py).
"""

from __future__ import annotations

from pathlib import Path

from common import ROOT, markdown, read_csv

from nplm2003.formats import Column
from nplm2003.outcomes import gap_percent

EXACT = ROOT / "benchmarks" / "results" / "exact-softmax-table1.csv"
PENALTY = ROOT / "benchmarks" / "results" / "penalty.csv"
MODERN = ROOT / "results" / "reference" / "brown" / "table1.csv"
GAP = Column("gap", "gap", digits=2, signed=True)


def read(path: Path) -> dict[str, dict[str, str]]:
    """The networks by the preset `modern` of a main table, and their mixtures, by name."""
    return {line["model"]: line for line in read_csv(path) if line["preset"] == "modern"}


def signed(percent: float | None) -> str:
    """A percentage with its sign."""
    return GAP.text({"gap": percent})


def table(mixtures: bool) -> str:
    """The rows that both studies have: networks alone, or mixtures."""
    exact, modern = read(EXACT), read(MODERN)
    rows = []
    for model, theirs in exact.items():
        if (theirs["mix"] == "yes") != mixtures or model not in modern:
            continue
        ours = modern[model]
        numbers = [f"{float(line['valid']):.1f} / {float(line['test']):.1f}" for line in (theirs, ours)]
        gaps = [signed(gap_percent(float(ours[split]), float(theirs[split]))) for split in ("valid", "test")]
        rows.append([model, *numbers, f"{gaps[0]} / {gaps[1]} %"])
    first = "mixture" if mixtures else "network"
    return markdown([first, "exact, valid / test", "modern, valid / test", "difference"], rows)


def penalty_table() -> str:
    """Validation against exact softmax, network / mixture with the trigram, by the weight of the penalty on log Z."""
    gaps = {
        (record["network"], float(record["self_normalisation"])): " / ".join(
            signed(float(record[f"{part}_percent"])) for part in ("valid", "mixture")
        )
        for record in read_csv(PENALTY)
    }
    networks, alphas = (list(dict.fromkeys(key[place] for key in gaps)) for place in (0, 1))
    rows = [[f"{alpha:g}", *(gaps[network, alpha] for network in networks)] for alpha in alphas]
    return markdown(["alpha", *(f"{network} alone / in the mixture, %" for network in networks)], rows)


if __name__ == "__main__":
    print(table(mixtures=False), table(mixtures=True), penalty_table(), sep="\n\n")
