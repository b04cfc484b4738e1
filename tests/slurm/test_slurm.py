"""The demo on a real Slurm: `scripts/slurm-one-node up` starts one on Debian, `.ci/run` does."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_study import REPOSITORY, Clone, make_clone, place_lmplz

# Figures and the report would add half a minute and no number.
DEMO = ("tables", "--configfile", "config/demo.yaml")
SLURM = ("--profile", "profiles/slurm")
RESULTS = Path("results/demo")
# Every number of the study follows from these.
NUMBERS = (
    "*.npy",
    "*.arpa",
    "*.pt",
    "vocabulary.tsv",
    "classes.tsv",
    "weights.json",
    "evaluation.json",
    "uncertainty.json",
)
# Columns of tables that tell one run from another.
VOLATILE = ("seconds", "commit")  # and all that begin so


def slurm_problem() -> str | None:
    """Why no test can run here; None where a Slurm answers."""
    if not shutil.which("sbatch"):
        return "there is no sbatch"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "snakemake-executor-plugin-slurm is not installed (pip install -e '.[cluster]')"
    try:
        ping = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return "slurmctld does not answer"
    return None if " is UP" in ping.stdout else "slurmctld does not answer"


PROBLEM = slurm_problem()
pytestmark = pytest.mark.skipif(
    PROBLEM is not None, reason=f"NO SLURM TEST RAN: {PROBLEM}; start a Slurm with scripts/slurm-one-node up"
)


@pytest.fixture(scope="module")
def text(invented_text: Callable[..., str]) -> str:
    return invented_text(320)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, text: str) -> Path:
    """Results of the demo, run on this machine: those of the checkout if they are whole and of this code."""
    checkout = Clone(REPOSITORY)
    if (REPOSITORY / RESULTS).is_dir():
        process = checkout.start(*DEMO, "--dry-run", "--nolock")
        output, _ = process.communicate(timeout=600)
        if "Nothing to be done" in output:
            return REPOSITORY / RESULTS
    clone = make_clone(tmp_path_factory.mktemp("local") / "a clone", text)
    place_lmplz(clone)
    clone.snakemake(*DEMO)
    return clone.folder / RESULTS


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory, text: str) -> tuple[Clone, str]:
    """A clone in which Slurm has run the demo, and what Snakemake said."""
    clone = make_clone(tmp_path_factory.mktemp("slurm") / "a clone on a cluster", text)
    place_lmplz(clone)
    start = time.monotonic()
    output = clone.snakemake(*DEMO, *SLURM)
    print(f"the demo on Slurm: {time.monotonic() - start:.0f} s, {len(jobs_of(output))} jobs")
    return clone, output


def jobs_of(output: str) -> list[str]:
    """The numbers of the Slurm jobs that Snakemake says it submitted."""
    return re.findall(r"SLURM jobid (\d+)", output)


def content(path: Path) -> Any:
    """The bytes of a file; of JSON, what it says but for who made it when."""
    if path.suffix != ".json":
        return path.read_bytes()
    return {key: value for key, value in json.loads(path.read_bytes()).items() if key != "provenance"}


def read_numbers(path: Path) -> list[dict[str, str]]:
    """A table without the columns that tell one run from another."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [{name: cell for name, cell in row.items() if not name.startswith(VOLATILE)} for row in rows]


def test_slurm_and_this_machine_find_the_same_numbers(local: Path, submitted: tuple[Clone, str]) -> None:
    theirs = submitted[0].folder / RESULTS
    names = sorted(path.relative_to(theirs) for pattern in NUMBERS for path in theirs.rglob(pattern))
    assert sum(name.suffix == ".npy" for name in names) > 150
    assert [str(name) for name in names if content(local / name) != content(theirs / name)] == []


def test_slurm_and_this_machine_write_the_same_tables(local: Path, submitted: tuple[Clone, str]) -> None:
    theirs = submitted[0].folder / RESULTS
    tables = [path.name for path in (theirs / "tables").glob("*.csv") if path.name != "timings.csv"]
    assert len(tables) == 10
    for table in tables:
        assert read_numbers(local / "tables" / table) == read_numbers(theirs / "tables" / table), table


def test_a_study_is_tens_of_jobs(submitted: tuple[Clone, str]) -> None:
    clone, output = submitted
    jobs = jobs_of(output)
    # Vocabularies, n-grams, classes, 14 networks and their scores four at a time, and all that follows.
    assert len(jobs) == len(set(jobs)) == 1 + 1 + 1 + 14 + 4 + 1
    benchmarks = list((clone.folder / RESULTS / "benchmarks").rglob("*.tsv"))
    assert len(benchmarks) > 150, "each is a command that a job of the cluster ran"


@pytest.mark.slow
def test_a_job_that_is_killed_for_its_memory_is_tried_again_with_more(tmp_path: Path, text: str) -> None:
    params = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=True).stdout
    if "OverMemoryKill" not in params:
        pytest.skip("this Slurm is not one of scripts/slurm-one-node, which kills a job for its memory within seconds")
    clone = make_clone(tmp_path / "a clone", text)
    target = "results/tiny/rank30/MLP9-paper/seed1/weights.pt"
    # PyTorch alone takes more than the first attempt has.
    with clone.changed("workflow/rules/neural.smk", "doubling(3000 * PROCESSES)", "doubling(400)"):
        output = clone.tiny(target, *SLURM)
    assert (clone.folder / target).is_file()
    squeue = ["squeue", "--noheader", "--states=all", "--sort=i", "--format=%T %m", "--jobs", ",".join(jobs_of(output))]
    jobs = subprocess.run(squeue, capture_output=True, text=True, check=True).stdout.split()
    tokens, first, *_, last = zip(jobs[::2], jobs[1::2], strict=True)
    assert tokens == ("COMPLETED", "1000M") and first == ("FAILED", "400M")
    assert last in {("COMPLETED", "800M"), ("COMPLETED", "1600M")}
    logs = "".join(path.read_text() for path in (clone.folder / ".snakemake" / "slurm_logs").rglob("*.log"))
    assert "exceeded memory limit" in logs.lower()
