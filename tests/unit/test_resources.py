"""What the rules ask a cluster for, against what the committed reference runs needed (timings.csv)."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ("brown", "reuters")
# What a job on a cluster holds beside the command of its rule: two processes of Snakemake.
SNAKEMAKE_MB = 250
RULE = re.compile(r"^ *rule(?: (?P<name>\w+))?:\n(?P<body>.*?)(?=^ *rule(?: \w+)?:|\Z)", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r'name:\n +f"(?P<prefix>\w+)\{')


def rule_bodies() -> dict[str, str]:
    """The text of every rule; rules that a loop makes stand under the first part of their name, such as `plot_`."""
    bodies = {}
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        for rule in RULE.finditer(path.read_text(encoding="utf-8")):
            generated = GENERATED.search(rule["body"])
            bodies[generated["prefix"] if generated else rule["name"]] = rule["body"]
    return bodies


def stated(body: str) -> dict[str, int] | None:
    """Memory (MB, at the first attempt) and run time (minutes) of a rule; None where it states none."""
    found = re.search(r"resources:\n +mem_mb=doubling\((\d+)(?: \* PROCESSES)?\),\n +runtime=(\d+),", body)
    return {"mem_mb": int(found[1]), "runtime": int(found[2])} if found else None


BODIES = rule_bodies()


def test_every_rule_that_computes_states_its_resources_or_is_local() -> None:
    computing = {name: body for name, body in BODIES.items() if "shell:" in body}
    assert len(computing) == 27
    for name, body in computing.items():
        assert ("localrule: True" in body) == (stated(body) is None), name


@pytest.mark.parametrize("study", STUDIES)
def test_the_stated_resources_cover_what_was_measured_with_room_to_spare(study: str) -> None:
    with (ROOT / "results" / "reference" / study / "timings.csv").open(encoding="utf-8", newline="") as stream:
        jobs = list(csv.DictReader(stream))
    assert len(jobs) > 100
    for job in jobs:
        rule = job["rule"] if job["rule"] in BODIES else job["rule"].split("_")[0] + "_"
        asked = stated(BODIES[rule])
        if asked is None:
            continue  # runs where Snakemake runs
        peak, seconds = float(job["max_rss_mb"]), float(job["seconds"])
        assert asked["mem_mb"] >= 1.25 * peak + SNAKEMAKE_MB, job
        assert 60 * asked["runtime"] >= 4 * seconds, job
