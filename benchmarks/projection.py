"""What larger corpora would take: docs/growth.md, from what growth.py and parallel.py measured.

Reads growth-tokens.csv, growth-vocabulary.csv, growth-ap.csv and parallel-model.csv, carries every stage on from its
last two sizes, and writes the page. Nothing of what it projects was run; what is assumed is said there.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from string import Template

from common import ROOT, markdown, read_csv

RESULTS = ROOT / "benchmarks" / "results"
TEMPLATE = ROOT / "benchmarks" / "growth-page.md"
PAGE = ROOT / "docs" / "growth.md"
CORPORA = {"14 million (AP News)": 14e6, "1 billion": 1e9, "100 billion": 1e11}
MEMORY = 24.0  # GiB of the machine
MACHINES = 40  # of the cluster: the paper's

# A GPU by its data sheet (NVIDIA H200: bfloat16 products without sparsity), at its peak. An update of 256 examples is
# so small that starting its kernels is what it takes; about so many there are, at about so many seconds each.
PEAK = 989e12
KERNELS, LAUNCH = 20, 5e-6
BATCH, WORDS, HIDDEN = 256, 16_384, 100  # of MLP9
MEASURED = 16_000  # the |V| nearest to it in growth-vocabulary.csv

Points = list[tuple[float, float]]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a log-log line between the last two points."""
    (x0, y0), (x1, y1) = points[-2:]
    return math.log(y1 / y0) / math.log(x1 / x0)


def seconds_at(points: Points, size: float) -> float:
    """What the log-log line through the last two points says at `size`; with slope 1 where it is less steep.

    Every token must be read, so that no stage can go on taking less time for each than before.
    """
    last, value = points[-1]
    return value * (size / last) ** max(slope(points), 1)


def mebibytes_at(points: Points, size: float) -> float:
    """What the straight line through the last two points says at `size`: a part that stays, and so much for a token."""
    (x0, y0), (x1, y1) = points[-2:]
    return y1 + max(0.0, (y1 - y0) / (x1 - x0)) * (size - x1)


AT = {"seconds": seconds_at, "mebibytes": mebibytes_at}


def points_of(lines: list[dict[str, str]], column: str) -> dict[str, Points]:
    """(size, value) of every stage that was measured at two sizes or more."""
    stages: dict[str, Points] = {}
    for line in lines:
        if line[column]:
            stages.setdefault(line["stage"], []).append((float(line["size"]), float(line[column])))
    return {stage: points for stage, points in stages.items() if len(points) > 1}


def number(value: float) -> str:
    """Two digits that count, with thousands apart."""
    if value >= 100:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:.2g}"


def power(size: float) -> str:
    """10^n."""
    return f"10^{round(math.log10(size))}"


def stages_table(lines: list[dict[str, str]], column: str, unit: str, scale: float) -> str:
    """What was measured at the largest size, the slope, and what the corpora would take."""
    rows = []
    for stage, points in points_of(lines, column).items():
        size, value = points[-1]
        ahead = [number(AT[column](points, target) / scale) for target in CORPORA.values()]
        rows.append([f"`{stage}`", power(size), number(value), f"{slope(points):.2f}", *ahead])
    measured = {"seconds": "s", "mebibytes": "MiB"}[column]
    return markdown(
        ["stage", "measured to", f"there, {measured}", "log-log slope", *(f"{name}, {unit}" for name in CORPORA)], rows
    )


def cluster_speed_up(results: Path) -> float:
    """How much faster than one the machines of the cluster are, by exact softmax split by words."""
    (found,) = (
        float(line["speed_up"])
        for line in read_csv(results / "parallel-model.csv")
        if (line["network"], line["objective"], line["scheme"], line["between"], line["machines"])
        == ("MLP9", "exact, bfloat16", "vocabulary", "Ethernet of 10 Gbit/s", str(MACHINES))
    )
    return found


def training_table(results: Path) -> str:
    """Hours of one epoch of MLP9, by four ways."""
    vocabulary = points_of(read_csv(results / "growth-vocabulary.csv"), "seconds")
    sampled, exact = (dict(vocabulary[f"update, {way} softmax"])[MEASURED] for way in ("sampled", "exact"))
    speed_up = cluster_speed_up(results)
    arithmetic = 6 * WORDS * HIDDEN * BATCH / PEAK
    update = max(KERNELS * LAUNCH, arithmetic)
    ways = {
        "this machine, one core, sampled softmax": lambda tokens: tokens * sampled,
        "this machine, one core, exact softmax": lambda tokens: tokens * exact,
        f"{MACHINES} such cores on 10 Gbit/s, exact softmax split by words": lambda tokens: tokens * exact / speed_up,
        "one GPU, assumed, sampled or exact": lambda tokens: tokens / BATCH * update,
    }
    rows = [[way, *(number(hours(tokens) / 3600) for tokens in CORPORA.values())] for way, hours in ways.items()]
    return markdown(["one epoch of MLP9", *(f"{name}, hours" for name in CORPORA)], rows)


def too_large(lines: list[dict[str, str]]) -> str:
    """The stages that would need more memory than this machine has, by corpus."""
    said = []
    for name, target in CORPORA.items():
        stages = [
            f"`{stage}`"
            for stage, points in points_of(lines, "mebibytes").items()
            if mebibytes_at(points, target) / 1024 > MEMORY
        ]
        said.append(f"- for {name} words by {', '.join(stages) if stages else 'no stage'}.")
    return "\n".join(said)


def page(results: Path) -> str:
    """The whole of docs/growth.md."""
    lines = read_csv(results / "growth-tokens.csv")
    ap = {line["stage"]: line for line in read_csv(results / "growth-ap.csv")}
    sampled, exact = ap["train, modern"], ap["train, exact"]
    longer = 5 * float(sampled["size"]) / float(exact["size"])  # five epochs on all tokens
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        largest=power(max(float(line["size"]) for line in lines if line["seconds"])),
        seconds=stages_table(lines, "seconds", "hours", 3600),
        memory=stages_table(lines, "mebibytes", "GiB", 1024),
        machine=f"{MEMORY:g}",
        too_large=too_large(lines),
        training=training_table(results),
        peak=f"{PEAK / 1e12:.0f}",
        kernels=KERNELS,
        launch=f"{LAUNCH * 1e6:.0f}",
        batch=BATCH,
        words=f"{MEASURED:,}",
        speed_up=number(cluster_speed_up(results)),
        ap=f"{float(sampled['seconds']) / 60:.0f}",
        ap_exact=number(float(exact["seconds"]) * longer / 3600),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page (Markdown)")
    options = parser.parse_args()
    options.output.write_text(page(options.results), encoding="utf-8")
    print(options.output)


if __name__ == "__main__":
    main()
